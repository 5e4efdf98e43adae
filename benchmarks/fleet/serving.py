"""What a decision costs over HTTP: beside a learner that works, and beside FastAPI."""

import tempfile
import time
from typing import Any

from benchmarks.fleet.running import ROOT, Running
from benchmarks.fleet.wire import (
    Wire,
    closed_loop,
    decide_body,
    decided,
    percentiles,
    rewarded,
)
from benchmarks.fleet.world import ME, World

Facts = dict[str, Any]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
DECIDE = {
    "full": {"cases": [["star", 60, 2], ["star", 200, 2], ["complete", 200, 1]],
             "turns": 6, "decisions": 250, "pace": 0.004, "every": 0.005},
    "small": {"cases": [["star", 5, 2]], "turns": 1, "decisions": 5, "pace": 0.0, "every": 0.005},
}  # fmt: skip
# As nodes learn unless they are told otherwise: a task each 0.2 s.
PACED = {
    "full": {**DECIDE["full"], "cases": [["star", 60, 2], ["star", 200, 2]], "task pace": 0.2},
    "small": {**DECIDE["small"], "task pace": 0.2},
}
FASTAPI = {
    "full": {"turns": 20, "decisions": 150, "warm up": 200},
    "small": {"turns": 2, "decisions": 5, "warm up": 3},
}
CLIENTS = {
    "full": {"connections": [8, 32], "seconds": 3.0, "turns": 3},
    "small": {"connections": [2], "seconds": 0.2, "turns": 1},
}


def turn(wire: Wire, world: World, decisions: int, pace: float) -> None:
    """Ask for decisions and reward them, one after the other."""
    for _ in range(decisions):
        event = decided(wire, decide_body(world))
        rewarded(wire, event, float(world.rng.standard_normal()))
        if pace:
            time.sleep(pace)


def decide(settings: Facts) -> Facts:
    """CPU of `decide` over HTTP, the learner busy and off in turns, while records of others come.

    One process: node, SQLite log, process learner (a task follows the other at once, each estimates
    K_z). A record of another site comes every 5 ms as a signed block, through links in memory.
    """
    found: Facts = {}
    for network, agents, ttl in settings["cases"]:
        turns, count = settings["turns"], settings["decisions"]
        most_seconds = 2 * turns * count * (settings["pace"] + 0.06) + 20
        config = {
            "network": network, "agents": agents, "ttl": ttl, "policy": "evidence", "name": ME,
            "pace": settings.get("task pace", 0.0), "every": settings["every"],
            "fed": int(most_seconds / settings["every"]),
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as folder, Running({**config, "folder": folder}) as node:
            world, wire = World(agents, 1), Wire(node.ports["coop"])
            node.ask("turn", True)
            turn(wire, world, max(3, count // 5), settings["pace"])  # caches, the first hypotheses
            times: dict[str, list[list[float]]] = {"off": [], "busy": []}
            lasted = tasks = working = 0.0
            node.ask("spent")
            for number in range(2 * turns):
                busy = number % 2 == 1
                while node.ask("rest"):
                    time.sleep(0.01)
                before = node.ask("spent")
                node.ask("turn", busy)
                since = time.perf_counter()
                turn(wire, world, count, settings["pace"])
                after = node.ask("spent")
                times["busy" if busy else "off"] += after["spent"]["coop"]
                if busy:
                    lasted += time.perf_counter() - since
                    tasks += after["tasks"] - before["tasks"]
                    working += after["working"] - before["working"]
            wire.close()
            if not after["fed"]:
                raise RuntimeError("the records of the others ran out before the decisions")
        found[f"{network}|{agents}"] = {
            **{mode: sides(each) for mode, each in times.items()},
            "tasks": tasks,
            "share of time learning": min(1.0, working / lasted),
        }
        print(f"{agents} agents ({network}) are measured", flush=True)
    return found


def paced(settings: Facts) -> Facts:
    """CPU of `decide` as above, with a learning task each 0.2 s, as is the default.

    Each task estimates K_z.
    """
    return decide(settings)


def sides(times: list[list[float]]) -> Facts:
    """Return percentiles of CPU of the process, of the loop's thread, and of wall clock time."""
    cpu, thread, wall = (list(each) for each in zip(*times, strict=True))
    found = {"cpu": percentiles(cpu), "thread": percentiles(thread), "wall": percentiles(wall)}
    return found | {"raw cpu, µs": [round(1e6 * one) for one in cpu]}


def fastapi(settings: Facts) -> Facts:
    """CPU of `decide` over HTTP beside FastAPI: one process, one node, a port each, in turns.

    Learner off, nobody heard; the server is uvicorn with the same h11 connection both times. "At
    once" is a node that answers what it answered first, without agent and log: the HTTP layer.
    """
    if not PEERS.exists():
        raise SystemExit("the peers are not installed: run `make bench-fleet`, which does it")
    config = {"network": "path", "agents": 2, "ttl": 1, "policy": "known", "name": ME,
              "pace": 1e9, "fastapi": True}  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as folder,
        Running({**config, "folder": folder}, PEERS) as node,
    ):
        world = World(2, 1)
        wires = {name: Wire(port) for name, port in node.ports.items()}
        for wire in wires.values():
            turn(wire, world, settings["warm up"], 0.0)
        node.ask("spent")
        cpu: dict[str, list[float]] = {name: [] for name in sorted(wires)}
        thread: dict[str, list[float]] = {name: [] for name in sorted(wires)}
        for number in range(settings["turns"]):
            for name in sorted(wires, reverse=number % 2 == 1):
                turn(wires[name], world, settings["decisions"], 0.0)
            for name, each in node.ask("spent")["spent"].items():
                cpu[name].append(round(1e6 * sum(one[0] for one in each) / len(each), 1))
                thread[name].append(round(1e6 * sum(one[1] for one in each) / len(each), 1))
        for wire in wires.values():
            wire.close()
    return {"mean cpu, µs": cpu, "of the loop's thread": thread}


def clients(settings: Facts) -> Facts:
    """Requests a second through a whole node: decide and reward in closed loops, learner at work.

    Of these each is durable before it is answered, and two make three entries.
    """
    config = {"network": "path", "agents": 2, "ttl": 1, "policy": "known", "name": ME}
    found: Facts = {}
    with tempfile.TemporaryDirectory() as folder, Running({**config, "folder": folder}) as node:
        port = node.ports["coop"]

        def made(number: int) -> Any:
            wire, world = Wire(port), World(2, number)
            bodies = [decide_body(world) for _ in range(50)]
            count = 0

            def step() -> None:
                nonlocal count
                count += 1
                rewarded(wire, decided(wire, bodies[count % 50]), 0.5)

            return step

        for connections in settings["connections"]:
            rates = [
                round(2 * closed_loop(connections, settings["seconds"], made), 1)
                for _ in range(settings["turns"])
            ]
            found[str(connections)] = {"requests a second": rates}
    return found
