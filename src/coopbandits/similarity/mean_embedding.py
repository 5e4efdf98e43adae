r"""K_z from the agents' contexts: the paper's estimator (§3.3, "Approximating Network Contexts").

Each agent's network context is the mean embedding Ψ_v of its law of contexts in the RKHS of a
kernel, estimated by the mean of features ψ of the contexts seen, Ψ̂_v = (1/n_v) Σ ψ(x_{v,i}), and

    K̂_z(v, v') = exp(−MMD(v, v') / 2σ_z²),      MMD² = |Ψ̂_v − Ψ̂_v'|²

The distance is not squared, as printed; that is positive semidefinite, as a Hilbert distance is
conditionally negative definite.

Deviation from the paper: MMD² is printed without 1/(n·n'), for equally many samples. Here agents
have as many as have arrived.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    as_choice,
    as_count,
    as_flag,
    as_positive,
)
from coopbandits.errors import ParameterError
from coopbandits.features import Basis, Fourier, exact_or
from coopbandits.gp.compositions import Composition, share_of, with_constants
from coopbandits.gp.statistics import BATCH
from coopbandits.kernels import Kernel, as_kernel, diagonal_gradient_of, gradient_of
from coopbandits.network import Network
from coopbandits.similarity.loadings import Loadings, of_rank
from coopbandits.similarity.similarity import EARLY, REFRESH, Views, settle

SAMPLES = ("chosen", "offered")


@dataclass(frozen=True, slots=True)
class MeanEmbedding:
    r"""Learn K_z from contexts alone: agents are alike as far as their contexts are.

    It never sees a reward. Where all agents draw contexts from one law, only their *choices* tell
    them apart, and only late; then it can do worse than working alone (docs/similarity.md).

    Args:
        bandwidth: σ_z, or "median" for σ_z² = half the median distance in the agent's view.
        sample: Which contexts are embedded: those "chosen", or all "offered" ones; then each
            message carries the sum of the features of the sender's decision set.
        kernel: Of the embedding; K_x if not given.
        unbiased: Leave each context's product with itself out of MMD². The result can be negative
            (then it is 0) and its K_z indefinite (then negative eigenvalues are set to 0 and the
            diagonal back to 1). An agent with one context only keeps its product.
        rank: Keep this many parts of K_z, those that matter most to the asking agent, and give the
            rest back to each agent as its own. K_z between the asking agent and everyone stays
            exact. All is kept, if not given.
        features: The basis ψ; exact for linear kernels, Fourier(256) otherwise.
        refresh: "growing" (early on each time, then at each `growth`-fold number of observations),
            "every round", or "frozen": the sender's embedding travels with its message, and
            x̃ = (Ψ̂_v at that time, x) as the paper's text has it. Then nothing is ever estimated
            again, and an agent's own past, made under earlier embeddings, is discounted too.
        growth: See `refresh`.

    Example:
        >>> similarity = cb.similarity.MeanEmbedding(bandwidth=0.5, sample="offered")
        >>> cb.CoopKernelUCB(cb.kernels.RBF(), similarity=similarity).similarity.bandwidth
        0.5
    """

    bandwidth: float | str = 1.0
    sample: str = "chosen"
    kernel: Kernel | None = None
    unbiased: bool = False
    rank: int | None = None
    features: Basis | None = None
    refresh: str = "growing"
    growth: float = 1.5
    early: ClassVar[tuple[int, int]] = EARLY

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            number = "a number above 0"
            as_choice(self.bandwidth, "bandwidth", ("median",), otherwise=number)
        else:
            object.__setattr__(self, "bandwidth", as_positive(self.bandwidth, "bandwidth"))
            if self.bandwidth < 1e-50:  # its square must not vanish
                raise ParameterError(f"bandwidth must be at least 1e-50, got {self.bandwidth}")
        object.__setattr__(self, "sample", as_choice(self.sample, "sample", SAMPLES))
        if self.kernel is not None:
            as_kernel(self.kernel)
        as_flag(self.unbiased, "unbiased")
        if self.rank is not None:
            object.__setattr__(self, "rank", as_count(self.rank, "rank"))
        settle(self, allowed=REFRESH)
        if self.refresh == "frozen" and (
            self.bandwidth == "median" or self.unbiased or self.rank is not None
        ):
            raise ParameterError(
                "refresh='frozen' takes a bandwidth in numbers, unbiased=False and no rank: what "
                "has been sent cannot be estimated again"
            )

    def learner(self, kernel: Kernel, network: Network) -> "EmbeddingLearner":
        """Make what learns K_z."""
        own = kernel if self.kernel is None else self.kernel
        return EmbeddingLearner(self, own, exact_or(own, self.features, Fourier(256)))


@dataclass(frozen=True, eq=False)
class EmbeddingLearner:
    """Learns K_z from mean embeddings; holds no state. A sample is [how many, Σψ, Σ|ψ|²]."""

    similarity: MeanEmbedding
    kernel: Kernel
    basis: Basis
    # how many arrays of numbers for all pairs of agents an estimate takes
    compared: ClassVar[int] = 3

    def attached(self, dim: int) -> int:
        """How many numbers go with a context of d numbers in a message."""
        m = self.basis.size(self.kernel, dim)
        if self.similarity.refresh == "frozen":
            return m
        return m + 2 if self.similarity.sample == "offered" else 0

    def sampled(self, agents: IntArray, contexts: Array, rows: IntArray) -> Array:
        """Return what each agent's embedding gains in this round: (V, m + 2), or nothing."""
        if self.similarity.sample == "chosen":
            if self.similarity.refresh != "frozen":
                return np.empty((len(rows), 0))
            return self._samples(contexts[rows])
        sums = np.zeros((len(rows), self.basis.size(self.kernel, contexts.shape[1]) + 2))
        np.add.at(sums, agents, self._samples(contexts))
        return sums

    def summaries(self, X: Array, attached: Array, y: Array) -> Array:
        """Summarise n observations: (n, 1 + m + 2)."""
        samples = attached if self.similarity.sample == "offered" else self._samples(X)
        return np.hstack([np.ones((len(X), 1)), samples])

    def embedded(self, sums: Array) -> Array:
        """Return the mean embedding of sums of samples, 0 where there are none: (…, m)."""
        return np.asarray(sums[..., 1:-1] / np.maximum(sums[..., :1], 1.0))

    def asked(self, agents: IntArray, contexts: Array, past: Array) -> Array:
        """Return each agent's embedding at a decision, before it has chosen: (V, m).

        Args:
            agents: (M,) to whom each context is offered.
            contexts: (M, d).
            past: (V, m + 2) sums of earlier samples, or (V, 0) before the first.
        """
        sums = np.zeros((len(past), self.basis.size(self.kernel, contexts.shape[1]) + 2))
        if past.size:
            sums += past
        if self.similarity.sample == "offered":
            np.add.at(sums, agents, self._samples(contexts))
        return self.embedded(sums)

    def distances(self, views: Views) -> Array:
        """Return the MMD between all rows of the views' table: (P, P)."""
        sums = views.table[:, 1:]
        n = np.maximum(sums[:, 0], 1.0)
        total, own = sums[:, 1:-1], sums[:, -1]
        mean = total / n[:, None]
        # around the mean of all: distances of embeddings far from 0 keep their digits
        heard = (views.table[:, :1] > 0) & (sums[:, :1] > 0)
        centre = (mean * heard).sum(axis=0) / max(heard.sum(), 1)
        rounding = 1e-24 * (centre**2).sum()
        own = own - 2 * total @ centre + n * (centre**2).sum()
        mean = mean - centre
        within = np.einsum("pm,pm->p", mean, mean)
        cross = mean @ mean.T
        if self.similarity.unbiased:
            pairs = np.maximum(n * (n - 1), 1.0)
            within = np.where(n > 1, (n**2 * within - own) / pairs, within)
        squared = within[:, None] - 2 * cross + within[None, :]
        np.fill_diagonal(squared, 0.0)
        return np.sqrt(np.where(squared > rounding, squared, 0.0))

    def estimate(self, views: Views) -> Loadings:
        """Learn K_z from what was heard, in each view by itself."""
        distance, sigma = self.distances(views), self.similarity.bandwidth
        scaled = distance if isinstance(sigma, str) else distance / (2 * sigma**2)
        most = BATCH // views.index.shape[1]
        return Loadings.gathered(
            views.index.shape,
            ((rows, self._estimate(some, scaled)) for rows, some in views.batches(most)),
        )

    def _estimate(self, views: Views, distance: Array) -> Loadings:
        similarity = self.similarity
        heard = views.heard & (views.table[:, 1] > 0)[views.index]
        distance = distance[views.index[:, :, None], views.index[:, None, :]]
        if isinstance(similarity.bandwidth, str):
            distance = distance / _medians(distance, heard)[:, None, None]
        K_z = np.exp(-distance)
        # who has not been heard from is like nobody but itself: δ = 1
        K_z *= heard[:, :, None] & heard[:, None, :]
        if similarity.unbiased or similarity.rank is None:
            U = Loadings.of(K_z).U * heard[..., None]
            if similarity.unbiased:  # the repair: clip eigenvalues, put the diagonal back to 1
                size = (U**2).sum(axis=2, keepdims=True)
                U = U / np.sqrt(np.where(size > 0, size, 1.0))
                K_z = U @ np.swapaxes(U, 1, 2)
        if similarity.rank is not None:
            U = of_rank(K_z, views.me, min(similarity.rank, K_z.shape[1]))
        return Loadings(U, np.maximum(1.0 - (U**2).sum(axis=2), 0.0))

    def _samples(self, X: Array) -> Array:
        psi = self.basis.features(self.kernel, X)
        return np.hstack([np.ones((len(X), 1)), psi, (psi**2).sum(axis=1, keepdims=True)])


