"""Agents by name: whatever takes an agent takes its name, and numbers keep working."""

import networkx as nx
import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import NetworkError

CITIES = cb.Network.from_edges(
    [("Rome", "Oslo"), ("Oslo", "Bern")], names=["Rome", "Oslo", "Bern", "Kyiv"]
)
POLICY = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=cb.similarity.Same(), ttl=2)


def test_a_graphs_labels_become_names_in_their_order_not_in_that_of_insertion():
    graph = nx.Graph([("west", "east"), ("north", "west")])
    network = cb.Network.from_networkx(graph)
    assert network.names == ("east", "north", "west")
    assert network.edges == ((0, 2), (1, 2))
    assert nx.utils.graphs_equal(network.to_networkx(), graph)


def test_labels_that_are_numbers_are_ordered_by_size_and_become_texts():
    network = cb.Network.from_networkx(nx.DiGraph([(100, 20), (20, 3)]))
    assert network.names == ("3", "20", "100")
    assert network.edges == ((1, 0), (2, 1))
    assert network.index("100") == 2
    # a whole number is always a number
    assert network.index(1) == 1
    with pytest.raises(NetworkError, match="the agent named '100' is asked for by that text"):
        network.index(100)


def test_numbers_are_names_where_there_are_no_others():
    network = cb.Network.path(3)
    assert network.names == ("0", "1", "2")
    assert not network.is_named
    assert network.index("2") == 2
    assert network.called(2) == "2"
    with pytest.raises(
        NetworkError, match="agent '7' is not in this network; its agents are 0 … 2"
    ):
        network.index("7")


def test_names_without_an_order_are_sorted():
    network = cb.Network.from_edges([("b", "c"), ("b", "a")])
    assert network.names == ("a", "b", "c")
    assert network == cb.Network.from_edges([(1, 2), (0, 1)], names=["a", "b", "c"])
    assert network != cb.Network.from_edges([(1, 2), (0, 1)])


@pytest.mark.parametrize("agent", ["Oslo", 1, np.int64(1)])
def test_every_call_takes_a_name_or_a_number(agent):
    assert CITIES.index(agent) == 1
    assert CITIES.neighbours(agent).tolist() == [0, 2]
    assert CITIES.neighbourhood(agent, 1).tolist() == [0, 1, 2]
    assert CITIES.distances_from([agent]).tolist() == [[1, 0, 1, np.inf]]
    made = POLICY.agent(agent, CITIES, seed=3)
    assert (made.agent, made.name) == (1, "Oslo")
    assert "'Oslo'" in repr(made)
    problem = cb.problems.clustered_linear(CITIES, dim=2, clusters=[0, 0, 1, 1])
    run = cb.play(problem, POLICY, rounds=4, links=cb.Links(away={agent: (2, 3)}))
    np.testing.assert_array_equal(run.regret_of(agent), run.regret[:, 1])
    assert run.away[:, 1].tolist() == [False, True, True, False]


def test_links_and_labels_go_by_name():
    problem = cb.problems.clustered_linear(
        CITIES, dim=2, clusters={"Rome": "warm", "Oslo": "cold", "Bern": "cold", "Kyiv": "cold"}
    )
    np.testing.assert_array_equal(
        problem.similarity.matrix(CITIES)[0], [1, 0, 0, 0], "Rome is alone"
    )
    down = {("Oslo", "Rome"): (1, None)}
    by_name = cb.play(problem, POLICY, rounds=5, links=cb.Links(down=down))
    by_number = cb.play(problem, POLICY, rounds=5, links=cb.Links(down={(0, 1): (1, None)}))
    np.testing.assert_array_equal(by_name.actions, by_number.actions)
    assert by_name.lost.sum() > 0
    with pytest.raises(NetworkError, match=r"\('Oslo', 'Kyiv'\), which is no link"):
        cb.play(problem, POLICY, rounds=1, links=cb.Links(down={("Oslo", "Kyiv"): (1, 2)}))


