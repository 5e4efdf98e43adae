r"""K_z from the evidence of rewards and contexts: a hierarchical model with an unknown partition.

Ours, not the paper's. A mean embedding sees contexts only; agents with one law of contexts and
different tasks differ in it only by what they choose. `Evidence` samples who is in whose group by
the marginal likelihood of the agents' rewards:

    y_u,t = c_u + φ(x)ᵀθ_u + ε,   ε ~ N(0, σ_u²)         `noise_levels.py`; c_u: `gp/intercept.py`
    θ_u   = √a·μ + √b·γ_{g(u)} + √c·o_u,  a + b + c = 1  population, group, own; all N(0, s²I)
    g     ~ Chinese restaurant process(α)                `gibbs.py`

A few Gibbs chains live as long as the agent: their labels are carried from one estimate to the
next. What K_z may be follows from where each chain puts the asking agent (`partition_kernels.py`).
docs/evidence-model.md has the mathematics.
"""

from dataclasses import dataclass, replace
from math import isqrt
from typing import ClassVar, NamedTuple

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray, as_count, as_flag
from coopbandits.errors import StateError
from coopbandits.features import Basis, Exact, Fourier, exact_or
from coopbandits.gp.intercept import Intercept, as_statistics, summarised
from coopbandits.gp.statistics import Spectrum, Statistics
from coopbandits.kernels import Kernel
from coopbandits.network import Network
from coopbandits.similarity.chain_diagnostics import ChainDiagnostics, diagnosed
from coopbandits.similarity.context_laws import context_laws
from coopbandits.similarity.loadings import Loadings
from coopbandits.similarity.partition_kernels import MOST_HYPOTHESES, partition_kernels
from coopbandits.similarity.similarity import Views, settle

# The grid of (a, b, c), with b > 0: at b = 0 labels would drift to their prior. Population shares a
# of 0 to 0.9, own shares c small or about a third.
WEIGHTS = np.array([
    (0.0, 0.996, 0.004), (0.4, 0.596, 0.004), (0.7, 0.296, 0.004), (0.9, 0.096, 0.004),
    (0.0, 0.7, 0.3), (0.3, 0.4, 0.3), (0.6, 0.1, 0.3),
])  # fmt: skip
_PRIOR = np.log(np.array([0.35, 0.15, 0.15, 0.15, 0.08, 0.06, 0.06]))
_OWN = np.array([0.004, 0.3])
_OWN_OF = np.array([0, 0, 0, 0, 1, 1, 1])
# An agent is visited with this many times the share of observations that are new, and at least so.
_VISITS, _LEAST_VISITS = 10.0, 0.1
# So many last sweeps of a chain are samples, at each estimate; those before are burn-in.
_SAMPLES = 2
# Kernels without a finite basis go through so many leading features.
_LEADING = 12
# Sums of squares that differ by less than this, relative to them, differ by rounding.
_ROUNDING = 1e-9
# Rewards of others count in the asking agent's noise units, by factors in between; whoever is
# noisier is a stranger.
_SCALES = 1e-4, 1e2


