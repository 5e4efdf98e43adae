"""Graphs as adjacency matrices, and answers by brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import strategies as st

import coopbandits as cb
from coopbandits.network import SparseRows
from real_data import networks


def ego_facebook():
    """Read a real network of 4,039 agents, or skip: it is not part of the repository."""
    file = networks() / "ego-facebook.txt.gz"
    if not file.is_file():
        pytest.skip(f"no real networks in {file.parent}")
    return cb.Network.from_edges(np.loadtxt(file, dtype=np.int64).tolist())


def sparse(adjacency):
    """A matrix of who hears whom, as sparse rows."""
    return SparseRows.of_matrix(np.asarray(adjacency))


def random_graph(rng, agents, density):
    upper = np.triu(rng.random((agents, agents)) < density, k=1)
    return upper | upper.T


def path_power(agents, ttl):
    gap = np.abs(np.subtract.outer(np.arange(agents), np.arange(agents)))
    return (gap >= 1) & (gap <= ttl)


def side_by_side(*graphs):
    size = sum(map(len, graphs))
    whole, start = np.zeros((size, size), dtype=bool), 0
    for graph in graphs:
        end = start + len(graph)
        whole[start:end, start:end] = graph
        start = end
    return whole


@st.composite
def adjacencies(draw, most=30):
    agents = draw(st.integers(1, most))
    density = draw(st.floats(0, 1))
    seed = draw(st.integers(0, 2**32 - 1))
    return random_graph(np.random.default_rng(seed), agents, density)


def fewest_cliques(adjacency):
    """χ̄ by trying every partition, agent after agent."""

    def cover(agent, cliques, best):
        if len(cliques) >= best:
            return best
        if agent == len(adjacency):
            return len(cliques)
        for clique in cliques:
            if adjacency[agent, clique].all():
                clique.append(agent)
                best = cover(agent + 1, cliques, best)
                clique.pop()
        return cover(agent + 1, [*cliques, [agent]], best)

    return cover(0, [], len(adjacency) + 1)


def heaviest_independent_set(adjacency, weights):
    """The weight of the heaviest independent set, by trying every set."""
    agents = range(len(adjacency))
    sets = (s for size in range(1, len(adjacency) + 1) for s in combinations(agents, size))
    return max(weights[list(s)].sum() for s in sets if not adjacency[np.ix_(s, s)].any())
