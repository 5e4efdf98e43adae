import networkx as nx
import numpy as np
from hypothesis import given

from coopbandits.network.agent_sets import closed_neighbourhoods, components, everyone, members
from graphs import adjacencies, sparse


@given(adjacencies())
def test_sets_of_bits_say_what_the_matrix_says(adjacency):
    hoods = closed_neighbourhoods(sparse(adjacency))
    for v, hood in enumerate(hoods):
        heard = [w for w in range(len(adjacency)) if w == v or adjacency[v, w]]
        assert list(members(hood)) == heard
    assert list(members(everyone(len(adjacency)))) == list(range(len(adjacency)))


@given(adjacencies())
def test_components_are_those_of_the_graph(adjacency):
    some = np.arange(0, len(adjacency), 2)
    for agents in (np.arange(len(adjacency)), some, some[:0]):
        graph = nx.from_numpy_array(adjacency).subgraph(agents.tolist())
        found = [part.tolist() for part in components(sparse(adjacency), agents)]
        assert sorted(map(sorted, nx.connected_components(graph))) == found
