import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

import coopbandits as cb
from coopbandits.errors import ParameterError, RemoteProtocolError
from coopbandits.network.lags import transmissions
from coopbandits.protocol import Observation
from coopbandits.protocol.messages import Message, Relay, message_size
from coopbandits.protocol.seen_rounds import WINDOW
from worlds import NETWORKS


def message(**changes):
    facts = {"round": 3, "origin": 2, "context": np.array([0.5, -1.0]), "reward": 0.25, "ttl": 2}
    return Message(**{**facts, **changes})


def forged(round=3, origin=2, ttl=2, context=(0.5, -1.0), reward=0.25, attached=()):
    sizes = len(context), len(attached)
    head = struct.pack("<3sBQIIHH", b"CBm", 2, round, origin, ttl, *sizes)
    return head + struct.pack(f"<{sum(sizes) + 1}d", *context, *attached, reward)


def test_the_layout_is_the_documented_one():
    assert forged() == message().to_bytes()
    attached = (7.0, 8.0, 9.0)
    data = message(attached=np.array(attached)).to_bytes()
    assert data == forged(attached=attached)
    assert len(data) == message_size(2, 3) == 24 + 8 * 6
    np.testing.assert_array_equal(Message.from_bytes(data).attached, attached)


def test_a_message_that_no_peer_would_take_is_not_encoded():
    with pytest.raises(RemoteProtocolError, match="cannot carry 70000 and 0 numbers"):
        message(context=np.ones(70_000)).to_bytes()
    for changes in ({"ttl": 0}, {"round": "x"}, {"context": np.ones((1, 2))}, {"reward": np.nan}):
        with pytest.raises(RemoteProtocolError, match="a message was refused"):
            message(**changes).to_bytes()


def test_what_is_not_even_bytes_is_the_callers_fault():
    with pytest.raises(ParameterError, match="expected bytes, got None"):
        Message.from_bytes(None)


def test_bytes_give_the_message_back():
    data = message(reward=0.1 + 0.2).to_bytes()
    back = Message.from_bytes(data)
    assert (back.round, back.origin, back.reward, back.ttl) == (3, 2, 0.1 + 0.2, 2)
    np.testing.assert_array_equal(back.context, [0.5, -1.0])
    assert back.to_bytes() == data
    assert len(data) == message_size(2)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no message"),
        (b"hello, this is some other protocol", "no message"),
        (message().to_bytes()[:-1], "47 bytes; 48 are expected"),
        (message().to_bytes() + b"x", "49 bytes; 48 are expected"),
        (b"CBm\x09" + message().to_bytes()[4:], "version 9"),
        (message().to_bytes()[:-8] + struct.pack("<d", np.nan), "reward must be finite"),
        (forged(context=(np.inf, 0.0)), "context must be finite"),
        (forged(context=(1e60, 0.0)), "context must lie within"),
        (forged(context=()), "expected .d,."),
        (forged(round=0), "round must be a whole number >= 1"),
        (forged(round=2**63), "round must be at most"),
        (forged(ttl=0), "ttl must be a whole number >= 1"),
    ],
)
def test_bytes_that_are_no_message_are_a_peers_fault(data, complaint):
    with pytest.raises(RemoteProtocolError, match=complaint):
        Message.from_bytes(data)


def test_the_first_version_is_still_read():
    # written by version 1: round 7, origin 1, ttl 3, context (1.5, -2), reward 0.125
    stored = bytes.fromhex(
        "43426d01" "0700000000000000" "01000000" "03000000" "02000000"
        "000000000000f83f" "00000000000000c0" "000000000000c03f"
    )  # fmt: skip
    back = Message.from_bytes(stored)
    assert (back.round, back.origin, back.ttl, back.reward) == (7, 1, 3, 0.125)
    np.testing.assert_array_equal(back.context, [1.5, -2.0])


def test_news_counts_once_and_is_handed_on_with_one_hop_less():
    relay = Relay(0, agents=5, ttl=3)
    is_news, onward = relay.accept(message(ttl=3))
    assert is_news
    assert [m.ttl for m in onward] == [2]
    assert relay.accept(message(ttl=3)) == (False, [])
    assert relay.accept(message(ttl=1)) == (False, [])


