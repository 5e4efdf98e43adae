"""Problem details (RFC 9457): what every answer that is no success says, as one JSON object."""

from coopbandits.fleet.api import Problem
from coopbandits.fleet.face import KINDS as FACE_KINDS, RefusedError

MEDIA_TYPE = "application/problem+json"

# Beside what a face may refuse: what the HTTP interface itself has to say.
KINDS: dict[str, tuple[int, str]] = FACE_KINDS | {
    "bad-request": (400, "The request is not valid HTTP/1.1"),
    "misdirected": (421, "The request was meant for another host"),
    "internal": (500, "The node failed"),
    "busy": (503, "Too many connections are open"),
    "not-ready": (503, "The node does not answer yet"),
}

# After these the rest of the body may still be under way: it is not worth waiting for.
CLOSING = frozenset({"timeout", "too-large"})

# Details may quote what was sent: of that, no more than this is sent back.
MOST_DETAIL = 500


def problem(kind: str, detail: str, retry_after: float | None = None) -> Problem:
    """Return the problem of a kind.

    Args:
        kind: A key of `KINDS`.
        detail: What was given, what is expected and what to do.
        retry_after: Seconds after which another try makes sense.
    """
    status, title = KINDS[kind]
    if len(detail) > MOST_DETAIL:
        detail = detail[: MOST_DETAIL - 1] + "…"
    return Problem(f"/problems/{kind}", title, status, detail, retry_after)


def of_refusal(error: RefusedError) -> Problem:
    """Return the problem that a refusal is."""
    return problem(error.kind, error.detail, error.retry_after)
