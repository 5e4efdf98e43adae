"""The nodes of a fleet on this machine: one process each, started again when one dies.

The nodes are forked from one process that has loaded everything, which takes a tenth of the time.
It has no threads, and so must not use Zenoh itself. When it ends, however that is, so do they.
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType

from coopbandits.errors import CoopBanditsError
from coopbandits.fleet.configuration import read_configuration
from coopbandits.fleet.process import exit_code, run
from coopbandits.fleet.runtime import Node

# Core loads these when it first needs them, which every node does before it is ready: loaded here,
# they are loaded once.
_LOADED = ("scipy.sparse", "scipy.sparse.csgraph")
# Exit codes after which a node is not started again: there is something to be mended.
_FINAL = (0, 2, 3, 4, 5)
_DRAIN = 20.0
_LOOK = 0.2
_BACKOFF = 0.5
_LONGEST = 10.0


@dataclass(frozen=True, slots=True)
class Ready:
    """A node takes requests: at which port, and how many numbers a context has, once known."""

    port: int
    dim: int | None


@dataclass(slots=True)
class Supervised:
    """One node.

    Attributes:
        name: Of its site.
        path: Of its configuration.
        process: Which runs it; None while it waits to be started again.
        ready: Once it takes requests.
        since: When it was ready.
        failures: How often in a row it failed before it was ready, or soon after.
        again: When it is started again.
        code: With which exit code it ended for good.
    """

    name: str
    path: Path
    process: ForkProcess | None = None
    pipe: Connection | None = None
    ready: Ready | None = None
    since: float = 0.0
    failures: int = 0
    again: float = 0.0
    code: int | None = None

    @property
    def settled(self) -> bool:
        """Whether its first start has come to something."""
        return self.ready is not None or self.code is not None or self.failures > 0


@dataclass(slots=True)
class Supervisor:
    """Starts nodes, and keeps them running until it is told to stop.

    Args:
        nodes: By site, the path of its configuration.
        say: What becomes of them, in lines.
    """

    nodes: dict[str, Path]
    say: Callable[[str], None]
    _all: list[Supervised] = field(default_factory=list)
    _others: list[ForkProcess] = field(default_factory=list)
    _stopping: bool = False

    def run(self, on_ready: Callable[[dict[str, Ready]], None]) -> int:
        """Run all nodes; return 0 if they were told to stop, else the exit code of one that failed.

        Args:
            on_ready: Is told which take requests, once each does, has ended for good, or has
                failed to start; not if none does.
        """
        self._all = [Supervised(name, path) for name, path in self.nodes.items()]
        told = False
        with _signals(self.stop):
            for module in _LOADED:
                import_module(module)
            gc.freeze()  # so that the children share what is loaded
            try:
                while not self._stopping and any(one.code is None for one in self._all):
                    self._start_due()
                    self._look()
                    ready = {one.name: one.ready for one in self._all if one.ready is not None}
                    if not told and ready and all(one.settled for one in self._all):
                        told = True
                        on_ready(ready)
            finally:
                self._end()
        return 0 if self._stopping else max(one.code or 0 for one in self._all)

    def stop(self) -> None:
        """Let `run` end all nodes, and return."""
        self._stopping = True

    def beside(self, target: Callable[[], None]) -> None:
        """Run something in a process of its own, which is ended with the nodes."""
        process = ForkProcess(target=_apart, args=(target,), daemon=True)
        process.start()
        self._others.append(process)

    def _start_due(self) -> None:
        for one in self._all:
            if one.process is None and one.code is None and time.monotonic() >= one.again:
                one.pipe, theirs = Pipe(duplex=False)
                one.process = ForkProcess(target=_be, args=(one.path, theirs, os.getpid()))
                one.process.start()
                theirs.close()

    def _look(self) -> None:
        """Wait a moment for a node to be ready, or to end."""
        by_pipe = {one.pipe: one for one in self._all if one.process is not None and one.pipe}
        by_end = {one.process.sentinel: one for one in self._all if one.process is not None}
        for found in wait([*by_pipe, *by_end], _LOOK):
            if isinstance(found, int):
                self._ended(by_end[found])
            elif isinstance(found, Connection):
                one = by_pipe[found]
                try:
                    one.ready = found.recv()
                    one.since = time.monotonic()
                except EOFError:
                    one.pipe = None

    def _ended(self, one: Supervised) -> None:
        assert one.process is not None
        one.process.join()
        code, one.process, one.pipe = one.process.exitcode, None, None
        if self._stopping:
            return
        if code in _FINAL:
            one.code = code
            self.say(f"node {one.name} ended with exit code {code}; see what it said above")
            return
        killed = code is not None and code < 0
        lived = one.ready is not None and time.monotonic() - one.since > _LONGEST
        one.failures = 0 if killed or lived else one.failures + 1
        pause = min(_LONGEST, _BACKOFF * 2**one.failures)
        one.again, one.ready = time.monotonic() + pause, None
        how = f"was killed by signal {-(code or 0)}" if killed else f"failed with code {code}"
        self.say(f"node {one.name} {how}; it is started again in {pause:g} s")

    def _end(self) -> None:
        running = [one.process for one in self._all if one.process is not None]
        for process in self._others:
            process.kill()
        for process in running:
            process.terminate()
        until = time.monotonic() + _DRAIN
        for process in running:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


def _be(path: Path, pipe: Connection, parent: int) -> None:
    """Be a node, in a process that was forked for it."""
    _default_signals()

    def ready(port: int, node: Node) -> None:
        pipe.send(Ready(port, node.dim))
        pipe.close()

    try:
        configuration = read_configuration(path, os.environ)
    except CoopBanditsError as error:
        sys.stderr.write(f"coop node: {error}\n")
        sys.exit(exit_code(error))
    sys.exit(run(configuration, on_ready=ready, learner="fork", parent=parent))


def _apart(target: Callable[[], None]) -> None:
    _default_signals()
    target()


def _default_signals() -> None:
    """Ctrl-C reaches all processes of a terminal; the supervisor says when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    def told(number: int, frame: FrameType | None) -> None:
        stop()

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
