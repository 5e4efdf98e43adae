import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from coopbandits.network import centres
from coopbandits.network.centres import choose_centres
from graphs import (
    adjacencies,
    ego_facebook,
    heaviest_independent_set,
    path_power,
    random_graph,
    side_by_side,
    sparse,
)


def assert_valid(adjacency, chosen):
    weights = adjacency.sum(axis=1) + 1
    indices = chosen.indices.tolist()
    assert indices == sorted(indices)
    assert not adjacency[np.ix_(indices, indices)].any(), "centres are independent"
    assert chosen.weight == weights[indices].sum()
    assert chosen.weight <= chosen.upper_bound
    assert chosen.optimal == (chosen.weight == chosen.upper_bound)
    for v in range(len(adjacency)):
        if v in indices:
            assert chosen.of[v] == v
        else:
            heard = [c for c in indices if adjacency[v, c]]
            assert heard, "centres dominate"
            # of largest degree in G_γ, of equal ones the lowest
            assert chosen.of[v] == min(heard, key=lambda c: (-adjacency[c].sum(), c))


@given(adjacencies())
def test_centres_are_independent_and_dominate(adjacency):
    assert_valid(adjacency, choose_centres(sparse(adjacency)))


@pytest.mark.parametrize("density", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("seed", range(8))
def test_small_graphs_get_the_heaviest_set_and_a_proof(seed, density):
    rng = np.random.default_rng(seed)
    adjacency = random_graph(rng, int(rng.integers(2, 11)), density)
    chosen = choose_centres(sparse(adjacency))
    best = heaviest_independent_set(adjacency, adjacency.sum(axis=1) + 1)
    assert chosen.weight == chosen.upper_bound == best


def test_a_star_is_spoken_for_by_its_leaves_where_they_weigh_more():
    # the hub weighs V, a leaf 2: from three leaves on, all leaves together weigh more
    for leaves in (2, 3, 6):
        adjacency = nx.to_numpy_array(nx.star_graph(leaves), dtype=bool)
        chosen = choose_centres(sparse(adjacency))
        assert_valid(adjacency, chosen)
        assert chosen.weight == max(leaves + 1, 2 * leaves)


def test_a_complete_graph_has_one_centre_and_it_is_the_lowest():
    chosen = choose_centres(sparse(nx.to_numpy_array(nx.complete_graph(6), dtype=bool)))
    assert chosen.indices.tolist() == [0]
    assert chosen.of.tolist() == [0] * 6


def test_a_graph_without_edges_has_only_centres():
    chosen = choose_centres(sparse(np.zeros((4, 4), dtype=bool)))
    assert chosen.indices.tolist() == chosen.of.tolist() == [0, 1, 2, 3]
    assert chosen.optimal


@pytest.mark.parametrize("graph", [nx.cycle_graph(6), nx.cycle_graph(8), nx.path_graph(2)], ids=str)
def test_of_sets_that_weigh_the_same_the_one_with_the_lowest_agents_is_chosen(graph):
    chosen = choose_centres(sparse(nx.to_numpy_array(graph, dtype=bool)))
    assert chosen.indices.tolist() == list(range(0, len(graph), 2))


def test_parts_that_are_not_connected_add_up(rng):
    parts = [random_graph(rng, 7, 0.5), path_power(5, 2), random_graph(rng, 8, 0.3)]
    whole = choose_centres(sparse(side_by_side(*parts)))
    assert whole.weight == sum(choose_centres(sparse(part)).weight for part in parts)
    assert whole.upper_bound == sum(choose_centres(sparse(part)).upper_bound for part in parts)


@pytest.mark.parametrize("ttl", [1, 2, 3])
@pytest.mark.parametrize("agents", [2, 9, 150])
def test_the_centres_of_a_path_are_the_heaviest_with_a_proof(agents, ttl):
    adjacency = path_power(agents, ttl)
    weights = adjacency.sum(axis=1) + 1
    heaviest: list[int] = []  # among the first v + 1 agents: leave v out, or go ttl + 1 back
    for v in range(agents):
        with_v = weights[v] + (heaviest[v - ttl - 1] if v > ttl else 0)
        heaviest.append(max(with_v, heaviest[-1] if heaviest else 0))
    chosen = choose_centres(sparse(adjacency))
    assert_valid(adjacency, chosen)
    assert chosen.weight == chosen.upper_bound == heaviest[-1]


def only(monkeypatch, stage):
    """Switch off the stages of proof except one."""
    limits = {"relax": "RELAXED_EDGES", "search": "SEARCH_AGENTS", "program": "PROGRAM_SIZE"}
    kept = {stage, "relax"} if stage == "program" else {stage}  # the program needs its rows
    for name, limit in limits.items():
        if name not in kept:
            monkeypatch.setattr(centres, limit, 0)
    monkeypatch.setattr(centres, "PROGRAM_ALWAYS", 10**6 if stage == "program" else 0)


@pytest.mark.parametrize("density", [0.05, 0.15, 0.4, 0.7])
def test_search_and_integer_program_agree(rng, monkeypatch, density):
    adjacency = random_graph(rng, 40, density)
    weights = []
    for stage in ("search", "program"):
        with monkeypatch.context() as patch:
            only(patch, stage)
            chosen = choose_centres(sparse(adjacency))
        assert_valid(adjacency, chosen)
        assert chosen.optimal
        weights.append(chosen.weight)
    assert weights[0] == weights[1]


@pytest.mark.parametrize("stage", ["none", "relax", "search", "program"])
def test_at_the_limits_of_effort_the_centres_are_valid_and_their_bound_too(rng, monkeypatch, stage):
    graphs = [random_graph(rng, 40, density) for density in (0.1, 0.3, 0.6)]
    exact = [choose_centres(sparse(graph)) for graph in graphs]
    assert all(chosen.optimal for chosen in exact)
    only(monkeypatch, stage)
    monkeypatch.setattr(centres, "SEARCH_EFFORT", 40)
    monkeypatch.setattr(centres, "PROGRAM_EFFORT", 1)
    hasty = [choose_centres(sparse(graph)) for graph in graphs]
    for graph, best, chosen in zip(graphs, exact, hasty, strict=True):
        assert_valid(graph, chosen)
        assert chosen.weight <= best.weight <= chosen.upper_bound
    assert not all(chosen.optimal for chosen in hasty)


def test_the_relaxation_bounds_tighter_than_a_clique_cover(rng, monkeypatch):
    adjacency = random_graph(rng, 60, 0.2)
    only(monkeypatch, "relax")
    relaxed = choose_centres(sparse(adjacency))
    only(monkeypatch, "none")
    assert relaxed.upper_bound < choose_centres(sparse(adjacency)).upper_bound


def test_a_set_that_leaves_room_is_filled_up(rng):
    adjacency = random_graph(rng, 30, 0.2)
    weights = adjacency.sum(axis=1) + 1
    for start in ([], [3]):
        filled = centres._fill(sparse(adjacency), weights, start)
        assert set(start) <= set(filled)
        heard = adjacency[filled].any(axis=0)
        assert not heard[filled].any()
        assert heard.sum() + len(filled) == 30


def test_the_same_graph_gets_the_same_centres(rng):
    adjacency = random_graph(rng, 60, 0.2)
    one, two = choose_centres(sparse(adjacency)), choose_centres(sparse(adjacency.copy()))
    np.testing.assert_array_equal(one.of, two.of)
    assert (one.weight, one.upper_bound) == (two.weight, two.upper_bound)


def test_a_dense_network_of_the_papers_size_is_solved_exactly(rng):
    adjacency = random_graph(rng, 200, 0.7)
    chosen = choose_centres(sparse(adjacency))
    assert_valid(adjacency, chosen)
    assert chosen.optimal


@pytest.mark.slow
@pytest.mark.parametrize(("ttl", "at_most"), [(1, 1.15), (2, 1.0), (3, 1.0)])
def test_a_social_network_gets_centres_close_to_their_bound(ttl, at_most):
    adjacency = ego_facebook().power(ttl).adjacency
    chosen = choose_centres(sparse(adjacency))
    assert_valid(adjacency, chosen)
    assert chosen.upper_bound <= at_most * chosen.weight
