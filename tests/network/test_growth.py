"""Networks that grow out of others: numbers stay, cliques stay, and history is known."""

import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

import coopbandits as cb
from coopbandits.errors import NetworkError, ParameterError

NAMED = cb.Network.from_edges([("a", "b"), ("b", "c")])


def test_newcomers_get_the_next_numbers():
    larger = NAMED.with_agents(["z", "k"], [("k", "a")])
    assert larger.names == ("a", "b", "c", "z", "k")
    assert larger.edges == ((0, 1), (0, 4), (1, 2))
    assert cb.Network.path(3).with_agents(2, [(3, 4)]).edges == ((0, 1), (1, 2), (3, 4))
    assert NAMED.with_agents("z").names == ("a", "b", "c", "z")
    assert NAMED.edges == ((0, 1), (1, 2)), "what was stays as it was"


def test_a_leavers_number_stays_its_own():
    smaller = NAMED.without("b")
    assert (len(smaller), smaller.left, smaller.edges) == (3, (1,), ())
    assert smaller.whole == NAMED
    assert "1 left" in repr(smaller)
    assert smaller.with_agents("d").index("d") == 3


def test_all_that_ever_was_is_known():
    network = NAMED.with_edges([("a", "c")]).without_edges([("a", "b")]).without("c")
    assert network.edges == ()
    assert network.whole.edges == ((0, 1), (0, 2), (1, 2))
    assert NAMED.fingerprint in network.ancestors
    assert len(network.ancestors) == 3
    back = network.with_agents("c", [("c", "a"), ("b", "c")]).with_edges([("b", "a")])
    assert back.left == ()
    assert back.whole == back, "all of it is there again"


def test_a_history_makes_another_network():
    grown = NAMED.with_agents("d", [("c", "d")])
    fresh = cb.Network.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    assert grown != fresh
    assert grown.edges == fresh.edges
    assert grown.fingerprint != fresh.fingerprint


def test_a_long_history_can_be_sent_to_another_process():
    network = cb.Network.path(3)
    for _ in range(600):
        network = network.with_agents(1, [(0, len(network))])
    network = network.without(5)
    back = pickle.loads(pickle.dumps(network))
    assert back == network
    assert back.ancestors == network.ancestors
    np.testing.assert_array_equal(back.clique_cover(1).labels, network.clique_cover(1).labels)
    assert back.centres(1).of.tolist() == network.centres(1).of.tolist()


