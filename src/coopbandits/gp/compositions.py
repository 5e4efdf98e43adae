r"""How do K_z and K_x make one kernel? The compositions of §3 and the appendix.

An observation is indexed by its agent and its round: x̃ = (v, x). With K_z between agents and K_x
between contexts,

| name | K((v, x), (v', x')) | what it says |
|---|---|---|
| `Hadamard` | K_z(v, v')·K_x(x, x') | news counts as far as agents and contexts agree |
| `Sum` | (K_z(v, v') + K_x(x, x'))/2 | one function of x for all, plus one constant per agent |

K_z ⊗ K_x is the Gram matrix over the full grid (every agent at every context). The observations
made are some cells of that grid, and the matrix of those cells is the Hadamard product of the two
Gram matrices of the observations. So for observations indexed by agent and round "kronecker" is
another name of `Hadamard`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from coopbandits.arms import ActiveDimensions, as_arms
from coopbandits.arrays import Array, BoolArray, IntArray, short
from coopbandits.errors import ParameterError
from coopbandits.kernels import STEP, Kernel, diagonal_gradient_of, gradient_of


@runtime_checkable
class Composition(Protocol):
    """A way to make one kernel of K_z and K_x."""

    def combine(self, K_z: Array, K_x: Array) -> Array:
        """Compose two arrays of the same shape, entry by entry."""
        ...

    def related(self, K_z: Array) -> BoolArray:
        """Tell which pairs of agents can tell each other anything: (V, V) -> (V, V)."""
        ...


@dataclass(frozen=True, slots=True)
class Hadamard:
    """K = K_z ⊙ K_x, the paper's choice and the default."""

    def combine(self, K_z: Array, K_x: Array) -> Array:
        """Multiply entry by entry."""
        return K_z * K_x

    def share(self, K_z: Array) -> Array:
        """Return ∂K/∂K_x, entry by entry."""
        return K_z

    def related(self, K_z: Array) -> BoolArray:
        """Tell which pairs of agents can tell each other anything: those with K_z ≠ 0."""
        return np.asarray(K_z != 0)


@dataclass(frozen=True, slots=True)
class Sum:
    """K = (K_z ⊕ K_x)/2.

    Deviation from the paper: halved, so that K(x̃, x̃) ≤ 1 stays true (§3 requires it).
    """

    def combine(self, K_z: Array, K_x: Array) -> Array:
        """Average entry by entry."""
        return 0.5 * (K_z + K_x)

    def share(self, K_z: Array) -> Array:
        """Return ∂K/∂K_x, entry by entry."""
        return np.full_like(K_z, 0.5)

    def related(self, K_z: Array) -> BoolArray:
        """Tell which pairs of agents can tell each other anything: all, through K_x."""
        return np.ones_like(K_z, dtype=np.bool_)


_BY_NAME: dict[str, Composition] = {"hadamard": Hadamard(), "kronecker": Hadamard(), "sum": Sum()}


def composition(name: "str | Composition") -> Composition:
    """Look up a composition by its name, as a policy's `compose=` takes it."""
    if isinstance(name, Composition) and not isinstance(name, type):
        return name
    if not isinstance(name, str) or name not in _BY_NAME:
        raise ParameterError(
            f"compose={short(name)} is not known; expected one of {', '.join(sorted(_BY_NAME))}"
        )
    return _BY_NAME[name]


