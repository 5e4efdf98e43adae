"""Nodes as processes, for tests: started and ended by their own ids, on loopback."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from coopbandits.fleet.local_fleet import prepared

COOP = [sys.executable, "-m", "coopbandits.cli"]
ENVIRONMENT = {
    **os.environ,
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src"),
}


def free_port():
    """Return a port from which on some are likely to be free, another one for each process."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return 20_000 + (one.getsockname()[1] * 7 + os.getpid() * 31) % 12_000


def fleet(folder, agents=3, policy=None):
    """Prepare a fleet's folder; with a policy's TOML text, for sites on a path."""
    if policy is None:
        return prepared(folder, topology=None, agents=agents, port=free_port())
    names = [f"site-{number}" for number in range(1, agents + 1)]
    folder.parent.mkdir(parents=True, exist_ok=True)
    (folder.parent / "policy.toml").write_text(policy)
    topology = folder.parent / "topology.toml"
    edges = [[a, b] for a, b in pairwise(names)]
    topology.write_text(
        f'fleet = "tests"\npolicy = "policy.toml"\nsites = {names}\nedges = {edges}\n'
    )
    return prepared(folder, topology=topology, agents=None, port=free_port())


def eventually(what, seconds=30.0, every=0.02):
    """Wait until something holds, and return it."""
    until = time.monotonic() + seconds
    while True:
        found = what()
        if found or time.monotonic() > until:
            return found
        time.sleep(every)


class Running:
    """A process with its output in files."""

    def __init__(self, arguments, folder, name, environment=None):
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*COOP, *map(str, arguments)], stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                env=ENVIRONMENT | (environment or {}),
            )  # fmt: skip

    @property
    def pid(self):
        return self.process.pid

    def said(self):
        return self.out.read_text() + self.err.read_text()

    def urls(self):
        return re.findall(r"http://127\.0\.0\.1:\d+", self.said())

    def url(self):
        """Wait for the address at which a node answers."""
        found = eventually(lambda: self.urls() or self.process.poll() is not None)
        assert found not in (False, True), self.said()
        return found[-1]

    def end(self, number=signal.SIGTERM, seconds=30.0):
        """Send a signal, and return the exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        return self.code(seconds)

    def code(self, seconds=30.0):
        return self.process.wait(seconds)


@contextmanager
def running(arguments, folder, name="coop", environment=None):
    """Run a command, and end it at the end of the block, whatever happens in it."""
    one = Running(arguments, folder, name, environment)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(10)


@contextmanager
def node(path, *settings, name=None, environment=None):
    """Run one node by its configuration, at any free port."""
    given = [
        word for text in ("http.port=0", "log_level=info", *settings) for word in ("--set", text)
    ]
    with running(
        ["node", "--config", path, *given], path.parent, name or "node", environment
    ) as one:
        yield one


def greeted(fleet, count):
    """Wait until all nodes are ready, and return their addresses."""
    ready = eventually(lambda: "Ctrl-C stops" in fleet.said() or fleet.process.poll() is not None)
    assert ready is True, fleet.said()
    found = list(dict.fromkeys(fleet.urls()))
    assert len(found) == count, fleet.said()
    return found


def children(pid):
    """Return the ids of a process's children."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def is_alive(pid):
    """Tell whether a process runs, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
