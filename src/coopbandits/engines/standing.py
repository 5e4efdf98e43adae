r"""What does an agent believe of its weights, if it learns its own observations one at a time?

Of an observation (φ, y), with C the covariance of the weights and σ² = φᵀCφ,

    mean ← mean + Cφ (y − φᵀmean)/(λ + σ²)      C ← C − Cφ(Cφ)ᵀ/(λ + σ²)

To write all of C each time takes longer than to ask it. So the last few columns Cφ/√(λ + σ²) are
kept beside it, C = C₀ − GᵀG, and folded into it together.
"""

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray

# So many observations are kept beside the covariance.
_BESIDE = 16
# Covariances are folded in batches of about this many numbers, which stay in a core's cache.
_CACHE = 100_000


class Standing:
    """The beliefs of V agents about m weights each.

    Attributes:
        mean: (V, m).
        logdet: (V,) log det(I + K/λ) of what each has learnt.
        count: (V,) how much that is.
        seen: (V,) how many observations there were when an agent's belief was last made afresh.
    """

    def __init__(self, covariance: Array, ridge: float) -> None:
        """Start with what is believed beforehand: (V, m, m)."""
        V, m = covariance.shape[:2]
        self._ridge = ridge
        self._covariance = covariance
        self._beside = np.zeros((V, _BESIDE, m))
        self._used = 0
        self.mean = np.zeros((V, m))
        self.logdet = np.zeros(V)
        self.count = np.zeros(V, dtype=np.int64)
        self.seen = np.zeros(V, dtype=np.int64)

    @staticmethod
    def bytes(V: int, m: int) -> float:
        """How much memory it takes."""
        return 8.0 * V * (m * m + (_BESIDE + 1) * m + 3) + 8.0 * 2 * _CACHE

    def stand(
        self, agents: IntArray, mean: Array, covariance: Array, logdet: Array, count: IntArray
    ) -> None:
        """Let some agents believe what follows from all that has arrived: (B, m), …, (B,)."""
        self.mean[agents], self._covariance[agents] = mean, covariance
        self._beside[agents] = 0.0
        self.logdet[agents], self.count[agents] = logdet, count
        self.seen[agents] = count

    def learn(self, who: BoolArray, phi: Array, y: Array) -> None:
        """Let some agents learn one observation of their own: (V,), (V, m), (V,)."""
        gain = (phi[:, None, :] @ self._covariance)[:, 0]
        if self._used:
            beside = self._beside[:, : self._used]
            along = np.swapaxes(beside @ phi[..., None], 1, 2)
            gain -= (along @ beside)[:, 0]
        variance = np.maximum(np.einsum("vm,vm->v", gain, phi), 0.0)
        surprise = y - np.einsum("vm,vm->v", self.mean, phi)
        weight = who / (self._ridge + variance)
        self.mean += gain * (weight * surprise)[:, None]
        self._beside[:, self._used] = gain * np.sqrt(weight)[:, None]
        self._used += 1
        self.logdet += who * np.log1p(variance / self._ridge)
        self.count += who
        if self._used == _BESIDE:
            self._fold()

    def ask(
        self, phi: Array, agents: IntArray | slice = slice(None), *, joint: bool
    ) -> tuple[Array, Array, Array | None]:
        """Return mean, variance (B, K) and, if asked for, covariance (B, K, K) at (B, K, m)."""
        mean = (phi @ self.mean[agents][..., None])[..., 0]
        spread = phi @ self._covariance[agents]
        along = phi @ np.swapaxes(self._beside[agents, : self._used], 1, 2)
        if joint:
            covariance = spread @ np.swapaxes(phi, 1, 2) - along @ np.swapaxes(along, 1, 2)
            return mean, np.diagonal(covariance, axis1=1, axis2=2), covariance
        spread *= phi
        along *= along
        return mean, spread.sum(axis=2) - along.sum(axis=2), None

    def _fold(self) -> None:
        V, _, m = self._beside.shape
        size = max(1, _CACHE // m**2)
        for start in range(0, V, size):
            some = self._beside[start : start + size]
            self._covariance[start : start + size] -= np.swapaxes(some, 1, 2) @ some
        self._beside[:] = 0.0
        self._used = 0
