"""Where on a continuum is a function highest? Many points are looked at, the best are climbed from.

1. **Look** at points that cover the set, at its corners, and at points that are known to be good.
2. **Climb** from the best of them that lie apart, by the function's gradient: on a box L-BFGS-B
   from all starts as one problem, so that each step asks for all points at once; on a polytope
   SLSQP from one after the other.
3. **Hop**: on a box single coordinates are moved to their ends while that is higher, and climbed
   from again. In many dimensions there are peaks in more corners than can be looked at.
4. The best of all points is returned: never less than the best that was looked at.

A function here takes m points at once and returns values and gradients: (m, d) -> (m,), (m, d).
"""

from collections.abc import Callable

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.decision_sets import DecisionSet
from coopbandits.decision_sets.decision_set import LOOKED_AT

Function = Callable[[Array], tuple[Array, Array]]
Values = Callable[[Array], Array]

# At effort 1. What it leaves to be found is measured in benchmarks/continuum.py.
CORNERS = 64
STARTS = 8
# Steps from all starts together, then from the best alone.
_STEPS, _LAST_STEPS = 60, 40


def maximise(
    decision_set: DecisionSet,
    function: Function,
    rng: np.random.Generator,
    *,
    values: Values | None = None,
    known: Array | None = None,
) -> Array:
    """Return the highest point of a set that is found: (d,).

    Args:
        decision_set: The set; its `effort` multiplies how many points are looked at and climbed
            from.
        function: Values and gradients.
        rng: Where the points looked at start from; the same gives the same answer.
        values: The values alone, if these are cheaper.
        known: (k, d) points of the set that may be good.
    """
    value = (lambda X: function(X)[0]) if values is None else values
    looked_at, climbed = peaks(decision_set, function, rng, values=value, known=known)
    reached = value(climbed)
    top = int(np.argmax(reached))
    return np.asarray(climbed[top] if reached[top] > value(looked_at)[0] else looked_at[0])


def peaks(
    decision_set: DecisionSet,
    function: Function,
    rng: np.random.Generator,
    *,
    values: Values,
    known: Array | None = None,
) -> tuple[Array, Array]:
    """Return the best points looked at, the highest first, and those that climbing led to.

    (k, d), (l, d); the arguments are those of `maximise`.
    """
    effort = decision_set.effort
    parts = [
        decision_set.sample(rng, max(1, round(effort * LOOKED_AT))),
        decision_set.corners(rng, max(1, round(effort * CORNERS))),
    ]
    candidates = np.vstack(parts if known is None else [*parts, known])
    starts = _apart(decision_set, candidates, values(candidates), max(1, round(effort * STARTS)))
    climbed = climb(decision_set, function, starts)
    if not len(decision_set.A):
        hopped = _hopped(decision_set, values, climbed)
        if (hopped != climbed).any():
            climbed = np.vstack([hopped, climb(decision_set, function, hopped)])
    return starts, climbed


def climb(decision_set: DecisionSet, function: Function, starts: Array) -> Array:
    """Improve points of a set by the gradient; some may stay what they were: (m, d) -> (m, d)."""
    low, size = decision_set.low, decision_set.high - decision_set.low
    free = np.flatnonzero(size > 0)
    if free.size == 0:
        return starts
    slope = np.abs(function(starts)[1] * size).max()
    if not 0 < slope < np.inf:
        return starts

    def descent(flat: Array) -> tuple[float, Array]:
        """Return minus the sum over points of the unit cube's free coordinates, and its slope."""
        U = np.zeros((flat.size // free.size, len(low)))
        U[:, free] = flat.reshape(-1, free.size)
        height, by_x = function(low + size * U)
        return -float(height.sum()) / slope, -(by_x * size)[:, free].ravel() / slope

    with np.errstate(divide="ignore", invalid="ignore"):
        U = np.clip(((starts - low) / size)[:, free], 0.0, 1.0)
    if len(decision_set.A):
        solved = np.array([_within(decision_set, descent, u, free) for u in U])
    else:
        solved = _within_cube(descent, U, _STEPS)
    points = np.tile(low, (len(starts), 1))
    points[:, free] += size[free] * solved
    best = int(np.argmax(function(points)[0]))
    if not len(decision_set.A):
        points[best, free] = (
            low[free] + size[free] * _within_cube(descent, solved[best : best + 1], _LAST_STEPS)[0]
        )
    return decision_set.pulled(points)


def _hopped(decision_set: DecisionSet, values: Values, points: Array) -> Array:
    """Move single coordinates of points to the ends of a box while that is higher: (m, d).

    In many dimensions a bound has peaks in many of the 2ᵈ corners, more than can be looked at.
    """
    free = np.flatnonzero(decision_set.low < decision_set.high)
    points, heights = points.copy(), values(points)
    moving = np.arange(len(points))
    for _ in range(len(free)):
        trials = np.repeat(points[moving, None, :], 2 * len(free), axis=1)
        trials[:, np.arange(len(free)), free] = decision_set.low[free]
        trials[:, len(free) + np.arange(len(free)), free] = decision_set.high[free]
        reached = values(trials.reshape(-1, decision_set.dim)).reshape(len(moving), -1)
        best = reached.argmax(axis=1)
        rows = np.arange(len(moving))
        better = reached[rows, best] > heights[moving] + 1e-12 * np.abs(heights[moving])
        moving, trials, reached = moving[better], trials[better], reached[better]
        if not len(moving):
            break
        rows, best = rows[: len(moving)], best[better]
        points[moving], heights[moving] = trials[rows, best], reached[rows, best]
    return points


def _within_cube(descent: Callable[[Array], tuple[float, Array]], U: Array, steps: int) -> Array:
    from scipy.optimize import minimize  # noqa: PLC0415 (heavy)

    solved = minimize(
        descent,
        U.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * U.size,
        options={"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-14, "gtol": 1e-8},
    )
    return np.asarray(solved.x).reshape(U.shape)


def _within(
    decision_set: DecisionSet,
    descent: Callable[[Array], tuple[float, Array]],
    u: Array,
    free: IntArray,
) -> Array:
    from scipy.optimize import LinearConstraint, minimize  # noqa: PLC0415 (heavy)

    size = decision_set.high - decision_set.low
    rows = (decision_set.A * size)[:, free]
    room = decision_set.b - decision_set.A @ decision_set.low
    solved = minimize(
        descent,
        u,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * u.size,
        constraints=LinearConstraint(rows, ub=room),
        options={"maxiter": _STEPS, "ftol": 1e-13},
    )
    return np.clip(solved.x, 0.0, 1.0) if np.isfinite(solved.x).all() else u


def _apart(decision_set: DecisionSet, X: Array, heights: Array, count: int) -> Array:
    """Choose the highest points that are no neighbours of higher ones, highest first: (k, d)."""
    size = decision_set.high - decision_set.low
    free = size > 0
    U = X[:, free] / size[free]
    near = 0.5 * len(X) ** (-1 / max(int(free.sum()), 1))
    left, chosen = heights.copy(), list[int]()
    while len(chosen) < count and left.max() > -np.inf:
        chosen.append(int(np.argmax(left)))
        left[((U - U[chosen[-1]]) ** 2).sum(axis=1) <= near**2] = -np.inf
    return X[chosen]
