r"""Pooled sufficient statistics, where agents that count for each other differ by a factor.

Where K_z between agents that are no strangers is a_v·a_u, as it is for `Alone`, `Same` and
`Clusters`, θ_v = a_v·g: all that has been heard is about one g, and what it says is a product of a
(sparse) matrix over the network with the agents' sums,

    A = λI + Σ_u a_u² S_u      c = Σ_u a_u b_u      mean = a_vφᵀA⁻¹c      variance = λa_v²φᵀA⁻¹φ

Agents that have heard the same share A.
"""

from typing import Any

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.by_lags import Record, depth
from coopbandits.engines.views import BATCH
from coopbandits.gp.covariances import own_products
from coopbandits.gp.posterior import Belief
from coopbandits.gp.statistics import RollingStatistics, Statistics, half, solved
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round


def factors(plan: Plan) -> Array | None:
    """Return a with K_z = a_v·a_u among agents that are no strangers, or None: (V,)."""
    K_z = plan.K_z
    if K_z is None:
        return None
    a = np.sqrt(np.maximum(np.diagonal(K_z), 0.0))
    # who is wholly alike to v is wholly alike to everyone else who is: K_z is a kernel
    product = np.outer(a, a)
    unlike = np.isfinite(plan.lags) & (np.abs(K_z - product) > 1e-12 * product)
    return None if unlike.any() else a


class PooledStatistics:
    """Every agent's posterior from the sums of all that it has heard."""

    refreshes = 0

    def __init__(self, policy: Policy, plan: Plan, m: int) -> None:
        a = factors(plan)
        assert a is not None
        self._policy, self._plan, self._a = policy, plan, a
        self._sums = RollingStatistics(len(plan.lags), m, depth(plan))
        self._round = 0
        kinds, self._kind = np.unique(plan.lags, axis=0, return_inverse=True)
        self._kind = self._kind.reshape(-1)
        self._kinds = len(kinds)
        self._weights = {
            int(lag): _sparse_or_dense(kinds == lag) for lag in np.unique(kinds[np.isfinite(kinds)])
        }

    def learn(self, t: int, record: Record) -> None:
        """Learn what has arrived by the decisions of round t."""
        self._sums.add(t - 1, record.features, record.rewards[t - 2])
        self._round = t

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: (M, m), (V,)."""
        joint = draws(self._policy.act)
        belief = Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        m, ridge = self._sums.m, self._policy.ridge
        # each kind's rows together, padded to as many as its largest has
        wanted = np.flatnonzero(judging[offer.agents])
        wanted = wanted[np.argsort(self._kind[offer.agents[wanted]], kind="stable")]
        kinds, first, counts = np.unique(
            self._kind[offer.agents[wanted]], return_index=True, return_counts=True
        )
        totals = self._totals(kinds)
        cell = half(m)[2]
        size = max(1, int(BATCH // (m + int(counts.max(initial=1)) + 1) ** 2))
        for start in range(0, len(kinds), size):
            some = slice(start, start + size)
            K = int(counts[some].max())
            at = first[some, None] + np.minimum(np.arange(K), counts[some, None] - 1)
            rows = wanted[at]
            total = totals[some]
            A = total[:, 1 + m :][:, cell] + ridge * np.eye(m)
            mean, Z, logdet = solved(
                A, total[:, 1 : 1 + m], asked[rows], np.zeros(len(rows)), ridge
            )
            real = np.arange(K) < counts[some, None]
            rows = rows[real]
            agents, scale = offer.agents[rows], self._a[offer.agents[rows]]
            spread = ridge * np.einsum("bkd,bkd->bk", Z, Z)[real]
            group = np.nonzero(real)[0]
            covariance = None
            if joint:
                covariance = ridge * own_products(scale[:, None] * Z[real], agents)
            Belief(
                scale * mean[real],
                scale**2 * spread,
                logdet[group],
                total[group, 0].astype(np.int64),
                covariance,
            ).put(belief, rows)
        return belief

    def similarity(self) -> Array:
        """Return K_z where agents learn from each other, 0 elsewhere: (V, V)."""
        return self._plan.similarity

    def _totals(self, kinds: IntArray) -> Array:
        """Return the sums of all that kinds of agents have heard: count, c, half of A's cells."""
        m, t = self._sums.m, self._round
        i, j, _ = half(m)
        a = self._a[:, None]
        total = np.zeros((len(kinds), 1 + m + len(i)))
        for lag, heard in self._weights.items():
            if t - lag >= 1:
                sums = Statistics.of(self._sums.rows(t - lag), m)
                table = np.column_stack([sums.n, a * sums.b, a**2 * sums.S[:, i, j]])
                total += (heard if len(kinds) == self._kinds else heard[kinds]) @ table
        return total


def _sparse_or_dense(heard: BoolArray) -> Any:
    """Take whichever multiplies faster."""
    if heard.mean() > 0.05:
        return heard.astype(np.float64)
    from scipy.sparse import csr_array  # noqa: PLC0415 (heavy)

    return csr_array(heard.astype(np.float64))