@dataclass(frozen=True, slots=True)
class Evidence:
    """Estimate K_z from rewards and contexts, by Gibbs sampling of a partition of agents.

    Every agent may be on its own, in a group, or one of a population with differences, and noise
    levels are each agent's own: that is what makes it safe as a default. The number of groups need
    not be known.

    Args:
        noise: σ of all rewards, where it is known; else each agent's own is estimated.
        contexts: Also use which contexts are offered to whom. Each message then carries the mean
            features of the sender's decision set (m more numbers).
        features: The basis that stands for K_x; exact for linear kernels, Fourier(64) otherwise, of
            which the leading 12 directions are used.
        refresh: "growing" (early on each time, then at each `growth`-fold number of observations)
            or "every round". Early is up to 12 observations from each agent heard from, on average,
            and up to 360 in all.
        growth: See `refresh`.
        chains: How many Gibbs chains each agent keeps.
        seed: Of the chains' random numbers.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.complete(4), clusters=[0, 0, 1, 1])
        >>> policy = cb.EagerKernelUCB(cb.kernels.Linear(), similarity=cb.similarity.Evidence())
        >>> worth = cb.play(problem, policy, rounds=30).similarity(30)
        >>> bool(worth[0, 1] > worth[0, 2])  # 0 and 1 have one task, 2 another
        True
    """

    noise: float | None = None
    contexts: bool = True
    features: Basis | None = None
    refresh: str = "growing"
    growth: float = 1.1
    chains: int = 4
    seed: int = 0
    # up to so many observations from each, and in all, K_z is estimated at every decision
    early: ClassVar[tuple[int, int]] = 12, 360

    def __post_init__(self) -> None:
        as_flag(self.contexts, "contexts")
        settle(self)
        object.__setattr__(self, "chains", as_count(self.chains, "chains", most=1_000))
        object.__setattr__(self, "seed", as_count(self.seed, "seed", least=0))

    def learner(self, kernel: Kernel, network: Network) -> "EvidenceLearner":
        """Make what estimates K_z."""
        return EvidenceLearner(self, kernel, exact_or(kernel, self.features, Fourier(64)))


class _Swept(NamedTuple):
    """What sweeps of one view's chains left.

    Attributes:
        columns: (n,) where the agents that were heard from stand in the view.
        me: Where the asking agent stands among these.
        level: (n,) σ_u².
        labels: (C, n) of the chains.
        samples: (C·sweeps, n) labels after each sweep.
        odds: (C·sweeps, n + 1) as `gibbs.sample` says.
        facts: (C·sweeps, 6) as `gibbs.sample` says.
        information: (C·sweeps, n) trace of each agent's S̃ under the sample's c.
    """

    columns: IntArray
    me: int
    level: Array
    labels: IntArray
    samples: IntArray
    odds: Array
    facts: Array
    information: Array


