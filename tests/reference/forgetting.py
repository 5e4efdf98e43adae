"""SW-UCB (Cheung et al. 2019) and D-LinUCB (Russac et al. 2019), line by line, for one agent.

Lists of observations or the printed recursions, and explicit inverses. As the library does, ties go
to the lowest index, and who knows nothing chooses at random.
"""

import math

import numpy as np

from reference.algorithms import lowest_best


def sw_ucb(world, v, d, *, window, ridge, beta, rounds, seed):
    """Return actions (T,): regression on the observations of rounds t − w … t − 1."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, v]))
    seen, actions = {}, []
    for t in range(1, rounds + 1):
        D, rewards = world(t, v)
        inside = [seen[s] for s in range(max(1, t - window), t)]
        A = ridge * np.eye(d) + sum((np.outer(x, x) for x, _ in inside), np.zeros((d, d)))
        inverse = np.linalg.inv(A)
        theta = inverse @ sum((y * x for x, y in inside), np.zeros(d))
        bounds = [x @ theta + beta * math.sqrt(x @ inverse @ x) for x in D]
        a = lowest_best(bounds) if inside else int(rng.integers(len(D)))
        actions.append(a)
        seen[t] = D[a], rewards[a]
    return actions


def d_lin_ucb(world, v, d, *, discount, ridge, beta, rounds, seed):
    """Return actions (T,); `beta` is a function of the round t. Algorithm 1 of the paper."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, v]))
    V, tilde, b, actions = ridge * np.eye(d), ridge * np.eye(d), np.zeros(d), []
    for t in range(1, rounds + 1):
        D, rewards = world(t, v)
        inverse = np.linalg.inv(V)
        M = inverse @ tilde @ inverse
        bounds = [x @ inverse @ b + beta(t) * math.sqrt(x @ M @ x) for x in D]
        a = lowest_best(bounds) if t > 1 else int(rng.integers(len(D)))
        actions.append(a)
        x, y = D[a], rewards[a]
        V = discount * V + np.outer(x, x) + (1 - discount) * ridge * np.eye(d)
        tilde = discount**2 * tilde + np.outer(x, x) + (1 - discount**2) * ridge * np.eye(d)
        b = discount * b + y * x
    return actions
