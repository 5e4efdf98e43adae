"""Sets of agents, kept as the bits of one integer: fast to join, to meet and to count.

For components of a graph, whose agents are numbered from 0: a set takes as many bits as there are.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from coopbandits.arrays import IntArray
from coopbandits.network.sparse_rows import SparseRows

AgentSet: TypeAlias = int
"""A set of agents: agent v is in it if bit v is set."""


def closed_neighbourhoods(neighbours: SparseRows) -> list[AgentSet]:
    """Whom each agent hears, itself included, as sets."""
    width = (len(neighbours) + 7) // 8 * 8
    flags = np.zeros(width, dtype=np.bool_)
    hoods = []
    for v, row in enumerate(neighbours):
        flags[row] = flags[v] = True
        hoods.append(int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little"))
        flags[row] = flags[v] = False
    return hoods


def members(agents: AgentSet) -> Iterator[int]:
    """List a set in ascending order."""
    while agents:
        lowest = agents & -agents
        yield lowest.bit_length() - 1
        agents ^= lowest


def everyone(count: int) -> AgentSet:
    """Return the set of agents 0 … count − 1."""
    return (1 << count) - 1


def components(neighbours: SparseRows, agents: IntArray) -> list[IntArray]:
    """Split some of the agents, ascending, into connected components, by lowest member."""
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 (heavy)

    if not len(agents):
        return []
    inside = neighbours.within(agents).matrix()
    labels = connected_components(inside, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    parts = np.split(agents[order], np.cumsum(np.bincount(labels))[:-1])
    return sorted(parts, key=lambda part: int(part[0]))
