r"""Pooled sufficient statistics, where agents that count for each other differ by a factor.

Where K_z between agents that are no strangers is a_v·a_u, as it is for `Alone`, `Same` and
`Clusters`, θ_v = a_v·g: all that has been heard is about one g, and what it says is a product of a
(sparse) matrix over the network with the agents' sums,

    A = λI + Σ_u a_u² S_u      c = Σ_u a_u b_u      mean = a_vφᵀA⁻¹c      variance = λa_v²φᵀA⁻¹φ

Agents that have heard the same share A.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.by_lags import Record, rolling
from coopbandits.engines.views import BATCH, with_own_constants
from coopbandits.gp.covariances import own_products
from coopbandits.gp.network_kernel import ClusterKernel
from coopbandits.gp.posterior import Belief
from coopbandits.gp.statistics import Statistics, half, solved
from coopbandits.network import Lags
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round

# So many pairs are looked at first.
_FIRST = 64
# The most cells of an array of who hears whom: 32 MB.
_SMALL = 4_000_000


def factors(plan: Plan) -> Array | None:
    """Return a with K_z = a_v·a_u among agents that are no strangers, or None: (V,)."""
    K_z, pairs = plan.K_z, plan.lags.sources
    if K_z is None:
        return None
    # who is wholly alike to v is wholly alike to everyone else who is: K_z is a kernel
    rows = pairs.rows
    # most of what differs does so among the first pairs, and K_z may take long to evaluate
    ends = [] if isinstance(K_z, ClusterKernel) else [*range(_FIRST, len(rows), BATCH), len(rows)]
    for start, end in pairwise([0, *ends]):
        v, u = rows[start:end], pairs.agents[start:end]
        product = np.sqrt(np.maximum(K_z.own(v), 0.0) * np.maximum(K_z.own(u), 0.0))
        if (np.abs(K_z.between(v, u) - product) > 1e-12 * product).any():
            return None
    return np.sqrt(np.maximum(K_z.own(np.arange(len(pairs))), 0.0))


class PooledStatistics:
    """Every agent's posterior from the sums of all that it has heard."""

    refreshes = 0

    def __init__(self, policy: Policy, plan: Plan, m: int) -> None:
        a = factors(plan)
        assert a is not None
        self._policy, self._plan, self._a = policy, plan, a
        self._sums = rolling(policy, plan, m)
        self._round = 0
        self._kind = plan.lags.kinds
        self._kinds, first = np.unique(self._kind, return_index=True)
        self._weights = _by_lag(plan.lags, first)
        # where a row of sums has n, b, the different numbers of S and perhaps a log-determinant
        i, j, _ = half(m)
        more = [] if policy.constants is None else [Statistics.width(m)]
        self._columns = np.concatenate([[0], np.arange(2, 2 + m), 2 + m + i * m + j, more])
        self._columns = self._columns.astype(np.int64)
        self._scale = np.concatenate([[0], np.ones(m), np.full(len(i), 2), np.zeros(len(more))])

    def learn(self, t: int, record: Record) -> None:
        """Learn what has arrived by the decisions of round t."""
        self._sums.add(t - 1, record.features, record.rewards[t - 2])
        self._round = t

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: (M, m), (V,)."""
        joint = draws(self._policy.act)
        belief = Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        m, ridge, own = self._sums.m, self._policy.ridge, self._sums.constants
        if own is not None:
            asked = asked - own.shift[offer.agents]
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
            integrated = np.zeros(len(rows)) if own is None else total[:, -1]
            mean, Z, logdet = solved(A, total[:, 1 : 1 + m], asked[rows], integrated, ridge)
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
        return with_own_constants(belief, own, offer)

    def similarity(self) -> Array:
        """Return K_z of each pair that listens, 0 between strangers: (n,)."""
        return self._plan.similarity

    def _totals(self, kinds: IntArray) -> Array:
        """Return the sums of all that kinds of agents have heard: count, c, half of A's cells."""
        t, whole = self._round, len(kinds) == len(self._kinds)
        total = np.zeros((len(kinds), len(self._columns)))
        for lag, heard in self._weights.items():
            if t - lag >= 1:
                table = self._sums.rows(t - lag)[:, self._columns]
                if (self._a != 1).any():
                    table *= self._a[:, None] ** self._scale
                total += (heard if whole else heard[kinds]) @ table
        return total


def _by_lag(lags: Lags, who: IntArray) -> dict[int, Any]:
    """Return which agents some agents hear of after each lag: (kinds, V), sparse or not."""
    from scipy.sparse import csr_array  # noqa: PLC0415 (heavy)

    counts = lags.sources.counts[who]
    ends = np.cumsum(counts)
    at = np.arange(ends[-1]) + np.repeat(lags.sources.starts[who] - (ends - counts), counts)
    rows, agents = np.repeat(np.arange(len(who)), counts), lags.sources.agents[at]
    found = {}
    for lag in np.unique(lags.rounds[at]).tolist():
        here = lags.rounds[at] == lag
        cells = np.ones(int(here.sum())), (rows[here], agents[here])
        heard = csr_array(cells, shape=(len(who), len(lags)))
        # of few agents that hear many, an array multiplies faster
        size = len(who) * len(lags)
        found[lag] = heard.toarray() if size <= _SMALL and heard.nnz > 0.05 * size else heard
    return found
