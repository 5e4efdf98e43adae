r"""How much can a kernel change over a box? Bounds that hold for certain, up to rounding.

A box is its centre c and half-widths h; δ stands for x − c, and y for one of n fixed contexts. Over
each of m boxes k(·, y) is enclosed by its values, |∇kᵀδ| ≤ `slope` and −`fall` ≤ δᵀ∇²k δ ≤ `rise`,
for x and δ anywhere in the box.

A stationary kernel is φ(z), z² = s·Σ((x − y)/ℓ)², with s = 1 (RBF) or 2ν (Matérn). With
t = −φ'/z ≥ 0, which falls with z, and u = −zt' ≥ 0, which rises to one peak and falls,

    δᵀ∇²k δ = u(z)·e∥² − t(z)·|e|²,      e = √s·δ/ℓ, e∥ its part along x − y

so that z between the nearest and the furthest point of a box bounds it. Sums and products follow by
the rules of derivatives.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from coopbandits.arrays import Array, short
from coopbandits.errors import ParameterError
from coopbandits.kernels import (
    RBF,
    Kernel,
    Linear,
    Matern,
    Product,
    Scaled,
    Sum,
    matern_fall,
    matern_profile,
)


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Bounds of k(·, y) over m boxes for n contexts: all (m, n)."""

    low: Array
    high: Array
    slope: Array
    fall: Array
    rise: Array


def enclosed(kernel: Kernel, C: Array, H: Array, Y: Array) -> Enclosure:
    """Enclose a kernel over boxes: centres (m, d), half-widths (m, d), contexts (n, d)."""
    match kernel:
        case RBF() | Matern():
            return _radial(kernel, C, H, Y)
        case Linear():
            weights = Y / np.asarray(kernel.lengthscale) ** 2
            middle, slope = C @ weights.T, H @ np.abs(weights).T
            none = np.zeros_like(middle)
            return Enclosure(middle - slope, middle + slope, slope, none, none)
        case Scaled():
            part, s = enclosed(kernel.kernel, C, H, Y), kernel.scale
            if s == 0:
                none = np.zeros_like(part.low)
                return Enclosure(none, none, none, none, none)
            return Enclosure(
                s * part.low, s * part.high, s * part.slope, s * part.fall, s * part.rise
            )
        case Sum():
            a, b = enclosed(kernel.left, C, H, Y), enclosed(kernel.right, C, H, Y)
            return Enclosure(
                a.low + b.low,
                a.high + b.high,
                a.slope + b.slope,
                a.fall + b.fall,
                a.rise + b.rise,
            )
        case Product():
            return _product(enclosed(kernel.left, C, H, Y), enclosed(kernel.right, C, H, Y))
    raise ParameterError(
        f"{short(kernel)} has no certified bounds; expected a kernel of coopbandits.kernels, its "
        "sums, products and multiples, or give the best values yourself: "
        "problems.continuum_functions(…, best=…)"
    )


def fourth_moment(kernel: Kernel, H: Array) -> Array:
    """Return the largest ∂_δ²∂_δ'² k(x, x') at x = x' of boxes, ∞ if there is none: (m, d) -> (m,).

    Its root times ‖f‖ bounds |δᵀ∇²f δ| for every f of the kernel's RKHS; it is the fourth moment of
    δᵀω under the spectral law of a stationary kernel.
    """
    fourth = _moments(kernel, H)[2]
    return np.where(np.isnan(fourth), np.inf, fourth)


def finest(kernel: Kernel, dim: int) -> Array:
    """Return the smallest lengthscale in each dimension: (d,)."""
    match kernel:
        case RBF() | Matern() | Linear():
            return np.broadcast_to(np.asarray(kernel.lengthscale, dtype=np.float64), (dim,))
        case Scaled():
            return finest(kernel.kernel, dim)
        case Sum() | Product():
            return np.minimum(finest(kernel.left, dim), finest(kernel.right, dim))
    return np.ones(dim)


def _radial(kernel: RBF | Matern, C: Array, H: Array, Y: Array) -> Enclosure:
    scale = np.asarray(kernel.lengthscale)
    steep = 2 * kernel.nu if isinstance(kernel, Matern) else 1.0
    gaps = np.abs(C[:, None, :] - Y[None, :, :]) / scale
    reach = (H / scale)[:, None, :]
    near = np.sqrt(steep * (np.maximum(gaps - reach, 0.0) ** 2).sum(axis=2))
    far = np.sqrt(steep * ((gaps + reach) ** 2).sum(axis=2))
    size = steep * (reach**2).sum(axis=2)  # |e|² at a corner
    profile = _Profile(None if isinstance(kernel, RBF) else kernel.nu)
    falls, least = profile.fall(near), profile.fall(far)
    turn = profile.turn(np.clip(profile.peak, near, far))
    with np.errstate(invalid="ignore"):
        slope = np.where(size > 0, np.sqrt(size) * far * falls, 0.0)
        fall = np.where(size > 0, size * falls, 0.0)
        rise = np.where(size > 0, size * np.maximum(turn - least, 0.0), 0.0)
    return Enclosure(profile(far), profile(near), slope, fall, rise)


