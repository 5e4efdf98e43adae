"""The decisions of all agents in a faultless network, where the protocol is a matrix of lags.

Who has heard what by when is known beforehand (`Plan.lags`), so no message needs to move. What
agents believe is up to a `SimulatedBeliefs`; features, the variance that they leave out, rating and
following are the same for all of them and done here.
"""

from dataclasses import replace
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from coopbandits.act import (
    Explore,
    FollowCentre,
    agent_rng,
    chosen_rows,
    draws,
    explores,
    normals,
    propensity,
    rated,
    within,
)
from coopbandits.arrays import Array, BoolArray, IntArray, check_size
from coopbandits.engines.engine import AskChains
from coopbandits.features import Basis
from coopbandits.forget import Forget, Window
from coopbandits.gp.compositions import refusal
from coopbandits.gp.covariances import drawn
from coopbandits.gp.posterior import Belief
from coopbandits.gp.rolling_statistics import RollingStatistics
from coopbandits.network import Network
from coopbandits.network.lags import transmissions
from coopbandits.policy import Plan, Policy, plan
from coopbandits.problems.problem import Round
from coopbandits.protocol.messages import message_size
from coopbandits.similarity import Views
from coopbandits.similarity.chain_diagnostics import ChainDiagnostics
from coopbandits.similarity.mean_embedding import EmbeddingLearner
from coopbandits.similarity.similarity import SamplesChains


class Record:
    """All observations of a simulation, with sums of their summaries where K_z is estimated.

    Attributes:
        observed: (T, V, ·) the chosen contexts as the posterior takes them; where embeddings are
            frozen that is with what was attached to each. (0, V, ·) where nobody asks for them.
        rewards: (T, V) divided by the policy's scale.
        rows: (V,) which row of the last offer each agent chose.
        features: (V, m) of the last choices, where beliefs are about features.
        turns: Who chose when, in order: (round, agents).
    """

    def __init__(
        self,
        plan: Plan,
        rounds: int,
        dim: int,
        *,
        contexts: bool = True,
        scale: float = 1.0,
        forget: Forget | None = None,
    ) -> None:
        V = len(plan.lags)
        self._plan, self._dim, self._scale, self._forget = plan, dim, scale, forget
        kept = dim + (plan.attached(dim) if plan.frozen else 0)
        self.observed = np.zeros((rounds if contexts else 0, V, kept))
        self.rewards = np.zeros((rounds, V))
        self.rows = np.full(V, -1)
        self.features: Array = np.empty((V, 0))
        self.turns: list[tuple[int, IntArray]] = []
        self._samples: Array = np.empty((V, 0))
        self._depth = depth(plan)
        self._sums: Array = np.empty((self._depth, V, 0))
        self._window: Array = np.empty((0, V, 0))

    def asked(self, offer: Round) -> Array:
        """Return a round's contexts as a kernel's posterior takes them: (M, ·)."""
        if not self._plan.frozen:
            return offer.contexts
        mine = self._embeddings.asked(offer.agents, offer.contexts, self._samples)
        return np.hstack([offer.contexts, mine[offer.agents]])

    def add(self, t: int, turn: IntArray, offer: Round, rows: IntArray, asked: Array) -> None:
        """Write down what the agents of a turn chose in round t.

        Args:
            t: The round.
            turn: (n,) who chose.
            offer: What was offered.
            rows: (V,) of the offer.
            asked: (M, ·) what beliefs were asked at: features, or contexts.
        """
        self.rows[turn] = rows[turn]
        if len(self.observed):
            self.observed[t - 1, turn, : self._dim] = offer.contexts[rows[turn]]
        self.rewards[t - 1, turn] = offer.rewards[rows[turn]] / self._scale
        if len(turn) == len(rows):
            self.features = asked[rows]
        self.turns.append((t, turn))
        if self._plan.estimator is None:
            return
        learner = self._plan.estimator.learner
        sampled = learner.sampled(offer.agents, offer.contexts, rows)
        if self._plan.frozen:
            self._samples = self._samples + sampled if self._samples.size else sampled
            self.observed[t - 1, :, self._dim :] = self._embeddings.embedded(self._samples)
            return
        new = learner.summaries(offer.contexts[rows], sampled, self.rewards[t - 1])
        if t == 1:
            self._sums = np.zeros((self._depth, *new.shape))
            if isinstance(self._forget, Window):
                self._window = np.zeros((self._forget.rounds, *new.shape))
        if len(self._window):
            self._window[t % len(self._window)] = new
            self._sums[t % self._depth] = self._window.sum(axis=0)
            return
        before = self._sums[(t - 1) % self._depth]
        if self._forget is not None:
            before = before * self._forget.weight(1)
        self._sums[t % self._depth] = before + new

    def views(self, t: int, agents: IntArray, lags: Array, me: IntArray) -> Views:
        """Return what has arrived by the decisions of round t: (B, N), (B, N), (B,).

        A lag of inf pads a row.
        """
        after = last_rounds(t, lags)
        V, p = self._sums.shape[1:]
        nothing = self._depth * V
        table = np.vstack([self._sums.reshape(nothing, p), np.zeros((1, p))])
        index = np.where(after > 0, after % self._depth * V + agents, nothing)
        return Views.of(agents, me, table, index)

    @property
    def _embeddings(self) -> EmbeddingLearner:
        assert self._plan.estimator is not None
        learner = self._plan.estimator.learner
        assert isinstance(learner, EmbeddingLearner)
        return learner


