r"""K_z from what the data say, rewards included: who is in whose group, and how alike are they?

Ours, not the paper's. A mean embedding sees contexts only; agents with one law of contexts and
different tasks differ in it only by what they choose. `Evidence` compares marginal likelihoods of
the agents' rewards. `groups.py` has the model and how it is fitted, `levels.py` how the noise level
is learnt. With R_ug the probability that u is in group g, and ρ the correlation within groups,

    K_z = ρRRᵀ + diag(1 − ρ|R_u|²)

so K_z(u, w) is ρ times the probability that u and w are in one group, and what is uncertain is an
agent's own. ρ is the one of a few that predicts best.
"""

from dataclasses import dataclass, replace
from math import isqrt

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray, as_count, short
from coopbandits.errors import ParameterError
from coopbandits.features import Basis, Fourier, as_basis, exact_or
from coopbandits.kernels import Kernel
from coopbandits.network import Network
from coopbandits.similarity.groups import CLOSE, Contexts, Groups
from coopbandits.similarity.levels import levels, outlandish
from coopbandits.similarity.similarity import Loadings, Views, settle_noise, settle_refresh
from coopbandits.statistics import Statistics

_CORRELATIONS = (1.0, 0.95, 0.85, 0.6)
# Loadings below this change no decision; without them strangers are strangers.
_SMALLEST = 1e-8
# Views are worked on in batches of about this many numbers.
_BATCH = 2_000_000
# By how many deviations agents' context means must differ more than chance, to be looked at.
_SIGNIFICANT = 4.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """Learn K_z from rewards and contexts, by the evidence of groups of agents.

    Every agent may be on its own, and where all differ all are: that is what makes it safe as a
    default. The number of groups need not be known.

    Args:
        noise: σ of the rewards, where it is known; learnt otherwise.
        groups: The most groups to look for; more cost time, not truth.
        contexts: Also use which contexts are offered to whom. Each message then carries the mean
            features of the sender's decision set (m more numbers).
        features: The basis that stands for K_x; exact for linear kernels, Fourier(64) otherwise.
        refresh: "growing" (at each `growth`-fold number of observations) or "every round".
        growth: See `refresh`.
    """

    noise: float | None = None
    groups: int = 12
    contexts: bool = True
    features: Basis | None = None
    refresh: str = "growing"
    growth: float = 1.25

    def __post_init__(self) -> None:
        settle_noise(self)
        as_basis(self.features)
        object.__setattr__(self, "groups", as_count(self.groups, "groups"))
        if not isinstance(self.contexts, bool):
            raise ParameterError(f"contexts must be True or False, got {short(self.contexts)}")
        settle_refresh(self)

    def learner(self, kernel: Kernel, network: Network) -> "EvidenceLearner":
        """Make what learns K_z."""
        return EvidenceLearner(
            self, kernel, exact_or(kernel, self.features, Fourier(64)), len(network)
        )


