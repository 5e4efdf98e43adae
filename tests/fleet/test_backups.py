"""A node whose log is older than what others hold of it: it recovers, or its fork is found.

Nodes as they run, over SQLite or memory, with links in memory and a clock that the test moves.
"""

import asyncio
import shutil
from itertools import count

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.fleet.core.actions import FORK, Tick
from coopbandits.fleet.face import Decide, RefusedError, Reward
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.learner import InlineLearner
from coopbandits.fleet.links.memory import MemoryNetwork
from coopbandits.fleet.runtime import Node
from coopbandits.fleet.store import MemoryStore, SqliteStore, backup, restore, verify
from fleet.driven import request, settings_of

TRIANGLE = cb.Network.from_edges([("a", "b"), ("a", "c"), ("b", "c")], names=[*"abc"])


class Running:
    """Three sites whose nodes run, stop, and start again from what is in their folders."""

    def __init__(self, folder):
        self.folder, self.time = folder, 1_000.0
        self.wires, self.nodes, self.stores = MemoryNetwork(), {}, {}
        self.rng = np.random.default_rng(8)

    async def start(self, name, *, folder=None, restored=None, store=None):
        if store is None:
            store = SqliteStore(self.folder / (folder or name), identity=name)
        near = [other for other in TRIANGLE.names if other != name]
        node = Node(
            settings_of(name, TRIANGLE, have_every=1.0, want_timeout=0.5, pace=1.0),
            HashKeys(name), store, self.wires.links(name, near), InlineLearner(),
            restored=getattr(store, "restored", False) if restored is None else restored,
            clock=lambda: self.time, tick=None,
        )  # fmt: skip
        await node.start()
        self.nodes[name] = node
        return node

    async def stop(self, name):
        await self.nodes.pop(name).stop()

    def restore(self, backup, name):
        source, target = self.folder / backup, self.folder / name
        return restore(source, target, identity=name, overwrite=True)

    async def settle(self):
        """Let what is on its way arrive, until nothing happens any more."""
        for quiet in count():
            moved = self.wires.deliver()
            await asyncio.sleep(0.001)
            waits = any(
                node.core.journal.synced < node.core.journal.position
                for node in self.nodes.values()
                if not node.ended.done()
            )
            if moved == 0 and not waits and self.wires.waiting == 0:
                return
            assert quiet < 3_000, "the nodes do not get there"

    async def pass_time(self, seconds=1.0, times=3):
        for _ in range(times):
            await self.settle()
            self.time += seconds
            for node in self.nodes.values():
                node._handle(Tick())
        await self.settle()

    async def play(self, name, rounds):
        events = []
        for _ in range(rounds):
            reply = await self.nodes[name].ask(Decide(request(self.rng)))
            await self.nodes[name].ask(Reward(reply.event_id, float(self.rng.normal())))
            events.append(reply.event_id)
        return events

    def held(self, name, origin="a"):
        """Return the heads of an origin's feeds, as a node has them on its disk."""
        feeds = self.nodes[name].core.feeds.origins[origin].epochs
        return {epoch: feed.synced for epoch, feed in feeds.items() if feed.synced.sequence}

    def sums(self, name, origin="a"):
        feeds = self.nodes[name].core.feeds.origins[origin].epochs
        return {e: one.sums.digest for e, one in feeds.items() if one.sums and one.applied}

    async def end(self):
        for name in [*self.nodes]:
            await self.stop(name)


def running(test):
    """Run a test in an event loop, with nodes that end with it."""

    def run(tmp_path, *given):
        async def body():
            fleet = Running(tmp_path)
            try:
                await test(fleet, *given)
            finally:
                await fleet.end()

        asyncio.run(body())

    return run


async def begun(fleet):
    """All run, and a has five records that all hold."""
    for name in "abc":
        await fleet.start(name)
    await fleet.pass_time()
    events = await fleet.play("a", 5)
    await fleet.pass_time()
    [head] = fleet.held("c").values()
    assert head.sequence == 5
    return events


async def ready(node, wanted):
    """Wait until a node takes requests, or does not."""
    while node.status().ready is not wanted:
        await asyncio.sleep(0.01)


