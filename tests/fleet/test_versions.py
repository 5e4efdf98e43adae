"""Logs and messages of earlier releases are read, and the nodes of a fleet upgraded one at a time.

The assets are written by `tests/assets/fleet/write.py`, which says what they hold.
"""

import importlib.util
import json
import shutil
import struct
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from unittest import mock
from zlib import crc32

import msgspec
import numpy as np
import pytest

from coopbandits.fleet.checkpoint import Checkpoint
from coopbandits.fleet.core import entries, exchange, wire
from coopbandits.fleet.core.actions import Arrived, Linked
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.core.state import same, stored
from coopbandits.fleet.core.wire import Have, decoded, encoded
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.record import Feed
from coopbandits.fleet.store import MemoryStore, SqliteStore, verify
from fleet.driven import Driven, Wires, path, settings_of

ASSETS = Path(__file__).parents[1] / "assets" / "fleet"
STATES, MESSAGES = [1, 2], [1]


def loaded():
    spec = importlib.util.spec_from_file_location("write_assets", ASSETS / "write.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


written = loaded()
FINGERPRINT = json.loads((ASSETS / "facts-v1.json").read_text())["fingerprint"]


def read(name):
    return (ASSETS / name).read_bytes()


def assert_same(one, other):
    """Compare two cores, the posterior to 1e-12: BLAS on another machine has other last bits."""
    assert written.facts(one) == written.facts(other)
    mine, others = (core.agent.predict(np.eye(written.D)) for core in (one, other))
    np.testing.assert_allclose(mine.upper, others.upper, atol=1e-12)
    np.testing.assert_allclose(one.agent.worth, other.agent.worth, atol=1e-12)
    assert one.counts == other.counts


@pytest.fixture(params=STATES)
def old_log(request, tmp_path):
    """A store over a log of an earlier release, and what its node knew."""
    shutil.copytree(ASSETS / f"log-v{request.param}", tmp_path / "node")
    assert verify(tmp_path / "node").damage == ()
    store = SqliteStore(tmp_path / "node", identity="b")
    yield store, json.loads(read(f"facts-v{request.param}.json"))
    store.close()


class TestLogs:
    def test_a_policy_keeps_its_fingerprint_or_no_log_of_it_is_read(self):
        assert written.settings().policy.fingerprint == FINGERPRINT

    @pytest.mark.parametrize("states", [True, False])
    def test_a_node_is_as_it_was_when_its_log_was_written(self, old_log, states):
        store, known = old_log
        core = opened(written.settings(), HashKeys("b"), store, states=states)
        assert json.loads(json.dumps(written.facts(core))) == known

    def test_its_stored_state_and_a_replay_are_the_same(self, old_log):
        store, _ = old_log
        assert_same(*(
            opened(written.settings(), HashKeys("b"), store, states=states)
            for states in (True, False)
        ))  # fmt: skip

    def test_a_stored_state_and_a_replay_of_this_build_are_the_same_to_the_bit(self):
        store = MemoryStore()
        node = written.lived(store)
        cores = [
            opened(written.settings(), HashKeys("b"), store, states=states)
            for states in (True, False)
        ]
        assert stored(cores[0]) == stored(cores[1])
        assert same(cores[0], node.core)

    def test_it_holds_entries_of_every_kind_and_they_are_written_as_they_were(self, old_log):
        store, _ = old_log
        kinds = set()
        for position, entry in store.entries():
            again = entries.written(entries.read(entry, position), entry.records)
            assert again == entry
            kinds.add(entry.kind)
        assert kinds == {*entries._KINDS}

    def test_a_node_goes_on_from_it(self, old_log):
        store, known = old_log
        node = Driven(written.settings(), store, keys=HashKeys("b"))
        assert node.core.epoch == known["epoch"]
        node.tick(5.0)
        node.write()
        node.play(6)
        node.tick(5.0)
        assert node.core.learning.adoptions > known["adoptions"]
        assert node.stopped is None
        live = {name: feed for name, feed in node.heads().items() if name[0] == "b"}
        [(_, head)] = live.items()
        assert head.sequence > 4
        for states in (True, False):
            core = opened(written.settings(), HashKeys("b"), store, states=states)
            assert core.feeds.held("b", core.epoch) == head

    def test_a_stored_state_by_itself_is_read(self, old_log, request):
        store, _ = old_log
        [(position, state)] = store.snapshots()
        assert state == read(f"state-v{request.node.callspec.params['old_log']}.bin")
        memory = MemoryStore()
        memory.append([entry for place, entry in store.entries() if place <= position])
        whole = opened(written.settings(), HashKeys("b"), memory)
        memory.put_snapshot(position, state)
        assert_same(opened(written.settings(), HashKeys("b"), memory), whole)


class TestMessages:
    @pytest.mark.parametrize("version", MESSAGES)
    def test_messages_are_read_and_written_as_they_were(self, version):
        frames = msgspec.msgpack.decode(read(f"frames-v{version}.bin"))
        made = written.messages(FINGERPRINT)
        assert {type(one) for one in made} == {*wire.Spoken.__args__}
        for frame, message in zip(frames, made, strict=True):
            assert frame[3] == version
            if not isinstance(message, wire.Base):  # its sums are a build's own
                assert decoded(frame) == message
                assert encoded(message, version) == frame
            else:
                assert decoded(frame) == wire.Base("a", read(f"checkpoint-v{version}.bin"))

    def test_records_are_read_and_made_as_they_were(self):
        records = msgspec.msgpack.decode(read("feed-v1.bin"))
        made = written.observations(3)
        assert records == written.records(FINGERPRINT, "a", written.EPOCH, made)
        feed = Feed(FINGERPRINT, "a", written.EPOCH)
        block = feed.read(feed.beginning, records, HashKeys("b"))
        assert block.rounds == [1, 2, 3]
        np.testing.assert_array_equal(block.contexts, [one.context for one in made])
        np.testing.assert_array_equal(block.rewards, [one.reward for one in made])
        np.testing.assert_array_equal(block.attached, [one.attached for one in made])

    def test_checkpoints_are_read_and_say_what_they_said(self):
        data = read("checkpoint-v1.bin")
        found = Checkpoint.read(FINGERPRINT, data, HashKeys("b"))
        expected = written.checkpoint(FINGERPRINT, "a", 7)
        assert (found.origin, found.place) == (expected.origin, expected.place)
        [one], [other] = found.feeds, expected.feeds
        assert (one.head, one.dim) == (other.head, other.dim)
        agent = written.settings().policy.agent("b", path("abc"), expire=100)
        written.feeds.settle_dimension(agent, one.dim)
        sums = [written.feeds.restored_sums(agent, 0, base.sums).total for base in (one, other)]
        np.testing.assert_allclose(sums[0].sums, sums[1].sums, rtol=1e-12)
        assert sums[0].learnt == sums[1].learnt == [100]


# One node at a time.


def future_frame(message, version=2):
    """Put a message into bytes as a release would whose messages have a key more."""
    fields = {"type": type(message).__struct_config__.tag}
    fields |= {name: getattr(message, name) for name in message.__struct_fields__}
    if isinstance(message, Have):
        fields["reads"] = 2
    if min(version, 2) == 2:
        fields["later"] = {"since": [2, None]}
    body = msgspec.msgpack.encode(fields)
    return b"CBf" + bytes([min(version, 2)]) + struct.pack("<I", crc32(body)) + body


@contextmanager
def of_the_future():
    with (
        mock.patch.object(wire, "VERSION", 2),
        mock.patch.object(exchange, "VERSION", 2),
        mock.patch.object(exchange, "encoded", future_frame),
        mock.patch("fleet.driven.encoded", future_frame),
    ):
        yield


class Upgraded(Driven):
    """A node of a release that writes messages of version 2."""

    def do(self, actions):
        with of_the_future():
            super().do(actions)

    def handle(self, event):
        with of_the_future():
            super().handle(event)


def played(wires):
    for node in wires.nodes.values():
        node.play(3, seed=node.store.position)
    for _ in range(4):
        wires.pass_time(11.0)


def agreed(wires):
    heads = [node.heads() for node in wires.nodes.values()]
    sums = [node.sums() for node in wires.nodes.values()]
    assert all(one == heads[0] for one in heads)
    assert all(one == sums[0] for one in sums)
    assert not any(node.core.exchange.refused for node in wires.nodes.values())
    assert not any(node.stopped for node in wires.nodes.values())
    return sum(head.sequence for head in heads[0].values())


def restarted(wires, name, release):
    """Stop a node, and start it again from its log as one of a release."""
    before = wires.nodes[name]
    near = [*before.core.exchange.neighbours]
    for other in near:
        wires.nodes[other].handle(Linked(name, False))
    before.outbox.clear()
    wires.nodes[name] = release(
        before.settings, before.store.crash(), keys=before.keys, now=before.now
    )
    for other in near:
        wires.link(*sorted((name, other)))
    wires.settle()


@pytest.mark.parametrize("order", [*permutations("abc")], ids="".join)
def test_nodes_are_upgraded_one_at_a_time_and_hold_the_same_all_the_while(order):
    wires = Wires([Driven(settings_of(name, path("abc"))) for name in "abc"])
    wires.link_all()
    wires.settle()
    played(wires)
    assert agreed(wires) == 9
    new = set()
    # forth, and back again: what is in the logs is read by the release before, too
    steps = [(name, Upgraded) for name in order] + [(name, Driven) for name in order]
    for number, (name, release) in enumerate(steps, start=2):
        restarted(wires, name, release)
        (new.add if release is Upgraded else new.discard)(name)
        wires.said.clear()
        played(wires)
        assert agreed(wires) == 9 * number
        versions = {}
        for source, target, data in wires.said:
            versions.setdefault((source, target), set()).add(data[3])
        for pair, found in versions.items():
            assert found == ({2} if {*pair} <= new else {1}), pair


def test_a_neighbour_is_written_to_in_what_it_has_last_said_that_it_reads():
    node = Upgraded(settings_of("b", path("abc")))
    for reads in (2, 1, 9, 0, -5):
        node.handle(Arrived("a", encoded(Have({}, {}, [], reads=reads, answer=True))))
        assert node.outbox[-1][1][3] == max(1, min(reads, 2))
        node.outbox.clear()