@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
def test_cliques_and_centres_stay_and_newcomers_join_what_fits(seed, ttl, directed):
    rng = np.random.default_rng(seed)
    V, more = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    arcs = [(i, j) for i in range(V) for j in range(V) if i != j and (directed or i < j)]
    kept = [arc for arc in arcs if rng.random() < 0.4]
    network = cb.Network.from_edges(kept, agents=V, directed=directed)
    cover, centres = network.clique_cover(ttl), network.centres(ttl)
    pairs = [(v, int(rng.integers(v))) for v in range(V, V + more)]
    ways = pairs + [(j, i) for i, j in pairs] if directed else pairs
    grown = network.with_agents(more, ways)
    after, later = grown.clique_cover(ttl), grown.centres(ttl)
    mutual = grown.distances <= ttl
    mutual &= mutual.T
    for clique in after.cliques:
        assert mutual[np.ix_(clique, clique)].all(), "a clique is one"
    together = cover.labels[:, None] == cover.labels
    np.testing.assert_array_equal(after.labels[:V, None] == after.labels[:V], together)
    for v in range(V, V + more):
        earlier = [[u for u in clique if u < v] for clique in after.cliques]
        fits = [clique for clique in earlier if clique and mutual[v, clique].all()]
        if min(after.cliques[after.labels[v]]) == v:
            assert not fits, "it is its own only where none fits"
    assert after.lower_bound <= len(
        cb.Network.from_edges(grown.edges, agents=V + more, directed=directed)
        .clique_cover(ttl)
        .cliques
    )
    assert set(centres.indices.tolist()) <= set(later.indices.tolist())
    np.testing.assert_array_equal(later.of[:V], centres.of)
    for v in range(V, V + more):
        assert later.of[v] == v or mutual[v, later.of[v]]
        heard = [c for c in centres.indices if mutual[v, c]]
        assert not heard or later.of[v] != v


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda: NAMED.with_agents("b"), "the name 'b' is given twice"),
        (lambda: NAMED.with_agents(["d", "d"]), "the name 'd' is given twice"),
        (lambda: NAMED.with_agents(2), "have names; name the newcomers, got 2"),
        (lambda: NAMED.with_agents([""]), "no name of an agent"),
        (lambda: cb.Network.path(2).with_agents("x"), "have no names.*say how many there are"),
        (lambda: cb.Network.path(2).with_agents(0), "agents must be a whole number >= 1"),
        (lambda: NAMED.with_agents("d", [("d", "x")]), "agent 'x' is not in this network"),
        (lambda: NAMED.with_agents("d", [("d", "d")]), "agent 'd' has an edge to itself"),
        (lambda: NAMED.with_edges([("a", "b")]), r"edge \('a', 'b'\) is there already"),
        (lambda: NAMED.with_edges([("a", "c"), ("c", "a")]), "is given 2 times"),
        (lambda: NAMED.with_edges([("a", 7)]), "agent 7 is not in this network"),
        (lambda: NAMED.without_edges([("a", "c")]), r"no edge \('a', 'c'\) to take away"),
        (lambda: NAMED.without("x"), "agent 'x' is not in this network"),
        (lambda: NAMED.without("a").without("a"), "agent 'a' has left this network already"),
        (lambda: NAMED.without("a", "b", "c"), "nobody would be left"),
        (lambda: NAMED.without("a").with_edges([("a", "c")]), "agent 'a', who has left"),
    ],
)  # fmt: skip
def test_changes_that_make_no_network_are_refused(change, complaint):
    with pytest.raises((NetworkError, ParameterError), match=complaint):
        change()


def test_a_network_from_which_somebody_left_is_played_by_schedule():
    problem = cb.problems.clustered_linear(NAMED.without("b"), clusters=[0, 0, 1], dim=2)
    with pytest.raises(ParameterError, match=r"agent 'b' has left.*play on network\.whole.*links="):
        cb.play(problem, cb.LinUCB(), rounds=2)


def test_newcomers_in_a_set_are_numbered_in_order_and_what_is_no_name_is_refused():
    assert NAMED.with_agents({"z", "k", "y"}).names[3:] == ("k", "y", "z")
    for wrong in (None, 2.5, True, object(), b"x"):
        with pytest.raises(NetworkError, match="no name of an agent"):
            NAMED.with_agents(wrong)


def test_a_network_that_was_sent_is_read_only_too():
    for network in (NAMED, NAMED.without("a")):
        back = pickle.loads(pickle.dumps(network))
        for rows in (back.arcs, back.whole.arcs):
            assert not rows.agents.flags.writeable
            assert not rows.starts.flags.writeable
        assert not any(part.flags.writeable for part in back.components)


def test_newcomers_join_and_follow_those_who_are_there():
    network = cb.Network.from_edges([("c", "x"), ("c", "y"), ("c", "z")])
    assert network.centres(2).indices.tolist() == [0]
    later = network.without("c").with_edges([("x", "y"), ("y", "z")]).with_agents("n", [("n", "x")])
    assert later.centres(2).of[later.index("n")] == later.index("n"), "nobody follows who has left"
    gone = [("g", "h"), ("g", "i"), ("h", "i")]
    both = cb.Network.from_edges([*gone, ("a", "b")])
    left = both.without("g", "h", "i")
    grown = left.with_agents("n", [("n", "a"), ("n", "b")])
    labels = grown.clique_cover(1).labels
    assert labels[grown.index("n")] == labels[grown.index("a")]
    back = pickle.loads(pickle.dumps(grown))
    assert back == grown
    np.testing.assert_array_equal(back.clique_cover(1).labels, labels)
