"""The tables of a log, format 1, and how SQLite is set to keep them.

| table | row |
|---|---|
| `entries` | an entry: its position, kind and body, the references of its records, its chain |
| `records` | a record of a feed under (origin, epoch, sequence), its entry's position, its digest |
| `snapshots` | a snapshot under its position, and its hash |
| `meta` | one row: whose log it is, where it was cut, the chain there, the balance, their hash |

`records` has no rowid: one tree holds keys and bytes, so a scan in the order of the keys sees all
that a search would see. The format's number is SQLite's `user_version`.
"""

import sqlite3
import struct
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from coopbandits.errors import StateError
from coopbandits.fleet.ports import DamageError, StoreError
from coopbandits.fleet.store.chain import DIGEST_BYTES, Balance, genesis

FORMAT = 1
# What reading a damaged log raises; sqlite3 cannot decode messages that quote what is no UTF-8.
UNREADABLE = (sqlite3.Error, OverflowError, UnicodeDecodeError)
_DISK = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_READONLY,
)
_TABLES = {
    "entries": (
        "CREATE TABLE entries (position INTEGER PRIMARY KEY, kind INTEGER NOT NULL, "
        "body BLOB NOT NULL, refs BLOB NOT NULL, chain BLOB NOT NULL)"
    ),
    "records": (
        "CREATE TABLE records (origin BLOB NOT NULL, epoch INTEGER NOT NULL, "
        "sequence INTEGER NOT NULL, position INTEGER NOT NULL, digest BLOB NOT NULL, "
        "data BLOB NOT NULL, PRIMARY KEY (origin, epoch, sequence)) WITHOUT ROWID"
    ),
    "snapshots": (
        "CREATE TABLE snapshots (position INTEGER PRIMARY KEY, data BLOB NOT NULL, "
        "hash BLOB NOT NULL)"
    ),
    "meta": (
        "CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), identity BLOB NOT NULL, "
        "first INTEGER NOT NULL, chain BLOB NOT NULL, count INTEGER NOT NULL, "
        "total BLOB NOT NULL, hash BLOB NOT NULL)"
    ),
}


@dataclass(frozen=True, slots=True)
class Meta:
    """Whose log it is, and where it was cut.

    Attributes:
        identity: The node's, as it was given when the log was made.
        first: The position of the first entry that was not cut.
        chain: The chain before that entry.
        balance: Of records and references.
    """

    identity: str
    first: int
    chain: bytes
    balance: Balance

    def row(self) -> tuple[bytes, int, bytes, int, bytes, bytes]:
        """Write it down, with its hash."""
        identity, total = self.identity.encode(), self.balance.total.to_bytes(DIGEST_BYTES, "big")
        return (identity, self.first, self.chain, self.balance.count, total, self._hash())

    def _hash(self) -> bytes:
        numbers = struct.pack(">qq", self.first, self.balance.count)
        total = self.balance.total.to_bytes(DIGEST_BYTES, "big")
        content = numbers + self.chain + total + self.identity.encode()
        return blake2b(content, digest_size=32).digest()


def create(connection: sqlite3.Connection, identity: str) -> None:
    """Make the tables of an empty log, all or none."""
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.values():
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    meta = Meta(identity, 1, genesis(identity), Balance())
    connection.execute("INSERT INTO meta VALUES (1, ?, ?, ?, ?, ?, ?)", meta.row())
    connection.execute("COMMIT")


def is_empty(connection: sqlite3.Connection) -> bool:
    """Tell whether no table was ever made."""
    return connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a log of another format, and tables that are not those of this one."""
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    if number > FORMAT:
        raise StateError(
            f"{path} has format {number}, but this version of coopbandits reads formats up to "
            f"{FORMAT}; use the version that wrote it or a newer one"
        )
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    expected = {("table", name, statement) for name, statement in _TABLES.items()}
    if number != FORMAT or len(rows) != len(expected) or set(rows) != expected:
        raise damaged(path, "its tables are not those of a log")


def read_meta(connection: sqlite3.Connection, path: Path) -> Meta:
    """Read the row of `meta`."""
    query = "SELECT identity, first, chain, count, total, hash FROM meta"
    rows = connection.execute(query).fetchall()
    try:
        (row,) = rows
        identity, first, chain, count, total, _ = row
        meta = Meta(identity.decode(), first, chain, Balance(count, int.from_bytes(total, "big")))
        whole = meta.row() == row
    except (ValueError, TypeError, AttributeError, OverflowError, struct.error):
        whole = False
    if not whole:
        raise damaged(path, "the row that says whose log it is and where it was cut is not whole")
    return meta


def write_meta(connection: sqlite3.Connection, meta: Meta) -> None:
    """Write the row of `meta`, within a transaction."""
    connection.execute(
        "UPDATE meta SET identity = ?, first = ?, chain = ?, count = ?, total = ?, hash = ?",
        meta.row(),
    )


def damaged(path: Path, what: str) -> DamageError:
    """Say where a log is damaged, and what to do."""
    return DamageError(
        f"{path} is damaged: {what}; restore a backup of the folder, or let the node start empty "
        "under a new name"
    )


def read_failed(path: Path, error: Exception) -> DamageError | StoreError:
    """Say why a log could not be read: the disk, or what stands on it."""
    primary = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if primary in _DISK:
        return StoreError(f"{path} cannot be used: {error}; look at the disk and at its rights")
    return damaged(path, f"SQLite cannot read it ({error})")


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a log. Transactions are begun and ended by hand.

    Reading only, a log without a write-ahead log is taken as immutable, so that nothing is written
    beside it.
    """
    address = path.absolute().as_uri()
    if read_only:
        wal = path.with_name(f"{path.name}-wal")
        whole = not wal.exists() or wal.stat().st_size == 0
        address += "?immutable=1" if whole else "?mode=ro"
    return sqlite3.connect(
        address, uri=True, isolation_level=None, check_same_thread=False, timeout=5.0
    )


def settle(connection: sqlite3.Connection) -> None:
    """Set a connection that writes: each commit is synced before it returns."""
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 1000")
    connection.execute("PRAGMA cache_size = -8192")