@dataclass(frozen=True, eq=False)
class EvidenceLearner:
    """Estimates K_z by evidence. Its chains are part of the views that it is given."""

    similarity: Evidence
    kernel: Kernel
    basis: Basis
    intercept: Intercept | None = None

    def with_intercept(self, intercept: Intercept) -> "EvidenceLearner":
        """Return an estimator that integrates agents' own constants out of their rewards."""
        return replace(self, intercept=intercept)

    @property
    def hypotheses(self) -> int:
        """How many K_z are returned for a view, at most."""
        return MOST_HYPOTHESES

    @property
    def parts(self) -> int:
        """How many parts each of several K_z has, at most."""
        return 2

    def attached(self, dim: int) -> int:
        """How many numbers go with a context of d numbers in a message."""
        return self.basis.size(self.kernel, dim) if self.similarity.contexts else 0

    def sampled(self, agents: IntArray, contexts: Array, rows: IntArray) -> Array:
        """Return the mean features of each agent's decision set: (V, m)."""
        V = len(rows)
        if not self.similarity.contexts:
            return np.empty((V, 0))
        phi = self.basis.features(self.kernel, contexts)
        sums = np.zeros((V, phi.shape[1]))
        np.add.at(sums, agents, phi)
        return np.asarray(sums / np.bincount(agents, minlength=V)[:, None])

    def summaries(self, X: Array, attached: Array, y: Array) -> Array:
        """Summarise n observations: (n, p)."""
        rows = summarised(self.basis.features(self.kernel, X), y, self.intercept)
        if not self.similarity.contexts:
            return rows
        return np.hstack([rows, attached, (attached**2).sum(axis=1, keepdims=True)])

    def estimate(self, views: Views) -> Loadings:
        """Let the chains of each view take a sweep, and return what K_z may be by now."""
        table = self._read(views)
        if isinstance(self.basis, Exact):
            _ = table.spectrum  # once for all views
        return Loadings.gathered(
            views.index.shape,
            ((rows, self._estimate(one, table)) for rows, one in views.batches(1)),
        )

    def diagnose(self, views: Views, sweeps: int) -> ChainDiagnostics:
        """Let the chains of a single view go on for so many sweeps, beside what is believed."""
        sweeps = as_count(sweeps, "sweeps", least=4, most=100_000)
        swept = self._swept(views, self._read(views), sweeps, visit=1.0)
        if swept is None:
            raise StateError("nobody else has been heard from yet, so there are no chains to ask")
        return diagnosed(
            views.agents[0, swept.columns],
            swept.samples.reshape(self.similarity.chains, sweeps, -1),
            swept.facts.reshape(self.similarity.chains, sweeps, -1),
            np.sqrt(swept.level),
            WEIGHTS,
        )

    def _read(self, views: Views) -> Statistics:
        """Read the sums of all rows, own constants integrated out."""
        m = self._features(views.table.shape[1])
        size = Statistics.width(m if self.intercept is None else m + 1)
        return as_statistics(views.table[:, :size], m, self.intercept)

    def _estimate(self, views: Views, table: Statistics) -> Loadings:
        """Estimate K_z in a single view."""
        N = views.index.shape[1]
        sweeps = self._sweeps(views)
        swept = self._swept(views, table, sweeps, visit=self._visit(views))
        if swept is None:
            one, ones = np.zeros(1, dtype=np.int64), np.ones((1, N))
            return Loadings(np.zeros((1, N, 1)), ones, one, np.ones(1), ones, self._state(views))
        state, columns = self._state(views), swept.columns
        # who is no longer heard of has no group; the others' may have other numbers by now
        state[0, ~np.isin(np.arange(N), columns)] = -1
        # chains start once it is known how much contexts vary within agents
        if not self.similarity.contexts or table.n[views.index[0, columns]].max() > 1:
            state[0, columns] = swept.labels.T
        last = np.arange(len(swept.samples)) % sweeps >= sweeps - _SAMPLES
        loading, own_part, weight = partition_kernels(
            swept.samples[last],
            swept.me,
            swept.odds[last],
            swept.facts[last],
            swept.information[last],
            WEIGHTS,
        )
        ratio = np.sqrt(swept.level[swept.me] / swept.level)
        scale = np.clip(ratio, *_SCALES)
        far = ratio < _SCALES[0]
        loading[:, far], own_part[:, far] = 0.0, 1.0
        H = len(weight)
        U, delta, scales = np.zeros((H, N, 2)), np.ones((H, N)), np.ones((H, N))
        U[:, columns], delta[:, columns] = loading * scale[:, None], own_part * scale**2
        scales[:, columns] = scale
        return Loadings(U, delta, np.zeros(H, dtype=np.int64), weight, scales, state)

    def _state(self, views: Views) -> IntArray:
        """Return a copy of the labels of a single view's chains, −1 for agents without any."""
        shape = (*views.index.shape, self.similarity.chains)
        return views.state.copy() if views.state.shape == shape else np.full(shape, -1)

    def _swept(
        self, views: Views, table: Statistics, sweeps: int, *, visit: float
    ) -> "_Swept | None":
        """Let the chains of a single view take some sweeps; None if nobody else was heard from."""
        from coopbandits.similarity import gibbs  # noqa: PLC0415 (compiles)
        from coopbandits.similarity.noise_levels import noise_levels  # noqa: PLC0415

        me, known = int(views.me[0]), views.heard[0].copy()
        rewarded = bool(known[me])
        known[me] = True
        columns = np.flatnonzero(known)
        if len(columns) == 1:
            return None
        n, me = len(columns), int(np.searchsorted(columns, me))
        index = views.index[0, columns]
        (s, Q, p), rows = self._spectrum(table, index)
        given = table.q, table.n, self._tells(views)
        q, count, tells = given if rows is index else (each[index] for each in given)
        m = s.shape[1]
        heard = rows if rewarded else np.delete(rows, me)
        level, s2 = noise_levels(s, p, q, count, tells, heard, me if rewarded else -1)
        if not rewarded:
            level = np.insert(level, me, np.exp(np.log(level).mean()))
        if self.similarity.noise is not None:
            level[:] = self.similarity.noise**2
        sizes = (m * (m + 1) // 2,), (m,), ()
        S, b, own = (np.empty((len(_OWN), n, *size)) for size in sizes)
        for k, c in enumerate(_OWN):
            gibbs.without_own_parts(s, Q, p, rows, 1.0 / level, c * s2, S[k], b[k], own[k])
        labels = np.ascontiguousarray(self._state(views)[0, columns].T)
        size, rng = len(labels) * sweeps, self._rng(views)
        samples, odds = np.empty((size, n), dtype=np.int64), np.empty((size, n + 1))
        facts = np.empty((size, 6))
        precision, total, between = self._laws(views, table.n[index], index, m)
        gibbs.sample(
            (S, b, own, precision, total), (WEIGHTS, _OWN_OF, _PRIOR), s2,
            gibbs.concentrations(n), between, labels, me, visit,
            rng.random((size, 3 + 2 * n)), rng.standard_normal((size, m)), samples, odds, facts,
        )  # fmt: skip
        diagonal = np.cumsum(np.arange(1, m + 1)) - 1
        information = S[:, :, diagonal].sum(axis=2)[_OWN_OF[facts[:, 0].astype(np.int64)]]
        return _Swept(columns, me, level, labels, samples, odds, facts, information)

    def _tells(self, views: Views) -> BoolArray:
        """Tell whose rewards varied at all, beside their own constants: (P,)."""
        m = self._features(views.table.shape[1])
        if self.intercept is None:
            return np.asarray(Statistics.of(views.table, m).q > 0)
        raw = Statistics.of(views.table[:, : Statistics.width(m + 1)], m + 1)
        spread = raw.q - raw.b[:, m] ** 2 / np.where(raw.n > 0, raw.n, 1.0)
        return np.asarray(spread > _ROUNDING * raw.q)

    def _spectrum(self, table: Statistics, index: IntArray) -> tuple[Spectrum, IntArray]:
        """Return spectra, and which each agent has; of leading features for other kernels."""
        if isinstance(self.basis, Exact) or table.b.shape[1] <= _LEADING:
            return table.spectrum, index
        S = table.S[index]
        _, vectors = np.linalg.eigh(S.sum(axis=0))
        W = vectors[:, -_LEADING:]
        s, Q = np.linalg.eigh(W.T @ (S @ W))
        p = ((table.b[index] @ W)[:, None, :] @ Q)[:, 0, :]
        return (np.maximum(s, 0.0), Q, p), np.arange(len(index))

    def _laws(self, views: Views, n: Array, rows: IntArray, m: int) -> tuple[Array, Array, float]:
        """Return what contexts tell, nothing if they are not asked."""
        if not self.similarity.contexts:
            return np.zeros(len(rows)), np.zeros((len(rows), m)), 0.0
        k = self._features(views.table.shape[1])
        return context_laws(n, views.table[rows, -k - 1 : -1], views.table[rows, -1])

    def _rng(self, views: Views) -> np.random.Generator:
        agent = int(views.agents[0, views.me[0]])
        return np.random.default_rng([self.similarity.seed, agent, int(views.known[0])])

    @staticmethod
    def _sweeps(views: Views) -> int:
        """How many sweeps do chains take? Two, and one more for each doubling of observations.

        They start from one observation of each agent.
        """
        before = max(int(views.before[0]), int(views.heard[0].sum()), 1)
        return _SAMPLES - 1 + max(1, (int(views.known[0]) // before).bit_length())

    @staticmethod
    def _visit(views: Views) -> float:
        """With which probability is an agent visited? The more is new, the likelier."""
        new = 1.0 - views.before[0] / max(views.known[0], 1)
        return float(max(_LEAST_VISITS, min(1.0, _VISITS * new)))

    def _features(self, p: int) -> int:
        """How many features m make summaries of p numbers?"""
        one = int(self.intercept is not None)
        if self.similarity.contexts:  # p = 2 + m + m² + m + 1, or 2 + (m + 1) + (m + 1)² + m + 1
            return isqrt(p - 2 + one) - 1 - one
        return (isqrt(4 * p - 7) - 1) // 2 - one  # p = 2 + m + m², or of m + 1
