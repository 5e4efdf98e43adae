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

What arrives waits in an `Inbox`; at the next decision `Beliefs` learn it; `choice.py` chooses; what
is to be told goes through an `Outbox`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from coopbandits.act import FollowCentre, agent_rng, within
from coopbandits.agent import snapshot
from coopbandits.agent.attachments import Attachments
from coopbandits.agent.beliefs import Beliefs
from coopbandits.agent.choice import Choice, Offered, at_random, dimension, followed, judged
from coopbandits.agent.factor_beliefs import FactorBeliefs
from coopbandits.agent.identity import check_present
from coopbandits.agent.inbox import Inbox
from coopbandits.agent.outbox import Outbox
from coopbandits.agent.prediction import Prediction
from coopbandits.agent.statistics_beliefs import StatisticsBeliefs
from coopbandits.arrays import (
    Array,
    IntArray,
    as_contexts,
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
from coopbandits.gp.compositions import refusal
from coopbandits.network import Network, as_network
from coopbandits.policy import Policy, plan
from coopbandits.protocol.digests import Digest, DigestRelay, News
from coopbandits.protocol.messages import Message, Observation, Relay
from coopbandits.say import Everything
from coopbandits.similarity.mean_embedding import FrozenKernel

# With features, observations wait for the next decision, but no more of them than this.
_MOST_PENDING = 1024


@dataclass(frozen=True, eq=False)
class Decision:
    """A choice, and what the agent believed of it.

    `mean`, `std` and `width` are those of the chosen action; None where the policy asks no
    posterior (an agent that follows its centre, or acts at random by design). `index` is None where
    `context` is a point of a continuum.

    `propensity` is the probability with which this action was taken, given all that the agent knew:
    1 where nothing was left to chance, else what `act.Explore`, `act.Sample(samples=…)` or a choice
    at random make of it. None on a continuum, and for a single posterior draw, which does not tell
    its own probability. `scores` holds mean, σ and upper bound of every offered action; None where
    no posterior is asked, and on a continuum.
    """

    id: int
    index: int | None
    context: Array
    mean: float | None
    std: float | None
    width: float | None
    propensity: float | None = None
    scores: Prediction | None = None


class Agent:
    """One agent of a network under a policy; `policy.agent(v, network)` makes it."""

    def __init__(
        self, policy: Policy, network: Network, agent: int | str, *, seed: int = 0
    ) -> None:
        _check_kinds(policy, network)
        self.policy, self.network = policy, network
        self._plan = plan(policy, network)
        self.agent = network.index(agent)
        check_present(self.agent, network)
        self._rng = agent_rng(as_seed(seed), self.agent)
        self._relay = Relay(self.agent, agents=len(network), ttl=policy.ttl)
        self._digest_relay = DigestRelay(self.agent, agents=len(network), ttl=policy.ttl)
        self._inbox = Inbox(policy, self._plan, network, self.agent)
        # an agent that says everything holds nothing back
        self._outbox = (
            None
            if isinstance(policy.say, Everything)
            else Outbox(policy, self._relay, self._digest_relay)
        )
        self._recipients = frozen(self._plan.carrier.neighbours(self.agent))
        self._heard = frozenset(self._plan.lags.sources[self.agent].tolist())  # no strangers
        self._round = 0
        self._open: dict[int, tuple[Array, Array]] = {}  # context, and what is attached
        self._beliefs: Beliefs | None = None  # once d is known
        self._attachments = Attachments(self._plan)
        self._leader = int(self._plan.leaders[self.agent])
        self._arm: Observation | None = None  # the leader's last
        self._arm_came = 0  # the own round in which it came
        act = within(policy.act)
        self._patience = act.patience if isinstance(act, FollowCentre) else None

    def __repr__(self) -> str:
        called = self.network.called(self.agent)
        return f"Agent({called} of {self.network!r}, {self.policy.name}, knows {self.known})"

    @property
    def name(self) -> str:
        """What the agent is called; its number, as a text, where agents have no names."""
        return self.network.names[self.agent]

    @property
    def known(self) -> int:
        """How many observations the agent has learnt from, its own and others'."""
        if self._beliefs is None:
            return len(self._inbox)
        # a digest takes the place of what was known of its origin
        return self._beliefs.n_observations_without(self._inbox.digests) + len(self._inbox)

    @property
    def recipients(self) -> IntArray:
        """To whom the agent's messages go, its own and those it hands on."""
        return self._recipients

    @property
    def awaiting(self) -> tuple[int, ...]:
        """The ids of the decisions that have no reward yet, in order."""
        return tuple(sorted(self._open))

    @property
    def estimated(self) -> int:
        """From how many observations K_z was last estimated; 0 where it is given."""
        if self._beliefs is None or self._plan.estimator is None:
            return 0
        if self._plan.frozen:
            return self._beliefs.n_observations
        return int(self._beliefs.hypotheses.fitted_at[0])

    @property
    def similarity(self) -> Array:
        """What the agent takes each agent's news to be worth, 0 if it does not learn from it: (V,).

        `worth` has the same of its `sources` alone.
        """
        row = np.zeros(len(self.network))
        row[self.sources] = self.worth
        return row

    @property
    def sources(self) -> IntArray:
        """Whom the agent listens to, itself among them, in order: (n,)."""
        return self._plan.listens.sources[self.agent]

    @property
    def worth(self) -> Array:
        """What the agent takes the news of each of its `sources` to be worth: (n,).

        As of its last decision; where embeddings are frozen, between the latest message of each
        agent and its own.
        """
        kernel, beliefs, sources = self._plan.kernel, self._beliefs, self.sources
        if self._plan.estimator is None:
            start = self._plan.listens.sources.starts[self.agent]
            return self._plan.similarity[start : start + len(sources)]
        worth = (sources == self.agent).astype(np.float64)
        if isinstance(kernel, FrozenKernel):
            latest = {one.origin: one.augmented for one in beliefs.recent} if beliefs else {}
            if self.agent in latest:
                others = np.array(list(latest.values()))
                at = np.searchsorted(sources, list(latest))
                worth[at] = kernel.alike(latest[self.agent][None, :], others)[0]
        elif beliefs is not None:
            worth = beliefs.hypotheses.expected[0]
        return worth

    def decide(self, contexts: object) -> Decision:
        """Choose one of K offered actions, (K, d), or a point of a `Box` or `Polytope`."""
        with self._transaction():
            choice, attachments = self._considered(contexts)
        self._attachments = attachments
        self._round += 1
        context = frozen(choice.context.copy())
        self._open[self._round] = context, attachments.newest
        if self._outbox is not None:
            self._outbox.decided(self._round, choice.facts[1])
        return Decision(
            self._round, choice.index, context, *choice.facts, choice.propensity, choice.scores
        )

    @overload
    def preview(self, contexts: DecisionSet) -> Array: ...

    @overload
    def preview(self, contexts: npt.ArrayLike) -> int: ...

    def preview(self, contexts: object) -> int | Array:
        """Tell what `decide` would choose now: of (K, d) an index, of a continuum a point (d,).

        No decision is opened and no random number used up. What has arrived is learnt, as `decide`
        would; with features and on a continuum it goes on waiting, since `decide` looks at what
        was tried.
        """
        used = self._rng.bit_generator.state
        looks = self.policy.features is not None and isinstance(contexts, Box | Polytope)
        with self._transaction(keep=not looks):
            choice, _ = self._considered(contexts)
        self._rng.bit_generator.state = used
        return choice.context if choice.index is None else choice.index

    def reward(self, decision: int | Decision, y: float) -> list[News]:
        """Learn what a decision brought, and return what to send to `recipients`.

        Args:
            decision: What `decide` returned, or its id.
            y: The reward.
        """
        value = as_reward(y)
        if isinstance(decision, Decision):
            decision = decision.id
        if not is_whole(decision):
            raise LocalProtocolError(
                f"a decision's id is a whole number, as decision.id is; got {short(decision)}"
            )
        if decision not in self._open:
            raise LocalProtocolError(
                f"decision {decision} has its reward already"
                if 1 <= decision <= self._round
                else f"there is no decision {decision}; agent "
                f"{self.network.called(self.agent)} has taken {self._round}"
            )
        self._make_room()
        context, attached = self._open[decision]
        observation = Observation(self.agent, int(decision), context, value, attached)
        told: list[News]
        if self._outbox is None:
            self._make_room()
            told = [self._relay.send(observation)]
        else:
            with self._transaction():
                self._make_room()
                told = self._outbox.rewarded(observation, self._adds_up())
        del self._open[decision]
        self._keep(observation)
        return told if len(self._recipients) else []

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
            return self._receive_digest(message)
        message = self._relay.check(message)
        observation = self._inbox.check(message)
        heard = observation.origin in self._heard
        if heard and not self._relay.seen(message):
            self._make_room()
        is_news, onward = self._relay.accept(message)
        if is_news and observation.origin != self.agent:
            if heard:
                self._keep(observation)
            if observation.origin == self._leader and (
                self._arm is None or observation.round > self._arm.round
            ):
                self._arm, self._arm_came = observation, self._round
        return [*onward]

    def observe(self, context: object, y: float) -> None:
        """Learn one observation from history: (d,) and its reward. Nobody is told.

        An agent that acts at random, or follows its centre already, has no use for it.
        """
        vector, value = as_vector(context, "a context"), as_reward(y)
        self._check_own(vector[None, :])
        with self._transaction():
            attachments = self._attachments.with_choice(vector, vector[None, :], 0)
            self._settle_dimension(len(vector))
            self._make_room()
        self._attachments = attachments
        self._keep(Observation(self.agent, 0, frozen(vector), value, attachments.newest))

    def restarted(self) -> "Agent":
        """Return the agent as it comes back with an empty memory.

        It knows its round, so that no id is used twice, and goes on with its random numbers.
        """
        fresh = Agent(self.policy, self.network, self.agent)
        fresh._rng.bit_generator.state = self._rng.bit_generator.state
        fresh._round = self._round
        if fresh._outbox is not None:
            fresh._outbox.before = self._round
        if self._round:  # its own earlier news, coming back, ends here
            fresh._relay.settled[self.agent] = self._round
            fresh._digest_relay.note(self.agent, self._round, self.policy.ttl)
        return fresh

    def to_bytes(self) -> bytes:
        """Store the agent, without its policy and network; versioned, no pickle."""
        return snapshot.stored(self)

    def moved_to(self, network: Network) -> "Agent":
        """Return the agent as it goes on in a network that grew out of its own.

        By `with_agents`, `without`, `with_edges` or `without_edges` of `agent.network`. All that it
        has learnt stays, what those who left have told too, as do its open decisions, its round and
        its random numbers. This one must not be used any more.
        """
        return snapshot.moved(self, as_network(network))

    @classmethod
    def from_bytes(cls, data: bytes, *, policy: Policy, network: Network) -> "Agent":
        """Restore an agent that takes the same decisions, to the bit.

        In the network in which it was stored, or in one that grew out of that, as `moved_to` has
        it; its policy and network are refused if they are others, with what differs.

        From then on it must be the only one: bytes older than the agent's last decision or reward
        make it use ids again that neighbours and late rewards know already (docs/deploy.md).
        """
        _check_kinds(policy, network)
        return snapshot.restored(data, policy, network)

    @contextmanager
    def _transaction(self, *, keep: bool = True) -> Iterator[None]:
        """Go back to what was if anything raises, or if nothing is to be kept."""
        held = self._arm, self._beliefs, self._inbox.dim
        waiting = self._inbox.observations, self._inbox.digests, self._inbox.waiting
        learnt = None if self._beliefs is None else self._beliefs.state()
        used = self._rng.bit_generator.state
        done = False
        try:
            yield
            done = keep
        finally:
            if not done:
                self._arm, self._beliefs, self._inbox.dim = held
                self._inbox.observations, self._inbox.digests, self._inbox.waiting = waiting
                if self._beliefs is not None:
                    self._beliefs.restore(learnt)
                self._rng.bit_generator.state = used

    def _considered(self, contexts: object) -> tuple[Choice, Attachments]:
        """Learn what has arrived, choose, and work out what goes with the choice."""
        offered = self._offered(contexts)
        choice = self._choose(offered)
        if self._plan.estimator is None:
            return choice, self._attachments
        spread = offered if isinstance(offered, np.ndarray) else offered.spread
        return choice, self._attachments.with_choice(choice.context, spread, choice.index)

    def _choose(self, offered: Offered) -> Choice:
        """Choose by chance, by the leader's arm or by the posterior."""
        self._settle_dimension(dimension(offered))
        if not self.policy.act.judges:
            return at_random(self.policy.act, offered, self._rng)
        silent = self._patience is not None and self._round - self._arm_came > self._patience
        if self._arm is not None and not silent:
            return followed(self.policy.act, self._arm.context, offered, self._rng)
        self._learn()
        assert self._beliefs is not None
        return judged(
            self.policy,
            self._plan,
            self.agent,
            self._beliefs,
            self._attachments,
            offered,
            self._rng,
        )

    def _learn(self) -> None:
        """Let beliefs learn all that waits."""
        if self._beliefs is None:
            self._beliefs = self._new_beliefs()
        self._beliefs.learn(self._inbox.observations, self._inbox.digests.values())
        self._inbox.clear()

    def _new_beliefs(self) -> Beliefs:
        assert self._inbox.dim is not None
        if self.policy.features is None:
            return FactorBeliefs(self.policy, self._plan, self.agent)
        return StatisticsBeliefs(self.policy, self._plan, self.agent, self._inbox.dim)

    def _keep(self, observation: Observation) -> None:
        """Keep an observation until the next decision, if it is of any use."""
        # an agent that follows for good, or acts at random, has no use for data
        follows = self._arm is not None and self._patience is None
        if self.policy.act.judges and not follows:
            self._inbox.add(observation)

    def _make_room(self) -> None:
        """With features, learn what waits before it is more than `_MOST_PENDING`."""
        full = len(self._inbox.observations) >= _MOST_PENDING
        if self.policy.features is not None and full and self._inbox.dim is not None:
            with self._transaction():
                self._learn()

    def _adds_up(self) -> StatisticsBeliefs | None:
        """Return what adds own observations up, where sums are told."""
        if not self.policy.say.sums:
            return None
        beliefs = self._beliefs or self._new_beliefs()
        assert isinstance(beliefs, StatisticsBeliefs)
        return beliefs

    def _receive_digest(self, digest: Digest) -> list[News]:
        digest = self._inbox.check_digest(self._digest_relay.check(digest))
        is_news, onward = self._digest_relay.accept(digest)
        heard = digest.origin in self._heard
        if is_news and heard and digest.origin != self.agent and self.policy.act.judges:
            self._inbox.digests = {**self._inbox.digests, digest.origin: digest}
        return [*onward]

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

    def _check_own(self, contexts: Array) -> None:
        if self._inbox.dim not in (None, contexts.shape[1]):
            raise ShapeError(
                f"agent {self.network.called(self.agent)} uses contexts of {self._inbox.dim} "
                "numbers, but got contexts "
                f"of {contexts.shape[1]} numbers"
            )
        agents = np.full(len(contexts), self.agent)
        if not self._plan.prior.admits(self.policy.ridge, agents, contexts):
            raise refusal(contexts, self.policy.ridge)

    def _settle_dimension(self, dim: int) -> None:
        """Let d be what the agent's own user gives, and drop what came before and has another."""
        if self._inbox.dim is not None:
            return
        self._inbox.settle(dim)
        self._inbox.drop_misfits()
        if self._arm is not None:
            arm = self._inbox.fitted(self._arm)
            fits = arm is not None and self._inbox.admits(arm.context, self._leader)
            self._arm = arm if fits else None


def _check_kinds(policy: object, network: object) -> None:
    if not isinstance(policy, Policy):
        raise ParameterError(f"expected a policy such as coopbandits.LinUCB(), got {short(policy)}")
    as_network(network)
