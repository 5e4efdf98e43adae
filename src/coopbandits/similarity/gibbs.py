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
def log_evidences(S, b, v, K, work, out):
    """Do what `log_evidence` does for K groups at once, by loops over groups (vectorised).

    Args:
        S, b: (h, ≥ K), (m, ≥ K).
        work: (h, ≥ K), (m, ≥ K) and (3, ≥ K), overwritten.
        out: (≥ K,), made here.
    """
    L, z, rest = work
    x, fit, product = rest[0], rest[1], rest[2]
    fit[:K], out[:K], product[:K] = 0.0, 0.0, 1.0
    row = 0
    for i in range(len(b)):
        y = z[i]
        y[:K] = b[i, :K]
        other = 0
        for j in range(i):
            for k in range(K):
                x[k] = v * S[row + j, k]
            for a in range(j):
                left, right = L[row + a], L[other + a]
                for k in range(K):
                    x[k] -= left[k] * right[k]
            left, right, before = L[row + j], L[other + j], z[j]
            for k in range(K):
                x[k] *= right[k]
            for k in range(K):
                left[k] = x[k]
            for k in range(K):
                y[k] -= x[k] * before[k]
            other += j + 1
        for k in range(K):
            x[k] = 1.0 + v * S[row + i, k]
        for a in range(i):
            left = L[row + a]
            for k in range(K):
                x[k] -= left[k] * left[k]
        left = L[row + i]
        for k in range(K):
            x[k] = max(x[k], 1e-12)
            product[k] *= x[k]
            left[k] = 1.0 / np.sqrt(x[k])
        for k in range(K):
            y[k] *= left[k]
            fit[k] += y[k] * y[k]
        for k in range(K):
            if product[k] > 1e100:
                out[k] += np.log(product[k])
                product[k] = 1.0
        row += i + 1
    for k in range(K):
        out[k] = 0.5 * (v * fit[k] - out[k] - np.log(product[k]))


@njit(cache=True, error_model="numpy")
def _absorb(S, b, v, share, L, z, inverse, P, h):
    """Add what a group says of the population, its own part integrated out, to P (h,) and h (m,).

    S(I + vS)⁻¹ = (I − (I + vS)⁻¹)/v and (I + vS)⁻¹b, times a = share and √a. Returns the group's
    log evidence.
    """
    m = len(b)
    evidence = log_evidence(S, b, v, L, z)
    # inverse of L by rows: row i holds L⁻¹[i, :i + 1]
    row = 0
    for i in range(m):
        for j in range(i):
            x = 0.0
            other = j * (j + 1) // 2
            for k in range(j, i):
                x += L[row + k] * inverse[other + j]
                other += k + 1
            inverse[row + j] = -x * L[row + i]
        inverse[row + i] = L[row + i]
        row += i + 1
    root = np.sqrt(share)
    row = 0
    for i in range(m):
        y = 0.0
        start = i * (i + 1) // 2
        for k in range(i, m):
            y += inverse[start + i] * z[k]
            start += k + 1
        h[i] += root * y
        for j in range(i + 1):
            x = 0.0
            start = i * (i + 1) // 2
            for k in range(i, m):
                x += inverse[start + i] * inverse[start + j]
                start += k + 1
            P[row + j] += share * ((1.0 if i == j else 0.0) - x) / v
        row += i + 1
    return evidence


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
def _context_evidence(precision, total, v):
    """Return how likely pooled context means are, their centre N(0, vI): (), (m,)."""
    square = 0.0
    for i in range(len(total)):
        square += total[i] * total[i]
    grown = 1.0 + v * precision
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
def _pooled(labels, K, agents, groups):
    """Add up the statistics of each of K groups."""
    S, b, x_precision, x_total = agents
    group_S, group_b, group_x, group_total, count, _ = groups
    group_S[:K] = 0.0
    group_b[:K] = 0.0
    group_x[:K] = 0.0
    group_total[:K] = 0.0
    count[:K] = 0
    for u in range(len(labels)):
        g = labels[u]
        if g >= 0:
            group_S[g] += S[u]
            group_b[g] += b[u]
            group_x[g] += x_precision[u]
            group_total[g] += x_total[u]
            count[g] += 1


@njit(cache=True, error_model="numpy")
def _draw_concentration(K, labelled, alphas, uniform):
    """Draw α given that there are K groups: p(K | α) ∝ α^K Γ(α)/Γ(α + n)."""
    log_odds = np.empty(len(alphas))
    for k in range(len(alphas)):
        alpha = alphas[k]
        log_odds[k] = K * np.log(alpha) + lgamma(alpha) - lgamma(alpha + labelled)
    return draw(log_odds, len(alphas), uniform)


