"""Small worlds that many tests share."""

import dataclasses

import numpy as np

import coopbandits as cb

DIM = 3

NETWORKS = {
    "path": cb.Network.path(7),
    "star": cb.Network.star(8),
    "spiked star": cb.Network.star(9, spike=2),
    "grid": cb.Network.grid(3, 3),
    "erdos-renyi": cb.Network.erdos_renyi(10, 0.3, seed=5),
    "barabasi-albert": cb.Network.barabasi_albert(10, 2, seed=3),
    "two parts": cb.Network.from_edges([(0, 1), (1, 2), (3, 4)], agents=6),
    "directed": cb.Network.from_edges(
        [(0, 1), (1, 2), (2, 0), (2, 3), (3, 2), (3, 4), (4, 5), (5, 3), (1, 0)], directed=True
    ),
}


WIDTHS = [
    cb.width.Fixed(0.7),
    cb.width.SelfNormalised(norm=0.5, noise=0.2),
    cb.width.InformationGain(norm=0.5, noise=0.2),
    cb.width.Srinivas(norm=0.1, delta=0.5),
]


class Recorded:
    """Draws as `Sample` does, and keeps what it rated."""

    judges = draws = True

    def __init__(self):
        self.rated = []

    def score(self, mean, std, width):
        self.rated.append(mean + width * std)
        return self.rated[-1]

    def leaders(self, network, ttl):
        return np.full(len(network), -1)

    def follow(self, arm, offered):
        raise AssertionError


def network_contexts(agents, seed=0, dim=2):
    return np.random.default_rng([seed, 99]).normal(size=(agents, dim))


def ragged(network, seed=0, dim=3, rounds=12, sizes=(1, 6)):
    """Recorded rounds in which every decision set has its own size."""
    rng = np.random.default_rng([seed, 7])
    counts = rng.integers(*sizes, size=(rounds, len(network)))
    contexts = [[rng.normal(size=(k, dim)) for k in row] for row in counts]
    rewards = [[rng.normal(size=k) for k in row] for row in counts]
    return cb.problems.table(network, contexts, rewards)


def world_of(problem, seed):
    """A problem as the literal twins take it: (round, agent) -> contexts, rewards."""

    def world(t, v):
        offer = problem.round(t, seed)
        mine = offer.agents == v
        return offer.contexts[mine], offer.rewards[mine]

    return world


def assert_same_fields(one, two, *, but=()):
    """Two runs are the same to the bit in all that they hold, but for some of it."""
    for field in dataclasses.fields(cb.Run):
        mine, others = getattr(one, field.name), getattr(two, field.name)
        if field.name in but:
            continue
        if not field.compare:  # what answers for chains, which both have or neither
            assert (mine is None) == (others is None)
        elif field.name in ("network", "sources"):
            assert mine == others
        elif field.name == "worth":
            for (t, worth), (same_t, same_worth) in zip(mine, others, strict=True):
                assert t == same_t
                np.testing.assert_array_equal(worth, same_worth)
        else:
            np.testing.assert_array_equal(mine, others)


def assert_same_run(one, two):
    """Two runs are the same to the bit."""
    assert_same_fields(one, two)


def neighbours_of(network):
    return [network.neighbours(v).tolist() for v in range(len(network))]


def eager(ttl=2, **changes):
    return cb.EagerKernelUCB(
        **{"kernel": cb.kernels.RBF(), "similarity": cb.similarity.Same(), "ttl": ttl, **changes}
    )


def news(rng, **changes):
    facts = {
        "round": 1,
        "origin": 1,
        "context": rng.normal(size=DIM),
        "reward": 1.0,
        "ttl": 2,
    }
    return cb.Message(**{**facts, **changes})
