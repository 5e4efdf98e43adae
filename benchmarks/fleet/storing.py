"""What a node's log takes: entries made durable, and observations verified and stored."""

import asyncio
import queue
import random
import sqlite3
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.fleet import world as worlds
from benchmarks.fleet.world import ME, Origin, World

from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.core.wire import Have, Take, Want, decoded, encoded
from coopbandits.fleet.keys import Ed25519Keys, public_of
from coopbandits.fleet.learner import InlineLearner
from coopbandits.fleet.ports import Entry, StoredRecord
from coopbandits.fleet.record import SIGNATURE
from coopbandits.fleet.runtime import Node
from coopbandits.fleet.store.group_commit import GroupCommit
from coopbandits.fleet.store.sqlite import SqliteStore

Facts = dict[str, Any]
BODY, RECORD = 1_100, 350  # bytes of a decision's entry, and of a record
DURABLE = {
    "full": {"connections": [8, 32], "seconds": 2.0, "turns": 9},
    "small": {"connections": [2], "seconds": 0.1, "turns": 1},
}
CATCH_UP = {
    "full": {"observations": 100_000, "origins": 4, "turns": 3},
    "small": {"observations": 600, "origins": 2, "turns": 1},
}

Done = Callable[[int, Exception | None], None]


class RawCommits:
    """Group commits of plain SQLite: a thread takes what has queued up, and inserts it as rows."""

    def __init__(self, folder: Path, finished: Done) -> None:
        self._path, self._finished = folder / "raw.sqlite", finished
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Queue a row."""
        self._queue.put(data)

    def close(self) -> None:
        """End."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE rows (position INTEGER PRIMARY KEY, data BLOB NOT NULL)")
        position, ended = 0, False
        while not ended:
            group = [self._queue.get()]
            try:
                while True:
                    group.append(self._queue.get_nowait())
            except queue.Empty:
                pass
            rows = [(position + i, data) for i, data in enumerate(group, 1) if data is not None]
            ended = len(rows) < len(group)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO rows VALUES (?, ?)", rows)
            connection.execute("COMMIT")
            position += len(rows)
            self._finished(position, None)
        connection.close()


async def entries_a_second(raw: bool, connections: int, seconds: float) -> float:
    """Return how many entries a second are durable, each client waiting for its own."""
    loop = asyncio.get_running_loop()
    waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
    position = 0

    def synced(upto: int) -> None:
        while waiting and waiting[0][0] <= upto:
            waiting.popleft()[1].set_result(None)

    def finished(upto: int, error: Exception | None) -> None:
        assert error is None
        loop.call_soon_threadsafe(synced, upto)

    body, record = random.Random(1).randbytes(BODY), random.Random(2).randbytes(RECORD)
    until = time.perf_counter() + seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = None if raw else SqliteStore(folder, identity=ME)
        commits: Any = GroupCommit(store, finished) if store else RawCommits(folder, finished)

        async def client() -> None:
            nonlocal position
            while time.perf_counter() < until:
                position += 1
                future = loop.create_future()
                waiting.append((position, future))
                if raw:
                    commits.put(body + record)
                else:
                    commits.put([Entry(2, body, (StoredRecord(ME, 1, position, record),))])
                await future

        since = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(connections)))
        rate = position / (time.perf_counter() - since)
        await asyncio.to_thread(commits.close)
        if store is not None:
            store.close()
    return rate


def durable(settings: Facts) -> Facts:
    """Durable entries a second: group commits of a node's log beside plain SQLite's, in turns.

    Clients in closed loops, each with one entry under way: a body of 1,100 bytes and a record of
    350; plain SQLite (WAL, synchronous=FULL) writes the same 1,450 bytes as one row.
    """
    found: Facts = {}
    for connections in settings["connections"]:
        rates: dict[str, list[float]] = {"node": [], "raw": []}
        for number in range(settings["turns"]):
            for name in sorted(rates, reverse=number % 2 == 1):
                job = entries_a_second(name == "raw", connections, settings["seconds"])
                rates[name].append(round(asyncio.run(job), 1))
        ratios = [round(a / b, 3) for a, b in zip(rates["node"], rates["raw"], strict=True)]
        found[str(connections)] = {"ratios": ratios, "entries a second": rates}
        print(connections, found[str(connections)], flush=True)
    return found


