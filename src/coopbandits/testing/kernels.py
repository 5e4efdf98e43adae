"""What must every kernel K_x be?"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from coopbandits.arrays import Array, as_contexts, as_count, as_positive, as_seed, short
from coopbandits.errors import ParameterError
from coopbandits.kernels import Kernel, central_differences
from coopbandits.testing.assertions import (
    numbers,
    require,
    require_positive_semidefinite,
    require_same,
    untouched,
)

# Contexts of a Gram matrix, and of the two sides of a block.
_GRAM, _ROWS, _COLUMNS = 32, 6, 5


def check_kernel(
    kernel: Any,
    *,
    dim: int = 3,
    contexts: object = None,
    labels: Iterable[int] = (),
    far: float | None = 1e3,
    rtol: float = 1e-9,
    seed: int = 0,
) -> None:
    """Check that a value is a kernel: symmetric, positive semidefinite, and true to its word.

    `kernel(X, Y)` must be finite float64 of shape (n, m), each pair by itself, symmetric, positive
    semidefinite, the same when asked again, and leave X and Y alone; `diagonal(X)` must be that of
    `kernel(X, X)`. Where there are `gradient(X, Y)` and `diagonal_gradient(X)`, they must be those
    of central differences.

    Args:
        kernel: K_x.
        dim: d of the normal contexts at which it is checked.
        contexts: (n, d) contexts in their place, n ≥ 12, for a kernel that is not defined
            everywhere; all different, if its gradient is not defined at equal ones.
        labels: Columns that hold labels, as arms do, between which there is nothing: gradients are
            0 there. Give `contexts` too.
        far: It is also asked at contexts this far from 0; None where it is not defined there.
        rtol: How far rounding may go, relative to the numbers themselves.
        seed: Of what is drawn.

    Raises:
        AssertionError: It is none; the message says where.

    Example:
        >>> check_kernel(cb.kernels.RBF(lengthscale=0.5) * cb.kernels.Linear(), dim=2)
        >>> class Distance:
        ...     def __call__(self, X, Y):
        ...         return np.linalg.norm(X[:, None] - Y[None], axis=2)
        ...
        ...     def diagonal(self, X):
        ...         return np.zeros(len(X))
        >>> check_kernel(Distance())
        Traceback (most recent call last):
        AssertionError: a Gram matrix of ... must be positive semidefinite, but has eigenvalues ...
    """
    what, tolerance = short(kernel), as_positive(rtol, "rtol")
    require(
        isinstance(kernel, Kernel) and not isinstance(kernel, type),
        f"{what} is no kernel; expected a value with __call__(X, Y) and diagonal(X)",
    )
    rng = np.random.default_rng(as_seed(seed))
    drawn = _contexts(contexts, as_count(dim, "dim"), rng)
    fixed = sorted(set(labels))
    X, Y = drawn[:_ROWS], drawn[_ROWS : _ROWS + _COLUMNS]
    _check_values(kernel, X, Y, what, tolerance)
    repeated = np.vstack([drawn[:_GRAM], drawn[:2]])
    gram = numbers(kernel(repeated, repeated), (len(repeated),) * 2, f"{what} at equal contexts")
    gram = (gram + gram.T) / 2
    require_positive_semidefinite(gram, f"a Gram matrix of {what}", rtol=10 * tolerance)
    if far is not None:
        apart = _apart(drawn[:4], fixed, as_positive(far, "far"))
        numbers(kernel(apart, apart), (4, 4), f"{what} at equal and far contexts")
    else:
        apart = X[[0, 0, 1, 2]]
    _check_gradients(kernel, X, Y, apart, fixed, what)


def _check_values(kernel: Any, X: Array, Y: Array, what: str, rtol: float) -> None:
    shape = (len(X), len(Y))
    K = numbers(untouched(kernel, X, Y, what=what), shape, f"{what} at (X, Y)")
    size = rtol * float(np.abs(K).max())  # what a sum of terms of this size may round
    back = numbers(kernel(Y, X), shape[::-1], f"{what} at (Y, X)")
    require_same(K, back.T, f"{what} is not symmetric, k(X, Y) and k(Y, X)ᵀ", rtol=rtol, atol=size)
    pairs = np.array([[np.asarray(kernel(x[None], y[None])).item() for y in Y] for x in X])
    require_same(
        K,
        pairs,
        f"{what} must rate each pair by itself, all at once and alone",
        rtol=rtol,
        atol=size,
    )
    whole = numbers(kernel(X, X), (len(X),) * 2, f"{what} at (X, X)")
    diagonal = numbers(
        untouched(kernel.diagonal, X, what=f"the diagonal of {what}"),
        (len(X),),
        f"the diagonal of {what}",
    )
    require_same(
        diagonal, np.diag(whole).copy(), f"diagonal(X) of {what} is not that of k(X, X)", rtol=rtol
    )


def _check_gradients(
    kernel: Any, X: Array, Y: Array, apart: Array, fixed: list[int], what: str
) -> None:
    """Compare gradients, where a kernel has them, with central differences."""
    if hasattr(kernel, "gradient"):
        told = f"the gradient of {what}"
        found = untouched(kernel.gradient, X, Y, what=told)
        _check_slopes(found, lambda moved: kernel(moved, Y), X, fixed, told)
        shape = (len(apart), len(apart), X.shape[1])
        numbers(kernel.gradient(apart, apart), shape, f"{told} at equal contexts")
    if hasattr(kernel, "diagonal_gradient"):
        told = f"the diagonal_gradient of {what}"
        found = untouched(kernel.diagonal_gradient, X, what=told)
        _check_slopes(found, kernel.diagonal, X, fixed, told)
        numbers(kernel.diagonal_gradient(apart), apart.shape, f"{told} at equal contexts")


def _check_slopes(
    found: object, values: Callable[[Array], Array], X: Array, fixed: list[int], told: str
) -> None:
    """Compare what a kernel tells of its slopes with differences of its values."""
    moving = [j for j in range(X.shape[1]) if j not in fixed]

    def moved(part: Array) -> Array:
        whole = X.copy()
        whole[:, moving] = part
        return values(whole)

    differences = np.zeros((*values(X).shape, X.shape[1]))
    if moving:
        differences[..., moving] = central_differences(moved, X[:, moving])
    require_same(
        numbers(found, differences.shape, told),
        differences,
        f"{told} is not that of differences (0 between labels)",
        atol=1e-7 * max(1.0, float(np.abs(differences).max())),
    )


def _contexts(given: object, dim: int, rng: np.random.Generator) -> Array:
    """Return contexts in random order."""
    if given is None:
        return rng.standard_normal((_GRAM, dim))
    contexts = as_contexts(given, "contexts")
    if len(contexts) < _ROWS + _COLUMNS + 1:
        raise ParameterError(
            f"contexts has {len(contexts)} rows; expected at least {_ROWS + _COLUMNS + 1}, at "
            "which the kernel is compared with itself"
        )
    return rng.permutation(contexts)


def _apart(contexts: Array, fixed: list[int], far: float) -> Array:
    """Return two equal contexts, one next to them and one far away; labels stay labels."""
    placed = np.repeat([[0.0], [0.0], [1e-9], [far]], contexts.shape[1], axis=1)
    placed[:, fixed] = contexts[[0, 0, 1, 2]][:, fixed]
    return placed
