r"""Laws of contexts: by how much do agents' mean offered contexts differ, beyond chance?

Where agents attach the mean features x̄ of the decision sets that they are offered, these may say
who is alike. With w_u the variance within an agent and τ² that between agents' means (a one-way
random effects model, by robust moments), agent u's mean is known with precision n_u/w_u:

    w_u = max(own, median of all)      τ² = median |x̄_u − centre|²/m − median w_u/n_u

about the median of means. Medians, as no few agents may set what contexts say of all. A group may
have a centre N(0, τ²I) of its own, or every agent one: the sampler draws which (`gibbs.py`). Where
all laws are the same τ² is about 0, and contexts say nothing.
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
    freedom = m * np.maximum(n - 1.0, 0.0)
    nothing, seen, varied = (np.zeros(N), np.zeros((N, m)), 0.0), n > 0, freedom > 0
    if not varied.any() or N < 2:
        return nothing
    own = within[varied] / freedom[varied]
    common = float(np.median(own))
    # contexts that never vary, or were seen once only, say nothing that can be measured
    if common <= 1e-12 * max(float(np.median((mean**2).mean(axis=1))), 1e-300):
        return nothing
    variance = np.full(N, common)
    variance[varied] = np.maximum(own, common)
    mean = mean - np.median(mean[seen], axis=0)
    between = np.median((mean[seen] ** 2).mean(axis=1))
    tau = float(between - np.median(variance[seen] / n[seen]))
    if not tau > 0:
        return nothing
    precision = n / variance
    return precision, precision[:, None] * mean, float(tau)
