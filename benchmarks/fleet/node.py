"""A node in a process of its own, told what to do by lines of JSON (`running.py`).

Its server notes for each decision what it cost: CPU seconds of the process and of the loop's
thread, and wall clock seconds, from the first byte in to the answer's last byte out.
"""

import asyncio
import gc
import json
import logging
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.fleet import world as worlds
from benchmarks.fleet.stand_ins import FedLinks, GatedLearner, StillFace
from benchmarks.fleet.world import Origin, World

from coopbandits.fleet.core.settings import RewardRules, Settings
from coopbandits.fleet.http import server
from coopbandits.fleet.http.app import make_app
from coopbandits.fleet.http.connections import BoundedConnection
from coopbandits.fleet.keys import Ed25519Keys, public_of
from coopbandits.fleet.learner import ProcessLearner
from coopbandits.fleet.links.zenoh import ZenohLinks
from coopbandits.fleet.runtime import Node
from coopbandits.fleet.store.sqlite import SqliteStore

Facts = dict[str, Any]
Frames = list[tuple[str, bytes]]


class Timed(BoundedConnection):
    """A connection that notes what decisions cost, by the server's port."""

    spent: ClassVar[dict[int, list[tuple[float, ...]]]] = {}
    since: tuple[float, ...] | None = None

    def data_received(self, data: bytes) -> None:
        """Begin to count with a request's first byte."""
        if self.since is None:
            self.since = _clocks()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """End with the answer."""
        since, self.since = self.since, None
        super().on_response_complete()
        if since is not None and self.scope["path"] == "/v1/decide" and self.server is not None:
            took = tuple(b - a for a, b in zip(since, _clocks(), strict=True))
            self.spent.setdefault(self.server[1] or 0, []).append(took)


def _clocks() -> tuple[float, ...]:
    return time.process_time(), time.thread_time(), time.perf_counter()


class Measured:
    """The node with its parts, and what it is told."""

    def __init__(self, config: Facts) -> None:
        network = worlds.network(config["network"], config["agents"])
        policy = worlds.policy(config["policy"], config["ttl"], config["agents"])
        name, private = config["name"], bytes.fromhex(config.get("private", "07" * 32))
        public = {site: bytes.fromhex(key) for site, key in config.get("public", {}).items()}
        self._config, self._received = config, list[tuple[int, float]]()
        settings = Settings(
            fleet="bench", name=name, network=network, policy=policy,
            pace=config.get("pace", 0.2), heads_wait=config.get("heads_wait", 0.2),
            rewards=RewardRules(ttl=600.0),
        )  # fmt: skip
        near = [network.names[v] for v in network.neighbours(network.index(name)).tolist()]
        self._first, self._later = Frames(), Frames()
        self._links: Any
        if "listen" in config:
            ends = config["listen"]
            peers = {site: ends[site] for site in near}
            self._links = ZenohLinks("bench", name, ends[name], peers)
        else:
            self._links = FedLinks(near)
            self._make_frames(settings, near, public)
        self._learner = GatedLearner(ProcessLearner())
        keys = Ed25519Keys(private, {**public, name: public_of(private)})
        store = SqliteStore(Path(config["folder"]), identity=name)
        self.node = Node(settings, keys, store, self._links, self._learner)

    def _make_frames(self, settings: Settings, near: list[str], public: dict[str, bytes]) -> None:
        """Make what others send, at the beginning and later; and their keys."""
        config, network = self._config, settings.network
        world, origins = World(config["agents"], 0), []
        for v, name in enumerate(network.names[1:], start=1):
            private = v.to_bytes(32, "big")
            public[name] = public_of(private)
            keys = Ed25519Keys(private, {})
            origins.append(Origin(world, settings.policy, network, name, keys, 10_000))
        if not config.get("fed"):
            return

        def via(one: Origin) -> str:
            return one.name if one.name in near else near[0]

        self._first = [(via(one), one.take(12)) for one in origins]
        later = [origins[i % len(origins)] for i in range(config["fed"])]
        self._later = [(via(one), one.take(1)) for one in later]

    async def start(self) -> None:
        """Start it, and hand in what others have sent."""
        await self.node.start()
        for neighbour, data in self._first:
            self._links.push(neighbour, data)
        if self._later:
            self._links.feed(self._later, self._config["every"])

    async def watch(self) -> None:
        """Note when records of an origin were applied."""
        async for one in self.node.notes():
            if one["kind"] == "received" and one["origin"] == self._config.get("watch"):
                self._received.append((int(str(one["last"])), time.monotonic()))

    def answer(self, ports: dict[str, int], command: str, *given: Any) -> Any:
        """Do what is said."""
        learner, links = self._learner, self._links
        if command == "turn":
            learner.turn(given[0])
            links.turn(True)
        elif command == "rest":
            links.turn(False)
            return learner.running
        elif command == "spent":
            found = {name: Timed.spent.pop(port, []) for name, port in ports.items()}
            more = {"tasks": learner.tasks, "working": learner.working}
            return {"spent": found, **more, "fed": getattr(links, "more", False)}
        elif command == "received":
            return self._received
        elif command == "linked":
            return all(one.answered for one in self.node.core.exchange.neighbours.values())
        return None

    async def stop(self) -> None:
        """End it."""
        self._learner.turn(False)
        await self.node.stop()


@asynccontextmanager
async def served(apps: dict[str, Any]) -> AsyncIterator[dict[str, int]]:
    """Serve applications, each at a port of its own."""
    stop, ports, tasks = asyncio.Event(), dict[str, int](), []
    try:
        for name, app in apps.items():
            port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            job = server.serve(
                app, "127.0.0.1", 0, on_started=port.set_result, stop=stop, drain=1.0
            )
            tasks.append(asyncio.create_task(job))
            ports[name] = await port
        yield ports
    finally:
        stop.set()
        await asyncio.gather(*tasks)


async def main(config: Facts) -> None:
    """Run a node until its input ends."""
    logging.getLogger("coopbandits.fleet").setLevel(logging.ERROR)  # each link that comes up
    server.__dict__["BoundedConnection"] = Timed  # what it makes of each connection
    measured = Measured(config)
    await measured.start()
    gc.freeze()  # as `coop node` does
    faces: dict[str, Any] = {"": measured.node, " at once": StillFace(measured.node)}
    apps = {f"coop{what}": make_app(face) for what, face in faces.items()}
    if config.get("fastapi"):
        from benchmarks.fleet import fastapi_app  # noqa: PLC0415 (of the peers' environment)

        apps |= {f"fastapi{what}": fastapi_app.make(face) for what, face in faces.items()}
    watching = asyncio.create_task(measured.watch())
    async with served(apps) as ports:
        print(json.dumps(ports), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(measured.answer(ports, *json.loads(line))), flush=True)
        watching.cancel()
    await measured.stop()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
