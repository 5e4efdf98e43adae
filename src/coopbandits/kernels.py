r"""How alike are two action contexts? The kernels K_x, and their algebra.

Notation: X is (n, d), Y is (m, d), one context per row; ℓ is a lengthscale, one number or one per
dimension. A kernel is any frozen value that can be called as `k(X, Y)` and asked for its
`diagonal(X)`; `a * b`, `a + b` and `0.5 * a` are kernels again.

Every kernel here also tells its `gradient(X, Y)` in x, (n, m, d), and `diagonal_gradient(X)`,
(n, d), by which points of a continuum are improved. One's own kernel may; where it does not,
`gradient_of` takes central differences.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import (
    LARGEST,
    Array,
    as_floats,
    as_not_negative,
    as_positive,
    is_listing,
    is_real,
    short,
)
from coopbandits.errors import ParameterError, ShapeError

__all__ = [
    "RBF",
    "Algebra",
    "Kernel",
    "Linear",
    "Matern",
    "Product",
    "Scaled",
    "Sum",
]

Lengthscale = float | tuple[float, ...]
# The cube root of the rounding unit balances rounding against the third derivative.
STEP = float(np.cbrt(np.finfo(np.float64).eps))


@runtime_checkable
class Kernel(Protocol):
    """A positive semidefinite function of two contexts.

    Example:
        >>> class Constant:
        ...     def __call__(self, X, Y):
        ...         return np.ones((len(X), len(Y)))
        ...
        ...     def diagonal(self, X):
        ...         return np.ones(len(X))
        >>> isinstance(Constant(), cb.kernels.Kernel)
        True
        >>> (cb.kernels.RBF() + Constant())(np.zeros((1, 2)), np.zeros((1, 2))).item()
        2.0
    """

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate every pair: (n, d), (m, d) -> (n, m)."""
        ...

    def diagonal(self, X: Array) -> Array:
        """Evaluate each context with itself: (n, d) -> (n,)."""
        ...


class Algebra:
    """The operators that every kernel shares.

    Example:
        >>> a, b = cb.kernels.RBF(), cb.kernels.Linear()
        >>> 0.5 * a + b == cb.kernels.Sum(cb.kernels.Scaled(a, 0.5), b)
        True
    """

    # numpy leaves `array * kernel` to us, and so do its numbers
    __array_ufunc__: ClassVar[None] = None

    def __mul__(self: Kernel, other: Any) -> Kernel:
        return Product(self, other) if isinstance(other, Kernel) else Scaled(self, other)

    def __rmul__(self: Kernel, other: Any) -> Kernel:
        return Scaled(self, other)

    def __add__(self: Kernel, other: Any) -> Kernel:
        return Sum(self, other)

    def __radd__(self: Kernel, other: Any) -> Kernel:
        return self if is_real(other) and other == 0 else Sum(other, self)  # sum() starts from 0


