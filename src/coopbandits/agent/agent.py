"""One agent on its own: decides at once, learns as rewards and messages come. No I/O.

The rules:

1. `decide` answers from what is known at that moment and opens a decision; its id is the agent's
   round. An agent that knows nothing yet chooses at random (in a simulation: the first round).
   `preview` answers the same and opens nothing.
2. `reward` closes a decision, whenever and in whatever order, or never; it returns what to send to
   `recipients`: one message, or none or many as the policy's `say` has it. `receive` takes a peer's
   message and returns what to hand on to `recipients` in the next round. `observe` takes history
   from before the start; it is told to nobody.
3. A call that raises has changed nothing. A peer can only cause a `RemoteProtocolError`.
4. The first context that the agent's own user gives fixes d. Messages that came before and have
   another d are dropped then.
5. A decision set is (K, d) contexts, or a continuum: a `Box` or a `Polytope` (docs/continuum.md).
"""

from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from coopbandits.act import FollowCentre, agent_rng
from coopbandits.agent import snapshot
from coopbandits.agent.choice import Choice, Judge, Offered, at_random, dimension, first, followed
from coopbandits.agent.inbox import Inbox
from coopbandits.agent.model import Ahead, Attachments, Model, Observation
from coopbandits.agent.speaker import Speaker
from coopbandits.agent.summed_model import SummedModel
from coopbandits.arrays import (
    Array,
    IntArray,
    as_agent,
    as_contexts,
    as_count,
    as_reward,
    as_seed,
    as_vector,
    frozen,
    is_whole,
    short,
)
from coopbandits.decision_sets import Box, DecisionSet, Polytope
from coopbandits.errors import (
    InputError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    ShapeError,
)
from coopbandits.gp.admission import admits, refusal
from coopbandits.gp.compositions import JointKernel
from coopbandits.network import Network, as_network
from coopbandits.policy import Policy, plan
from coopbandits.protocol.digests import Digest, DigestRelay, News
from coopbandits.protocol.messages import Message, Relay
from coopbandits.similarity.mean_embedding import FrozenKernel

# With features, observations wait for the next decision, but no more of them than this.
_MOST_PENDING = 1024


@dataclass(frozen=True, eq=False)
class Decision:
    """A choice, and what the agent believed of it.

    `mean`, `std` and `width` are those of the chosen action; None where the policy asks no
    posterior (an agent that follows its centre, or acts at random by design). `index` is −1 where
    `context` is a point of a continuum.
    """

    id: int
    index: int
    context: Array
    mean: float | None
    std: float | None
    width: float | None


