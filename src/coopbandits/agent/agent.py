"""One agent on its own: decides at once, learns as rewards and messages come. No I/O.

The rules:

1. `decide` answers from what is known at that moment and opens a decision; its id is the agent's
   round. An agent that knows nothing yet chooses at random (in a simulation: the first round).
   `preview`, `predict` and `rank` answer and open nothing; `took` opens what somebody else decided.
2. `reward` closes a decision, in whatever order, or never: a decision expires once `expire` more
   were taken. It returns what to send to `recipients`: one message, or none or many as the policy's
   `say` has it. `receive` takes a peer's message and returns what to hand on to `recipients` in the
   next round. `hear` takes observations in bulk, from a log of one's own, and hands nothing on.
   `observe` takes history from before the start; it is told to nobody.
3. A call that raises has changed nothing. A peer can only cause a `RemoteProtocolError`.
4. The first context that the agent's own user gives fixes d. Messages that came before and have
   another d are dropped then.
5. A decision set is (K, d) contexts, or a continuum: a `Box` or a `Polytope` (docs/continuum.md).
6. `decide()` is `learning_task()`, `task.run()`, `adopt(result)` and `decide(learn=False)` in turn,
   once d is fixed. Where sums are kept, learning may so be done elsewhere, and deciding does not
   wait for it.

What arrives waits in an `Inbox`; at the next decision `Beliefs` learn it; `choice.py` chooses; what
is to be told goes through an `Outbox`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import overload

import numpy as np
import numpy.typing as npt

from coopbandits.agent import snapshot
from coopbandits.agent.choice import (
    Choice,
    dimension,
    predicted,
    ranked,
)
from coopbandits.agent.core import AgentCore, check_kinds
from coopbandits.agent.decision import Decision, Prediction
from coopbandits.agent.learning import LearningResult, LearningTask
from coopbandits.agent.source_sums import Block
from coopbandits.agent.statistics_beliefs import StatisticsBeliefs
from coopbandits.agent.units import as_attached, as_rounds
from coopbandits.arrays import (
    Array,
    IntArray,
    as_contexts,
    as_count,
    as_flag,
    as_positive,
    as_vector,
    column_names,
    frozen,
    is_whole,
    short,
)
from coopbandits.decision_sets import DecisionSet
from coopbandits.errors import (
    InputError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    StateError,
)
from coopbandits.network import Network, as_network
from coopbandits.policy import Policy
from coopbandits.protocol.digests import Digest, News
from coopbandits.protocol.messages import LAST_ROUND, Message, Observation
from coopbandits.similarity.chain_diagnostics import ChainDiagnostics
from coopbandits.similarity.mean_embedding import FrozenKernel
from coopbandits.similarity.similarity import SamplesChains


class Agent(AgentCore):
    """One agent of a network under a policy; `policy.agent(v, network)` makes it.

    Args:
        policy: How it decides.
        network: Among whom.
        agent: Which of them, by number or name.
        seed: Of its own choices.
        expire: After how many more decisions one without a reward expires.

    Example:
        >>> network, policy = cb.Network.path(3), cb.NaiveCooperation()
        >>> one, other = policy.agent(0, network), policy.agent(1, network)
        >>> decision = one.decide(np.eye(2))
        >>> [message] = one.reward(decision.id, 1.0)  # to be sent to its neighbours
        >>> forwarded = other.receive(message)
        >>> other.decide(np.eye(2)).index == decision.index  # it has learnt what is good
        True
    """

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

    def diagnostics(self, sweeps: int = 200) -> ChainDiagnostics:
        """Ask what the Gibbs chains of `similarity.Evidence` find in all that was learnt.

        That is what had arrived by its last decision. The chains go on for some sweeps beside the
        agent, which stays as it is.

        Args:
            sweeps: How many, at least 4.

        Example:
            >>> agent = cb.EagerKernelUCB(cb.kernels.Linear()).agent(0, cb.Network.path(2))
            >>> agent.observe([1.0, 0.0], 1.0)
            >>> agent.observe([1.0, 0.0], 0.9, origin=1)
            >>> decision = agent.decide(np.eye(2))  # learns it
            >>> agent.diagnostics().noise.shape
            (2,)
        """
        estimator = self._plan.estimator
        if estimator is None or not isinstance(estimator.learner, SamplesChains):
            raise StateError(
                f"{short(self.policy.similarity)} has no Gibbs chains to ask; expected a policy "
                "with similarity=Evidence()"
            )
        if self._beliefs is None:
            raise StateError("the agent has learnt nothing yet, so there are no chains to ask")
        return estimator.learner.diagnose(self._beliefs.views(), sweeps)

    def decide(self, contexts: object, *, learn: bool = True) -> Decision:
        """Choose one of K offered actions, (K, d), or a point of a `Box` or `Polytope`.

        Args:
            contexts: The decision set.
            learn: Whether to learn first what has arrived. If not, beliefs are as they were last
                learnt or adopted; where sums are kept, own rewards since then are folded in.

        Example:
            >>> agent = cb.LinUCB(eta=0.5).agent(0, cb.Network.path(2))
            >>> decision = agent.decide([[1.0, 0.0], [0.0, 1.0]])
            >>> decision.id, decision.propensity  # it knows nothing yet: at random
            (1, 0.5)
            >>> messages = agent.reward(decision, 1.0)
            >>> again = agent.decide([[1.0, 0.0], [0.0, 1.0]])
            >>> again.index == decision.index, round(again.mean, 9), again.propensity
            (True, 0.5, 1.0)
        """
        return self._decided([contexts], learn=learn)[0]

    def decide_many(self, decision_sets: Iterable[object], *, learn: bool = True) -> list[Decision]:
        """Choose from each of several decision sets, as `decide` would in a row; all or none.

        All of them are decided in one round: nothing fades in between.

        Args:
            decision_sets: As `decide` takes them.
            learn: As in `decide`.

        Example:
            >>> agent = cb.LinUCB().agent(0, cb.Network.path(2))
            >>> agent.observe([1.0, 0.0], 5.0)
            >>> [d.index for d in agent.decide_many([np.eye(2), [[0.0, 1.0], [1.0, 0.0]]])]
            [0, 1]
            >>> agent.awaiting
            (1, 2)
        """
        _check_sets(decision_sets)
        return self._decided(decision_sets, learn=learn)

    def took(self, contexts: object, index: object, *, propensity: float | None = None) -> Decision:
        """Open a decision that somebody else took: its reward is learnt and told as any other.

        Args:
            contexts: What was offered, as `decide` takes it.
            index: Which of the K actions was taken; of a continuum the point, (d,).
            propensity: With which probability, if that is known.

        Example:
            >>> agent = cb.LinUCB().agent(0, cb.Network.path(2))
            >>> decision = agent.took(np.eye(3), 2)  # an editor chose the third
            >>> messages = agent.reward(decision, 4.0)
            >>> agent.predict(np.eye(3)).mean.round(9).tolist()
            [0.0, 0.0, 2.0]
        """
        raw, offered = self._offered(contexts)
        if isinstance(offered, np.ndarray):
            if not is_whole(index) or not 0 <= index < len(offered):  # type: ignore[operator]
                raise LocalProtocolError(
                    f"took index {short(index)} of {len(offered)} offered actions; expected 0 … "
                    f"{len(offered) - 1}"
                )
            chosen: Choice = Choice(int(index), offered[int(index)])  # type: ignore[call-overload]
        else:
            point = self._units.scaled(as_vector(index, "the point that was taken")[None, :])
            if point.shape[1] != offered.dim or not offered.contains(point)[0]:
                raise LocalProtocolError(
                    f"took the point {short(index)}, which is not in {short(contexts)}"
                )
            chosen = Choice(None, point[0])
        if propensity is not None and not 0 < as_positive(propensity, "propensity") <= 1:
            raise ParameterError(f"propensity must be in (0, 1], got {short(propensity)}")
        with self._transaction():
            self._settle_dimension(dimension(offered))
            attachments = self._attached(self._attachments, chosen, offered)
        taken = replace(chosen, propensity=propensity)
        return self._opened(taken, attachments, raw)

    def predict(self, contexts: object, *, learn: bool = True) -> Prediction:
        """Return mean, σ and upper bound of the reward at m contexts, (m, d); nothing is opened.

        Args:
            contexts: (m, d).
            learn: As in `decide`.

        Example:
            >>> agent = cb.LinUCB(eta=2.0).agent(0, cb.Network.path(2))
            >>> agent.observe([1.0, 0.0], 3.0)
            >>> found = agent.predict([[1.0, 0.0], [0.0, 1.0]])
            >>> found.mean.round(9).tolist(), float(found.upper[1]), agent.awaiting
            ([1.5, 0.0], 2.0, ())
        """
        as_flag(learn, "learn")
        offered, attachments = self._asked(contexts), self._attachments
        with self._transaction():
            viewpoint = self._viewpoint(offered, attachments, learn=learn)
            return predicted(viewpoint, offered).times(self.policy.scale)

    def rank(self, contexts: object, k: int | None = None, *, learn: bool = True) -> IntArray:
        """Return the k best rated of K offered actions, (K, d), the best first; nothing is opened.

        The first is what `decide` would choose, but for what it leaves to chance; no random number
        is used up.

        Args:
            contexts: (K, d).
            k: How many; all, unless given.
            learn: As in `decide`.

        Example:
            >>> agent = cb.LinUCB().agent(0, cb.Network.path(2))
            >>> agent.observe([1.0, 0.0, 0.0], 9.0)
            >>> agent.observe([0.0, 1.0, 0.0], -9.0)
            >>> agent.rank(np.eye(3), 2).tolist()  # a slate of two
            [0, 2]
        """
        as_flag(learn, "learn")
        offered, used = self._asked(contexts), self._rng.bit_generator.state
        most = len(offered) if k is None else as_count(k, "k", most=len(offered))
        with self._transaction():
            viewpoint = self._viewpoint(offered, self._attachments, learn=learn)
            order = ranked(viewpoint, offered, most, self._rng)
        self._rng.bit_generator.state = used
        return order

    def learning_task(self) -> LearningTask | None:
        """Take a snapshot of all that has arrived, for `task.run()`; None if nothing is new.

        Only the result of the last task can be adopted.

        Example:
            >>> policy = cb.NaiveCooperation(features=cb.features.Exact())
            >>> agent = policy.agent(0, cb.Network.path(2))
            >>> agent.hear(1, [[1.0, 0.0]], [1.0])
            >>> task = agent.learning_task()
            >>> result = task.run()  # in any thread or process, while the agent goes on deciding
            >>> agent.adopt(result)
            >>> agent.decide(np.eye(2), learn=False).scores.mean.round(9).tolist()
            [0.5, 0.0]
            >>> agent.learning_task() is None  # nothing new
            True
        """
        self._check_sums("learning apart from deciding")
        if self._inbox.dim is None or not self.policy.act.judges:
            return None
        with self._transaction():
            self._absorb()
            assert isinstance(self._beliefs, StatisticsBeliefs)
            return self._beliefs.learning_task(self._round, self._owner)

    def adopt(self, result: LearningResult) -> None:
        """Believe what the last `learning_task` found.

        Args:
            result: What its `run()` returned.

        Example:
            >>> policy = cb.LinUCB(features=cb.features.Exact())
            >>> agent = policy.agent(0, cb.Network.path(2))
            >>> agent.observe([1.0, 0.0], 1.0)
            >>> agent.adopt(agent.learning_task().run())
            >>> agent.predict(np.eye(2), learn=False).mean.round(9).tolist()
            [0.5, 0.0]
        """
        if not isinstance(result, LearningResult):
            raise InputError(f"adopt takes what task.run() returned, got {short(result)}")
        whose = result.owner, result.agent
        if whose != (self._owner, self.agent) or not isinstance(self._beliefs, StatisticsBeliefs):
            raise LocalProtocolError(
                f"a result of a task of another agent ({short(result.agent)}, or of one that was "
                f"restored since) cannot be adopted by {self!r}; run a task of "
                "agent.learning_task()"
            )
        if result.number != self._beliefs.task:
            raise LocalProtocolError(
                f"a result of task {result.number} is of an older task, or was adopted already; "
                "adopt the result of the last agent.learning_task()"
            )
        with self._transaction():
            self._beliefs.adopt(result)

    @overload
    def preview(self, contexts: DecisionSet) -> Array: ...

    @overload
    def preview(self, contexts: npt.ArrayLike) -> int: ...

    def preview(self, contexts: object) -> int | Array:
        """Tell what `decide` would choose now: of (K, d) an index, of a continuum a point (d,).

        No decision is opened and no random number used up. What has arrived is learnt, as `decide`
        would.

        Args:
            contexts: The decision set, as `decide` takes it.

        Example:
            >>> agent = cb.EagerKernelUCB(cb.kernels.RBF()).agent(0, cb.Network.path(2))
            >>> agent.preview(np.eye(4)) == agent.decide(np.eye(4)).index
            True
        """
        used = self._rng.bit_generator.state
        _, offered = self._offered(contexts)
        with self._transaction():
            choice, _ = self._considered(offered, self._attachments, learn=True)
        self._rng.bit_generator.state = used
        return self._units.raw(choice.context) if choice.index is None else choice.index

    def reward(self, decision: int | Decision, y: float) -> list[News]:
        """Learn what a decision brought, and return what to send to `recipients`.

        Args:
            decision: What `decide` returned, or its id.
            y: The reward.

        Example:
            >>> agent = cb.NaiveCooperation(ttl=2).agent(1, cb.Network.path(3))
            >>> first, second = agent.decide(np.eye(2)), agent.decide(np.eye(2))
            >>> [message] = agent.reward(second.id, 0.5)  # in whatever order rewards come
            >>> message.origin, message.round, message.ttl, agent.recipients.tolist()
            (1, 2, 2, [0, 2])
            >>> agent.awaiting
            (1,)
        """
        value = self._units.reward(y)
        if isinstance(decision, Decision):
            decision = decision.id
        if not is_whole(decision):
            raise LocalProtocolError(
                f"a decision's id is a whole number, as decision.id is; got {short(decision)}"
            )
        if decision not in self._open:
            expired = decision <= self._round - self.expire
            raise LocalProtocolError(
                f"decision {decision} has its reward already"
                + f", or has expired: {self._round - decision} more were taken since" * expired
                if 1 <= decision <= self._round
                else f"there is no decision {decision}; agent "
                f"{self.network.called(self.agent)} has taken {self._round}"
            )
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
        """Take a peer's message, and return what to hand on to `recipients` in the next round.

        Args:
            message: As the peer's `reward` or `receive` returned it; bytes are read by
                `Message.from_bytes`, of policies that tell sums by `Digest.from_bytes`.

        Example:
            >>> network, policy = cb.Network.path(3), cb.NaiveCooperation(ttl=2)
            >>> sender, receiver = policy.agent(0, network), policy.agent(1, network)
            >>> [message] = sender.reward(sender.decide(np.eye(2)), 1.0)
            >>> data = message.to_bytes()  # over the wire
            >>> [onward] = receiver.receive(cb.Message.from_bytes(data))
            >>> onward.origin, onward.ttl, receiver.known
            (0, 1, 1)
            >>> receiver.receive(message), receiver.known  # a second copy
            ([], 1)
        """
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
            if observation.origin == self._leader:
                self._lead(observation)
        return [*onward]

    def observe(self, context: object, y: float, *, origin: int | str | None = None) -> None:
        """Learn one observation from history: (d,) and its reward. Nobody is told.

        An agent that acts at random, or follows its centre already, has no use for it.

        Args:
            context: (d,).
            y: Its reward.
            origin: Whose it was; the agent's own, unless given. A neighbour's history uses up none
                of the rounds of its messages.

        Example:
            >>> network = cb.Network.from_edges([("north", "south")])
            >>> agent = cb.NaiveCooperation().agent("north", network)
            >>> agent.observe([1.0, 0.0], 1.0)
            >>> agent.observe([1.0, 0.0], 0.5, origin="south")
            >>> agent.known, agent.predict(np.eye(2)).mean.round(9).tolist()
            (2, [0.5, 0.0])
        """
        vector = self._units.scaled(as_vector(context, "a context")[None, :])[0]
        value = self._units.reward(y)
        whose = self.agent if origin is None else self.network.index(origin)
        self._check_own(vector[None, :], whose)
        with self._transaction():
            attachments = self._attachments.with_choice(vector, vector[None, :], 0)
            attached = attachments.newest
            if whose != self.agent:  # what the agent has seen itself is no part of it
                attached = self._attachments.by_themselves(vector[None, :])[0]
            self._settle_dimension(len(vector))
            self._make_room()
        if whose == self.agent:
            self._attachments = attachments
        if whose in self._heard:
            self._keep(Observation(whose, 0, frozen(vector), value, frozen(attached)))

    def hear(
        self,
        origin: int | str,
        contexts: object,
        rewards: object,
        *,
        rounds: object = None,
        attached: object = None,
    ) -> None:
        """Learn a block of one agent's observations at once; nothing is told or handed on.

        For drivers that keep logs of their own and see to it that each observation comes once, as
        `receive` does for messages; a message of a round that was heard of counts a second time.

        Args:
            origin: Whose they are, by number or name.
            contexts: (k, d).
            rewards: (k,).
            rounds: (k,) in which of its own rounds each was made; where evidence fades they say how
                old it is. The next k after the newest that was heard of, unless given; 0, as
                history, for the agent itself.
            attached: (k, ·) what the origin attached for K_z to be estimated from, as
                `message.attached`; as if nothing else had been offered, unless given.

        Example:
            >>> network = cb.Network.path(2)
            >>> agent = cb.NaiveCooperation(features=cb.features.Exact()).agent(0, network)
            >>> agent.hear(1, [[1.0, 0.0], [0.0, 1.0]], [2.0, 4.0], rounds=[7, 8])
            >>> agent.known, agent.predict(np.eye(2)).mean.round(9).tolist()
            (2, [1.0, 2.0])
        """
        whose = self.network.index(origin)
        X = self._units.scaled(as_contexts(contexts, "contexts"))
        k = len(X)
        y = self._units.rewards(rewards, k)
        self._check_own(X, whose)
        with self._transaction():
            self._settle_dimension(X.shape[1])
            after = min(self._newest_of(whose), LAST_ROUND - k) + 1 + np.arange(k)
            dated = as_rounds(rounds, k, 0 * after if whose == self.agent else after)
            if attached is None:
                with_them = self._attachments.by_themselves(X)
            else:
                with_them = as_attached(attached, k, self._inbox.attached)
            self._hear(Block(whose, X, y, with_them, dated))

    def restarted(self) -> "Agent":
        """Return the agent as it comes back with an empty memory.

        It knows its round, so that no id is used twice, and goes on with its random numbers.

        Example:
            >>> agent = cb.LinUCB().agent(0, cb.Network.path(2))
            >>> decision = agent.decide(np.eye(2))
            >>> messages = agent.reward(decision, 1.0)
            >>> fresh = agent.restarted()
            >>> fresh.known, fresh.decide(np.eye(2)).id
            (0, 2)
        """
        fresh = Agent(self.policy, self.network, self.agent, expire=self.expire)
        fresh._rng.bit_generator.state = self._rng.bit_generator.state
        fresh._round = self._round
        if fresh._outbox is not None:
            fresh._outbox.before = self._round
        if self._round:  # its own earlier news, coming back, ends here
            fresh._relay.settle(self.agent, self._round)
            fresh._digest_relay.note(self.agent, self._round, self.policy.ttl)
        return fresh

    def to_bytes(self) -> bytes:
        """Store the agent, without its policy and network; versioned, no pickle.

        Example:
            >>> network, policy = cb.Network.path(2), cb.LinTS()
            >>> agent = policy.agent(0, network)
            >>> agent.observe([1.0, 0.0], 1.0)
            >>> restored = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=network)
            >>> restored.to_bytes() == agent.to_bytes()
            True
        """
        return snapshot.stored(self)

    def moved_to(self, network: Network) -> "Agent":
        """Return the agent as it goes on in a network that grew out of its own.

        By `with_agents`, `without`, `with_edges` or `without_edges` of `agent.network`. All that it
        has learnt stays, what those who left have told too, as do its open decisions, its round and
        its random numbers. This one must not be used any more.

        Args:
            network: The grown one.

        Example:
            >>> network = cb.Network.from_edges([("north", "south")])
            >>> agent = cb.NaiveCooperation().agent("north", network)
            >>> agent.observe([1.0, 0.0], 1.0)
            >>> agent = agent.moved_to(network.with_agents("harbour", [("north", "harbour")]))
            >>> agent.known, agent.recipients.tolist()
            (1, [1, 2])
        """
        return snapshot.moved(self, as_network(network))

    @classmethod
    def from_bytes(cls, data: bytes, *, policy: Policy, network: Network) -> "Agent":
        """Restore an agent that takes the same decisions, to the bit.

        In the network in which it was stored, or in one that grew out of that, as `moved_to` has
        it; its policy and network are refused if they are others, with what differs.

        From then on it must be the only one: bytes older than the agent's last decision or reward
        make it use ids again that neighbours and late rewards know already (docs/deploy.md).

        Args:
            data: What `to_bytes` returned.
            policy: The one under which it was stored, or one that is equal.
            network: The one in which it was stored, or one that grew out of it.

        Example:
            >>> network, policy = cb.Network.path(2), cb.LinTS()
            >>> agent = policy.agent(0, network)
            >>> agent.observe([1.0, 0.0], 1.0)
            >>> data = agent.to_bytes()
            >>> agent = cb.Agent.from_bytes(data, policy=policy, network=network)
            >>> agent.known
            1
        """
        check_kinds(policy, network)
        return snapshot.restored(data, policy, network)


def _check_sets(given: object) -> None:
    """Refuse what is no list of decision sets."""
    no_list = isinstance(given, str | bytes | Mapping) or getattr(given, "ndim", 1) == 0
    if no_list or not isinstance(given, Iterable) or column_names(given) is not None:
        raise InputError(
            f"decide_many takes a list of decision sets, got {short(given)}; decide takes one"
        )
