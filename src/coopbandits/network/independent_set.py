"""Which agents, of whom no two hear each other, weigh the most? A heavy set, with no promise.

`clique_cover` takes it as a lower bound (each member needs a clique of its own), `centres` as the
set to prove or to improve.
"""

import heapq

import numpy as np

from coopbandits.arrays import BoolArray, IntArray
from coopbandits.network.sparse_rows import SparseRows

TRIALS = 20_000
"""Agents that are tried, one by one, to improve an independent set."""


def heavy_independent_set(
    neighbours: SparseRows, weights: IntArray, *, enough: int | None = None
) -> list[int]:
    """Find a heavy set of agents of whom no two are adjacent; it is always maximal.

    Record-to-record travel: force one agent after the other into the set, drop whoever is in its
    way, refill greedily, and go on from there if the weight is not below the best one by more
    than a tolerance, which shrinks from one mean weight to 0.

    Args:
        neighbours: Symmetric, nobody in its own row.
        weights: (V,) whole numbers above 0.
        enough: A weight at which to stop.
    """
    agents = len(neighbours)
    state = _Chosen(neighbours, weights)
    weight = record = state.refill(range(agents), np.empty(0, dtype=np.int64))
    record_set = state.chosen.copy()
    trials, mean = min(25 * agents, TRIALS), float(weights.mean())
    for trial in range(trials):
        if enough is not None and record >= enough:
            break
        agent = trial % agents
        if state.chosen[agent]:
            continue
        state.begin()
        gain = state.insert(agent)
        gain += state.refill(state.raised(), neighbours[agent])
        tolerance = mean * (1 - trial / trials)
        if gain < 0 and weight + gain < record - tolerance:
            state.undo()
            continue
        weight += gain
        if weight > record:
            record, record_set = weight, state.chosen.copy()
    return np.flatnonzero(record_set).tolist()


class _Chosen:
    """A set of agents of whom no two are adjacent, and what each would gain if it joined.

    Attributes:
        chosen: (V,) who is in it.
        gains: (V,) an agent's weight, less that of its chosen neighbours, who would have to leave.
    """

    def __init__(self, neighbours: SparseRows, weights: IntArray) -> None:
        self._neighbours = list(neighbours)
        self._weights: list[int] = weights.tolist()
        self.chosen: BoolArray = np.zeros(len(weights), dtype=np.bool_)
        self.gains: IntArray = weights.astype(np.int64)
        self._log: list[tuple[int, bool]] = []  # who joined or left, to be undone
        self._open: set[int] = set()  # who may have something to gain, and was barred
        self._open_before: set[int] = set()

    def begin(self) -> None:
        """Begin what `undo` takes back."""
        self._log, self._open_before = [], set(self._open)

    def undo(self) -> None:
        """Go back to the last `begin`."""
        for agent, joined in reversed(self._log):
            self._put(agent, not joined)
        self._open = self._open_before

    def insert(self, agent: int) -> int:
        """Let an agent in, its neighbours out; return what is gained."""
        gain = int(self.gains[agent])
        mine = self._neighbours[agent]
        for dropped in mine[self.chosen[mine]].tolist():
            self._put(dropped, False)
        self._put(agent, True)
        return gain

    def raised(self) -> list[int]:
        """Return all who may have something to gain since all had joined who had."""
        dropped = [agent for agent, joined in self._log if not joined]
        return [
            *{*self._open, *dropped, *(v for d in dropped for v in self._neighbours[d].tolist())}
        ]

    def refill(self, candidates: "range | list[int]", barred: IntArray) -> int:
        """Let in who gains the most, the lowest of equals, until nobody gains; return the gain."""
        closed = set(barred.tolist())
        gains, chosen, total = self.gains, self.chosen, 0
        heap = [(-int(gains[v]), v) for v in candidates if gains[v] > 0 and not chosen[v]]
        self._open = {v for _, v in heap if v in closed}
        heap = [entry for entry in heap if entry[1] not in closed]
        heapq.heapify(heap)
        while heap:
            minus, agent = heapq.heappop(heap)
            gain = int(gains[agent])
            if chosen[agent] or gain <= 0:
                continue
            if gain != -minus:
                heapq.heappush(heap, (-gain, agent))
                continue
            logged = len(self._log)
            total += self.insert(agent)
            for other, joined in self._log[logged:]:
                if joined:
                    continue
                for v in (other, *self._neighbours[other].tolist()):
                    if gains[v] > 0 and not chosen[v]:
                        if v in closed:
                            self._open.add(v)
                        else:
                            heapq.heappush(heap, (-int(gains[v]), v))
        return total

    def _put(self, agent: int, joins: bool) -> None:
        self.chosen[agent] = joins
        weight = self._weights[agent]
        self.gains[self._neighbours[agent]] += -weight if joins else weight
        self._log.append((agent, joins))
