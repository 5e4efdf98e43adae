"""The posterior of observations that have faded, with a constant of each agent's own, literally.

K + τ²·1{same agent} between observations, noise of variance λ/w for one of weight w, one system of
equations, one agent at a time. A large τ² takes digits, so that is solved in extended precision.
Imports nothing of ours.
"""

import numpy as np


def solve(A, B):
    """Solve AX = B, with the residual corrected in extended precision."""
    exact, target = A.astype(np.longdouble), B.astype(np.longdouble)
    X = np.zeros_like(target)
    for _ in range(6):
        X = X + np.linalg.solve(A, (target - exact @ X).astype(np.float64))
    return X


def believe(K, agents, X, y, weights, v, queries, *, ridge, tau=0.0):
    """Return mean, variance (m,) and log det(I + K/λ) of what agent v believes at m queries."""
    kept = weights > 0
    agents, X, y, weights = agents[kept], X[kept], y[kept], weights[kept]
    mine = np.full(len(queries), v)

    def kernel(u, X, w, Y):
        return K(u, X, w, Y) + tau**2 * (u[:, None] == w[None, :])

    prior = np.diag(kernel(mine, queries, mine, queries)).copy()
    if not len(y):
        return np.zeros(len(queries)), prior, 0.0
    gram = kernel(agents, X, agents, X)
    cross = kernel(agents, X, mine, queries)
    solved = solve(gram + np.diag(ridge / weights), np.column_stack([y, cross]))
    mean = (cross.T @ solved[:, 0]).astype(np.float64)
    explained = (cross * solved[:, 1:]).sum(axis=0)
    variance = (prior - explained).astype(np.float64)
    root = np.sqrt(weights)
    logdet = np.linalg.slogdet(np.eye(len(y)) + root[:, None] * gram * root / ridge)[1]
    return mean, variance, logdet


def play(world, lags, K, *, rounds, seed, ridge, eta, tau=0.0, weight=np.ones_like):
    """Let all agents take the highest upper bound; return their choices (T, V).

    `world(t, v)` returns contexts (K, d) and rewards (K,); `lags[v, u]` after how many rounds v
    knows what u saw, inf for never; `weight(age)` what an observation of an age is worth.
    """
    V = len(lags)
    rngs = [np.random.default_rng(np.random.SeedSequence([seed, v])) for v in range(V)]
    seen, choices = [], np.empty((rounds, V), dtype=int)
    for t in range(1, rounds + 1):
        new = []
        for v in range(V):
            contexts, rewards = world(t, v)
            known = [one for one in seen if one[1] + lags[v, one[0]] <= t]
            if not known:
                choice = int(rngs[v].integers(len(contexts)))
            else:
                agents = np.array([u for u, *_ in known])
                age = np.array([t - lags[v, u] - made for u, made, *_ in known])
                X, y = np.array([one[2] for one in known]), np.array([one[3] for one in known])
                mean, variance, _ = believe(
                    K, agents, X, y, weight(age), v, contexts, ridge=ridge, tau=tau
                )
                upper = mean + eta / np.sqrt(ridge) * np.sqrt(np.maximum(variance, 0.0))
                best = upper.max()
                choice = int(np.argmax(upper >= best - 1e-9 * max(1.0, abs(best))))
            choices[t - 1, v] = choice
            new.append((v, t, contexts[choice], rewards[choice]))
        seen += new
    return choices
