"""Many trials side by side: processes with one BLAS thread each."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from coopbandits.arrays import as_count, short
from coopbandits.errors import ExperimentError, ParameterError

S = TypeVar("S")
T = TypeVar("T")

# What linear algebra libraries read when they are loaded.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def trials(
    trial: Callable[[int], T], seeds: Iterable[int], *, workers: int | None = None
) -> list[T]:
    """Call a function with each seed, in processes of one BLAS thread; results in seeds' order.

    The same results come from one worker and from many. An exception of a trial is raised here.

    Args:
        trial: A function of a module (processes must find it by its name), such as one that makes a
            problem from the seed, plays it, and returns what is to be kept.
        seeds: One for each trial.
        workers: How many processes; as many as there are cores, if not given.
    """
    if not callable(trial):
        raise ParameterError(f"trial must be a function of a seed, got {short(trial)}")
    order = list(seeds)
    work = partial(_numbered, trial, order)
    done: dict[int, T] = dict(as_they_come(work, range(len(order)), workers=workers))
    return [done[place] for place in range(len(order))]


def _numbered(trial: Callable[[int], T], seeds: list[int], place: int) -> T:
    """Call a trial by its place: seeds may repeat, places do not."""
    return trial(seeds[place])


def as_they_come(
    work: Callable[[S], T], items: Iterable[S], *, workers: int | None = None
) -> Iterator[tuple[S, T]]:
    """Call a function with each item, in processes of one BLAS thread; yield what is done.

    Where the caller stops early, or is interrupted, the processes end at once.
    """
    todo = list(items)
    count = (os.cpu_count() or 1) if workers is None else as_count(workers, "workers")
    count = max(1, min(count, len(todo)))
    fresh = multiprocessing.get_context("spawn")
    with _one_thread():
        pool = ProcessPoolExecutor(count, mp_context=fresh, initializer=_settle)
        waiting: dict[Future[T], S] = {}
        try:
            waiting = {pool.submit(work, item): item for item in todo}
            for future in as_completed(waiting):
                yield waiting.pop(future), future.result()
        except BrokenProcessPool as error:
            raise ExperimentError(
                "a worker process died; it was killed, or memory ran out. What was done is kept: "
                "run the same command again, with fewer --workers if memory is short"
            ) from error
        finally:
            if waiting:
                for process in list((pool._processes or {}).values()):
                    process.kill()
            pool.shutdown(wait=True, cancel_futures=True)


def _settle() -> None:
    """Let the parent alone answer Ctrl-C and SIGTERM, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # not SIG_IGN, which programs that a trial starts would inherit
    signal.signal(signal.SIGTERM, lambda *_: None)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start within have one BLAS thread."""
    before = {name: os.environ.get(name) for name in _THREADS}
    try:
        # processes start with the environment of now, and load their libraries in it
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
