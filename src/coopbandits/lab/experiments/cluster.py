"""Many trials on many machines: a Dask cluster."""

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlsplit

from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.store import versions

S = TypeVar("S")
T = TypeVar("T")


def on_dask(
    address: str, work: Callable[[S], T], items: Iterable[S], *, timeout: float = 15.0
) -> Iterator[tuple[S, T]]:
    """Call a function with each item on a Dask cluster; yield what is done.

    A worker that dies loses nothing: its trials are done by others. Results are the same as on one
    machine, so workers must have this version and one BLAS thread, which is Dask's default.
    """
    try:
        from distributed import Client, as_completed  # noqa: PLC0415 (heavy)
    except ImportError as error:
        raise ExperimentError(
            "--dask needs the package distributed; pip install 'coopbandits[dask]'"
        ) from error
    try:
        _knock(address, timeout)
        client: Any = Client(address, timeout=timeout, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise ExperimentError(
            f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler` "
            "and give its address, such as tcp://127.0.0.1:8786"
        ) from error
    with client:
        _check_workers(client, address, timeout)
        futures = {client.submit(work, item, pure=False): item for item in items}
        try:
            for future in as_completed(list(futures), loop=client.loop):  # type: ignore[no-untyped-call]
                yield futures.pop(future), _result(future)
        finally:
            client.cancel(list(futures))


def _knock(address: str, timeout: float) -> None:
    """See whether anybody is there: a client that finds nobody says so at great length."""
    parts = urlsplit(address)
    if not parts.scheme or not parts.hostname or not parts.port:
        raise ValueError("that is no address")
    with socket.create_connection((parts.hostname, parts.port), timeout=timeout):
        pass


def _result(future: Any) -> Any:
    from distributed.scheduler import KilledWorker  # noqa: PLC0415

    try:
        return future.result()
    except KilledWorker as error:
        raise ExperimentError(
            "one trial ended several Dask workers in turn; memory may be short there. What was "
            "done is kept: run the same command again"
        ) from error


def _check_workers(client: Any, address: str, timeout: float) -> None:
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError as error:
        raise ExperimentError(
            f"the Dask scheduler at {address} has no workers; start some with `dask worker "
            f"{address}`"
        ) from error
    mine = facts()
    try:
        found = client.run(facts)
    except ImportError as error:
        raise ExperimentError(
            f"a Dask worker cannot import coopbandits ({error}); install it there"
        ) from error
    for worker, theirs in found.items():
        if theirs["versions"] != mine["versions"]:
            raise ExperimentError(
                f"the Dask worker {worker} has {theirs['versions']}, this side {mine['versions']}; "
                "expected the same, so that results are"
            )
        if theirs["threads"] != "1":
            raise ExperimentError(
                f"the Dask worker {worker} has OPENBLAS_NUM_THREADS={theirs['threads']}; start "
                "workers with OPENBLAS_NUM_THREADS=1, so that results are the same everywhere"
            )


def facts() -> dict[str, Any]:
    """Return what must be the same on all sides; a Dask worker calls this."""
    return {"versions": versions(), "threads": os.environ.get("OPENBLAS_NUM_THREADS")}
