"""The table of routes: what a node's HTTP interface offers, written down once.

The application looks its endpoints up by name here, and the OpenAPI document is made of it.
"""

from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from coopbandits.fleet.api import (
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

JSON = "application/json"
JSON_LINES = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"
PLAIN = "text/plain"
HTML = "text/html"

EVENT_ID = r"^[\x21-\x7e]{1,200}$"
KEY = r"^[\x21-\x7e]{1,64}$"


class Health(Struct, frozen=True):
    """That a node runs, or is ready."""

    status: Literal["ok"] = "ok"


@dataclass(frozen=True, slots=True)
class QueryNumber:
    """A whole number in a query: what it means, what it is if not given, and its range."""

    meaning: str
    default: int
    least: int
    most: int


QUERY = {
    "after": QueryNumber("The position behind which to begin.", 0, 0, 2**63 - 1),
    "limit": QueryNumber("How many events at most.", 1_000, 1, 10_000),
}


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the table.

    Attributes:
        method: GET or POST; HEAD goes with GET.
        path: With parameters in braces.
        name: What the operation is called in the document, and the route in the metrics.
        summary: What it does, in one sentence.
        status: Of a success.
        reply: The type of a success's body; None if it has none, or is no JSON object.
        media: The media type of a success's body.
        request: The type of the body it takes, if it takes one.
        query: Names of the query's parameters, of `QUERY`.
        headers: Names of the headers it understands.
        problems: Kinds of problems it may answer with, beside those of `EVERYWHERE`.
    """

    method: Literal["GET", "POST"]
    path: str
    name: str
    summary: str
    status: int = 200
    reply: type[Struct] | None = None
    media: str | None = JSON
    request: type[Struct] | None = None
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


EVERYWHERE = ("misdirected", "internal", "busy")
_BODY = ("malformed", "timeout", "too-large", "unsupported-media-type", "invalid")
_DURABLE = ("stopping", "disk-full")
_EVENT = ("malformed", "unknown-event", "event-expired")
_REWARD = ("unknown-event", "event-closed", "event-expired", "recovering")

ROUTES = (
    Route(
        "POST",
        "/v1/decide",
        "decide",
        "Take a decision: which of these actions?",
        reply=DecideReply,
        request=DecideRequest,
        problems=(*_BODY, "event-differs", "event-expired", *_DURABLE),
    ),
    Route(
        "POST",
        "/v1/decide-many",
        "decide-many",
        "Take several decisions, or none.",
        reply=DecideManyReply,
        request=DecideManyRequest,
        problems=(*_BODY, "event-differs", "event-expired", *_DURABLE),
    ),
    Route(
        "POST",
        "/v1/events/{event_id}/reward",
        "reward",
        "Say what a decision brought; a success means that it is durable, and counts once.",
        status=204,
        media=None,
        request=RewardRequest,
        headers=("Idempotency-Key",),
        problems=(*_BODY, *_REWARD, *_DURABLE),
    ),
    Route(
        "POST",
        "/v1/events/{event_id}/activate",
        "activate",
        "Let a deferred event count from now on.",
        status=204,
        media=None,
        problems=(*_EVENT, "event-closed", "invalid", *_DURABLE),
    ),
    Route(
        "GET",
        "/v1/events/{event_id}",
        "event",
        "Return a decision and what became of it.",
        reply=EventReply,
        problems=_EVENT,
    ),
    Route("GET", "/v1/status", "status", "Return how the node is.", reply=StatusReply),
    Route(
        "GET",
        "/v1/peers",
        "peers",
        "Return all sites as the node sees them, and the edges between them.",
        reply=PeersReply,
    ),
    Route(
        "GET",
        "/v1/similarity",
        "similarity",
        "Return whom the node trusts: its row of K_z by name.",
        reply=SimilarityReply,
    ),
    Route(
        "GET",
        "/v1/log",
        "log",
        "Return closed events as JSON Lines, which `coop fit` and `coop replay` read.",
        media=JSON_LINES,
        query=("after", "limit"),
        problems=("malformed",),
    ),
    Route(
        "GET",
        "/v1/notes",
        "notes",
        "Stream what happens as it happens: server-sent events, each one JSON object.",
        media=EVENT_STREAM,
        problems=("stopping",),
    ),
    Route("GET", "/healthz", "healthz", "Tell that the node runs.", reply=Health),
    Route(
        "GET",
        "/readyz",
        "readyz",
        "Tell whether the node takes requests.",
        reply=Health,
        problems=("not-ready", "stopping"),
    ),
    Route("GET", "/metrics", "metrics", "Return metrics as Prometheus reads them.", media=PLAIN),
    Route("GET", "/openapi.json", "openapi", "Return the OpenAPI document of this interface."),
    Route(
        "GET", "/", "page", "Return the page that shows the node.", media=HTML,
        problems=("not-found",),
    ),
)  # fmt: skip
