"""A node's folder: the log, its mark, the lock of the process that has it open.

| file | what |
|---|---|
| `log.sqlite` (`-wal`, `-shm`) | the log; SQLite's own files stand beside it |
| `mark` | how far the log was synced |
| `lock` | held while a process has the folder open; its content means nothing |
| `restored` | there if the log came from a backup and no new epoch has begun since |
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coopbandits.fleet.ports import StoreError

LOG, MARK, LOCK, RESTORED = "log.sqlite", "mark", "lock", "restored"


def lock(folder: Path, *, shared: bool = False) -> int:
    """Hold a folder until the descriptor that is returned is closed."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        raise StoreError(
            f"{folder} is open in another process or another store; one node at a time may use a "
            "folder: stop the other, or give this one a folder of its own"
        ) from error
    return descriptor


@contextmanager
def at_rest(folder: Path) -> Iterator[None]:
    """Read a folder while no node has it open; a folder without a lock is left as it is."""
    if not (folder / LOCK).exists():
        yield
        return
    descriptor = lock(folder, shared=True)
    try:
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make names of files durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def bytes_of(folder: Path) -> int:
    """Return what log, write-ahead log and mark take."""
    total = 0
    for name in (LOG, f"{LOG}-wal", MARK):
        try:
            total += (folder / name).stat().st_size
        except FileNotFoundError:
            continue
    return total
