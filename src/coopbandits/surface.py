r"""How do an agent's beliefs change from point to point? Mean and σ with their gradients.

Notation as in `posterior.py`; κ(x) holds K between x̃ and the n observations, ∂κ its gradient:

    mean       κᵀα                     ∇mean = ∂κᵀα               α = (K + λI)⁻¹y, once
    variance   K(x̃, x̃) − |L⁻¹κ|²       ∇σ² = ∇K(x̃, x̃) − 2∂κᵀβ     β = L⁻ᵀL⁻¹κ, two solves a point
    σ          the root                ∇σ = ∇σ²/2σ, and 0 where rounding leaves σ = 0

and with m features, whose weights have mean θ and covariance C = GGᵀ, the same of φᵀθ, |Gᵀφ|² and
the variance that the features do not hold. All points asked for share the solves.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.features import jacobian_of
from coopbandits.kernels import diagonal_gradient_of
from coopbandits.model import Ahead, Attachments
from coopbandits.posterior import (
    Posterior,
    SmoothKernel,
    cholesky,
    deviation,
    solve_lower,
    solve_upper,
)
from coopbandits.summed_model import SummedModel

# Below this part of K(x̃, x̃) a variance is rounding, and its root has no slope.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Slopes:
    """Beliefs at m points with their gradients: mean, std (m,), and by x (m, d)."""

    mean: Array
    std: Array
    mean_by_x: Array
    std_by_x: Array


class Surface(Protocol):
    """One agent's beliefs at all points."""

    def believe(self, X: Array) -> tuple[Array, Array]:
        """Return mean and std at m points: (m, d) -> (m,), (m,)."""
        ...

    def slopes(self, X: Array) -> Slopes:
        """Return the same with their gradients."""
        ...


class ExactSurface:
    """The beliefs of an agent that keeps its observations."""

    def __init__(self, ahead: Ahead, attachments: Attachments, offered: Array) -> None:
        """Lay it out.

        Args:
            ahead: The agent's model, with what it has not learnt yet.
            attachments: What goes with its contexts.
            offered: (k, d) what stands for the whole decision set, where its law counts.
        """
        self._agent = ahead.model.agent
        self._attached = attachments.attached(offered)
        self._known = _Known(ahead)
        self._alpha = self._known.unwhiten(self._known.whitened_rewards[:, None])[:, 0]

    def believe(self, X: Array) -> tuple[Array, Array]:
        """Return mean and std at m points: (m, d) -> (m,), (m,)."""
        u, asked = self._asked(X)
        cross = self._known.kernel(*self._known.observations, u, asked)
        mean = self._alpha @ cross
        Z = self._known.whiten(cross)
        variance = self._known.kernel.diagonal(u, asked) - np.einsum("ij,ij->j", Z, Z)
        return mean, deviation(variance)

    def slopes(self, X: Array) -> Slopes:
        """Return mean and std at m points with their gradients: (m, d)."""
        u, asked = self._asked(X)
        kernel, (agents, contexts) = self._known.kernel, self._known.observations
        cross = kernel(agents, contexts, u, asked)
        by_x = kernel.gradient(u, asked, agents, contexts)
        Z = self._known.whiten(cross)
        beta = self._known.unwhiten(Z)
        whole = kernel.diagonal(u, asked)
        variance = whole - np.einsum("ij,ij->j", Z, Z)
        variance_by_x = kernel.diagonal_gradient(u, asked) - 2 * (beta.T[:, None, :] @ by_x)[:, 0]
        return _rooted(self._alpha @ cross, variance, self._alpha @ by_x, variance_by_x, whole)

    def _asked(self, X: Array) -> tuple[IntArray, Array]:
        own = np.repeat(self._attached[None, :], len(X), axis=0)
        return np.full(len(X), self._agent), np.hstack([X, own])


class _Known:
    """All observations of a model, those that it only looks ahead to bordering its factor."""

    def __init__(self, ahead: Ahead) -> None:
        self._newest = ahead.newest
        self._past: Posterior = ahead.next.posterior
        assert isinstance(self._past.kernel, SmoothKernel)
        self.kernel: SmoothKernel = self._past.kernel
        self.observations = self._past.observations
        self.whitened_rewards = self._past.whitened_rewards
        if self._newest is None:
            return
        agents, contexts = self.observations
        self._corner = cholesky(self._newest.S)
        fresh = solve_lower(self._corner, self._newest.residual[:, None])[:, 0]
        self.whitened_rewards = np.append(self.whitened_rewards, fresh)
        self.observations = (
            np.append(agents, self._newest.agents),
            np.vstack([contexts, self._newest.X]) if len(agents) else self._newest.X,
        )

    def whiten(self, B: Array) -> Array:
        """Solve LZ = B: (n, m)."""
        if self._newest is None:
            return self._past.whiten(B)
        n = len(self._past)
        Z = self._past.whiten(B[:n])
        return np.vstack([Z, solve_lower(self._corner, B[n:] - self._newest.Z.T @ Z)])

    def unwhiten(self, Z: Array) -> Array:
        """Solve LᵀB = Z: (n, m)."""
        if self._newest is None:
            return self._past.unwhiten(Z)
        n = len(self._past)
        last = solve_upper(self._corner, Z[n:])
        return np.vstack([self._past.unwhiten(Z[:n] - self._newest.Z @ last), last])


class SummedSurface:
    """The beliefs of an agent that keeps sums of features."""

    def __init__(self, model: SummedModel) -> None:
        self._model, self._basis = model, model.policy.features
        assert self._basis is not None
        m = self._basis.size(model.policy.kernel, model.dim)
        self._theta, self._G = model.ask(np.eye(m))[:2]
        self._scale = float(model.plan.border.K_z[model.agent, model.agent])

    def believe(self, X: Array) -> tuple[Array, Array]:
        """Return mean and std at m points: (m, d) -> (m,), (m,)."""
        phi, beyond = self._features(X)
        spread = phi @ self._G
        return phi @ self._theta, deviation(np.einsum("ij,ij->i", spread, spread) + beyond)

    def slopes(self, X: Array) -> Slopes:
        """Return mean and std at m points with their gradients: (m, d)."""
        assert self._basis is not None
        kernel = self._model.policy.kernel
        phi, beyond = self._features(X)
        jacobian = jacobian_of(self._basis, kernel, X)
        spread = phi @ self._G
        # ∇ of |Gᵀφ|², and of K(x̃, x̃) − K_z|φ|² where that counts
        counts = (beyond > 0)[:, None]
        pull = spread @ self._G.T - counts * self._scale * phi
        variance_by_x = 2 * (pull[:, None, :] @ jacobian)[:, 0]
        variance_by_x += counts * self._scale * diagonal_gradient_of(kernel, X)
        variance = np.einsum("ij,ij->i", spread, spread) + beyond
        whole = self._scale * kernel.diagonal(X)
        mean_by_x = self._theta @ jacobian
        return _rooted(phi @ self._theta, variance, mean_by_x, variance_by_x, whole)

    def _features(self, X: Array) -> tuple[Array, Array]:
        assert self._basis is not None
        phi = self._basis.features(self._model.policy.kernel, X)
        agents = np.full(len(X), self._model.agent)
        return phi, self._model.plan.outside(agents, X, phi)


def _rooted(
    mean: Array, variance: Array, mean_by_x: Array, variance_by_x: Array, whole: Array
) -> Slopes:
    std = deviation(variance)
    sound = variance > _ROUNDING * whole
    by_x = np.where(sound, 0.5 / np.where(sound, std, 1.0), 0.0)[:, None] * variance_by_x
    return Slopes(mean, std, mean_by_x, by_x)
