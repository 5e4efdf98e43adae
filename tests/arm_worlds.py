"""Small worlds whose contexts begin with an arm, for the tests of independent arms."""

import numpy as np

import coopbandits as cb

ARMS, DIM, ROUNDS = 3, 2, 8


def with_arms(network, seed=0, rounds=ROUNDS):
    """Recorded rounds; every agent is offered one to five contexts (a, x), arms in any order."""
    rng = np.random.default_rng([seed, 11])
    counts = rng.integers(1, 6, size=(rounds, len(network)))
    contexts = [
        [np.column_stack([rng.integers(ARMS, size=k), rng.normal(size=(k, DIM))]) for k in row]
        for row in counts
    ]
    return cb.problems.table(
        network, contexts, [[rng.normal(size=k) for k in row] for row in counts]
    )


def correlated(count, seed=0):
    """A kernel matrix with no zeros and a diagonal of ones."""
    z = np.random.default_rng([seed, 5]).normal(size=(count, 2))
    return np.exp(-0.5 * ((z[:, None] - z[None, :]) ** 2).sum(axis=2))


def pair_by_pair(k):
    """A kernel of two augmented contexts as the literal twins take it: k(v, x, v', x')."""
    return lambda u, X, w, Y: np.array(
        [[k(v, x, v_, x_) for v_, x_ in zip(w, Y, strict=True)] for v, x in zip(u, X, strict=True)]
    )
