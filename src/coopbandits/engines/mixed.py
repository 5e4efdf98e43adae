r"""Posteriors from sums, for any K_z = UUᵀ + diag(δ), each agent with its own (`gp/weights.py`).

Agents that are no strangers to the asking one are few once groups are settled: each view is cut
down to them and to the parts they share, and views of like size are worked on together.
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.estimates import Estimates
from coopbandits.engines.record import Record
from coopbandits.engines.sums import Sums
from coopbandits.engines.views import CutViews, cut_down
from coopbandits.features import Basis
from coopbandits.gp.mixture import Mixture
from coopbandits.gp.posterior import Belief, deviation
from coopbandits.gp.residual import residual_covariance, residual_variance
from coopbandits.gp.statistics import Statistics, log_product, unpacked
from coopbandits.gp.weights import OwnPart, Weights
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round

# Views are worked on in batches of about this many numbers.
_BATCH = 300_000
# A view of more than this share of all agents is as wide as all of them.
_WIDE = 0.3
# With more features than this, one matrix for each agent takes longer than one for each view.
_NARROW = 24


class MixedSums:
    """Every agent's posterior from the statistics of those it has heard from."""

    def __init__(self, policy: Policy, plan: Plan, basis: Basis, dim: int) -> None:
        self._policy, self._plan = policy, plan
        self._sums = Sums(plan, policy.kernel, basis, dim)
        self.estimates = Estimates.of(policy, plan)
        self._views: list[CutViews] = []

    def bytes_after(self, rounds: int) -> float:
        """How much memory the sums take, with a batch of agents; T does not matter."""
        _, r = self.estimates.shape
        largest = (r + 1) * self._sums.m + 64
        views = self.estimates.numbers
        return (
            self._sums.bytes
            + self._sums.spectra_bytes
            + 8.0 * (2 * views + 3 * _BATCH + 3 * largest**2)
        )

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly."""
        V, m = len(self._plan.lags), self._sums.m
        N, r = self.estimates.shape
        if self._plan.learner is not None:
            r = min(r, 12)  # a guess: how many parts are shared is known to the data only
        D = (r + 1) * m + 9
        return rounds * (1e6 + V * (1e5 + N * (r * m) ** 2 / 2 + 2 * N * m**3 + D**3 / 2))

    def believe(self, t: int, offer: Round, X: Array, judging: BoolArray, record: Record) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: X (M, ·), (V,)."""
        joint = draws(self._policy.act)
        mixture = Mixture(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        changed = self.estimates.refresh(t, record)
        if t == 1:
            return mixture.belief()
        self._sums.add(t - 1, record)
        if changed.size or not self._views:
            self._views = self._cut_down()
        phi = self._sums.features(X)
        beyond = residual_variance(self._plan.prior, offer.agents, X, phi)
        jointly = (
            residual_covariance(self._plan.prior, offer.agents, X, phi, beyond) if joint else beyond
        )
        for views in self._views:
            if not judging[views.whose].any():
                continue
            rows, real = offer.padded(views.whose)
            weights, count = self._pooled(t, views)
            mean, Z, logdet = weights.ask(phi[rows])
            view, column = np.nonzero(real)
            row = rows[view, column]
            variance = self._policy.ridge * np.einsum("bkd,bkd->bk", Z, Z)[view, column]
            covariance = None
            if joint:
                covariance = self._policy.ridge * (Z @ np.swapaxes(Z, 1, 2))[view, column]
                covariance *= real[view]
                covariance += jointly[row, : covariance.shape[1]]
            believed = Belief(
                mean[view, column],
                deviation(variance + beyond[row]),
                logdet[view],
                count[view],
                covariance,
            )
            mixture.add(believed, row, view=view, column=column, weight=views.weight[view])
        return mixture.belief()

    def _pooled(self, t: int, views: CutViews) -> tuple[Weights, IntArray]:
        """Pool all that has arrived, and count it."""
        if views.wide:
            return self._pooled_wide(t, views)
        statistics = self._sums.statistics(
            views.after(t), views.agents, spectrum=bool(views.delta.any())
        )
        weights = Weights.pooled(views.U, views.delta, views.me, statistics, self._policy.ridge)
        return weights, statistics.n.sum(axis=1).astype(np.int64)

    def _pooled_wide(self, t: int, views: CutViews) -> tuple[Weights, IntArray]:
        """Pool what has arrived where nearly everyone counts: columns are all V agents in order.

        What an agent has sent is then the same for all who have it, and
        S̃ = Σ_k s_k/(1 + cs_k) q_kq_kᵀ is a product of one small matrix for each agent with the
        views' numbers.
        """
        ridge, m, B = self._policy.ridge, self._sums.m, len(views.whose)
        rows = np.arange(B)
        share = views.delta / ridge
        share[rows, views.me] = 0.0
        lags = np.unique(views.lags[np.isfinite(views.lags)]).astype(np.int64)
        blocks = np.zeros((B, views.pairs.shape[1], m * (m + 1) // 2))
        c, logdet, count = np.zeros((B, views.U.shape[2], m)), np.zeros(B), np.zeros(B)
        for lag in lags:
            if t - lag < 1:
                continue
            here = views.lags == lag
            sums = Statistics.of(self._sums.rows(t - lag), m)
            weight, loading = views.pairs, views.U
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
        mine = Statistics.of(self._sums.rows(t - 1)[views.whose], m)
        own = OwnPart(views.U[rows, views.me], views.delta[rows, views.me], mine.S, mine.b)
        return Weights.of(*unpacked(blocks, c), own, logdet, ridge), count.astype(np.int64)

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self.estimates.refreshes

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        return self.estimates.similarity()

    def _cut_down(self) -> list[CutViews]:
        V, m = len(self._plan.lags), self._sums.m
        widest = _WIDE * V if m <= _NARROW else np.inf

        def fits(views: int, fewest: int, most: int, r: int) -> bool:
            numbers = views * (most * (m + 1) ** 2 + ((r + 1) * m + 9) ** 2)
            return bool((widest < fewest) == (widest < most) and numbers <= _BATCH)

        cut = cut_down(self.estimates, fits)
        return [views.widened(V) if widest < views.agents.shape[1] else views for views in cut]
