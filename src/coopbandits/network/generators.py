"""The edges of networks by rule or by chance, in memory that follows them."""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import IntArray, as_count, as_number
from coopbandits.errors import ParameterError
from coopbandits.network.sparse_rows import SparseRows

# Edges at 16 bytes each, both ways, and a few copies of them, then take some 10 GB.
_MOST_EDGES = 100_000_000
# Erdős-Rényi networks take a random number for each of V² pairs, and up to so many draws.
_MOST_PAIRED, _ATTEMPTS = 50_000, 1_000
_FORLORN = 100.0

# Rows of Erdős-Rényi networks are drawn so many at a time: at 8 bytes a number, 80 MB.
_DRAWN_AT_ONCE = 10_000_000


def complete(count: int) -> SparseRows:
    """Every pair of agents, as arcs."""
    others = np.tile(np.arange(count), count)
    others = others[others != np.repeat(np.arange(count), count)]
    return SparseRows(np.arange(count + 1) * (count - 1), others)


def path(count: int) -> IntArray:
    """Each agent and the next: (E, 2)."""
    v = np.arange(count)
    return np.column_stack([v[:-1], v[1:]])


def star(count: int, spike: int) -> IntArray:
    """Spikes of so many agents each around agent 0: (E, 2)."""
    v = np.arange(1, count)
    return np.column_stack([np.where(v % spike == 1 % spike, 0, v - 1), v])


def grid(rows: int, columns: int) -> IntArray:
    """Each agent of a rectangle and those beside and below: (E, 2)."""
    v = np.arange(rows * columns).reshape(rows, columns)
    beside = np.column_stack([v[:, :-1].ravel(), v[:, 1:].ravel()])
    below = np.column_stack([v[:-1].ravel(), v[1:].ravel()])
    return np.concatenate([beside, below])


@dataclass(frozen=True)
class ErdosRenyi:
    """Each pair of agents with probability p; a number is drawn for each of V² pairs."""

    agents: int
    p: float

    def __post_init__(self) -> None:
        as_count(self.agents, "agents", most=_MOST_PAIRED)
        if not 0 <= as_number(self.p, "p") <= 1:
            raise ParameterError(f"p must be a probability, 0 … 1, got {self.p}")
        expected = self.p * self.agents * (self.agents - 1) / 2
        _check_edges(expected, f"{self.agents} agents joined with p={self.p}", "p")

    @property
    def attempts(self) -> int:
        """How often to draw until a network is connected; 0 where no draw is."""
        # so many are expected to be without an edge
        lone = self.agents * (1.0 - self.p) ** (self.agents - 1)
        return 0 if lone > _FORLORN and self.agents > 1 else _ATTEMPTS

    @property
    def refusal(self) -> ParameterError:
        """What to say where no draw was connected."""
        return ParameterError(
            f"{_ATTEMPTS} draws of {self.agents} agents with p={self.p} gave no connected network; "
            f"p above {np.log(max(self.agents, 2)) / self.agents:.3g} (ln V / V) makes one likely"
        )

    def edges(self, rng: np.random.Generator) -> IntArray:
        """Draw: (E, 2), in order."""
        count, parts = self.agents, [np.empty((0, 2), dtype=np.int64)]
        step = max(1, _DRAWN_AT_ONCE // count)
        for first in range(0, count, step):
            rows = np.arange(first, min(first + step, count))
            drawn = rng.random((len(rows), count)) < self.p
            drawn &= np.arange(count) > rows[:, None]
            i, j = np.nonzero(drawn)
            parts.append(np.column_stack([i + first, j]))
        return np.concatenate(parts)


def barabasi_albert(count: int, m: int, rng: np.random.Generator) -> IntArray:
    """Let each new agent join m others by preferential attachment: (E, 2).

    The first m + 1 agents are a star. An end of an edge that is drawn at random is an agent drawn
    in proportion to its degree. The draws are those of `networkx.barabasi_albert_graph`.
    """
    if as_count(m, "m") >= count:
        raise ParameterError(f"m must be below the number of agents, got m={m} of {count}")
    _check_edges(m * (count - m), f"{count} agents that join m={m} others", "m")
    ends = [0] * m + list(range(1, m + 1))
    targets = np.empty((count, m), dtype=np.int64)
    targets[m] = 0
    for agent in range(m + 1, count):
        joined: set[int] = set()
        while len(joined) < m:
            joined.add(ends[_below(len(ends), rng)])
        targets[agent] = list(joined)
        ends += joined
        ends += [agent] * m
    star = np.column_stack([np.zeros(m, dtype=np.int64), np.arange(1, m + 1)])
    grown = np.column_stack([np.repeat(np.arange(m + 1, count), m), targets[m + 1 :].reshape(-1)])
    return np.concatenate([star, grown])


def _below(count: int, rng: np.random.Generator) -> int:
    """Draw a whole number from 0 to count − 1: random bits, until they are one."""
    bits = count.bit_length()
    size = (bits + 7) // 8
    while True:
        drawn = int.from_bytes(rng.bytes(size), "big") >> (8 * size - bits)
        if drawn < count:
            return drawn


def _check_edges(expected: float, what: str, knob: str) -> None:
    if expected > _MOST_EDGES:
        raise ParameterError(
            f"{what} make {expected:,.0f} edges; expected at most {_MOST_EDGES:,}; take a smaller "
            f"{knob}"
        )
