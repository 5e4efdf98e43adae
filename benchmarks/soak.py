"""Does a fleet go on for an hour without growing, and without losing anything?

    make soak                                       # an hour
    python -m benchmarks.soak --minutes 10

`coop up` with five nodes; a client each, the project's own, asks for decisions at a bounded rate
and rewards nine in ten of them. Each node's resident memory is sampled. At the end every reward
that was acknowledged must stand in its node's log, once and with its value, no recent decision may
be unknown, and every node must hold all records of all others (γ = 2 on a circle of five).
The report goes to benchmarks/results/soak.json; the exit code is 1 if anything was lost or is not
held everywhere, or if a node's memory grew by more than 5% after the first tenth. Memory is judged
in runs of ten minutes or more: what a process allocates at first takes longer than a tenth of less.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.fleet import results
from benchmarks.fleet.running import environment
from benchmarks.fleet.starting import Fleet

from coopbandits.errors import CoopBanditsError
from coopbandits.fleet.client import Client, ClientError

Facts = dict[str, Any]
AGENTS, DIM, ACTIONS = 5, 5, 4
FLAT, JUDGED = 1.05, 10.0
REWARDED = 0.9
# Bounds of a node that are full within the first tenth of even a short run.
BOUNDS = {"COOP_EVENTS_TTL": 30, "COOP_EVENTS_MOST": 500, "COOP_LOG_CHECKPOINT_EVERY": 500}


class Load(threading.Thread):
    """Asks one node for decisions, and rewards them.

    Attributes:
        rewards: Acknowledged, by event.
        open: Events of decisions that were acknowledged, and never rewarded.
        unsure: Events whose reward was sent and not acknowledged.
        errors: What calls failed with.
    """

    def __init__(self, number: int, url: str, rate: float, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._rng, self._url, self._pause = np.random.default_rng(number), url, 1 / rate
        self._theta, self._stop_it = np.random.default_rng(number % 2).normal(size=DIM), stop
        self.rewards: dict[str, float] = {}
        self.open: list[str] = []
        self.unsure: list[str] = []
        self.errors: list[str] = []
        self.slowest = 0.0

    def run(self) -> None:
        """Go on until told to stop."""
        due = time.monotonic()
        with Client(self._url) as client:
            while not self._stop_it.is_set():
                due = max(due + self._pause, time.monotonic() - 1.0)
                try:
                    self._once(client)
                except CoopBanditsError as error:
                    self.errors.append(f"{type(error).__name__}: {error}"[:300])
                    time.sleep(0.5)
                self._stop_it.wait(max(0.0, due - time.monotonic()))

    def _once(self, client: Client) -> None:
        X, since = self._rng.normal(size=(ACTIONS, DIM)), time.monotonic()
        decision = client.decide({f"a{i}": x for i, x in enumerate(X.tolist())})
        self.slowest = max(self.slowest, time.monotonic() - since)
        if self._rng.random() >= REWARDED:
            self.open.append(decision.event_id)
            return
        x = X[int(decision.action[1:])]
        value = round(float(self._theta @ x + 0.3 * self._rng.normal()), 6)
        try:
            client.reward(decision.event_id, value)
        except CoopBanditsError:
            self.unsure.append(decision.event_id)
            raise
        self.rewards[decision.event_id] = value


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, the oldest first."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return sorted(int(one) for one in text.split())


def resident(pid: int) -> float:
    """Return a process's resident memory, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def missing(load: Load, url: str) -> Facts:
    """Compare what was acknowledged with what a node's log says."""
    found: dict[str, list[float]] = {}
    unknown = 0
    # Of these the node still knows that they were, whatever else it has forgotten.
    newest = load.open[-BOUNDS["COOP_EVENTS_MOST"] // 20 :]
    with Client(url) as client:
        for record in client.log():
            found.setdefault(record["event_id"], []).append(record["reward"])
        for event in newest:
            try:
                client.event(event)
            except ClientError as error:
                unknown += error.kind != "event-expired"
    lost = [event for event, value in load.rewards.items() if found.get(event) != [value]]
    more = set(found) - set(load.rewards) - set(load.unsure)
    return {"acknowledged": len(load.rewards), "lost, or not as sent": len(lost),
            "never sent": len(more), "open": len(load.open),
            "open, looked at": len(newest), "open and unknown": unknown,
            "unsure": len(load.unsure), "errors": load.errors[:20],
            "slowest decide, s": round(load.slowest, 3)}  # fmt: skip


def held(urls: dict[str, str], loads: dict[str, Load]) -> bool:
    """Wait until all nodes hold all records; tell whether they do."""
    until = time.monotonic() + 60
    clients = {name: Client(url) for name, url in urls.items()}
    while time.monotonic() < until:
        own = {name: client.status().own_records for name, client in clients.items()}
        others = [
            peer.records == own[peer.name]
            for client in clients.values()
            for peer in client.peers().peers
        ]
        enough = [own[name] >= len(load.rewards) for name, load in loads.items()]
        if all(others) and all(enough):
            return True
        time.sleep(0.5)
    return False


def flatness(samples: list[float]) -> Facts:
    """Return how memory grew after the first tenth: medians of tenths beside the second's."""
    tenths = [median(part) for part in np.array_split(samples, 10) if len(part)]
    least = max(tenths[1:]) / tenths[1] if len(tenths) > 1 else 1.0
    return {"tenths, MB": [round(one, 1) for one in tenths], "growth": round(least, 4)}


def soak(minutes: float, rate: float, settings: Facts) -> Facts:
    """Run the fleet under load, and look at what is left."""
    machine = results.machine()
    told = {name: str(value) for name, value in settings.items()}
    with tempfile.TemporaryDirectory() as name:
        coop: list[str | Path] = [sys.executable, "-m", "coopbandits.cli"]
        fleet = Fleet(coop, Path(name) / "fleet", AGENTS, environment() | told)
        try:
            fleet.wait()
            stop = threading.Event()
            loads = {
                site: Load(number, url, rate, stop)
                for number, (site, url) in enumerate(fleet.urls.items())
            }
            pids = dict(zip(sorted(fleet.urls), children(fleet.pid)[:AGENTS], strict=True))
            memory: dict[str, list[float]] = {site: [] for site in fleet.urls}
            for load in loads.values():
                load.start()
            until = time.monotonic() + 60 * minutes
            while (left := until - time.monotonic()) > 0:
                for site, pid in pids.items():
                    memory[site].append(resident(pid))
                stop.wait(min(left, 60 * minutes / 400))
            stop.set()
            for load in loads.values():
                load.join(60)
            everywhere = held(fleet.urls, loads)
            nodes = {
                site: missing(load, fleet.urls[site]) | flatness(memory[site])
                for site, load in loads.items()
            }
        finally:
            code = fleet.stop()
    return {
        "minutes": minutes,
        "decisions a second and node": rate,
        "settings": settings,
        "machine": machine | {"load after": os.getloadavg()[0]},
        "records are held everywhere": everywhere,
        "exit code of coop up": code,
        "nodes": nodes,
    }


def faults(found: Facts) -> list[str]:
    """Return what a report says that must not be, in words."""
    said = []
    for site, node in found["nodes"].items():
        for kind in ("lost, or not as sent", "never sent", "open and unknown"):
            if node[kind]:
                said.append(f"{site}: {node[kind]} events {kind}")
        if found["minutes"] >= JUDGED and node["growth"] > FLAT:
            said.append(f"{site}: memory grew by {100 * (node['growth'] - 1):.1f}%")
    if not found["records are held everywhere"]:
        said.append("not all records are held everywhere")
    if found["exit code of coop up"]:
        said.append(f"coop up ended with {found['exit code of coop up']}")
    return said


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=20.0, help="decisions a second and node")
    parser.add_argument("--file", type=Path, default=results.RESULTS / "soak.json")
    options = parser.parse_args()
    found = soak(options.minutes, options.rate, dict(BOUNDS))
    for key, value in found.items():
        results.keep(options.file, key, value)
    lost = sum(
        node["lost, or not as sent"] + node["never sent"] + node["open and unknown"]
        for node in found["nodes"].values()
    )
    growth = max(node["growth"] for node in found["nodes"].values())
    print(json.dumps(found["nodes"], indent=1))
    acknowledged = sum(node["acknowledged"] for node in found["nodes"].values())
    print(
        f"{acknowledged} rewards acknowledged, {lost} events lost; memory grew by at most "
        f"{100 * (growth - 1):.1f}% after the first tenth; all records "
        f"{'are' if found['records are held everywhere'] else 'ARE NOT'} held everywhere"
    )
    wrong = faults(found)
    print("\n".join(wrong) or "nothing is wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
