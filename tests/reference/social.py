"""GoB.Lin, LK-GP-UCB, CLUB and coop-UCB2, line by line as their papers print them.

One step at a time, explicit inverses, no sharing. All V agents are served in every round: in turn
(`lag` 0, a step each) or at once (`lag` 1). Whoever knows nothing chooses at random; scores within
1e-9·max(1, |best|) tie, and the lowest index wins.
"""

import math

import numpy as np

from reference.algorithms import symmetric_root


def laplacian(adjacency):
    A = (adjacency | adjacency.T).astype(float)
    return np.diag(A.sum(axis=1)) - A


def components(adjacency):
    """The lowest agent of each agent's connected part."""
    label = list(range(len(adjacency)))
    for _ in adjacency:
        for i, j in zip(*np.nonzero(adjacency), strict=True):
            label[i] = label[j] = min(label[i], label[j])
    return label


def generators(seed, agents):
    return [np.random.default_rng(np.random.SeedSequence([seed, v])) for v in range(agents)]


def first_best(scores):
    best = max(scores)
    return next(k for k, s in enumerate(scores) if s >= best - 1e-9 * max(1.0, abs(best)))


def goblin(world, adjacency, *, bonus, rounds, seed, lag):
    """Figure 1 of "A Gang of Bandits"; bonus(φ̃ᵀM⁻¹φ̃, |M|, t). Returns the actions (T, V)."""
    V, d = len(adjacency), world(1, 0)[0].shape[1]
    A = np.kron(np.eye(V) + laplacian(adjacency), np.eye(d))
    values, vectors = np.linalg.eigh(A)
    A_root_inverse = vectors @ np.diag(values**-0.5) @ vectors.T
    part, rngs = components(adjacency), generators(seed, V)
    M, b = np.eye(V * d), np.zeros(V * d)
    steps = dict.fromkeys(part, 0)
    actions = np.zeros((rounds, V), dtype=int)
    for r in range(rounds):
        known = M.copy(), b.copy(), dict(steps)
        for v in range(V):
            M_t, b_t, steps_t = (M, b, steps) if lag == 0 else known
            t = steps_t[part[v]] + 1
            contexts, rewards = world(r + 1, v)
            modified = []
            for x in contexts:
                phi = np.zeros(V * d)
                phi[v * d : (v + 1) * d] = x
                modified.append(A_root_inverse @ phi)
            if t == 1:
                k = int(rngs[v].integers(len(contexts)))
            else:
                inverse = np.linalg.inv(M_t)
                w = inverse @ b_t
                mine = [part[u] == part[v] for u in range(V) for _ in range(d)]
                size = np.linalg.det(M_t[np.ix_(mine, mine)])
                k = first_best([w @ f + bonus(f @ inverse @ f, size, t) for f in modified])
            actions[r, v] = k
            M = M + np.outer(modified[k], modified[k])
            b = b + rewards[k] * modified[k]
            steps[part[v]] += 1
    return actions


def laplacian_kernel_ucb(
    world, adjacency, k_x, *, rho, ridge, width, rounds, seed, lag, draws=False
):
    """LK-GP-UCB on a connected network, width(K): all observations in one Gram matrix.

    With `draws`, LK-GP-TS: a draw from N(mean, w²·Σ) takes the place of the upper bound.
    """
    V = len(adjacency)
    K_z = np.linalg.inv(laplacian(adjacency) + rho * np.eye(V))
    rngs = generators(seed, V)
    agents, X, y = [], [], []
    actions = np.zeros((rounds, V), dtype=int)
    for r in range(rounds):
        before = len(y)
        for v in range(V):
            n = len(y) if lag == 0 else before
            contexts, rewards = world(r + 1, v)
            if n == 0:
                k = int(rngs[v].integers(len(contexts)))
            else:
                K = [
                    [K_z[i, j] * k_x(a, c) for j, c in zip(agents[:n], X[:n], strict=True)]
                    for i, a in zip(agents[:n], X[:n], strict=True)
                ]
                inverse = np.linalg.inv(np.array(K) + ridge * np.eye(n))
                kappa = np.array(
                    [
                        [K_z[i, v] * k_x(a, x) for i, a in zip(agents[:n], X, strict=False)]
                        for x in contexts
                    ]
                )
                prior = K_z[v, v] * np.array([[k_x(x, z) for z in contexts] for x in contexts])
                Sigma = prior - kappa @ inverse @ kappa.T
                if draws:
                    spread = symmetric_root(Sigma) @ rngs[v].standard_normal(len(contexts))
                else:
                    spread = np.sqrt(np.diagonal(Sigma))
                mean = kappa @ inverse @ np.array(y[:n])
                k = first_best(mean + width(np.array(K)) * spread)
            actions[r, v] = k
            agents.append(v)
            X.append(contexts[k])
            y.append(rewards[k])
    return actions


