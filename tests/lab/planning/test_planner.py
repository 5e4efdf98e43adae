import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.lab import inspect_network, planner_figure
from coopbandits.lab.planning.quotient_picture import MOST_DISCS, MOST_LINES, between
from graphs import adjacencies, ego_facebook, fewest_cliques, heaviest_independent_set
from worlds import NETWORKS

DIM = 3
PLAYED = {
    "coop": lambda ttl: cb.CoopKernelUCB(
        kernel=cb.kernels.Linear(), similarity=cb.similarity.Same(), ttl=ttl
    ),
    "eager": lambda ttl: cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(), similarity=cb.similarity.Same(), ttl=ttl
    ),
    "dist": lambda ttl: cb.DistKernelUCB(kernel=cb.kernels.Linear(), ttl=ttl),
}


def played(network, policy, rounds):
    problem = cb.problems.fully_cooperative(network, dim=DIM, actions=2)
    return cb.play(problem, policy, rounds=rounds, engine="messages")


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_messages_and_bytes_are_those_of_a_run_once_news_has_spread(network):
    for row in inspect_network(network, ttls=[1, 3], dim=DIM).rows:
        for name, policy in PLAYED.items():
            run = played(network, policy(row.ttl), rounds=row.ttl + 1)
            outlook = getattr(row, name)
            assert (outlook.messages, outlook.bytes) == (run.messages[-1], run.bytes[-1])


def test_what_a_learnt_similarity_attaches_counts_for_coop_and_eager_only():
    network = cb.Network.grid(2, 3)
    (row,) = inspect_network(network, ttls=[2], dim=DIM, attached=DIM).rows
    learning = cb.CoopKernelUCB(kernel=cb.kernels.Linear(), ttl=2)  # by Evidence
    assert row.coop.bytes == row.eager.bytes == played(network, learning, rounds=3).bytes[-1]
    assert row.dist.bytes == played(network, PLAYED["dist"](2), rounds=3).bytes[-1]


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_delays_are_counted_pair_by_pair(network):
    V, ttl = len(network), 2
    cover, centres = network.clique_cover(ttl), network.centres(ttl)
    (row,) = inspect_network(network, ttls=[ttl]).rows
    uses = {
        "coop": lambda v, u: cover.labels[v] == cover.labels[u],
        "eager": lambda v, u: True,
        "dist": lambda v, u: v in centres.indices or centres.of[v] == u,
    }
    for name, used in uses.items():
        delays = [
            network.distances[u, v]
            for v in range(V)
            for u in range(V)
            if u != v and network.distances[u, v] <= ttl and used(v, u)
        ]
        outlook = getattr(row, name)
        assert outlook.heard == pytest.approx(len(delays) / V)
        assert outlook.delay == pytest.approx(np.mean(delays))


@settings(max_examples=25)
@given(adjacencies(most=9))
def test_small_graphs_get_both_numbers_exactly_and_factors_by_their_formulas(adjacency):
    V = len(adjacency)
    for row in inspect_network(cb.Network(adjacency), ttls=[1, 2]).rows:
        power = cb.Network(adjacency).power(row.ttl).adjacency
        chi, alpha = fewest_cliques(power), heaviest_independent_set(power, np.ones(V, dtype=int))
        assert (row.cliques, row.fewest_cliques) == (chi, chi)
        assert (row.independent, row.most_independent) == (alpha, alpha)
        assert row.coop.factor == row.coop.best_factor == pytest.approx(math.sqrt(chi / V))
        assert row.dist.factor == row.dist.best_factor == pytest.approx(math.sqrt(alpha / V))
        assert row.eager.factor == pytest.approx(math.sqrt((row.ttl + alpha) / V))


def test_a_complete_network_reaches_the_least_factor_at_once():
    inspection = inspect_network(cb.Network.complete(9))
    (row,) = inspection.rows
    assert row.coop.factor == row.dist.factor == inspection.least_factor == pytest.approx(1 / 3)
    assert (row.ttl, row.centres, row.mean_neighbourhood) == (1, 1, 9)


@pytest.mark.parametrize("ttl", [1, 2, 4, 10, 30])
def test_a_path_needs_a_clique_for_each_ttl_plus_one_agents(ttl):
    (row,) = inspect_network(cb.Network.path(11), ttls=[ttl]).rows
    assert row.coop.factor == pytest.approx(math.sqrt(math.ceil(11 / (ttl + 1)) / 11))
    assert row.largest_neighbourhood == min(11, 2 * ttl + 1)