class Agent:
    """One agent of a network under a policy; `policy.agent(v, network)` makes it."""

    def __init__(self, policy: Policy, network: Network, agent: int, *, seed: int = 0) -> None:
        _check_kinds(policy, network)
        self.policy, self.network = policy, network
        self._plan = plan(policy, network)
        self.agent = as_agent(agent, len(network))
        self._rng = agent_rng(as_seed(seed), self.agent)
        self._relay = Relay(self.agent, agents=len(network), ttl=policy.ttl)
        relay = DigestRelay(self.agent, agents=len(network), ttl=policy.ttl)
        self._inbox = Inbox(policy, self._plan, self.agent, relay)
        self._speaker = Speaker(policy, self._relay, relay)
        self._round = 0
        self._dim: int | None = None
        self._open: dict[int, Array] = {}
        self._observations: list[Observation] = []
        self._model: Model | SummedModel | None = None  # once d is known
        self._attachments = Attachments(self._plan)
        self._leader = int(self._plan.leaders[self.agent])
        self._arm: tuple[int, Array] | None = None  # the leader's last arm, with its round
        self._arm_came = 0  # the own round in which it came
        act = policy.act
        self._patience = act.patience if isinstance(act, FollowCentre) else None

    def __repr__(self) -> str:
        return f"Agent({self.agent} of {self.network!r}, {self.policy.name}, knows {self.known})"

    @property
    def known(self) -> int:
        """How many observations the agent has learnt from, its own and others'."""
        model = self._model if isinstance(self._model, SummedModel) else None
        pending = sum(digest.count for digest in self._inbox.digests.values())
        learnt = model.known_without(self._inbox.digests) if model else 0
        return learnt + pending + len(self._observations)

    @property
    def recipients(self) -> IntArray:
        """To whom the agent's messages go, its own and those it hands on."""
        return self._plan.carrier.neighbours(self.agent)

    @property
    def awaiting(self) -> tuple[int, ...]:
        """The ids of the decisions that have no reward yet, in order."""
        return tuple(sorted(self._open))

    @property
    def estimated(self) -> int:
        """From how many observations K_z was last estimated; 0 where it is given."""
        if self._model is None:
            return 0
        return self._model.known if self._plan.frozen else self._model.estimated

    @property
    def similarity(self) -> Array:
        """What the agent takes each agent's news to be worth, 0 if it does not learn from it: (V,).

        As of its last decision; where embeddings are frozen, between the latest message of each
        agent and its own.
        """
        heard = np.isfinite(self._plan.lags[self.agent])
        kernel, model = self._plan.kernel, self._model
        if isinstance(kernel, JointKernel) and self._plan.learner is None:
            return np.where(heard, kernel.K_z[self.agent], 0.0)
        row = np.zeros(len(heard))
        row[self.agent] = 1.0
        if isinstance(kernel, FrozenKernel):
            latest = {o: x for o, x, _ in self._observations[: model.known if model else 0]}
            if self.agent in latest:
                others = np.array(list(latest.values()))
                row[list(latest)] = kernel.alike(latest[self.agent][None, :], others)[0]
        elif model is not None and model.loadings is not None:
            sources = model.sources
            row[sources] = model.loadings.expected[0, np.searchsorted(sources, self.agent)]
        return row

    def decide(self, contexts: object) -> Decision:
        """Choose one of K offered actions, (K, d), or a point of a `Box` or `Polytope`."""
        offered = self._offered(contexts)
        held = self._observations, self._arm, self._model, self._inbox.digests
        used = self._rng.bit_generator.state
        self._with_choice(offered, first(offered))  # what it cannot take raises before all else
        try:
            choice = self._choose(offered)
            attachments = self._with_choice(offered, choice)
        except Exception:
            self._observations, self._arm, self._model, self._inbox.digests = held
            self._rng.bit_generator.state = used
            raise
        self._attachments = attachments
        self._dim = len(choice.context)
        self._round += 1
        context = frozen(choice.context.copy())
        self._open[self._round] = frozen(np.append(context, attachments.newest))
        self._speaker.decided(self._round, choice.facts[1])
        return Decision(self._round, choice.index, context, *choice.facts)

    @overload
    def preview(self, contexts: DecisionSet) -> Array: ...

    @overload
    def preview(self, contexts: npt.ArrayLike) -> int: ...

    def preview(self, contexts: object) -> int | Array:
        """Tell what `decide` would choose now: of (K, d) an index, of a continuum a point (d,).

        No decision is opened and no random number used up; what has arrived is learnt, as `decide`
        would.
        """
        offered = self._offered(contexts)
        held = self._observations, self._arm, self._model, self._inbox.digests
        used = self._rng.bit_generator.state
        self._with_choice(offered, first(offered))
        try:
            choice = self._choose(offered)
        except Exception:
            self._observations, self._arm, self._model, self._inbox.digests = held
            raise
        finally:
            self._rng.bit_generator.state = used
        self._dim = len(choice.context)
        return choice.index if isinstance(offered, np.ndarray) else choice.context

    def reward(self, decision: int, y: float) -> list[News]:
        """Learn what a decision brought, and return what to send to `recipients`."""
        value = as_reward(y)
        if not is_whole(decision):
            raise LocalProtocolError(
                f"a decision's id is a whole number, as decision.id is; got {short(decision)}"
            )
        if decision not in self._open:
            raise LocalProtocolError(
                f"decision {decision} has its reward already"
                if 1 <= decision <= self._round
                else f"there is no decision {decision}; agent {self.agent} has taken {self._round}"
            )
        context = self._open[decision]
        told = self._speaker.rewarded(int(decision), context, value, self._adds_up())
        del self._open[decision]
        self._learn(self.agent, context, value)
        return told if len(self.recipients) else []

    def receive(self, message: News) -> list[News]:
        """Take a peer's message, and return what to hand on to `recipients` in the next round."""
        expected = Digest if self.policy.say.sums else Message
        if not isinstance(message, News):
            raise InputError(
                f"receive takes a {expected.__name__}, got {short(message)}; decode bytes with "
                f"{expected.__name__}.from_bytes"
            )
        if not isinstance(message, expected):
            raise RemoteProtocolError(
                f"a {type(message).__name__} of agent {short(message.origin)} came, but the "
                f"agents of this policy send each a {expected.__name__}"
            )
        if isinstance(message, Digest):
            return self._inbox.receive(message, self._dim)
        message = self._relay.check(message)
        if self._dim is not None and len(message.context) != self._attachments.width(self._dim):
            raise RemoteProtocolError(
                f"a message of agent {message.origin} has a context of {len(message.context)} "
                f"numbers; agent {self.agent} uses {self._attachments.width(self._dim)}"
            )
        if self._dim is not None and not self._admits(
            message.context[None, : self._dim], message.origin
        ):
            raise RemoteProtocolError(
                f"a message of agent {message.origin} has a context that the kernel cannot take: "
                "so large that it leaves no digits, or of an arm that there is not"
            )
        is_news, onward = self._relay.accept(message)
        if is_news and message.origin != self.agent:
            if np.isfinite(self._plan.lags[self.agent, message.origin]):
                self._learn(message.origin, message.context, message.reward)
            if message.origin == self._leader and (
                self._arm is None or message.round > self._arm[0]
            ):
                self._arm, self._arm_came = (message.round, message.context), self._round
        return [*onward]

    def _adds_up(self) -> SummedModel | None:
        """Return what adds own observations up, where sums are told."""
        if not self.policy.say.sums:
            return None
        model = self._model or self._new_model(self._dim)
        assert isinstance(model, SummedModel)
        return model

    def observe(self, context: object, y: float) -> None:
        """Learn one observation from history: (d,) and its reward. Nobody is told.

        An agent that acts at random, or follows its centre already, has no use for it.
        """
        vector, value = as_vector(context, "a context"), as_reward(y)
        self._check_own(vector[None, :])
        self._attachments = self._attachments.with_choice(vector[None, :], 0)
        self._drop_misfits(len(vector))
        self._dim = len(vector)
        self._learn(self.agent, frozen(np.append(vector, self._attachments.newest)), value)

    def restarted(self) -> "Agent":
        """Return the agent as it comes back with an empty memory.

        It knows its round, so that no id is used twice, and goes on with its random numbers.
        """
        fresh = Agent(self.policy, self.network, self.agent)
        fresh._rng.bit_generator.state = self._rng.bit_generator.state
        fresh._round = fresh._speaker.before = self._round
        if self._round:  # its own earlier news, coming back, ends here
            fresh._relay.settled[self.agent] = self._round
            fresh._inbox.relay.note(self.agent, self._round, self.policy.ttl)
        return fresh

    def to_bytes(self) -> bytes:
        """Store the agent, without its policy and network; versioned, no pickle."""
        return snapshot.stored(self)

    @classmethod
    def from_bytes(cls, data: bytes, *, policy: Policy, network: Network) -> "Agent":
        """Restore an agent that takes the same decisions, to the bit.

        From then on it must be the only one: bytes older than the agent's last decision or reward
        make it use ids again that neighbours and late rewards know already (docs/deploy.md).
        """
        _check_kinds(policy, network)
        return snapshot.restored(data, policy, network)

    def _offered(self, contexts: object) -> Offered:
        """Check a decision set: (K, d), or a continuum."""
        if isinstance(contexts, Box | Polytope):
            # no built-in kernel is larger anywhere than at the point furthest from 0
            furthest = np.maximum(np.abs(contexts.low), np.abs(contexts.high))
            self._check_own(np.array([furthest, contexts.low, contexts.high]))
            return contexts
        offered = as_contexts(contexts)
        self._check_own(offered)
        return offered

    def _with_choice(self, offered: Offered, choice: Choice) -> Attachments:
        if isinstance(offered, np.ndarray):
            return self._attachments.with_choice(offered, choice.index)
        return self._attachments.with_point(choice.context, offered.spread)

    def _check_own(self, contexts: Array) -> None:
        if self._dim not in (None, contexts.shape[1]):
            raise ShapeError(
                f"agent {self.agent} uses contexts of {self._dim} numbers, but got contexts of "
                f"{contexts.shape[1]} numbers"
            )
        agents = np.full(len(contexts), self.agent)
        if not admits(self._plan.prior, self.policy.ridge, agents, contexts):
            raise refusal(contexts, self.policy.ridge)

    def _admits(self, contexts: Array, origin: int) -> bool:
        """Tell whether what a peer sent can be learnt from; a peer makes nothing else raise."""
        agents = np.full(len(contexts), origin)
        try:
            return admits(self._plan.prior, self.policy.ridge, agents, contexts)
        except InputError:  # an arm that there is not
            return False

    def _learn(self, origin: int, context: Array, y: float) -> None:
        # an agent that follows for good, or acts at random, has no use for data
        follows = self._arm is not None and self._patience is None
        if self.policy.act.judges and not follows:
            self._observations.append((origin, context, y))
        if self.policy.features is not None and len(self._observations) >= _MOST_PENDING:
            self._add_up()

    def _add_up(self) -> None:
        """Put what is pending into sums, where a policy has features."""
        if self._dim is not None:
            model = self._model or self._new_model(self._dim)
            assert isinstance(model, SummedModel)
            model = model.learnt(self._observations, self._inbox.digests.values())
            self._model, self._observations, self._inbox.digests = model, [], {}

    def _drop_misfits(self, dim: int) -> None:
        if self._dim is None:
            width = self._attachments.width(dim)
            self._observations = [
                (origin, context, y)
                for origin, context, y in self._observations
                if len(context) == width and self._admits(context[None, :dim], origin)
            ]
            if self._arm is not None and (
                len(self._arm[1]) != width
                or not self._admits(self._arm[1][None, :dim], self._leader)
            ):
                self._arm = None
            self._inbox.drop_misfits(dim)

    def _choose(self, offered: Offered) -> Choice:
        """Choose by chance, by the leader's arm or by the posterior."""
        dim = dimension(offered)
        self._drop_misfits(dim)
        if not self.policy.act.judges:
            return at_random(offered, self._rng)
        silent = self._patience is not None and self._round - self._arm_came > self._patience
        if self._arm is not None and not silent:
            return followed(self.policy.act, self._arm[1][:dim], offered)
        model = self._model or self._new_model(dim)
        thought: Ahead | SummedModel
        if isinstance(model, SummedModel):
            thought = model.learnt(self._observations, self._inbox.digests.values())
        else:
            thought = model.ahead(self._observations)
        judge = Judge(
            policy=self.policy,
            plan=self._plan,
            agent=self.agent,
            attachments=self._attachments,
            rng=self._rng,
            thought=thought,
            observations=self._observations,
        )
        choice = judge.choose(offered)
        if isinstance(thought, Ahead):
            self._model = thought.commit()
        else:  # what is in the sums need not be kept
            self._model, self._observations, self._inbox.digests = thought, [], {}
        return choice

    def _new_model(self, dim: int | None) -> Model | SummedModel:
        make = Model if self.policy.features is None else SummedModel.empty
        return make(self.policy, self._plan, self.agent, as_count(dim, "dim"))


def _check_kinds(policy: object, network: object) -> None:
    if not isinstance(policy, Policy):
        raise ParameterError(f"expected a policy such as coopbandits.LinUCB(), got {short(policy)}")
    as_network(network)