@dataclass(frozen=True, slots=True)
class Linear(Algebra):
    r"""Similarity of two action contexts under a linear reward.

    $$k(x, x') = (x / \ell)^\top (x' / \ell)$$

    k(x, x) ≤ 1, as §3 of the paper requires, only if the scaled contexts have norm at most 1.

    Args:
        lengthscale: ℓ, one number, or one for each dimension.

    Example:
        >>> X = np.array([[1.0, 2.0], [0.0, 1.0]])
        >>> cb.kernels.Linear()(X, X).tolist()
        [[5.0, 2.0], [2.0, 1.0]]
    """

    lengthscale: Lengthscale = 1.0

    def __post_init__(self) -> None:
        _settle_lengthscale(self)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate every pair: (n, d), (m, d) -> (n, m)."""
        return _scaled(X, self.lengthscale) @ _scaled(Y, self.lengthscale).T

    def diagonal(self, X: Array) -> Array:
        """Evaluate each context with itself: (n, d) -> (n,)."""
        U = _scaled(X, self.lengthscale)
        return np.einsum("ij,ij->i", U, U)

    def gradient(self, X: Array, Y: Array) -> Array:
        """Differentiate every pair by x: (n, d), (m, d) -> (n, m, d)."""
        W = _scaled(_scaled(Y, self.lengthscale), self.lengthscale)
        return np.broadcast_to(W, (len(X), *W.shape))

    def diagonal_gradient(self, X: Array) -> Array:
        """Differentiate k(x, x): (n, d) -> (n, d)."""
        return 2 * _scaled(_scaled(X, self.lengthscale), self.lengthscale)


@dataclass(frozen=True, slots=True)
class RBF(Algebra):
    r"""Similarity of two action contexts under a Gaussian bump.

    $$k(x, x') = \exp\bigl(-\lVert (x - x') / \ell \rVert^2 / 2\bigr)$$

    k(x, x) = 1, as the bounded-variance assumption of §3 requires.

    Args:
        lengthscale: ℓ, one number, or one for each dimension.

    Example:
        >>> k = cb.kernels.RBF(lengthscale=2.0)
        >>> k(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4).tolist()  # 1 and exp(−1/2)
        [[1.0, 0.6065]]
    """

    lengthscale: Lengthscale = 1.0

    def __post_init__(self) -> None:
        _settle_lengthscale(self)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate every pair: (n, d), (m, d) -> (n, m)."""
        U, W = _scaled(X, self.lengthscale), _scaled(Y, self.lengthscale)
        half_u, half_w = 0.5 * np.einsum("ij,ij->i", U, U), 0.5 * np.einsum("ij,ij->i", W, W)
        if max(half_u.max(initial=0.0), half_w.max(initial=0.0)) > _NEAR:
            K = _distances(X, Y, self.lengthscale, metric="sqeuclidean")
            K *= -0.5
        else:  # one matrix product: u·w − |u|²/2 − |w|²/2
            left = np.column_stack([U, half_u, np.ones(len(U))])
            right = np.column_stack([W, -np.ones(len(W)), -half_w])
            K = left @ right.T
            np.minimum(K, 0.0, out=K)
        np.exp(K, out=K)
        return K

    def diagonal(self, X: Array) -> Array:
        """Evaluate each context with itself: (n, d) -> (n,)."""
        return np.ones(len(X))

    def gradient(self, X: Array, Y: Array) -> Array:
        """Differentiate every pair by x: (n, d), (m, d) -> (n, m, d)."""
        return _towards(X, Y, self.lengthscale, self(X, Y))

    def diagonal_gradient(self, X: Array) -> Array:
        """Differentiate k(x, x): (n, d) -> (n, d)."""
        return np.zeros_like(X)


