"""PettingZoo environments of every problem, and episodes in them."""

import numpy as np

import coopbandits as cb
from coopbandits.lab import parallel_env
from worlds import NETWORKS, ragged

NETWORK = NETWORKS["path"]
V = len(NETWORK)
T = 8


def ragged_sets(t, v, rng):
    return rng.normal(size=(1 + (t * (v + 2)) % 5, 3))


def own_functions(decision_sets):
    tasks = np.random.default_rng(3).normal(size=(V, 3))
    return cb.problems.functions(NETWORK, [lambda X, w=w: X @ w for w in tasks], decision_sets)


def recorded():
    rng = np.random.default_rng(4)
    X, f = rng.normal(size=(T, V, 4, 3)), rng.normal(size=(T, V, 4))
    return cb.problems.table(NETWORK, X, f + 0.1 * rng.normal(size=f.shape), f)


# what `parallel_env` takes, for every problem
EVERY = {
    "clustered_linear": lambda: {"problem": cb.problems.clustered_linear(NETWORK, dim=3)},
    "kernel": lambda: {"problem": cb.problems.kernel(NETWORK, dim=3, actions=5)},
    "fully_cooperative": lambda: {"problem": cb.problems.fully_cooperative(NETWORK, dim=3)},
    "changing": lambda: {"problem": cb.problems.changing(NETWORK, kind="jump", at=4, dim=3)},
    "functions": lambda: {"problem": own_functions(lambda t, v, rng: rng.normal(size=(4, 3)))},
    "functions, ragged": lambda: {"problem": own_functions(ragged_sets), "most_actions": 5},
    "arms": lambda: {"problem": cb.problems.arms(NETWORK, dim=3)},
    "table": lambda: {"problem": recorded()},
    "table, ragged": lambda: {"problem": ragged(NETWORK, rounds=T)},
}


def make(name, **changes):
    return parallel_env(**{"rounds": T, **EVERY[name](), **changes})


def at_random(env, observations, rng):
    return {
        name: int(rng.choice(np.flatnonzero(observations[name]["action_mask"])))
        for name in env.agents
    }


def episode(env, seed, rng):
    """Play at random; return the actions (T, V), and what reset and every step returned."""
    observations, infos = env.reset(seed=seed)
    actions, returned = [], [(observations, infos)]
    while env.agents:
        actions.append(at_random(env, returned[-1][0], rng))
        returned.append(env.step(actions[-1]))
    return np.array([list(row.values()) for row in actions]), returned


def spelt(infos):
    """All messages that arrived, in lists that can be compared."""
    return [
        [{**message, "context": message["context"].tolist()} for message in info["messages"]]
        for info in infos.values()
    ]
