import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from coopbandits.network import clique_cover, independent_set
from coopbandits.network.agent_sets import closed_neighbourhoods
from coopbandits.network.clique_cover import cover_by_cliques
from graphs import (
    adjacencies,
    ego_facebook,
    fewest_cliques,
    path_power,
    random_graph,
    side_by_side,
    sparse,
)


def assert_valid(adjacency, cover):
    agents = len(adjacency)
    assert sorted(v for clique in cover.cliques for v in clique) == list(range(agents))
    for label, clique in enumerate(cover.cliques):
        assert list(clique) == sorted(clique)
        assert (cover.labels[list(clique)] == label).all()
        assert all(adjacency[i, j] for i in clique for j in clique if i != j)
    assert [clique[0] for clique in cover.cliques] == sorted(c[0] for c in cover.cliques)
    assert 1 <= cover.lower_bound <= len(cover.cliques)
    assert cover.optimal == (cover.lower_bound == len(cover.cliques))


@given(adjacencies())
def test_covers_cover_and_cliques_are_cliques(adjacency):
    assert_valid(adjacency, cover_by_cliques(sparse(adjacency)))


@pytest.mark.parametrize("density", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("seed", range(8))
def test_small_graphs_get_the_fewest_cliques_and_a_proof(seed, density):
    rng = np.random.default_rng(seed)
    adjacency = random_graph(rng, int(rng.integers(2, 9)), density)
    cover = cover_by_cliques(sparse(adjacency))
    assert len(cover.cliques) == cover.lower_bound == fewest_cliques(adjacency)


@pytest.mark.parametrize("ttl", [1, 2, 3, 5])
@pytest.mark.parametrize("agents", [1, 6, 50, 301])
def test_a_power_of_a_path_is_covered_by_as_few_cliques_as_it_can_be(agents, ttl):
    cover = cover_by_cliques(sparse(path_power(agents, ttl)))
    assert len(cover.cliques) == cover.lower_bound == -(-agents // (ttl + 1))


@pytest.mark.parametrize(
    ("graph", "cliques"),
    [
        (nx.complete_graph(9), 1),
        (nx.empty_graph(9), 9),
        (nx.star_graph(8), 8),
        (nx.cycle_graph(9), 5),
        (nx.cycle_graph(10), 5),
        (nx.complement(nx.petersen_graph()), 3),  # the Petersen graph needs 3 colours
        (nx.complement(nx.mycielski_graph(4)), 4),  # Grötzsch: no triangle, yet 4 colours
        (nx.complete_multipartite_graph(3, 3, 3), 3),
    ],
    ids=str,
)
def test_known_graphs_get_their_known_number_with_a_proof(graph, cliques):
    adjacency = nx.to_numpy_array(graph, dtype=bool)
    cover = cover_by_cliques(sparse(adjacency))
    assert_valid(adjacency, cover)
    assert len(cover.cliques) == cover.lower_bound == cliques


@pytest.mark.parametrize("seed", range(3))
def test_two_cliques_that_hear_each_other_in_part_need_two(seed):
    # the complement of a bipartite graph
    rng = np.random.default_rng(seed)
    adjacency = side_by_side(path_power(12, 12), path_power(9, 9))
    adjacency[:12, 12:] = rng.random((12, 9)) < 0.5
    adjacency |= adjacency.T
    cover = cover_by_cliques(sparse(adjacency))
    assert_valid(adjacency, cover)
    assert len(cover.cliques) == cover.lower_bound == 2


def test_parts_that_are_not_connected_add_up(rng):
    parts = [random_graph(rng, 7, 0.5), path_power(5, 2), random_graph(rng, 8, 0.3)]
    whole = cover_by_cliques(sparse(side_by_side(*parts)))
    assert len(whole.cliques) == sum(len(cover_by_cliques(sparse(part)).cliques) for part in parts)
    assert whole.lower_bound == sum(cover_by_cliques(sparse(part)).lower_bound for part in parts)


@pytest.mark.parametrize("seed", range(8))
def test_the_search_alone_saves_the_one_clique_too_many(seed):
    adjacency = random_graph(np.random.default_rng(seed), 8, 0.5)
    fewest = cover_by_cliques(sparse(adjacency)).cliques
    assert len(fewest) == fewest_cliques(adjacency)
    (first, *others), *rest = sorted(fewest, key=len, reverse=True)
    too_many = [sum(1 << v for v in clique) for clique in ([first], others, *rest)]
    cover, proven = clique_cover._search(closed_neighbourhoods(adjacency), too_many, [0])
    assert proven
    assert len(cover) == len(fewest) == len(too_many) - 1


def test_the_same_graph_gets_the_same_cover(rng):
    adjacency = random_graph(rng, 60, 0.5)
    one, two = cover_by_cliques(sparse(adjacency)), cover_by_cliques(sparse(adjacency.copy()))
    assert one.cliques == two.cliques
    assert one.lower_bound == two.lower_bound


def test_without_effort_the_cover_is_valid_and_its_bound_too(rng, monkeypatch):
    graphs = [random_graph(rng, 25, density) for density in (0.2, 0.5, 0.8)]
    exact = [cover_by_cliques(sparse(graph)) for graph in graphs]
    assert all(cover.optimal for cover in exact)
    for limit in ("REGROUP_EFFORT", "DISSOLVE_EFFORT", "SEARCH_EFFORT"):
        monkeypatch.setattr(clique_cover, limit, 0)
    monkeypatch.setattr(independent_set, "TRIALS", 0)
    hasty = [cover_by_cliques(sparse(graph)) for graph in graphs]
    for graph, best, cover in zip(graphs, exact, hasty, strict=True):
        assert_valid(graph, cover)
        assert cover.lower_bound <= len(best.cliques) <= len(cover.cliques)
    assert not all(cover.optimal for cover in hasty)


def test_a_dense_network_of_the_papers_size_is_covered_well(rng):
    # ER(200, 0.7): no independent set above 7 or so, so the bound stays below; the cover itself
    # must beat one greedy pass in index order by a good deal
    adjacency = random_graph(rng, 200, 0.7)
    cover = cover_by_cliques(sparse(adjacency))
    assert_valid(adjacency, cover)
    greedy: list[list[int]] = []
    for v in range(200):
        home = next((clique for clique in greedy if adjacency[v, clique].all()), None)
        if home is None:
            greedy.append([v])
        else:
            home.append(v)
    assert len(cover.cliques) <= 0.8 * len(greedy)


@pytest.mark.slow
@pytest.mark.parametrize(("ttl", "at_most"), [(1, 1.05), (2, 1.0), (3, 1.0)])
def test_a_social_network_is_covered_close_to_the_bound(ttl, at_most):
    adjacency = ego_facebook().power(ttl).adjacency
    cover = cover_by_cliques(sparse(adjacency))
    assert_valid(adjacency, cover)
    assert len(cover.cliques) <= at_most * cover.lower_bound
