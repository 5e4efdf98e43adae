"""K_z from the network itself: alike as far as the graph's Laplacian binds agents together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coopbandits.arrays import Array, as_positive, is_listing, short
from coopbandits.errors import ParameterError
from coopbandits.features import Basis, Fourier, exact_or
from coopbandits.gp.network_kernel import LaplacianKernel
from coopbandits.gp.statistics import Statistics, joint_log_evidence
from coopbandits.kernels import Kernel
from coopbandits.network import Network
from coopbandits.similarity.common_noise import common_noise, scale_outliers
from coopbandits.similarity.coregionalised import CLOSE, RewardLearner
from coopbandits.similarity.loadings import Loadings
from coopbandits.similarity.similarity import EARLY, ByBlocks, Views, settle


@dataclass(frozen=True, slots=True)
class Laplacian(ByBlocks):
    r"""Alike as far as the network binds us: K_z = (L + ρI)⁻¹ for the graph's Laplacian L.

    The kernel of GoB.Lin (ρ = 1). A small ρ binds neighbours tightly; a large one lets each agent
    stand alone. K_z(v, v) ≤ 1/ρ, so ρ ≥ 1 keeps K ≤ 1. Arcs of a directed network count as edges.
    `Laplacian.by_evidence()` learns ρ.

    Args:
        rho: ρ > 0.

    Example:
        >>> network = cb.Network.path(3)
        >>> L = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
        >>> K_z = cb.similarity.Laplacian(rho=1.0).matrix(network)
        >>> bool(np.allclose(K_z @ (L + np.eye(3)), np.eye(3)))
        True
    """

    rho: float = 1.0

    def __post_init__(self) -> None:
        rho = as_positive(self.rho, "rho")
        if rho < 1e-8:  # L is singular: below, the inverse has no digits left
            raise ParameterError(f"rho must be at least 1e-8, got {rho}")
        object.__setattr__(self, "rho", rho)

    def blocks(self, network: Network) -> LaplacianKernel:
        """Return (L + ρI)⁻¹: agents of two components are strangers."""
        return _kernel(network, self.rho)

    @staticmethod
    def by_evidence(
        rhos: Sequence[float] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
        *,
        noise: float | None = None,
        features: Basis | None = None,
        refresh: str = "growing",
        growth: float = 1.5,
    ) -> "LearntLaplacian":
        """Learn ρ from what arrives: the one of `rhos` under which the rewards are likeliest."""
        given: Any = rhos if is_listing(rhos) else [rhos]
        return LearntLaplacian(given, noise, features, refresh, growth)


@dataclass(frozen=True, slots=True)
class LearntLaplacian:
    r"""K_z = (L + ρI)⁻¹ scaled to a diagonal of 1, with the ρ of greatest joint evidence.

    Scaled, so that ρ says how alike neighbours are and not how large rewards are. Each agent weighs
    every ρ by the rewards it has heard of, exactly: a factor of order N·m for N agents heard from
    and m features, for each ρ.

    Args:
        rhos: The ρ to choose from.
        noise: σ of the rewards, where it is known; learnt otherwise.
        features: The basis that stands for K_x; exact for linear kernels, Fourier(64) otherwise.
        refresh: "growing" (early on each time, then at each `growth`-fold number of observations)
            or "every round".
        growth: See `refresh`.

    Example:
        >>> cb.similarity.Laplacian.by_evidence([0.1, 1.0, 10.0]).rhos
        (0.1, 1.0, 10.0)
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
        object.__setattr__(self, "rhos", tuple(Laplacian(rho).rho for rho in self.rhos))
        settle(self)

    def learner(self, kernel: Kernel, network: Network) -> "LaplacianLearner":
        """Make what learns ρ."""
        basis = exact_or(kernel, self.features, Fourier(64))
        return LaplacianLearner(self, kernel, basis, network)


class LaplacianLearner(RewardLearner):
    """Learns ρ by evidence; holds no state."""

    def __init__(
        self, similarity: LearntLaplacian, kernel: Kernel, basis: Basis, network: Network
    ) -> None:
        super().__init__(kernel, basis)
        self.similarity = similarity
        self.kernels = [_kernel(network, rho, scaled=True) for rho in similarity.rhos]

    def estimate(self, views: Views) -> Loadings:
        """Learn ρ from what was heard, in each view by itself."""
        table = self.read(views)
        sane = views.heard & ~scale_outliers(table, views.index, views.heard)
        noise, ratio = common_noise(table, views.index, sane, self.similarity.noise)
        return Loadings.gathered(
            views.index.shape,
            (  # a factor of order N·m at a time
                (view, self._estimate(one, table, noise[view], ratio[view]))
                for view, one in views.batches(1)
            ),
        )

    def _estimate(self, views: Views, table: Statistics, noise: Array, ratio: Array) -> Loadings:
        statistics, agents = table.take(views.index), views.agents[0]
        best, U = -np.inf, np.zeros((1, len(agents), 1))
        for kernel in self.kernels:
            loadings = Loadings.of(kernel.block(agents, agents)[None])
            value = joint_log_evidence(statistics, loadings.U, loadings.delta, noise, ratio).item()
            if value > best + CLOSE * max(1.0, abs(best) if np.isfinite(best) else 1.0):
                best, U = value, loadings.U
        known = views.heard | (np.arange(len(agents)) == views.me[:, None])
        return Loadings(U * known[..., None], np.where(known, 0.0, 1.0))


def _kernel(network: Network, rho: float, *, scaled: bool = False) -> LaplacianKernel:
    arcs = network.arcs
    return LaplacianKernel(arcs.either_way() if network.directed else arcs, rho, scaled)
