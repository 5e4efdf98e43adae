"""What may be chosen from, where it is no finite list? Boxes and polytopes.

`Box` is {low ≤ x ≤ high} and `Polytope` adds linear inequalities Ax ≤ b. Both are bounded, not
empty, and may be flat: a coordinate with low = high is given, not chosen (the context of a round,
say), and a mixture Σx = 1 is two inequalities.

`effort` says how hard the maximum of a bound is looked for on the set (`maximise.py`).
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from coopbandits.arrays import Array, BoolArray, as_floats, as_positive, check_size, frozen, short
from coopbandits.errors import ParameterError, ShapeError

# Points this far outside, relative to the set's size and place, are rounding and count as inside.
_SLACK = 1e-9
# So many diameters away, a point has half of its digits left for the set.
_FAR = 1e8
# How many points stand for a whole set where its law is asked for.
_SPREAD = 64
# How many points are looked at for a maximum at effort 1, and the most that effort may be.
LOOKED_AT = 512
_MOST_EFFORT = 1_000.0


@dataclass(frozen=True, eq=False, init=False, repr=False)
class _Linear:
    """What boxes and polytopes share: {x : low ≤ x ≤ high, Ax ≤ b}."""

    low: Array
    high: Array
    A: Array
    b: Array
    effort: float

    @property
    def dim(self) -> int:
        """How many numbers a point has: d."""
        return len(self.low)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[bytes, ...]:
        facts = (self.low, self.high, self.A, self.b, np.array(self.effort))
        return tuple(fact.tobytes() for fact in facts)

    def contains(self, X: Array) -> BoolArray:
        """Tell which points lie in the set, up to rounding: (n, d) -> (n,)."""
        edge = _SLACK * (np.maximum(np.abs(self.low), np.abs(self.high)) + self.high - self.low)
        inside = ((self.low - edge <= X) & (self.high + edge >= X)).all(axis=1)
        return np.asarray(inside & (self.b + self._row_edges >= X @ self.A.T).all(axis=1))

    @cached_property
    def _row_edges(self) -> Array:
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        return _SLACK * (np.abs(self.b) + np.abs(self.A) @ size)

    @cached_property
    def spread(self) -> Array:
        """Points that stand for the whole set, always the same: (64, d)."""
        return frozen(self.sample(np.random.default_rng(0), _SPREAD))

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draw points that cover the set evenly; each is uniform: (count, d)."""
        return self.low + (self.high - self.low) * covering(rng, count, self.dim)


