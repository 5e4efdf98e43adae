r"""How alike are two arms? K_arm on arm contexts, beside K_x on the rest of a context.

In the independent setting (appendix) every arm has a reward function of its own. A context is then
(t, x), what describes the arm and what describes the rest, and with K_z between agents

    K̃((t, v, x), (t', v', x')) = K_arm(t, t')·K_z(v, v')·K_x(x, x').

`kernel(arm=K_arm, context=K_x)` makes one kernel of the whole context, K_arm·K_x; so whatever takes
a kernel takes arms. `Table` is a K_arm that is given as a matrix over arms 0 … A−1, and
`Table.separate(A)` tells nothing from arm to arm: A bandits in tandem. A K_arm,network that does
not fall into K_arm·K_z is a similarity (`similarity.ArmNetwork`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    as_count,
    as_flag,
    as_floats,
    check_size,
    frozen,
    is_listing,
    short,
)
from coopbandits.errors import ParameterError, ShapeError
from coopbandits.kernels import (
    Algebra,
    Kernel,
    as_kernel,
    diagonal_gradient_of,
    gradient_of,
)

__all__ = [
    "ActiveDimensions",
    "Table",
    "kernel",
]

Columns = int | Sequence[int]

# Rounding makes an exact kernel matrix slightly asymmetric and its smallest eigenvalue slightly
# negative; more than this, relative to the largest entry, is no rounding.
_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True, init=False)
class ActiveDimensions(Algebra):
    """A kernel of some dimensions of a context, its active ones, or of all but these.

    Args:
        kernel: Of what it looks at.
        columns: One column or several, counted from 0; in which order plays no part.
        others: Whether it looks at all other columns instead.

    Example:
        >>> first = cb.arms.ActiveDimensions(cb.kernels.Linear(), 0)
        >>> first(np.array([[2.0, 7.0]]), np.array([[3.0, 9.0]])).item()
        6.0
    """

    kernel: Kernel
    columns: tuple[int, ...]
    others: bool

    def __init__(self, kernel: Kernel, columns: Columns, others: bool = False) -> None:
        as_flag(others, "others")
        object.__setattr__(self, "kernel", as_kernel(kernel))
        object.__setattr__(self, "columns", as_columns(columns))
        object.__setattr__(self, "others", others)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate every pair: (n, d), (m, d) -> (n, m)."""
        return self.kernel(self.part(X), self.part(Y))

    def diagonal(self, X: Array) -> Array:
        """Evaluate each context with itself: (n, d) -> (n,)."""
        return self.kernel.diagonal(self.part(X))

    def gradient(self, X: Array, Y: Array) -> Array:
        """Differentiate every pair by x: (n, d), (m, d) -> (n, m, d)."""
        return self.spread(gradient_of(self.kernel, self.part(X), self.part(Y)), X.shape[1])

    def diagonal_gradient(self, X: Array) -> Array:
        """Differentiate each k(x, x): (n, d) -> (n, d)."""
        return self.spread(diagonal_gradient_of(self.kernel, self.part(X)), X.shape[1])

    def spread(self, by_part: Array, dim: int) -> Array:
        """Lay a gradient by what the kernel looks at out over a whole context: (…, k) -> (…, d)."""
        whole = np.zeros((*by_part.shape[:-1], dim))
        whole[..., _seen(self.columns, self.others, dim)] = by_part
        return whole

    def part(self, X: Array) -> Array:
        """Return what the kernel looks at: (n, d) -> (n, k)."""
        return np.asarray(X[:, _seen(self.columns, self.others, X.shape[1])])

    def width(self, dim: int) -> int:
        """Return k, how many of d numbers the kernel looks at."""
        return int(_seen(self.columns, self.others, dim).sum())