@dataclass(frozen=True, slots=True)
class Matern(Algebra):
    r"""Similarity of two action contexts under a function of finite smoothness ν.

    $$k(x, x') = \frac{2^{1-\nu}}{\Gamma(\nu)} z^\nu K_\nu(z), \qquad
      z = \sqrt{2\nu}\,\lVert (x - x') / \ell \rVert$$

    In closed form for ν = 1/2, 3/2 and 5/2; ν → ∞ is `RBF`, and ν ≤ 1,000 here. k(x, x) = 1.

    Args:
        nu: ν, how smooth functions are.
        lengthscale: ℓ, one number, or one for each dimension.

    Example:
        >>> k = cb.kernels.Matern(nu=0.5)
        >>> k(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4).tolist()  # 1 and exp(−1)
        [[1.0, 0.3679]]
    """

    nu: float = 2.5
    lengthscale: Lengthscale = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", as_positive(self.nu, "nu"))
        if self.nu > 1000:
            raise ParameterError(f"nu must be at most 1000, got {self.nu}; RBF is its limit")
        _settle_lengthscale(self)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate every pair: (n, d), (m, d) -> (n, m)."""
        z = np.sqrt(2 * self.nu) * _distances(X, Y, self.lengthscale, metric="euclidean")
        if self.nu == 0.5:
            return np.exp(-z)
        if self.nu == 1.5:
            return (1 + z) * np.exp(-z)
        if self.nu == 2.5:
            return (1 + z + z**2 / 3) * np.exp(-z)
        return matern_profile(z, self.nu)

    def diagonal(self, X: Array) -> Array:
        """Evaluate each context with itself: (n, d) -> (n,)."""
        return np.ones(len(X))

    def gradient(self, X: Array, Y: Array) -> Array:
        """Differentiate every pair by x: (n, d), (m, d) -> (n, m, d).

        Taken as 0 at x = y, where k has a kink if ν ≤ 1/2.
        """
        z = np.sqrt(2 * self.nu) * _distances(X, Y, self.lengthscale, metric="euclidean")
        fall = matern_fall(z, self.nu)
        fall[z <= _TOGETHER] = 0.0  # times x − y = 0, but ∞ for ν ≤ 1
        return _towards(X, Y, self.lengthscale, 2 * self.nu * fall)

    def diagonal_gradient(self, X: Array) -> Array:
        """Differentiate k(x, x): (n, d) -> (n, d)."""
        return np.zeros_like(X)


@dataclass(frozen=True, slots=True)
class Scaled(Algebra):
    """A kernel times a number ≥ 0: s·k(x, x'). Made by `s * k`.

    Args:
        kernel: k.
        scale: s.

    Example:
        >>> (0.25 * cb.kernels.RBF()).diagonal(np.zeros((2, 3))).tolist()
        [0.25, 0.25]
    """

    kernel: Kernel
    scale: float

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        object.__setattr__(self, "scale", as_not_negative(self.scale, "a kernel's scale"))

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate every pair: (n, d), (m, d) -> (n, m)."""
        return self.scale * self.kernel(X, Y)

    def diagonal(self, X: Array) -> Array:
        """Evaluate each context with itself: (n, d) -> (n,)."""
        return self.scale * self.kernel.diagonal(X)

    def gradient(self, X: Array, Y: Array) -> Array:
        """Differentiate every pair by x: (n, d), (m, d) -> (n, m, d)."""
        return self.scale * gradient_of(self.kernel, X, Y)

    def diagonal_gradient(self, X: Array) -> Array:
        """Differentiate k(x, x): (n, d) -> (n, d)."""
        return self.scale * diagonal_gradient_of(self.kernel, X)


@dataclass(frozen=True, slots=True)
class Product(Algebra):
    """The product of two kernels: a(x, x')·b(x, x'). Made by `a * b`.

    Args:
        left: a.
        right: b.

    Example:
        >>> X = np.array([[1.0], [2.0]])
        >>> (cb.kernels.Linear() * cb.kernels.Linear())(X, X).tolist()
        [[1.0, 4.0], [4.0, 16.0]]
    """

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        for part in (self.left, self.right):
            as_kernel(part)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate every pair: (n, d), (m, d) -> (n, m)."""
        return self.left(X, Y) * self.right(X, Y)

    def diagonal(self, X: Array) -> Array:
        """Evaluate each context with itself: (n, d) -> (n,)."""
        return self.left.diagonal(X) * self.right.diagonal(X)

    def gradient(self, X: Array, Y: Array) -> Array:
        """Differentiate every pair by x: (n, d), (m, d) -> (n, m, d)."""
        left, right = self.left(X, Y)[..., None], self.right(X, Y)[..., None]
        return gradient_of(self.left, X, Y) * right + left * gradient_of(self.right, X, Y)

    def diagonal_gradient(self, X: Array) -> Array:
        """Differentiate k(x, x): (n, d) -> (n, d)."""
        left, right = self.left.diagonal(X)[:, None], self.right.diagonal(X)[:, None]
        return diagonal_gradient_of(self.left, X) * right + left * diagonal_gradient_of(
            self.right, X
        )


@dataclass(frozen=True, slots=True)
class Sum(Algebra):
    """The sum of two kernels: a(x, x') + b(x, x'). Made by `a + b`.

    Args:
        left: a.
        right: b.

    Example:
        >>> (cb.kernels.RBF() + cb.kernels.Linear()).diagonal(np.array([[2.0]])).tolist()
        [5.0]
    """

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        for part in (self.left, self.right):
            as_kernel(part)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate every pair: (n, d), (m, d) -> (n, m)."""
        return self.left(X, Y) + self.right(X, Y)

    def diagonal(self, X: Array) -> Array:
        """Evaluate each context with itself: (n, d) -> (n,)."""
        return self.left.diagonal(X) + self.right.diagonal(X)

    def gradient(self, X: Array, Y: Array) -> Array:
        """Differentiate every pair by x: (n, d), (m, d) -> (n, m, d)."""
        return gradient_of(self.left, X, Y) + gradient_of(self.right, X, Y)

    def diagonal_gradient(self, X: Array) -> Array:
        """Differentiate k(x, x): (n, d) -> (n, d)."""
        return diagonal_gradient_of(self.left, X) + diagonal_gradient_of(self.right, X)


# Up to this |x/ℓ|²/2 a squared distance from products is right to 1e-13, all that exp(−d²/2) needs.
_NEAR = 500.0
# Contexts this near, in lengthscales, are one.
_TOGETHER = 1e-100


Multiplied, Added = Product, Sum  # as they were called at first


def as_kernel(value: Any) -> Kernel:
    """Check that a value is a kernel."""
    if not isinstance(value, Kernel) or isinstance(value, type):
        raise ParameterError(
            f"{short(value)} is no kernel; expected a value such as those of coopbandits.kernels"
        )
    return value


def gradient_of(kernel: Kernel, X: Array, Y: Array) -> Array:
    """Differentiate a kernel by its first context, by differences if it does not tell.

    (n, d), (m, d) -> (n, m, d).
    """
    if hasattr(kernel, "gradient"):
        return np.asarray(kernel.gradient(X, Y))
    return central_differences(lambda moved: kernel(moved, Y), X)


def diagonal_gradient_of(kernel: Kernel, X: Array) -> Array:
    """Differentiate k(x, x), by differences if the kernel does not tell: (n, d) -> (n, d)."""
    if hasattr(kernel, "diagonal_gradient"):
        return np.asarray(kernel.diagonal_gradient(X))
    return central_differences(kernel.diagonal, X)


def matern_profile(z: Array, nu: float) -> Array:
    """Evaluate 2^{1−ν}/Γ(ν)·z^ν·K_ν(z) for 0 < ν ≤ 1,000, elementwise; 1 at z = 0."""
    from scipy.special import gammaln, kve  # noqa: PLC0415 (heavy, and only for general ν)

    k = np.where(z < 1e6, 1.0, 0.0)  # for ν ≤ 1,000, far below the smallest float there
    away = (z > 1e-100) & (z < 1e6)
    u = z[away]
    # K_ν overflows for large ν where k does not, so its logarithm is climbed to from the
    # fractional part of ν: K_{μ+1}/K_μ = 2μ/u + K_{μ−1}/K_μ. kve is e^u·K: no underflow.
    order = nu % 1.0
    log_bessel, ratio = np.log(kve(order, u)), kve(order + 1, u) / kve(order, u)
    for _ in range(int(nu)):
        log_bessel += np.log(ratio)
        order += 1.0
        ratio = 2 * order / u + 1 / ratio
    log_k = (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(u) + log_bessel - u
    k[away] = np.exp(np.minimum(log_k, 0.0))
    return k


def matern_fall(z: Array, nu: float) -> Array:
    """Return how fast the profile k falls, −k'(z)/z ≥ 0, elementwise; ∞ at z = 0 if ν ≤ 1.

    k' = −2^{1−ν}/Γ(ν)·z^ν·K_{ν−1}(z), so for ν > 1 it is the profile of ν − 1 over 2(ν − 1).
    """
    from scipy.special import gamma, kve  # noqa: PLC0415 (heavy)

    if nu == 1.5:
        return np.asarray(np.exp(-z))
    if nu == 2.5:
        return np.asarray((1 + z) * np.exp(-z) / 3)
    if nu > 1:
        return matern_profile(z, nu - 1) / (2 * (nu - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        raised = z ** (nu - 1) if nu < 1 else 1.0
        fall = 2 ** (1 - nu) / gamma(nu) * raised * kve(1 - nu, z) * np.exp(-z)
    return np.where(z > _TOGETHER, np.where(z < 1e6, fall, 0.0), np.inf)


def _towards(X: Array, Y: Array, lengthscale: Lengthscale, weight: Array) -> Array:
    """Return (y − x)/ℓ² times a weight for each pair: (n, d), (m, d), (n, m) -> (n, m, d)."""
    U, W = _scaled(X, lengthscale), _scaled(Y, lengthscale)
    gaps = W[None, :, :] - U[:, None, :]
    gaps *= weight[..., None]
    return _scaled(gaps, lengthscale)


def _settle_lengthscale(kernel: Linear | RBF | Matern) -> None:
    """Check a lengthscale and store it as a float or a tuple of floats, so kernels compare."""
    given: Any = kernel.lengthscale
    settled: Lengthscale
    if hasattr(given, "__array__") and is_listing(given):
        given = as_floats(given, "the lengthscales").tolist()
    if is_listing(given):
        settled = tuple(as_positive(value, "each lengthscale") for value in given)
        if not settled:
            raise ParameterError("a lengthscale per dimension needs at least one number, got none")
    else:
        settled = as_positive(given, "lengthscale")
    if np.min(settled) < 1 / LARGEST:
        raise ParameterError(f"lengthscale must be at least {1 / LARGEST:g}, got {np.min(settled)}")
    object.__setattr__(kernel, "lengthscale", settled)


def _scaled(X: Array, lengthscale: Lengthscale) -> Array:
    if isinstance(lengthscale, tuple) and X.shape[-1] != len(lengthscale):
        raise ShapeError(
            f"the kernel has {len(lengthscale)} lengthscales, but the contexts have shape "
            f"{X.shape}; expected {len(lengthscale)} numbers per context"
        )
    return X if lengthscale == 1.0 else X / np.asarray(lengthscale)


def _distances(X: Array, Y: Array, lengthscale: Lengthscale, *, metric: str) -> Array:
    # Differences, not |x|² − 2xy + |y|²: that loses half the digits of close contexts, and a
    # Matérn-1/2 kernel shows it.
    from scipy.spatial.distance import cdist  # noqa: PLC0415 (heavy; `import coopbandits` is not)

    return cdist(_scaled(X, lengthscale), _scaled(Y, lengthscale), metric)  # type: ignore[call-overload]


def central_differences(function: Callable[[Array], Array], X: Array) -> Array:
    """Differentiate a function of rows: (n, d) -> (n, …), returned with d as the last axis.

    Right to about ten digits where the function is smooth, at the price of 2d evaluations.
    """
    size = np.abs(X).max(axis=0, initial=0.0)
    steps = STEP * np.where(size > 0, size, 1.0)
    columns = []
    for j, step in enumerate(steps):
        above, below = X.copy(), X.copy()
        above[:, j] += step
        below[:, j] -= step
        gap = above[:, j] - below[:, j]  # what rounding has left of twice the step
        change = function(above) - function(below)
        columns.append(change / gap.reshape(-1, *[1] * (change.ndim - 1)))
    return np.stack(columns, axis=-1)
