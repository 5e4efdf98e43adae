r"""What fades? Rules by which old observations lose their weight, where the world changes.

An observation of age a counts with a weight w(a) between 0 and 1, as if its noise had variance λ/w:

    mean = κᵀ(K + λW⁻¹)⁻¹y        σ² = K(x̃, x̃) − κᵀ(K + λW⁻¹)⁻¹κ        W = diag(w)

so what fades is evidence, never the prior: an agent that has forgotten everything believes what it
believed before it began. Age is counted in the origin's own rounds, from the newest of its
observations that is known. Once an origin is silent, what it told ages in the receiver's rounds,
from the one in which that was learnt.

| rule | w(a) | for |
|---|---|---|
| `Exponential(half_life=h)` | 2^(−a/h) | sufficient statistics: linear kernels, or `features=` |
| `Window(rounds=W)` | 1 if a < W, else 0 | these, and exact posteriors |

What K_z is estimated from fades alike. How many observations are known does not, and that says when
K_z is due.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coopbandits.arrays import Array, as_count, as_positive, short
from coopbandits.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Exponential:
    """Let evidence fade by half in each `half_life` rounds: discounted least squares.

    It takes no memory: sufficient statistics are multiplied by 2^(−1/h) a round.

    Args:
        half_life: h > 0, in rounds of the agent that made the observation.

    Example:
        >>> Exponential(half_life=10).weight(np.array([0, 10, 20])).tolist()
        [1.0, 0.5, 0.25]
    """

    half_life: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_life", as_positive(self.half_life, "half_life"))

    def weight(self, age: Any) -> Array:
        """Return the weight of observations of some ages ≥ 0."""
        return np.asarray(np.exp2(-np.asarray(age, dtype=np.float64) / self.half_life))


@dataclass(frozen=True, slots=True)
class Window:
    """Let the last `rounds` rounds of each agent count, and nothing before: a sliding window.

    The observations of the window are kept, so memory grows with it.

    Args:
        rounds: W ≥ 1, in rounds of the agent that made the observation.

    Example:
        >>> Window(rounds=2).weight(np.array([0, 1, 2])).tolist()
        [1.0, 1.0, 0.0]
    """

    rounds: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", as_count(self.rounds, "rounds"))

    def weight(self, age: Any) -> Array:
        """Return the weight of observations of some ages ≥ 0."""
        return np.asarray(np.asarray(age) < self.rounds, dtype=np.float64)


Forget = Exponential | Window


def as_forget(value: object) -> Forget | None:
    """Check a policy's `forget=`."""
    if value is None or isinstance(value, Exponential | Window):
        return value
    raise ParameterError(
        f"forget={short(value)} is no rule; expected coopbandits.forget.Exponential(half_life=…), "
        "coopbandits.forget.Window(rounds=…), or None to forget nothing"
    )