def test_an_unknown_name_is_answered_with_the_known_ones_and_the_nearest():
    for ask in (CITIES.index, CITIES.neighbours, lambda name: POLICY.agent(name, CITIES)):
        with pytest.raises(
            NetworkError, match=r"'Olso' is not.*'Rome', 'Oslo', .*did you mean 'Oslo'\?"
        ):
            ask("Olso")
    for stranger in (None, 1.5, True, ("Oslo",), 4, -1):
        with pytest.raises(NetworkError, match="is not in this network"):
            CITIES.index(stranger)


def test_names_are_part_of_a_network():
    plain = cb.Network(CITIES.adjacency)
    assert plain != CITIES
    assert plain.fingerprint != CITIES.fingerprint
    assert CITIES.power(2).names == CITIES.names


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: cb.Network.from_edges([], names=["a", "a"]), "the name 'a' is given twice"),
        (lambda: cb.Network.from_edges([], names=["1", 1]), "the name '1' is given twice"),
        (lambda: cb.Network.from_edges([], names=["a", ""]), "'' is no name of an agent"),
        (lambda: cb.Network.from_edges([], names=["a", None]), "None is no name of an agent"),
        (lambda: cb.Network.from_edges([], names="ab"), "no name of an agent"),
        (lambda: cb.Network.from_edges([], names=[]), "at least one agent"),
        (lambda: cb.Network.from_edges([], 3, names=["a"]), "agents=3, but there are 1 names"),
        (lambda: cb.Network.from_edges([("a", "x")], names=["a", "b"]), "agent 'x' is not in"),
        (lambda: cb.Network.from_edges([(0, 2)], names=["a", "b"]), "an edge names agent 2"),
        (lambda: cb.Network(np.zeros((2, 2), bool), names=["a"]), "1 names for 2 agents"),
    ],
)
def test_names_that_are_none_are_refused(make, complaint):
    with pytest.raises(NetworkError, match=complaint):
        make()


class TestTables:
    """Any table whose columns are asked for by name."""

    @pytest.fixture(params=["dict", "pandas", "polars", "arrow"])
    def table(self, request):
        def make(columns):
            if request.param == "dict":
                return columns
            library = pytest.importorskip({"arrow": "pyarrow"}.get(request.param, request.param))
            return (
                library.table(columns) if request.param == "arrow" else library.DataFrame(columns)
            )

        return make

    def test_an_edge_is_a_row(self, table):
        frame = table({"one": ["b", "c"], "km": [7, 9], "other": ["a", "b"]})
        network = cb.Network.from_frame(frame, "one", "other")
        assert network == cb.Network.from_edges([("a", "b"), ("b", "c")])
        arcs = cb.Network.from_frame(
            frame, "one", "other", directed=True, names=["c", "b", "a", "d"]
        )
        assert arcs.edges == ((0, 1), (1, 2))
        assert arcs.names == ("c", "b", "a", "d")

    def test_numbers_are_numbers_or_labels(self, table):
        plain = cb.Network.from_frame(table({"u": [2, 0], "v": [1, 1]}), "u", "v")
        assert plain == cb.Network.path(3)
        named = cb.Network.from_frame(table({"u": [70, 8], "v": [9, 9]}), "u", "v")
        assert (named.names, named.edges) == (("8", "9", "70"), ((0, 1), (1, 2)))

    def test_what_is_wrong_is_said_with_its_column_and_row(self, table):
        for columns, complaint in [
            ({"u": ["a", None], "v": ["b", "c"]}, "row 1 of the column 'u' has no value"),
            ({"u": [0.5, 1.5], "v": [1.0, 2.0]}, r"row 0 of the table has the edge \(0.5, 1.0\)"),
            ({"w": ["a"], "v": ["b"]}, r"'u' is no column of the table.* are \['w', 'v'\]"),
            ({"u": ["a", "b"], "v": ["b", "a"]}, r"edge \('a', 'b'\) is given 2 times"),
        ]:  # fmt: skip
            with pytest.raises(NetworkError, match=complaint):
                cb.Network.from_frame(table(columns), "u", "v")
