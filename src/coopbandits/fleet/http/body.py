"""Bodies of requests: read within a limit of size and of time, and decoded strictly.

Strict means JSON as RFC 8259 has it, in UTF-8, of exactly the declared type, each key once.
msgspec checks all of that but the last: of a key that comes twice it takes the second. A second
pass looks for such keys, but only where the count of quotation marks leaves room for one.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec
from starlette.types import Receive

from coopbandits.fleet.api import DecideManyRequest, DecideRequest, RewardRequest
from coopbandits.fleet.face import RefusedError

T = TypeVar("T")
Headers = Iterable[tuple[bytes, bytes]]

# What is still read of a body that is too large, so that its sender gets to read the answer.
DRAINED_BODIES = 4
DRAINED_SECONDS = 1.0


def header(headers: Headers, name: bytes) -> bytes | None:
    """Return the first header of a name (in lower case); None if there is none."""
    for key, value in headers:
        if key == name:
            return value
    return None


def require_json(headers: Headers) -> None:
    """Refuse a body that does not say that it is JSON."""
    value = header(headers, b"content-type")
    if value != b"application/json":
        given = (value or b"").decode("latin-1")
        media, *parameters = (part.strip().lower() for part in given.split(";"))
        charset = [each for each in parameters if each.startswith("charset=")]
        if media != "application/json" or any("utf-8" not in each for each in charset):
            raise RefusedError(
                "unsupported-media-type",
                f"content-type is {given!r}; expected 'application/json', in UTF-8",
            )
    coding = header(headers, b"content-encoding")
    if coding is not None and coding.strip().lower() != b"identity":
        raise RefusedError(
            "unsupported-media-type",
            f"content-encoding is {coding.decode('latin-1')!r}; bodies are taken as they are: "
            "send it without compression",
        )


async def read(headers: Headers, receive: Receive, limit: int, timeout: float) -> bytes:
    """Read a body, of at most so many bytes, within so many seconds."""
    length = header(headers, b"content-length")
    large = length is not None and (not length.isdigit() or int(length[:20]) > limit)
    if large and header(headers, b"expect") is not None:
        raise _too_large(limit)  # the body was not sent yet, and now will not be
    parts: list[bytes] = []
    size = 0
    more = True
    try:
        async with asyncio.timeout(timeout):
            while more and not large:
                message = await receive()
                if message["type"] != "http.request":
                    raise RefusedError("timeout", "the connection ended before the body did")
                part = message.get("body", b"")
                size += len(part)
                large = size > limit
                parts.append(part)
                more = message.get("more_body", False)
    except TimeoutError:
        raise RefusedError(
            "timeout",
            f"{size} bytes of the body came in {timeout:g} s, and not its end; send it at once",
        ) from None
    if large:
        parts.clear()
        await _drain(receive, more, DRAINED_BODIES * limit)
        raise _too_large(limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> RefusedError:
    return RefusedError(
        "too-large", f"the body has more than {limit} bytes; ask for fewer decisions at once"
    )


async def _drain(receive: Receive, more: bool, most: int) -> None:
    try:
        async with asyncio.timeout(DRAINED_SECONDS):
            while more and most > 0:
                message = await receive()
                most -= len(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        pass


class StrictDecoder(Generic[T]):
    """Decodes bodies of one type.

    Args:
        kind: The type.
        strings: How many strings the shortest text of a value has, keys included.
    """

    def __init__(self, kind: type[T], strings: Callable[[T], int]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._strings = strings

    def __call__(self, data: bytes) -> T:
        """Return the value; refuses what is malformed."""
        try:
            value = self._decode(data)
        except msgspec.ValidationError as error:
            raise _malformed(str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _malformed(f"not JSON in UTF-8: {error}") from None
        # Without backslashes every quotation mark begins or ends a string, and a key more than
        # once means more strings than the shortest text has.
        if b"\\" in data or data.count(b'"') != 2 * self._strings(value):
            json.loads(data, object_pairs_hook=_unique, parse_int=float)
        return value


def _unique(pairs: list[tuple[str, object]]) -> None:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:  # objects have at most five keys by now
            raise _malformed(f"the key {name!r} comes twice in one object")


def _malformed(what: str) -> RefusedError:
    return RefusedError("malformed", f"{what}; /openapi.json says what is expected")


def _strings_of_decide(request: DecideRequest) -> int:
    return (
        1
        + 3 * len(request.actions)  # two keys and an id
        + (2 if request.event_id is not None else 0)
        + (1 + len(request.exclude) if request.exclude else 0)
        + (2 if request.taken is not None else 0)
        + (1 if request.deferred else 0)
    )


def _strings_of_many(request: DecideManyRequest) -> int:
    return 1 + sum(map(_strings_of_decide, request.decisions))


def _strings_of_reward(_: RewardRequest) -> int:
    return 1


decode_decide = StrictDecoder(DecideRequest, _strings_of_decide)
decode_many = StrictDecoder(DecideManyRequest, _strings_of_many)
decode_reward = StrictDecoder(RewardRequest, _strings_of_reward)
