r"""Exchangeable agents: K_z = ρ11ᵀ + (1 − ρ)I, one correlation ρ between any two of a population.

f_v = √ρ·g + √(1 − ρ)·h_v: one function g of all agents and one of each agent's own, all with the
prior K_x; a random-effects model, of functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from coopbandits.arrays import Array, BoolArray, as_number, is_listing, short
from coopbandits.errors import ParameterError
from coopbandits.features import Basis, Fourier, exact_or
from coopbandits.gp.network_kernel import LowRankKernel
from coopbandits.gp.statistics import Statistics, joint_log_evidence
from coopbandits.kernels import Kernel
from coopbandits.network import Network
from coopbandits.similarity.common_noise import common_noise, scale_outliers
from coopbandits.similarity.coregionalised import CLOSE, RewardLearner
from coopbandits.similarity.loadings import Loadings
from coopbandits.similarity.similarity import EARLY, ByBlocks, Views, settle

# Views are worked on in blocks of about this many numbers, which fit into a processor's cache.
_BLOCK = 200_000


@dataclass(frozen=True, slots=True)
class Population(ByBlocks):
    r"""One correlation between any two agents: K_z = ρ11ᵀ + (1 − ρ)I.

    ρ = 0 is `Alone`, ρ = 1 is `Same`. `Population.by_evidence()` estimates ρ.

    Args:
        rho: ρ, from 0 to 1.

    Example:
        >>> cb.similarity.Population(rho=0.25).matrix(cb.Network.path(2)).tolist()
        [[1.0, 0.25], [0.25, 1.0]]
    """

    rho: float = 0.9

    def __post_init__(self) -> None:
        rho = as_number(self.rho, "rho")
        if not 0 <= rho <= 1:
            raise ParameterError(f"rho must be from 0 to 1, got {rho}")
        object.__setattr__(self, "rho", rho)

    def blocks(self, network: Network) -> LowRankKernel:
        """Return ρ11ᵀ + (1 − ρ)I, of rank one but for its diagonal."""
        V = len(network)
        return LowRankKernel(np.full((V, 1), np.sqrt(self.rho)), np.full(V, 1.0 - self.rho))

    @staticmethod
    def by_evidence(
        rhos: Sequence[float] = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0),
        *,
        noise: float | None = None,
        features: Basis | None = None,
        refresh: str = "growing",
        growth: float = 1.5,
    ) -> "LearntPopulation":
        """Estimate ρ from what arrives: the one of `rhos` under which the rewards are likeliest."""
        given: Any = rhos if is_listing(rhos) else [rhos]
        return LearntPopulation(given, noise, features, refresh, growth)


@dataclass(frozen=True, slots=True)
class LearntPopulation:
    r"""K_z = ρ11ᵀ + (1 − ρ)I, with the ρ of greatest joint evidence of all rewards heard of.

    $$\hat\rho = \arg\max_\rho \log N(y;\, 0,\; s^2 K_z \circ \Phi\Phi^\top + \sigma^2 I)$$

    Each agent weighs every ρ by the rewards it has heard of, its own included. Of two ρ whose
    evidence differs by rounding only, the first is taken. An agent whose rewards are on quite
    another scale counts as unrelated.

    Args:
        rhos: The ρ to choose from.
        noise: σ of the rewards, where it is known; estimated otherwise.
        features: The basis that stands for K_x; exact for linear kernels, Fourier(64) otherwise.
        refresh: "growing" (early on each time, then at each `growth`-fold number of observations)
            or "every round".
        growth: See `refresh`.

    Example:
        >>> cb.similarity.Population.by_evidence([0.0, 0.5, 1.0]).rhos
        (0.0, 0.5, 1.0)
    """

    rhos: tuple[float, ...]
    noise: float | None = None
    features: Basis | None = None
    refresh: str = "growing"
    growth: float = 1.5
    early: ClassVar[tuple[int, int]] = EARLY

    def __post_init__(self) -> None:
        if not is_listing(self.rhos) or not len(self.rhos):
            raise ParameterError(f"rhos must hold at least one number, got {short(self.rhos)}")
        object.__setattr__(self, "rhos", tuple(Population(rho).rho for rho in self.rhos))
        settle(self)

    def learner(self, kernel: Kernel, network: Network) -> "PopulationLearner":
        """Make what estimates ρ."""
        return PopulationLearner(self, kernel, exact_or(kernel, self.features, Fourier(64)))


class PopulationLearner(RewardLearner):
    """Estimates ρ by evidence; holds no state."""

    def __init__(self, similarity: LearntPopulation, kernel: Kernel, basis: Basis) -> None:
        super().__init__(kernel, basis)
        self.similarity = similarity

    def estimate(self, views: Views) -> Loadings:
        """Estimate ρ from what was heard, in each view by itself."""
        nobody = len(views.table)
        # one more row, of an agent that nothing was heard from: it stands for who does not count
        table = self.read(replace(views, table=np.pad(views.table, ((0, 1), (0, 0)))))
        sane = views.heard & ~scale_outliers(table, views.index, views.heard)
        noise, ratio = common_noise(table, views.index, sane, self.similarity.noise)
        counted = np.where(sane, views.index, nobody)
        related = sane.copy()
        every = np.arange(len(views.me))
        related[every, views.me] |= ~views.heard[every, views.me]
        m = table.b.shape[-1]
        parts = []
        for rows, some in views.batches(_BLOCK // m**2):
            wide = some.index.shape[1]
            statistics = table.take(counted[rows, :wide])
            found = self._estimate(statistics, related[rows, :wide], noise[rows], ratio[rows])
            parts.append((rows, found))
        return Loadings.gathered(views.index.shape, parts)

    def _estimate(
        self, statistics: Statistics, related: BoolArray, noise: Array, ratio: Array
    ) -> Loadings:
        """Take the ρ of greatest evidence in each of B views: (B, N) -> U (B, N, 1), δ (B, N)."""
        B = len(related)
        best, found = np.full(B, -np.inf), np.zeros(B)
        for rho in self.similarity.rhos:
            loadings = _loadings(np.full(B, rho), related)
            value = joint_log_evidence(statistics, loadings.U, loadings.delta, noise, ratio)
            size = np.maximum(1.0, np.where(np.isfinite(best), np.abs(best), 1.0))
            better = value > best + CLOSE * size
            best, found = np.where(better, value, best), np.where(better, rho, found)
        return _loadings(found, related)


def _loadings(rho: Array, related: BoolArray) -> Loadings:
    """Return ρ11ᵀ + (1 − ρ)I among the related, the identity for others: (B,), (B, N)."""
    U = np.sqrt(rho)[:, None, None] * related[..., None]
    return Loadings(U, np.where(related, 1.0 - rho[:, None], 1.0))
