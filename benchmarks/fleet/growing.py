"""Does a node grow with what it hears? Its core over a real log, in time that is only counted.

python -m benchmarks.fleet.growing '{"messages": [100000, 1000000], …}'
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.fleet.running import ROOT, environment
from benchmarks.fleet.world import ACTIONS, ME, Origin, World

import coopbandits as cb
from coopbandits.fleet.api import Action, DecideRequest
from coopbandits.fleet.core.actions import (
    Append,
    Arrived,
    Asked,
    Cut,
    Fit,
    Fitted,
    Linked,
    Snapshot,
    Synced,
)
from coopbandits.fleet.core.node import NodeCore
from coopbandits.fleet.core.settings import RewardRules, Settings
from coopbandits.fleet.face import Decide, Reward
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.store.sqlite import SqliteStore

Facts = dict[str, Any]
GROWING = {
    "full": {"messages": [100_000, 1_000_000], "every": 100_000},
    "small": {"messages": [300, 900], "every": 300},
}
# Small enough that all of it is full long before the first mark.
RULES: dict[str, Any] = {"ttl": 1000.0, "most": 1000}
SETTINGS: dict[str, Any] = {
    "pace": 250.0,
    "checkpoint_every": 1000,
    "snapshot_every": 2000,
    "keep_entries": 5000,
}
ROUNDS = 4  # that are taken between two syncs, as under load


def growing(settings: Facts) -> Facts:
    """Resident memory and log of a node that hears six others, γ = 2, in a process of its own.

    Three neighbours and three sites behind them, a record of each a round, in blocks of four; one
    decision in ten is never rewarded. Core, SQLite log, checkpoints and cuts are the node's; time
    is counted (1 s a round) and signatures are hashes. Bounds that are full before the first mark:
    1,000 events known for 1,000 s, a checkpoint each 1,000 records, 5,000 entries kept, a state
    each 2,000; K_z is estimated each 250 s.
    """
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.fleet.growing", json.dumps(settings)],
        check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env=environment(),
    )  # fmt: skip
    found: Facts = json.loads(answer.stdout.splitlines()[-1])
    return found


def resident() -> int:
    """Return this process's resident bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Life:
    """A node's core with its log, and the sites that it hears."""

    def __init__(self, folder: Path) -> None:
        names = [ME, *(f"site{v}" for v in range(1, 7))]
        edges = [(ME, names[v]) for v in (1, 2, 3)] + [(names[v], names[v + 3]) for v in (1, 2, 3)]
        network = cb.Network.from_edges(edges, names=names)
        policy = cb.EagerKernelUCB(
            cb.kernels.Linear(), similarity=cb.similarity.Evidence(), ttl=2, eta=0.3
        )
        told = Settings(
            fleet="bench", name=ME, network=network, policy=policy, heads_wait=0.0,
            rewards=RewardRules(**RULES), **SETTINGS,
        )  # fmt: skip
        self.core, self.store = NodeCore(told, HashKeys(ME)), SqliteStore(folder, identity=ME)
        self.world, self.now, self.rounds, self.heard = World(7, 5), 1.0, 0, 0
        self.cuts = self.tasks = 0
        every = int(SETTINGS["checkpoint_every"])
        self.origins = [
            Origin(self.world, told.policy, network, one, HashKeys(one), every) for one in names[1:]
        ]
        self.via = {one: names[1 + (v - 1) % 3] for v, one in enumerate(names[1:], 1)}
        self.do(self.core.start(0.0))
        for name in names[1:4]:
            self.do(self.core.handle(Linked(name, True), self.now))

    def do(self, actions: list[Any]) -> None:
        """Carry out what the core asks for, and what follows."""
        entries = [entry for one in actions if isinstance(one, Append) for entry in one.entries]
        more = []
        if entries:
            more += self.core.handle(Synced(self.store.append(entries)), self.now)
        for one in actions:
            if isinstance(one, Snapshot):
                self.store.put_snapshot(one.position, one.data)
            elif isinstance(one, Cut):
                self.cuts += 1
                self.store.cut(one.before, {(o, e): last for o, e, last in one.feeds})
            elif isinstance(one, Fit):
                self.tasks += 1
                more += self.core.handle(Fitted(one.number, one.task.run()), self.now)
        if more:
            self.do(more)

    def go_on(self) -> None:
        """Take some rounds, and a block of each site."""
        actions = []
        for _ in range(ROUNDS):
            self.now, self.rounds = self.now + 1.0, self.rounds + 1
            X = self.world.sphere(ACTIONS)
            offered = [Action(f"a{i}", x) for i, x in enumerate(X.tolist())]
            request = DecideRequest(offered, event_id=f"d{self.rounds}")
            actions += self.core.handle(Asked(self.rounds, Decide(request)), self.now)
            if self.world.rng.random() >= 0.1:
                reward = Reward(f"d{self.rounds}", float(self.world.rng.normal()))
                actions += self.core.handle(Asked(0, reward), self.now)
        for origin in self.origins:
            for data in origin.checkpointed(ROUNDS):
                actions += self.core.handle(Arrived(self.via[origin.name], data), self.now)
            self.heard += ROUNDS
        self.do(actions)

    def facts(self) -> Facts:
        """Return what it takes, after what one state covers was cut by the next."""
        for _ in range(2):
            self.do(self.core.snapshot())
        return {
            "resident": resident(),
            "log": self.store.disk_bytes,
            "entries": self.store.position + 1 - self.store.first,
            "rounds": self.rounds,
            "events known": len(self.core.events.known),
            "cuts": self.cuts,
            "tasks": self.tasks,
            "refused": dict(self.core.exchange.refused),
            "known": self.core.agent.known,
        }


def live(folder: Path, settings: Facts) -> Facts:
    """Let a node live until it has heard so much."""
    life, marks = Life(folder), Facts()
    next_mark, since = settings["every"], (time.perf_counter(), time.process_time())
    while life.heard < settings["messages"][-1]:
        life.go_on()
        if life.heard >= next_mark:
            seconds = time.perf_counter() - since[0], time.process_time() - since[1]
            took = {"seconds": round(seconds[0], 1), "cpu seconds": round(seconds[1], 1)}
            marks[str(next_mark)] = life.facts() | took
            print(next_mark, marks[str(next_mark)], file=sys.stderr, flush=True)
            next_mark += settings["every"]
    life.store.close()
    return {"marks": marks, "messages": settings["messages"]}


def main() -> None:
    """Be the process."""
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(live(Path(folder), json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
