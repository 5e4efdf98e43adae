"""What has an agent heard and not learnt yet? Observations, and digests of sums.

It is kept until the next decision, and bounded: see `MOST_OF_ONE`.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from coopbandits.arrays import Array
from coopbandits.errors import InputError, RemoteProtocolError
from coopbandits.network import Network
from coopbandits.policy import Plan, Policy
from coopbandits.protocol.digests import Digest, sound
from coopbandits.protocol.messages import Message, Observation

# An agent that keeps a factor takes no more observations than this from one origin between two
# decisions, and from all: a factor of n observations takes n³ operations, and peers must not
# choose n. Before d is known nothing can be added up, so the second holds for all agents.
MOST_OF_ONE, MOST_OF_ALL = 1024, 4096


@dataclass(eq=False)
class Inbox:
    """News between two decisions.

    Attributes:
        policy: Of the agent.
        plan: Of the policy.
        network: Of the agent.
        agent: Whose inbox it is.
        dim: d; None before the agent's own user has given a context.
        attached: k, how many numbers go with a context of d numbers.
        observations: The agent's own and others', in the order in which they came.
        digests: The newest of each origin; replaced, never changed.
        waiting: How many of the observations are whose.
    """

    policy: Policy
    plan: Plan
    network: Network
    agent: int
    dim: int | None = None
    attached: int = 0
    observations: list[Observation] = field(default_factory=list)
    digests: dict[int, Digest] = field(default_factory=dict)
    waiting: Counter[int] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.observations) + sum(digest.count for digest in self.digests.values())

    def check(self, message: Message) -> Observation:
        """Return what a peer's message tells, or refuse it; nothing changes."""
        observation = message.observation
        if self.dim is not None:
            fits = self.fitted(observation)
            if fits is None:
                expected = f"{self.dim} numbers and {self.attached} attached"
                raise RemoteProtocolError(
                    f"a message of agent {self.network.called(message.origin)} has a context of "
                    f"{len(message.context)} numbers and {len(message.attached)} attached; agent "
                    f"{self.network.called(self.agent)} uses "
                    f"{expected}"
                )
            observation = fits
            if not self.admits(observation.context, observation.origin):
                raise RemoteProtocolError(
                    f"a message of agent {self.network.called(message.origin)} has a context that "
                    "the kernel cannot take: so large that it leaves no digits, or of an arm that "
                    "there is not"
                )
        factor = self.plan.basis is None
        from_one, from_all = self.waiting[observation.origin], len(self.observations)
        if (factor and from_one >= MOST_OF_ONE) or (
            (factor or self.dim is None) and from_all >= MOST_OF_ALL
        ):
            raise RemoteProtocolError(
                f"{from_all} observations, {from_one} of agent "
                f"{self.network.called(observation.origin)}, have come since the last decision of "
                f"agent {self.network.called(self.agent)}, which takes no more until it decides "
                "again; a policy with features= takes any number once it has decided"
            )
        return observation

    def add(self, observation: Observation) -> None:
        """Keep an observation."""
        self.observations.append(observation)
        self.waiting[observation.origin] += 1

    def clear(self) -> None:
        """Start anew: all that was kept is learnt."""
        self.observations, self.digests, self.waiting = [], {}, Counter()

    def check_digest(self, digest: Digest) -> Digest:
        """Return a peer's digest with sums that observations can have, or refuse it."""
        return digest if self.dim is None else self._sound(digest)

    def settle(self, dim: int) -> None:
        """Let contexts have d numbers from now on."""
        self.dim, self.attached = dim, self.plan.attached(dim)

    def fitted(self, observation: Observation) -> Observation | None:
        """Return an observation as contexts of d numbers have it; None if it does not fit.

        In version 1 of messages what is attached stands behind the context.
        """
        dim, k = self.dim, self.attached
        assert dim is not None
        if (len(observation.context), len(observation.attached)) == (dim, k):
            return observation
        if len(observation.context) == dim + k and not observation.attached.size:
            x = observation.context
            return Observation(
                observation.origin, observation.round, x[:dim], observation.reward, x[dim:]
            )
        return None

    def drop_misfits(self) -> None:
        """Keep only what came before d was known and fits."""
        fitted = [self.fitted(one) for one in self.observations]
        kept = {}
        for origin, digest in self.digests.items():
            try:
                kept[origin] = self._sound(digest)
            except RemoteProtocolError:  # it would have been refused, had d been known
                continue
        self.observations = [
            one for one in fitted if one is not None and self.admits(one.context, one.origin)
        ]
        self.digests, self.waiting = kept, Counter(one.origin for one in self.observations)

    def admits(self, context: Array, origin: int) -> bool:
        """Tell whether what a peer sent can be learnt from; a peer makes nothing else raise."""
        try:
            agents = np.array([origin])
            return self.plan.prior.admits(self.policy.ridge, agents, context[None, :])
        except InputError:  # an arm that there is not
            return False

    def _sound(self, digest: Digest) -> Digest:
        features, estimator, dim = self.plan.basis, self.plan.estimator, self.dim
        assert features is not None
        assert dim is not None
        constants = int(self.policy.constants is not None)  # sums are of (φ, 1) then
        return sound(
            digest,
            m=features.size(self.policy.kernel, dim) + constants,
            p=0 if estimator is None else estimator.summary_size(dim),
            ridge=self.policy.ridge,
            scale=float(self.plan.prior.K_z.own(np.array([digest.origin]))[0]),
        )