class HoldingLinks:
    """Links to a neighbour that holds feeds: it offers them, and sends blocks as it is asked."""

    def __init__(self, blocks: dict[str, dict[int, bytes]], heads: dict[str, Any]) -> None:
        self._blocks, self._heads = blocks, heads
        self.began = 0.0

    def start(self, received: Callable[..., None], linked: Callable[..., None]) -> None:
        """Say that the link is up."""
        self._received = received
        linked("site1", True)

    def offer(self) -> None:
        """Offer all feeds."""
        self.began = time.process_time()
        self._received("site1", encoded(Have(self._heads, {}, [])))

    def send(self, neighbour: str, data: bytes) -> None:
        """Answer."""
        message = decoded(data)
        if isinstance(message, Want):
            self._received("site1", self._blocks[message.origin][message.after])

    def close(self) -> None:
        """End."""


async def caught_up(policy: Any, network: Any, keys: Any, links: HoldingLinks, count: int) -> float:
    """Return CPU seconds of a new node from an offer until all is stored and applied."""
    settings = Settings(fleet="bench", name=ME, network=network, policy=policy, pace=1e9,
                        heads_wait=0.0, have_every=1e9)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder), identity=ME)
        node = Node(settings, keys, store, links, InlineLearner())
        await node.start()
        await asyncio.sleep(0.2)
        links.offer()
        until = time.monotonic() + 300
        while sum(one.records for one in node.core.feeds.origins.values()) < count:
            await asyncio.sleep(0.01)
            if time.monotonic() > until:
                raise RuntimeError("the node does not catch up")
        spent = time.process_time() - links.began
        await node.stop(drain=False)
    return spent


def catch_up(settings: Facts) -> Facts:
    """CPU of a new node that takes observations in blocks, beside verifying each signature.

    The node's side is all of its process: messages, chains, one signature a block, the SQLite log,
    the sums of the agent; no checkpoint is offered, no task run. The signatures: Ed25519, PyNaCl.
    """
    count, origins, turns = (settings[key] for key in ("observations", "origins", "turns"))
    net = worlds.network("star", origins + 1)
    policy = worlds.policy("known", 2, origins + 1)
    checked = Settings(fleet="bench", name=ME, network=net, policy=policy).policy
    world, public = World(origins + 1, 3), {ME: public_of(bytes(32))}
    blocks: dict[str, dict[int, bytes]] = {}
    heads: dict[str, Any] = {}
    each: list[tuple[str, bytes]] = []
    for v, name in enumerate(net.names[1:], 1):
        private = v.to_bytes(32, "big")
        public[name] = public_of(private)
        origin = Origin(world, checked, net, name, Ed25519Keys(private, {}), 10_000)
        records = origin.records(count // origins)
        size = 256_000 // len(records[0])
        blocks[name] = {
            at: encoded(Take(name, 1, at + 1, records[at : at + size]))
            for at in range(0, len(records), size)
        }
        last = origin._feeds.held(name, 1)
        heads[name] = [(1, last.sequence, last.hash)]
        each += [(name, record) for record in records]
    keys = Ed25519Keys(bytes(32), public)
    node, signatures = [], []
    for _ in range(turns):
        since = time.process_time()
        for name, record in each:
            if not keys.verify(name, record[:-SIGNATURE], record[-SIGNATURE:]):
                raise RuntimeError("a signature does not hold")
        signatures.append(round(time.process_time() - since, 4))
        links = HoldingLinks(blocks, heads)
        node.append(round(asyncio.run(caught_up(checked, net, keys, links, len(each))), 4))
        print(node[-1], signatures[-1], flush=True)
    ratios = [round(a / b, 4) for a, b in zip(node, signatures, strict=True)]
    return {"observations": len(each), "ratios": ratios, "node, s": node,
            "signatures, s": signatures, "bytes a record": len(each[0][1])}  # fmt: skip