class Box(_Linear):
    """All points with low ≤ x ≤ high in every coordinate.

    Args:
        low: (d,).
        high: (d,), nowhere below `low`; where both are equal, the coordinate is given.
        effort: How hard the maximum of a bound is looked for: a multiple of the points looked at
            and of those from which it is climbed.

    Example:
        >>> box = cb.Box([0.0, 0.0], [1.0, 2.0])
        >>> agent = cb.KernelUCB(cb.kernels.RBF()).agent(0, cb.Network.path(2))
        >>> point = agent.decide(box).context
        >>> bool(((point >= box.low) & (point <= box.high)).all())
        True
    """

    def __init__(self, low: object, high: object, *, effort: float = 1.0) -> None:
        lowest, highest = as_floats(low, "a box's low"), as_floats(high, "a box's high")
        if lowest.ndim != 1 or lowest.size == 0 or lowest.shape != highest.shape:
            raise ShapeError(
                f"a box's low and high have shapes {lowest.shape} and {highest.shape}; expected "
                "(d,) and (d,) with d >= 1"
            )
        _check_order(lowest, highest, "a box")
        _settle(self, lowest, highest, np.empty((0, len(lowest))), np.empty(0), effort)

    def __repr__(self) -> str:
        return f"Box(low={short(self.low.tolist())}, high={short(self.high.tolist())})"

    def nearest(self, x: Array) -> Array:
        """Return the point of the set nearest to x: (d,) -> (d,)."""
        return np.clip(x, self.low, self.high)

    def pulled(self, X: Array) -> Array:
        """Move points that rounding has left outside into the set: (n, d) -> (n, d)."""
        return np.clip(X, self.low, self.high)

    def corners(self, rng: np.random.Generator, most: int) -> Array:
        """Return all corners, or `most` of them at random: (n, d)."""
        free = np.flatnonzero(self.low < self.high)
        if 2 ** min(len(free), 30) <= most:
            bits = np.arange(2 ** len(free))[:, None] >> np.arange(len(free)) & 1
        else:
            bits = rng.integers(2, size=(most, len(free)))
        corners = np.tile(self.low, (len(bits), 1))
        corners[:, free] = np.where(bits, self.high[free], self.low[free])
        return corners


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Polytope(_Linear):
    """All points with Ax ≤ b, and low ≤ x ≤ high where these are given; bounded and not empty.

    `low` and `high` become the smallest box around it.

    Args:
        A: (r, d).
        b: (r,).
        low: (d,), if there are such bounds.
        high: (d,), if there are such bounds.
        effort: As in `Box`.

    Attributes:
        inside: (d,) a point away from all faces that can be kept away from.
        vertices: (n, d) some of the vertices, among them the extreme ones of every coordinate.
        span: (d, k) orthonormal directions in which the set extends; k < d where it is flat.

    Example:
        >>> triangle = cb.Polytope([[1.0, 1.0]], [1.0], low=[0.0, 0.0])
        >>> triangle.high.round(6).tolist()  # the smallest box around it
        [1.0, 1.0]
    """

    inside: Array = field(init=False)
    vertices: Array = field(init=False)
    span: Array = field(init=False)

    def __init__(
        self,
        A: object,
        b: object,
        low: object = None,
        high: object = None,
        *,
        effort: float = 1.0,
    ) -> None:
        rows, limits = as_floats(A, "a polytope's A"), as_floats(b, "a polytope's b")
        if rows.ndim != 2 or rows.shape[1] == 0 or limits.shape != rows.shape[:1]:
            raise ShapeError(
                f"a polytope's A and b have shapes {rows.shape} and {limits.shape}; expected "
                "(r, d) and (r,) with d >= 1"
            )
        d = rows.shape[1]
        bounds = []
        for name, given, otherwise in (("low", low, -np.inf), ("high", high, np.inf)):
            bound = np.full(d, otherwise) if given is None else as_floats(given, f"a {name}")
            if bound.shape != (d,):
                raise ShapeError(f"a polytope's {name} has shape {bound.shape}; expected ({d},)")
            bounds.append(bound)
        _check_order(bounds[0], bounds[1], "a polytope")
        extremes, deepest = _extremes(rows, limits, bounds[0], bounds[1])
        lowest, highest = extremes[:d].diagonal() + 0.0, extremes[d:].diagonal() + 0.0  # no −0
        _settle(self, lowest, np.maximum(lowest, highest), rows, limits, effort)
        every = np.vstack([extremes, deepest])
        object.__setattr__(self, "inside", frozen(every.mean(axis=0)))
        object.__setattr__(self, "span", frozen(self._directions(deepest)))
        object.__setattr__(self, "vertices", frozen(np.unique(self.pulled(every), axis=0)))

    def __repr__(self) -> str:
        return f"Polytope({len(self.A)} inequalities of {self.dim} numbers)"

    def _directions(self, deepest: Array) -> Array:
        """Find in which directions the set extends: (d, k)."""
        edge = 1e3 * self._row_edges
        tight = self.b - np.einsum("rd,rd->r", self.A, deepest) <= edge
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        pinned = self.high - self.low <= 1e3 * _SLACK * size
        fixed = np.vstack([self.A[tight], np.eye(self.dim)[pinned]])
        norms = np.linalg.norm(fixed, axis=1, keepdims=True)
        _, values, V = np.linalg.svd(fixed / np.where(norms > 0, norms, 1.0), full_matrices=True)
        return V[int((values > 1e-9).sum()) :].T.copy()

    def nearest(self, x: Array) -> Array:
        """Return the point of the set nearest to x: (d,) -> (d,)."""
        from scipy.optimize import nnls  # noqa: PLC0415 (heavy)

        # of a point so far away that it has no digits for the set, the direction counts
        away, far = np.linalg.norm(x - self.inside), _FAR * np.linalg.norm(self.high - self.low)
        if away > far:
            x = self.inside + far / away * (x - self.inside)
        if self.contains(x[None, :])[0]:
            return x
        # the shortest y with Gy ≥ h is a problem of nonnegative least squares (Lawson & Hanson)
        eye = np.eye(self.dim)
        G = np.vstack([-self.A, eye, -eye])
        h = np.concatenate([self.A @ x - self.b, self.low - x, x - self.high])
        scale = np.abs(h).max()
        E = np.vstack([G.T, h / scale])
        target = np.append(np.zeros(self.dim), 1.0)
        residual = E @ nnls(E, target)[0] - target
        y = -scale * residual[:-1] / residual[-1]
        return np.asarray(self.pulled((x + y)[None, :])[0])

    def pulled(self, X: Array) -> Array:
        """Move points that rounding has left outside towards the inside: (n, d) -> (n, d)."""
        moves = (X - self.inside) @ self.span @ self.span.T
        _, reach = self._reach(np.tile(self.inside, (len(X), 1)), moves)
        return np.clip(self.inside + np.minimum(reach, 1.0)[:, None] * moves, self.low, self.high)

    def corners(self, rng: np.random.Generator, most: int) -> Array:
        """Return the vertices that are known, at most so many: (n, d)."""
        return np.asarray(self.vertices[:most])

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draw points that cover the set; each is nearly uniform: (count, d).

        Those of the box around it that fall into it, and where these are too few, walks that go
        from the inside to a random place on a random line through the set, again and again.
        """
        found = np.empty((0, self.dim))
        if self.span.shape[1] == self.dim:
            tried = super().sample(rng, 4 * count)
            found = tried[self.contains(tried)][:count]
        points = np.tile(self.inside, (count - len(found), 1))
        for _ in range(8 + 4 * self.span.shape[1] if len(points) else 0):
            steps = rng.standard_normal((len(points), self.dim)) * (self.high - self.low)
            moves = steps @ self.span @ self.span.T
            back, forth = self._reach(points, moves)
            points = points + (back + (forth - back) * rng.random(len(points)))[:, None] * moves
        return np.vstack([found, self.pulled(points)])

    def _reach(self, X: Array, moves: Array) -> tuple[Array, Array]:
        """Return the least and the largest t with x + t·move in the set: (n, d) -> (n,), (n,)."""
        normals = np.vstack([self.A, np.eye(self.dim), -np.eye(self.dim)])
        limits = np.concatenate([self.b, self.high, -self.low])
        speed, room = moves @ normals.T, np.maximum(limits - X @ normals.T, 0.0)
        size = np.linalg.norm(moves, axis=1, keepdims=True) * np.linalg.norm(normals, axis=1)
        still = np.abs(speed) <= 1e-12 * size  # along a face, in which a flat set lies
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(still, np.nan, room / np.abs(speed))
        forth = np.where(still | (speed < 0), np.inf, t).min(axis=1)
        back = -np.where(still | (speed > 0), np.inf, t).min(axis=1)
        ends = np.isfinite(forth) & np.isfinite(back)  # a single point has no line through it
        return np.where(ends, back, 0.0), np.where(ends, forth, 0.0)


DecisionSet = Box | Polytope


def as_decision_set(value: object) -> DecisionSet:
    """Check that a value is a box or a polytope."""
    if isinstance(value, Box | Polytope):
        return value
    raise ParameterError(
        f"{short(value)} is no continuum; expected coopbandits.Box(low, high) or "
        "coopbandits.Polytope(A, b)"
    )


def covering(rng: np.random.Generator, count: int, dim: int) -> Array:
    """Cover the unit cube evenly, from a random start: (count, d).

    Multiples of powers of the generalised golden ratio g, g^(d+1) = g + 1, modulo 1 (Roberts 2018):
    about as even as Sobol's points, and nothing heavy to import.
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (dim + 1))
    steps = ratio ** -np.arange(1.0, dim + 1)
    return (rng.random(dim) + np.arange(count)[:, None] * steps) % 1.0


