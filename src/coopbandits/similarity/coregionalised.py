r"""The intrinsic coregionalisation model (ICM): K_z by maximising the joint evidence.

As multi-task Gaussian process libraries estimate it: f_u = Σ_k U_uk g_k + √δ_u h_u and
K_z = UUᵀ + diag(δ), with U and δ free. They maximise the marginal likelihood of all rewards in an
agent's view together, by expectation-maximisation over g; each step raises it. There is no prior
over U, so with few observations it fits noise; that is why it is here for comparison.
"""

from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray, as_count
from coopbandits.features import Basis, Fourier, exact_or
from coopbandits.gp.intercept import Intercept, as_statistics, summarised
from coopbandits.gp.statistics import Statistics, coupled, log_product
from coopbandits.kernels import Kernel
from coopbandits.network import Network
from coopbandits.similarity.common_noise import common_noise, scale_outliers
from coopbandits.similarity.loadings import Loadings
from coopbandits.similarity.similarity import EARLY, Views, settle

# Views are worked on in blocks of about this many numbers, which fit into a processor's cache.
_BLOCK = 200_000
_MOST_STEPS = 10_000
# δ at the start, and what it may become
_HALF = 0.5
_DELTAS = np.concatenate([[_HALF, 1e-4], np.geomspace(1e-3, 1.0, 13)])


# Numbers of evidence closer than this are equal: rounding must not choose.
CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class Coregionalised:
    """The intrinsic coregionalisation model: K_z = UUᵀ + diag(δ), scaled to a diagonal of 1.

    U and δ are those of maximum likelihood. Up to version 0.1 its name was `Learned`.

    Args:
        rank: Columns of U.
        steps: Of expectation-maximisation, at each estimate.
        noise: σ of the rewards, where it is known; learnt otherwise.
        features: The basis that stands for K_x; exact for linear kernels, Fourier(64) otherwise.
        refresh: "growing" (early on each time, then at each `growth`-fold number of observations)
            or "every round".
        growth: See `refresh`.

    Example:
        >>> similarity = cb.similarity.Coregionalised(rank=2)
        >>> cb.EagerKernelUCB(cb.kernels.Linear(), similarity=similarity).similarity.rank
        2
    """

    rank: int = 3
    steps: int = 10
    noise: float | None = None
    features: Basis | None = None
    refresh: str = "growing"
    growth: float = 1.5
    early: ClassVar[tuple[int, int]] = EARLY

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", as_count(self.rank, "rank"))
        object.__setattr__(self, "steps", as_count(self.steps, "steps", most=_MOST_STEPS))
        settle(self)

    def learner(self, kernel: Kernel, network: Network) -> "CoregionalisedLearner":
        """Make what learns K_z."""
        return CoregionalisedLearner(self, kernel, exact_or(kernel, self.features, Fourier(64)))


@dataclass(frozen=True, eq=False)
class RewardLearner:
    """What all learners from rewards share: the summaries are `Statistics`."""

    kernel: Kernel
    basis: Basis
    intercept: Intercept | None = None

    def with_intercept(self, intercept: Intercept) -> Self:
        """Return a learner that integrates agents' own constants out of their rewards."""
        made = copy(self)
        object.__setattr__(made, "intercept", intercept)
        return made

    def attached(self, dim: int) -> int:
        """How many numbers go with a context in a message: none."""
        return 0

    def sampled(self, agents: IntArray, contexts: Array, rows: IntArray) -> Array:
        """Attach nothing: (V, 0)."""
        return np.empty((len(rows), 0))

    def summaries(self, X: Array, attached: Array, y: Array) -> Array:
        """Summarise n observations: (n, 2 + m + m²)."""
        return summarised(self.basis.features(self.kernel, X), y, self.intercept)

    def read(self, views: Views) -> Statistics:
        """Take the table of summaries apart: (P, …)."""
        p = views.table.shape[-1]
        features = int((np.sqrt(4 * p - 7) - 1) / 2 + 0.5)
        m = features if self.intercept is None else features - 1
        return as_statistics(views.table, m, self.intercept)


