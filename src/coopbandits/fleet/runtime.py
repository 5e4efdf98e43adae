"""A running node: the core joined to its ports, in one event loop.

The core is called from the loop alone. Entries go to the group-commit thread, tasks to the learner,
messages to the links; what comes back from their threads is handed to the loop.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from coopbandits import __version__
from coopbandits.agent.learning import LearningResult
from coopbandits.errors import CoopBanditsError
from coopbandits.fleet.api import (
    DecideManyReply,
    DecideReply,
    EventReply,
    PeersReply,
    SimilarityReply,
    StatusReply,
)
from coopbandits.fleet.core import views
from coopbandits.fleet.core.actions import (
    DAMAGED,
    DISK,
    Action,
    Answer,
    Append,
    Arrived,
    Asked,
    Cut,
    Fit,
    Fitted,
    Input,
    Linked,
    Note,
    Rebuild,
    Recall,
    Send,
    Serve,
    Snapshot,
    Stop,
    Synced,
    SyncFailed,
    Tick,
)
from coopbandits.fleet.core.deciding import reply_of
from coopbandits.fleet.core.entries import Decided, read
from coopbandits.fleet.core.node import NodeCore
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.core.wire import Take, encoded
from coopbandits.fleet.face import RefusedError, Reply, Request
from coopbandits.fleet.ports import (
    DamageError,
    Keys,
    Learner,
    Links,
    Store,
    StoreFullError,
)
from coopbandits.fleet.store.group_commit import GroupCommit

_log = logging.getLogger("coopbandits.fleet")

# Seconds between two ticks.
_TICK = 0.05
# A watcher that does not keep up loses the oldest notes.
_NOTES = 1_000
# What the log for people says of notes.
_SAID = {
    "linked": (logging.INFO, "link with %(neighbour)s: up is %(up)s"),
    "checkpoint": (logging.INFO, "checkpoint of %(origin)s at its record %(sequence)s"),
    "refused": (logging.WARNING, "a message of %(neighbour)s was refused: %(reason)s"),
    "learner": (logging.WARNING, "a learning task failed, and another will be taken: %(error)s"),
    "disk": (logging.ERROR, "the disk is %(state)s; requests are refused until there is room"),
    "epoch": (
        logging.WARNING,
        "neighbours hold records of this node that it has lost; it takes them back, and goes on "
        "in the epoch behind %(lost)s",
    ),
    "quarantined": (
        logging.ERROR,
        "two records of %(origin)s contradict each other (a fork): nothing more is taken from it",
    ),
}


class Node:
    """One node that runs.

    Attributes:
        settings: What it was told.
        core: Its state machine.
        ended: The exit code and the reason, once the core stops by itself.
    """

    def __init__(
        self,
        settings: Settings,
        keys: Keys,
        store: Store,
        links: Links,
        learner: Learner,
        *,
        restored: bool = False,
        clock: Callable[[], float] | None = None,
        tick: float | None = _TICK,
    ) -> None:
        """Join the parts; nothing runs yet.

        Args:
            settings: What the node is told.
            keys: Its own, and the others' public ones.
            store: Its log.
            links: To its neighbours.
            learner: Runs learning tasks.
            restored: Whether the log is a backup.
            clock: Seconds since 1970; unless given, one that goes on evenly within a run, whatever
                is done to the machine's.
            tick: Seconds between two ticks; None for none.
        """
        self.settings = settings
        self._keys, self._store, self._links, self._learner = keys, store, links, learner
        self._restored, self._tick_seconds = restored, tick
        self._began = False  # whether its start, and the epoch that began with it, is durable
        self.now = clock or _steady()
        self.core: NodeCore
        self._commits: GroupCommit | None = None
        self._tickets = 0
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._watchers: list[asyncio.Queue[dict[str, object]]] = []
        self._up: set[str] = set()
        self._generation = 0
        self._fits: deque[tuple[int, int]] = deque()
        self._ticking: asyncio.Task[None] | None = None
        self._stopping = False
        self._refusing: RefusedError | None = None

    async def start(self) -> None:
        """Open the log and begin. Raises what is wrong with it."""
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[tuple[int, str]] = self._loop.create_future()
        self._learner.start(self._learnt)  # first: its process may be forked, before any thread
        self.core = opened(self.settings, self._keys, self._store)
        self._commits = GroupCommit(self._store, self._committed)
        self._started_at = self.now()
        self._do(self.core.start(self.now(), restored=self._restored, version=__version__))
        self._links.start(
            lambda name, data: self._threadsafe(self._arrived, name, data),
            lambda name, up: self._threadsafe(self._linked, name, up),
        )
        if self._tick_seconds is not None:
            self._ticking = asyncio.create_task(self._tick())

    async def stop(self, *, drain: bool = True) -> None:
        """End: answer what is under way, make it durable, and let go of everything."""
        self._stopping = True
        if drain and not self.ended.done():
            waiting = [*self._waiting.values()]
            if waiting:
                await asyncio.wait(waiting, timeout=5.0)
        if self._ticking is not None:
            self._ticking.cancel()
        await asyncio.to_thread(self._links.close)
        await asyncio.to_thread(self._learner.close)
        if drain and not self.ended.done():
            self.core.learning.give_up()
            self._do(self.core.snapshot())
        if self._commits is not None:
            await asyncio.to_thread(self._commits.close, drain)
        self._store.close()

    @property
    def dim(self) -> int | None:
        """How many numbers a context has; None till the first decision or record says so."""
        return self.core.agent._inbox.dim

    # What users ask (`face.Face`).

    async def ask(self, request: Request) -> Reply:
        """Carry a request out; when this returns, all of it is durable."""
        if self._stopping or self.ended.done():
            raise RefusedError("stopping", "the node is stopping; try again", retry_after=1.0)
        if self._refusing is not None:
            raise self._refusing
        self._tickets += 1
        ticket, future = self._tickets, self._loop.create_future()
        self._waiting[ticket] = future
        self._handle(Asked(ticket, request))
        try:
            return await future
        finally:
            self._waiting.pop(ticket, None)

    def event(self, event_id: str) -> EventReply:
        """Return what became of an event."""
        return self.core.events.reply(self.core.events.find(event_id))

    def status(self) -> StatusReply:
        """Return how the node is."""
        return views.status(
            self.core,
            ready=not self._stopping and not self.ended.done() and self._refusing is None,
            version=__version__,
            started_at=self._started_at,
            disk=self._store.disk_bytes,
            now=self.now(),
        )

    def peers(self) -> PeersReply:
        """Return all sites as the node sees them."""
        return views.peers(self.core)

    def similarity(self) -> SimilarityReply:
        """Return whom the node trusts."""
        return views.similarity(self.core)

    def log(self, after: int, most: int) -> Iterator[dict[str, object]]:
        """Yield closed events as records of a log."""
        return views.log(self.core, self._store, after, most)

    async def notes(self) -> AsyncIterator[dict[str, object]]:
        """Yield what happens as it happens."""
        queue: asyncio.Queue[dict[str, object]] = asyncio.Queue(_NOTES)
        self._watchers.append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.remove(queue)

    # What happens.

    def _handle(self, event: Input) -> None:
        if not self.ended.done():
            self._do(self.core.handle(event, self.now()))

    async def _tick(self) -> None:
        assert self._tick_seconds is not None
        while not self.ended.done():
            await asyncio.sleep(self._tick_seconds)
            self._handle(Tick())

    def _threadsafe(self, call: Callable[..., None], *given: Any) -> None:
        """Let the loop call something; nothing if it has ended."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *given)

    def _arrived(self, name: str, data: bytes) -> None:
        self._handle(Arrived(name, data))

    def _linked(self, name: str, up: bool) -> None:
        (self._up.add if up else self._up.discard)(name)
        self._handle(Linked(name, up))

    def _learnt(self, number: int, result: LearningResult | Exception) -> None:
        self._threadsafe(self._fitted, number, result)

    def _fitted(self, number: int, result: LearningResult | Exception) -> None:
        generation, fit = self._fits.popleft() if self._fits else (-1, number)
        if generation == self._generation and fit == number:
            self._handle(Fitted(number, result))

    def _committed(self, position: int, error: Exception | None) -> None:
        self._threadsafe(self._synced, self._generation, position, error)

    def _synced(self, generation: int, position: int, error: Exception | None) -> None:
        self._began |= error is None
        if generation != self._generation:
            return
        if error is None:
            self._handle(Synced(position))
        else:
            self._handle(SyncFailed(isinstance(error, StoreFullError), str(error)))

    # What is to be done.

    def _do(self, actions: list[Action]) -> None:
        assert self._commits is not None
        for action in actions:
            if isinstance(action, Append):
                self._commits.put(action.entries)
            elif isinstance(action, Answer):
                self._answer(action.ticket, action.reply)
            elif isinstance(action, Note):
                self._note(action)
            elif isinstance(action, Send):
                self._links.send(action.neighbour, action.data)
            elif isinstance(action, Serve):
                self._serve(action)
            elif isinstance(action, Fit):
                self._fits.append((self._generation, action.number))
                self._learner.submit(action.number, action.task)
            elif isinstance(action, Recall):
                self._recall(action)
            elif isinstance(action, Snapshot):
                self._commits.put_snapshot(action.position, action.data)
            elif isinstance(action, Cut):
                self._commits.cut(action.before, {(o, e): last for o, e, last in action.feeds})
            elif isinstance(action, Rebuild):
                self._rebuild(action.reason)
            elif isinstance(action, Stop):
                self._end(action.code, action.reason)

    def _answer(self, ticket: int, reply: Reply | RefusedError) -> None:
        future = self._waiting.get(ticket)
        if future is None or future.done():
            return
        if isinstance(reply, RefusedError):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def _recall(self, action: Recall) -> None:
        replies: list[DecideReply] = []
        for position in action.positions:
            stored = self._store.entry(position)
            entry = None if stored is None else read(stored, position)
            if not isinstance(entry, Decided):
                gone = RefusedError("event-expired", "the event has expired: its entry was cut")
                self._answer(action.ticket, gone)
                return
            replies.append(reply_of(entry))
        self._answer(action.ticket, DecideManyReply(replies) if action.many else replies[0])

    def _serve(self, action: Serve) -> None:
        records = self._store.records(
            action.origin, action.epoch, action.first, action.last, action.most_bytes
        )
        if not records:
            return
        message = Take(action.origin, action.epoch, action.first, records)
        self._links.send(action.neighbour, encoded(message, action.version))
        last = action.first + len(records) - 1
        fields = {"origin": action.origin, "first": action.first, "last": last}
        self._note(Note("sent", {"to": action.neighbour, **fields}))

    def _note(self, note: Note) -> None:
        if note.kind in _SAID:
            level, text = _SAID[note.kind]
            _log.log(level, text, note.fields)
        if not self._watchers:
            return
        said = {"kind": note.kind, "at": self.now(), **note.fields}
        for queue in self._watchers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(said)

    def _rebuild(self, reason: str) -> None:
        """Make the core anew from the log: the disk was full, and what was done is not in it."""
        assert self._commits is not None
        self._generation += 1
        self._refusing = RefusedError(
            "disk-full", f"{reason}; free some space: the node goes on by itself", retry_after=5.0
        )
        self._note(Note("disk", {"state": "full"}))
        for future in [*self._waiting.values()]:
            if not future.done():
                future.set_exception(self._refusing)
        self._loop.call_later(1.0, self._reopen)

    def _reopen(self) -> None:
        if self._stopping or self.ended.done():
            return
        assert self._commits is not None
        try:
            self.core = opened(self.settings, self._keys, self._store)
        except CoopBanditsError as error:
            self._end(DAMAGED if isinstance(error, DamageError) else DISK, str(error))
            return
        self._commits.resume()
        self._refusing = None
        restored = self._restored and not self._began
        self._do(self.core.start(self.now(), restored=restored, version=__version__))
        for name in sorted(self._up):
            self._handle(Linked(name, True))

    def _end(self, code: int, reason: str) -> None:
        if self.ended.done():
            return
        _log.critical("%s", reason)
        self.ended.set_result((code, reason))
        refused = RefusedError("stopping", f"the node stops: {reason}")
        for future in [*self._waiting.values()]:
            if not future.done():
                future.set_exception(refused)


def _steady() -> Callable[[], float]:
    wall, began = time.time(), time.monotonic()
    return lambda: wall + time.monotonic() - began