@njit(cache=True, error_model="numpy")
def _draw_weights(labels, K, statistics, grid, s2, groups, work, uniform):
    """Draw (a, b, c) given labels, with μ and γ integrated out."""
    S, b, own, x_precision, x_total = statistics
    weights, own_of, prior = grid
    group_S, group_b = groups[0], groups[1]
    L, z, inverse, P, h = work
    log_odds = np.empty(len(weights))
    last, own_parts = -1, 0.0
    for w in range(len(weights)):
        c = own_of[w]
        if c != last:
            _pooled(labels, K, (S[c], b[c], x_precision, x_total), groups)
            last, own_parts = c, own[c][labels >= 0].sum()
        va, vb = weights[w, 0] * s2, weights[w, 1] * s2
        log_odds[w] = prior[w] + own_parts
        P[:] = 0.0
        h[:] = 0.0
        for k in range(K):
            if va > 0:
                log_odds[w] += _absorb(group_S[k], group_b[k], vb, 1.0, L, z, inverse, P, h)
            else:
                log_odds[w] += log_evidence(group_S[k], group_b[k], vb, L, z)
        if va > 0:
            log_odds[w] += log_evidence(P, h, va, L, z)
    return draw(log_odds, len(weights), uniform)


@njit(cache=True, error_model="numpy")
def _contexts_follow(labels, K, x_precision, x_total, variance, groups, uniform):
    """Draw whether contexts follow groups, or are each agent's own; both are as likely before."""
    difference = 0.0
    for k in range(K):
        difference += _context_evidence(groups[2][k], groups[3][k], variance)
    for u in range(len(labels)):
        if labels[u] >= 0:
            difference -= _context_evidence(x_precision[u], x_total[u], variance)
    return uniform * (1.0 + np.exp(-difference)) < 1.0


@njit(cache=True, error_model="numpy")
def _draw_population(K, a, vb, s2, groups, work, normals, mu):
    """Draw √a·μ given labels, with γ integrated out."""
    L, z, inverse, P, h = work
    P[:] = 0.0
    h[:] = 0.0
    for k in range(K):
        _absorb(groups[0][k], groups[1][k], vb, a, L, z, inverse, P, h)
    _draw_normal(P, h, s2, normals, L, z, mu)
    mu *= np.sqrt(a)


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
def _value(S, b, vb, x, total, x_variance, L, z):
    """Return the log evidence of a group: rewards, and contexts if these follow groups."""
    value = log_evidence(S, b, vb, L, z)
    if x_variance > 0:
        value += _context_evidence(x, total, x_variance)
    return value


@njit(cache=True, error_model="numpy")
def _leave(u, labels, K, agents, groups):
    """Take an agent out of its group; return how many groups are left, and which was its own.

    A group that is empty then gives its number to the last one, and is called −2. The evidence of
    one that is not remains what it was with the agent.
    """
    S, b, x_precision, x_total = agents
    group_S, group_b, group_x, group_total, count, value = groups
    old = labels[u]
    if old < 0:
        return K, old
    count[old] -= 1
    if count[old] > 0:
        group_S[old] -= S[u]
        group_b[old] -= b[u]
        group_x[old] -= x_precision[u]
        group_total[old] -= x_total[u]
        return K, old
    K -= 1
    labels[u] = -1
    if old < K:
        group_S[old], group_b[old] = group_S[K], group_b[K]
        group_x[old], group_total[old] = group_x[K], group_total[K]
        count[old], value[old] = count[K], value[K]
        for w in range(len(labels)):
            if labels[w] == K:
                labels[w] = old
    return K, -2


@njit(cache=True, error_model="numpy")
def _join(u, g, labels, K, agents, groups, value):
    """Put an agent into group g, a new one if g = K; return how many groups there are then."""
    S, b, x_precision, x_total = agents
    group_S, group_b, group_x, group_total, count, values = groups
    labels[u], values[g] = g, value
    if g == K:
        K += 1
        count[g] = 0
        group_S[g] = 0.0
        group_b[g] = 0.0
        group_x[g] = 0.0
        group_total[g] = 0.0
    count[g] += 1
    group_S[g] += S[u]
    group_b[g] += b[u]
    group_x[g] += x_precision[u]
    group_total[g] += x_total[u]
    return K


