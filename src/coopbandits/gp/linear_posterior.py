r"""The posterior of one agent's weights: a mean and a covariance of m numbers, and nothing more.

With w the weights of its features, (θ, c) where it has a constant of its own,

    f(x) = φᵀw        w ~ N(mean, C)        of all hypotheses of K_z together (`gp/mixture.py`)

is all that a decision needs, however many agents were heard from. One more observation of the
agent's own folds in by recursive least squares (a rank-one update),

    mean ← mean + Cφ(y − φᵀmean)/(λ + φᵀCφ)        C ← C − Cφ(Cφ)ᵀ/(λ + φᵀCφ)
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array


@dataclass(frozen=True, eq=False)
class LinearPosterior:
    """What is believed of m weights.

    Attributes:
        mean: (m,).
        covariance: C (m, m).
        logdet: log det(I + K/λ) of what was learnt.
        count: From how many observations.
    """

    mean: Array
    covariance: Array
    logdet: float
    count: int

    def conditioned(self, phi: Array, y: float, ridge: float) -> "LinearPosterior":
        """Return what is believed after one more observation: (m,), its reward, and λ."""
        towards = self.covariance @ phi
        variance = max(float(towards @ phi), 0.0)
        gain = towards / (ridge + variance)
        return LinearPosterior(
            self.mean + gain * (y - float(self.mean @ phi)),
            self.covariance - gain[:, None] * towards,
            self.logdet + float(np.log1p(variance / ridge)),
            self.count + 1,
        )

    def ask(self, phi: Array, *, joint: bool = False) -> tuple[Array, Array, Array | None]:
        """Return mean, variance (K,) and, if asked for, covariance (K, K) at K rows: (K, m)."""
        towards = phi @ self.covariance
        covariance = towards @ phi.T if joint else None
        return phi @ self.mean, np.einsum("km,km->k", towards, phi), covariance

    @property
    def root(self) -> Array:
        """G with GGᵀ = C: (m, m)."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
