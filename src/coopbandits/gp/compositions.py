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
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from coopbandits.arms import ActiveDimensions, as_arms
from coopbandits.arrays import Array, BoolArray, IntArray, as_choice
from coopbandits.errors import NonFiniteError
from coopbandits.gp.covariances import own_rows
from coopbandits.gp.network_kernel import NetworkKernel
from coopbandits.kernels import STEP, Kernel, diagonal_gradient_of, gradient_of

# σ² is a difference of numbers of size K(x̃, x̃), and as small as λ/n: its relative error is about
# 1e-16·n·K/λ. Beyond this ratio too few digits are left.
LARGEST_RATIO = 1e10


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
    return _BY_NAME[as_choice(name, "compose", sorted(_BY_NAME))]


def with_constants(K: Array, u: IntArray, w: IntArray, intercept: float) -> Array:
    """Add τ² where two observations are of the same agent: (n, m), (n,), (m,)."""
    return K if intercept == 0 else K + intercept * (u[:, None] == w[None, :])


@dataclass(frozen=True, eq=False)
class JointKernel:
    """The kernel K over augmented contexts x̃ = (v, x): rows of agents beside rows of contexts.

    Attributes:
        kernel: K_x.
        K_z: Between agents.
        composition: How they make one kernel.
        intercept: τ², the prior variance of a constant of each agent's own (`gp/intercept.py`).
    """

    kernel: Kernel
    K_z: NetworkKernel
    composition: Composition
    intercept: float = 0.0

    def __call__(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Evaluate every pair: (n,), (n, d), (m,), (m, d) -> (n, m)."""
        K = self.composition.combine(self.K_z.block(u, w), self.kernel(X, Y))
        return with_constants(K, u, w, self.intercept)

    def diagonal(self, u: IntArray, X: Array) -> Array:
        """Evaluate each augmented context with itself: (n,), (n, d) -> (n,)."""
        return self.composition.combine(self.K_z.own(u), self.kernel.diagonal(X)) + self.intercept

    @property
    def without_constants(self) -> "JointKernel":
        """K of the functions alone."""
        return replace(self, intercept=0.0) if self.intercept else self

    def gradient(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Differentiate every pair by x: (n,), (n, d), (m,), (m, d) -> (n, m, d)."""
        share = share_of(self.composition, self.K_z.block(u, w), lambda: self.kernel(X, Y))
        return share[..., None] * gradient_of(self.kernel, X, Y)

    def diagonal_gradient(self, u: IntArray, X: Array) -> Array:
        """Differentiate each K(x̃, x̃) by x: (n,), (n, d) -> (n, d)."""
        share = share_of(self.composition, self.K_z.own(u), lambda: self.kernel.diagonal(X))
        return share[..., None] * diagonal_gradient_of(self.kernel, X)

    def admits(self, ridge: float, u: IntArray, X: Array) -> bool:
        """Tell whether contexts can be learnt from and asked about: (m,), (m, d).

        K(x̃, x̃)/λ must leave digits for a Cholesky factor; by Cauchy-Schwarz that bounds K between
        contexts too. A kernel that cannot take such contexts (their dimension, an arm) raises here.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            self(u[:1], X[:1], u[:1], X[:1])
            return bool((self.diagonal(u, X) <= LARGEST_RATIO * ridge).all())

    @property
    def parts(self) -> IntArray | None:
        """(V,) labels that agree exactly where agents can tell each other anything, if any do."""
        if _relates_all(self.composition):
            return np.zeros(len(self.K_z), dtype=np.int64)
        return self.K_z.parts if isinstance(self.composition, Hadamard) else None

    def linked(self, agents: IntArray) -> IntArray:
        """Label agents so that chains of related ones of them join all of one label: (n, 1)."""
        return _chains(self.composition.related(self.K_z.block(agents, agents)))[:, None]


@dataclass(frozen=True, eq=False)
class ArmJointKernel(JointKernel):
    """The kernel K over x̃ = (v, a, x), K_z between pairs (v, a); the arm a is a column of contexts.

    K_x sees contexts without that column. K_z is what is left of `pairs` between agents: their mean
    over arms that are the same.

    Attributes:
        pairs: (V·A, V·A) K_arm,network; the pair (v, a) has row vA + a.
        column: Where the arm is.
    """

    pairs: Array = field(kw_only=True)
    column: int = field(kw_only=True)

    def __call__(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Evaluate every pair: (n,), (n, d), (m,), (m, d) -> (n, m)."""
        between = np.take(self.pairs[:, self._rows(w, Y)], self._rows(u, X), axis=0)
        K = self.composition.combine(between, self._contexts(X, Y))
        return with_constants(K, u, w, self.intercept)

    def diagonal(self, u: IntArray, X: Array) -> Array:
        """Evaluate each augmented context with itself: (n,), (n, d) -> (n,)."""
        own = np.diagonal(self.pairs)[self._rows(u, X)]
        return self.composition.combine(own, self._contexts.diagonal(X)) + self.intercept

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
    def parts(self) -> IntArray | None:
        """None, unless all are related: agents may be so at some arms only."""
        return super().parts if _relates_all(self.composition) else None

    def linked(self, agents: IntArray) -> IntArray:
        """Label agents at each arm so that chains of related pairs join those of one: (n, A)."""
        arms = np.arange(len(self.pairs) // len(self.K_z))
        rows = (agents[:, None] * len(arms) + arms).ravel()
        related = self.composition.related(self.pairs[np.ix_(rows, rows)])
        return _chains(related).reshape(len(agents), len(arms))

    @cached_property
    def _contexts(self) -> ActiveDimensions:
        return ActiveDimensions(self.kernel, self.column, others=True)

    @cached_property
    def _arm(self) -> ActiveDimensions:
        return ActiveDimensions(self.kernel, self.column)

    def _rows(self, agents: IntArray, X: Array) -> IntArray:
        arms = len(self.pairs) // len(self.K_z)
        return agents * arms + as_arms(self._arm.part(X)[:, 0], arms)


def _relates_all(composition: Composition) -> bool:
    """Tell whether agents are related, however little alike they are."""
    return bool(composition.related(np.zeros((1, 1)))[0, 0])


def _chains(related: BoolArray) -> IntArray:
    """Label the connected components of a relation: (n, n) -> (n,)."""
    from scipy.sparse import csr_array  # noqa: PLC0415 (heavy)
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 (heavy)

    links = csr_array(related.astype(np.int8))
    return connected_components(links, directed=False)[1].astype(np.int64)


def share_of(composition: Composition, K_z: Array, K_x: Callable[[], Array]) -> Array:
    """Return ∂K/∂K_x, entry by entry; by differences if a composition has no `share(K_z)`."""
    if hasattr(composition, "share"):
        return np.asarray(composition.share(K_z))
    at = K_x()
    step = STEP * np.maximum(1.0, np.abs(at))
    above, below = composition.combine(K_z, at + step), composition.combine(K_z, at - step)
    return (above - below) / (2 * step)


def refusal(X: Array, ridge: float) -> NonFiniteError:
    """Say why contexts are not admitted."""
    return NonFiniteError(
        f"the kernel is too large beside the ridge {ridge:g} for some contexts (their largest "
        f"entry is {np.abs(X).max():.3g}); give the policy scaling=coopbandits.Scaling(shift, "
        "spread) for contexts in raw units, or a larger ridge: K(x, x) must be at most "
        f"{LARGEST_RATIO:g} times the ridge"
    )


def residual_variance(prior: JointKernel, agents: IntArray, X: Array, phi: Array) -> Array:
    """Return the prior variance that features do not hold: (M,), (M, d), (M, m) -> (M,)."""
    whole = prior.without_constants.diagonal(agents, X)
    held = prior.K_z.own(agents) * np.einsum("ij,ij->i", phi, phi)
    return np.where(whole - held > 1e-12 * whole, whole - held, 0.0)


def residual_covariance(
    prior: JointKernel, agents: IntArray, X: Array, phi: Array, variance: Array
) -> Array:
    """Return the covariances that features do not hold, given `residual_variance`: (M, K).

    So near contexts are drawn alike, also where the features cannot tell.
    """
    blocks, prior = own_rows(agents), prior.without_constants
    covariance = np.zeros((len(agents), max(map(len, blocks))))
    for rows in blocks:
        if not variance[rows].any():
            continue
        u, root = agents[rows], np.sqrt(variance[rows])
        held = prior.K_z.own(u[:1])[0] * (phi[rows] @ phi[rows].T)
        left = prior(u, X[rows], u, X[rows]) - held
        # of features that are no projection not even this much is sure
        most = root[:, None] * root[None, :]
        left = np.clip(left, -most, most)
        np.fill_diagonal(left, variance[rows])
        covariance[rows, : len(rows)] = left
    return covariance