@dataclass(frozen=True, eq=False)
class EvidenceLearner:
    """Learns K_z by evidence; holds no state."""

    similarity: Evidence
    kernel: Kernel
    basis: Basis
    agents: int

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
        rows = Statistics.rows(self.basis.features(self.kernel, X), y)
        if not self.similarity.contexts:
            return rows
        return np.hstack([rows, attached, (attached**2).sum(axis=1, keepdims=True)])

    def estimate(self, views: Views) -> Loadings:
        """Learn K_z from what was heard, in each view by itself."""
        B, N, p = views.summaries.shape
        size = max(1, _BATCH // (N * p))
        parts = [
            self._estimate(views.part(np.arange(start, min(start + size, B))))
            for start in range(0, B, size)
        ]
        r = max(part.U.shape[2] for part in parts)
        U = np.zeros((B, N, r))
        for index, part in enumerate(parts):
            U[index * size : index * size + len(part.U), :, : part.U.shape[2]] = part.U
        return Loadings(U, np.concatenate([part.delta for part in parts]))

    def _estimate(self, views: Views) -> Loadings:
        statistics, law = self._read(views)
        sane = views.heard & ~outlandish(statistics, views.heard)
        noise, ratio = levels(statistics, sane, self.similarity.noise)
        alone = statistics.log_evidence(noise[:, None], ratio[:, None])
        B = len(views.me)
        # the same uneven start in every view: which group an agent starts in depends on it alone
        G = self.similarity.groups
        start = np.random.default_rng(0).dirichlet(np.ones(G), size=self.agents)[views.agents]
        others = views.others & sane
        groups = Groups(
            shared=statistics,
            base=-0.5 * statistics.n * np.log(2 * np.pi * noise)[:, None],
            noise=noise,
            ratio=ratio,
            others=others,
            contexts=None,
            r=start * others[..., None],
            share=np.full((B, G), 1.0 / G),
        )
        U, score = _best(groups, alone, views.me)
        if law is not None:
            telling = np.flatnonzero(_telling(law, sane))
            if telling.size:
                told = replace(_taken(groups, telling), contexts=_law_of(law, telling))
                U_told, score_told = _best(told, alone[telling], views.me[telling])
                better = score_told > score[telling] + CLOSE * np.abs(score[telling])
                U[telling[better]] = U_told[better]
        silent = ~sane
        silent[np.arange(B), views.me] &= views.heard[np.arange(B), views.me]
        return _packed(np.where(silent[..., None], 0.0, U))

    def _read(self, views: Views) -> tuple[Statistics, Contexts | None]:
        """Take summaries apart: the statistics, and each agent's mean sample of contexts."""
        p = views.summaries.shape[-1]
        if not self.similarity.contexts:  # p = 2 + m + m²
            return Statistics.of(views.summaries, (isqrt(4 * p - 7) - 1) // 2), None
        m = isqrt(p - 2) - 1  # p = 2 + m + m² + m + 1
        statistics = Statistics.of(views.summaries, m)
        n, total = statistics.n, views.summaries[..., -m - 1 : -1]
        heard = views.heard
        mean = total / np.maximum(n, 1.0)[..., None]
        within = views.summaries[..., -1] - (total * mean).sum(axis=-1)
        freedom = m * (np.maximum(n - 1, 0.0) * heard).sum(axis=1)
        variance = (within * heard).sum(axis=1) / np.maximum(freedom, 1.0)
        weight = n * heard
        overall = (weight[..., None] * mean).sum(axis=1) / np.maximum(weight.sum(axis=1), 1.0)[
            :, None
        ]
        # agents whose contexts never vary, or seen once only, say nothing that can be measured
        known = (freedom > 0) & (variance > 1e-12 * np.maximum((mean**2).mean(axis=(1, 2)), 1e-300))
        deviation = np.sqrt(np.where(known, variance, 1.0))[:, None, None]
        centred = (mean - overall[:, None, :]) / deviation * (heard & known[:, None])[..., None]
        return statistics, Contexts(centred, weight * known[:, None])


def _best(groups: Groups, alone: Array, me: IntArray) -> tuple[Array, Array]:
    """Fit under each ρ, and keep the one that predicts best: √ρ·R (B, N, G), and how well (B,)."""
    annealed = groups.anneal()
    U, score = np.empty(0), np.empty(0)
    for rho in _CORRELATIONS:
        fitted = annealed
        if rho < 1:
            shared, logdet = groups.shared.shared(
                np.broadcast_to(((1 - rho) / groups.ratio)[:, None], alone.shape)
            )
            fitted = replace(
                annealed,
                shared=shared,
                base=groups.base - 0.5 * logdet,
                ratio=groups.ratio / rho,
            )
        places, predicted, _ = fitted.merge().polish().judge(alone, me)
        if not U.size:
            U, score = np.sqrt(rho) * places, predicted
        else:
            better = predicted > score + CLOSE * np.abs(score)
            U[better], score[better] = np.sqrt(rho) * places[better], predicted[better]
    return U, score


def _telling(law: Contexts, heard: BoolArray) -> BoolArray:
    """Tell in which views the agents' contexts differ by more than chance: (B,).

    Σ n|mean|² has a χ² law if all contexts follow one.
    """
    freedom = law.mean.shape[-1] * np.maximum(heard.sum(axis=1) - 1.0, 0.0)
    spread = (law.n * (law.mean**2).sum(axis=-1)).sum(axis=1)
    return np.asarray(spread > freedom + _SIGNIFICANT * np.sqrt(2 * freedom))


def _packed(U: Array) -> Loadings:
    """Drop what is negligible, give back what nobody shares, and put used columns first."""
    U = np.where(U < _SMALLEST, 0.0, U)
    U *= ((U > 0).sum(axis=1) > 1)[:, None, :]
    order = np.argsort(-U.sum(axis=1), axis=1, kind="stable")
    used = max(1, int((U > 0).any(axis=1).sum(axis=1).max()))
    U = np.take_along_axis(U, order[:, None, :], axis=2)[:, :, :used]
    return Loadings(U, np.maximum(1.0 - (U**2).sum(axis=2), 0.0))


def _taken(groups: Groups, index: IntArray) -> Groups:
    shared = groups.shared
    return Groups(
        shared=Statistics(shared.n[index], shared.q[index], shared.b[index], shared.S[index]),
        base=groups.base[index],
        noise=groups.noise[index],
        ratio=groups.ratio[index],
        others=groups.others[index],
        contexts=None,
        r=groups.r[index],
        share=groups.share[index],
    )


def _law_of(law: Contexts, index: IntArray) -> Contexts:
    return Contexts(law.mean[index], law.n[index])