@njit(cache=True, error_model="numpy")
def _collapsed_odds(u, old, K, agents, groups, alpha, vb, x_variance, scratch, joined, log_odds):
    """Work out the log odds of K groups and of a new one for an agent that is in none of them.

    Args:
        u: The agent.
        old: The group that it left; its evidence is that with the agent, and is mended here. Below
            0 for none.
        joined: (K + 1,) made here: the evidence of each group with the agent.
        log_odds: (K + 1,) made here.
    """
    S, b, x_precision, x_total = agents
    group_S, group_b, group_x, group_total, count, value = groups
    work, (both_S, both_b, both_total) = scratch
    # a column for each group with the agent, for the one that it left without it, and for itself
    for i in range(S.shape[1]):
        for k in range(K):
            both_S[i, k] = group_S[k, i] + S[u, i]
        both_S[i, K] = S[u, i]
    for i in range(b.shape[1]):
        for k in range(K):
            both_b[i, k] = group_b[k, i] + b[u, i]
        both_b[i, K] = b[u, i]
    if old >= 0:
        both_S[:, old], both_b[:, old] = group_S[old], group_b[old]
    log_evidences(both_S, both_b, vb, K + 1, work, joined)
    if x_variance > 0:
        for k in range(K + 1):
            both_x = 0.0 if k == old else x_precision[u]
            both_total[:] = 0.0
            if k != old:
                both_total += x_total[u]
            if k < K:
                both_x += group_x[k]
                both_total += group_total[k]
            joined[k] += _context_evidence(both_x, both_total, x_variance)
    if old >= 0:
        joined[old], value[old] = value[old], joined[old]
    for k in range(K):
        log_odds[k] = np.log(count[k]) + joined[k] - value[k]
    log_odds[K] = np.log(alpha) + joined[K]


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
    m, h = b.shape[2], S.shape[2]
    groups = (
        np.empty((N + 1, h)), np.empty((N + 1, m)), np.empty(N + 1),
        np.empty((N + 1, x_total.shape[1])), np.empty(N + 1, np.int64), np.empty(N + 1),
    )  # fmt: skip
    value = groups[5]
    L, z = np.empty(h), np.empty(m)
    work = L, z, np.empty(h), np.empty(h), np.empty(m)
    batch = np.empty((h, N + 1)), np.empty((m, N + 1)), np.empty((3, N + 1))
    both = np.empty((h, N + 1)), np.empty((m, N + 1)), np.empty(x_total.shape[1])
    scratch = batch, both
    mu, left = np.zeros(m), np.empty((N, m))
    joined, log_odds = np.empty(N + 1), np.empty(N + 1)
    places = np.empty(max(N, labels.max() + 1), np.int64)
    sweeps = len(uniforms) // C
    for one in range(C * sweeps):
        g, chance = labels[one // sweeps], uniforms[one]
        K, labelled = _numbered(g, places)
        which_alpha = _draw_concentration(K, labelled, alphas, chance[0])
        alpha = alphas[which_alpha]
        which = _draw_weights(g, K, statistics, grid, s2, groups, work, chance[1])
        c, a, vb = own_of[which], weights[which, 0], weights[which, 1] * s2
        _pooled(g, K, (S[c], b[c], x_precision, x_total), groups)
        follow = between > 0
        if follow and labelled:
            follow = _contexts_follow(g, K, x_precision, x_total, between, groups, chance[2])
        x_variance = between if follow else 0.0
        mu[:] = 0.0
        if a > 0:
            _draw_population(K, a, vb, s2, groups, work, normals[one], mu)
        _residuals(S[c], b[c], mu, left)
        agents = S[c], left, x_precision, x_total
        _pooled(g, K, agents, groups)
        for k in range(K):
            value[k] = _value(
                groups[0][k], groups[1][k], vb, groups[2][k], groups[3][k], x_variance, L, z
            )
        visited, moved = 0, 0
        for turn in range(N + 1):  # at last `me`, for its odds
            u = me if turn == N else turn
            if turn < N and g[u] >= 0 and chance[3 + N + u] >= visit:
                continue
            K, old = _leave(u, g, K, agents, groups)
            _collapsed_odds(
                u, old, K, agents, groups, alpha, vb, x_variance, scratch, joined, log_odds
            )
            if turn == N:
                odds[one, : K + 1] = log_odds[: K + 1]
                facts[one, 3] = K
            new = draw(log_odds, K + 1, chance[3 + u])
            if turn == N and old != -1:  # it was visited before, and goes back to where it was
                new = K if old == -2 else old
            if turn < N:
                visited += 1
                moved += new != old and not (new == K and old == -2)
            K = _join(u, new, g, K, agents, groups, joined[new])
        facts[one, 0], facts[one, 1], facts[one, 2] = which, which_alpha, follow
        facts[one, 4], facts[one, 5] = visited, moved
        samples[one] = g


def concentrations(n: int) -> Array:
    """Return the grid of α for n agents, from 1 (few large groups) to 12n (nobody alike)."""
    return np.asarray((12.0 * n) ** np.array([0.0, 0.25, 0.5, 0.75, 1.0]))
