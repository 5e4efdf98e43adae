r"""Posterior weights: what do everyone's sufficient statistics say about one agent's function?

With m features, agent u's weights are θ_u = Σ_k U_uk g_k + √δ_u h_u, all parts N(0, I): that is
K_z = UUᵀ + diag(δ). The others' own parts h_u are integrated out of their statistics
(`Statistics.shared`). What is left are the shared parts and the asking agent's own, w = (g, h_v),
about which all observations say

    A = λI + Σ_u R_uᵀ S̃_u R_u        c = Σ_u R_uᵀ b̃_u        θ_v = R_v w

with R_u = (U_u ⊗ I, 0) for the others and R_v = (U_v ⊗ I, √δ_v I) for the agent itself. Then

    mean = φᵀR_vA⁻¹c            log det(I + K/λ) = log det(A/λ) + Σ_u log det(I + δ_u S_u/λ)
    variance = λφᵀR_vA⁻¹R_vᵀφ

and one Cholesky factor of A, bordered by what is asked and by c, gives all of it.
"""

from dataclasses import dataclass, replace

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.gp.statistics import Statistics, coupled, solved


@dataclass(frozen=True, eq=False)
class OwnPart:
    """Of B agents themselves: U_v (B, r), δ_v (B,), S_v (B, m, m), b_v (B, m)."""

    U: Array
    delta: Array
    S: Array
    b: Array


@dataclass(frozen=True, eq=False)
class Weights:
    """What is known of B agents' shared and own parts.

    Attributes:
        A: (B, D, D), D = (r + 1)m, or rm where no δ_v is above 0; the lower half counts.
        c: (B, D).
        loading: (B, D/m) how θ_v is made of the parts: U_v, √δ_v.
        logdet: (B,) the part of log det(I + K/λ) that does not come from A.
        ridge: λ.
    """

    A: Array
    c: Array
    loading: Array
    logdet: Array
    ridge: float

    @classmethod
    def pooled(
        cls,
        U: Array,
        delta: Array,
        me: IntArray,
        statistics: Statistics,
        ridge: float,
        scale: Array | float = 1.0,
    ) -> "Weights":
        """Pool what B agents have heard.

        Args:
            U: (B, N, r).
            delta: (B, N).
            me: (B,) the column of the agent itself.
            statistics: (B, N, …) of all agents, its own included; 0 for those not heard from.
            ridge: λ.
            scale: (B, N) what rewards of each agent are multiplied by; 1 for its own.
        """
        rows = np.arange(len(me))
        others = delta.copy()
        others[rows, me] = 0.0
        if others.any():
            shared, logdets = statistics.shared(others / ridge)
            logdet = logdets.sum(axis=1)
        else:
            shared = statistics
            logdet = np.zeros(len(me)) + np.sum(statistics.logdet, axis=-1)
        own = OwnPart(U[rows, me], delta[rows, me], statistics.S[rows, me], statistics.b[rows, me])
        if np.any(scale != 1.0):
            shared = replace(shared, b=shared.b * np.asarray(scale)[..., None], known_compact=None)
        return cls.of(*coupled(U, shared), own, logdet, ridge)

    @classmethod
    def of(cls, A: Array, c: Array, own: "OwnPart", logdet: Array, ridge: float) -> "Weights":
        """Add agents' own parts to what is pooled about the shared ones: (B, rm, rm), (B, rm)."""
        B, D = c.shape
        if not own.delta.any():
            A[:, np.arange(D), np.arange(D)] += ridge
            return cls(A, c, own.U, logdet, ridge)
        m = own.b.shape[-1]
        whole, target = np.zeros((B, D + m, D + m)), np.empty((B, D + m))
        whole[:, :D, :D], target[:, :D] = A, c
        root = np.sqrt(own.delta)
        cross = (root[:, None] * own.U)[:, None, :, None] * own.S[:, :, None, :]
        whole[:, D:, :D] = cross.reshape(B, m, D)
        whole[:, D:, D:] = own.delta[:, None, None] * own.S
        target[:, D:] = root[:, None] * own.b
        index = np.arange(D + m)
        whole[:, index, index] += ridge
        return cls(whole, target, np.column_stack([own.U, root]), logdet, ridge)

    def ask(self, phi: Array) -> tuple[Array, Array, Array]:
        """Return what is believed at K rows of features of each agent: (B, K, m).

        Returns:
            Means (B, K), the rows' coordinates Z (B, K, D) in which covariances are λZZᵀ, and
            log det(I + K/λ) (B,).
        """
        (B, D), K = self.c.shape, phi.shape[1]
        asked = (self.loading[:, None, :, None] * phi[:, :, None, :]).reshape(B, K, D)
        return solved(self.A, self.c, asked, self.logdet, self.ridge)
