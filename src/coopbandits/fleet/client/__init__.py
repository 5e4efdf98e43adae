"""The client of a node's HTTP interface, typed, sync and async.

    from coopbandits.fleet.client import Client

    with Client("http://127.0.0.1:8080") as node:
        decision = node.decide({"small-model": [1.0, 0.2], "large-model": [0.0, 0.9]})
        ...  # do what decision.action says
        node.reward(decision.event_id, 1.0)

Needs httpx and msgspec (`pip install 'coopbandits[client]'`), and no NumPy. Every call may be tried
several times, and counts once.
"""

from importlib.util import find_spec

from coopbandits.errors import MissingExtraError

for _package in ("httpx", "msgspec"):
    if find_spec(_package) is None:
        raise MissingExtraError(
            f"{_package} is not installed, and the client needs it; try: "
            "pip install 'coopbandits[client]'"
        )

from coopbandits.fleet.client.errors import (  # noqa: E402 (needs the extra)
    ClientError,
    UnavailableError,
    UnexpectedAnswerError,
)
from coopbandits.fleet.client.retries import Retries  # noqa: E402
from coopbandits.fleet.client.shells import AsyncClient, Client  # noqa: E402

__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "Retries",
    "UnavailableError",
    "UnexpectedAnswerError",
]
