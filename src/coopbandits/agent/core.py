"""What one agent holds, and what happens between its border and its beliefs.

`Agent` (`agent/agent.py`) has the calls; here is what they share: what is open, what waits, what is
believed, and transactions around all of it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count

import numpy as np

from coopbandits.act import FollowCentre, agent_rng, within
from coopbandits.agent.attachments import Attachments
from coopbandits.agent.beliefs import Beliefs
from coopbandits.agent.choice import (
    Choice,
    Offered,
    Viewpoint,
    at_random,
    dimension,
    followed,
    judged,
)
from coopbandits.agent.decision import Decision
from coopbandits.agent.factor_beliefs import FactorBeliefs
from coopbandits.agent.identity import check_present
from coopbandits.agent.inbox import Inbox
from coopbandits.agent.outbox import Outbox
from coopbandits.agent.snapshot import EXPIRE
from coopbandits.agent.source_sums import Block
from coopbandits.agent.statistics_beliefs import StatisticsBeliefs
from coopbandits.agent.units import Units
from coopbandits.arrays import (
    Array,
    as_contexts,
    as_count,
    as_flag,
    as_seed,
    frozen,
    short,
)
from coopbandits.decision_sets import Box, DecisionSet, Polytope
from coopbandits.errors import (
    LocalProtocolError,
    ParameterError,
    ShapeError,
)
from coopbandits.forget import Exponential
from coopbandits.gp.compositions import refusal
from coopbandits.network import Network, as_network
from coopbandits.policy import Policy, plan
from coopbandits.protocol.digests import Digest, DigestRelay, News
from coopbandits.protocol.messages import Observation, Relay
from coopbandits.say import Everything

# With features, observations wait for the next decision, but no more of them than this.
_MOST_PENDING = 1024
# Tells the agents of this process apart, for results of their tasks.
_OWNERS = count(1)


class AgentCore:
    """One agent of a network under a policy, without its calls."""

    def __init__(
        self,
        policy: Policy,
        network: Network,
        agent: int | str,
        *,
        seed: int = 0,
        expire: int = EXPIRE,
    ) -> None:
        check_kinds(policy, network)
        _check_fades(policy)
        self.policy, self.network = policy, network
        self._plan = plan(policy, network)
        self.agent = network.index(agent)
        check_present(self.agent, network)
        self._rng = agent_rng(as_seed(seed), self.agent)
        self.expire = as_count(expire, "expire")
        self._owner, self._units = next(_OWNERS), Units(policy)
        most = _most_hops(self._plan.carrier, self.agent, policy.ttl)
        self._relay = Relay(self.agent, agents=len(network), ttl=policy.ttl, most=most)
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

    @contextmanager
    def _transaction(self, *, keep: bool = True) -> Iterator[None]:
        """Go back to what was if anything raises, or if nothing is to be kept."""
        held = self._arm, self._arm_came, self._beliefs, self._inbox.dim
        waiting = self._inbox.observations, self._inbox.digests, self._inbox.waiting
        learnt = None if self._beliefs is None else self._beliefs.state()
        used = self._rng.bit_generator.state
        done = False
        try:
            yield
            done = keep
        finally:
            if not done:
                self._arm, self._arm_came, self._beliefs, self._inbox.dim = held
                self._inbox.observations, self._inbox.digests, self._inbox.waiting = waiting
                if self._beliefs is not None:
                    self._beliefs.restore(learnt)
                self._rng.bit_generator.state = used

    def _decided(self, decision_sets: Iterable[object], *, learn: bool) -> list[Decision]:
        """Choose from each of some decision sets, and open all of these decisions, or none."""
        as_flag(learn, "learn")
        pairs = [self._offered(contexts) for contexts in decision_sets]
        dims = sorted({dimension(offered) for _, offered in pairs})
        if len(dims) > 1:
            raise ShapeError(
                f"decision sets of contexts of {dims[0]} and of {dims[1]} numbers came together; "
                "expected one length for all"
            )
        choices, attachments = [], self._attachments
        with self._transaction():
            for _, offered in pairs:
                choice, attachments = self._considered(offered, attachments, learn=learn)
                choices.append((choice, attachments))
        made = zip(choices, pairs, strict=True)
        return [self._opened(choice, attached, raw) for (choice, attached), (raw, _) in made]

    def _opened(
        self, choice: Choice, attachments: Attachments, raw: Array | DecisionSet
    ) -> Decision:
        """Open the decision of a choice, and let the oldest expire."""
        self._attachments = attachments
        self._round += 1
        self._open[self._round] = frozen(choice.context.copy()), attachments.newest
        if self._outbox is not None:
            self._outbox.decided(self._round, choice.facts[1])
        while (oldest := next(iter(self._open))) <= self._round - self.expire:
            del self._open[oldest]
            if self._outbox is not None:
                self._outbox.expired(oldest)
        context = raw[choice.index] if isinstance(raw, np.ndarray) else None
        context = self._units.raw(choice.context) if context is None else context.reshape(-1)
        made = Decision(
            self._round,
            choice.index,
            frozen(context.copy()),
            *choice.facts,
            choice.propensity,
            choice.scores,
        )
        return made.in_units_of(self.policy.scale)

    def _considered(
        self, offered: Offered, attachments: Attachments, *, learn: bool
    ) -> tuple[Choice, Attachments]:
        """Learn what has arrived, choose, and work out what goes with the choice."""
        choice = self._choose(offered, attachments, learn=learn)
        return choice, self._attached(attachments, choice, offered)

    def _attached(self, attachments: Attachments, choice: Choice, offered: Offered) -> Attachments:
        if self._plan.estimator is None:
            return attachments
        spread = offered if isinstance(offered, np.ndarray) else offered.spread
        return attachments.with_choice(choice.context, spread, choice.index)

    def _choose(self, offered: Offered, attachments: Attachments, *, learn: bool) -> Choice:
        """Choose by chance, by the leader's arm or by the posterior."""
        self._settle_dimension(dimension(offered))
        if not self.policy.act.judges:
            return at_random(self.policy.act, offered, self._rng)
        silent = self._patience is not None and self._round - self._arm_came > self._patience
        if self._arm is not None and not silent:
            return followed(self.policy.act, self._arm.context, offered, self._rng)
        return judged(self._viewpoint(offered, attachments, learn=learn), offered, self._rng)

    def _viewpoint(self, offered: Offered, attachments: Attachments, *, learn: bool) -> Viewpoint:
        """Return what choices are made from; beliefs as of now, if they are to learn first."""
        self._settle_dimension(dimension(offered))
        if learn:
            self._learn()
        beliefs = self._believing()
        return Viewpoint(self.policy, self._plan, self.agent, beliefs, attachments)

    def _learn(self) -> None:
        """Let beliefs learn all that waits."""
        beliefs = self._believing()
        beliefs.learn(self._inbox.observations, self._inbox.digests.values(), self._round)
        self._inbox.clear()

    def _absorb(self) -> None:
        """Add up all that waits, where sums are kept; what is believed stays as it is."""
        beliefs = self._believing()
        assert isinstance(beliefs, StatisticsBeliefs)
        beliefs.absorb(self._inbox.observations, self._inbox.digests.values(), self._round)
        self._inbox.clear()

    def _believing(self) -> Beliefs:
        """Return the beliefs, made now if there were none."""
        if self._beliefs is None:
            self._beliefs = self._new_beliefs()
            for one in self._inbox.observations:
                if one.origin == self.agent:
                    self._beliefs.saw(one)
        return self._beliefs

    def _new_beliefs(self) -> Beliefs:
        assert self._inbox.dim is not None
        if self._plan.basis is None:
            return FactorBeliefs(self.policy, self._plan, self.agent)
        return StatisticsBeliefs(self.policy, self._plan, self.agent, self._inbox.dim)

    def _keep(self, observation: Observation) -> None:
        """Keep an observation until the next decision, if it is of any use."""
        if self._learns:
            self._inbox.add(observation)
            if observation.origin == self.agent and self._beliefs is not None:
                self._beliefs.saw(observation)

    @property
    def _learns(self) -> bool:
        """Whether data are of use: not to who follows for good, or acts at random."""
        follows = self._arm is not None and self._patience is None
        return self.policy.act.judges and not follows

    def _hear(self, block: Block) -> None:
        """Take a block of observations in."""
        if block.origin == self._leader:
            self._lead(max(block.observations, key=lambda one: one.round))
        if block.origin not in self._heard or not self._learns:
            return
        if self._plan.basis is None:
            for one in block.observations:
                self._keep(one)
            return
        beliefs = self._believing()
        assert isinstance(beliefs, StatisticsBeliefs)
        beliefs.absorb_block(block, self._round)

    def _lead(self, observation: Observation) -> None:
        """Follow what the leader did last."""
        if self._arm is None or observation.round > self._arm.round:
            self._arm, self._arm_came = observation, self._round

    def _make_room(self) -> None:
        """Where sums are kept, add up what waits before it is more than `_MOST_PENDING`.

        And fold in what is to be folded in, before it is too much.
        """
        full = len(self._inbox.observations) >= _MOST_PENDING
        absorbs = self._plan.basis is not None and full and self._inbox.dim is not None
        beliefs = self._beliefs
        folds = isinstance(beliefs, StatisticsBeliefs) and beliefs.is_full
        if absorbs or folds:
            with self._transaction():
                if absorbs:
                    self._absorb()
                if isinstance(beliefs, StatisticsBeliefs) and folds:
                    beliefs.fold()

    def _check_sums(self, what: str) -> None:
        if self._plan.basis is None:
            raise LocalProtocolError(
                f"{what} needs beliefs of a fixed size; give the policy features=, such as "
                "coopbandits.features.Exact() for a linear kernel or Fourier(64) for others"
            )

    def _newest_of(self, origin: int) -> int:
        """Return the newest round of an agent that was learnt or waits, 0 for none."""
        rounds = [one.round for one in self._inbox.observations if one.origin == origin]
        if self._beliefs is not None and origin in self._heard:
            rounds.append(self._beliefs.newest(origin))
        if self._arm is not None and origin == self._leader:
            rounds.append(self._arm.round)
        return max(rounds, default=0)

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

    def _offered(self, contexts: object) -> tuple[Array | DecisionSet, Offered]:
        """Check a decision set: (K, d), or a continuum; as it is, and as it is computed with."""
        raw, offered = self._units.offered(contexts)
        if isinstance(offered, Box | Polytope):
            # no built-in kernel is larger anywhere than at the point furthest from 0
            furthest = np.maximum(np.abs(offered.low), np.abs(offered.high))
            self._check_own(np.array([furthest, offered.low, offered.high]))
        else:
            self._check_own(offered)
        return raw, offered

    def _asked(self, contexts: object) -> Array:
        """Check contexts that are asked about: (m, d)."""
        if not self.policy.act.judges:
            raise LocalProtocolError(f"{self.policy.name} asks no posterior: it acts at random")
        X = self._units.scaled(as_contexts(contexts, "contexts"))
        self._check_own(X)
        return X

    def _check_own(self, contexts: Array, origin: int | None = None) -> None:
        if self._inbox.dim not in (None, contexts.shape[1]):
            raise ShapeError(
                f"agent {self.network.called(self.agent)} uses contexts of {self._inbox.dim} "
                "numbers, but got contexts "
                f"of {contexts.shape[1]} numbers"
            )
        agents = np.full(len(contexts), self.agent if origin is None else origin)
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


def _most_hops(carrier: Network, agent: int, ttl: int) -> dict[int, int]:
    """Return how many hops can be left of what comes from each agent within γ of one."""
    if ttl == 1:
        return {}
    sources, rounds = carrier.lags(ttl).row(agent)
    most = dict(zip(sources.tolist(), (ttl + 1 - rounds).tolist(), strict=True))
    return most | {agent: ttl}


def _check_fades(policy: Policy) -> None:
    """Refuse to keep observations whose weights would have to fade, which only sums do."""
    if isinstance(policy.forget, Exponential) and policy.basis is None:
        raise ParameterError(
            f"forget={short(policy.forget)} multiplies sums of features, and an agent with "
            f"{short(policy.kernel)} keeps observations; give the policy features=, such as "
            "coopbandits.features.Fourier(64), or forget=coopbandits.forget.Window(…)"
        )


def check_kinds(policy: object, network: object) -> None:
    """Refuse what is no policy or no network."""
    if not isinstance(policy, Policy):
        raise ParameterError(f"expected a policy such as coopbandits.LinUCB(), got {short(policy)}")
    as_network(network)
