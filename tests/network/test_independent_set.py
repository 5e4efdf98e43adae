import numpy as np
import pytest
from hypothesis import given

from coopbandits.network.independent_set import heavy_independent_set
from graphs import adjacencies, heaviest_independent_set, random_graph, sparse


@given(adjacencies())
def test_the_set_is_independent_and_maximal(adjacency):
    weights = adjacency.sum(axis=1) + 1
    chosen = heavy_independent_set(sparse(adjacency), weights)
    assert not adjacency[np.ix_(chosen, chosen)].any()
    assert all(v in chosen or adjacency[v, chosen].any() for v in range(len(adjacency)))


@pytest.mark.parametrize("seed", range(10))
def test_on_small_graphs_it_is_the_heaviest(seed):
    rng = np.random.default_rng(seed)
    adjacency = random_graph(rng, 9, 0.4)
    weights = rng.integers(1, 20, size=9)
    chosen = heavy_independent_set(sparse(adjacency), weights)
    assert weights[chosen].sum() == heaviest_independent_set(adjacency, weights)


def test_it_stops_where_it_is_told_that_enough_is_found(rng):
    adjacency = random_graph(rng, 40, 0.3)
    ones = np.ones(40, dtype=np.int64)
    best = len(heavy_independent_set(sparse(adjacency), ones))
    assert 1 <= len(heavy_independent_set(sparse(adjacency), ones, enough=1)) <= best