class CoregionalisedLearner(RewardLearner):
    """Learns K_z by maximum likelihood; holds no state."""

    def __init__(self, similarity: Coregionalised, kernel: Kernel, basis: Basis) -> None:
        super().__init__(kernel, basis)
        self.similarity = similarity

    def estimate(self, views: Views) -> Loadings:
        """Learn K_z from what was heard, in each view by itself."""
        table = self.read(views)
        sane = views.heard & ~scale_outliers(table, views.index, views.heard)
        noise, ratio = common_noise(table, views.index, sane, self.similarity.noise)
        m = table.b.shape[-1]
        return Loadings.gathered(
            views.index.shape,
            (
                (rows, self._estimate(some, table, sane[rows], noise[rows], ratio[rows]))
                for rows, some in views.batches(_BLOCK // m**2)
            ),
        )

    def _estimate(
        self, views: Views, table: Statistics, sane: BoolArray, noise: Array, ratio: Array
    ) -> Loadings:
        N = views.index.shape[1]
        statistics = table.take(views.index)
        U, delta = start(statistics, ratio, min(self.similarity.rank, N))
        owns = Owns.of(statistics, ratio)
        for _ in range(self.similarity.steps):
            U, delta = climb(statistics, owns, U, delta, noise, ratio)
        U = U * sane[:, :N, None]
        size = (U**2).sum(axis=2) + delta
        U, delta = U / np.sqrt(size)[..., None], delta / size
        return Loadings(U, np.where(views.heard, delta, 1.0))


def start(statistics: Statistics, ratio: Array, rank: int) -> tuple[Array, Array]:
    """Start from the leading directions of the agents' own estimates: U (B, N, r), δ (B, N)."""
    s, Q, projected = statistics.spectrum
    theta = (Q @ (projected / (s + ratio[:, None, None]))[..., None])[..., 0]
    length = np.sqrt((theta**2).sum(axis=-1, keepdims=True))
    theta = theta / np.where(length > 0, length, 1.0)
    # the leading parts of θθᵀ are θ times the leading directions of θᵀθ, of which there are m
    directions = np.linalg.eigh(np.swapaxes(theta, 1, 2) @ theta)[1][:, :, -rank:]
    U = np.zeros((*theta.shape[:2], rank))
    U[..., rank - directions.shape[2] :] = np.sqrt(0.5) * (theta @ directions)
    return U, np.full(U.shape[:2], _HALF)


@dataclass(frozen=True, eq=False)
class Owns:
    """What agents' own parts of each δ make of their data, whatever they share.

    Features come first: sums over them are then sums of whole arrays.

    Attributes:
        kept: (m, D, B, N) 1/(1 + δs/κ), the share of what is seen in a direction that is left.
        own: (m, B, N) the squares that own parts can explain, over s.
        logdet: (D, B, N) log det(I + δS/κ).
    """

    kept: Array
    own: Array
    logdet: Array

    @classmethod
    def of(cls, statistics: Statistics, ratio: Array) -> "Owns":
        """Work it out for each δ of the grid."""
        s, _, projected = statistics.spectrum
        s, squares = np.moveaxis(s, -1, 0), np.moveaxis(projected**2, -1, 0)
        grown = 1.0 + (_DELTAS[:, None, None] / ratio[:, None]) * s[:, None]
        seen = s > 1e-12 * s.max(axis=0, initial=0.0)
        own = np.where(seen, squares / np.where(seen, s, 1.0), 0.0)
        return cls(1.0 / grown, own, log_product(grown, axis=0))

    def best(self, fixed: Array, delta: Array, noise: Array) -> Array:
        """Return the likeliest δ, given what is shared and the δ there is: (B, N)."""
        misfit = np.einsum("mdbn,mbn->dbn", self.kept, fixed + self.own)
        value = -0.5 * (self.logdet + misfit / noise[:, None])
        value[0, delta != _HALF] = -np.inf  # a start, and nothing to go back to
        return np.asarray(_DELTAS[value.argmax(axis=0)])


def climb(
    statistics: Statistics, owns: Owns, U: Array, delta: Array, noise: Array, ratio: Array
) -> tuple[Array, Array]:
    """Take one step that raises the joint evidence: new U (B, N, r) and δ (B, N)."""
    B, N, r = U.shape
    m = statistics.b.shape[-1]
    # the posterior of g, given U and δ
    shared, _ = statistics.shared(delta / ratio[:, None])
    A, c = coupled(U, shared)
    A[:, np.arange(r * m), np.arange(r * m)] += ratio[:, None]
    inverse = np.linalg.inv(A)
    mean = (inverse @ c[..., None])[..., 0].reshape(B, r, m)
    spread = noise[:, None, None, None, None] * inverse.reshape(B, r, m, r, m)
    second = mean[:, :, :, None, None] * mean[:, None, None, :, :] + spread  # E[g gᵀ]
    second = second.transpose(0, 1, 3, 2, 4)  # (B, r, r, m, m)
    # U given g: a regression for each agent
    H = (
        shared.S.reshape(B, N, m * m) @ np.swapaxes(second.reshape(B, r * r, m * m), 1, 2)
    ).reshape(B, N, r, r)
    target = shared.b @ np.swapaxes(mean, 1, 2)
    slack = 1e-9 * np.trace(H, axis1=2, axis2=3)[..., None, None] + 1e-200
    U = np.linalg.solve(H + slack * np.eye(r), target[..., None])[..., 0]
    # δ given g and U: the best of a grid, or as before
    s, Q, projected = statistics.spectrum
    product = (U[..., :, None] * U[..., None, :]).reshape(B, N, r * r)
    moment = (product @ second.reshape(B, r * r, m * m)).reshape(B, N, m, m)
    moment = ((moment @ Q) * Q).sum(axis=2)
    mine = ((U @ mean)[:, :, None, :] @ Q)[:, :, 0]
    fixed = np.moveaxis(s * moment - 2 * projected * mine, -1, 0)
    return U, owns.best(fixed, delta, noise)