def _product(a: Enclosure, b: Enclosure) -> Enclosure:
    ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    cross = 2 * _times(a.slope, b.slope)
    one, other = _scaled_curve(a, b), _scaled_curve(b, a)
    size_a = np.maximum(np.abs(a.low), np.abs(a.high))
    size_b = np.maximum(np.abs(b.low), np.abs(b.high))
    return Enclosure(
        np.minimum.reduce(ends),
        np.maximum.reduce(ends),
        _times(size_a, b.slope) + _times(size_b, a.slope),
        one[0] + other[0] + cross,
        one[1] + other[1] + cross,
    )


def _scaled_curve(a: Enclosure, b: Enclosure) -> tuple[Array, Array]:
    """Bound a·δᵀ∇²b δ: how far it falls, how far it rises."""
    up, down = np.maximum(a.high, 0.0), np.maximum(-a.low, 0.0)
    return (
        np.maximum(_times(up, b.fall), _times(down, b.rise)),
        np.maximum(_times(up, b.rise), _times(down, b.fall)),
    )


def _times(a: Array, b: Array) -> Array:
    """Multiply where 0·∞ is 0."""
    with np.errstate(invalid="ignore"):
        return np.where((a == 0) | (b == 0), 0.0, a * b)


def _moments(kernel: Kernel, H: Array) -> tuple[Array, Array, Array]:
    """Return the largest even moments of δᵀω, as sup k(x, x) for the order 0: each (m,)."""
    never, none = np.full(len(H), np.inf), np.zeros(len(H))
    match kernel:
        case RBF() | Matern():
            size = ((H / np.asarray(kernel.lengthscale)) ** 2).sum(axis=1)
            nu = kernel.nu if isinstance(kernel, Matern) else np.inf
            second = (1.0 if nu == np.inf else nu / (nu - 1)) * size if nu > 1 else never
            if nu == np.inf:
                return none + 1.0, second, 3 * size**2
            return (
                none + 1.0,
                second,
                3 * nu**2 / (nu - 1) / (nu - 2) * size**2 if nu > 2 else never,
            )
        case Linear():  # its second derivatives are 0; it has no largest value without a box
            return never, never, none
        case Scaled():
            zeroth, second, fourth = _moments(kernel.kernel, H)
            s = kernel.scale
            return _times(none + s, zeroth), _times(none + s, second), _times(none + s, fourth)
        case Sum():
            a, b = _moments(kernel.left, H), _moments(kernel.right, H)
            return a[0] + b[0], a[1] + b[1], a[2] + b[2]
        case Product():
            a, b = _moments(kernel.left, H), _moments(kernel.right, H)
            with np.errstate(invalid="ignore"):
                return (
                    a[0] * b[0],
                    a[0] * b[1] + a[1] * b[0],
                    a[0] * b[2] + 6 * a[1] * b[1] + a[2] * b[0],
                )
    return never, never, never


@dataclass(frozen=True)
class _Profile:
    """φ, t = −φ'/z and u = −zt' of a stationary kernel; ν is None for RBF."""

    nu: float | None

    def __call__(self, z: Array) -> Array:
        if self.nu is None:
            return np.exp(-0.5 * z**2)
        if self.nu == 1.5:
            return (1 + z) * np.exp(-z)
        if self.nu == 2.5:
            return (1 + z + z**2 / 3) * np.exp(-z)
        return np.exp(-z) if self.nu == 0.5 else matern_profile(z, self.nu)

    def fall(self, z: Array) -> Array:
        return np.exp(-0.5 * z**2) if self.nu is None else matern_fall(z, self.nu)

    def turn(self, z: Array) -> Array:
        if self.nu is None:
            return z**2 * np.exp(-0.5 * z**2)
        if self.nu > 1:
            below = matern_fall(np.maximum(z, 1e-99), self.nu - 1)
            return np.where(z > 0, z**2 * below / (2 * (self.nu - 1)), 0.0)
        from scipy.special import gamma, kve  # noqa: PLC0415 (heavy)

        with np.errstate(divide="ignore", invalid="ignore"):
            raised = 2 ** (1 - self.nu) / gamma(self.nu) * z**self.nu
            turn = raised * kve(2 - self.nu, z) * np.exp(-z)
        return np.where(z > 0, np.where(z < 1e6, turn, 0.0), np.inf)

    @property
    def peak(self) -> float:
        return np.sqrt(2.0) if self.nu is None else _matern_peak(self.nu)


@lru_cache(maxsize=32)
def _matern_peak(nu: float) -> float:
    """Where u ∝ z^ν·K_|ν−2|(z) is highest: (ν − b)·K_b = z·K_{b−1}, b = |ν − 2|; 0 for ν ≤ 1."""
    from scipy.special import kve  # noqa: PLC0415 (heavy)

    order = abs(nu - 2)
    if nu <= order:
        return 0.0
    low, high = 0.0, 2 * nu + 10
    for _ in range(80):  # the ratio z·K_{b−1}/K_b rises with z
        z = 0.5 * (low + high)
        ratio = z * kve(abs(order - 1), z) / kve(order, z)
        low, high = (z, high) if not ratio >= nu - order else (low, z)
    return high
