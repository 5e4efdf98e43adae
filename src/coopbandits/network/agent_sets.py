"""Sets of agents, kept as the bits of one integer: fast to join, to meet and to count."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from coopbandits.arrays import BoolArray

AgentSet: TypeAlias = int
"""A set of agents: agent v is in it if bit v is set."""


def closed_neighbourhoods(adjacency: BoolArray) -> list[AgentSet]:
    """Whom each agent hears, itself included, as sets."""
    closed = adjacency | np.eye(len(adjacency), dtype=np.bool_)
    packed = np.packbits(closed, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def members(agents: AgentSet) -> Iterator[int]:
    """List a set in ascending order."""
    while agents:
        lowest = agents & -agents
        yield lowest.bit_length() - 1
        agents ^= lowest


def everyone(count: int) -> AgentSet:
    """Return the set of agents 0 … count − 1."""
    return (1 << count) - 1


def all_adjacent(neighbourhoods: Sequence[AgentSet], agents: Iterable[int]) -> bool:
    """Whether a group of agents is a clique."""
    agents = list(agents)
    group = sum(1 << agent for agent in agents)
    return all(group & ~neighbourhoods[agent] == 0 for agent in agents)


def components(neighbourhoods: Sequence[AgentSet], agents: AgentSet) -> Iterator[list[int]]:
    """Split some of the agents into connected components, by lowest member."""
    while agents:
        reached, frontier = 0, agents & -agents
        while frontier:
            reached |= frontier
            heard = 0
            for agent in members(frontier):
                heard |= neighbourhoods[agent]
            frontier = heard & agents & ~reached
        agents &= ~reached
        yield list(members(reached))
