r"""How likely are rewards under a kernel, a ridge and a scale? The log evidence and its gradient.

Notation: agent v has contexts X (n, d) and rewards y (n,), independent of the others' given the
parameters; A = K(X, X) + λI with K(x, x) = 1 or the linear kernel; N is the sum of all n.

    y ~ N(c, s²A)        α = A⁻¹(y − c)        q = Σ_v (y − c)ᵀα
    log p = −½ (N log 2πs² + Σ_v log det A + q/s²)

With s² = q/N the scale is profiled out, and c = Σ1ᵀA⁻¹y / Σ1ᵀA⁻¹1 unless it is given; at these
the derivatives by both vanish, so the gradient by any other parameter is the partial one,

    ∂ log p = −½ Σ_v (tr(A⁻¹ ∂A) − αᵀ ∂A α / s²).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array
from coopbandits.kernels import RBF, Kernel, Linear, Matern

Data = Sequence[tuple[Array, Array]]


@dataclass(frozen=True)
class Family:
    """Kernels of one form: name "linear", "rbf" or "matern", one lengthscale or one a dimension."""

    name: str
    nu: float = 2.5
    ard: bool = False

    @property
    def has_ridge(self) -> bool:
        """Whether λ is a parameter; of a linear kernel it is 1, as ℓ and s say all of it."""
        return self.name != "linear"

    def count(self, dim: int) -> int:
        """How many parameters there are: log ℓ, and log λ where it is one."""
        return (dim if self.ard else 1) + self.has_ridge

    def kernel(self, lengthscale: Array) -> Kernel:
        """Return the kernel with these lengthscales: (1,) or (d,)."""
        ell = tuple(map(float, lengthscale)) if self.ard else float(lengthscale[0])
        if self.name == "linear":
            return Linear(ell)
        return RBF(ell) if self.name == "rbf" else Matern(self.nu, ell)

    def slopes(self, X: Array, lengthscale: Array, K: Array) -> list[Array]:
        """Return ∂K/∂ log ℓ, one matrix for each lengthscale: (n, n)."""
        U = X / lengthscale
        if self.name == "linear":
            return [-2.0 * np.outer(u, u) for u in U.T] if self.ard else [-2.0 * K]
        gaps = [np.subtract.outer(u, u) ** 2 for u in U.T]
        squared = np.sum(gaps, axis=0)
        slope = K if self.name == "rbf" else _matern_slope(squared, self.nu)
        return [slope * gap for gap in gaps] if self.ard else [slope * squared]


def _matern_slope(squared: Array, nu: float) -> Array:
    """Return −2ν·k'(z)/z for z = √(2ν·squared): ∂k/∂ log ℓ_j is this times (Δ_j/ℓ_j)²."""
    z = np.sqrt(2 * nu * squared)
    if nu == 0.5:  # times a squared gap, which is 0 where z is
        return np.exp(-z) / np.where(z > 0, z, 1.0)
    if nu == 1.5:
        return 3 * np.exp(-z)
    return 5 / 3 * (1 + z) * np.exp(-z)


@dataclass(frozen=True, eq=False)
class Marginal:
    """The log evidence at some parameters.

    Attributes:
        value: log p.
        gradient: By log ℓ (and log λ), and last by log s: 0 where s is profiled out.
        scale: s.
        centre: c.
        norm: The largest norm of an agent's posterior mean, in the RKHS of s²K.
    """

    value: float
    gradient: Array
    scale: float
    centre: float
    norm: float


def marginal(
    family: Family,
    data: Data,
    parameters: Array,
    *,
    centre: float | None = None,
    scale: float | None = None,
) -> Marginal:
    """Compute the log evidence and its gradient.

    Args:
        family: Of the kernel.
        data: (n, d), (n,) of each agent.
        parameters: log ℓ, of all dimensions or each, and log λ if the family has it.
        centre: c; the best, if not given.
        scale: s; the best, if not given.
    """
    lengthscale = np.exp(parameters[: len(parameters) - family.has_ridge])
    ridge = float(np.exp(parameters[-1])) if family.has_ridge else 1.0
    kernel = family.kernel(lengthscale)
    parts = [_part(family, kernel, lengthscale, ridge, X, y) for X, y in data]
    N = sum(len(y) for _, y in data)
    c = centre
    if c is None:
        c = sum(p.forms[0, 1] for p in parts) / sum(p.forms[0, 0] for p in parts)
    mix = np.array([-c, 1.0])  # y − c in terms of 1 and y
    q = sum(float(mix @ p.forms @ mix) for p in parts)
    s2 = max(q / N, 1e-300) if scale is None else scale**2
    value = -0.5 * (N * np.log(2 * np.pi * s2) + sum(p.logdet for p in parts) + q / s2)
    gradient = [
        -0.5 * sum(p.traces[j] - float(mix @ p.slopes[j] @ mix) / s2 for p in parts)
        for j in range(len(parameters))
    ]
    norms = [float(mix @ (p.forms - ridge * p.squares) @ mix) / s2 for p in parts]
    return Marginal(
        value=float(value),
        gradient=np.array([*gradient, q / s2 - N]),
        scale=float(np.sqrt(s2)),
        centre=float(c),
        norm=float(np.sqrt(max(0.0, *norms))),
    )


@dataclass(frozen=True)
class _Part:
    """One agent's part, with B = [1, y] (n, 2): what is needed at any c."""

    logdet: float
    forms: Array  # BᵀA⁻¹B
    squares: Array  # BᵀA⁻²B
    traces: list[float]  # tr(A⁻¹ ∂A)
    slopes: list[Array]  # BᵀA⁻¹ ∂A A⁻¹B


def _part(
    family: Family, kernel: Kernel, lengthscale: Array, ridge: float, X: Array, y: Array
) -> _Part:
    from scipy.linalg import cho_solve, cholesky  # noqa: PLC0415 (heavy)

    K = kernel(X, X)
    A = K + ridge * np.eye(len(y))
    L = cholesky(A, lower=True, check_finite=False)
    B = np.column_stack([np.ones(len(y)), y])
    solved = cho_solve((L, True), B, check_finite=False)
    changes = family.slopes(X, lengthscale, K)
    if family.has_ridge:
        changes.append(ridge * np.eye(len(y)))
    return _Part(
        logdet=2 * float(np.log(np.diagonal(L)).sum()),
        forms=B.T @ solved,
        squares=solved.T @ solved,
        traces=[
            float(np.trace(cho_solve((L, True), change, check_finite=False))) for change in changes
        ],
        slopes=[solved.T @ change @ solved for change in changes],
    )
