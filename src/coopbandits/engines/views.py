r"""Each agent's own view, from sufficient statistics, for any K_z = UUᵀ + diag(δ).

Agents that are no strangers to the asking one are few once groups are settled: each view is cut
down to them and to the parts they share, and views of like size are worked on together
(`similarity/hypotheses.py`, `gp/weights.py`).
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.by_lags import Record, depth, last_rounds
from coopbandits.gp.mixture import Mixture
from coopbandits.gp.posterior import Belief
from coopbandits.gp.statistics import RollingStatistics, Statistics, log_product, unpacked
from coopbandits.gp.weights import OwnPart, Weights
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round
from coopbandits.similarity.hypotheses import Batch, Hypotheses, batches

# Beliefs are worked on in batches of about this many numbers.
BATCH = 300_000
# A view of more than this share of all agents is as wide as all of them.
_WIDE = 0.3
# With more features than this, one matrix for each agent takes longer than one for each view.
_NARROW = 24


class AllViews:
    """What K_z may be in the views of all agents, and after how many rounds each hears whom.

    Attributes:
        hypotheses: Of all agents.
        lags: (V, N) inf pads a row.
        refreshes: How many estimates there have been.
    """

    def __init__(self, plan: Plan, *, most: int | None = None) -> None:
        """Start with the K_z that is given, of `most` parts, or with none that is estimated."""
        self._plan, everyone = plan, np.arange(len(plan.lags))
        self.hypotheses = Hypotheses.of(plan.lags, everyone, plan.K_z, most=most)
        self.lags = np.take_along_axis(plan.lags, self.hypotheses.agents, axis=1)
        self.refreshes = 0

    def refresh(self, t: int, record: Record) -> IntArray:
        """Estimate K_z again for the agents for whom it is due, and return them."""
        if self._plan.estimator is None:
            return np.empty(0, dtype=np.int64)
        old = self.hypotheses
        self.hypotheses, due = old.refreshed(
            self._plan.estimator,
            np.maximum(t - self.lags, 0.0).sum(axis=1).astype(np.int64),
            lambda some: record.views(t, old.agents[some], self.lags[some], old.me[some]),
        )
        self.refreshes += len(due)
        return due

    def lags_of(self, batch: Batch) -> Array:
        """Return the lags of some hypotheses' agents, inf where padded: (b, n)."""
        lags = np.take_along_axis(self.lags[batch.whose], batch.columns, axis=1)
        return np.where(batch.real, lags, np.inf)

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        if self._plan.estimator is None:
            return self._plan.similarity
        return self.hypotheses.rows(len(self.lags))


class OwnStatistics:
    """Every agent's posterior from the statistics of those it has heard from."""

    def __init__(self, policy: Policy, plan: Plan, m: int) -> None:
        self._policy = policy
        self._sums = RollingStatistics(len(plan.lags), m, depth(plan))
        self._views = AllViews(plan)
        self._batches: list[tuple[Batch, Array]] = []  # with their lags
        self._round = 0

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self._views.refreshes

    def learn(self, t: int, record: Record) -> None:
        """Learn what has arrived by the decisions of round t."""
        changed = self._views.refresh(t, record)
        self._sums.add(t - 1, record.features, record.rewards[t - 2])
        self._round = t
        if changed.size or not self._batches:
            self._batches = self._cut_down()

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: (M, m), (V,)."""
        joint, ridge = draws(self._policy.act), self._policy.ridge
        mixture = Mixture(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        for batch, lags in self._batches:
            if not judging[batch.whose].any():
                continue
            rows, real = offer.padded(batch.whose)
            weights, count = self._pooled(batch, lags)
            mean, Z, logdet = weights.ask(asked[rows])
            view, column = np.nonzero(real)
            covariance = None
            if joint:
                covariance = ridge * (Z @ np.swapaxes(Z, 1, 2))[view, column] * real[view]
            belief = Belief(
                mean[view, column],
                ridge * np.einsum("bkd,bkd->bk", Z, Z)[view, column],
                logdet[view],
                count[view],
                covariance,
            )
            weight = batch.weight[view]
            mixture.add(belief, rows[view, column], view=view, column=column, weight=weight)
        return mixture.belief()

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        return self._views.similarity()

    def _pooled(self, batch: Batch, lags: Array) -> tuple[Weights, IntArray]:
        """Pool all that has arrived, and count it."""
        if batch.wide:
            return self._pooled_wide(batch, lags)
        after = last_rounds(self._round, lags)
        statistics = self._sums.statistics(after, batch.agents, spectrum=bool(batch.delta.any()))
        weights = Weights.pooled(batch.U, batch.delta, batch.me, statistics, self._policy.ridge)
        return weights, statistics.n.sum(axis=1).astype(np.int64)

    def _pooled_wide(self, batch: Batch, every: Array) -> tuple[Weights, IntArray]:
        """Pool what has arrived where nearly everyone counts: columns are all V agents in order.

        What an agent has sent is then the same for all who have it, and
        S̃ = Σ_k s_k/(1 + cs_k) q_kq_kᵀ is a product of one small matrix for each agent with the
        views' numbers.
        """
        ridge, m, B, t = self._policy.ridge, self._sums.m, len(batch.whose), self._round
        pairs = batch.pairs
        rows = np.arange(B)
        share = batch.delta / ridge
        share[rows, batch.me] = 0.0
        lags = np.unique(every[np.isfinite(every)]).astype(np.int64)
        blocks = np.zeros((B, pairs.shape[1], m * (m + 1) // 2))
        c, logdet, count = np.zeros((B, batch.U.shape[2], m)), np.zeros(B), np.zeros(B)
        for lag in lags:
            if t - lag < 1:
                continue
            here = every == lag
            sums = Statistics.of(self._sums.rows(t - lag), m)
            weight, loading = pairs, batch.U
            if len(lags) > 1:
                weight, loading = weight * here[:, None, :], loading * here[..., None]
            count += here @ sums.n
            if not share.any():
                blocks += weight @ sums.packed
                c += np.swapaxes(loading, 1, 2) @ sums.b
                continue
            s, Q, projected, outer = self._sums.spread(t - lag)
            grown = 1.0 + share[..., None] * s
            S = np.swapaxes(np.swapaxes(s / grown, 0, 1) @ outer, 0, 1)
            b = np.swapaxes(np.swapaxes(projected / grown, 0, 1) @ np.swapaxes(Q, 1, 2), 0, 1)
            blocks += weight @ S
            c += np.swapaxes(loading, 1, 2) @ b
            logdet += (log_product(grown) * here).sum(axis=1)
        mine = Statistics.of(self._sums.rows(t - 1)[batch.whose], m)
        own = OwnPart(batch.U[rows, batch.me], batch.delta[rows, batch.me], mine.S, mine.b)
        return Weights.of(*unpacked(blocks, c), own, logdet, ridge), count.astype(np.int64)

    def _cut_down(self) -> list[tuple[Batch, Array]]:
        V, m = len(self._views.lags), self._sums.m
        widest = _WIDE * V if m <= _NARROW else np.inf

        def fits(views: int, fewest: int, most: int, r: int) -> bool:
            numbers = views * (most * (m + 1) ** 2 + ((r + 1) * m + 9) ** 2)
            return bool((widest < fewest) == (widest < most) and numbers <= BATCH)

        cut = batches(self._views.hypotheses, fits)
        cut = [batch.widened(V) if widest < batch.agents.shape[1] else batch for batch in cut]
        return [(batch, self._views.lags_of(batch)) for batch in cut]