def test_a_later_copy_with_more_hops_left_is_handed_on_again_but_is_no_news():
    relay = Relay(0, agents=5, ttl=3)
    assert relay.accept(message(ttl=1)) == (True, [])
    is_news, onward = relay.accept(message(ttl=3))
    assert not is_news
    assert [m.ttl for m in onward] == [2]


def test_the_last_hop_ends_here():
    relay = Relay(0, agents=5, ttl=3)
    assert relay.accept(message(ttl=1)) == (True, [])


def test_my_own_news_comes_back_and_ends_here():
    relay = Relay(2, agents=5, ttl=3)
    relay.send(Observation(2, 3, np.zeros(2), 1.0))
    returned = message(origin=2, ttl=2)
    assert relay.accept(relay.check(returned)) == (False, [])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"origin": 5}, r"agent 5 as its origin.*0 … 4"),
        ({"origin": -1}, "origin must be a whole number"),
        ({"origin": "x"}, "origin must be a whole number"),
        ({"ttl": 4}, "4 hops left.*start with 3"),
        ({"ttl": 0}, "ttl must be a whole number"),
        ({"ttl": 1.5}, "ttl must be a whole number"),
        ({"round": 0}, "round must be a whole number"),
        ({"round": 2**70}, "round must be at most"),
        ({"context": [np.nan, 1.0]}, "context must be finite"),
        ({"context": [[1.0, 1.0]]}, "shape"),
        ({"context": "x"}, "array of numbers"),
        ({"reward": np.inf}, "reward must be finite"),
        ({"reward": None}, "reward must be a number"),
        ({"origin": 0}, "bears the name of agent 0"),
    ],
    ids=str,
)
def test_what_the_protocol_does_not_allow_is_a_peers_fault(changes, complaint):
    relay = Relay(0, agents=5, ttl=3)
    with pytest.raises(RemoteProtocolError, match=complaint):
        relay.check(message(**changes))
    assert relay.rounds == {}


def test_lags_are_distances_towards_the_listener_and_one_for_oneself():
    network = cb.Network.from_edges([(0, 1), (1, 2), (2, 0)], directed=True)
    # news of 0 reaches 1 in one step and 2 in two
    np.testing.assert_array_equal(network.lags(2).dense(), [[1, 2, 1], [1, 1, 2], [2, 1, 1]])
    np.testing.assert_array_equal(
        network.lags(1).dense(), [[1, np.inf, 1], [1, 1, np.inf], [np.inf, 1, 1]]
    )


def flood(network, ttl, rounds):
    """Drive relays by hand: arrivals[(origin, round, receiver)] = rounds, and traffic per round."""
    relays = [Relay(v, agents=len(network), ttl=ttl) for v in range(len(network))]
    held, arrivals, traffic = [], {}, []
    for t in range(1, rounds + 1):
        flying, held = held, []
        for v, relay in enumerate(relays):
            news = relay.send(Observation(v, t, np.zeros(1), 0.0))
            flying += [(int(to), news) for to in network.neighbours(v)]
        traffic.append(len(flying))
        for to, copy in flying:
            is_news, onward = relays[to].accept(relays[to].check(copy))
            if is_news:
                arrivals.setdefault((copy.origin, copy.round, to), []).append(t)
            held += [(int(next_), m) for m in onward for next_ in network.neighbours(to)]
    return arrivals, traffic


@st.composite
def graphs(draw):
    agents = draw(st.integers(1, 9))
    directed = draw(st.booleans())
    pairs = [(i, j) for i in range(agents) for j in range(agents) if i != j]
    if not directed:
        pairs = [(i, j) for i, j in pairs if i < j]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return cb.Network.from_edges(edges, agents=agents, directed=directed)


@given(network=graphs(), ttl=st.integers(1, 4))
def test_message_passing_is_the_lag_matrix(network, ttl):
    rounds = 6
    arrivals, traffic = flood(network, ttl, rounds)
    lag = network.lags(ttl).dense()
    expected = {
        (origin, t, v): [t + int(lag[v, origin]) - 1]
        for origin in range(len(network))
        for v in range(len(network))
        for t in range(1, rounds + 1)
        if origin != v and t + lag[v, origin] - 1 <= rounds
    }
    # nothing outlives γ, nothing arrives twice, all that is within γ arrives, on time
    assert arrivals == expected
    np.testing.assert_array_equal(traffic, transmissions(network, ttl, rounds))


