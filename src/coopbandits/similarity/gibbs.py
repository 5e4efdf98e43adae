r"""Collapsed Gibbs sampling of a partition of agents, under a Chinese restaurant process.

The model, for the agents u that one agent hears, with S_u, b_u sufficient statistics divided by the
noise variance σ_u² (precision units):

    θ_u = √a·μ + √b·γ_{g(u)} + √c·o_u,   a + b + c = 1        population, group, own; all N(0, s²I)
    g   ~ Chinese restaurant process(α)

Own parts o_u are integrated out first, S̃ = S(I + cs²S)⁻¹ and b̃ = (I + cs²S)⁻¹b, from the spectrum
of S. One sweep then draws, each from its conditional law given the labels g,

1. α from a grid, given how many groups there are;
2. (a, b, c) from a grid, with μ and γ integrated out; and whether contexts follow groups;
3. μ, with γ integrated out;
4. the label of each agent that is visited, with γ integrated out (collapsed): group k with odds
   n_k·p(y_u | the group's other members), a new group with odds α·p(y_u).

Whether an agent is visited depends on how much is new, never on labels, so the posterior stays
invariant. Labels alone are carried from one estimate to the next: all else is drawn from them.

Symmetric matrices are packed by rows of their lower half, h = m(m + 1)/2 numbers. Compiled by
numba: one sweep is some thousands of Cholesky factors of m × m matrices, one after the other.
"""

from math import lgamma

import numpy as np
from numba import njit

from coopbandits.arrays import Array


@njit(cache=True, error_model="numpy")
def log_evidence(S, b, v, L, z):
    """Return log ∫ exp(bᵀγ − ½γᵀSγ) N(γ; 0, vI) dγ = ½v·bᵀ(I + vS)⁻¹b − ½ log det(I + vS).

    L (h,) and z (m,) are left as the factor of I + vS, with inverse diagonal, and L⁻¹b.
    """
    m = len(b)
    fit, product, logdet, row = 0.0, 1.0, 0.0, 0
    for i in range(m):
        y = b[i]
        other = 0
        for j in range(i):
            x = v * S[row + j]
            for k in range(j):
                x -= L[row + k] * L[other + k]
            x *= L[other + j]
            L[row + j] = x
            y -= x * z[j]
            other += j + 1
        x = 1.0 + v * S[row + i]
        for k in range(i):
            x -= L[row + k] * L[row + k]
        if not x > 1e-12:  # sums of wild numbers may be indefinite to rounding
            x = 1e-12
        product *= x
        if product > 1e100:
            logdet += np.log(product)
            product = 1.0
        inverse = 1.0 / np.sqrt(x)
        L[row + i] = inverse
        z[i] = y * inverse
        fit += z[i] * z[i]
        row += i + 1
    return 0.5 * (v * fit - logdet - np.log(product))


@njit(cache=True, error_model="numpy")
def _times(x, y):
    """Return xy, of four groups each."""
    return x[0] * y[0], x[1] * y[1], x[2] * y[2], x[3] * y[3]


@njit(cache=True, error_model="numpy")
def _minus(x, y, z):
    """Return x − yz, of four groups each."""
    return x[0] - y[0] * z[0], x[1] - y[1] * z[1], x[2] - y[2] * z[2], x[3] - y[3] * z[3]


@njit(cache=True, error_model="numpy")
def _of(A, i):
    """Return the numbers of four groups in row i of A (·, 4)."""
    return A[i, 0], A[i, 1], A[i, 2], A[i, 3]


@njit(cache=True, error_model="numpy")
def _at(A, i, j):
    """Return the numbers of four groups in place i, j of A (·, ·, 4)."""
    return A[i, j, 0], A[i, j, 1], A[i, j, 2], A[i, j, 3]


@njit(cache=True, error_model="numpy")
def _with(x, w, y, v, start):
    """Return start + v·(x + wy), of four groups each, y one number."""
    return (
        start + v * (x[0] + w[0] * y), start + v * (x[1] + w[1] * y),
        start + v * (x[2] + w[2] * y), start + v * (x[3] + w[3] * y),
    )  # fmt: skip