@dataclass(frozen=True, eq=False)
class JointKernel:
    """The kernel K over augmented contexts x̃ = (v, x): rows of agents beside rows of contexts."""

    kernel: Kernel
    K_z: Array
    composition: Composition

    def __call__(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Evaluate every pair: (n,), (n, d), (m,), (m, d) -> (n, m)."""
        K_z = np.take(self.K_z[:, w], u, axis=0)  # whole rows: many times faster than pair by pair
        return self.composition.combine(K_z, self.kernel(X, Y))

    def diagonal(self, u: IntArray, X: Array) -> Array:
        """Evaluate each augmented context with itself: (n,), (n, d) -> (n,)."""
        return self.composition.combine(self.K_z[u, u], self.kernel.diagonal(X))

    def gradient(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Differentiate every pair by x: (n,), (n, d), (m,), (m, d) -> (n, m, d)."""
        K_z = np.take(self.K_z[:, w], u, axis=0)
        share = share_of(self.composition, K_z, lambda: self.kernel(X, Y))
        return share[..., None] * gradient_of(self.kernel, X, Y)

    def diagonal_gradient(self, u: IntArray, X: Array) -> Array:
        """Differentiate each K(x̃, x̃) by x: (n,), (n, d) -> (n, d)."""
        share = share_of(self.composition, self.K_z[u, u], lambda: self.kernel.diagonal(X))
        return share[..., None] * diagonal_gradient_of(self.kernel, X)

    @property
    def related(self) -> BoolArray:
        """Which agents can tell each other anything: (V, V)."""
        return self.composition.related(self.K_z)


@dataclass(frozen=True, eq=False)
class ArmJointKernel(JointKernel):
    """The kernel K over x̃ = (v, a, x), K_z between pairs (v, a); the arm a is a column of contexts.

    K_x sees contexts without that column. K_z is what is left of `pairs` between agents: their mean
    over arms that are the same.

    Attributes:
        pairs: (V·A, V·A) K_arm,network; the pair (v, a) has row vA + a.
        column: Where the arm is.
    """

    pairs: Array
    column: int

    def __call__(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Evaluate every pair: (n,), (n, d), (m,), (m, d) -> (n, m)."""
        between = np.take(self.pairs[:, self._rows(w, Y)], self._rows(u, X), axis=0)
        return self.composition.combine(between, self._contexts(X, Y))

    def diagonal(self, u: IntArray, X: Array) -> Array:
        """Evaluate each augmented context with itself: (n,), (n, d) -> (n,)."""
        own = np.diagonal(self.pairs)[self._rows(u, X)]
        return self.composition.combine(own, self._contexts.diagonal(X))

    def gradient(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Differentiate every pair by x; by the arm, 0: (n,), (n, d), … -> (n, m, d)."""
        between = np.take(self.pairs[:, self._rows(w, Y)], self._rows(u, X), axis=0)
        share = share_of(self.composition, between, lambda: self._contexts(X, Y))
        return share[..., None] * self._contexts.gradient(X, Y)

    def diagonal_gradient(self, u: IntArray, X: Array) -> Array:
        """Differentiate each K(x̃, x̃) by x; by the arm, 0: (n,), (n, d) -> (n, d)."""
        own = np.diagonal(self.pairs)[self._rows(u, X)]
        share = share_of(self.composition, own, lambda: self._contexts.diagonal(X))
        return share[..., None] * self._contexts.diagonal_gradient(X)

    @property
    def related(self) -> BoolArray:
        """Which pairs (v, a) can tell each other anything: (V·A, V·A)."""
        return self.composition.related(self.pairs)

    @cached_property
    def _contexts(self) -> ActiveDimensions:
        return ActiveDimensions(self.kernel, self.column, others=True)

    @cached_property
    def _arm(self) -> ActiveDimensions:
        return ActiveDimensions(self.kernel, self.column)

    def _rows(self, agents: IntArray, X: Array) -> IntArray:
        arms = len(self.pairs) // len(self.K_z)
        return agents * arms + as_arms(self._arm.part(X)[:, 0], arms)


def share_of(composition: Composition, K_z: Array, K_x: Callable[[], Array]) -> Array:
    """Return ∂K/∂K_x, entry by entry; by differences if a composition has no `share(K_z)`."""
    if hasattr(composition, "share"):
        return np.asarray(composition.share(K_z))
    at = K_x()
    step = STEP * np.maximum(1.0, np.abs(at))
    above, below = composition.combine(K_z, at + step), composition.combine(K_z, at - step)
    return (above - below) / (2 * step)
