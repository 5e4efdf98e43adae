"""Integrity of a log: that all of it is what was written, in one pass over each table.

SQLite checks the structure of its trees (`quick_check`), and not their content. So:

- every entry's chain follows from the one before and its own bytes, from the cut to the end;
- the mark is not ahead of the log, and its chain is the log's at its position;
- every record has its digest, keys ascend strictly, and the sum of digests less that of the
  references is the balance kept in `meta`;
- a snapshot has its hash. One that has not is left out: it is an index of what entries say.
"""

import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from coopbandits.fleet.ports import DamageError
from coopbandits.fleet.store.chain import Balance, chain, record_digest, unpack
from coopbandits.fleet.store.mark import Mark
from coopbandits.fleet.store.schema import (
    UNREADABLE,
    Meta,
    check_format,
    damaged,
    read_failed,
    read_meta,
)

_ENTRIES = "SELECT position, kind, body, refs, chain FROM entries ORDER BY position"
_RECORDS = (
    "SELECT origin, epoch, sequence, position, digest, data FROM records "
    "ORDER BY origin, epoch, sequence"
)
# What hashing raises where a column is not of the type that was written.
_OTHER_TYPE = (TypeError, ValueError, OverflowError, struct.error)


@dataclass(frozen=True, slots=True)
class Tally:
    """What a log that is whole holds.

    Attributes:
        meta: Its row of `meta`.
        position: The position of the last entry.
        chain: The chain there.
        entries: How many entries were not cut.
        records: How many records there are.
        snapshots: The snapshots that are whole, the newest first.
        damaged_snapshots: The positions of those that are not.
    """

    meta: Meta
    position: int
    chain: bytes
    entries: int
    records: int
    snapshots: tuple[int, ...]
    damaged_snapshots: tuple[int, ...]


def inspect(connection: sqlite3.Connection, path: Path, mark: Mark | None) -> Tally:
    """Read all of a log, and raise `DamageError` at the first place that is not as written."""
    connection.execute("BEGIN")  # one state of the log for all that is read
    try:
        check_format(connection, path)
        meta = read_meta(connection, path)
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise damaged(path, f"SQLite's check of its structure says: {verdict}")
        balance, position, last = _entries(connection, path, meta, mark)
        balance, records = _records(connection, path, balance, position)
        if balance != meta.balance:
            raise damaged(
                path, "the records in its index are not all of those that came with its entries"
            )
        whole, broken = _snapshots(connection)
    except UNREADABLE as error:
        raise read_failed(path, error) from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    count = position + 1 - meta.first
    return Tally(meta, position, last, count, records, tuple(whole), tuple(broken))


def _entries(
    connection: sqlite3.Connection, path: Path, meta: Meta, mark: Mark | None
) -> tuple[Balance, int, bytes]:
    """Follow the chain; return minus the balance of references, the last position and its chain."""
    position, last = meta.first - 1, meta.chain
    count = total = 0
    if mark is not None and mark.position == position and mark.chain != last:
        raise _other(path, position)
    for at, kind, body, references, kept in connection.execute(_ENTRIES):
        position += 1
        if at != position:
            raise damaged(path, f"entry {position} is missing; the next one is {at}")
        try:
            last = chain(last, kind, body, references)
        except _OTHER_TYPE as error:
            raise damaged(path, f"entry {position} is no entry") from error
        if last != kept:
            raise damaged(path, f"entry {position} is not what was written (its chain differs)")
        if mark is not None and mark.position == position and mark.chain != last:
            raise _other(path, position)
        if references:
            for run in unpack(references):
                count += len(run.digests)
                total += sum(int.from_bytes(digest, "big") for digest in run.digests)
    if mark is not None and mark.position > position:
        raise damaged(
            path,
            f"it ends at entry {position}, but {mark.position} entries were synced: the log was "
            "rolled back or lost in part",
        )
    return Balance(-count, -total % 2**128), position, last


def _other(path: Path, position: int) -> DamageError:
    return damaged(
        path, f"entry {position} is not the one that was synced: log and mark are of two histories"
    )


def _records(
    connection: sqlite3.Connection, path: Path, balance: Balance, last: int
) -> tuple[Balance, int]:
    """Check every record; return the balance of records and references, and how many there are."""
    count = total = 0
    before: tuple[bytes, int, int] | None = None
    for origin, epoch, sequence, position, digest, data in connection.execute(_RECORDS):
        key = (origin, epoch, sequence)
        try:
            ordered = before is None or before < key
            whole = record_digest(position, origin, epoch, sequence, data) == digest
        except _OTHER_TYPE as error:
            raise damaged(path, f"the record behind {_named(before)} is no record") from error
        if not whole or not ordered or position > last:
            raise damaged(path, f"{_named(key)} is not what was written")
        count += 1
        total += int.from_bytes(digest, "big")
        before = key
    return Balance(balance.count + count, (balance.total + total) % 2**128), count


def _named(key: tuple[bytes, int, int] | None) -> str:
    if key is None:
        return "the start of the index"
    origin, epoch, sequence = key
    return f"record {sequence} of {origin.decode(errors='replace')!r} in epoch {epoch}"


def _snapshots(connection: sqlite3.Connection) -> tuple[list[int], list[int]]:
    whole: list[int] = []
    broken: list[int] = []
    for position, data in read_snapshots(connection):
        (broken if data is None else whole).append(position)
    return whole, broken


def read_snapshots(connection: sqlite3.Connection) -> Iterator[tuple[int, bytes | None]]:
    """Yield snapshots, the newest first; None in the place of one that is damaged."""
    query = "SELECT position, data, hash FROM snapshots ORDER BY position DESC"
    for position, data, kept in connection.execute(query):
        whole = isinstance(data, bytes) and snapshot_hash(position, data) == kept
        yield position, data if whole else None


def snapshot_hash(position: int, data: bytes) -> bytes:
    """Return the hash of a snapshot under its position."""
    return blake2b(struct.pack(">q", position) + data, digest_size=32).digest()