@njit(cache=True, error_model="numpy")
def _pivots(x):
    """Return 1/√x and log x of four groups: sums of wild numbers may be indefinite to rounding."""
    x = max(x[0], 1e-12), max(x[1], 1e-12), max(x[2], 1e-12), max(x[3], 1e-12)
    return (1 / np.sqrt(x[0]), 1 / np.sqrt(x[1]), 1 / np.sqrt(x[2]), 1 / np.sqrt(x[3])), x


@njit(cache=True, error_model="numpy")
def _factors(S, b, w, x, y, v, L, z, out):
    """Do what `log_evidence` does for four groups at once, each with x and y added w times.

    One factor alone mostly waits for its own results; four keep the processor busy.

    Args:
        S, b: (h, 4) and (m, 4) of the groups.
        w: Four numbers.
        x, y: (h,) and (m,) of an agent.
        v: The variance.
        L: (m, m, 4) made here, with inverse diagonal.
        z: (m, 4) made here.
        out: (4,) made here: log evidence.
    """
    fit, product, row = (0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0), 0
    out[:] = 0.0
    for i in range(len(y)):
        rest = _with(_of(b, i), w, y[i], 1.0, 0.0)
        for j in range(i):
            entry = _with(_of(S, row + j), w, x[row + j], v, 0.0)
            for k in range(j):
                entry = _minus(entry, _at(L, i, k), _at(L, j, k))
            entry = _times(entry, _at(L, j, j))
            L[i, j, 0], L[i, j, 1], L[i, j, 2], L[i, j, 3] = entry
            rest = _minus(rest, entry, _of(z, j))
        entry = _with(_of(S, row + i), w, x[row + i], v, 1.0)
        for k in range(i):
            entry = _minus(entry, _at(L, i, k), _at(L, i, k))
        inverse, entry = _pivots(entry)
        L[i, i, 0], L[i, i, 1], L[i, i, 2], L[i, i, 3] = inverse
        rest = _times(rest, inverse)
        z[i, 0], z[i, 1], z[i, 2], z[i, 3] = rest
        fit = _minus(fit, rest, rest)
        product = _times(product, entry)
        row += i + 1
        if i + 1 == len(y) or max(product) > 1e100:
            for k in range(4):
                out[k] -= 0.5 * np.log(product[k])
            product = (1.0, 1.0, 1.0, 1.0)
    for k in range(4):
        out[k] -= 0.5 * v * fit[k]


