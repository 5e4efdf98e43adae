"""Which agents, of whom no two hear each other, weigh the most? A heavy set, with no promise.

`clique_cover` takes it as a lower bound (each member needs a clique of its own), `centres` as the
set to prove or to improve.
"""

import numpy as np

from coopbandits.arrays import BoolArray, IntArray

TRIALS = 20_000
"""Agents that are tried, one by one, to improve an independent set."""


def heavy_independent_set(
    adjacency: BoolArray, weights: IntArray, *, enough: int | None = None
) -> list[int]:
    """Find a heavy set of agents of whom no two are adjacent; it is always maximal.

    Record-to-record travel: force one agent after the other into the set, drop whoever is in its
    way, refill greedily, and go on from there if the weight is not below the best one by more
    than a tolerance, which shrinks from one mean weight to 0.

    Args:
        adjacency: (V, V) symmetric, with an empty diagonal.
        weights: (V,) whole numbers above 0.
        enough: A weight at which to stop.
    """
    agents = len(adjacency)
    neighbours = [np.flatnonzero(row) for row in adjacency]
    chosen = np.zeros(agents, dtype=np.bool_)
    in_the_way = np.zeros(agents, dtype=np.int64)  # the weight of each agent's chosen neighbours

    def insert(agent: int) -> int:
        gain = weights[agent] - in_the_way[agent]
        for dropped in neighbours[agent][chosen[neighbours[agent]]]:
            chosen[dropped] = False
            in_the_way[neighbours[dropped]] -= weights[dropped]
        chosen[agent] = True
        in_the_way[neighbours[agent]] += weights[agent]
        return int(gain)

    def refill(barred: BoolArray) -> int:
        total = 0
        while True:
            gains = np.where(chosen | barred, 0, weights - in_the_way)
            best = int(gains.argmax())
            if gains[best] <= 0:
                return total
            total += insert(best)

    weight = record = refill(chosen)
    record_set = chosen.copy()
    trials = min(25 * agents, TRIALS)
    for trial in range(trials):
        if enough is not None and record >= enough:
            break
        agent = trial % agents
        if chosen[agent]:
            continue
        before = chosen.copy(), in_the_way.copy()
        gain = insert(agent)
        gain += refill(adjacency[agent])
        tolerance = float(weights.mean()) * (1 - trial / trials)
        if gain < 0 and weight + gain < record - tolerance:
            chosen, in_the_way = before
            continue
        weight += gain
        if weight > record:
            record, record_set = weight, chosen.copy()
    return np.flatnonzero(record_set).tolist()
