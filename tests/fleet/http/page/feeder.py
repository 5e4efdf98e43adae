"""A node's HTTP interface with made-up data, to look at the page and to test it.

Run as a program, it serves a world that moves until it is interrupted:
`python tests/fleet/http/page/feeder.py --sites 40 --port 8100`.
"""

import argparse
import asyncio
import itertools
import json
import math
import random
import socket
import threading
import time
from collections.abc import AsyncIterator

import msgspec
import networkx as nx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from coopbandits.fleet.api import Arm, Peer, PeersReply, Rewards, SimilarityReply, StatusReply
from coopbandits.fleet.http.answers import encode
from coopbandits.fleet.http.assets import page_folder, read_assets

CITIES = (
    "Aachen", "Bergen", "Cork", "Delft", "Essen", "Fulda", "Ghent", "Halle", "Ioannina", "Jena",
    "Kassel", "Lyon", "Malmö", "Nice", "Oslo", "Porto", "Quimper", "Riga", "Siena", "Turin", "Ulm",
    "Vilnius", "Worms", "Xanten", "York", "Zagreb",
)  # fmt: skip


class World:
    """A node's state as its replies show it; tests set its attributes.

    Attributes:
        graph: The network; the first of `names` is the node.
        worth: K_z of those who are heard.
        estimated_from: From how many observations K_z was estimated; None for all.
        rewards: (n, Σ, Σ of squares) of each group's rewards.
    """

    def __init__(self, names: list[str], edges: list[tuple[str, str]], ttl: int = 2) -> None:
        self.names, self.ttl, self.node = names, ttl, names[0]
        self.graph = nx.Graph(edges)
        self.graph.add_nodes_from(names)
        self.hops = nx.single_source_shortest_path_length(self.graph, self.node)
        self.worth = {n: 0.5 for n in names if n != self.node and self.hops.get(n, 99) <= ttl}
        self.records = dict.fromkeys(names, 0)
        self.last: dict[str, float | None] = dict.fromkeys(names)
        self.behind = dict.fromkeys(self.graph[self.node], 0)
        self.linked = dict.fromkeys(self.graph[self.node], True)
        self.estimated_from: int | None = None
        self.rewards = {group: [0, 0.0, 0.0] for group in ("learner", "control", "baseline")}
        self.control_share = 0.0
        self.refused: dict[str, int] = {}
        self.quarantined: list[str] = []
        self.mode, self.ready, self.agreement = "online", True, None
        self.decisions, self.open_events, self.adoptions = 0, 0, 0
        self.adopted_at: float | None = None
        self.started_at = time.time()
        self.disk_bytes = 81_920

    def status(self) -> dict[str, object]:
        n = sum(self.records.values())
        status = StatusReply(
            fleet="demo", node=self.node, mode=self.mode, ready=self.ready,
            policy="EagerKernelUCB", model_version=f"{self.adoptions}-9f3a", version="0.2.0",
            epoch=1, now=time.time(), started_at=self.started_at, decisions=self.decisions,
            open_events=self.open_events, observations=n, own_records=self.records[self.node],
            adoptions=self.adoptions, learning=self.adoptions % 2 == 1, adopted_at=self.adopted_at,
            rewards=self.arms(), agreement=self.agreement, position=3 * n, synced=3 * n,
            disk_bytes=self.disk_bytes + 300 * n, refused=self.refused,
            quarantined=self.quarantined,
        )  # fmt: skip
        plain = msgspec.to_builtins(status)
        plain["rewards"]["baseline"] = msgspec.to_builtins(arm_of(*self.rewards["baseline"]))
        return {**plain, "control_share": self.control_share}

    def arms(self) -> Rewards:
        learner, control = (arm_of(*self.rewards[group]) for group in ("learner", "control"))
        if learner.mean is None or control.mean is None:
            return Rewards(learner, control, None, None)
        half = None
        if learner.half_width is not None and control.half_width is not None:
            half = math.hypot(learner.half_width, control.half_width)
        return Rewards(learner, control, learner.mean - control.mean, half)

    def peers(self) -> PeersReply:
        peers = [
            Peer(
                name=n, distance=self.hops.get(n), neighbour=n in self.linked,
                linked=self.linked.get(n), heard=n in self.worth, records=self.records[n],
                behind=self.behind.get(n), last_at=self.last[n], worth=self.worth.get(n, 0.0),
            )
            for n in self.names if n != self.node
        ]  # fmt: skip
        edges = [(str(u), str(v)) for u, v in self.graph.edges]
        return PeersReply(self.node, self.ttl, peers, edges)

    def similarity(self) -> SimilarityReply:
        records = sum(self.records.values())
        observations = records if self.estimated_from is None else self.estimated_from
        return SimilarityReply(self.node, True, observations, dict(self.worth))


def arm_of(count: int, total: float, squares: float) -> Arm:
    """Return a group's mean and half of its 95% interval."""
    if not count:
        return Arm(0, None, None)
    mean = total / count
    if count < 2:
        return Arm(count, mean, None)
    variance = max(0.0, squares - count * mean * mean) / (count - 1)
    return Arm(count, mean, 1.96 * math.sqrt(variance / count))


