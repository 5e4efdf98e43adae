import pickle
from itertools import count

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

import coopbandits as cb
from coopbandits.errors import NetworkError, ParameterError
from graphs import ego_facebook


def distances_by_hand(network):
    lengths = dict(nx.all_pairs_shortest_path_length(network.to_networkx()))
    V = len(network)
    return np.array([[lengths[i].get(j, np.inf) for j in range(V)] for i in range(V)])


@pytest.mark.parametrize(
    ("network", "agents", "edges", "diameter"),
    [
        (cb.Network.path(5), 5, 4, 4),
        (cb.Network.path(1), 1, 0, 0),
        (cb.Network.star(6), 6, 5, 2),
        (cb.Network.star(7, spike=2), 7, 6, 4),
        (cb.Network.star(8, spike=3), 8, 7, 6),
        (cb.Network.grid(3, 4), 12, 17, 5),
        (cb.Network.complete(5), 5, 10, 1),
        (cb.Network.from_edges([(0, 1)], agents=3), 3, 1, np.inf),
        (cb.Network.from_edges([(0, 1), (1, 2), (2, 0)], directed=True), 3, 3, 2),
    ],
    ids=repr,
)
def test_every_generator_makes_what_it_says(network, agents, edges, diameter):
    assert len(network) == agents
    assert len(network.edges) == edges
    assert network.diameter == diameter
    np.testing.assert_array_equal(network.distances, distances_by_hand(network))


