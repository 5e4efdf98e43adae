r"""How do an agent's beliefs change from point to point? Mean and σ with their gradients.

Notation as in `gp/posterior.py`; κ(x) holds K between x̃ and the n observations, ∂κ its gradient:

    mean       κᵀα                     ∇mean = ∂κᵀα               α = (K + λI)⁻¹y, once
    variance   K(x̃, x̃) − |L⁻¹κ|²       ∇σ² = ∇K(x̃, x̃) − 2∂κᵀβ     β = L⁻ᵀL⁻¹κ, two solves a point
    σ          the root                ∇σ = ∇σ²/2σ, and 0 where rounding leaves σ = 0

and with m features, whose weights have mean θ and covariance C = GGᵀ, the same of φᵀθ, |Gᵀφ|² and
the variance that the features do not hold. All points asked for share the solves. Where K_z may be
one of several, mean and variance are those of the mixture (`gp/mixture.py`):

    variance   Σ_h w_h(σ_h² + (mean_h − mean)²)      ∇ = Σ_h w_h(∇σ_h² + 2(mean_h − mean)∇mean_h)
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coopbandits.agent.model import Ahead, Attachments
from coopbandits.agent.summed_model import SummedModel
from coopbandits.arrays import Array, IntArray
from coopbandits.features import jacobian_of
from coopbandits.gp.posterior import (
    Newest,
    Posterior,
    SmoothKernel,
    cholesky,
    deviation,
    solve_lower,
    solve_upper,
)
from coopbandits.gp.residual import residual_variance
from coopbandits.kernels import diagonal_gradient_of

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
        self._known = [_Known(mind.posterior, newest) for mind, newest in ahead.minds]
        self._weight = np.array([mind.weight for mind, _ in ahead.minds])

    def believe(self, X: Array) -> tuple[Array, Array]:
        """Return mean and std at m points: (m, d) -> (m,), (m,)."""
        parts = [known.believe(*self._asked(X)) for known in self._known]
        means, variances = (np.array(part) for part in zip(*parts, strict=True))
        mean = self._weight @ means
        return mean, deviation(self._weight @ (variances + (means - mean) ** 2))

    def slopes(self, X: Array) -> Slopes:
        """Return mean and std at m points with their gradients: (m, d)."""
        u, asked = self._asked(X)
        parts = [known.slopes(u, asked) for known in self._known]
        means, variances, means_by_x, variances_by_x = (
            np.array(part) for part in zip(*parts, strict=True)
        )
        mean = self._weight @ means
        off = means - mean
        return _rooted(
            mean,
            self._weight @ (variances + off**2),
            np.tensordot(self._weight, means_by_x, axes=1),
            np.tensordot(self._weight, variances_by_x + 2 * off[..., None] * means_by_x, axes=1),
            self._known[0].kernel.diagonal(u, asked),
        )

    def _asked(self, X: Array) -> tuple[IntArray, Array]:
        own = np.repeat(self._attached[None, :], len(X), axis=0)
        return np.full(len(X), self._agent), np.hstack([X, own])


class _Known:
    """All that is known under one K_z; what is only looked ahead to borders the factor."""

    def __init__(self, past: Posterior, newest: Newest | None) -> None:
        self._newest, self._past = newest, past
        assert isinstance(past.kernel, SmoothKernel)
        self.kernel: SmoothKernel = past.kernel
        self._observations = past.observations
        whitened_rewards = past.whitened_rewards
        if newest is not None:
            agents, contexts = self._observations
            self._corner = cholesky(newest.S)
            fresh = solve_lower(self._corner, newest.residual[:, None])[:, 0]
            whitened_rewards = np.append(whitened_rewards, fresh)
            self._observations = (
                np.append(agents, newest.agents),
                np.vstack([contexts, newest.X]) if len(agents) else newest.X,
            )
        self._alpha = self.unwhiten(whitened_rewards[:, None])[:, 0]

    def believe(self, u: IntArray, asked: Array) -> tuple[Array, Array]:
        """Return mean and variance at m points: (m,), (m, ·) -> (m,), (m,)."""
        cross = self.kernel(*self._observations, u, asked)
        Z = self.whiten(cross)
        variance = self.kernel.diagonal(u, asked) - np.einsum("ij,ij->j", Z, Z)
        return self._alpha @ cross, variance

    def slopes(self, u: IntArray, asked: Array) -> tuple[Array, Array, Array, Array]:
        """Return mean and variance at m points, and their gradients: (m,), (m,), (m, d), (m, d)."""
        cross = self.kernel(*self._observations, u, asked)
        by_x = self.kernel.gradient(u, asked, *self._observations)
        Z = self.whiten(cross)
        beta = self.unwhiten(Z)
        variance = self.kernel.diagonal(u, asked) - np.einsum("ij,ij->j", Z, Z)
        variance_by_x = self.kernel.diagonal_gradient(u, asked)
        variance_by_x = variance_by_x - 2 * (beta.T[:, None, :] @ by_x)[:, 0]
        return self._alpha @ cross, variance, self._alpha @ by_x, variance_by_x

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
        self._scale = float(model.plan.prior.K_z[model.agent, model.agent])

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
        return phi, residual_variance(self._model.plan.prior, agents, X, phi)


def _rooted(
    mean: Array, variance: Array, mean_by_x: Array, variance_by_x: Array, whole: Array
) -> Slopes:
    std = deviation(variance)
    sound = variance > _ROUNDING * whole
    by_x = np.where(sound, 0.5 / np.where(sound, std, 1.0), 0.0)[:, None] * variance_by_x
    return Slopes(mean, std, mean_by_x, by_x)
