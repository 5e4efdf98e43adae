r"""Which numbers stand for a context? Finite features φ with φ(x)ᵀφ(x') = k(x, x'), or nearly.

With m features all that an agent's observations say about its reward function is in sums of size
m² (`gp/statistics.py`), however many they are. A basis turns a kernel into features:

| basis | k(x, x') | for |
|---|---|---|
| `Exact` | φ(x)ᵀφ(x') | linear kernels, tables of arms, their multiples, sums and products; m = d |
| `Fourier` | ≈ φ(x)ᵀφ(x'), error ~ m^(−1/2) | RBF, Matérn, their products, sums, multiples |
| `Nystrom` | the best φ(x)ᵀφ(x') that a reference sample can give | any kernel |
| `Leading` | the first few of another basis | a coarse view |

`reference` chooses a reference sample for `Nystrom` from contexts.

Agents that exchange news agree on the basis before they start: it is part of the policy.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coopbandits.arms import ActiveDimensions, Table
from coopbandits.arrays import (
    Array,
    ByContent,
    as_contexts,
    as_count,
    as_fixed_seed,
    as_not_negative,
    check_size,
    frozen,
    short,
)
from coopbandits.errors import ParameterError, ShapeError
from coopbandits.kernels import (
    RBF,
    Kernel,
    Linear,
    Matern,
    Product,
    Scaled,
    Sum,
    as_kernel,
    central_differences,
    gradient_of,
)

__all__ = [
    "Basis",
    "Exact",
    "Fourier",
    "Leading",
    "Nystrom",
    "reference",
]

# Eigenvalues of a reference sample's Gram matrix below this, relative to the largest, are rounding.
_RANK_TOLERANCE = 1e-10
# Sums of so many features take 34 GB.
_MOST_FEATURES = 2**16


@runtime_checkable
class Basis(Protocol):
    """A way to turn a kernel into finite features.

    Example:
        >>> isinstance(cb.features.Fourier(16), cb.features.Basis)
        True
    """

    def features(self, kernel: Kernel, X: Array) -> Array:
        """Return φ at n contexts: (n, d) -> (n, m)."""
        ...

    def size(self, kernel: Kernel, dim: int) -> int:
        """Return m for contexts of d numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Exact:
    """The features of a kernel that has finitely many.

    A linear kernel has m = d, a table of arms its rank; those of a sum stand side by side, those of
    a product are all products. So separate linear arms have φ = e_a ⊗ x, m = A·d.

    Example:
        >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> phi = cb.features.Exact().features(cb.kernels.Linear(), X)
        >>> bool((phi @ phi.T == cb.kernels.Linear()(X, X)).all())
        True
    """

    def features(self, kernel: Kernel, X: Array) -> Array:
        """Return φ at n contexts: (n, d) -> (n, m)."""
        match kernel:
            case Linear():
                return X if kernel.lengthscale == 1.0 else X / np.asarray(kernel.lengthscale)
            case Scaled():
                return np.sqrt(kernel.scale) * self.features(kernel.kernel, X)
            case Sum():
                return np.hstack([self.features(part, X) for part in (kernel.left, kernel.right)])
            case Product():
                left, right = (self.features(part, X) for part in (kernel.left, kernel.right))
                return np.einsum("ni,nj->nij", left, right).reshape(len(X), -1)
            case ActiveDimensions():
                return self.features(kernel.kernel, kernel.part(X))
            case Table():
                return np.asarray(kernel.root[kernel.arms(X)])
        raise ParameterError(
            f"{short(kernel)} has no finite exact features; expected a linear kernel, or take the "
            "basis Fourier(…) or Nystrom(…) of coopbandits.features"
        )

    def jacobian(self, kernel: Kernel, X: Array) -> Array:
        """Differentiate φ at n contexts: (n, d) -> (n, m, d)."""
        n = len(X)
        match kernel:
            case Scaled():
                return np.sqrt(kernel.scale) * self.jacobian(kernel.kernel, X)
            case Sum():
                parts = [self.jacobian(part, X) for part in (kernel.left, kernel.right)]
                return np.concatenate(parts, axis=1)
            case Product():
                left, right = (self.features(part, X) for part in (kernel.left, kernel.right))
                one, other = (self.jacobian(part, X) for part in (kernel.left, kernel.right))
                both = one[:, :, None] * right[:, None, :, None]
                both = both + left[:, :, None, None] * other[:, None]
                return both.reshape(n, -1, X.shape[1])
            case ActiveDimensions():
                return kernel.spread(self.jacobian(kernel.kernel, kernel.part(X)), X.shape[1])
            case Table():
                return np.zeros((n, kernel.root.shape[1], 1))
        linear = self.features(kernel, np.eye(X.shape[1])).T  # φ(x) = linear·x
        return np.broadcast_to(linear, (n, *linear.shape))

    def size(self, kernel: Kernel, dim: int) -> int:
        """Return m for contexts of d numbers."""
        match kernel:
            case Scaled():
                return self.size(kernel.kernel, dim)
            case Sum():
                return self.size(kernel.left, dim) + self.size(kernel.right, dim)
            case Product():
                return self.size(kernel.left, dim) * self.size(kernel.right, dim)
            case ActiveDimensions():
                return self.size(kernel.kernel, kernel.width(dim))
            case Table():
                return int(kernel.root.shape[1])
        return dim


