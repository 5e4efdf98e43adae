r"""Laws of contexts: by how much do agents' mean offered contexts differ, beyond chance?

Where agents attach the mean features x̄ of the decision sets that they are offered, these may say
who is alike. With w the variance within agents and τ² that between their means (a one-way random
effects model, both by the method of moments), agent u's mean is known with precision n_u/w. A group
may have a centre N(0, τ²I) of its own, or every agent one: the sampler draws which (`gibbs.py`).
Where all laws are the same τ² is 0, and contexts say nothing.
"""

import numpy as np

from coopbandits.arrays import Array


def context_laws(n: Array, total: Array, square: Array) -> tuple[Array, Array, float]:
    """Return how well each agent's mean is known (N,), that times the mean (N, m), and τ².

    Args:
        n: (N,) how many decision sets.
        total: (N, m) the sum of their mean features.
        square: (N,) the sum of those features' squares.
    """
    N, m = total.shape
    mean = total / np.where(n > 0, n, 1.0)[:, None]
    within = square - (total * mean).sum(axis=1)
    freedom = m * np.maximum(n - 1.0, 0.0).sum()
    variance = within.sum() / max(freedom, 1.0)
    nothing = np.zeros(N), np.zeros((N, m)), 0.0
    # contexts that never vary, or were seen once only, say nothing that can be measured
    if freedom <= 0 or N < 2 or variance <= 1e-12 * max(float((mean**2).mean()), 1e-300):
        return nothing
    mean = mean - (n @ mean) / n.sum()
    between = float(n @ (mean**2).sum(axis=1)) / (m * (N - 1))
    effective = (n.sum() - (n**2).sum() / n.sum()) / (N - 1)
    tau = (between - variance) / max(effective, 1e-300)
    if not tau > 0:
        return nothing
    precision = n / variance
    return precision, precision[:, None] * mean, float(tau)