def agree(fleet, counts):
    """All hold the same of a, so many records in each of its epochs."""
    for name in "abc":
        assert fleet.held(name) == fleet.held("a")
        assert fleet.sums(name) == fleet.sums("a")
        status = fleet.nodes[name].status()
        assert status.ready
        assert status.quarantined == []
    assert sorted(head.sequence for head in fleet.held("a").values()) == sorted(counts)


def test_a_backup_that_is_restored_goes_on_in_a_new_epoch_and_gets_back_what_it_lost(tmp_path):
    @running
    async def scenario(fleet):
        events = await begun(fleet)
        report = backup(fleet.folder / "a", fleet.folder / "backup")
        assert report.damage == ()
        lost = await fleet.play("a", 4)
        await fleet.pass_time()
        await fleet.stop("a")
        assert fleet.restore("backup", "a").restored
        node = await fleet.start("a")
        assert node._restored
        await fleet.pass_time()
        new = await fleet.play("a", 3)
        assert not {*new} & {*events, *lost}
        await fleet.pass_time()
        agree(fleet, [9, 3])
        assert node.core.agent.known == 12
        # and again, from the same backup: another epoch, and all is got back
        await fleet.stop("a")
        fleet.restore("backup", "a")
        node = await fleet.start("a")
        await fleet.pass_time()
        await fleet.play("a", 2)
        await fleet.pass_time(times=5)
        agree(fleet, [9, 3, 2])
        assert node.core.agent.known == 14
        # once a new epoch has begun, the log is a node's as any other
        node._store.clear_restored()
        await fleet.stop("a")
        assert not verify(fleet.folder / "a").restored
        node = await fleet.start("a")
        await fleet.pass_time()
        agree(fleet, [9, 3, 2])

    scenario(tmp_path)


def test_a_backup_on_a_full_disk_begins_its_epoch_once_there_is_room(tmp_path):
    """Nobody answers, so that nothing but the restored log itself can tell it to."""

    @running
    async def scenario(fleet):
        store = MemoryStore()
        await fleet.start("a", store=store)
        await fleet.pass_time()
        await fleet.play("a", 2)
        [former] = fleet.held("a")
        await fleet.stop("a")
        store = store.crash()
        store.full_at(store.disk_bytes)
        node = await fleet.start("a", store=store, restored=True)
        await ready(node, False)
        store.full_at(None)
        await ready(node, True)
        await fleet.pass_time()
        await fleet.play("a", 1)
        epoch = node.core.epoch
        assert sorted(fleet.held("a")) == [former, epoch]
        # from then on a full disk needs no other epoch
        store.full_at(store.disk_bytes)
        with pytest.raises(RefusedError, match="disk is full"):
            await fleet.play("a", 1)
        store.full_at(None)
        await ready(node, True)
        assert node.core.epoch == epoch

    scenario(tmp_path)


def test_rewards_of_events_that_a_restored_log_still_awaits_are_those_that_were_counted(tmp_path):
    """The event is open in the backup; its record is with the neighbours."""

    @running
    async def scenario(fleet):
        await begun(fleet)
        reply = await fleet.nodes["a"].ask(Decide(request(fleet.rng)))
        backup(fleet.folder / "a", fleet.folder / "backup")
        await fleet.nodes["a"].ask(Reward(reply.event_id, 0.75))
        await fleet.pass_time()
        await fleet.stop("a")
        fleet.restore("backup", "a")
        node = await fleet.start("a")
        assert node.event(reply.event_id).state == "open"
        await fleet.pass_time()
        found = node.event(reply.event_id)
        assert (found.state, found.reward, found.recorded) == ("closed", 0.75, True)
        agree(fleet, [6])

    scenario(tmp_path)


def test_an_older_log_that_was_put_back_by_hand_is_found_out_by_asking_neighbours(tmp_path):
    """Nobody said that it was restored: it takes a new epoch before it writes to the old one."""

    @running
    async def scenario(fleet):
        await begun(fleet)
        await fleet.stop("a")
        shutil.copytree(fleet.folder / "a", fleet.folder / "copy")
        await fleet.start("a")
        await fleet.pass_time()
        await fleet.play("a", 4)
        await fleet.pass_time()
        await fleet.stop("a")
        node = await fleet.start("a", folder="copy")
        events = await fleet.play("a", 2)  # asked before neighbours have answered: decided at once
        assert not node.core.own.writing
        await fleet.pass_time()
        assert all(node.event(event).recorded for event in events)
        agree(fleet, [9, 2])

    scenario(tmp_path)


