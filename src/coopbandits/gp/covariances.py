r"""How do an agent's own queries vary together? Covariances, and one joint draw from them.

Queries are m rows, each of an agent. A covariance is kept row by row, (m, K) for agents with at
most K queries: column j of a row is its covariance with its agent's j-th query; 0 where the agent
has fewer. So it can be cut and put together as all else that is known of a query.
"""

import numpy as np

from coopbandits.arrays import Array, IntArray

# The variance that a draw may lose in any direction, relative to the largest prior variance.
_FLOOR = 1e-10


def own_rows(agents: IntArray) -> list[IntArray]:
    """Return the rows of each agent, in order: (m,)."""
    order = np.argsort(agents, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(agents[order])) + 1)


def own_products(Z: Array, agents: IntArray) -> Array:
    """Return each row's products with all rows of its agent: (m, D), (m,) -> (m, K)."""
    blocks = own_rows(agents)
    products = np.zeros((len(agents), max(map(len, blocks))))
    for rows in blocks:
        products[rows, : len(rows)] = Z[rows] @ Z[rows].T
    return products


def drawn(covariance: Array, prior: Array, agents: IntArray, normals: Array) -> Array:
    r"""Draw from N(0, Σ) for each agent's queries: (m, K), (m,), (m,), (m,) -> (m,).

    Or S times, independently: (m, S) -> (m, S).

    With Σ = Q diag(s) Qᵀ the draw is Σ^½ z = Q diag(√s) Qᵀz: of all roots of Σ the symmetric one
    is unique and continuous. A Cholesky factor is not: where Σ is singular, as for repeated
    contexts or more actions than features, rounding would decide its columns, and engines whose Σ
    differ in the last digit would draw different functions from the same z.

    √s itself turns rounding of 1e-16 into 1e-8. So s/√(s + τ) is taken, τ = 1e-10 times the largest
    prior variance: by Lipschitz continuity rounding stays below ties, so that repeated contexts get
    the same draw, and no direction loses more variance than τ.

    Args:
        covariance: Σ, the queries' own.
        prior: Their variance before anything is known.
        agents: Whose they are.
        normals: z, standard normal.
    """
    columns = normals.reshape(len(normals), -1)
    deviations = np.empty(columns.shape)
    blocks = own_rows(agents)
    for K in {len(rows) for rows in blocks}:
        rows = np.array([rows for rows in blocks if len(rows) == K])
        s, Q = np.linalg.eigh(covariance[rows, :K])
        s = np.maximum(s, 0.0)
        lost = _FLOOR * prior[rows].max(axis=1, keepdims=True)
        # a context without any variance, as 0 under a linear kernel, has s = τ = 0
        root = s / np.sqrt(np.maximum(s + lost, np.finfo(np.float64).tiny))
        turned = columns[rows].swapaxes(1, 2) @ Q
        deviations[rows] = Q @ (root[:, None, :] * turned).swapaxes(1, 2)
    return deviations.reshape(normals.shape)
