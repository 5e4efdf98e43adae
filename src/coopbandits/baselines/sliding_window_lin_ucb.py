r"""SW-UCB (Cheung, Simchi-Levi & Zhu 2019): LinUCB on the last w rounds, every agent alone.

Cheung, Simchi-Levi & Zhu, "Learning to Optimize under Non-Stationarity", AISTATS 2019. In round t
only the observations of rounds t − w … t − 1 count:

    A = λI + Σ xxᵀ,    θ̂ = A⁻¹ Σ xy,    argmax xᵀθ̂ + β·√(xᵀA⁻¹x).
"""

import math
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray, as_count
from coopbandits.baselines.forgetting_agents import ForgettingAgents
from coopbandits.baselines.settings import Named, as_name, check_memory, settle_bound
from coopbandits.engines import Simulation


@dataclass(frozen=True, kw_only=True)
class SlidingWindowLinUCB(Named):
    r"""SW-UCB: argmax xᵀθ̂ + β·√(xᵀA⁻¹x) on the last w rounds, every agent alone.

    β = √λ·B + R·√(d·ln((1 + w/λ)/δ)), or η if `eta` is given. Guarantee: if all θ_t have norm at
    most B, contexts norm at most 1, and the noise is independent and R-sub-Gaussian, then in each
    round, with probability at least 1 − δ, |xᵀ(θ_t − θ̂)| ≤ β·√(xᵀA⁻¹x) + Σ|θ_s − θ_{s+1}|, the
    sum over the window.

    Deviation from the paper: an agent that knows nothing chooses at random.

    Args:
        window: w, in rounds.
        ridge: λ.
        norm: B.
        noise: R.
        delta: δ.
        eta: η, for a radius that guarantees nothing; LinUCB's α.
        name: What tables and figures call it.

    Example:
        >>> problem = cb.problems.changing(cb.Network.path(3), kind="jump", at=6, dim=4)
        >>> policy = cb.SlidingWindowLinUCB(window=5, eta=0.3)
        >>> cb.play(problem, policy, rounds=10).regret.shape
        (10, 3)
    """

    window: int
    ridge: float = 1.0
    norm: float = 1.0
    noise: float = 1.0
    delta: float = 0.05
    eta: float | None = None
    name: str = "SW-LinUCB"

    def __post_init__(self) -> None:
        as_name(self.name)
        object.__setattr__(self, "window", as_count(self.window, "window"))
        settle_bound(self)

    def radius(self, known: int, dim: int) -> float:
        """Return β for contexts of d numbers, the same after any number of rounds."""
        if self.eta is not None:
            return self.eta
        log = math.log1p(self.window / self.ridge) - math.log(self.delta)
        return math.sqrt(self.ridge) * self.norm + self.noise * math.sqrt(dim * log)

    def player(self, simulation: Simulation) -> ForgettingAgents:
        """Make what takes the decisions of a simulation's agents."""
        V, d, w = simulation.agents, simulation.dim, min(self.window, simulation.rounds)
        check_memory(self.name, 8.0 * V * (w * (d + 1) + d * d), simulation)
        return ForgettingAgents(self, simulation, WindowSums(V, d, w))


class WindowSums:
    """The sums of the last w observations of each agent; S (V, d, d) and b (V, d)."""

    def __init__(self, agents: int, dim: int, window: int) -> None:
        self.S = np.zeros((agents, dim, dim))
        self.b = np.zeros((agents, dim))
        self._X = np.zeros((agents, window, dim))
        self._y = np.zeros((agents, window))
        self._next = 0

    def variance(self, agents: IntArray, X: Array, Y: Array) -> Array:
        """Return xᵀA⁻¹x: (M,)."""
        return np.einsum("md,md->m", X, Y)

    def learn(self, X: Array, y: Array) -> None:
        """Put an observation of each agent into the place of its oldest: (V, d), (V,)."""
        at, w = self._next, self._X.shape[1]
        old, old_y = self._X[:, at], self._y[:, at]
        self.S += X[:, :, None] * X[:, None, :] - old[:, :, None] * old[:, None, :]
        self.b += X * y[:, None] - old * old_y[:, None]
        self._X[:, at], self._y[:, at] = X, y
        self._next = (at + 1) % w
        if self._next == 0:  # what subtracting has rounded does not outlive a window
            self.S = self._X.transpose(0, 2, 1) @ self._X
            self.b = (self._y[:, None, :] @ self._X)[:, 0]