def test_the_half_ttl_star_is_complete_at_its_ttl():
    # the paper's example of a γ-complete graph (after Theorem 1)
    for ttl in (2, 4, 6):
        network = cb.Network.star(13, spike=ttl // 2)
        assert network.power(ttl) == cb.Network.complete(13)
        assert len(network.clique_cover(ttl).cliques) == 1
        assert network.power(ttl - 1) != cb.Network.complete(13)


@pytest.mark.parametrize("ttl", [1, 2, 3, 4])
@pytest.mark.parametrize("agents", [1, 2, 7, 12, 13])
def test_a_path_is_covered_by_one_clique_for_each_ttl_plus_one_agents(agents, ttl):
    # reading 7: ⌈V/(γ+1)⌉, not ⌈V/γ⌉
    cover = cb.Network.path(agents).clique_cover(ttl)
    assert len(cover.cliques) == cover.lower_bound == -(-agents // (ttl + 1))


def test_erdos_renyi_is_connected_and_the_same_for_the_same_seed():
    for seed in range(20):
        network = cb.Network.erdos_renyi(12, 0.2, seed=seed)
        assert nx.is_connected(network.to_networkx())
    assert cb.Network.erdos_renyi(12, 0.2, seed=3) == cb.Network.erdos_renyi(12, 0.2, seed=3)
    assert cb.Network.erdos_renyi(12, 0.2, seed=3) != cb.Network.erdos_renyi(12, 0.2, seed=4)


def test_erdos_renyi_draws_each_edge_with_probability_p():
    edges = np.mean([len(cb.Network.erdos_renyi(30, 0.6, seed=s).edges) for s in range(40)])
    pairs = 30 * 29 / 2
    assert abs(edges / pairs - 0.6) < 4 * np.sqrt(0.24 / pairs / 40)


def test_barabasi_albert_has_the_edges_it_says():
    network = cb.Network.barabasi_albert(20, 3, seed=1)
    assert len(network.edges) == 3 * (20 - 3)
    assert network == cb.Network.barabasi_albert(20, 3, seed=1)
    assert nx.is_connected(network.to_networkx())


def test_powers_and_neighbourhoods_follow_the_distances():
    network = cb.Network.grid(3, 4)
    for ttl in (1, 2, 3):
        power = network.power(ttl)
        literal = nx.power(network.to_networkx(), ttl)
        assert power == cb.Network.from_networkx(literal)
        for v in range(12):
            expected = sorted([v, *literal.neighbors(v)])
            assert network.neighbourhood(v, ttl).tolist() == expected


def test_in_a_directed_network_news_comes_along_the_arcs():
    network = cb.Network.from_edges([(0, 1), (1, 2)], directed=True)
    assert network.distances.tolist() == [[0, 1, 2], [np.inf, 0, 1], [np.inf, np.inf, 0]]
    assert network.neighbourhood(2, 2).tolist() == [0, 1, 2]
    assert network.neighbourhood(0, 2).tolist() == [0]
    assert network.neighbours(0).tolist() == [1]


def test_a_clique_of_a_directed_network_needs_both_directions():
    ring = cb.Network.from_edges([(0, 1), (1, 2), (2, 0)], directed=True)
    assert len(ring.clique_cover(1).cliques) == 3
    assert len(ring.clique_cover(2).cliques) == 1
    assert ring.centres(1).indices.tolist() == [0, 1, 2]
    assert len(ring.centres(2).indices) == 1


def test_parts_that_are_not_connected_are_covered_each_on_its_own():
    edges = [(0, 1), (1, 2), (4, 5)]
    network = cb.Network.from_edges(edges, agents=7)
    assert [part.tolist() for part in network.components] == [[0, 1, 2], [3], [4, 5], [6]]
    cover = network.clique_cover(5)
    assert sorted(cover.cliques) == [(0, 1, 2), (3,), (4, 5), (6,)]
    assert network.centres(5).of.tolist()[3] == 3


def test_agents_keep_their_numbers_whatever_the_order_of_edges_or_nodes():
    graph = nx.Graph()
    graph.add_nodes_from([3, 1, 0, 2])
    graph.add_edges_from([(3, 1), (0, 2)])
    network = cb.Network.from_networkx(graph)
    assert network == cb.Network.from_edges([(2, 0), (1, 3)])
    assert network.edges == ((0, 2), (1, 3))


@given(st.integers(1, 12), st.integers(0, 10**6), st.booleans())
def test_networkx_gives_the_network_back(agents, seed, directed):
    graph = nx.gnp_random_graph(agents, 0.4, seed=seed, directed=directed)
    network = cb.Network.from_networkx(graph)
    assert nx.utils.graphs_equal(network.to_networkx(), graph)
    assert cb.Network.from_networkx(network.to_networkx()) == network


def test_a_network_can_be_sent_to_another_process():
    network = cb.Network.grid(2, 3)
    network.clique_cover(2)
    back = pickle.loads(pickle.dumps(network))
    assert back == network
    assert back.fingerprint == network.fingerprint


def test_networks_that_differ_have_fingerprints_that_differ():
    networks = [
        cb.Network.path(4),
        cb.Network.star(4),
        cb.Network.path(5),
        cb.Network.from_edges([(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)], directed=True),
    ]
    assert len({network.fingerprint for network in networks}) == 4
    assert len({hash(network) for network in networks}) == 4


def test_what_a_network_hands_out_is_read_only():
    network = cb.Network.path(4)
    for array in (network.adjacency, network.distances, network.clique_cover(1).labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("edges", "agents", "complaint"),
    [
        ([], None, "at least one agent"),
        ([], 0, "at least one agent"),
        ([], -1, "agents must be a whole number >= 1, got -1"),
        ([], 10**9, "agents must be at most"),
        (None, None, "pairs"),
        ([(0, 0)], None, "agent 0 has an edge to itself"),
        ([(0, 1), (1, 0)], None, r"edge \(0, 1\) is given 2 times"),
        ([(0, 1), (0, 1)], None, r"edge \(0, 1\) is given 2 times"),
        ([(0, 2)], None, r"no edge names agent 1.*agents=3"),
        ([(0, 5)], 3, r"agent 5, but the agents are 0 … 2"),
        ([(0, -1)], 3, "agent -1"),
        ([(0, 1, 2)], None, "pairs"),
        ([0, 1], None, "pairs"),
        ([("a", 0.5)], None, "pairs"),
        ([("a", "b"), ("a", 1)], None, "some agents by text and one by the number 1"),
        ([("a", "b"), ("b", "a")], None, r"edge \('a', 'b'\) is given 2 times"),
        ([("a", "a")], None, "agent 'a' has an edge to itself"),
        ([("a", "b")], 3, "agents=3, but there are 2 names"),
        ([("a", " ")], None, "no name of an agent"),
        ([(0, 1), (2,)], None, "pairs"),
        ([(0.0, 1.0)], None, "pairs"),
    ],
    ids=str,
)
def test_edges_that_make_no_network_are_refused(edges, agents, complaint):
    with pytest.raises((NetworkError, ParameterError), match=complaint):
        cb.Network.from_edges(edges, agents=agents)


@pytest.mark.parametrize(
    ("adjacency", "complaint"),
    [
        ([(0, 1)], "expected a .V, V. array of True and False"),
        (np.ones((2, 3), dtype=bool), "expected a .V, V. array of True and False"),
        (np.eye(2, dtype=bool), "empty diagonal"),
        (np.zeros((0, 0), dtype=bool), "at least one agent"),
        (np.triu(np.ones((3, 3), dtype=bool), k=1), "symmetric unless directed"),
    ],
    ids=range(5),
)
def test_a_matrix_that_makes_no_network_is_refused(adjacency, complaint):
    with pytest.raises(NetworkError, match=complaint):
        cb.Network(adjacency, directed=False)


def test_networkx_graphs_that_make_no_network_are_refused():
    with pytest.raises(NetworkError, match="no name of an agent"):
        cb.Network.from_networkx(nx.Graph([("a", (1, 2))]))
    with pytest.raises(NetworkError, match="the name '1' is given twice"):
        cb.Network.from_networkx(nx.Graph([("1", 1)]))
    with pytest.raises(NetworkError, match="at least one agent"):
        cb.Network.from_networkx(nx.Graph())
    with pytest.raises(NetworkError, match="expected a networkx graph"):
        cb.Network.from_networkx([(0, 1)])
    with pytest.raises(NetworkError, match="given 2 times"):
        cb.Network.from_networkx(nx.MultiGraph([(0, 1), (0, 1)]))
    with pytest.raises(NetworkError, match="edge to itself"):
        cb.Network.from_networkx(nx.Graph([(0, 1), (1, 1)]))


@pytest.mark.parametrize("ttl", [0, -1, 1.5, "far", None, True])
def test_a_ttl_below_one_is_refused(ttl):
    network = cb.Network.path(3)
    for call in (
        network.power,
        network.clique_cover,
        network.centres,
        lambda ttl: network.neighbourhood(0, ttl),
    ):
        with pytest.raises(ParameterError, match="ttl must be a whole number >= 1"):
            call(ttl)


def test_generators_refuse_what_makes_no_network():
    with pytest.raises(ParameterError, match="no connected network"):
        cb.Network.erdos_renyi(30, 0.0, seed=0)
    with pytest.raises(ParameterError, match="probability"):
        cb.Network.erdos_renyi(30, 1.5, seed=0)
    with pytest.raises(ParameterError, match="seed must be a whole number >= 0, got -1"):
        cb.Network.erdos_renyi(30, 0.5, seed=-1)
    with pytest.raises(ParameterError, match="m must be below"):
        cb.Network.barabasi_albert(3, 3, seed=0)
    with pytest.raises(NetworkError, match="agent 9 is not in this network"):
        cb.Network.path(3).neighbourhood(9, 1)


def test_a_real_network_has_the_counts_that_its_publisher_states():
    network = ego_facebook()
    assert (len(network), len(network.edges)) == (4039, 88234)
    assert network.diameter == 8
    assert len(network.components) == 1


@pytest.mark.parametrize("edges", [np.array(3), np.array(None), np.array("01")], ids=repr)
def test_an_array_of_no_dimensions_holds_no_edges(edges):
    with pytest.raises(NetworkError, match=r"edges must be pairs \(i, j\) of agents, got array"):
        cb.Network.from_edges(edges)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: cb.Network.complete(10**6), "agents must be at most 20000, got 1000000"),
        (lambda: cb.Network.path(10**9), "agents must be at most 20000000"),
        (lambda: cb.Network.star(10**9), "agents must be at most 20000000"),
        (lambda: cb.Network.erdos_renyi(10**6, 0.5), "agents must be at most 50000"),
        (lambda: cb.Network.erdos_renyi(50_000, 0.5), "make 624,987,500 edges; expected"),
        (lambda: cb.Network.grid(10**6, 10**6), "rows·columns must be at most 20000000"),
        (lambda: cb.Network.barabasi_albert(50_000, 25_000), "make 625,000,000 edges; expected"),
        (lambda: cb.Network.path(3).with_agents(10**9), "agents must be at most 19999997"),
    ],
    ids=range(8),
)
def test_a_network_that_does_not_fit_into_memory_is_refused_before_it_is_made(make, said):
    with pytest.raises(ParameterError, match=said):
        make()


