"""A node as it runs, over SQLite, behind its HTTP interface: notes, full disk, disk that fails."""

import asyncio
import contextlib
import json

import httpx
import pytest

import coopbandits as cb
from coopbandits.fleet.core.actions import DISK
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.learner import InlineLearner
from coopbandits.fleet.links.memory import MemoryNetwork
from coopbandits.fleet.ports import StoreError
from coopbandits.fleet.runtime import Node
from coopbandits.fleet.store import SqliteStore, verify
from fleet.http.asking import body, kind_of, serving
from fleet.http.core_face import POLICY
from fleet.http.sockets import Socket, get, soon

NETWORK = cb.Network.from_edges([("north", "south")], names=["north", "south"])


@contextlib.asynccontextmanager
async def running(folder, wires, name="north", **options):
    """Run a node and its server; yields the node, its store, and a client."""
    store = SqliteStore(folder / name, identity=name, **options)
    settings = Settings(
        fleet="tests", name=name, network=NETWORK, policy=POLICY, pace=0.01, heads_wait=0.05
    )
    [other] = {*NETWORK.names} - {name}
    node = Node(settings, HashKeys(name), store, wires.links(name, [other]), InlineLearner())
    await node.start()
    try:
        async with serving(node, heartbeat=0.05) as (port, _):
            base = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=20.0) as client:
                client.port = port  # type: ignore[attr-defined]
                yield node, store, client
    finally:
        await node.stop()


@contextlib.asynccontextmanager
async def delivering(wires):
    """Hand messages over, as long as the block takes."""

    async def deliver():
        while True:
            wires.deliver()
            await asyncio.sleep(0.002)

    task = asyncio.create_task(deliver())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def notes_until(one, kinds):
    """Read notes until one of each kind has come; return the first of each, in their order."""
    found = {}
    async with asyncio.timeout(20):
        while not kinds <= found.keys():
            line = await one.until(b"\n\n")
            if b"data: " in line:
                note = json.loads(line.rpartition(b"data: ")[2])
                found.setdefault(note["kind"], note)
    return found


def test_an_observation_is_seen_where_it_is_made_where_it_is_sent_and_where_it_comes(tmp_path):
    async def run():
        wires = MemoryNetwork()
        async with (
            running(tmp_path, wires) as (_, _, north),
            running(tmp_path, wires, "south") as (_, _, south),
            delivering(wires),
            Socket(north.port) as near,
            Socket(south.port) as far,
        ):
            for one in (near, far):
                await one.send(get("/v1/notes"))
                await one.until(b"retry: 1000\n\n")
                assert await one.until(b": nothing new\n\n")  # a sign of life, and it goes on
            await north.post("/v1/decide", json=body(event_id="one"))
            await north.post("/v1/events/one/reward", json={"value": 0.25})
            here = await notes_until(near, {"decided", "rewarded", "recorded", "sent"})
            there = await notes_until(far, {"received"})
            assert here["decided"]["event_id"] == here["rewarded"]["event_id"] == "one"
            assert here["rewarded"]["value"] == 0.25
            assert here["recorded"]["sequence"] == 1
            assert (here["sent"]["to"], here["sent"]["origin"]) == ("south", "north")
            for field, value in (("via", "north"), ("origin", "north"), ("first", 1), ("last", 1)):
                assert there["received"][field] == value
            times = [here[kind]["at"] for kind in ("decided", "rewarded", "recorded", "sent")]
            assert times == sorted(times)
            status = (await south.get("/v1/status")).json()
            assert status["observations"] == 1

    asyncio.run(run())


def test_a_full_disk_refuses_with_507_and_the_node_goes_on_once_there_is_room(tmp_path):
    """What was refused is not known, and what was acknowledged is, then and after a restart."""
    contexts = [[float(i == k) for i in range(500)] for k in range(8)]
    actions = [{"id": str(k), "context": x} for k, x in enumerate(contexts)]

    def asked(number):
        return {"actions": actions, "event_id": f"e{number}"}

    async def run():
        kept = {}
        async with running(tmp_path, MemoryNetwork(), most_bytes=500_000) as (node, store, client):
            for number in range(200):
                answer = await client.post("/v1/decide", json=asked(number))
                if answer.status_code != 200:
                    break
                kept[number] = answer.content
            assert (answer.status_code, kind_of(answer)) == (507, "disk-full")
            assert float(answer.headers["retry-after"]) == 5
            assert "free some space" in answer.json()["detail"]
            assert 3 < len(kept) < 199
            assert (await client.get("/readyz")).status_code == 503
            assert (await client.get("/healthz")).status_code == 200
            reward = await client.post("/v1/events/e0/reward", json={"value": 1.0})
            assert kind_of(reward) == "disk-full"
            with store._writing:
                store._writer.execute("PRAGMA max_page_count = 1000000").fetchall()
            await soon(lambda: node.status().ready)
            assert kind_of(await client.get(f"/v1/events/e{number}")) == "unknown-event"
            again = await client.post("/v1/decide", json=asked(number))
            assert again.status_code == 200
            kept[number] = again.content
            assert (await client.post("/v1/events/e0/reward", json={"value": 1.0})).is_success
        assert verify(tmp_path / "north").damage == ()
        async with running(tmp_path, MemoryNetwork()) as (node, _, client):
            for number, reply in kept.items():
                answer = await client.post("/v1/decide", json=asked(number))
                assert answer.content == reply
            assert node.status().decisions == len(kept)
            assert node.event("e0").reward == 1.0

    asyncio.run(run())


@pytest.mark.parametrize("place", ["entries", "mark"])
def test_a_disk_that_fails_stops_the_node_and_nothing_is_acknowledged(tmp_path, place, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    async def run():
        async with running(tmp_path, MemoryNetwork()) as (node, store, client):
            assert (await client.post("/v1/decide", json=body(event_id="kept"))).is_success
            if place == "mark":
                monkeypatch.setattr(store._mark, "write", fail)
            else:
                monkeypatch.setattr(store, "append", lambda _: (_ for _ in ()).throw(
                    StoreError("fsync failed; look at the disk")))  # fmt: skip
            async with Socket(client.port) as watching:
                await watching.send(get("/v1/notes"))
                await watching.until(b"retry: 1000\n\n")
                answers = await asyncio.gather(*(
                    client.post("/v1/decide", json=body(event_id=f"lost-{k}")) for k in range(5)
                ))  # fmt: skip
            assert {(one.status_code, kind_of(one)) for one in answers} == {(503, "stopping")}
            code, reason = await node.ended
            assert code == DISK
            assert "look at the disk" in reason
            later = await client.post("/v1/decide", json=body(event_id="later"))
            assert (later.status_code, kind_of(later)) == (503, "stopping")
            assert (await client.get("/readyz")).status_code == 503

    asyncio.run(run())
    monkeypatch.undo()
    store = SqliteStore(tmp_path / "north", identity="north")
    assert store.position >= 2  # the start, and what was acknowledged
    store.close()
