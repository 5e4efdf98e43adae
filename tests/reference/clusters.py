"""SCLUB and DynUCB, line by line.

One step at a time, explicit inverses, clusters as sets. All V agents are served in every round: in
turn (`lag` 0, a step each) or at once (`lag` 1). Whoever's cluster knows nothing chooses at random.
"""

import math

import numpy as np

from reference.social import first_best, generators


class User:
    """S, b and T of one user, which are summed over the users of a cluster."""

    def __init__(self, d):
        self.S, self.b, self.T = np.zeros((d, d)), np.zeros(d), 0


def regression(users, ridge, d):
    """M⁻¹, w and T of some users together."""
    inverse = np.linalg.inv(ridge * np.eye(d) + sum((u.S for u in users), np.zeros((d, d))))
    return inverse, inverse @ sum((u.b for u in users), np.zeros(d)), sum(u.T for u in users)


def chosen(contexts, inverse, w, T, alpha, t, rng):
    if T == 0:
        return int(rng.integers(len(contexts)))
    return first_best(
        [w @ x + alpha * math.sqrt(x @ inverse @ x * math.log(t + 1)) for x in contexts]
    )


def F(T):
    return math.sqrt((1 + math.log(1 + T)) / (1 + T))


def sclub(world, agents, *, alpha, alpha_theta, ridge, rounds, seed, lag):
    """Serve, split, merge, in phases. Returns the actions (T, V), and clusters by round."""
    d = world(1, 0)[0].shape[1]
    users, rngs = [User(d) for _ in range(agents)], generators(seed, agents)
    clusters = [set(range(agents))]
    pivots = [None]  # w̃ and T̃ of each cluster
    checked = set()
    s, left, served = 0, 0, 0
    actions, found = np.zeros((rounds, agents), dtype=int), []

    def of(cluster):
        return regression([users[v] for v in sorted(cluster)], ridge, d)

    for r in range(rounds):
        for step in [[v] for v in range(agents)] if lag == 0 else [list(range(agents))]:
            if left == 0:
                s += 1
                left = 2**s
                checked = set()
                pivots = [of(cluster)[1:] for cluster in clusters]
            left -= 1
            pulls = []
            for v in step:
                contexts, rewards = world(r + 1, v)
                mine = next(cluster for cluster in clusters if v in cluster)
                k = chosen(contexts, *of(mine), alpha, served + 1, rngs[v])  # type: ignore[call-arg]
                actions[r, v] = k
                pulls.append((v, contexts[k], rewards[k]))
            for v, x, y in pulls:
                users[v].S = users[v].S + np.outer(x, x)
                users[v].b = users[v].b + y * x
                users[v].T += 1
                served += 1
            for v in step:  # split
                j = next(j for j, cluster in enumerate(clusters) if v in cluster)
                _, w, T = of({v})
                w_tilde, T_tilde = pivots[j]
                if len(clusters[j]) > 1 and (
                    np.linalg.norm(w - w_tilde) > alpha_theta * (F(T) + F(T_tilde))
                ):
                    clusters[j] = clusters[j] - {v}
                    clusters.append({v})
                    pivots.append((w, T))
            checked |= set(step)
            # merge
            order = sorted(range(len(clusters)), key=lambda j: min(clusters[j]))
            clusters, pivots = [clusters[j] for j in order], [pivots[j] for j in order]
            i = 0
            while i < len(clusters):
                j = i + 1
                while j < len(clusters):
                    _, w_i, T_i = of(clusters[i])
                    _, w_j, T_j = of(clusters[j])
                    if clusters[i] | clusters[j] <= checked and np.linalg.norm(
                        w_i - w_j
                    ) < alpha_theta / 2 * (F(T_i) + F(T_j)):
                        clusters[i] = clusters[i] | clusters.pop(j)
                        pivots.pop(j)
                        pivots[i] = of(clusters[i])[1:]
                    else:
                        j += 1
                i += 1
        found.append([min(next(c for c in clusters if v in c)) for v in range(agents)])
    return actions, found


def dyn_ucb(world, agents, *, alpha, ridge, start, clusters, rounds, seed, lag):
    """Serve, then move to the nearest. Returns the actions (T, V), and clusters by round."""
    d = world(1, 0)[0].shape[1]
    users, rngs = [User(d) for _ in range(agents)], generators(seed, agents)
    label, served = list(start), 0
    actions, found = np.zeros((rounds, agents), dtype=int), []

    for r in range(rounds):
        for step in [[v] for v in range(agents)] if lag == 0 else [list(range(agents))]:
            known = [
                regression([users[v] for v in range(agents) if label[v] == k], ridge, d)
                for k in range(clusters)
            ]
            t = served + 1
            for v in step:
                contexts, rewards = world(r + 1, v)
                k = chosen(contexts, *known[label[v]], alpha, t, rngs[v])  # type: ignore[call-arg]
                actions[r, v] = k
                users[v].S = users[v].S + np.outer(contexts[k], contexts[k])
                users[v].b = users[v].b + rewards[k] * contexts[k]
                users[v].T += 1
                served += 1
            for v in step:
                _, w, _ = regression([users[v]], ridge, d)
                distance = [float(np.linalg.norm(w - w_bar)) for _, w_bar, _ in known]
                close = min(distance) + 1e-9 * max(1.0, min(distance))
                if distance[label[v]] > close:
                    label[v] = next(k for k in range(clusters) if distance[k] <= close)
        found.append(list(label))
    return actions, found
