"""Calls: requests to a node as plain values, and how their answers are read. No I/O."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from coopbandits.errors import NonFiniteError
from coopbandits.fleet.api import (
    Action,
    DecideManyReply,
    DecideManyRequest,
    DecideReply,
    DecideRequest,
    EventReply,
    PeersReply,
    RewardRequest,
    SimilarityReply,
    StatusReply,
)
from coopbandits.fleet.client.errors import UnexpectedAnswerError

T = TypeVar("T")
Actions = Mapping[str, Sequence[float]] | Iterable[Action]

PAGE = 1_000

_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request that may be sent several times, and how its answer is read.

    Attributes:
        method: GET or POST.
        path: With its query, percent-encoded.
        read: Makes the result of a success's body.
        body: What is sent.
        headers: What is sent with it.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def result(self, status: int, data: bytes) -> T:
        """Return the result of a success."""
        try:
            return self.read(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnexpectedAnswerError(
                f"{self.method} {self.path} was answered with {status} and {data[:80]!r}, which is "
                f"not what a node answers ({error}); is the address a node's, of this version?",
                status,
            ) from error


def decide(
    actions: Actions,
    event_id: str | None = None,
    exclude: Iterable[str] = (),
    taken: str | None = None,
    deferred: bool = False,
) -> Call[DecideReply]:
    """Ask for a decision; with an id, so that another try gets the same answer."""
    request = DecideRequest(
        actions=_actions(actions),
        event_id=uuid4().hex if event_id is None else event_id,
        exclude=list(exclude),
        taken=taken,
        deferred=deferred,
    )
    return Call("POST", "/v1/decide", _reader(DecideReply), _encode(request), _JSON)


def decide_many(requests: Iterable[DecideRequest]) -> Call[DecideManyReply]:
    """Ask for several decisions, or none; each with an id."""
    named = [
        replace(
            request,
            actions=_actions(request.actions),
            event_id=uuid4().hex if request.event_id is None else request.event_id,
        )
        for request in requests
    ]
    body = _encode(DecideManyRequest(named))
    return Call("POST", "/v1/decide-many", _reader(DecideManyReply), body, _JSON)


def reward(event_id: str, value: float) -> Call[None]:
    """Say what a decision brought; with a key, so that another try is counted once."""
    number = float(value)
    if not isfinite(number):
        raise NonFiniteError(f"the reward of event {event_id!r} is {value}; expected a number")
    headers = {**_JSON, "idempotency-key": uuid4().hex}
    path = f"{_event_path(event_id)}/reward"
    return Call("POST", path, _nothing, _encode(RewardRequest(number)), headers)


def activate(event_id: str) -> Call[None]:
    """Let a deferred event count from now on."""
    return Call("POST", f"{_event_path(event_id)}/activate", _nothing)


def event(event_id: str) -> Call[EventReply]:
    """Ask what became of an event."""
    return Call("GET", _event_path(event_id), _reader(EventReply))


def status() -> Call[StatusReply]:
    """Ask how the node is."""
    return Call("GET", "/v1/status", _reader(StatusReply))


def peers() -> Call[PeersReply]:
    """Ask for the network as the node sees it."""
    return Call("GET", "/v1/peers", _reader(PeersReply))


def similarity() -> Call[SimilarityReply]:
    """Ask whom the node trusts."""
    return Call("GET", "/v1/similarity", _reader(SimilarityReply))


class LogPages:
    """Reads a log page by page: `next_call` until it is None, each answered to `take`.

    Args:
        after: The position behind which to begin.
        limit: How many events at most; None for all.
    """

    def __init__(self, after: int, limit: int | None) -> None:
        self._after, self._left, self._ended = after, limit, False

    def next_call(self) -> Call[list[dict[str, Any]]] | None:
        """Return the next page's request."""
        size = PAGE if self._left is None else min(PAGE, self._left)
        if self._ended or size <= 0:
            return None
        return Call("GET", f"/v1/log?after={self._after}&limit={size}", _records)

    def take(self, page: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Note how far a page reaches, and return it."""
        if page:
            self._after = page[-1]["position"]
        if self._left is not None:
            self._left -= len(page)
        self._ended = not page
        return page


def _actions(actions: Actions) -> list[Action]:
    """Return actions with contexts of plain floats: NumPy's are taken, and NaN is not."""
    if isinstance(actions, Mapping):
        pairs = list(actions.items())
    else:
        pairs = [(action.id, action.context) for action in actions]
    made = [Action(name, [float(number) for number in context]) for name, context in pairs]
    for action in made:
        if not all(map(isfinite, action.context)):
            raise NonFiniteError(
                f"the context of action {action.id!r} is {action.context}; expected finite numbers"
            )
    return made


def _event_path(event_id: str) -> str:
    return f"/v1/events/{quote(event_id, safe='')}"


_encode = msgspec.json.Encoder().encode


def _reader(kind: type[T]) -> Callable[[bytes], T]:
    # Fields that a later version adds are ignored.
    return msgspec.json.Decoder(kind).decode


def _nothing(_: bytes) -> None:
    return None


def _records(data: bytes) -> list[dict[str, Any]]:
    records = msgspec.json.Decoder(dict[str, Any]).decode_lines(data)
    if any(type(record.get("position")) is not int for record in records):
        raise msgspec.ValidationError("a line of the log has no position")
    return records
