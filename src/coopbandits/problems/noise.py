"""How noisy are rewards? Each noise draws what pulling every offered action would bring.

It is drawn for all actions of a round before anyone chooses, so the noise at (t, v, action) does
not depend on the policy, and trials of two policies with one seed are paired.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import Array, as_not_negative, is_real, short
from coopbandits.errors import ParameterError


@runtime_checkable
class Noise(Protocol):
    """A law of rewards around their expectation.

    Example:
        >>> isinstance(cb.problems.Gaussian(0.1), cb.problems.Noise)
        True
    """

    @property
    def scale(self) -> float:
        """R: the noise is R-sub-Gaussian."""
        ...

    def rewards(self, expected: Array, rng: np.random.Generator) -> Array:
        """Draw a reward for each expectation: (N,) -> (N,)."""
        ...


@dataclass(frozen=True, slots=True)
class Gaussian:
    """y = f + ε, ε normal with standard deviation `scale`.

    Args:
        scale: R.

    Example:
        >>> f = np.array([1.0, 2.0])
        >>> cb.problems.Gaussian(0.0).rewards(f, np.random.default_rng(0)).tolist()
        [1.0, 2.0]
    """

    scale: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_not_negative(self.scale, "the noise's scale"))

    def rewards(self, expected: Array, rng: np.random.Generator) -> Array:
        """Draw a reward for each expectation: (N,) -> (N,)."""
        return expected + self.scale * rng.standard_normal(len(expected))


@dataclass(frozen=True, slots=True)
class Uniform:
    """y = f + ε, ε uniform on [−scale, scale], which is `scale`-sub-Gaussian.

    Args:
        scale: R.

    Example:
        >>> y = cb.problems.Uniform(0.1).rewards(np.zeros(100), np.random.default_rng(0))
        >>> bool((np.abs(y) <= 0.1).all())
        True
    """

    scale: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_not_negative(self.scale, "the noise's scale"))

    def rewards(self, expected: Array, rng: np.random.Generator) -> Array:
        """Draw a reward for each expectation: (N,) -> (N,)."""
        return expected + self.scale * (2 * rng.random(len(expected)) - 1)


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """y = 1 with probability f, else 0: clicks and conversions. Needs f within [0, 1].

    Example:
        >>> cb.problems.Bernoulli().rewards(np.array([0.0, 1.0]), np.random.default_rng(0)).tolist()
        [0.0, 1.0]
    """

    @property
    def scale(self) -> float:
        """R = 1/2: a variable on [0, 1] is ½-sub-Gaussian."""
        return 0.5

    def rewards(self, expected: Array, rng: np.random.Generator) -> Array:
        """Draw a reward for each expectation: (N,) -> (N,)."""
        low, high = float(expected.min()), float(expected.max())
        if low < 0 or high > 1:
            raise ParameterError(
                f"Bernoulli rewards need expectations within [0, 1], got {low:.4g} … {high:.4g}; "
                "map the reward function into [0, 1] or use Gaussian or Uniform noise"
            )
        return (rng.random(len(expected)) < expected).astype(np.float64)


def as_noise(noise: object) -> Noise:
    """Settle a problem's `noise=`: a law, or a number for Gaussian noise."""
    if isinstance(noise, Noise) and not isinstance(noise, type):
        return noise
    if not is_real(noise):
        raise ParameterError(
            "noise must be a number, for Gaussian noise, or a law such as problems.Bernoulli(); "
            f"got {short(noise)}"
        )
    return Gaussian(as_not_negative(noise, "noise"))
