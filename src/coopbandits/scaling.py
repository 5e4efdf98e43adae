r"""Contexts in raw units: one affine map to numbers of size 1, the same for all who talk.

Kernels measure contexts against 1: a linear kernel's ridge, an RBF's lengthscale. Prices, ages and
latencies in their own units would drown each other, or be refused for their size. With

    x' = (x − shift) / spread

a policy takes and returns contexts in raw units and computes with x'. A scaling is part of the
policy's fingerprint: what agents send each other is x'.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import (
    Array,
    as_contexts,
    as_floats,
    column_names,
    frozen,
    is_listing,
    short,
)
from coopbandits.decision_sets import Box, DecisionSet, Polytope
from coopbandits.errors import ParameterError, ShapeError


@dataclass(frozen=True, eq=False, repr=False)
class Scaling:
    """Shift and divide each number of a context: x' = (x − shift)/spread.

    Args:
        shift: (d,), or one number for all.
        spread: (d,), or one number for all; above 0.

    Example:
        >>> scaling = Scaling(shift=[20.0, 0.0], spread=[5.0, 1000.0])
        >>> scaling.scaled([[25.0, 2000.0]]).tolist()
        [[1.0, 2.0]]
        >>> Scaling.fit([[15.0, 0.0], [25.0, 4.0]])
        Scaling(shift=[20.0, 2.0], spread=[5.0, 2.0])
    """

    shift: Array
    spread: Array

    def __post_init__(self) -> None:
        for name in ("shift", "spread"):
            values = as_floats(getattr(self, name), f"a scaling's {name}")
            if values.ndim > 1 or values.size == 0:
                raise ShapeError(f"a scaling's {name} has shape {values.shape}; expected (d,)")
            object.__setattr__(self, name, frozen(values))
        if self.shift.ndim and self.spread.ndim and self.shift.shape != self.spread.shape:
            raise ShapeError(
                f"a scaling's shift and spread have shapes {self.shift.shape} and "
                f"{self.spread.shape}; expected both (d,), or one number for all"
            )
        if not (self.spread > 0).all():
            raise ParameterError(
                f"a scaling's spread must be above 0 everywhere, got {short(self.spread.tolist())}"
            )

    def __repr__(self) -> str:
        return f"Scaling(shift={self.shift.tolist()}, spread={self.spread.tolist()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaling) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[tuple[int, ...], bytes, bytes]:
        return self.shift.shape + self.spread.shape, self.shift.tobytes(), self.spread.tobytes()

    @classmethod
    def fit(cls, contexts: object) -> "Scaling":
        """Take shift and spread from a sample: each number's mean and standard deviation.

        To be fitted once, from a log or from the first decision sets, and given to all agents.

        Args:
            contexts: (n, d) contexts, or a list of decision sets (K, d) each.
        """
        sample = _stacked(contexts)
        shift, spread = sample.mean(axis=0), sample.std(axis=0)
        still = spread <= 1e-12 * np.maximum(np.abs(sample).max(axis=0), 1e-300)
        if still.any():
            names = column_names(contexts) or range(len(still))
            which = ", ".join(repr(names[j]) for j in np.flatnonzero(still)[:5].tolist())
            raise ParameterError(
                f"columns {which} of all {len(sample)} contexts are constant, so that they have "
                "no spread; leave them out (a constant of rewards is a policy's intercept=), or "
                "give coopbandits.Scaling(shift, spread)"
            )
        return cls(shift, spread)

    def scaled(self, contexts: object) -> Array:
        """Map contexts in raw units: (n, d) -> (n, d)."""
        X = as_contexts(contexts, "contexts")
        self.check(X.shape[1])
        with np.errstate(over="ignore"):
            return as_floats((X - self.shift) / self.spread, "contexts divided by their spread")

    def raw(self, x: Array) -> Array:
        """Map back to raw units: (…, d) -> (…, d)."""
        return np.asarray(self.shift + self.spread * x)

    def scaled_set(self, offered: DecisionSet) -> DecisionSet:
        """Map a continuum in raw units."""
        self.check(offered.dim)
        low, high = self.scaled(np.array([offered.low, offered.high]))
        high = np.maximum(high, low)
        if isinstance(offered, Box):
            return Box(low, high, effort=offered.effort)
        A = offered.A * self.spread
        b = offered.b - offered.A @ np.broadcast_to(self.shift, (offered.dim,))
        return Polytope(A, b, low, high, effort=offered.effort)

    def check(self, dim: int) -> None:
        """Refuse contexts of another d."""
        sizes = {part.size for part in (self.shift, self.spread) if part.ndim}
        if sizes - {dim}:
            raise ShapeError(
                f"the policy's scaling is for contexts of {sizes.pop()} numbers, but got contexts "
                f"of {dim} numbers"
            )


def as_scaling(value: object) -> Scaling | None:
    """Check a policy's `scaling=`."""
    if value is None or isinstance(value, Scaling):
        return value
    raise ParameterError(
        f"scaling={short(value)} is no scaling; expected coopbandits.Scaling(shift, spread), "
        "coopbandits.Scaling.fit(contexts), or None"
    )


def _stacked(contexts: object) -> Array:
    """Put decision sets together: (n, d)."""
    if is_listing(contexts) and isinstance(contexts, Sequence) and len(contexts):
        first = np.ndim(contexts[0]) if not isinstance(contexts[0], str) else 0
        if first == 2:
            sets = [as_contexts(one) for one in contexts]
            if len({one.shape[1] for one in sets}) > 1:
                raise ShapeError("decision sets to fit a scaling from differ in their numbers d")
            return np.vstack(sets)
    return as_contexts(contexts, "contexts to fit a scaling from")
