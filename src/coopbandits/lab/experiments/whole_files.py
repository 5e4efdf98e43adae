"""How is a folder written so that nothing in it is half-written? Whole files, one run at a time."""

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coopbandits.errors import ExperimentError

try:
    import fcntl
except ImportError:  # Windows: two runs in one folder are then the user's to avoid
    fcntl = None  # type: ignore[assignment]


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until what is within is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    held = {one: handler for one, handler in before.items() if handler is not None}
    try:
        for one in held:
            signal.signal(one, lambda number, _: came.append(number))
        yield
    finally:
        for one, handler in held.items():
            signal.signal(one, handler)
    for number in dict.fromkeys(came):
        signal.raise_signal(number)


@undisturbed()
def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, also where the disk is full or the power goes."""
    part = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, 0o644)
        os.replace(part, path)
    except OSError as error:
        raise ExperimentError(
            f"{path} cannot be written ({error.strerror or error}); make room, or choose another "
            "--out, and run the same command again: what was done is kept"
        ) from error
    finally:
        if part is not None:
            Path(part).unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; a lock ends with its process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("a")
    except OSError as error:
        raise ExperimentError(
            f"{folder} cannot be written ({error.strerror or error}); choose another --out"
        ) from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ExperimentError(
                    f"another run is writing to {folder}; wait for it, or choose another --out"
                ) from error
        yield