@njit(cache=True, error_model="numpy")
def log_evidences(S, b, w, x, y, v, K, scratch, out):
    """Return the log evidence of K groups, each with an agent's x and y added w times.

    Args:
        S, b: (·, h, 4) and (·, m, 4) of the groups, four beside each other; 0 behind the last.
        w: (≥ K,) 1 for a group with the agent, 0 as it is, −1 without the agent; 0 behind the last.
        x, y: (h,) and (m,) of the agent.
        v: The variance.
        K: How many groups.
        scratch: (m, m, 4), (m, 4) and (m, m, 4), overwritten.
        out: (≥ K,) up to the next multiple of four, made here.
    """
    L, z, _ = scratch
    for f in range((K + 3) // 4):
        k = 4 * f
        four = w[k], w[k + 1], w[k + 2], w[k + 3]
        _factors(S[f], b[f], four, x, y, v, L, z, out[k : k + 4])


@njit(cache=True, error_model="numpy")
def _population(S, b, v, share, K, scratch, nobody, P, h):
    """Make P (h,) and h (m,) of what K groups say of the population, own parts integrated out.

    S(I + vS)⁻¹ = (I − (I + vS)⁻¹)/v and (I + vS)⁻¹b, times a = share and √a. Returns the groups'
    log evidence. Those behind the last group add nothing.
    """
    L, z, inverse = scratch
    none, evidence, m = (0.0, 0.0, 0.0, 0.0), np.empty(4), b.shape[1]
    total = 0.0
    P[:] = 0.0
    h[:] = 0.0
    for f in range((K + 3) // 4):
        _factors(S[f], b[f], none, nobody[0], nobody[1], v, L, z, evidence)
        total += evidence.sum()
        for i in range(m):
            for j in range(i):
                entry = none
                for k in range(j, i):
                    entry = _minus(entry, _at(L, i, k), _at(inverse, k, j))
                entry = _times(entry, _at(L, i, i))
                inverse[i, j, 0], inverse[i, j, 1], inverse[i, j, 2], inverse[i, j, 3] = entry
            inverse[i, i] = L[i, i]
        row = 0
        for i in range(m):
            entry = none
            for k in range(i, m):
                entry = _minus(entry, _at(inverse, k, i), _of(z, k))
            h[i] -= np.sqrt(share) * (entry[0] + entry[1] + entry[2] + entry[3])
            for j in range(i + 1):
                entry = none
                for k in range(i, m):
                    entry = _minus(entry, _at(inverse, k, i), _at(inverse, k, j))
                one = 4.0 if i == j else 0.0
                P[row + j] += share * (one + entry[0] + entry[1] + entry[2] + entry[3]) / v
            row += i + 1
    return total


@njit(cache=True, error_model="numpy")
def _draw_normal(P, h, v, chance, L, z, out):
    """Draw out ~ N((I/v + P)⁻¹h, (I/v + P)⁻¹) with m standard normal numbers."""
    m = len(h)
    log_evidence(P, h, v, L, z)
    root = np.sqrt(v)
    for i in range(m - 1, -1, -1):
        y = root * z[i] + chance[i]
        start = (i + 1) * (i + 2) // 2
        for k in range(i + 1, m):
            y -= L[start + i] * out[k]
            start += k + 1
        out[i] = y * L[i * (i + 1) // 2 + i]
    for i in range(m):
        out[i] *= root


@njit(cache=True, error_model="numpy")
def without_own_parts(s, Q, p, rows, precision, v, S, b, own):
    """Integrate own parts of variance v out of agents' statistics, in precision units.

    Args:
        s: (P, m) eigenvalues of S.
        Q: (P, m, m) eigenvectors.
        p: (P, m) Qᵀb.
        rows: (N,) which of the P each agent is.
        precision: (N,) 1/σ_u².
        v: cs².
        S: (N, h), made here.
        b: (N, m), made here.
        own: (N,) made here: log evidence about own parts.
    """
    m = s.shape[1]
    held, part = np.empty(m), np.empty(m)
    for u in range(len(rows)):
        r, w = rows[u], precision[u]
        total, product = 0.0, 1.0
        for k in range(m):
            grown = 1.0 + v * w * s[r, k]
            held[k] = w * s[r, k] / grown
            part[k] = w * p[r, k] / grown
            total += 0.5 * v * part[k] * w * p[r, k]
            product *= grown
            if product > 1e100:
                total -= 0.5 * np.log(product)
                product = 1.0
        own[u] = total - 0.5 * np.log(product)
        at = 0
        for i in range(m):
            y = 0.0
            for k in range(m):
                y += Q[r, i, k] * part[k]
            b[u, i] = y
            for j in range(i + 1):
                x = 0.0
                for k in range(m):
                    x += Q[r, i, k] * held[k] * Q[r, j, k]
                S[u, at] = x
                at += 1


@njit(cache=True, error_model="numpy")
def draw(log_odds, count, uniform):
    """Draw one of `count` places with these log odds, by one uniform number."""
    best = -np.inf
    for k in range(count):
        best = max(best, log_odds[k])
    total = 0.0
    for k in range(count):
        log_odds[k] = np.exp(log_odds[k] - best)
        total += log_odds[k]
    cut, passed = uniform * total, 0.0
    for k in range(count):
        passed += log_odds[k]
        if cut < passed:
            return k
    return count - 1


@njit(cache=True, error_model="numpy")
def _context_evidence(precision, total, w, x, y, v):
    """Return how likely pooled context means are, an agent's added w times, their centre N(0, vI).

    Args:
        precision, total: Of the group: (), (m,).
        w: How often the agent is added.
        x, y: Of the agent: (), (m,).
        v: The variance of centres.
    """
    square = 0.0
    for i in range(len(total)):
        one = total[i] + w * y[i]
        square += one * one
    grown = 1.0 + v * (precision + w * x)
    return 0.5 * (v * square / grown - len(total) * np.log(grown))


@njit(cache=True, error_model="numpy")
def _numbered(labels, places):
    """Number groups from 0 on by their first agents; how many there are, and of how many agents."""
    places[:] = -1
    K, labelled = 0, 0
    for u in range(len(labels)):
        if labels[u] >= 0:
            if places[labels[u]] < 0:
                places[labels[u]] = K
                K += 1
            labels[u] = places[labels[u]]
            labelled += 1
    return K, labelled


@njit(cache=True, error_model="numpy")
def _add(groups, k, sign, x, y, precision, total):
    """Add an agent's statistics to those of group k, or take them out of it."""
    S, b, group_x, group_total, count, _ = groups
    f, k4 = k // 4, k % 4
    for i in range(len(x)):
        S[f, i, k4] += sign * x[i]
    for i in range(len(y)):
        b[f, i, k4] += sign * y[i]
    for i in range(len(total)):
        group_total[k, i] += sign * total[i]
    group_x[k] += sign * precision
    count[k] += sign


@njit(cache=True, error_model="numpy")
def _pooled(labels, agents, groups):
    """Add up the statistics of each group."""
    S, b, x_precision, x_total = agents
    groups[0][:] = 0.0
    groups[1][:] = 0.0
    groups[2][:] = 0.0
    groups[3][:] = 0.0
    groups[4][:] = 0
    for u in range(len(labels)):
        if labels[u] >= 0:
            _add(groups, labels[u], 1, S[u], b[u], x_precision[u], x_total[u])


@njit(cache=True, error_model="numpy")
def _draw_concentration(K, labelled, alphas, uniform):
    """Draw α given that there are K groups: p(K | α) ∝ α^K Γ(α)/Γ(α + n)."""
    log_odds = np.empty(len(alphas))
    for k in range(len(alphas)):
        alpha = alphas[k]
        log_odds[k] = K * np.log(alpha) + lgamma(alpha) - lgamma(alpha + labelled)
    return draw(log_odds, len(alphas), uniform)


@njit(cache=True, error_model="numpy")
def _draw_weights(labels, K, statistics, grid, s2, groups, scratch, work, uniform):
    """Draw (a, b, c) given labels, with μ and γ integrated out."""
    S, b, own, x_precision, x_total = statistics
    weights, own_of, prior = grid
    P, h, L, z, nobody = work
    log_odds = np.empty(len(weights))
    last, own_parts = -1, 0.0
    for w in range(len(weights)):
        c = own_of[w]
        if c != last:
            _pooled(labels, (S[c], b[c], x_precision, x_total), groups)
            last, own_parts = c, own[c][labels >= 0].sum()
        va, vb = weights[w, 0] * s2, weights[w, 1] * s2
        log_odds[w] = prior[w] + own_parts
        log_odds[w] += _population(groups[0], groups[1], vb, 1.0, K, scratch, nobody, P, h)
        log_odds[w] += log_evidence(P, h, va, L, z)
    return draw(log_odds, len(weights), uniform)


@njit(cache=True, error_model="numpy")
def _contexts_follow(labels, K, x_precision, x_total, variance, groups, uniform):
    """Draw whether contexts follow groups, or are each agent's own; both are as likely before."""
    difference = 0.0
    for k in range(K):
        difference += _context_evidence(
            groups[2][k], groups[3][k], 0.0, x_precision[0], x_total[0], variance
        )
    for u in range(len(labels)):
        if labels[u] >= 0:
            difference -= _context_evidence(
                x_precision[u], x_total[u], 0.0, x_precision[u], x_total[u], variance
            )
    return uniform * (1.0 + np.exp(-difference)) < 1.0


@njit(cache=True, error_model="numpy")
def _residuals(S, b, mu, left):
    """Take the population's part out of everyone's b: left = b − S√aμ, (N, m)."""
    N, m = b.shape
    for u in range(N):
        row = 0
        for i in range(m):
            y = b[u, i]
            for j in range(i + 1):
                y -= S[u, row + j] * mu[j]
            below = row + i + 1 + i
            for j in range(i + 1, m):
                y -= S[u, below] * mu[j]
                below += j + 1
            left[u, i] = y
            row += i + 1


@njit(cache=True, error_model="numpy")
def _group_evidences(u, w, K, agents, groups, vb, x_variance, scratch, out):
    """Work out the log evidence of K groups, each with agent u added w times: (≥ K,).

    Of rewards, and of contexts if these follow groups.
    """
    S, b, x_precision, x_total = agents
    log_evidences(groups[0], groups[1], w, S[u], b[u], vb, K, scratch, out)
    if x_variance > 0:
        for k in range(K):
            out[k] += _context_evidence(
                groups[2][k], groups[3][k], w[k], x_precision[u], x_total[u], x_variance
            )


@njit(cache=True, error_model="numpy")
def _collapsed_odds(u, old, K, agents, groups, alpha, vb, x_variance, scratch, w, other, log_odds):
    """Work out the log odds of where an agent belongs, the labels of all others given.

    An agent by itself stands for the new group.

    Args:
        u: The agent.
        old: Its group, whose statistics it is part of; below 0 for none.
        w: (≥ K + 5,) made here: how often u is added to each group.
        other: (≥ K + 5,) made here: the evidence of each group with the agent, or of its own
            without it.
        log_odds: (K + 1,) made here.

    Returns:
        How many places there are.
    """
    count, value = groups[4], groups[5]
    alone = old >= 0 and count[old] == 1
    places = K if alone else K + 1
    w[:places] = 1.0
    w[places : places + 4] = 0.0
    if old >= 0:
        w[old] = 0.0 if alone else -1.0
    _group_evidences(u, w, places, agents, groups, vb, x_variance, scratch, other)
    for k in range(K):
        log_odds[k] = np.log(count[k]) + other[k] - value[k]
    if alone:
        log_odds[old] = np.log(alpha) + other[old]
    elif old >= 0:
        log_odds[old] = np.log(count[old] - 1) + value[old] - other[old]
    if not alone:
        log_odds[K] = np.log(alpha) + other[K]
    return places


@njit(cache=True, error_model="numpy")
def _leave(u, labels, K, agents, groups):
    """Take an agent out of its group; return how many groups are left.

    A group that is empty then gives its number to the last one.
    """
    S, b, x_precision, x_total = agents
    old = labels[u]
    labels[u] = -1
    _add(groups, old, -1, S[u], b[u], x_precision[u], x_total[u])
    if groups[4][old] > 0:
        return K
    K -= 1
    group_S, group_b, group_x, group_total, count, value = groups
    group_S[old // 4, :, old % 4] = group_S[K // 4, :, K % 4]
    group_S[K // 4, :, K % 4] = 0.0
    group_b[old // 4, :, old % 4] = group_b[K // 4, :, K % 4]
    group_b[K // 4, :, K % 4] = 0.0
    group_x[old], group_total[old] = group_x[K], group_total[K]
    group_x[K], group_total[K] = 0.0, 0.0
    count[old], value[old] = count[K], value[K]
    count[K] = 0
    for w in range(len(labels)):
        if labels[w] == K:
            labels[w] = old
    return K


@njit(cache=True, error_model="numpy")
def _join(u, g, labels, K, agents, groups, value):
    """Put an agent into group g, a new one if g = K; return how many groups there are then."""
    S, b, x_precision, x_total = agents
    labels[u], groups[5][g] = g, value
    _add(groups, g, 1, S[u], b[u], x_precision[u], x_total[u])
    return max(K, g + 1)


@njit(cache=True, error_model="numpy")
def sample(
    statistics, grid, s2, alphas, between, labels, me, visit, uniforms, normals, samples, odds,
    facts,
):  # fmt: skip
    """Let every chain of one view take some sweeps; after each, where may `me` belong?

    Args:
        statistics: S (n_c, N, h) and b (n_c, N, m), own parts integrated out, for each c of the
            grid; the log evidence of own parts (n_c, N); how well each agent's mean context is
            known (N,), and that times the mean (N, ·).
        grid: (a, b, c) (n_w, 3), which c each has (n_w,), and its log prior (n_w,).
        s2: s².
        alphas: The grid of α.
        between: The variance of mean contexts between agents, beyond chance.
        labels: (C, N) of each chain, −1 for an agent that has none yet; changed in place.
        me: The asking agent.
        visit: With which probability an agent is visited.
        uniforms: (n, 3 + 2N), one row for each of n = C·sweeps samples, a chain's together.
        normals: (n, m).
        samples: (n, N) made here: the labels after each sweep.
        odds: (n, N + 1) made here: log odds of each group without `me`, then of being alone.
        facts: (n, 6) made here: point of the grid, point of α, whether contexts follow groups, how
            many groups without `me`, how many agents were visited, how many moved.
    """
    S, b, _, x_precision, x_total = statistics
    weights, own_of, _ = grid
    C, N = labels.shape
    m, h, blocks = b.shape[2], S.shape[2], N // 4 + 2
    groups = (
        np.empty((blocks, h, 4)), np.empty((blocks, m, 4)), np.empty(4 * blocks),
        np.empty((4 * blocks, x_total.shape[1])), np.empty(4 * blocks, np.int64),
        np.empty(4 * blocks),
    )  # fmt: skip
    count, value = groups[4], groups[5]
    scratch = np.empty((m, m, 4)), np.empty((m, 4)), np.empty((m, m, 4))
    nobody = np.zeros(h), np.zeros(m)
    P, p, L, z = np.empty(h), np.empty(m), np.empty(h), np.empty(m)
    work = P, p, L, z, nobody
    mu, left = np.empty(m), np.empty((N, m))
    w, other, log_odds = np.empty(4 * blocks), np.empty(4 * blocks), np.empty(N + 1)
    numbers = np.empty(max(N, labels.max() + 1), np.int64)
    sweeps = len(uniforms) // C
    for one in range(C * sweeps):
        g, chance = labels[one // sweeps], uniforms[one]
        K, labelled = _numbered(g, numbers)
        which_alpha = _draw_concentration(K, labelled, alphas, chance[0])
        alpha = alphas[which_alpha]
        which = _draw_weights(g, K, statistics, grid, s2, groups, scratch, work, chance[1])
        c, a, vb = own_of[which], weights[which, 0], weights[which, 1] * s2
        _pooled(g, (S[c], b[c], x_precision, x_total), groups)
        follow = between > 0
        if follow and labelled:
            follow = _contexts_follow(g, K, x_precision, x_total, between, groups, chance[2])
        x_variance = between if follow else 0.0
        _population(groups[0], groups[1], vb, a, K, scratch, nobody, P, p)
        _draw_normal(P, p, s2, normals[one], L, z, mu)
        mu *= np.sqrt(a)
        _residuals(S[c], b[c], mu, left)
        agents = S[c], left, x_precision, x_total
        _pooled(g, agents, groups)
        w[:] = 0.0
        _group_evidences(0, w, K, agents, groups, vb, x_variance, scratch, value)
        visited, moved = 0, 0
        for u in range(N):
            old = g[u]
            if old >= 0 and chance[3 + N + u] >= visit:
                continue
            places = _collapsed_odds(
                u, old, K, agents, groups, alpha, vb, x_variance, scratch, w, other, log_odds
            )
            new = draw(log_odds, places, chance[3 + u])
            visited += 1
            if new == old:
                continue
            moved += 1
            joined = other[new]
            if old >= 0 and count[old] > 1:
                value[old] = other[old]
            if old >= 0:
                last = K - 1
                K = _leave(u, g, K, agents, groups)
                if K == last == new:  # which has the number of the empty group now
                    new = old
            K = _join(u, new, g, K, agents, groups, joined)
        facts[one, 0], facts[one, 1], facts[one, 2] = which, which_alpha, follow
        facts[one, 4], facts[one, 5] = visited, moved
        # where may `me` belong? If by itself, the last group takes the place of its own
        places = _collapsed_odds(
            me, g[me], K, agents, groups, alpha, vb, x_variance, scratch, w, other, log_odds
        )
        samples[one] = g
        if places == K:
            for u in range(N):
                if g[u] == K - 1:
                    samples[one, u] = g[me]
            samples[one, me] = K - 1
            log_odds[g[me]], log_odds[K - 1] = log_odds[K - 1], log_odds[g[me]]
        odds[one, :places] = log_odds[:places]
        facts[one, 3] = places - 1


def concentrations(n: int) -> Array:
    """Return the grid of α for n agents, from 1 (few large groups) to 12n (nobody alike)."""
    return np.asarray((12.0 * n) ** np.array([0.0, 0.25, 0.5, 0.75, 1.0]))