def depth(plan: Plan) -> int:
    """Return for how many rounds sums are kept: as far back as any news is old, and one more."""
    return plan.lags.longest + 1


def rolling(policy: Policy, plan: Plan, m: int) -> RollingStatistics:
    """Make room for the sums of all agents, as old as any news of them is."""
    V, constants = len(plan.lags), policy.constants
    return RollingStatistics(V, m, depth(plan), intercept=constants, forget=policy.forget)


def last_rounds(t: int, lags: Array) -> IntArray:
    """Return the last round of each agent that has arrived by the decisions of round t; 0: none."""
    return (t - np.minimum(lags, t)).astype(np.int64)


class SimulatedBeliefs(Protocol):
    """What the agents of a simulation believe."""

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        ...

    def learn(self, t: int, record: Record) -> None:
        """Learn what has arrived by the decisions of round t."""
        ...

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge.

        Args:
            offer: Of the round that was learnt up to.
            asked: (M, ·) the rows' features; x̃ itself, where beliefs are about no features.
            judging: (V,).
        """
        ...

    def similarity(self) -> Array:
        """Return what agents take others' news to be worth, for each pair of `listens`: (n,)."""
        ...


class AgentViews(Protocol):
    """What K_z may be in the views of all agents."""

    def of(self, agent: int, t: int, record: Record) -> Views:
        """Return what one agent had heard by the decisions of round t, and its chains' labels."""
        ...


@runtime_checkable
class EstimatesViews(Protocol):
    """Beliefs under a K_z that may be estimated in each agent's view."""

    @property
    def views(self) -> AgentViews:
        """What K_z may be in all views."""
        ...


