"""What a run's agents knew at each decision, literally: sets of observations, then inverses."""

import numpy as np

from reference import formulas


def contexts_of(problem, run, seed):
    """The chosen contexts, (T, V, d), read off the problem's rounds."""
    chosen = []
    for t, row in enumerate(run.actions, start=1):
        offer = problem.round(t, seed)
        sets = [offer.contexts[offer.agents == v] for v in range(len(row))]
        chosen.append([sets[v][action] for v, action in enumerate(row)])
    return np.array(chosen)


def gram(kernel, K_z, who, X):
    """K = K_z ⊙ K_x of observations."""
    return K_z[np.ix_(who, who)] * kernel(X, X)


def group_gram(problem, policy, run, seed, group):
    """The Gram matrix of a group's observations, round by round."""
    X = contexts_of(problem, run, seed)
    K_z = policy.similarity.matrix(problem.network)
    pairs = [(t, v) for t in range(len(X)) for v in group]
    return gram(policy.kernel, K_z, [v for _, v in pairs], np.array([X[p] for p in pairs]))


def variances(problem, policy, run, seed, *, judge=None, agents=None):
    """σ² of agents' choices in every round, given what was known then: (T, V).

    judge: by whose knowledge each choice is judged; by the agent's own if not given.
    agents: whose choices; NaN for the others. All if not given.
    """
    network = problem.network
    X = contexts_of(problem, run, seed)
    K_z = policy.similarity.matrix(network)
    lags = policy.listen.lags(network, policy.ttl).dense()
    T, V, _ = X.shape
    found = np.full((T, V), np.nan)
    for t in range(T):
        for v in range(V) if agents is None else agents:
            row = lags[v if judge is None else judge]
            known = [(s, u) for s in range(t) for u in range(V) if s + row[u] <= t]
            who = [u for _, u in known] + [v]
            rows = np.array([X[p] for p in known] + [X[t, v]])
            K = gram(policy.kernel, K_z, who, rows)
            _, variance = formulas.posterior(
                K[:-1, :-1], K[:-1, -1:], K[-1:, -1], np.zeros(len(known)), policy.ridge
            )
            found[t, v] = variance[0]
    return found
