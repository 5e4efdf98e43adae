"""What is the slope of a function that does not tell? Central differences.

For kernels, bases and compositions of a user's own that have no gradient. Right to about ten digits
where the function is smooth, at the price of 2d evaluations.
"""

from collections.abc import Callable

import numpy as np

from coopbandits.arrays import Array

# The cube root of the rounding unit balances rounding against the third derivative.
STEP = float(np.cbrt(np.finfo(np.float64).eps))


def slopes(function: Callable[[Array], Array], X: Array) -> Array:
    """Differentiate a function of rows: (n, d) -> (n, …), returned with d as the last axis."""
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
