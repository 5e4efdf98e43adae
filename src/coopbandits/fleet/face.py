"""What a node shows to those who use it: the port between the HTTP interface and the node.

`http/` is written against this, and tested against a twin in memory.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Protocol

from coopbandits.errors import CoopBanditsError
from coopbandits.fleet.api import (
    DecideManyReply,
    DecideManyRequest,
    DecideReply,
    DecideRequest,
    EventReply,
    PeersReply,
    SimilarityReply,
    StatusReply,
)

# What a request may be refused for: HTTP status, and the kind in words.
KINDS: dict[str, tuple[int, str]] = {
    "malformed": (400, "The body is not what is expected"),
    "unknown-event": (404, "There is no such event"),
    "not-found": (404, "There is no such page"),
    "method-not-allowed": (405, "This page does not take this method"),
    "timeout": (408, "The body did not come in time"),
    "event-closed": (409, "The event takes no more rewards"),
    "event-differs": (409, "The event id was used for another decision"),
    "event-expired": (410, "The event has expired"),
    "too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The body must be JSON"),
    "invalid": (422, "The values make no sense here"),
    "recovering": (503, "The node asks its neighbours for what its log has lost"),
    "stopping": (503, "The node is stopping"),
    "disk-full": (507, "The disk is full; nothing was kept"),
}


class RefusedError(CoopBanditsError):
    """A request was refused; nothing has changed.

    Attributes:
        kind: A key of `KINDS`.
        detail: What was given, what is expected and what to do.
        retry_after: Seconds after which another try makes sense.
    """

    def __init__(self, kind: str, detail: str, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.retry_after = kind, detail, retry_after


@dataclass(frozen=True, slots=True)
class Decide:
    """Take a decision."""

    request: DecideRequest


@dataclass(frozen=True, slots=True)
class DecideMany:
    """Take several decisions, or none."""

    request: DecideManyRequest


@dataclass(frozen=True, slots=True)
class Reward:
    """Learn what a decision brought."""

    event_id: str
    value: float
    key: str | None = None  # the same key is counted once


@dataclass(frozen=True, slots=True)
class Activate:
    """Let a deferred event count from now on."""

    event_id: str


Request = Decide | DecideMany | Reward | Activate
Reply = DecideReply | DecideManyReply | None


class Face(Protocol):
    """A node, as its users see it. Every call may raise `RefusedError`."""

    async def ask(self, request: Request) -> Reply:
        """Carry a request out; when this returns, all of it is durable."""

    def event(self, event_id: str) -> EventReply:
        """Return what became of an event."""

    def status(self) -> StatusReply:
        """Return how the node is."""

    def peers(self) -> PeersReply:
        """Return all sites as the node sees them."""

    def similarity(self) -> SimilarityReply:
        """Return whom the node trusts."""

    def log(self, after: int, most: int) -> Iterator[dict[str, object]]:
        """Yield closed events as records of a log (`coopbandits.records.Logged.to_dict`).

        Each has `position` besides, the place of its entry; at most so many from behind one on.
        """

    def notes(self) -> AsyncIterator[dict[str, object]]:
        """Yield what happens as it happens, as the page shows it; each has `kind` and `at`."""
