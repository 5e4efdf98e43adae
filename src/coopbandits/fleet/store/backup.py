"""Backups of a log: copied while the node runs, verified, restored with a marker.

A backup is a folder with the log at one of its commits and a mark that fits it. A restored log is
older than what neighbours have seen, so its node must take a new epoch before it writes: the file
`restored` says so until it has.
"""

import os
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from coopbandits.errors import CoopBanditsError, ParameterError
from coopbandits.fleet.ports import DamageError, StoreError
from coopbandits.fleet.store.folder import (
    LOCK,
    LOG,
    MARK,
    RESTORED,
    at_rest,
    bytes_of,
    lock,
    sync_file,
    sync_folder,
)
from coopbandits.fleet.store.integrity import Tally, inspect
from coopbandits.fleet.store.mark import create as create_mark, read as read_mark
from coopbandits.fleet.store.schema import UNREADABLE, connect, damaged, read_failed


@dataclass(frozen=True, slots=True)
class Report:
    """What a folder holds.

    Attributes:
        identity: Whose log it is; None if that cannot be read.
        first: The position of the first entry that was not cut.
        position: The position of the last entry.
        entries: How many entries there are.
        records: How many records.
        snapshots: The positions of the snapshots that are whole, the newest first.
        disk_bytes: What it takes on disk.
        restored: Whether it came from a backup, and no new epoch has begun since.
        damage: What is not as it was written, in sentences; counts are 0 where it is the log.
    """

    identity: str | None
    first: int
    position: int
    entries: int
    records: int
    snapshots: tuple[int, ...]
    disk_bytes: int
    restored: bool
    damage: tuple[str, ...]


def verify(folder: Path) -> Report:
    """Read all of a folder that no node has open, and say what it holds. Changes nothing."""
    size, restored = bytes_of(folder), (folder / RESTORED).exists()
    try:
        with at_rest(folder):
            tally = _inspect(folder)
    except DamageError as error:
        return Report(None, 0, 0, 0, 0, (), size, restored, (str(error),))
    return Report(
        identity=tally.meta.identity,
        first=tally.meta.first,
        position=tally.position,
        entries=tally.entries,
        records=tally.records,
        snapshots=tally.snapshots,
        disk_bytes=size,
        restored=restored,
        damage=tuple(
            f"the snapshot behind entry {position} is not what was written; it will not be used"
            for position in tally.damaged_snapshots
        ),
    )


def backup(folder: Path, target: Path) -> Report:
    """Copy the log of a node, running or not, into a new folder, and verify the copy.

    Args:
        folder: The node's.
        target: Where to; it must not be there yet.
    """
    if not (folder / LOG).exists():
        raise ParameterError(f"{folder} holds no log, so there is nothing to back up")
    if target.exists():
        raise ParameterError(f"{target} is there already; name a folder that is not")
    partial = target.with_name(f"{target.name}.partial")
    if partial.exists():
        shutil.rmtree(partial)
    try:
        partial.mkdir(parents=True, mode=0o700)
        _copy(folder / LOG, partial / LOG)
        tally = _inspect(partial, marked=False)
        create_mark(partial / MARK, tally.position, tally.chain)
        sync_file(partial / LOG)
        sync_folder(partial)
        partial.rename(target)
        sync_folder(target.parent)
    except (OSError, CoopBanditsError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError):
            raise StoreError(f"{folder} could not be copied to {target}: {error}") from error
        raise
    return verify(target)


def restore(source: Path, folder: Path, *, identity: str, overwrite: bool = False) -> Report:
    """Put a backup into a node's folder, and mark it as restored.

    Args:
        source: The backup.
        folder: The node's; no node may have it open.
        identity: The node's; the backup of another is refused.
        overwrite: Whether what the folder holds may be lost.
    """
    with at_rest(source):
        tally = _inspect(source)
    if tally.meta.identity != identity:
        raise ParameterError(
            f"{source} is a backup of {tally.meta.identity!r}, and {identity!r} is to be restored; "
            "name a backup of that node"
        )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    held = lock(folder)
    try:
        others = sorted(path.name for path in folder.iterdir() if path.name != LOCK)
        if others and not overwrite:
            raise ParameterError(
                f"{folder} is not empty ({', '.join(others[:5])}); restore into an empty folder, "
                "or say that what it holds may be overwritten"
            )
        # In this order: killed at any step, the folder is damaged, as before, or restored, and
        # never an empty one that a node would start anew in.
        _copy(source / LOG, folder / f"{LOG}.partial")
        sync_file(folder / f"{LOG}.partial")
        create_mark(folder / f"{MARK}.partial", tally.position, tally.chain)
        (folder / RESTORED).write_text(f"up to entry {tally.position}\n", encoding="utf-8")
        sync_file(folder / RESTORED)
        sync_folder(folder)
        (folder / f"{MARK}.partial").rename(folder / MARK)
        sync_folder(folder)
        for name in (f"{LOG}-wal", f"{LOG}-shm"):
            (folder / name).unlink(missing_ok=True)
        (folder / f"{LOG}.partial").rename(folder / LOG)
        sync_folder(folder)
    except OSError as error:
        raise StoreError(f"{source} could not be restored to {folder}: {error}") from error
    finally:
        os.close(held)
    return verify(folder)


def _inspect(folder: Path, *, marked: bool = True) -> Tally:
    path, mark = folder / LOG, folder / MARK
    for file in (path, mark) if marked else (path,):
        if not file.exists():
            raise damaged(file, "it is missing")
    try:
        connection = connect(path, read_only=True)
    except UNREADABLE as error:
        raise read_failed(path, error) from error
    try:
        return inspect(connection, path, read_mark(mark) if marked else None)
    finally:
        connection.close()


def _copy(source: Path, target: Path) -> None:
    """Copy a log at one of its commits; readers and the writer go on meanwhile."""
    target.unlink(missing_ok=True)
    try:
        here = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
        there = sqlite3.connect(target)
        try:
            here.backup(there)
        finally:
            there.close()
            here.close()
    except UNREADABLE as error:
        raise read_failed(source, error) from error
