"""Group commit: one thread that writes whatever has queued up in one transaction.

Entries, snapshots and cuts are jobs in one queue and are carried out in its order. After a failure
all that is queued is dropped, since it followed from what was lost, and nothing is taken until
`resume`: whoever drives the node first works out from the log what is true.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from coopbandits.fleet.ports import Entry, Store

Finished = Callable[[int, Exception | None], None]
_Upkeep = Callable[[], None]


class GroupCommit:
    """Writes to a store from a thread of its own.

    Args:
        store: Which; while this is open nothing else may write to it.
        finished: Called in the thread with the position up to which entries are durable, and what
            went wrong: after a failure, the position is the one before it.
    """

    def __init__(self, store: Store, finished: Finished) -> None:
        self._store, self._finished = store, finished
        self._jobs: deque[Sequence[Entry] | _Upkeep] = deque()
        self._changed = threading.Condition()
        self._queued = 0
        self._halted = self._closing = False
        self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """How many entries wait, those that are being written among them."""
        return self._queued

    @property
    def halted(self) -> bool:
        """Whether a job has failed, and all is dropped until `resume`."""
        return self._halted

    def put(self, entries: Sequence[Entry]) -> None:
        """Queue entries that belong together, and return at once."""
        if entries:
            self._put(tuple(entries), len(entries))

    def put_snapshot(self, position: int, data: bytes) -> None:
        """Queue a snapshot of the state behind a position."""
        self._put(lambda: self._store.put_snapshot(position, data), 0)

    def cut(self, before: int, feeds: Mapping[tuple[str, int], int]) -> None:
        """Queue a cut of entries before a position, and of feeds up to a sequence."""
        kept = dict(feeds)
        self._put(lambda: self._store.cut(before, kept), 0)

    def resume(self) -> None:
        """Take jobs again after a failure."""
        with self._changed:
            self._halted = False

    def close(self, drain: bool = True) -> None:
        """End the thread, after what is queued or without it. The store stays open."""
        with self._changed:
            self._closing = True
            if not drain:
                self._drop()
            self._changed.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _put(self, job: Sequence[Entry] | _Upkeep, entries: int) -> None:
        with self._changed:
            if self._halted or self._closing:
                return
            self._jobs.append(job)
            self._queued += entries
            self._changed.notify()

    def _drop(self) -> None:
        self._jobs.clear()
        self._queued = 0

    def _take(self) -> list[Entry] | _Upkeep | None:
        """Wait for the next snapshot or cut, or all entries that are queued before one."""
        with self._changed:
            while not self._jobs and not self._closing:
                self._changed.wait()
            if not self._jobs:
                return None
            group: list[Entry] = []
            while self._jobs and not callable(self._jobs[0]):
                job = self._jobs.popleft()
                assert not callable(job)
                group += job
            if group:
                return group
            upkeep = self._jobs.popleft()
            assert callable(upkeep)
            return upkeep

    def _run(self) -> None:
        while (job := self._take()) is not None:
            before = self._store.position
            try:
                if callable(job):
                    job()
                    continue
                position = self._store.append(job)
            except Exception as error:  # whatever it was, nothing may be written after it
                with self._changed:
                    self._halted = True
                    self._drop()
                self._finished(before, error)
                continue
            with self._changed:
                self._queued = max(0, self._queued - len(job))
            self._finished(position, None)