def test_distances_that_do_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr("coopbandits.network.sparse_rows.MOST_DENSE", 9)
    assert cb.Network.path(9).distances.max() == 8
    larger = cb.Network.path(10)
    with pytest.raises(
        NetworkError,
        match=r"distances of 10 agents would take .* at most 9 agents; `distances_from.*`lags",
    ):
        _ = larger.distances
    for ask in (
        lambda: larger.adjacency,
        lambda: larger.lags(1).dense(),
        lambda: cb.similarity.Same().matrix(larger),
    ):
        with pytest.raises(NetworkError, match=r"of 10 agents would take .* at most 9 agents"):
            ask()
    monkeypatch.setattr("coopbandits.network.lags.MOST_PAIRS", 50)
    with pytest.raises(NetworkError, match="what everyone hears of everyone is more than 50 pairs"):
        cb.listen.Everyone().lags(larger, 1)
    with pytest.raises(NetworkError, match=r"within 3 hops is more than 50 pairs.*a smaller ttl"):
        larger.lags(3)
    # what does not need them works
    assert larger.diameter == 9
    assert larger.distances_from([0, 9])[:, 9].tolist() == [9, 0]
    assert len(larger.power(2).edges) == 17


def test_a_network_that_no_draw_connects_is_refused_at_once():
    # a thousand draws of so many agents would take minutes
    for p in (0.0, 1e-4):
        with pytest.raises(ParameterError, match=f"draws of 20000 agents with p={p} gave no conn"):
            cb.Network.erdos_renyi(20_000, p)


@pytest.mark.parametrize("directed", [None, 1, "yes", np.eye(2, dtype=bool)], ids=repr)
def test_a_network_is_directed_or_not(directed):
    for make in (
        lambda: cb.Network(np.zeros((2, 2), dtype=bool), directed=directed),
        lambda: cb.Network.from_edges([(0, 1)], directed=directed),
    ):
        with pytest.raises(ParameterError, match="directed must be True or False, got"):
            make()


@pytest.mark.parametrize(
    "edges", [count(), range(10**12), np.ma.array([[0, 1]], mask=[[0, 1]]), "01", b"01", int]
)
def test_edges_that_begin_with_no_pair_are_not_read_to_their_end(edges):
    with pytest.raises(NetworkError, match=r"edges must be pairs \(i, j\) of agents"):
        cb.Network.from_edges(edges)


def test_a_network_says_what_it_is_without_a_list_of_its_edges():
    network = cb.Network.complete(30)
    assert repr(network) == "Network(30 agents, 435 edges)"
    assert "edges" not in vars(network)
    assert repr(cb.Network.from_edges([(0, 1)], directed=True)) == "Network(2 agents, 1 arc)"