def _medians(distance: Array, heard: BoolArray) -> Array:
    """Return 2σ_z² by the median rule in each view: (B, N, N), (B, N) -> (B,)."""
    above = np.triu(np.ones(distance.shape[1:], dtype=np.bool_), 1)
    pairs = heard[:, :, None] & heard[:, None, :] & above
    medians = [
        float(np.median(d[p])) if p.any() else 1.0 for d, p in zip(distance, pairs, strict=True)
    ]
    # half of the agents at one place: any scale calls these alike and the others strangers
    return np.maximum(medians, 1e-12)


@dataclass(frozen=True, eq=False)
class FrozenKernel:
    """K over x̃ = (x, Ψ̂ of its agent at the time): rows of d + m numbers."""

    kernel: Kernel
    learner: EmbeddingLearner
    composition: Composition
    intercept: float = 0.0

    def __call__(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Evaluate every pair: (n,), (n, d + m), (l,), (l, d + m) -> (n, l)."""
        d = self._dim(X.shape[1])
        K_x = self.kernel(X[:, :d], Y[:, :d])
        return with_constants(self.composition.combine(self.alike(X, Y), K_x), u, w, self.intercept)

    def diagonal(self, u: IntArray, X: Array) -> Array:
        """Evaluate each augmented context with itself: (n,), (n, d + m) -> (n,)."""
        own = self.kernel.diagonal(X[:, : self._dim(X.shape[1])])
        return self.composition.combine(np.ones_like(own), own) + self.intercept

    def gradient(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Differentiate every pair by x alone: (n,), (n, d + m), (l,), (l, d + m) -> (n, l, d)."""
        d = self._dim(X.shape[1])
        x, y = X[:, :d], Y[:, :d]
        share = share_of(self.composition, self.alike(X, Y), lambda: self.kernel(x, y))
        return share[..., None] * gradient_of(self.kernel, x, y)

    def diagonal_gradient(self, u: IntArray, X: Array) -> Array:
        """Differentiate each K(x̃, x̃) by x alone: (n,), (n, d + m) -> (n, d)."""
        x = X[:, : self._dim(X.shape[1])]
        share = share_of(self.composition, np.ones(len(x)), lambda: self.kernel.diagonal(x))
        return share[..., None] * diagonal_gradient_of(self.kernel, x)

    def alike(self, mine: Array, others: Array) -> Array:
        """Return K_z between augmented contexts: (n, d + m), (l, d + m) -> (n, l)."""
        from scipy.spatial.distance import cdist  # noqa: PLC0415 (heavy)

        d = self._dim(mine.shape[1])
        scale = 2 * float(self.learner.similarity.bandwidth) ** 2
        return np.exp(-cdist(mine[:, d:], others[:, d:]) / scale)

    def _dim(self, width: int) -> int:
        """Which d has d + m = width?"""
        return next(d for d in range(1, width + 1) if d + self.learner.attached(d) == width)