def _settle(made: _Linear, low: Array, high: Array, A: Array, b: Array, effort: float) -> None:
    for name, array in (("low", low), ("high", high), ("A", A), ("b", b)):
        object.__setattr__(made, name, frozen(array))
    object.__setattr__(made, "effort", _as_effort(effort, len(low)))


def _as_effort(value: object, dim: int) -> float:
    effort = as_positive(value, "effort")
    if effort > _MOST_EFFORT:
        raise ParameterError(
            f"effort must be at most {_MOST_EFFORT:g}, got {effort:g}, which would look at "
            f"{effort * LOOKED_AT:,.0f} points; take a smaller one"
        )
    check_size(
        max(1.0, effort * LOOKED_AT),
        dim,
        what=f"looking for a maximum in {dim} dimensions with effort={effort:g}",
        advice="take a smaller effort, or fewer dimensions",
    )
    return effort


def _check_order(low: Array, high: Array, what: str) -> None:
    wrong = np.flatnonzero(low > high)
    if wrong.size:
        j = int(wrong[0])
        raise ParameterError(
            f"{what}'s low is above its high at index {j}: {low[j]:g} > {high[j]:g}; swap them"
        )


def _extremes(A: Array, b: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the points lowest and highest in each coordinate, and deepest within each inequality.

    (2d, d), (r, d), by linear programs.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 (heavy)

    d = A.shape[1]
    eye = np.eye(d)
    points = []
    for index, goal in enumerate([*eye, *-eye, *A]):
        solved = linprog(goal, A, b, bounds=list(zip(low, high, strict=True)))
        if solved.status == 2 or (solved.x is None and not _feasible(A, b, low, high)):
            raise ParameterError(
                "the polytope is empty: no point meets all of its inequalities; loosen b"
            )
        if solved.x is None:
            raise ParameterError(
                f"the polytope is not bounded in coordinate {index % d}; add low= and high="
            )
        points.append(solved.x)
    return np.array(points[: 2 * d]), np.array(points[2 * d :]).reshape(len(A), d)


def _feasible(A: Array, b: Array, low: Array, high: Array) -> bool:
    from scipy.optimize import linprog  # noqa: PLC0415 (heavy)

    bounds = list(zip(low, high, strict=True))
    return bool(linprog(np.zeros(A.shape[1]), A, b, bounds=bounds).status == 0)
