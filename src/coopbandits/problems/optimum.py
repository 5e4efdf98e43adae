"""Where is a known function highest, and how sure is that? Branch and bound.

The set's box is halved again and again. Over each part the function is at most

    f(c) + max over δ of ∇f(c)ᵀδ + rest,      c the centre, δ within the part

where `rest` bounds what the tangent leaves out. A part that cannot hold anything higher than what
has been found, by more than the tolerance, is dropped; when none is left, the highest point found
is the maximum up to the tolerance. Near a smooth maximum `rest` falls with the square of a part's
size, so that few parts are left at every size, but more with every dimension.

On a polytope parts that lie outside are dropped, and where one crosses a face, δ is held to
inequalities by the multipliers λ ≥ 0 that balance the gradient at the peaks found:

    max ∇fᵀδ ≤ λᵀ(b − Ac) + Σ_j |∇f − Aᵀλ|_j h_j      (weak duality, for every λ ≥ 0)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array
from coopbandits.decision_sets import DecisionSet
from coopbandits.decision_sets.maximise import Function, peaks
from coopbandits.errors import ParameterError

# Centres (m, d), half-widths (m, d) -> f(c) (m,), ∇f(c) (m, d), rest (m,).
Bounds = Callable[[Array, Array], tuple[Array, Array, Array]]

BUDGET = 1_000_000
"""How many parts are looked at, at most."""
_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Optimum:
    """The highest point of a function on a set.

    Attributes:
        point: (d,) the highest point found.
        value: The function there.
        upper: What the function exceeds nowhere on the set, up to rounding.
        parts: How many parts of the set were looked at.

    Example:
        >>> problem = cb.problems.continuum(cb.Network.path(2), cb.Box([0.0], [1.0]), support=5)
        >>> found = problem.best(0, cb.Box([0.0], [1.0]))
        >>> found.value <= found.upper
        True
    """

    point: Array
    value: float
    upper: float
    parts: int

    @property
    def gap(self) -> float:
        """By how much the maximum may be above `value`, at most."""
        return self.upper - self.value


def certified(
    decision_set: DecisionSet,
    function: Function,
    bounds: Bounds,
    *,
    tolerance: float,
    known: Array | None = None,
    scale: Array | None = None,
    budget: int = BUDGET,
) -> Optimum:
    """Find a function's maximum on a set, with a proof that it is one up to the tolerance.

    Args:
        decision_set: The set.
        function: Values and gradients, to find peaks by.
        bounds: What is certain of f over parts of the set; f is asked for on the whole box around
            it.
        tolerance: The largest gap.
        known: (k, d) points of the set that may be high.
        scale: (d,) over which lengths the function changes, if these differ.
        budget: How many parts are looked at before it gives up.
    """
    rng = np.random.default_rng(0)
    looked_at, climbed = peaks(
        decision_set, function, rng, values=lambda X: function(X)[0], known=known
    )
    points = np.vstack([looked_at, climbed])
    heights, slopes = function(points)
    point, value = points[int(np.argmax(heights))], float(heights.max())
    held = _Held(decision_set, points, slopes)
    C = 0.5 * (decision_set.low + decision_set.high)[None, :]
    H = 0.5 * (decision_set.high - decision_set.low)[None, :]
    unit = np.ones(decision_set.dim) if scale is None else scale
    upper, parts = value, 0
    while len(C):
        if parts + len(C) > budget:
            raise ParameterError(
                f"the maximum could not be certified to {tolerance:.3g} within {budget} parts of "
                f"a set of {decision_set.dim} dimensions; take a larger tolerance, a smoother "
                "kernel or fewer dimensions, or give the best values yourself: "
                "problems.continuum_functions(…, best=…)"
            )
        parts += len(C)
        left = []
        for start in range(0, len(C), _AT_ONCE):
            c, h = C[start : start + _AT_ONCE], H[start : start + _AT_ONCE]
            inside = held.meets(c, h)
            c, h = c[inside], h[inside]
            centre, slope, rest = bounds(c, h)
            most = centre + held.tangent(c, h, slope) + rest
            feasible = np.flatnonzero(decision_set.contains(c))
            if feasible.size and centre[feasible].max() > value:
                best = feasible[int(np.argmax(centre[feasible]))]
                point, value = c[best], float(centre[best])
            open_ = most > value + tolerance
            upper = max(upper, float(most[~open_].max(initial=-np.inf)))
            # halve where a part is longest, by what the tangent and what the rest make of it
            share = (h / unit) ** 2
            share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
            worth = np.abs(slope) * h + rest[:, None] * share
            left.append(_halves(c[open_], h[open_], worth[open_]))
        C, H = (np.vstack(pieces) for pieces in zip(*left, strict=True))
    return Optimum(point, value, max(upper, value), parts)


def _halves(C: Array, H: Array, worth: Array) -> tuple[Array, Array]:
    """Halve each part in its most worthy dimension."""
    rows, along = np.arange(len(C)), np.argmax(worth, axis=1)
    half = H.copy()
    half[rows, along] *= 0.5
    step = np.zeros_like(C)
    step[rows, along] = half[rows, along]
    return np.vstack([C - step, C + step]), np.vstack([half, half])


class _Held:
    """How inequalities hold parts of a polytope: which meet it, and how far a tangent may rise."""

    def __init__(self, decision_set: DecisionSet, points: Array, slopes: Array) -> None:
        self._A, self._b = decision_set.A, decision_set.b
        self._set = decision_set
        found = [self._multipliers(x, g) for x, g in zip(points, slopes, strict=True)]
        self._lambda = np.unique(np.array(found), axis=0) if len(self._b) else np.empty((0, 0))

    def meets(self, C: Array, H: Array) -> Array:
        """Tell which parts meet the set, or may: (m, d), (m, d) -> (m,)."""
        size = np.maximum(np.abs(self._set.low), np.abs(self._set.high))
        edge = 1e-9 * (np.abs(self._b) + np.abs(self._A) @ size)
        lowest = C @ self._A.T - H @ np.abs(self._A).T
        return np.asarray((lowest <= self._b + edge).all(axis=1))

    def tangent(self, C: Array, H: Array, slopes: Array) -> Array:
        """Bound how far a tangent rises within each part: (m, d), (m, d), (m, d) -> (m,)."""
        rise = (np.abs(slopes) * H).sum(axis=1)
        if len(self._b):
            room = self._b - C @ self._A.T
            for multipliers in self._lambda:
                free = (np.abs(slopes - multipliers @ self._A) * H).sum(axis=1)
                rise = np.minimum(rise, room @ multipliers + free)
        return rise

    def _multipliers(self, x: Array, slope: Array) -> Array:
        """Return the λ ≥ 0 by which active inequalities and bounds balance a gradient: (r,)."""
        from scipy.optimize import nnls  # noqa: PLC0415 (heavy)

        low, high = self._set.low, self._set.high
        near = 1e-6 * (high - low)
        active = np.flatnonzero(self._b - self._A @ x <= np.abs(self._A) @ near)
        found = np.zeros(len(self._b))
        if active.size:
            eye = np.eye(len(x))
            normals = np.vstack([self._A[active], eye[x >= high - near], -eye[x <= low + near]])
            found[active] = nnls(normals.T, slope)[0][: len(active)]
        return found