@dataclass(frozen=True, slots=True)
class Fourier:
    r"""Random waves whose frequencies follow the kernel's spectral law (Rahimi & Recht 2007).

    $$\varphi(x) = \sqrt{2/m}\,[\cos \omega_i^\top x, \sin \omega_i^\top x]_{i \le m/2}$$

    Frequencies come in orthogonal blocks of d, which lowers the error of as many independent ones
    (Yu et al. 2016). |φ(x)|² = k(x, x) exactly. A sum of kernels gets m features for each part.

    Args:
        count: m, even.
        seed: Of the frequencies; the same for all agents that talk to each other.

    Example:
        >>> phi = cb.features.Fourier(64).features(cb.kernels.RBF(), np.ones((3, 2)))
        >>> phi.shape, bool(np.allclose((phi**2).sum(axis=1), 1.0))
        ((3, 64), True)
    """

    count: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        count = as_count(self.count, "the number of features", least=2)
        if count > _MOST_FEATURES:
            raise ParameterError(
                f"{count:,} features are too many: an agent's sums of m² numbers would take "
                f"{8e-9 * count**2:,.3g} GB; expected at most {_MOST_FEATURES:,}"
            )
        if count % 2:
            raise ParameterError(f"the number of features must be even, got {count}")
        object.__setattr__(self, "count", count)
        why = "it is part of the policy, the same for all agents that talk to each other"
        object.__setattr__(self, "seed", as_fixed_seed(self.seed, why))

    def features(self, kernel: Kernel, X: Array) -> Array:
        """Return φ at n contexts: (n, d) -> (n, m)."""
        return np.hstack(
            [np.sqrt(weight) * self._waves(factors, X) for weight, factors in _terms(kernel)]
        )

    def jacobian(self, kernel: Kernel, X: Array) -> Array:
        """Differentiate φ at n contexts: (n, d) -> (n, m, d)."""
        return np.concatenate(
            [np.sqrt(weight) * self._rise(factors, X) for weight, factors in _terms(kernel)], axis=1
        )

    def size(self, kernel: Kernel, dim: int) -> int:
        """Return m for contexts of d numbers."""
        return sum(
            dim if isinstance(factors[0], Linear) else self.count for _, factors in _terms(kernel)
        )

    def _waves(self, factors: tuple[Kernel, ...], X: Array) -> Array:
        if isinstance(factors[0], Linear):
            return Exact().features(factors[0], X)
        omega = _frequencies(factors, X.shape[1], self.count // 2, self.seed)
        phase = np.asarray(X @ omega.T)
        return np.sqrt(2 / self.count) * np.hstack([np.cos(phase), np.sin(phase)])

    def _rise(self, factors: tuple[Kernel, ...], X: Array) -> Array:
        if isinstance(factors[0], Linear):
            return Exact().jacobian(factors[0], X)
        omega = _frequencies(factors, X.shape[1], self.count // 2, self.seed)
        phase = np.asarray(X @ omega.T)
        turned = np.sqrt(2 / self.count) * np.hstack([-np.sin(phase), np.cos(phase)])
        return np.asarray(turned[:, :, None] * np.vstack([omega, omega]))


@dataclass(frozen=True, eq=False, init=False)
class Nystrom(ByContent):
    r"""Features from a reference sample R of contexts, for any kernel.

    $$\varphi(x) = K_{RR}^{-1/2} k_R(x), \qquad
      \varphi(x)^\top\varphi(x') = k_R(x)^\top K_{RR}^{-1} k_R(x')$$

    Exact at the reference contexts; |φ(x)|² ≤ k(x, x) elsewhere.

    Args:
        reference: (m, d) the reference contexts, such as those that `reference` chooses.

    Example:
        >>> R, k = np.array([[0.0], [1.0]]), cb.kernels.RBF()
        >>> phi = cb.features.Nystrom(R).features(k, R)
        >>> bool(np.allclose(phi @ phi.T, k(R, R)))
        True
    """

    reference: Array

    def __init__(self, reference: object) -> None:
        given = as_contexts(reference, "the reference contexts")
        object.__setattr__(self, "reference", frozen(given.copy()))

    def features(self, kernel: Kernel, X: Array) -> Array:
        """Return φ at n contexts: (n, d) -> (n, m)."""
        if X.shape[1] != self.reference.shape[1]:
            raise ShapeError(
                f"the reference contexts have {self.reference.shape[1]} numbers, but the contexts "
                f"have {X.shape[1]}; expected the same"
            )
        W = _whitening(kernel, self)  # type: ignore[arg-type]
        return np.asarray(as_kernel(kernel)(X, self.reference) @ W)

    def jacobian(self, kernel: Kernel, X: Array) -> Array:
        """Differentiate φ at n contexts: (n, d) -> (n, m, d)."""
        W = _whitening(kernel, self)  # type: ignore[arg-type]
        return np.asarray(W.T @ gradient_of(kernel, X, self.reference))

    def whitening(self, kernel: Kernel) -> Array:
        """Return W with WWᵀ = K_RR⁻¹ and φ(x) = Wᵀk_R(x): (|R|, m)."""
        return _whitening(kernel, self)  # type: ignore[arg-type]

    def size(self, kernel: Kernel, dim: int) -> int:
        """Return m for contexts of d numbers."""
        return int(_whitening(kernel, self).shape[1])  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Leading:
    """The first features of another basis: for `Nystrom` those that vary most over its reference.

    Args:
        basis: The other one.
        count: How many.

    Example:
        >>> basis = cb.features.Leading(cb.features.Fourier(64), count=8)
        >>> basis.size(cb.kernels.RBF(), dim=2)
        8
    """

    basis: Basis
    count: int = 12

    def __post_init__(self) -> None:
        if as_basis(self.basis) is None:
            raise ParameterError(
                "None is no basis of features; expected a value such as "
                "coopbandits.features.Fourier()"
            )
        object.__setattr__(self, "count", as_count(self.count, "the number of features"))

    def features(self, kernel: Kernel, X: Array) -> Array:
        """Return φ at n contexts: (n, d) -> (n, m)."""
        return self.basis.features(kernel, X)[:, : self.count]

    def jacobian(self, kernel: Kernel, X: Array) -> Array:
        """Differentiate φ at n contexts: (n, d) -> (n, m, d)."""
        return jacobian_of(self.basis, kernel, X)[:, : self.count]

    def size(self, kernel: Kernel, dim: int) -> int:
        """Return m for contexts of d numbers."""
        return min(self.count, self.basis.size(kernel, dim))


class Remembered:
    """A basis that remembers the features of the contexts it was asked about last.

    A decision set is asked about twice, for the posterior and for what K_z is estimated from.
    """

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        self._last: tuple[Array, Array] = np.empty((0, 0)), np.empty((0, 0))

    def features(self, kernel: Kernel, X: Array) -> Array:
        """Return φ at n contexts: (n, d) -> (n, m)."""
        asked, phi = self._last
        if asked is not X:
            phi = self._basis.features(kernel, X)
            phi.setflags(write=False)
            self._last = X, phi
        return phi

    def size(self, kernel: Kernel, dim: int) -> int:
        """Return m for contexts of d numbers."""
        return self._basis.size(kernel, dim)


def reference(kernel: Kernel, contexts: Array, most: int = 64, tolerance: float = 1e-4) -> Nystrom:
    """Choose reference contexts for `Nystrom` from a sample: (n, d).

    One by one, each the context that those before it tell least about (a pivoted Cholesky factor of
    the Gram matrix), until the least known variance is below the tolerance, relative to the largest
    K(x, x).

    Args:
        kernel: K_x.
        contexts: The sample.
        most: How many to choose at most.
        tolerance: When to stop.

    Example:
        >>> contexts = np.array([[0.0], [0.0], [5.0]])
        >>> cb.features.reference(cb.kernels.RBF(), contexts).reference.tolist()  # each once
        [[0.0], [5.0]]
    """
    pool = as_contexts(contexts, "the sample of contexts")
    as_kernel(kernel)
    most = min(as_count(most, "most"), len(pool))
    least = as_not_negative(tolerance, "tolerance")
    check_size(
        len(pool), most, what="choosing reference contexts", advice="take a smaller sample or most="
    )
    left = np.asarray(kernel.diagonal(pool), dtype=np.float64).copy()
    largest = left.max()
    L = np.zeros((len(pool), most))
    chosen: list[int] = []
    for k in range(most):
        pivot = int((left >= left.max() - 1e-9 * largest).argmax())
        if left[pivot] <= least * largest:
            break
        column = kernel(pool, pool[pivot : pivot + 1])[:, 0] - L[:, :k] @ L[pivot, :k]
        L[:, k] = column / np.sqrt(left[pivot])
        left = np.maximum(left - L[:, k] ** 2, 0.0)
        chosen.append(pivot)
    return Nystrom(pool[chosen or [0]])


def as_basis(value: Any) -> Basis | None:
    """Check a `features=`: a basis, or None for one that fits."""
    if value is None or (isinstance(value, Basis) and not isinstance(value, type)):
        return value
    raise ParameterError(
        f"{short(value)} is no basis of features; expected a value such as "
        "coopbandits.features.Fourier()"
    )


def jacobian_of(basis: Basis, kernel: Kernel, X: Array) -> Array:
    """Differentiate a basis' features, by differences if it does not tell: (n, d) -> (n, m, d)."""
    if hasattr(basis, "jacobian"):
        return np.asarray(basis.jacobian(kernel, X))
    return central_differences(lambda moved: basis.features(kernel, moved), X)


def exact_or(kernel: Kernel, basis: Basis | None, otherwise: Basis) -> Basis:
    """Settle a `features=`: the one given, exact features where there are some, or another."""
    if basis is not None:
        return basis
    if is_finite(kernel):
        return Exact()
    otherwise.size(kernel, 1)  # a kernel that it cannot take raises here, before the start
    return otherwise


def is_finite(kernel: Kernel) -> bool:
    """Tell whether a kernel has finitely many features, exactly."""
    match kernel:
        case Linear() | Table():
            return True
        case Scaled() | ActiveDimensions():
            return is_finite(kernel.kernel)
        case Sum() | Product():
            return is_finite(kernel.left) and is_finite(kernel.right)
    return False


def has_waves(kernel: Kernel) -> bool:
    """Tell whether a kernel has Fourier features."""
    try:
        _terms(kernel)
    except ParameterError:
        return False
    return True


def _terms(kernel: Kernel) -> list[tuple[float, tuple[Kernel, ...]]]:
    """Write a kernel as a weighted sum of products of stationary kernels, or of linear ones."""
    match kernel:
        case RBF() | Matern() | Linear():
            return [(1.0, (kernel,))]
        case Scaled():
            return [(kernel.scale * weight, factors) for weight, factors in _terms(kernel.kernel)]
        case Sum():
            return [*_terms(kernel.left), *_terms(kernel.right)]
        case Product():
            product = [
                (one * other, (*left, *right))
                for one, left in _terms(kernel.left)
                for other, right in _terms(kernel.right)
            ]
            if not any(isinstance(factor, Linear) for _, factors in product for factor in factors):
                return product
    raise ParameterError(
        f"{short(kernel)} has no Fourier features; expected RBF, Matern, their products, sums and "
        "multiples, and a linear kernel in a sum; features=Nystrom(reference) of "
        "coopbandits.features takes any kernel"
    )


@lru_cache(maxsize=32)
def _frequencies(factors: tuple[Kernel, ...], dim: int, count: int, seed: int) -> Array:
    """Draw frequencies from the spectral law of a product of stationary kernels: (count, d).

    The spectral law of a product is the convolution of those of its factors.
    """
    rng = np.random.default_rng(seed)
    return frozen(sum((_drawn(kernel, dim, count, rng) for kernel in factors), start=np.zeros(1)))


def _drawn(kernel: Kernel, dim: int, count: int, rng: np.random.Generator) -> Array:
    assert isinstance(kernel, RBF | Matern)
    omega = _orthogonal(dim, count, rng)
    if isinstance(kernel, Matern):  # a multivariate t law: a Gaussian over a root of χ²/2ν
        omega *= np.sqrt(2 * kernel.nu / rng.chisquare(2 * kernel.nu, size=(count, 1)))
    scale = np.asarray(kernel.lengthscale)
    if scale.ndim and len(scale) != dim:
        raise ShapeError(
            f"the kernel has {len(scale)} lengthscales, but the contexts have {dim} numbers"
        )
    return omega / scale


def _orthogonal(dim: int, count: int, rng: np.random.Generator) -> Array:
    """Draw standard normal rows, orthogonal in blocks of d: (count, d)."""
    drawn = [
        (rng.standard_normal((dim, dim)), rng.chisquare(dim, size=dim))
        for _ in range(-(-count // dim))
    ]
    Q, R = np.linalg.qr(np.array([normals for normals, _ in drawn]))
    # uniform over rotations; without it signs have a bias
    Q = Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]
    lengths = np.sqrt(np.array([squares for _, squares in drawn]))
    return (lengths[:, :, None] * np.swapaxes(Q, 1, 2)).reshape(-1, dim)[:count]


@lru_cache(maxsize=8)
def _whitening(kernel: Kernel, basis: Nystrom) -> Array:
    """Return W with WWᵀ = K_RR⁻¹ on the reference sample's span: (|R|, m)."""
    values, vectors = np.linalg.eigh(kernel(basis.reference, basis.reference))
    kept = values > _RANK_TOLERANCE * values[-1]
    # the features that vary most come first
    return frozen((vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1].copy())