def test_a_star_is_nearly_alone_at_one_hop_and_together_at_two():
    near, far = inspect_network(cb.Network.star(9)).rows
    assert near.coop.factor == pytest.approx(math.sqrt(8 / 9))
    assert far.coop.factor == pytest.approx(1 / 3)


def test_without_edges_everyone_works_alone():
    inspection = inspect_network(cb.Network.from_edges([], agents=4))
    (row,) = inspection.rows
    assert row.coop.factor == row.dist.factor == 1.0
    assert (row.coop.messages, row.coop.bytes, row.coop.heard) == (0, 0, 0.0)
    assert math.isnan(row.coop.delay)
    assert math.isnan(inspection.mean_distance)
    assert (inspection.diameter, inspection.components, inspection.paper_ttl) == (0, 4, 1)


def test_where_cover_and_independent_set_differ_both_are_told():
    """A ring of five: two agents apart at most, yet three cliques."""
    ring = cb.Network.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
    row = inspect_network(ring, ttls=[1]).rows[0]
    assert (row.cliques, row.fewest_cliques) == (3, 3)
    assert (row.independent, row.most_independent) == (2, 2)
    assert row.dist.factor < row.coop.factor


def test_in_a_directed_network_both_ways_count_and_news_comes_along_the_arcs():
    ring = [(v, (v + 1) % 5) for v in range(5)]
    back = [(j, i) for i, j in ring]
    across = [(0, 2), (0, 3), (1, 3), (1, 4), (2, 4)]  # one way only: no one is closer by it
    network = cb.Network.from_edges([*ring, *back, *across], directed=True)
    row = inspect_network(network, ttls=[1]).rows[0]
    assert (row.cliques, row.independent, row.most_independent) == (3, 2, 2)
    caller = cb.Network.from_edges([(0, v) for v in range(1, 6)], directed=True)
    row = inspect_network(caller, ttls=[1]).rows[0]
    sizes = [len(caller.neighbourhood(v, 1)) for v in range(6)]
    assert row.largest_neighbourhood == max(sizes) == 2
    assert row.mean_neighbourhood == pytest.approx(np.mean(sizes))


def test_the_diameter_is_that_of_the_largest_part():
    network = cb.Network.from_edges([(0, 1), (2, 3), (3, 4), (4, 5)])
    assert inspect_network(network).diameter == 3


def test_an_interval_gives_the_factor_of_its_upper_end(monkeypatch):
    def vague(adjacency, weights):
        return np.array([0]), len(adjacency)

    monkeypatch.setattr("coopbandits.theory.network_numbers.bounded_independent_set", vague)
    ring = cb.Network.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
    row = inspect_network(ring, ttls=[1]).rows[0]
    # the centres are two who do not hear each other; three cliques leave room for three at most
    assert (row.independent, row.most_independent) == (2, 3)
    assert (row.dist.best_factor, row.dist.factor) == pytest.approx(
        [(2 / 5) ** 0.5, (3 / 5) ** 0.5]
    )
    assert (row.eager.best_factor, row.eager.factor) == pytest.approx(
        [(3 / 5) ** 0.5, (4 / 5) ** 0.5]
    )


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_the_facts_are_those_of_networkx(network):
    import networkx  # noqa: PLC0415

    graph, inspection = network.to_networkx(), inspect_network(network)
    edges_only = graph.to_undirected()
    parts = sorted(networkx.connected_components(edges_only), key=len, reverse=True)
    lengths = {
        (i, j): d
        for i, row in networkx.all_pairs_shortest_path_length(graph)
        for j, d in row.items()
        if i != j
    }
    inside = [lengths[pair] for pair in lengths if set(pair) <= parts[0]]
    assert inspection.agents == graph.number_of_nodes()
    assert inspection.edges == graph.number_of_edges()
    assert inspection.components == len(parts)
    assert inspection.diameter == max(inside)
    assert inspection.mean_distance == pytest.approx(np.mean(list(lengths.values())))
    degrees = [d for _, d in (graph.out_degree if network.directed else graph.degree)]
    assert inspection.mean_degree == pytest.approx(np.mean(degrees))
    assert inspection.max_degree == max(degrees)


