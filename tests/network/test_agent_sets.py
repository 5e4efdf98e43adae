import networkx as nx
from hypothesis import given

from coopbandits.network.agent_sets import (
    all_adjacent,
    closed_neighbourhoods,
    components,
    everyone,
    members,
)
from graphs import adjacencies


@given(adjacencies())
def test_sets_of_bits_say_what_the_matrix_says(adjacency):
    hoods = closed_neighbourhoods(adjacency)
    for v, hood in enumerate(hoods):
        heard = [w for w in range(len(adjacency)) if w == v or adjacency[v, w]]
        assert list(members(hood)) == heard
    assert list(members(everyone(len(adjacency)))) == list(range(len(adjacency)))


@given(adjacencies())
def test_components_are_those_of_the_graph(adjacency):
    graph = nx.from_numpy_array(adjacency)
    found = list(components(closed_neighbourhoods(adjacency), everyone(len(adjacency))))
    assert sorted(map(sorted, nx.connected_components(graph))) == found


def test_a_clique_is_told_from_what_is_none():
    hoods = closed_neighbourhoods(nx.to_numpy_array(nx.path_graph(3), dtype=bool))
    assert all_adjacent(hoods, [0, 1])
    assert all_adjacent(hoods, [2])
    assert not all_adjacent(hoods, [0, 1, 2])
