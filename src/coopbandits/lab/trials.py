"""Many trials side by side: processes with one BLAS thread each."""

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from coopbandits.arrays import as_count, short
from coopbandits.errors import ParameterError

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
    count = (os.cpu_count() or 1) if workers is None else as_count(workers, "workers")
    before = {name: os.environ.get(name) for name in _THREADS}
    try:
        # processes start with the environment of now, and load their libraries in it
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=fresh) as pool:
            return list(pool.map(trial, seeds))
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