On = ActiveDimensions  # as it was called at first


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Table(Algebra):
    """A K_arm that is given as a matrix, over arms numbered 0 … A−1: k(a, a') = matrix[a, a'].

    A context is one number, the arm; `ActiveDimensions` picks it out of a longer one.

    Args:
        matrix: (A, A), symmetric and positive semidefinite.

    Example:
        >>> table = cb.arms.Table([[1.0, 0.5], [0.5, 1.0]])
        >>> table(np.array([[0.0]]), np.array([[1.0]])).item()
        0.5
    """

    matrix: Array

    def __init__(self, matrix: object) -> None:
        object.__setattr__(self, "matrix", frozen(as_kernel_matrix(matrix, "the table of arms")))

    @classmethod
    def separate(cls, arms: int) -> "Table":
        """Make the table of arms that tell nothing about each other: the identity."""
        count = as_count(arms, "arms")
        check_size(count, count, what="a table of arms", advice="take fewer arms")
        return cls(np.eye(count))

    def __repr__(self) -> str:
        return f"Table({self.matrix.tolist()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash(self.matrix.tobytes())

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate every pair: (n, 1), (m, 1) -> (n, m)."""
        return np.take(self.matrix[:, self.arms(Y)], self.arms(X), axis=0)

    def diagonal(self, X: Array) -> Array:
        """Evaluate each arm with itself: (n, 1) -> (n,)."""
        return np.diagonal(self.matrix)[self.arms(X)]

    def gradient(self, X: Array, Y: Array) -> Array:
        """Return 0: between arms there is nothing. (n, 1), (m, 1) -> (n, m, 1)."""
        return np.zeros((len(X), len(Y), 1))

    def diagonal_gradient(self, X: Array) -> Array:
        """Return 0: (n, 1) -> (n, 1)."""
        return np.zeros((len(X), 1))

    def arms(self, X: Array) -> IntArray:
        """Read arms, which must be there: (n, 1) -> (n,)."""
        if X.shape[1] != 1:
            raise ShapeError(
                f"a table of arms takes contexts of one number, the arm, but they have "
                f"{X.shape[1]}; take arms.kernel(arm=…, context=…), or "
                "ActiveDimensions(table, column)"
            )
        return as_arms(X[:, 0], len(self.matrix))

    @cached_property
    def root(self) -> Array:
        """(A, r) with matrix = root·rootᵀ, r its rank."""
        values, vectors = np.linalg.eigh(self.matrix)
        kept = values > len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
        return frozen(vectors[:, kept] * np.sqrt(values[kept]))


def kernel(*, arm: Kernel, context: Kernel, columns: Columns = 0) -> Kernel:
    """Return K_arm·K_x as one kernel of contexts (t, x).

    Args:
        arm: K_arm.
        context: K_x.
        columns: Where the arm's context t is; x is all the rest.

    Example:
        >>> k = cb.arms.kernel(arm=cb.arms.Table.separate(2), context=cb.kernels.Linear())
        >>> k(np.array([[0.0, 3.0]]), np.array([[0.0, 2.0], [1.0, 2.0]])).tolist()
        [[6.0, 0.0]]
    """
    return ActiveDimensions(arm, columns) * ActiveDimensions(context, columns, others=True)


def as_columns(values: Any) -> tuple[int, ...]:
    """Check one column or several, each named once; in order."""
    given = list(values) if is_listing(values) else [values]
    columns = sorted(as_count(column, "a column", least=0) for column in given)
    if not columns or len(set(columns)) < len(columns):
        raise ParameterError(
            f"columns={short(values)} must name at least one column, and none of them twice"
        )
    return tuple(columns)


def as_arms(values: Array, arms: int) -> IntArray:
    """Check that numbers are arms 0 … A−1: (n,) -> (n,)."""
    sound = (values >= 0) & (values < arms) & (np.floor(values) == values)
    if not sound.all():
        raise ParameterError(
            f"there is no arm {values[~sound][0]:g}; the arms are the whole numbers 0 … {arms - 1}"
        )
    return values.astype(np.int64)


def as_kernel_matrix(values: object, what: str) -> Array:
    """Check a finite kernel: a symmetric, positive semidefinite matrix, at least (1, 1)."""
    matrix = as_floats(values, what)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ShapeError(f"{what} has shape {matrix.shape}; expected (n, n) with n >= 1")
    largest = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > _TOLERANCE * largest:
        raise ParameterError(f"{what} is not symmetric, as every kernel is")
    matrix = 0.5 * (matrix + matrix.T) + 0.0  # no −0, so that equal matrices have equal bytes
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -_TOLERANCE * largest:
        raise ParameterError(
            f"{what} is not positive semidefinite: its smallest eigenvalue is {smallest:.6g}; "
            "expected a kernel matrix (set negative eigenvalues to 0 to get the nearest one)"
        )
    return matrix


@lru_cache(maxsize=64)
def _seen(columns: tuple[int, ...], others: bool, dim: int) -> BoolArray:
    """Tell which of d columns a kernel looks at: (d,)."""
    if columns[-1] >= dim:
        raise ShapeError(
            f"the kernel looks at column {columns[-1]}, but contexts have {dim} numbers, columns "
            f"0 … {dim - 1}"
        )
    seen = np.full(dim, others)
    seen[list(columns)] = not others
    if not seen.any():
        raise ShapeError(
            f"contexts of {dim} numbers have none beside columns {list(columns)} to look at; "
            "append a column of ones if there is nothing more to say"
        )
    return frozen(seen)
