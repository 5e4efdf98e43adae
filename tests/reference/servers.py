"""DisKernelUCB (Li et al. 2022) and H-LinUCB (Do et al. 2023), line by line.

One agent after the other, explicit inverses and determinants. As the library does, all agents
decide before anyone synchronises, ties go to the lowest index, and who knows nothing chooses at
random.
"""

import math

import numpy as np

from reference import formulas
from reference.algorithms import lowest_best


def logdet(k, data, ridge):
    if not data:
        return 0.0
    X = [x for x, _ in data]
    K = formulas.gram(k, X, X)
    return math.log(np.linalg.det(np.eye(len(K)) + K / ridge))


def dis_kernel_ucb(world, V, k, *, ridge, width, threshold, rounds, seed):
    """Return actions (T, V), and the messages of each round.

    `width` is a function of the Gram matrix and λ.
    """
    rngs = [np.random.default_rng(np.random.SeedSequence([seed, v])) for v in range(V)]
    shared, new = [], [[] for _ in range(V)]
    last, actions, messages = 0, np.empty((rounds, V), dtype=int), []
    for t in range(1, rounds + 1):
        pulls = []
        for v in range(V):
            D, rewards = world(t, v)
            data = shared + new[v]
            if data:
                X, y = [x for x, _ in data], np.array([y for _, y in data])
                K = formulas.gram(k, X, X)
                inverse = np.linalg.inv(K + ridge * np.eye(len(K)))
                bounds = []
                for x in D:
                    kappa = formulas.gram(k, X, [x])[:, 0]
                    variance = max(k(x, x) - kappa @ inverse @ kappa, 0.0)
                    bounds.append(kappa @ inverse @ y + width(K, ridge) * math.sqrt(variance))
                a = lowest_best(bounds)
            else:
                a = int(rngs[v].integers(len(D)))
            actions[t - 1, v] = a
            pulls.append((D[a], rewards[a]))
        for v in range(V):
            new[v].append(pulls[v])
        before = logdet(k, shared, ridge)
        gained = [logdet(k, shared + new[v], ridge) - before for v in range(V)]
        sent = 0
        if V > 1 and any((t - last) * g > threshold for g in gained):
            for v in range(V):
                sent += len(new[v])  # up
                sent += sum(len(new[u]) for u in range(V) if u != v)  # down
            shared = shared + [pull for mine in new for pull in mine]
            new, last = [[] for _ in range(V)], t
        messages.append(sent)
    return actions, messages


def weighed(data, d, ridge):
    return ridge * np.eye(d) + sum((w * np.outer(x, x) for x, _, w, _ in data), np.zeros((d, d)))


def h_lin_ucb(world, V, d, *, epsilon, ridge, width, alpha, threshold, tau, keep, rounds, seed):
    """Return actions (T, V), and the rounds that end with a synchronisation.

    `width` is a function of det(I + K/λ)'s logarithm, n, λ and for how many agents it must hold.
    """
    rngs = [np.random.default_rng(np.random.SeedSequence([seed, v])) for v in range(V)]
    shared, new = [], [[] for _ in range(V)]  # observations with their weights
    last, actions, synchronised = 0, np.empty((rounds, V), dtype=int), []
    for t in range(1, rounds + 1):
        together = t <= tau
        if t == tau + 1:
            seen = [[(x, y, 1.0, v) for x, y, _, u in shared + new[v] if u == v] for v in range(V)]
            shared, new = [], seen if keep else [[] for _ in range(V)]
        pulls = []
        for v in range(V):
            D, rewards = world(t, v)
            data = shared + new[v]
            A = weighed(data, d, ridge)
            b = sum((w * y * x for x, y, w, _ in data), np.zeros(d))
            inverse = np.linalg.inv(A)
            norms = [math.sqrt(x @ inverse @ x) for x in D]
            L = math.log(np.linalg.det(A / ridge))
            radius = math.sqrt(ridge) * width(L, len(data), ridge, V if together else 1)
            if together and epsilon > 0:
                radius += alpha * epsilon * len(data)
            bounds = [x @ inverse @ b + radius * norm for x, norm in zip(D, norms, strict=True)]
            a = lowest_best(bounds) if data else int(rngs[v].integers(len(D)))
            actions[t - 1, v] = a
            weight = min(1.0, alpha / norms[a]) if together and norms[a] > 0 else 1.0
            pulls.append((D[a], rewards[a], weight, v))
        for v in range(V):
            new[v].append(pulls[v])
        if together and V > 1:
            before = np.linalg.det(weighed(shared, d, ridge))
            ratios = [np.linalg.det(weighed(shared + new[v], d, ridge)) / before for v in range(V)]
            if any((t - last) * math.log(ratio) > threshold for ratio in ratios):
                shared = shared + [pull for mine in new for pull in mine]
                new, last = [[] for _ in range(V)], t
                synchronised.append(t)
    return actions, synchronised
