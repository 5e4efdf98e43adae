"""Parts of a node that a benchmark can turn on and off: its learner, and what neighbours send."""

import threading
import time
from collections.abc import Callable
from typing import Any

from coopbandits.fleet.face import Reward


class GatedLearner:
    """A learner that may be told to let tasks wait, as if they took that long."""

    def __init__(self, learner: Any) -> None:
        self._learner, self.open = learner, True
        self._waiting: list[tuple[int, Any]] = []
        self.tasks, self.working, self._since = 0, 0.0, 0.0
        self.running = False

    def start(self, finished: Callable[..., None]) -> None:
        """Begin."""

        def done(number: int, result: Any) -> None:
            self.tasks, self.running = self.tasks + 1, False
            self.working += time.monotonic() - self._since
            finished(number, result)

        self._learner.start(done)

    def submit(self, number: int, task: Any) -> None:
        """Run a task, or keep it."""
        if not self.open:
            self._waiting.append((number, task))
            return
        self.running, self._since = True, time.monotonic()
        self._learner.submit(number, task)

    def turn(self, open_: bool) -> None:
        """Let tasks run from now on, or wait."""
        self.open = open_
        waiting, self._waiting = self._waiting if open_ else [], [] if open_ else self._waiting
        for number, task in waiting:
            self.submit(number, task)

    def close(self) -> None:
        """End."""
        self._learner.close()


def _nobody(neighbour: str, data: bytes) -> None:
    """Receive nothing: links are not up yet."""
    raise AssertionError(f"{neighbour} sends before its link is up")


class FedLinks:
    """Links to neighbours who are not there: what they would send is handed in from a list."""

    def __init__(self, neighbours: list[str]) -> None:
        self._neighbours, self._received = neighbours, _nobody
        self._feeding, self._ended = threading.Event(), threading.Event()
        self.more = False

    def start(self, received: Callable[..., None], linked: Callable[..., None]) -> None:
        """Say that all links are up."""
        self._received = received
        for name in self._neighbours:
            linked(name, True)

    def send(self, neighbour: str, data: bytes) -> None:
        """Drop what the node sends."""

    def push(self, neighbour: str, data: bytes) -> None:
        """Hand a message in at once."""
        self._received(neighbour, data)

    def feed(self, frames: list[tuple[str, bytes]], pace: float) -> None:
        """Hand messages in, one each so many seconds, while feeding is on."""

        def run() -> None:
            for neighbour, data in frames:
                self._feeding.wait()
                if self._ended.wait(pace):
                    return
                self._received(neighbour, data)
            self.more = False

        self.more = True
        threading.Thread(target=run, daemon=True).start()

    def turn(self, on: bool) -> None:
        """Go on, or pause."""
        (self._feeding.set if on else self._feeding.clear)()

    def close(self) -> None:
        """End."""
        self._ended.set()
        self._feeding.set()


class StillFace:
    """A node that answers at once what it answered first: what is left is the HTTP layer."""

    def __init__(self, node: Any) -> None:
        self._node, self._reply = node, None

    async def ask(self, request: Any) -> Any:
        """Answer."""
        if isinstance(request, Reward):
            return None
        if self._reply is None:
            self._reply = await self._node.ask(request)
        return self._reply

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)