def world_of(sites: int, seed: int = 1) -> World:
    """Return a connected small world of so many sites, with names of towns."""
    rng = random.Random(seed)
    names = [CITIES[i % 26] + (f" {i // 26 + 1}" if i >= 26 else "") for i in range(sites)]
    if sites <= 6:
        pairs = [(i, (i + 1) % sites) for i in range(sites)]
        if sites > 3:
            pairs[-1] = (sites - 2, 0)  # a ring with a tail
            pairs[-2] = (sites - 2, sites - 1)
    else:
        near = nx.soft_random_geometric_graph(sites, 1.9 / math.sqrt(sites), seed=seed)
        parts = [sorted(part) for part in nx.connected_components(near)]
        near.add_edges_from((a[0], b[-1]) for a, b in itertools.pairwise(parts))
        pairs = list(near.edges)
    world = World(names, [(names[u], names[v]) for u, v in pairs])
    world.worth = {n: rng.random() ** 0.7 for n in world.worth}
    return world


class Feeder:
    """Serves a world on loopback; may be stopped and started again at the same port."""

    def __init__(self, world: World, port: int = 0) -> None:
        self.world = world
        self.listeners: set[asyncio.Queue[bytes | None]] = set()
        self.asked: list[str] = []
        self._port = port
        self._server: uvicorn.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/"

    def start(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            self._app(), log_level="critical", ws="none", lifespan="off", http="h11",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, args=(self._server, listener))
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)

    def _run(self, server: uvicorn.Server, listener: socket.socket) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await server.serve([listener])

        asyncio.run(serve())
        listener.close()

    def stop(self) -> None:
        if self._server is None:
            return
        self._tell(None)
        self._server.should_exit = True
        self._thread.join()
        self._server = None

    def note(self, kind: str, **values: object) -> None:
        """Tell all listeners that something happened now."""
        data = json.dumps({"kind": kind, "at": time.time(), **values})
        self._tell(f"data: {data}\n\n".encode())

    def _tell(self, data: bytes | None) -> None:
        def tell() -> None:
            for queue in self.listeners:
                queue.put_nowait(data)

        self._loop.call_soon_threadsafe(tell)

    def reward(self, value: float, group: str = "learner") -> None:
        """Count a reward, and say so."""
        sums = self.world.rewards[group]
        sums[0] += 1
        sums[1] += value
        sums[2] += value * value
        self.note("rewarded", event_id=f"e{sums[0]}", group=group, value=value)

    def _app(self) -> Starlette:
        replies = {
            "/v1/status": self.world.status,
            "/v1/peers": self.world.peers,
            "/v1/similarity": self.world.similarity,
        }

        async def reply(request: Request) -> Response:
            self.asked.append(request.url.path)
            body = encode(replies[request.url.path]())
            return Response(body, media_type="application/json")

        async def notes(request: Request) -> Response:
            return StreamingResponse(self._stream(), media_type="text/event-stream")

        routes = [Route(path, reply) for path in replies] + [Route("/v1/notes", notes)]
        for path, answer in read_assets(page_folder()).items():
            headers = {key.decode(): value.decode() for key, value in answer.headers}
            routes.append(Route(path, _fixed(answer.body, headers)))
        return Starlette(routes=routes)

    async def _stream(self) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.listeners.add(queue)
        try:
            yield b": welcome\n\n"
            while (data := await queue.get()) is not None:
                yield data
        finally:
            self.listeners.discard(queue)


def _fixed(body: bytes, headers: dict[str, str]):
    async def answer(request: Request) -> Response:
        return Response(body, headers=headers)

    return answer


def live(feeder: Feeder, rng: random.Random) -> None:
    """Let one thing happen, as in a fleet that decides some ten times a second."""
    world = feeder.world
    now = time.time()
    kind = rng.random()
    if kind < 0.45:
        group = "control" if rng.random() < 0.1 else "learner"
        world.decisions += 1
        event, chance = f"ev-{world.decisions}", round(rng.random(), 3)
        feeder.note("decided", event_id=event, action=f"model-{rng.randint(1, 4)}", group=group,
                    propensity=chance)  # fmt: skip
        feeder.reward(rng.gauss(0.62 if group == "learner" else 0.5, 0.25), group)
        if group == "learner":
            world.records[world.node] += 1
            world.last[world.node] = now
            own = world.records[world.node]
            feeder.note("recorded", sequence=own, round=own)
            for to in world.linked:
                feeder.note("sent", to=to, origin=world.node, first=own, last=own)
    elif kind < 0.8:
        origin = rng.choice(list(world.worth))
        via = nx.shortest_path(world.graph, world.node, origin)[1]
        first = world.records[origin] + 1
        world.records[origin] += rng.randint(1, 4)
        world.last[origin] = now
        feeder.note("received", via=via, origin=origin, first=first, last=world.records[origin])
    elif kind < 0.84:
        world.adoptions += 1
        world.adopted_at = now
        for name, value in world.worth.items():
            world.worth[name] = min(1.0, max(0.0, value + rng.gauss(0, 0.03)))
        feeder.note("adopted", version=f"{world.adoptions}-9f3a",
                    observations=sum(world.records.values()), worth=world.worth)  # fmt: skip
    elif kind < 0.845:
        reason = rng.choice(["wrong signature", "another policy"])
        world.refused[reason] = world.refused.get(reason, 0) + 1
        feeder.note("refused", reason=reason, neighbour=rng.choice(list(world.linked)))
    world.behind = {name: rng.choice([0, 0, 0, 2]) for name in world.linked}
    world.open_events = rng.randint(3, 30)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the page with made-up data.")
    parser.add_argument("--sites", type=int, default=5)
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--a-second", type=float, default=10)
    given = parser.parse_args()
    feeder = Feeder(world_of(given.sites), given.port)
    feeder.start()
    feeder.world.control_share = 0.1
    rng = random.Random(2)
    try:
        while True:
            live(feeder, rng)
            time.sleep(1 / given.a_second)
    except KeyboardInterrupt:
        feeder.stop()


if __name__ == "__main__":
    main()