def club(world, agents, *, alpha, alpha_2, ridge, edges, rounds, seed, lag):
    """Figure 1 of "Online Clustering of Bandits", with the bounds of its experiments.

    `edges` are those of the first graph. Returns the actions (T, V) and the clusters, a label for
    each agent, after each round.
    """
    V, d = agents, world(1, 0)[0].shape[1]
    edges = {tuple(sorted(edge)) for edge in edges}
    M, b, T = [ridge * np.eye(d)] * V, [np.zeros(d)] * V, [0] * V
    rngs = generators(seed, V)
    actions, found = np.zeros((rounds, V), dtype=int), []
    t = 0
    for r in range(rounds):
        known = list(M), list(b), list(T), set(edges), t
        for v in range(V):
            M_t, b_t, T_t, E_t, before = (M, b, T, edges, t) if lag == 0 else known
            cluster = [u for u in range(V) if linked(E_t, V)[u] == linked(E_t, V)[v]]
            M_bar = ridge * np.eye(d) + sum(M_t[u] - ridge * np.eye(d) for u in cluster)
            inverse = np.linalg.inv(M_bar)
            w_bar = inverse @ sum(b_t[u] for u in cluster)
            contexts, rewards = world(r + 1, v)
            if sum(T_t[u] for u in cluster) == 0:
                k = int(rngs[v].integers(len(contexts)))
            else:
                k = first_best(
                    [
                        w_bar @ x + alpha * math.sqrt(x @ inverse @ x * math.log(before + 1 + 1))
                        for x in contexts
                    ]
                )
            actions[r, v] = k
            w = [np.linalg.inv(M_t[u]) @ b_t[u] for u in range(V)]
            off = [alpha_2 * math.sqrt((1 + math.log(1 + n)) / (1 + n)) for n in T_t]
            gone = {
                edge
                for edge in edges
                if v in edge
                and np.linalg.norm(w[edge[0]] - w[edge[1]]) > off[edge[0]] + off[edge[1]]
            }
            # lists are made anew, so that `known` stays as it was
            M = [M[u] + np.outer(contexts[k], contexts[k]) * (u == v) for u in range(V)]
            b = [b[u] + rewards[k] * contexts[k] * (u == v) for u in range(V)]
            T = [T[u] + (u == v) for u in range(V)]
            edges = edges - gone
            t += 1
        found.append(linked(edges, V))
    return actions, found


def linked(edges, agents):
    """The lowest agent of each agent's connected part."""
    label = list(range(agents))
    for _ in range(agents):
        for i, j in edges:
            label[i] = label[j] = min(label[i], label[j])
    return label


def coop_ucb2(world, adjacency, *, noise, exploration, kappa, rounds, seed):
    """coop-UCB2 on a connected network, agent by agent. Returns the actions, n̂ and ŝ."""
    V, K = len(adjacency), len(world(1, 0)[0])
    neighbours = [np.flatnonzero(row).tolist() for row in adjacency]
    largest = max(len(beside) for beside in neighbours)
    n, s = [[0.0] * K for _ in range(V)], [[0.0] * K for _ in range(V)]
    first = [int(rng.integers(K)) for rng in generators(seed, V)]
    actions = np.zeros((rounds, V), dtype=int)
    for t in range(1, rounds + 1):
        for v in range(V):
            if t <= K:
                actions[t - 1, v] = (first[v] + t - 1) % K
            elif 0.0 in n[v]:
                actions[t - 1, v] = n[v].index(0.0)
            else:
                log = math.log(t - 1)
                actions[t - 1, v] = first_best(
                    [
                        s[v][i] / n[v][i]
                        + noise
                        * math.sqrt(
                            2
                            * exploration
                            * ((n[v][i] + math.sqrt(log)) / (V * n[v][i]))
                            * (log / n[v][i])
                        )
                        for i in range(K)
                    ]
                )
        for v in range(V):
            n[v][actions[t - 1, v]] += 1
            s[v][actions[t - 1, v]] += world(t, v)[1][actions[t - 1, v]]
        # everyone moves towards its neighbours, by the estimates of before
        n, s = (
            [
                [
                    old[v][i] + kappa / largest * sum(old[u][i] - old[v][i] for u in neighbours[v])
                    for i in range(K)
                ]
                for v in range(V)
            ]
            for old in (n, s)
        )
    return actions, np.array(n), np.array(s)
