"""Replication of feeds: reach, order, copies, forks, and neighbours that say anything at all."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import coopbandits as cb
from coopbandits.fleet.core.actions import FORK, Arrived
from coopbandits.fleet.core.entries import Quarantined, Received
from coopbandits.fleet.core.wire import Base, Have, Proof, Take, Want, WantBase, decoded, encoded
from coopbandits.fleet.face import Reward
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.record import Feed
from coopbandits.protocol.messages import Observation
from fleet.driven import DIM, Driven, Wires, linear, path, settings_of


def fleet(network=None, **changes):
    network = network or path()
    wires = Wires([Driven(settings_of(name, network, **changes)) for name in network.names])
    wires.link_all()
    wires.settle()
    wires.pass_time(0.0)
    assert all(node.core.own.writing for node in wires.nodes.values())
    return wires


def said(wires, kind):
    found = [(source, target, decoded(data)) for source, target, data in wires.said]
    return [(s, t, message) for s, t, message in found if isinstance(message, kind)]


def distance(network, one, other):
    return network.distances_from([network.index(one)])[0][network.index(other)]


NETWORKS = {
    "path": path(),
    "cycle": cb.Network.from_edges([*zip("abcdef", "bcdefa", strict=True)], names=[*"abcdef"]),
    "star": cb.Network.from_edges([("a", other) for other in "bcd"], names=[*"abcd"]),
}


@pytest.mark.parametrize("ttl", [1, 2, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_records_reach_all_within_ttl_hops_and_nobody_else(name, ttl):
    network = NETWORKS[name]
    wires = fleet(network, policy=linear(ttl=ttl))
    for node in wires.nodes.values():
        node.play(3)
    for _ in range(ttl + 1):
        wires.pass_time(0.1)
    for node in wires.nodes.values():
        within = {o for o in network.names if distance(network, node.name, o) <= ttl}
        assert {origin for origin, _ in node.heads()} == within
        assert all(head.sequence == 3 for head in node.heads().values())
        assert not node.core.exchange.refused
    # nothing was ever offered or brought to whom it does not concern
    for source, target, message in said(wires, Have):
        assert {*message.heads, *message.bases} <= {
            o for o in network.names if distance(network, source, o) <= ttl - 1
        } | {target}
    for source, target, message in said(wires, Take):
        assert distance(network, source, message.origin) <= ttl - 1
        assert distance(network, target, message.origin) <= ttl
    # each record came to each node once
    for node in wires.nodes.values():
        received = [one for one in node.entries() if isinstance(one, Received)]
        places = [(one.origin, s) for one in received for s in range(one.first, one.last + 1)]
        assert len(places) == len(set(places)) == 3 * (len(node.heads()) - 1)


def test_equal_feeds_give_equal_sums_wherever_they_are_held():
    wires = fleet()
    for node in wires.nodes.values():
        node.play(230)
    for _ in range(4):
        wires.pass_time(0.1)
    everywhere = {}
    for node in wires.nodes.values():
        for feed, digest in node.sums().items():
            everywhere.setdefault(feed, set()).add(digest)
    assert len(everywhere) == 5
    assert all(len(found) == 1 for found in everywhere.values())


def test_what_is_not_offered_is_refused_when_it_is_asked_for():
    wires = fleet()
    for node in wires.nodes.values():
        node.play(2)
    for _ in range(4):
        wires.pass_time(0.1)
    c = wires.nodes["c"]
    [(epoch,)] = [[e for o, e in c.heads() if o == "a"]]
    before = len(c.served)
    for neighbour, origin, offered in (
        ("b", "a", False),  # two hops from c: c holds it and may not hand it on
        ("d", "a", False),
        ("d", "b", True),
        ("b", "nobody", False),
    ):
        c.notes.clear()
        refused = c.core.exchange.refused.get("want", 0)
        number = next((e for o, e in c.heads() if o == origin), epoch)
        c.handle(Arrived(neighbour, encoded(Want(origin, number, 0, 2))))
        assert c.core.exchange.refused.get("want", 0) == refused + (not offered)
        if not offered:
            [note] = c.noted("refused")
            assert f"{neighbour} asked for {origin}, who is not offered" in note["reason"]
    assert len(c.served) == before + 1
    c.outbox.clear()
    c.handle(Arrived("d", encoded(WantBase("a"))))
    assert not c.outbox


def test_who_is_no_neighbour_is_not_heard():
    wires = fleet()
    c = wires.nodes["c"]
    position = c.store.position
    c.handle(Arrived("a", encoded(Have({"a": [(1, 5, bytes(32))]}, {}, []))))
    c.handle(Arrived("nobody", b"noise"))
    assert (c.store.position, len(c.outbox), c.core.exchange.refused) == (position, 0, {})


def test_a_block_that_came_twice_or_late_is_applied_once():
    wires = fleet()
    a, b = wires.nodes["a"], wires.nodes["b"]
    a.play(3)
    wires.pass_time(0.1)
    a.play(2, seed=1)
    wires.pass_time(0.1)
    blocks = [m for s, t, m in said(wires, Take) if (s, t) == ("a", "b")]
    assert [one.first + k for one in blocks for k in range(len(one.records))] == [1, 2, 3, 4, 5]
    blocks.append(Take("a", a.core.epoch, 1, [data for one in blocks for data in one.records]))
    position, sums = b.store.position, b.sums()
    for block in [*blocks, *blocks[::-1]]:
        b.handle(Arrived("a", encoded(block)))
    assert (b.store.position, b.sums(), b.core.exchange.refused) == (position, sums, {})


def test_a_block_ahead_of_what_is_held_waits_until_it_is_asked_for_again():
    wires = fleet()
    a, b = wires.nodes["a"], wires.nodes["b"]
    a.play(5)
    records = a.store.records("a", a.core.epoch, 1, 5, 10**6)
    for first in (3, 2):
        b.handle(Arrived("a", encoded(Take("a", a.core.epoch, first, records[first - 1 :]))))
        assert ("a", a.core.epoch) not in b.heads()
    b.handle(Arrived("a", encoded(Take("a", a.core.epoch, 1, records[:2]))))
    b.handle(Arrived("a", encoded(Take("a", a.core.epoch, 3, records[2:]))))
    assert b.heads()["a", a.core.epoch] == a.heads()["a", a.core.epoch]


@settings(max_examples=15)
@given(st.randoms(use_true_random=False), st.sampled_from([0.0, 0.2, 0.5]))
def test_whatever_is_lost_doubled_or_reordered_all_hold_the_same_in_the_end(random, lost):
    wires = fleet(path("abc"), block_bytes=500)
    for number in range(4):
        for node in wires.nodes.values():
            node.play(2, seed=number)
        for node in wires.nodes.values():
            node.tick(6.0)
        for _ in range(3):
            sent = wires.collect()
            sent = [one for one in sent for _ in range(1 + (random.random() < lost))]
            random.shuffle(sent)
            for source, target, data in sent:
                if random.random() >= lost:
                    wires.nodes[target].handle(Arrived(source, data))
    for _ in range(6):
        wires.pass_time(11.0)
    held = [node.heads() for node in wires.nodes.values()]
    sums = [node.sums() for node in wires.nodes.values()]
    assert held[0] == held[1] == held[2]
    assert sums[0] == sums[1] == sums[2]
    assert {head.sequence for head in held[0].values()} == {8}
    assert not any(node.core.exchange.refused for node in wires.nodes.values())


def test_nothing_is_offered_or_served_before_it_is_synced():
    wires = fleet()
    a, b = wires.nodes["a"], wires.nodes["b"]
    a.play(2)
    wires.pass_time(0.1)
    a.holding = True
    made = [a.decide() for _ in range(2)]  # no answer yet
    assert made == [None, None]
    a.sync()
    events = [*a.core.events.known][-2:]
    a.holding = True
    for event in events:
        a.ask(Reward(event, 1.0))
    assert a.store.unsynced
    assert a.core.feeds.held("a", a.core.epoch).sequence == 4
    a.tick(20.0)
    a.handle(Arrived("b", encoded(Want("a", a.core.epoch, 0, 99))))
    a.handle(Arrived("b", encoded(Want("a", a.core.epoch, 2, 99))))
    assert [one.last for one in a.served[-1:]] == [2]
    for _, data in a.outbox:
        message = decoded(data)
        if isinstance(message, Have):
            assert [sequence for _, sequence, _ in message.heads.get("a", [])] in ([], [2])
    # a block of another's that is not synced is not handed on either
    a.sync()
    b.holding = True
    wires.settle()
    assert b.core.feeds.held("a", a.core.epoch).sequence == 4
    b.handle(Arrived("c", encoded(Want("a", a.core.epoch, 0, 99))))
    assert b.served[-1].last == 2
    b.sync()
    b.handle(Arrived("c", encoded(Want("a", a.core.epoch, 0, 99))))
    assert b.served[-1].last == 4


# Forks.

TRIANGLE = cb.Network.from_edges([("a", "b"), ("a", "c"), ("b", "c")], names=[*"abc"])


def copies(first, second, **changes):
    """Two copies of a from one backup, that wrote so many records each; b and c have one each."""
    wires = fleet(TRIANGLE, **changes)
    a, b, c = wires.nodes.values()
    a.play(3)
    for _ in range(3):
        wires.pass_time(0.1)
    wires.link("b", "c", up=False)
    copy = a.again()
    # the store is taken over by its copy; give the first its entries back
    entries = [entry for _, entry in copy.store.entries()]
    store = type(copy.store)()
    store.append(entries[: len(entries) - 1])
    a = Driven(a.settings, store, now=a.now)
    assert a.core.epoch == copy.core.epoch
    pairs = []
    for one, other, more in ((a, b, first), (copy, c, second)):
        other.handle(Arrived("a", encoded(Have({}, {}, []))))
        pair = Wires([one, other])
        pair.link("a", other.name)
        pair.settle()
        one.tick(200.0)
        assert one.core.own.writing
        one.play(more, seed=id(one) % 1000 + more)
        for _ in range(2):
            pair.pass_time(11.0)
        pairs.append(pair)
    assert b.heads()["a", a.core.epoch] == a.heads()["a", a.core.epoch]
    assert c.heads()["a", a.core.epoch] == copy.heads()["a", a.core.epoch]
    return a, copy, b, c


@pytest.mark.parametrize(("first", "second"), [(2, 2), (1, 4), (4, 1)])
def test_a_fork_is_proven_by_two_neighbours_that_compare_and_said_loudly(first, second):
    a, copy, b, c = copies(first, second)
    both = Wires([b, c])
    both.link("b", "c")
    for _ in range(4):
        both.pass_time(11.0)
    assert said(both, Proof)
    for node in (b, c):
        assert node.core.feeds.origins["a"].quarantined
        assert node.noted("quarantined") == [{"origin": "a"}]
        [entry] = [one for one in node.entries() if isinstance(one, Quarantined)]
        feed = Feed(node.settings.policy.fingerprint, "a", entry.epoch)
        assert feed.contradict(entry.one, entry.other, HashKeys("b"))
    # nothing more is taken from it, nor offered, also after a restart
    restarted = c.again()
    for node in (b, restarted):
        held = node.heads()
        records = a.store.records("a", a.core.epoch, 1, 99, 10**6)
        node.handle(Arrived("a", encoded(Take("a", a.core.epoch, 1, records))))
        node.handle(Arrived("a", encoded(Have({"a": a.core.feeds.origins["a"].heads}, {}, []))))
        assert node.heads() == held
        assert node.core.feeds.origins["a"].quarantined
        assert not [m for _, m in node.outbox if isinstance(decoded(m), Want)]
    # both copies are told by whom they meet, and stop
    for one, other in ((a, b), (copy, restarted)):
        meeting = Wires([one, other])
        meeting.link("a", other.name, up=False)
        meeting.link("a", other.name)
        meeting.settle()
        assert one.stopped.code == FORK


def test_a_fork_is_found_though_one_branch_has_a_checkpoint_beyond_the_end_of_the_other():
    """A checkpoint has sums only; the records before it show that they do not follow."""
    _, _, b, c = copies(2, 120, checkpoint_every=100)
    assert c.core.feeds.origins["a"].place[1] == 100
    both = Wires([b, c])
    both.link("b", "c")
    for _ in range(4):
        both.pass_time(11.0)
    for node in (b, c):
        assert node.core.feeds.origins["a"].quarantined
    assert b.core.feeds.origins["a"].base is None


@pytest.mark.parametrize(("first", "second"), [(2, 2), (1, 4)])
def test_a_node_stops_when_a_neighbour_holds_other_records_of_it(first, second):
    a, _, _, c = copies(first, second)
    a.handle(Arrived("c", encoded(Have({}, {}, c.core.feeds.origins["a"].heads))))
    assert a.stopped.code == FORK
    assert "there are two copies of a" in a.stopped.reason
    position = a.store.position
    a.tick(5.0)
    assert a.decide() is None
    assert a.store.position == position


def test_a_proof_that_proves_nothing_is_refused_and_harms_nobody():
    wires = fleet()
    a, b = wires.nodes["a"], wires.nodes["b"]
    a.play(3)
    wires.pass_time(0.1)
    one, two, _ = a.store.records("a", a.core.epoch, 1, 3, 10**6)
    forged = one[:-65] + bytes([one[-65] ^ 1])
    for other in (one, two, forged + one[-64:], forged + HashKeys("c").sign(forged), b""):
        b.handle(Arrived("c", encoded(Proof("a", a.core.epoch, one, other))))
        b.handle(Arrived("c", encoded(Proof("a", a.core.epoch, other, one))))
    assert b.core.exchange.refused == {"proof": 10}
    assert not b.core.feeds.origins["a"].quarantined
    b.handle(Arrived("c", encoded(Proof("nobody", 1, one, two))))
    assert b.core.exchange.refused == {"proof": 10}


def test_a_block_of_the_own_feed_is_refused():
    wires = fleet()
    a = wires.nodes["a"]
    a.play(2)
    records = a.store.records("a", a.core.epoch, 1, 2, 10**6)
    a.handle(Arrived("b", encoded(Take("a", a.core.epoch, 3, records))))
    assert a.core.exchange.refused == {"take": 1}
    assert a.stopped is None


# Neighbours that say anything.

names = st.sampled_from([*"abcde", "nobody", ""])
counts = st.one_of(st.integers(0, 4), st.sampled_from([2**40, 2**62]))
hashes = st.sampled_from([bytes(32), b"h" * 32])


@pytest.fixture(scope="module")
def talked_to():
    wires = fleet()
    for node in wires.nodes.values():
        node.play(3)
    for _ in range(3):
        wires.pass_time(0.1)
    return wires.nodes["b"]


@st.composite
def anything(draw):
    epochs = st.one_of(counts, st.just(1_000_000))
    heads = st.lists(st.tuples(epochs, counts, hashes), max_size=3)
    blobs = st.binary(max_size=300)
    return draw(st.one_of(
        st.builds(
            Have, st.dictionaries(names, heads, max_size=3),
            st.dictionaries(names, st.tuples(epochs, counts), max_size=2),
            st.just([]), st.integers(-3, 300), st.booleans(),
        ),
        st.builds(Want, names, epochs, counts, counts),
        st.builds(Take, names, epochs, counts, st.lists(blobs, max_size=3)),
        st.builds(WantBase, names),
        st.builds(Base, names, blobs),
        st.builds(Proof, names, epochs, blobs, blobs),
    ))  # fmt: skip


@settings(max_examples=80)
@given(anything(), st.sampled_from(["a", "c", "d", "nobody"]))
def test_whatever_a_neighbour_says_changes_nothing_that_is_held(talked_to, message, neighbour):
    node = talked_to
    heads, sums, position = node.heads(), node.sums(), node.store.position
    node.handle(Arrived(neighbour, encoded(message)))
    node.tick(6.0)
    assert (node.heads(), node.sums(), node.store.position) == (heads, sums, position)
    assert node.stopped is None
    assert all(len(data) < 10_000 for _, data in node.outbox)
    node.outbox.clear()


def records_of(origin, policy, epoch, values):
    """Sign records with whatever an origin may say."""
    feed, keys = Feed(policy.fingerprint, origin, epoch), HashKeys(origin)
    head, made = feed.beginning, []
    for round_, x, y, attached in values:
        one = Observation(0, round_, np.array(x), y, np.array(attached))
        made.append(feed.record(head, one, keys))
        head = feed.head(made[-1])
    return made


@pytest.mark.parametrize(
    "value",
    [
        (1, [1.0] * (DIM + 1), 1.0, []),
        (1, [1.0] * DIM, 1.0, [2.0]),
        (0, [1.0] * DIM, 1.0, []),
        (2**62 - 1, [1.0] * DIM, 1.0, []),
        (1, [1e50] * DIM, 1e50, []),
        (1, [-1e50] * DIM, -1e50, []),
        (1, [0.0] * DIM, 0.0, []),
        (1, [1e-300] * DIM, 1e-300, []),
    ],
    ids=str,
)
@pytest.mark.parametrize("settled", [True, False], ids=["d known", "d not known"])
def test_what_an_origin_signs_of_other_sizes_or_extremes_never_ends_a_node(value, settled):
    node = Driven(settings_of("b", path()))
    policy = node.settings.policy
    node.write()
    if settled:
        node.play(2)
    node.handle(Arrived("a", encoded(Take("a", 5, 1, records_of("a", policy, 5, [value])))))
    good = [(t, [1.0, t, -t], 0.5, []) for t in range(1, 4)]
    node.handle(Arrived("c", encoded(Take("c", 5, 1, records_of("c", policy, 5, good)))))
    node.tick(1.0)
    assert node.stopped is None
    again = node.again()
    assert (again.sums(), again.heads()) == (node.sums(), node.heads())


def test_messages_are_small_numbers_of_plain_values():
    """What a frame holds has no pickles and no objects: maps, lists, texts, bytes and numbers."""
    wires = fleet()
    wires.nodes["a"].play(1)
    wires.pass_time(0.1)
    for _, _, data in wires.said:
        assert isinstance(msgspec.msgpack.decode(data[8:]), dict)