@pytest.mark.parametrize("agents", [2, 3, 7, 8, 9, 80])
def test_the_default_values_run_from_one_to_the_diameter_by_way_of_its_half(agents):
    ttls = [row.ttl for row in inspect_network(cb.Network.path(agents)).rows]
    assert ttls == sorted(set(ttls))
    assert (ttls[0], ttls[-1]) == (1, agents - 1)
    assert max(1, (agents - 1) // 2) in ttls
    assert len(ttls) <= 6


def test_the_hint_is_the_smallest_near_the_best():
    for network in NETWORKS.values():
        inspection = inspect_network(network)
        best = min(row.coop.factor for row in inspection.rows)
        for row in inspection.rows:
            near = row.coop.factor <= 1.1 * best
            assert not (near and row.ttl < inspection.near_ttl)
            assert near or row.ttl != inspection.near_ttl


def test_named_values_are_taken_once_each_and_bad_ones_refused():
    network = cb.Network.path(5)
    assert [row.ttl for row in inspect_network(network, ttls=[3, 1, 3]).rows] == [1, 3]
    with pytest.raises(ParameterError, match="a ttl must be a whole number >= 1, got 0"):
        inspect_network(network, ttls=[0])
    with pytest.raises(ParameterError, match="ttls names no γ"):
        inspect_network(network, ttls=[])
    with pytest.raises(ParameterError, match="ttls must be whole numbers such as"):
        inspect_network(network, ttls=3)
    with pytest.raises(ParameterError, match="dim must be a whole number >= 1"):
        inspect_network(network, dim=0)
    with pytest.raises(ParameterError, match="attached must be a whole number >= 0"):
        inspect_network(network, attached=-1)
    with pytest.raises(ParameterError, match=r"expected a coopbandits\.Network"):
        inspect_network(np.eye(3))


def colours(figure):
    """The face colour of each drawn agent's dot, one list entry for each."""
    dots = [c for c in figure.axes[0].collections if hasattr(c, "get_sizes")]
    return [tuple(dot.get_facecolor()[0]) for dot in dots for _ in dot.get_offsets()]


def test_the_picture_shows_all_agents_by_clique_and_both_curves():
    inspection = inspect_network(cb.Network.grid(3, 4))
    figure = planner_figure(inspection, ttl=2, title="a grid")
    network, factors, messages = figure.axes
    cliques = cb.Network.grid(3, 4).clique_cover(2).cliques
    assert len(colours(figure)) == 12
    assert len(set(colours(figure))) == len(cliques)
    assert f"{len(cliques)} cliques" in network.get_title()
    assert "a grid: " in figure.get_suptitle()
    ttls = [row.ttl for row in inspection.rows]
    drawn = {line.get_label(): line for line in factors.get_lines()}
    for label, name in [("Coop", "coop"), ("Eager (conjecture)", "eager")]:
        assert drawn[label].get_xdata().tolist() == ttls
        expected = [getattr(row, name).factor for row in inspection.rows]
        assert drawn[label].get_ydata() == pytest.approx(expected)
    assert [row.coop.messages for row in inspection.rows] in [
        list(line.get_ydata()) for line in messages.get_lines()
    ]


def test_agents_stand_as_far_apart_as_in_the_network():
    figure = planner_figure(inspect_network(cb.Network.path(6), ttls=[9]), ttl=9)
    (dots,) = [c for c in figure.axes[0].collections if hasattr(c, "get_sizes")]
    at = np.asarray(dots.get_offsets())
    gaps = [np.linalg.norm(at[i] - at[j]) / abs(i - j) for i, j in combinations(range(6), 2)]
    assert max(gaps) < 1.05 * min(gaps)


def test_parts_do_not_overlap_and_who_is_alone_is_white():
    network = cb.Network.from_edges([(0, 1), (1, 2), (3, 4)], agents=7)
    figure = planner_figure(inspect_network(network, ttls=[2]))
    assert colours(figure).count((1.0, 1.0, 1.0, 1.0)) == 2
    assert "white: 2 alone" in notes(figure)
    places = [
        np.asarray(c.get_offsets()) for c in figure.axes[0].collections if hasattr(c, "get_sizes")
    ]
    for one, other in combinations(places, 2):  # beside, or below: their boxes do not meet
        beside = one.max(axis=0) < other.min(axis=0)
        assert (beside | (other.max(axis=0) < one.min(axis=0))).any()


def discs(figure):
    """What the disc of each clique says of its size, in order of its area."""
    [drawn] = [c for c in figure.axes[0].collections if hasattr(c, "get_sizes")]
    return np.asarray(drawn.get_sizes()), np.asarray(drawn.get_facecolor())


def notes(figure):
    return "\n".join(text.get_text() for text in figure.axes[0].texts)


def test_above_a_hundred_agents_cliques_are_drawn_and_no_agents():
    network = cb.Network.from_edges(
        [(6 * k + i, 6 * k + j) for k in range(20) for i, j in combinations(range(6), 2)]
        + [(6 * k, 6 * k + 6) for k in range(19)]
    )
    figure = planner_figure(inspect_network(network, ttls=[1]))
    areas, _ = discs(figure)
    assert len(areas) == len(network.clique_cover(1).cliques) == 20
    [lines] = [c for c in figure.axes[0].collections if not hasattr(c, "get_sizes")]
    assert len(lines.get_paths()) == 19  # as cliques are joined, and no line within one
    assert "a disc is a clique" in notes(figure)
    assert "largest cliques" not in notes(figure)


@pytest.mark.slow
def test_discs_are_as_large_as_cliques_have_agents_and_the_largest_are_drawn():
    network = cb.Network.erdos_renyi(300, 0.05, seed=0)
    figure = planner_figure(inspect_network(network, ttls=[1]), ttl=1)
    sizes = np.array([len(clique) for clique in network.clique_cover(1).cliques])
    areas, faces = discs(figure)
    assert len(areas) == MOST_DISCS < len(sizes)
    assert len(np.unique(faces, axis=0)) > 3
    largest = np.sort(sizes)[::-1][:MOST_DISCS]
    np.testing.assert_allclose(np.sort(areas)[::-1] / largest, areas.max() / largest[0])
    said = f"the {MOST_DISCS} largest cliques are drawn, {largest.sum()} of 300 agents"
    assert said in notes(figure)
    assert f"the {MOST_LINES} strongest of each" in notes(figure)


def test_edges_between_groups_are_counted():
    network = cb.Network.from_edges([(0, 1), (0, 2), (1, 2), (1, 3), (3, 4)], agents=6)
    pairs, edges = between(network, np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 2]))
    assert dict(zip(map(tuple, pairs.tolist()), edges.tolist(), strict=True)) == {
        (0, 1): 3, (1, 2): 1,
    }  # fmt: skip
    alone = between(cb.Network.from_edges([], agents=2), np.array([0, 1]), np.array([0, 1]))
    assert [part.shape for part in alone] == [(0, 2), (0,)]


