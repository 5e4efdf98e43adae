r"""What variance do finite features leave out? The residual K(x̃, x̃) − K_z|φ|².

Added to σ², it keeps bounds optimistic outside the features' span (as BKB and EK-UCB do).
"""

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.gp.compositions import JointKernel
from coopbandits.gp.covariances import own_rows


def residual_variance(prior: JointKernel, agents: IntArray, X: Array, phi: Array) -> Array:
    """Return the prior variance that features do not hold: (M,), (M, d), (M, m) -> (M,)."""
    whole = prior.diagonal(agents, X)
    held = np.diagonal(prior.K_z)[agents] * np.einsum("ij,ij->i", phi, phi)
    return np.where(whole - held > 1e-12 * whole, whole - held, 0.0)


def residual_covariance(
    prior: JointKernel, agents: IntArray, X: Array, phi: Array, variance: Array
) -> Array:
    """Return the covariances that features do not hold, given `residual_variance`: (M, K).

    So near contexts are drawn alike, also where the features cannot tell.
    """
    blocks = own_rows(agents)
    covariance = np.zeros((len(agents), max(map(len, blocks))))
    for rows in blocks:
        if not variance[rows].any():
            continue
        u, root = agents[rows], np.sqrt(variance[rows])
        held = prior.K_z[u[0], u[0]] * (phi[rows] @ phi[rows].T)
        left = prior(u, X[rows], u, X[rows]) - held
        # of features that are no projection not even this much is sure
        most = root[:, None] * root[None, :]
        left = np.clip(left, -most, most)
        np.fill_diagonal(left, variance[rows])
        covariance[rows, : len(rows)] = left
    return covariance
