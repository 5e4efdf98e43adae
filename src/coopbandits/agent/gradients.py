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

from coopbandits.arrays import Array, IntArray
from coopbandits.features import Basis, jacobian_of
from coopbandits.gp.compositions import JointKernel, residual_variance
from coopbandits.gp.intercept import Intercept
from coopbandits.gp.mixture import PosteriorMixture
from coopbandits.gp.posterior import Posterior, SmoothKernel, deviation
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


class FactorSurface:
    """The beliefs of an agent that keeps a factor under each hypothesis."""

    def __init__(self, posteriors: PosteriorMixture, agent: int, attached: Array) -> None:
        """Lay it out; (·,) is what the posterior takes beside each context."""
        self._agent, self._attached = agent, attached
        self._parts = [_Part(posterior) for posterior in posteriors.posteriors]
        self._weight = posteriors.weight

    def believe(self, X: Array) -> tuple[Array, Array]:
        """Return mean and std at m points: (m, d) -> (m,), (m,)."""
        parts = [part.believe(*self._asked(X)) for part in self._parts]
        means, variances = (np.array(part) for part in zip(*parts, strict=True))
        mean = self._weight @ means
        return mean, deviation(self._weight @ (variances + (means - mean) ** 2))

    def slopes(self, X: Array) -> Slopes:
        """Return mean and std at m points with their gradients: (m, d)."""
        u, asked = self._asked(X)
        parts = [part.slopes(u, asked) for part in self._parts]
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
            self._parts[0].kernel.diagonal(u, asked),
        )

    def _asked(self, X: Array) -> tuple[IntArray, Array]:
        own = np.repeat(self._attached[None, :], len(X), axis=0)
        return np.full(len(X), self._agent), np.hstack([X, own])


class _Part:
    """A posterior with α = (K + λI)⁻¹y, under one hypothesis."""

    def __init__(self, posterior: Posterior) -> None:
        assert isinstance(posterior.kernel, SmoothKernel)
        self.kernel: SmoothKernel = posterior.kernel
        self._posterior = posterior
        self._known = posterior.agents, posterior.contexts
        self._alpha = posterior.unwhiten(posterior.whitened_rewards[:, None])[:, 0]

    def believe(self, u: IntArray, asked: Array) -> tuple[Array, Array]:
        """Return mean and variance at m points: (m,), (m, ·) -> (m,), (m,)."""
        cross = self.kernel(*self._known, u, asked)
        Z = self._posterior.whiten(cross)
        variance = self.kernel.diagonal(u, asked) - np.einsum("ij,ij->j", Z, Z)
        return self._alpha @ cross, variance

    def slopes(self, u: IntArray, asked: Array) -> tuple[Array, Array, Array, Array]:
        """Return mean and variance at m points, and their gradients: (m,), (m,), (m, d), (m, d)."""
        cross = self.kernel(*self._known, u, asked)
        by_x = self.kernel.gradient(u, asked, *self._known)
        Z = self._posterior.whiten(cross)
        beta = self._posterior.unwhiten(Z)
        variance = self.kernel.diagonal(u, asked) - np.einsum("ij,ij->j", Z, Z)
        variance_by_x = self.kernel.diagonal_gradient(u, asked)
        variance_by_x = variance_by_x - 2 * (beta.T[:, None, :] @ by_x)[:, 0]
        return self._alpha @ cross, variance, self._alpha @ by_x, variance_by_x


class WeightsSurface:
    """The beliefs of an agent whose m weights have mean θ and covariance GGᵀ.

    Where it has a constant of its own that is a weight more, the last.
    """

    def __init__(
        self, prior: JointKernel, agent: int, basis: Basis, theta: Array, G: Array
    ) -> None:
        """Lay it out: θ (m,), G (m, ·)."""
        self._prior, self._agent, self._basis = prior, agent, basis
        self._theta, self._G = theta, G
        self._scale = float(prior.K_z.own(np.array([agent]))[0])

    def believe(self, X: Array) -> tuple[Array, Array]:
        """Return mean and std at m points: (m, d) -> (m,), (m,)."""
        _, asked, left = self._features(X)
        spread = asked @ self._G
        return asked @ self._theta, deviation(np.einsum("ij,ij->i", spread, spread) + left)

    def slopes(self, X: Array) -> Slopes:
        """Return mean and std at m points with their gradients: (m, d)."""
        kernel = self._prior.kernel
        phi, asked, left = self._features(X)
        m = phi.shape[1]
        jacobian = jacobian_of(self._basis, kernel, X)
        spread = asked @ self._G
        # ∇ of |Gᵀφ|², and of K(x̃, x̃) − K_z|φ|² where that counts
        counts = (left > 0)[:, None]
        pull = spread @ self._G[:m].T - counts * self._scale * phi
        variance_by_x = 2 * (pull[:, None, :] @ jacobian)[:, 0]
        variance_by_x += counts * self._scale * diagonal_gradient_of(kernel, X)
        variance = np.einsum("ij,ij->i", spread, spread) + left
        whole = self._scale * kernel.diagonal(X) + self._prior.intercept
        mean_by_x = self._theta[:m] @ jacobian
        return _rooted(asked @ self._theta, variance, mean_by_x, variance_by_x, whole)

    def _features(self, X: Array) -> tuple[Array, Array, Array]:
        """Return φ, what the weights are asked at and the variance that φ leaves out."""
        phi = self._basis.features(self._prior.kernel, X)
        asked = Intercept.features(phi) if self._prior.intercept else phi
        left = residual_variance(self._prior, np.full(len(X), self._agent), X, phi)
        return phi, asked, left


def _rooted(
    mean: Array, variance: Array, mean_by_x: Array, variance_by_x: Array, whole: Array
) -> Slopes:
    std = deviation(variance)
    sound = variance > _ROUNDING * whole
    by_x = np.where(sound, 0.5 / np.where(sound, std, 1.0), 0.0)[:, None] * variance_by_x
    return Slopes(mean, std, mean_by_x, by_x)
