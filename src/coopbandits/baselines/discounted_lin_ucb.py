r"""D-LinUCB (Russac, Vernade & Cappé 2019): LinUCB on weights that fade, every agent alone.

Russac, Vernade & Cappé, "Weighted Linear Bandits for Non-Stationary Environments", NeurIPS 2019. An
observation of age n = 0, 1, … has the weight γⁿ. The noise of θ̂ has the squared weights, so that
there are two matrices:

    V = λI + Σ γⁿxxᵀ,    Ṽ = λI + Σ γ²ⁿxxᵀ,    θ̂ = V⁻¹ Σ γⁿxy,
    argmax xᵀθ̂ + β·√(xᵀV⁻¹ṼV⁻¹x).

The paper's V ← γV + xxᵀ + (1 − γ)λI is the same: what fades is evidence, not the ridge.
"""

import math
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray, as_number
from coopbandits.baselines.forgetting_agents import ForgettingAgents
from coopbandits.baselines.settings import Named, as_name, settle_bound
from coopbandits.engines import Simulation
from coopbandits.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class DiscountedLinUCB(Named):
    r"""D-LinUCB: argmax xᵀθ̂ + β·√(xᵀV⁻¹ṼV⁻¹x) with weights γⁿ, every agent alone.

    β = √λ·B + R·√(2 ln(1/δ) + d·ln(1 + (1 + γ² + … + γ^{2(t−2)})/(λd))) in round t, or η if `eta`
    is given. Guarantee: while θ does not change, if it has norm at most B, contexts norm at most 1,
    and the noise is independent and R-sub-Gaussian, then |xᵀ(θ − θ̂)| ≤ β·√(xᵀV⁻¹ṼV⁻¹x) in each
    round with probability at least 1 − δ.

    Deviation from the paper: an agent that knows nothing chooses at random. γ = 1, which is LinUCB,
    is allowed.

    Args:
        discount: γ, above 0 and up to 1; weights halve in ln 2/ln(1/γ) rounds.
        ridge: λ.
        norm: B.
        noise: R.
        delta: δ.
        eta: η, for a radius that guarantees nothing; LinUCB's α.
        name: What tables and figures call it.

    Example:
        >>> problem = cb.problems.changing(cb.Network.path(3), kind="drift", dim=4)
        >>> policy = cb.DiscountedLinUCB(discount=0.98, eta=0.3)
        >>> cb.play(problem, policy, rounds=5).regret.shape
        (5, 3)
    """

    discount: float
    ridge: float = 1.0
    norm: float = 1.0
    noise: float = 1.0
    delta: float = 0.05
    eta: float | None = None
    name: str = "D-LinUCB"

    def __post_init__(self) -> None:
        as_name(self.name)
        object.__setattr__(self, "discount", as_number(self.discount, "discount"))
        if not 0 < self.discount <= 1:
            raise ParameterError(f"discount must be above 0 and at most 1, got {self.discount}")
        settle_bound(self)

    def radius(self, known: int, dim: int) -> float:
        """Return β after so many rounds, for contexts of d numbers."""
        if self.eta is not None:
            return self.eta
        squared = self.discount**2
        weights = known if squared == 1 else (1 - squared**known) / (1 - squared)
        log = dim * math.log1p(weights / (self.ridge * dim)) - 2 * math.log(self.delta)
        return math.sqrt(self.ridge) * self.norm + self.noise * math.sqrt(log)

    def player(self, simulation: Simulation) -> ForgettingAgents:
        """Make what takes the decisions of a simulation's agents."""
        sums = DiscountedSums(simulation.agents, simulation.dim, self.discount, self.ridge)
        return ForgettingAgents(self, simulation, sums)


class DiscountedSums:
    """Sums in which an observation of age n has the weight γⁿ; S (V, d, d) and b (V, d).

    Attributes:
        squared: (V, d, d) the same as S with weights γ²ⁿ.
    """

    def __init__(self, agents: int, dim: int, discount: float, ridge: float) -> None:
        self.S = np.zeros((agents, dim, dim))
        self.b = np.zeros((agents, dim))
        self.squared = np.zeros((agents, dim, dim))
        self._discount, self._ridge = discount, ridge

    def variance(self, agents: IntArray, X: Array, Y: Array) -> Array:
        """Return xᵀV⁻¹ṼV⁻¹x: (M,)."""
        noise = np.einsum("md,mde,me->m", Y, self.squared[agents], Y, optimize=True)
        return self._ridge * np.einsum("md,md->m", Y, Y) + noise

    def learn(self, X: Array, y: Array) -> None:
        """Fade by one round, and add one observation of each agent: (V, d), (V,)."""
        outer = X[:, :, None] * X[:, None, :]
        self.S = self._discount * self.S + outer
        self.squared = self._discount**2 * self.squared + outer
        self.b = self._discount * self.b + X * y[:, None]
