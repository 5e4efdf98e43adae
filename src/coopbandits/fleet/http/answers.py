"""Answers: status, headers and bytes, sent as ASGI messages.

msgspec writes NaN and infinity as null, so an answer that holds a null is looked at again: what
is not finite is a fault of the node, and never leaves it.
"""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import msgspec
from starlette.types import Receive, Send

from coopbandits.fleet.api import Problem
from coopbandits.fleet.http.problems import CLOSING, MEDIA_TYPE
from coopbandits.fleet.http.routes import JSON

Headers = list[tuple[bytes, bytes]]

# No answer may be guessed to be a script, and none is worth keeping: the next one differs.
NOSNIFF = (b"x-content-type-options", b"nosniff")
NO_STORE = (b"cache-control", b"no-store")

_ENCODER = msgspec.json.Encoder()


def headers_of(media: str, *more: tuple[bytes, bytes]) -> Headers:
    """Return the headers of an answer of the API."""
    return [(b"content-type", media.encode()), NO_STORE, NOSNIFF, *more]


_JSON = headers_of(JSON)


class Answer:
    """An answer whose body is there as a whole."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Headers, body: bytes = b"") -> None:
        self.status, self.headers, self.body = status, headers, body

    async def send(self, send: Send, head: bool) -> None:
        """Send it; without its body if only the head was asked for."""
        headers = self.headers
        if self.status != 204:
            headers = [*headers, (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head else self.body})


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer whose body comes piece by piece; `run` sends it all, its head included."""

    headers: Headers
    run: Callable[[Receive, Send], Awaitable[None]]
    status: int = 200

    async def send_head(self, send: Send) -> None:
        """Send its head, and nothing of its body."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": b""})


def encode(value: object) -> bytes:
    """Write a value as JSON; raises `ValueError` if a number in it is not finite."""
    data = _ENCODER.encode(value)
    if b"null" in data and not _finite(value):
        raise ValueError(f"an answer holds a number that is not finite: {value!r}"[:500])
    return data


def of_value(value: msgspec.Struct, status: int = 200) -> Answer:
    """Return the answer that gives a value as JSON."""
    return Answer(status, _JSON, encode(value))


def of_problem(problem: Problem, *more: tuple[bytes, bytes]) -> Answer:
    """Return the answer that says what went wrong."""
    headers = headers_of(MEDIA_TYPE, *more)
    if problem.retry_after is not None:
        headers.append((b"retry-after", b"%d" % math.ceil(problem.retry_after)))
    if problem.type.rpartition("/")[2] in CLOSING:
        headers.append((b"connection", b"close"))
    return Answer(problem.status, headers, _ENCODER.encode(problem))


def _finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, msgspec.Struct):
        return all(_finite(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, value))
    return True