@pytest.mark.parametrize("name", NETWORKS)
def test_message_passing_is_the_lag_matrix_on_the_shared_networks(name):
    network = NETWORKS[name]
    for ttl in (1, 2, 3):
        _, traffic = flood(network, ttl, 5)
        np.testing.assert_array_equal(traffic, transmissions(network, ttl, 5))


def test_a_network_of_one_agent_sends_nothing():
    assert transmissions(cb.Network.path(1), 3, 4).tolist() == [0, 0, 0, 0]


class Unsettled:
    """The same protocol with one entry for every message ever seen."""

    def __init__(self):
        self.hops = {}

    def accept(self, origin, round_, ttl):
        before = self.hops.get((origin, round_), 0)
        self.hops[origin, round_] = max(before, ttl)
        return ttl > before, ttl > before and before == 0


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 8), st.integers(1, 3)), max_size=60),
    st.integers(1, 3),
)
def test_a_relay_forgets_nothing_when_it_settles_rounds(mails, ttl):
    relay, plain = Relay(3, agents=4, ttl=ttl), Unsettled()
    for origin, round_, most in mails:
        hops = min(most, ttl)
        taken, is_news = plain.accept(origin, round_, hops)
        news, onward = relay.accept(message(origin=origin, round=round_, ttl=hops))
        assert news == is_news
        assert bool(onward) == (taken and hops > 1)


def runs(relay, origin):
    seen = relay.rounds[origin]
    return list(zip(seen.firsts, seen.lasts, strict=True))


def test_rounds_without_a_gap_take_two_numbers_together():
    relay = Relay(3, agents=4, ttl=2)
    for round_ in (1, 2, 4, 5):
        relay.accept(message(origin=0, round=round_, ttl=2))
    relay.accept(message(origin=1, round=1, ttl=1))  # a copy with more hops may still come
    assert runs(relay, 0) == [(1, 2), (4, 5)]
    assert relay.rounds[0].hops == {}
    assert relay.rounds[1].hops == {1: 1}
    relay.accept(message(origin=0, round=3, ttl=2))
    assert runs(relay, 0) == [(1, 5)]
    for round_ in range(1, 50):
        relay.send(Observation(3, round_, np.zeros(2), 0.0))
    assert runs(relay, 3) == [(1, 49)]


def test_from_far_away_a_copy_with_as_many_hops_as_can_be_left_takes_no_more_memory():
    relay = Relay(3, agents=4, ttl=3, most={0: 1, 1: 2})
    for round_ in range(1, 2000):
        assert relay.accept(message(origin=0, round=round_, ttl=1)) == (True, [])
        assert relay.accept(message(origin=1, round=round_, ttl=2))[0]
    assert runs(relay, 0) == runs(relay, 1) == [(1, 1999)]
    assert relay.rounds[0].hops == relay.rounds[1].hops == {}
    # a way that is shorter than it was known to be is still used, once
    again = message(origin=0, round=7, ttl=3)
    assert [one.ttl for one in relay.accept(again)[1]] == [2]
    assert relay.accept(again) == (False, [])


def test_rounds_with_gaps_take_bounded_memory_and_the_oldest_count_as_seen():
    relay = Relay(3, agents=4, ttl=2)
    for round_ in range(2, 2 * WINDOW + 200, 2):  # every other round never comes
        assert relay.accept(message(origin=0, round=round_, ttl=1))[0]
    seen = relay.rounds[0]
    assert len(seen.firsts) == len(seen.hops) == WINDOW
    oldest = seen.firsts[0]
    assert seen.settled == oldest - 2
    assert relay.accept(message(origin=0, round=oldest - 3, ttl=2)) == (False, [])  # too late
    assert relay.accept(message(origin=0, round=oldest - 1, ttl=2))[0]
    assert relay.accept(message(origin=1, round=1, ttl=2))[0]  # others are not concerned
