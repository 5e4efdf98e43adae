r"""Noise levels of each agent's own, by nonparametric empirical Bayes.

Agent u by itself has the evidence p(y_u | σ², s²) of a Bayesian linear regression, θ_u ~ N(0, s²I)
and noise N(0, σ²), which follows from the spectrum of its sums. σ_u² lies on a grid of levels; how
common each level is among those heard from is a histogram π, found by EM (smoothed, with a weak
prior):

    r_uj ∝ π_j·p(y_u | σ_j², s²)        π_j ∝ Σ_u r_uj + 1/J        σ_u² = exp Σ_j r_uj log σ_j²

So a few observations of one agent are read in the light of all others', and no few agents set the
level of all: with one common level, or levels shrunk to one common mean, a few noisy agents would
make the quiet ones' rewards look like noise. s² is common, that of greatest evidence.

Levels and s² are powers of √e, whatever the rewards' scale; a view uses those around the asking
agent's own mean squares of rewards and features, or the medians of all before it has any.
"""

import numpy as np
from numba import njit

# log σ² and log s² are multiples of this.
STEP = 0.5
# Levels reach from this share of the median mean square of rewards to this many times the largest.
_LEAST, _MOST = 1e-3, 1.5
# s² is tried from this share of the rewards' median mean square, over |φ|², to that many times it.
_WEAKEST, _STRONGEST = 0.03, 4.0
_ITERATIONS = 12
# From so many observations on an agent's own mean square is its scale, else the median of all.
_ENOUGH = 3
# The most, in nats, that one agent says against an s².
_MOST_INFLUENCE = 3.0
# A priori about this share of the rewards' median mean square is noise, give or take a factor of
# e^1, worth so many agents.
_NOISE_SHARE, _SPREAD, _PSEUDO_COUNT = 0.5, 1.0, 0.5
# Likelihoods count as at least e to this of the largest.
_MOST_BELOW = -690.0
# Keeps logarithms finite where all rewards, or all contexts, are 0.
_TINY = 1e-100


@njit(cache=True, error_model="numpy")
def _by_ratio(s, p, first, last):
    """Return Σp²r/(1 + rs) and log det(I + rS) of one agent, for r = s²/σ² = e^(STEP·k)."""
    explained, logdet = np.empty(last - first + 1), np.empty(last - first + 1)
    for k in range(first, last + 1):
        ratio = np.exp(STEP * k)
        fit, grown, product = 0.0, 0.0, 1.0
        for i in range(len(s)):
            x = 1.0 + ratio * s[i]
            fit += ratio * p[i] * p[i] / x
            product *= x
            if product > 1e100:
                grown += np.log(product)
                product = 1.0
        explained[k - first], logdet[k - first] = fit, grown + np.log(product)
    return explained, logdet


@njit(cache=True, error_model="numpy")
def _histogram(likelihood, evidence, base):
    """Return how common each level is, by EM with a Dirichlet prior: (J,).

    Args:
        likelihood: (N, J), relative to each agent's largest.
        evidence: (J,) log likelihood of all agents together.
        base: (J,) the prior, as counts.
    """
    N, J = likelihood.shape
    # it starts at the level that all would share, beside the prior
    new = np.log(base) + evidence
    new[:] = np.exp(new - new.max())
    pi = 0.5 * (new / new.sum() + base / base.sum())
    for _ in range(_ITERATIONS):
        new[:] = base
        for u in range(N):
            x = 0.0
            for j in range(J):
                x += likelihood[u, j] * pi[j]
            for j in range(J):
                new[j] += likelihood[u, j] * pi[j] / x
        pi[:] = new / new.sum()
    return pi


@njit(cache=True, error_model="numpy")
def noise_levels(s, p, q, n, tells, rows, me):
    """Return σ_u² of each agent of a view, and s²: (N,), ().

    Args:
        s: (P, m) eigenvalues of agents' S.
        p: (P, m) Qᵀb.
        q: (P,) Σy².
        n: (P,) how many observations.
        tells: (P,) whether rewards varied at all: those that were all 0, or all the same beside a
            constant of one's own, do not say how noisy they are.
        rows: (N,) which of the P each agent is.
        me: The asking agent, whose own scale counts once it has some observations; −1 for none.
    """
    N = len(rows)
    mean_square = np.maximum(q[rows], 0.0) / np.where(n[rows] > 0, n[rows], 1.0)
    largest = max(np.max(mean_square), _TINY)
    sizes = np.empty(N)  # mean |φ|²
    for u in range(N):
        sizes[u] = s[rows[u]].sum() / max(n[rows[u]], _TINY)
    telling = tells[rows]
    middle, size = _TINY, max(np.median(sizes), _TINY)
    if telling.any():
        middle = max(np.median(mean_square[telling]), _TINY)
        size = max(np.median(sizes[telling]), _TINY)
    if me >= 0 and n[rows[me]] >= _ENOUGH and telling[me]:
        middle, size = max(mean_square[me], _TINY), max(sizes[me], _TINY)
    low = int(np.floor(np.log(_LEAST * middle) / STEP))
    high = max(low + 1, int(np.ceil(np.log(_MOST * largest) / STEP)))
    weakest = int(np.floor(np.log(_WEAKEST * middle / size) / STEP))
    strongest = int(np.ceil(np.log(_STRONGEST * middle / size) / STEP))
    J, first, last = high - low + 1, weakest - high, strongest - low
    explained, logdet = np.empty((N, last - first + 1)), np.empty((N, last - first + 1))
    for u in range(N):
        explained[u], logdet[u] = _by_ratio(s[rows[u]], p[rows[u]], first, last)
    level = STEP * np.arange(low, high + 1)
    base = np.exp(-0.5 * ((level - np.log(_NOISE_SHARE * middle)) / _SPREAD) ** 2) + 1e-3
    base *= _PSEUDO_COUNT / base.sum()
    tried = (strongest - weakest) // 2 + 1
    evidence, found, likelihood = np.empty((tried, N)), np.empty((tried, N)), np.empty((N, J))
    together = np.empty(J)
    for i in range(tried):
        together[:] = 0.0
        for u in range(N):
            r = rows[u]
            likelihood[u] = 0.0
            for j in range(J if telling[u] else 0):
                k = weakest + 2 * i - (low + j) - first
                left = max(q[r] - explained[u, k], 0.0)
                likelihood[u, j] = -0.5 * (
                    n[r] * level[j] + logdet[u, k] + left * np.exp(-level[j])
                )
            evidence[i, u] = likelihood[u].max()
            for j in range(J):
                below = max(likelihood[u, j] - evidence[i, u], _MOST_BELOW)
                together[j] += below
                likelihood[u, j] = np.exp(below)
        pi = _histogram(likelihood, together, base)
        for u in range(N):
            share = likelihood[u] * pi
            evidence[i, u] += np.log(share.sum())
            found[i, u] = np.exp((share * level).sum() / share.sum())
    # s² of greatest evidence, against which no agent says more than _MOST_INFLUENCE
    best, chosen = -np.inf, 0
    for i in range(tried):
        off = STEP * (weakest + 2 * i) - np.log(0.5 * middle / size)
        total = -0.5 * off * off
        for u in range(N):
            total += max(evidence[i, u] - evidence[:, u].max(), -_MOST_INFLUENCE)
        if total > best:
            best, chosen = total, i
    return found[chosen], np.exp(STEP * (weakest + 2 * chosen))