@pytest.mark.parametrize("more", [0, 2, 6])
def test_an_older_log_that_wrote_before_it_met_anybody_stops_and_is_set_aside(tmp_path, more):
    @running
    async def scenario(fleet):
        await begun(fleet)
        await fleet.stop("a")
        shutil.copytree(fleet.folder / "a", fleet.folder / "copy")
        await fleet.start("a")
        await fleet.pass_time()
        await fleet.play("a", 4)
        await fleet.pass_time()
        await fleet.stop("a")
        for other in "bc":
            fleet.wires.cut("a", other)
        node = await fleet.start("a", folder="copy")
        await fleet.pass_time()
        assert node.core.own.writing  # nobody answered for so long
        await fleet.play("a", more)
        for other in "bc":
            fleet.wires.heal("a", other)
        await fleet.pass_time(times=5)
        if not more:  # nothing was written: but it writes, and others hold more
            assert node.ended.done()
        assert node.ended.result()[0] == FORK
        assert "there are two copies of a, or its log was replaced" in node.ended.result()[1]
        assert not node.status().ready

    scenario(tmp_path)


@pytest.mark.parametrize(("first", "second"), [(2, 2), (1, 3), (3, 1)])
def test_two_copies_of_one_node_are_found_by_whom_they_told_different_things(
    tmp_path, first, second
):
    @running
    async def scenario(fleet):
        await begun(fleet)
        await fleet.stop("a")
        shutil.copytree(fleet.folder / "a", fleet.folder / "copy")
        fleet.wires.cut("b", "c")
        for folder, away, rounds in (("a", "c", first), ("copy", "b", second)):
            fleet.wires.cut("a", away)
            node = await fleet.start("a", folder=folder)
            await fleet.pass_time()
            assert node.core.own.writing
            await fleet.play("a", rounds)
            await fleet.pass_time()
            assert not node.ended.done()
            await fleet.stop("a")
            fleet.wires.heal("a", away)
        assert fleet.held("b") != fleet.held("c")
        fleet.wires.heal("b", "c")
        await fleet.pass_time(times=6)
        for name in "bc":
            assert fleet.nodes[name].status().quarantined == ["a"]
        # and whichever copy starts next hears of it: one that holds less than others took from it
        # believes that its log is an older one, and goes on in a new epoch, set aside
        for folder, rounds in (("a", first), ("copy", second)):
            node = await fleet.start("a", folder=folder)
            await fleet.pass_time(times=5)
            if rounds == min(first, second) != max(first, second):
                assert node.status().quarantined == ["a"]
                assert node.status().epoch > 1_000_000
            else:
                assert node.ended.result()[0] == FORK
            await fleet.stop("a")
        # the others go on, with each other
        for name in "bc":
            await fleet.play(name, 2)
        await fleet.pass_time()
        assert fleet.held("b", "c") == fleet.held("c", "c")
        assert [head.sequence for head in fleet.held("c", "b").values()] == [2]

    scenario(tmp_path)


def test_a_log_in_memory_that_crashed_goes_on_in_its_epoch(tmp_path):
    """What was acknowledged is there, so nothing needs a new epoch."""

    @running
    async def scenario(fleet):
        stores = {name: MemoryStore() for name in "abc"}
        for name, store in stores.items():
            await fleet.start(name, store=store)
        await fleet.pass_time()
        for _ in range(3):
            await fleet.play("a", 2)
            await fleet.settle()
            node = fleet.nodes.pop("a")
            node._store.append = None  # killed: nothing it does from here on counts
            await asyncio.to_thread(node._links.close)
            await asyncio.to_thread(node._commits.close, False)
            stores["a"] = stores["a"].crash()
            node = await fleet.start("a", store=stores["a"])
            await fleet.pass_time()
        agree(fleet, [6])
        assert len(node.core.feeds.origins["a"].epochs) == 1

    scenario(tmp_path)
