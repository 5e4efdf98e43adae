"""Which matrices are Gram matrices? The one check that this room makes at its border."""

import numpy as np

from coopbandits.arrays import Array, as_floats
from coopbandits.errors import ParameterError, ShapeError

# Rounding leaves an exact Gram matrix slightly asymmetric and its smallest eigenvalues slightly
# below 0; more than this, relative to the largest, is no rounding.
_TOLERANCE = 1e-8


def as_gram(K: object, what: str = "K") -> Array:
    """Check a Gram matrix: (n, n), symmetric."""
    matrix = as_floats(K, what)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) == 0:
        raise ShapeError(f"{what} has shape {matrix.shape}; expected (n, n) with n >= 1")
    if np.abs(matrix - matrix.T).max() > _TOLERANCE * np.abs(matrix).max():
        raise ParameterError(
            f"{what} is not symmetric, as every Gram matrix is; give kernel(X, X) of one X"
        )
    return 0.5 * (matrix + matrix.T)


def eigenvalues(K: object, what: str = "K") -> Array:
    """Return a Gram matrix's eigenvalues, largest first, rounding below 0 set to 0: (n,)."""
    found = np.linalg.eigvalsh(as_gram(K, what))[::-1]
    if found[-1] < -_TOLERANCE * max(found[0], -found[-1]):
        raise ParameterError(
            f"{what} is not positive semidefinite: its smallest eigenvalue is {found[-1]:.6g}; "
            "expected a Gram matrix (set negative eigenvalues to 0 to get the nearest one)"
        )
    return np.maximum(found, 0.0)