class _Rngs(dict[int, np.random.Generator]):
    """The random numbers of each agent, made when they are first asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed

    def __missing__(self, agent: int) -> np.random.Generator:
        self[agent] = agent_rng(self._seed, agent)
        return self[agent]


class ByLags:
    """Takes all decisions from a lag matrix.

    Attributes:
        propensities: (V,) with which probability each agent took its last action; NaN if unknown.
        work: How many operations the run takes, roughly.
        advice: What would take fewer; empty if nothing is known.
    """

    def __init__(
        self,
        name: str,
        beliefs: SimulatedBeliefs,
        policy: Policy,
        network: Network,
        *,
        basis: Basis | None,
        dim: int,
        rounds: int,
        seed: int,
        work: float = 0.0,
        advice: str = "",
    ) -> None:
        self.name, self.work, self.advice = name, work, advice
        self._policy, self._plan, self._basis = policy, plan(policy, network), basis
        self.listens = self._plan.listens.sources
        self._V, self._rngs = len(network), _Rngs(seed)
        self._beliefs = beliefs
        # beliefs about features take these; who follows a leader asks for its context
        asked = basis is None or bool((self._plan.leaders >= 0).any())
        self.propensities: Array = np.full(self._V, np.nan)
        self._record = Record(
            self._plan, rounds, dim, contexts=asked, scale=policy.scale, forget=policy.forget
        )
        self._messages = transmissions(self._plan.carrier, policy.ttl, rounds)
        self._message_size = message_size(dim, self._plan.attached(dim))

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        if self._policy.scaling is not None:
            offer = replace(offer, contexts=self._policy.scaling.scaled(offer.contexts))
        if not self._plan.prior.admits(self._policy.ridge, offer.agents, offer.contexts):
            raise refusal(offer.contexts, self._policy.ridge)
        agents = np.arange(self._V)
        rows = np.empty(len(agents), dtype=np.int64)
        self.propensities = np.empty(len(agents))
        for turn in agents[:, None] if self._plan.in_turn else agents[None, :]:
            asked = self._asked(offer)
            rows[turn], self.propensities[turn] = self._choose(t, offer, asked, turn)
            self._record.add(t, turn, offer, rows, asked)
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes that crossed all edges in round t."""
        messages = int(self._messages[t - 1])
        return messages, messages * self._message_size

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self._beliefs.refreshes

    def similarity(self) -> Array:
        """Return what agents take others' news to be worth, for each pair of `listens`: (n,)."""
        return self._beliefs.similarity()

    def chains(self) -> AskChains | None:
        """Return what answers for the agents' Gibbs chains from now on, None without any."""
        estimator, beliefs = self._plan.estimator, self._beliefs
        if estimator is None or not isinstance(estimator.learner, SamplesChains):
            return None
        if not isinstance(beliefs, EstimatesViews) or not self._record.turns:
            return None
        t = self._record.turns[-1][0]
        return partial(_diagnosed, estimator.learner, beliefs.views, t, self._record)

    def _asked(self, offer: Round) -> Array:
        """Return what beliefs are asked at: features, once a decision, or x̃."""
        if not self._policy.act.judges:
            return offer.contexts
        if self._basis is None:
            return self._record.asked(offer)
        return self._basis.features(self._policy.kernel, offer.contexts)

    def _choose(self, t: int, offer: Round, asked: Array, turn: IntArray) -> tuple[IntArray, Array]:
        """Choose a row for each of the n agents of this turn, with its probability: (n,), (n,)."""
        act, chosen, chance = self._policy.act, np.full(self._V, -1), np.zeros(len(offer.agents))
        follows = self._plan.leader_lags < t
        if follows[turn].any():
            followers = turn[follows[turn]]
            chosen[followers] = self._follow(t, offer, followers)
            chance[chosen[followers]] = 1.0
        if act.judges and self._record.turns:
            judging = np.zeros(len(chosen), dtype=np.bool_)
            judging[turn] = ~follows[turn]
            belief = self._believe(t, offer, asked, judging)
            knows = judging & (belief.count[offer.starts] > 0)
            best, likely = self._rated(offer, belief, knows)
            chosen[knows] = best[knows]
            theirs = knows[offer.agents]
            chance[theirs] = likely[theirs]
        for v in turn[chosen[turn] < 0].tolist():  # knows nothing, or acts at random
            start, size = offer.starts[v], offer.sizes[v]
            chosen[v] = start + self._rngs[v].integers(size)
            chance[start : start + size] = 1.0 / size
        if isinstance(act, Explore):
            for v in turn.tolist():
                if explores(act, self._rngs[v]):
                    chosen[v] = offer.starts[v] + self._rngs[v].integers(offer.sizes[v])
        rows = chosen[turn]
        return rows, propensity(act, chance[rows], offer.sizes[turn])

    def _believe(self, t: int, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Learn what has arrived, and ask."""
        self._beliefs.learn(t, self._record)
        belief = self._beliefs.predict(offer, asked, judging)
        if self._basis is None:
            return belief
        return belief.with_residual(self._plan.prior, offer.agents, offer.contexts, asked)

    def _rated(self, offer: Round, belief: Belief, knows: BoolArray) -> tuple[IntArray, Array]:
        """Return the row that each agent rates best, and how likely each row was: (V,), (M,).

        Right for those that know something.
        """
        policy, agents, deviations = self._policy, offer.agents, None
        which = np.zeros(self._V, dtype=np.int64)
        if draws(policy.act):
            assert belief.covariance is not None
            z: Array = np.zeros(len(agents))
            for v in np.flatnonzero(knows).tolist():
                start, size = offer.starts[v], offer.sizes[v]
                own = normals(policy.act, size, self._rngs[v])
                if own.ndim > z.ndim:
                    check_size(
                        len(agents),
                        own.shape[1],
                        what=f"{own.shape[1]:,} draws at {len(agents):,} actions",
                        advice="take fewer samples, or a smaller network",
                    )
                    z = np.zeros((len(agents), own.shape[1]))
                z[start : start + size] = own
                if own.ndim == 2:
                    which[v] = self._rngs[v].integers(own.shape[1])
            prior = self._plan.prior.diagonal(agents, offer.contexts)
            deviations = drawn(belief.covariance, prior, agents, z)
        scores, _ = rated(
            policy.act,
            policy.width,
            belief,
            ridge=policy.ridge,
            union_bound=self._plan.union_bound[agents],
            drawn=deviations,
        )
        rows, chance = chosen_rows(scores, offer.starts, offer.sizes, which)
        one_draw = draws(policy.act) and scores.ndim == 1  # which does not tell
        return rows, np.full(len(scores), np.nan) if one_draw else chance

    def _follow(self, t: int, offer: Round, followers: IntArray) -> IntArray:
        """Choose what is nearest to the last arm that each follower has heard of: (F,)."""
        act = within(self._policy.act)
        before = t - 1 - self._plan.leader_lags[followers].astype(np.int64)
        dim = offer.contexts.shape[1]
        arms = self._record.observed[before, self._plan.leaders[followers], :dim]
        starts = offer.starts[followers]
        if not isinstance(act, FollowCentre) or type(act).follow is not FollowCentre.follow:
            ends = starts + offer.sizes[followers]
            offered = [offer.contexts[a:b] for a, b in zip(starts, ends, strict=True)]
            return starts + np.array([act.follow(*p) for p in zip(arms, offered, strict=True)])
        rows, real = offer.padded(followers)
        return starts + act.follow_each(arms, offer.contexts[rows], real)


def _diagnosed(
    learner: SamplesChains, views: AgentViews, t: int, record: Record, agent: int, sweeps: int
) -> ChainDiagnostics:
    """Ask the chains of one agent, from what it had heard by the decisions of round t."""
    return learner.diagnose(views.of(agent, t, record), sweeps)