@pytest.mark.parametrize("ttls", [[1, 2, 3], [*range(1, 60)], [1, 2, 59]], ids=str)
def test_the_numbers_of_the_axes_do_not_touch(ttls):
    figure = planner_figure(inspect_network(cb.Network.path(61), ttls=ttls), ttl=2)
    figure.canvas.draw()
    below = [text for text in figure.axes[2].get_xticklabels() if text.get_text()]
    beside = [text for text in figure.axes[2].get_yticklabels() if text.get_text()]
    assert below[-1].get_text() == str(ttls[-1])
    for one, other in [*pairwise(below), *pairwise(beside)]:
        assert not one.get_window_extent().overlaps(other.get_window_extent())


def test_the_same_network_gives_the_same_bytes(tmp_path):
    inspection = inspect_network(NETWORKS["directed"])
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        planner_figure(inspection, file=file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size > 10_000


def test_other_files_than_pictures_are_refused():
    inspection = inspect_network(cb.Network.path(2))
    with pytest.raises(
        ParameterError, match=r"plan\.txt is no picture; its name must end in \.png"
    ):
        planner_figure(inspection, file="plan.txt")
    with pytest.raises(ParameterError, match="ttl must be a whole number >= 1"):
        planner_figure(inspection, ttl=0)


@pytest.mark.slow
def test_a_real_network_of_thousands_is_inspected():
    inspection = inspect_network(ego_facebook(), ttls=[1, 2, 3])
    assert (inspection.agents, inspection.edges, inspection.diameter) == (4039, 88234, 8)
    for row in inspection.rows:
        assert row.independent <= row.most_independent <= row.cliques
        assert row.fewest_cliques <= row.cliques
        assert row.centres <= row.independent
    assert len(colours(planner_figure(inspection))) == inspection.rows[2].cliques  # γ = 3
    assert len(colours(planner_figure(inspection, ttl=1))) == MOST_DISCS
