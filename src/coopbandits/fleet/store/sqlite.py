"""The durable log over SQLite: one folder a node, one transaction an append.

WAL with `synchronous=FULL`: a commit returns when its frames are synced, and only then do readers
see it. All of the log is verified when it is opened (`integrity.py`). After any failure but a full
disk nothing more is written: what a failed sync left in the disk's cache is not known, and SQLite
itself would go on.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from coopbandits.errors import CoopBanditsError, ParameterError, StateError
from coopbandits.fleet.ports import Entry, StoredRecord, StoreError, StoreFullError
from coopbandits.fleet.store.chain import chain, check_batch, pack, references_of, twice
from coopbandits.fleet.store.cutting import cut_in_steps, give_back_pages
from coopbandits.fleet.store.folder import LOG, MARK, RESTORED, bytes_of, lock, sync_folder
from coopbandits.fleet.store.integrity import Tally, inspect, snapshot_hash
from coopbandits.fleet.store.mark import MarkFile, create as create_mark, read as read_mark
from coopbandits.fleet.store.reading import Reader
from coopbandits.fleet.store.schema import (
    UNREADABLE,
    Meta,
    connect,
    create,
    damaged,
    is_empty,
    read_failed,
    settle,
)

# SQLite checkpoints every 1000 pages; a log that grows past this was held up by a reader.
_WAL_BYTES = 64 * 2**20


class SqliteStore:
    """A node's log in a folder of its own.

    Args:
        folder: Where it stands; made, if it is not there.
        identity: Whose log it is; another node's is refused.
        most_bytes: How large the log may become before appends are refused as on a full disk.
    """

    def __init__(self, folder: Path, *, identity: str, most_bytes: int | None = None) -> None:
        self.folder = folder
        self._path = folder / LOG
        self._writing = threading.RLock()
        self._broken: str | None = None
        self._closed = False
        self._wal = folder / f"{LOG}-wal"
        self._wal_tried = 0
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = lock(folder)
        except OSError as error:
            raise StoreError(f"{folder} cannot be used as a node's folder: {error}") from error
        try:
            tally = self._open(identity, most_bytes)
        except (CoopBanditsError, OSError):
            os.close(self._lock)
            raise
        self._meta: Meta = tally.meta
        self._position, self._chain = tally.position, tally.chain
        self._damaged_snapshots = tally.damaged_snapshots

    def _open(self, identity: str, most_bytes: int | None) -> Tally:
        mark = self.folder / MARK
        made = mark.exists()
        if made and not (self._path.exists() and self._path.stat().st_size > 0):
            raise damaged(self._path, "it is missing or empty, but its mark is there")
        self._writer = connect(self._path)
        try:
            settle(self._writer)
            if not made and is_empty(self._writer):
                create(self._writer, identity)
            tally = inspect(self._writer, self._path, read_mark(mark) if made else None)
            if tally.meta.identity != identity:
                raise StateError(
                    f"{self.folder} holds the log of {tally.meta.identity!r}, but "
                    f"{identity!r} was to open it; give each node a folder of its own"
                )
            if not made:
                if tally.position:
                    raise damaged(mark, "it is missing, but the log has entries")
                create_mark(mark, 0, tally.chain)
                sync_folder(self.folder)
            if most_bytes is not None:
                (size,) = self._writer.execute("PRAGMA page_size").fetchone()
                self._writer.execute(f"PRAGMA max_page_count = {max(1, most_bytes // size)}")
            self._writer.execute("DELETE FROM meta WHERE 0")  # what may not be written says so now
            self._mark = MarkFile(mark)
            self._reader = Reader(self._path)
        except UNREADABLE as error:
            self._writer.close()
            raise read_failed(self._path, error) from error
        except (CoopBanditsError, OSError):
            self._writer.close()
            raise
        return tally

    @property
    def position(self) -> int:
        """The position of the last entry; 0 if there is none."""
        return self._position

    @property
    def first(self) -> int:
        """The position of the first entry that was not cut; `position + 1` if there is none."""
        return self._meta.first

    @property
    def disk_bytes(self) -> int:
        """What log, write-ahead log and mark take on disk."""
        return bytes_of(self.folder)

    @property
    def restored(self) -> bool:
        """Whether the log came from a backup, and no new epoch has begun since."""
        return (self.folder / RESTORED).exists()

    def clear_restored(self) -> None:
        """Say that a new epoch has begun, durably."""
        (self.folder / RESTORED).unlink(missing_ok=True)
        sync_folder(self.folder)

    def append(self, batch: Sequence[Entry]) -> int:
        """Write entries in one transaction, make them durable, and return the new position."""
        check_batch(batch)
        with self._writing:
            self._check_usable()
            if not batch:
                return self._position
            position, last = self._position, self._chain
            entries, records = [], []
            for entry in batch:
                position += 1
                found = references_of(position, entry.records)
                references = pack(found)
                last = chain(last, entry.kind, entry.body, references)
                entries.append((position, entry.kind, entry.body, references, last))
                for (*key, digest), record in zip(found, entry.records, strict=True):
                    records.append((*key, position, digest, record.data))
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                insert = "INSERT INTO entries VALUES (?, ?, ?, ?, ?)"
                self._writer.executemany(insert, entries)
                insert = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)"
                self._writer.executemany(insert, records)
                self._writer.execute("COMMIT")
            except sqlite3.IntegrityError as error:
                self._roll_back()
                raise twice(self._first_kept(batch)) from error
            except sqlite3.Error as error:
                raise self._failed(error) from error
            try:
                self._mark.write(position, last)
            except OSError as error:
                raise self._failed(error) from error
            self._position, self._chain = position, last
            self._bound_wal()
            return position

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Yield entries behind a position, in order, with those of their records that are kept."""
        return self._reader.entries(after)

    def entry(self, position: int) -> Entry | None:
        """Return one entry; None if it was cut."""
        return self._reader.entry(position)

    def records(
        self, origin: str, epoch: int, first: int, last: int, most_bytes: int
    ) -> list[bytes]:
        """Return the records of a feed from one sequence to another, up to a size; at least one."""
        return self._reader.records(origin, epoch, first, last, most_bytes)

    def put_snapshot(self, position: int, data: bytes) -> None:
        """Keep a snapshot of the state behind a position, and drop all but the last two."""
        with self._writing:
            self._check_usable()
            if not 0 <= position <= self._position:
                raise ParameterError(
                    f"a snapshot must stand at a position of the log, 0 … {self._position}, got "
                    f"{position}"
                )
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                drop = "DELETE FROM snapshots WHERE position = ?"
                self._writer.executemany(drop, [(at,) for at in self._damaged_snapshots])
                self._writer.execute(
                    "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)",
                    (position, data, snapshot_hash(position, data)),
                )
                self._writer.execute(
                    "DELETE FROM snapshots WHERE position NOT IN "
                    "(SELECT position FROM snapshots ORDER BY position DESC LIMIT 2)"
                )
                self._writer.execute("COMMIT")
            except sqlite3.Error as error:
                raise self._failed(error) from error
            self._damaged_snapshots = ()
            self._bound_wal()

    def snapshots(self) -> list[tuple[int, bytes]]:
        """Return the snapshots that are whole, the newest first."""
        return self._reader.snapshots()

    def cut(self, before: int, feeds: Mapping[tuple[str, int], int]) -> None:
        """Drop entries before a position, and of each feed (origin, epoch) some records.

        It goes in steps, each a transaction: a process killed in between leaves less cut than it
        was asked to.
        """
        before = min(before, self._position + 1)
        with self._writing:
            self._check_usable()
            try:
                self._mark.sync()  # so that the mark never lies before the cut
                for meta in cut_in_steps(self._writer, self._meta, before, feeds):
                    self._meta = meta
                    self._bound_wal()
            except (sqlite3.Error, OSError) as error:
                raise self._failed(error) from error
            try:
                give_back_pages(self._writer)
            except sqlite3.Error as error:
                failure = self._failed(error)
                if not isinstance(failure, StoreFullError):  # freed pages are used again anyway
                    raise failure from error
            self._bound_wal()

    def close(self) -> None:
        """Let go of files."""
        with self._writing:
            if self._closed:
                return
            self._closed = True
            if self._broken is None:
                with suppress(OSError):  # the mark may lag
                    self._mark.sync()
            self._mark.close()
            self._reader.close()
            self._writer.close()
            os.close(self._lock)

    def _bound_wal(self) -> None:
        """Take the write-ahead log into the log where SQLite's own checkpoints fell behind.

        What was committed is durable without it, so a failure stops only what comes after.
        """
        try:
            size = os.stat(self._wal).st_size
        except FileNotFoundError:
            return
        if size < max(_WAL_BYTES, self._wal_tried):
            self._wal_tried = 0
            return
        self._wal_tried = size + _WAL_BYTES // 4
        with self._reader.held():
            try:
                self._writer.execute("PRAGMA busy_timeout = 0").fetchall()
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._writer.execute("PRAGMA busy_timeout = 5000").fetchall()
            except sqlite3.Error as error:
                self._failed(error)

    def _failed(self, error: sqlite3.Error | OSError) -> StoreError:
        """Undo a transaction, and say why it failed. Only a full disk leaves the store usable."""
        self._roll_back()
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF == sqlite3.SQLITE_FULL:
            return StoreFullError(
                f"no room is left for {self._path}: {error}; nothing was written, free some space "
                "and try again"
            )
        self._broken = f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
        return self._unusable()

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # SQLite has rolled back where this fails
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _first_kept(self, batch: Sequence[Entry]) -> StoredRecord:
        seen = set()
        query = "SELECT 1 FROM records WHERE origin = ? AND epoch = ? AND sequence = ?"
        for record in (record for entry in batch for record in entry.records):
            key = (record.origin.encode(), record.epoch, record.sequence)
            if key in seen or self._writer.execute(query, key).fetchall():
                return record
            seen.add(key)
        raise AssertionError("a row was refused, but no record is kept twice")

    def _unusable(self) -> StoreError:
        return StoreError(
            f"{self._path} cannot be written any more: {self._broken}; stop the node, look at the "
            "disk, and start it again"
        )

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self._path} was closed; open it again to use it")
        if self._broken is not None:
            raise self._unusable()
