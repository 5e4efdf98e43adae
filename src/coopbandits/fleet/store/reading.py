"""Reading a log while another thread writes it, over a connection of its own.

Every read is short: a reader that stands still would keep the write-ahead log from being taken
into the log. What is read is what was synced, since a commit is seen only after its sync.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coopbandits.fleet.ports import Entry, StoredRecord, StoreError
from coopbandits.fleet.store.chain import unpack
from coopbandits.fleet.store.integrity import read_snapshots
from coopbandits.fleet.store.schema import UNREADABLE, connect, read_failed

_ROWS = 64
_ENTRIES = "SELECT position, kind, body, refs FROM entries WHERE "
_RANGE = (
    "SELECT sequence, data, position FROM records "
    "WHERE origin = ? AND epoch = ? AND sequence BETWEEN ? AND ? ORDER BY sequence"
)


class Reader:
    """Reads entries, records and snapshots of a log; any thread may call it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._closed = False
        self._connection = connect(path)
        self._connection.execute("PRAGMA query_only = 1")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let nobody read meanwhile."""
        with self._lock:
            yield

    def entries(self, after: int) -> Iterator[tuple[int, Entry]]:
        """Yield entries behind a position, in order, with those of their records that are kept."""
        while rows := self._entries("position > ? ORDER BY position LIMIT ?", after):
            yield from rows
            after = rows[-1][0]

    def entry(self, position: int) -> Entry | None:
        """Return one entry; None if it is not there."""
        rows = self._entries("position = ? LIMIT ?", position)
        return rows[0][1] if rows else None

    def records(
        self, origin: str, epoch: int, first: int, last: int, most_bytes: int
    ) -> list[bytes]:
        """Return successive records of a feed, up to a size; at least one."""
        found: list[bytes] = []
        with self._reads() as connection:
            cursor = connection.execute(_RANGE, (origin.encode(), epoch, first, last))
            for sequence, data, _ in cursor:
                most_bytes -= len(data)
                if sequence != first + len(found) or (found and most_bytes < 0):
                    break
                found.append(data)
            cursor.close()
        return found

    def snapshots(self) -> list[tuple[int, bytes]]:
        """Return the snapshots that are whole, the newest first."""
        with self._reads() as connection:
            kept = list(read_snapshots(connection))
        return [(position, data) for position, data in kept if data is not None]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._closed = True
            self._connection.close()

    @contextmanager
    def _reads(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise StoreError(f"{self._path} was closed; open it again to use it")
            try:
                yield self._connection
            except UNREADABLE as error:
                raise read_failed(self._path, error) from error

    def _entries(self, where: str, number: int) -> list[tuple[int, Entry]]:
        with self._reads() as connection:
            rows = connection.execute(_ENTRIES + where, (number, _ROWS)).fetchall()
            return [
                (at, Entry(kind, body, self._records_of(at, references) if references else ()))
                for at, kind, body, references in rows
            ]

    def _records_of(self, position: int, references: bytes) -> tuple[StoredRecord, ...]:
        found: list[StoredRecord] = []
        for run in unpack(references):
            end = run.first + len(run.digests) - 1
            rows = self._connection.execute(_RANGE, (run.origin, run.epoch, run.first, end))
            name = run.origin.decode()
            found += [
                StoredRecord(name, run.epoch, sequence, data)
                for sequence, data, at in rows
                if at == position
            ]
        return tuple(found)
