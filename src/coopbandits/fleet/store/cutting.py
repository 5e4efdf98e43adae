"""Cutting a log: drop entries that a snapshot covers and records that a checkpoint covers.

Each step is one transaction of bounded size, in which rows go and `meta` follows: where the log
begins, the chain there, and the balance of records and references.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import replace

from coopbandits.fleet.store.chain import unpack
from coopbandits.fleet.store.schema import Meta, write_meta

_ROWS = 2000
# Free pages kept for the next appends, rather than given back to the file system.
_PAGES_KEPT = 256
_FEED = "FROM records WHERE origin = ? AND epoch = ? AND sequence <= ?"


def cut_in_steps(
    connection: sqlite3.Connection, meta: Meta, before: int, feeds: Mapping[tuple[str, int], int]
) -> Iterator[Meta]:
    """Drop entries, then records of feeds up to a sequence each; yield `meta` after each step.

    In this order, so that no entry that is left lacks records because of a process that was killed.
    """
    while meta.first < before:
        rows = connection.execute(
            "SELECT position, refs, chain FROM entries WHERE position < ? "
            f"ORDER BY position LIMIT {_ROWS}",
            (before,),
        ).fetchall()
        runs = (run for _, references, _ in rows for run in unpack(references))
        balance = meta.balance.plus(digest for run in runs for digest in run.digests)
        last, _, chain = rows[-1]
        meta = replace(meta, first=last + 1, chain=chain, balance=balance)
        _drop(connection, meta, "DELETE FROM entries WHERE position <= ?", (last,))
        yield meta
    for (origin, epoch), sequence in feeds.items():
        key = (origin.encode(), epoch)
        while rows := connection.execute(
            f"SELECT sequence, digest {_FEED} ORDER BY sequence LIMIT {_ROWS}", (*key, sequence)
        ).fetchall():
            meta = replace(meta, balance=meta.balance.minus(digest for _, digest in rows))
            _drop(connection, meta, f"DELETE {_FEED}", (*key, rows[-1][0]))
            yield meta


def give_back_pages(connection: sqlite3.Connection) -> None:
    """Shorten the file by pages that a cut has freed, some at a time."""
    while True:
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        if free <= _PAGES_KEPT:
            return
        pages = min(free - _PAGES_KEPT, _ROWS)
        connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()


def _drop(
    connection: sqlite3.Connection, meta: Meta, statement: str, values: tuple[object, ...]
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(statement, values)
    write_meta(connection, meta)
    connection.execute("COMMIT")
