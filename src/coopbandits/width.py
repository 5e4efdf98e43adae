r"""How sure am I? The width w that multiplies σ in the upper bound mean + w·σ.

Every width answers for what an agent knows at a query: L = log det(I + K/λ) (so the information
gain is L/2), the number n of its observations, the ridge λ, and the number V of agents for which
the bound must hold at once (1 for an agent that listens to nobody). All arrays are (m,).

σ is the posterior's standard deviation, σ² = K(x̃, x̃) − κᵀ(K + λI)⁻¹κ. docs/widths.md says how w
relates to the η, α, β and √β of each algorithm.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import Array, IntArray, as_not_negative, as_positive, short
from coopbandits.errors import ParameterError

__all__ = [
    "Fixed",
    "InformationGain",
    "Logarithmic",
    "Mixture",
    "SelfNormalised",
    "Srinivas",
    "Width",
]


@runtime_checkable
class Width(Protocol):
    """A factor for σ.

    Example:
        >>> class Fading:
        ...     def factor(self, *, logdet, count, ridge, agents):
        ...         return 2.0 / np.sqrt(1.0 + count)
        >>> isinstance(Fading(), cb.width.Width)
        True
    """

    def factor(self, *, logdet: Array, count: IntArray, ridge: float, agents: IntArray) -> Array:
        """Return w at each of m queries: (m,)."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    r"""w = η/√λ, the tunable width of Algorithm 1.

    With the linear kernel η is LinUCB's α, for every λ: (η/√λ)·σ = η·√(xᵀA⁻¹x), A = λI + XᵀX.

    Guarantees nothing: η is to be tuned.

    Args:
        eta: η.

    Example:
        >>> width = cb.width.Fixed(eta=0.5)
        >>> nothing = np.zeros(1)
        >>> width.factor(logdet=nothing, count=nothing, ridge=4.0, agents=nothing + 1).tolist()
        [0.25]
    """

    eta: float = 1.0

    def __post_init__(self) -> None:
        _settle(self)

    def factor(self, *, logdet: Array, count: IntArray, ridge: float, agents: IntArray) -> Array:
        """Return w at each of m queries: (m,)."""
        return np.full(len(logdet), self.eta / np.sqrt(ridge))


@dataclass(frozen=True, slots=True)
class SelfNormalised:
    r"""w = B + (R/√λ)·√(log det(I + K/λ) + 2 ln(V/δ)).

    Guarantee: if F has norm at most B in the RKHS of the kernel K in use and the noise is
    independent and R-sub-Gaussian, then with probability at least 1 − δ, |F − mean| ≤ w·σ at every
    context, in every round and for all agents that learn from others at once; for every λ > 0. An
    agent that learns from nobody else has V = 1 and holds its bound by itself. With the linear
    kernel this is OFUL. Not covered: a K_z that is learnt, and delays that depend on rewards.

    Deviation from the paper: Lemma 1 multiplies σ², omits 1/√λ and the 1/λ in the determinant; the
    theorem that it cites has σ, and the rest follows for any λ (docs/widths.md).

    Args:
        norm: B, a bound on the norm of F in the RKHS of K.
        noise: R, the noise is R-sub-Gaussian.
        delta: δ, the probability with which the bound may fail.

    Example:
        >>> width = cb.width.SelfNormalised(norm=2.0, noise=0.0)
        >>> nothing = np.zeros(1)
        >>> width.factor(logdet=nothing, count=nothing, ridge=1.0, agents=nothing + 1).tolist()
        [2.0]
    """

    norm: float = 1.0
    noise: float = 1.0
    delta: float = 0.05

    def __post_init__(self) -> None:
        _settle(self)

    def factor(self, *, logdet: Array, count: IntArray, ridge: float, agents: IntArray) -> Array:
        """Return w at each of m queries: (m,)."""
        spread = np.sqrt(logdet + 2 * (np.log(agents) - np.log(self.delta)))
        return self.norm + self.noise / np.sqrt(ridge) * spread


@dataclass(frozen=True, slots=True)
class Mixture:
    r"""w = √(B² + (R²/λ)·(log det(I + K/λ) + 2 ln(V/δ))), by martingale mixtures.

    The same two parts as in `SelfNormalised`, under one root: never wider than that, and narrower
    by up to √2 (where both parts are equal).

    Guarantee: as `SelfNormalised`, word for word. From Flynn, Reeb, Kandemir & Peters 2023, for
    kernels Flynn & Reeb 2024; docs/widths.md has the proof.

    Args:
        norm: B, a bound on the norm of F in the RKHS of K.
        noise: R, the noise is R-sub-Gaussian.
        delta: δ, the probability with which the bound may fail.

    Example:
        >>> one, other = cb.width.Mixture(norm=2.0), cb.width.SelfNormalised(norm=2.0)
        >>> at = dict(logdet=np.ones(1), count=np.ones(1), ridge=1.0, agents=np.ones(1))
        >>> bool((one.factor(**at) < other.factor(**at)).all())
        True
    """

    norm: float = 1.0
    noise: float = 1.0
    delta: float = 0.05

    def __post_init__(self) -> None:
        _settle(self)

    def factor(self, *, logdet: Array, count: IntArray, ridge: float, agents: IntArray) -> Array:
        """Return w at each of m queries: (m,)."""
        spread = logdet + 2 * (np.log(agents) - np.log(self.delta))
        return np.hypot(self.norm, self.noise / np.sqrt(ridge) * np.sqrt(spread))


@dataclass(frozen=True, slots=True)
class InformationGain:
    r"""w = B + R·√(2(Υ + 1 + ln(1/δ))), IGP-UCB's β (Chowdhury & Gopalan 2017, Theorem 2).

    Υ is the information gain: realised, ½ log det(I + K/λ), or `gain(n)`, a bound on the largest
    gain of n observations.

    Guarantee: as `SelfNormalised`, for one agent (no union over V) and λ ≥ 1; their theorem takes
    λ = 1 + 2/T. Below λ = 1 the noise term lacks its factor 1/√λ and nothing is guaranteed.

    Args:
        norm: B, a bound on the norm of F in the RKHS of K.
        noise: R, the noise is R-sub-Gaussian.
        delta: δ, the probability with which the bound may fail.
        gain: A bound on the largest information gain of n observations, as a function of n; the
            realised gain, if not given.

    Example:
        >>> width = cb.width.InformationGain(noise=0.1, gain=lambda n: 3 * np.log(1 + n))
        >>> many, few = (
        ...     width.factor(logdet=np.zeros(1), count=np.array([n]), ridge=1.0, agents=np.ones(1))
        ...     for n in (100, 10)
        ... )
        >>> bool(many > few)
        True
    """

    norm: float = 1.0
    noise: float = 1.0
    delta: float = 0.05
    gain: Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        _settle(self)

    def factor(self, *, logdet: Array, count: IntArray, ridge: float, agents: IntArray) -> Array:
        """Return w at each of m queries: (m,)."""
        gain = _gains(self.gain, logdet, count)
        return self.norm + self.noise * np.sqrt(2 * (gain + 1 - np.log(self.delta)))


@dataclass(frozen=True, slots=True)
class Srinivas:
    r"""w = √β, β = 2B² + 300·Υ·ln³(t/δ), GP-UCB's in an RKHS (Srinivas et al. 2010, Theorem 3).

    t = n + 1, the number of the decision for an agent with n observations; Υ as in
    `InformationGain`.

    Guarantee: with probability at least 1 − δ, |F − mean| ≤ w·σ in every round, for one agent, if
    F has norm at most B, the noise is bounded by √λ (λ is the noise variance of their model, so
    set `ridge` to the square of the noise's bound), and `gain` bounds the largest information gain;
    with the realised gain it is a heuristic. The constant is very large in practice.

    Deviation from the paper: Remark 1 prints 2B; the theorem has the squared norm.

    Args:
        norm: B, a bound on the norm of F in the RKHS of K.
        delta: δ, the probability with which the bound may fail.
        gain: A bound on the largest information gain of n observations, as a function of n; the
            realised gain, if not given.

    Example:
        >>> width = cb.width.Srinivas(norm=3.0)
        >>> nothing = np.zeros(1)
        >>> first = width.factor(logdet=nothing, count=nothing, ridge=1.0, agents=nothing + 1)
        >>> bool(np.isclose(first**2, 2 * 3.0**2))
        True
    """

    norm: float = 1.0
    delta: float = 0.05
    gain: Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        _settle(self)

    def factor(self, *, logdet: Array, count: IntArray, ridge: float, agents: IntArray) -> Array:
        """Return w at each of m queries: (m,)."""
        gain = _gains(self.gain, logdet, count)
        log_t = np.log(count + 1) - np.log(self.delta)
        return np.sqrt(2 * self.norm**2 + 300 * gain * log_t**3)


@dataclass(frozen=True, slots=True)
class Logarithmic:
    r"""w = (α/√λ)·√(ln(t + 1)), the tunable width of GoB.Lin (Cesa-Bianchi et al. 2013, 5).

    t = n + 1, the number of the decision for an agent with n observations. With the linear kernel
    w·σ = α·√(xᵀA⁻¹x·ln(t + 1)), A = λI + Σxxᵀ, for every λ.

    Guarantees nothing: α is to be tuned.

    Args:
        alpha: α.

    Example:
        >>> width = cb.width.Logarithmic(alpha=0.5)
        >>> nothing = np.zeros(1)
        >>> first = width.factor(logdet=nothing, count=nothing, ridge=1.0, agents=nothing + 1)
        >>> bool(np.isclose(first, 0.5 * np.sqrt(np.log(2))))
        True
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        _settle(self)

    def factor(self, *, logdet: Array, count: IntArray, ridge: float, agents: IntArray) -> Array:
        """Return w at each of m queries: (m,)."""
        return self.alpha / np.sqrt(ridge) * np.sqrt(np.log(count + 2.0))


def chosen_width(eta: float | None, width: Width | None) -> Width:
    """Settle a policy's `eta=` and `width=`: one of them, or the default `Fixed(1.0)`."""
    if eta is not None and width is not None:
        raise ParameterError(
            f"eta={short(eta)} is short for width=Fixed(eta), but width={short(width)} is given "
            "too; give one of them"
        )
    if width is None:
        return Fixed(1.0 if eta is None else eta)
    return width


def as_delta(value: object) -> float:
    """Check δ, the probability with which a bound may fail."""
    delta = as_positive(value, "delta")
    if delta >= 1:
        raise ParameterError(f"delta must be a probability below 1, got {delta}")
    return delta


def _settle(width: Any) -> None:
    """Check the settings of a width, which bear the same names in all of them."""
    for name in (one.name for one in fields(width)):
        value = getattr(width, name)
        if name == "gain":
            _check_gain(value)
        else:
            settled = as_delta(value) if name == "delta" else as_not_negative(value, name)
            object.__setattr__(width, name, settled)


def _check_gain(gain: object) -> None:
    if gain is not None and not callable(gain):
        raise ParameterError(
            f"gain must be a function of the number of observations, or None for the realised "
            f"information gain; got {short(gain)}"
        )


def _gains(gain: Callable[[int], float] | None, logdet: Array, count: IntArray) -> Array:
    if gain is None:
        return 0.5 * logdet
    bounds = {int(n): as_not_negative(gain(int(n)), f"gain({n})") for n in np.unique(count)}
    return np.array([bounds[int(n)] for n in count])
