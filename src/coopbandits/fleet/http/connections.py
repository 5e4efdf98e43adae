"""Connections: h11 as uvicorn runs it, with limits that uvicorn does not set.

uvicorn closes a connection that is idle between requests. Beside that, a request must have come
within a time, from its first byte on; what was sent must be read within a time; and there may be so
many connections at once. What cannot be answered by the application is a problem all the same.
"""

import asyncio

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from coopbandits.fleet.http.answers import Answer, of_problem
from coopbandits.fleet.http.problems import problem

MOST_CONNECTIONS = 256
REQUEST_SECONDS = 20.0
STALLED_SECONDS = 30.0
HEADER_BYTES = 16_384

_CLOSE = (b"connection", b"close")
_BAD = of_problem(
    problem(
        "bad-request",
        f"what came is not HTTP/1.1, or its head has more than {HEADER_BYTES} bytes",
    ),
    _CLOSE,
)


async def refuse_busy(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer that too many connections are open; an ASGI application."""
    detail = f"{MOST_CONNECTIONS} connections are open, and that is the most; try again later"
    await of_problem(problem("busy", detail, 1.0), _CLOSE).send(send, scope["method"] == "HEAD")


class BoundedHead:
    """Refuses requests whose head is too large; an ASGI application around another.

    h11 itself refuses a head that is too large before its end has come, and no other.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        if scope["type"] == "http" and _head_bytes(scope) > HEADER_BYTES:
            await _BAD.send(send, scope["method"] == "HEAD")
        else:
            await self._app(scope, receive, send)


def _head_bytes(scope: Scope) -> int:
    """Return how many bytes a request's head has, as one would write it."""
    target = len(scope["raw_path"]) + len(scope["query_string"])
    fields = sum(len(name) + len(value) + len(b": \r\n") for name, value in scope["headers"])
    return len(scope["method"]) + target + len(b"  HTTP/1.1\r\n") + fields + len(b"\r\n")


class BoundedConnection(H11Protocol):
    """One connection to the server."""

    _coming: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; the first request must have come within the time."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self.app = refuse_busy
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Take bytes; the clock runs as long as a request is not there as a whole."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            if self._coming is None:
                self._await_request()
        elif self._coming is not None:
            self._coming.cancel()
            self._coming = None

    def pause_writing(self) -> None:
        """Begin to wait for a reader that does not read."""
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """End to wait for it."""
        super().resume_writing()
        self._forget_stall()

    def connection_lost(self, exc: Exception | None) -> None:
        """End; no timer is left."""
        self._forget_stall()
        if self._coming is not None:
            self._coming.cancel()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem, and close."""
        self._end_with(_BAD)

    def _await_request(self) -> None:
        self._coming = self.loop.call_later(REQUEST_SECONDS, self._request_is_late)

    def _request_is_late(self) -> None:
        self._coming = None
        if self.transport.is_closing():
            return
        detail = f"the request did not come as a whole within {REQUEST_SECONDS:g} s"
        self._end_with(of_problem(problem("timeout", detail)))

    def _end_with(self, answer: Answer) -> None:
        """Send an answer past the application, if one may still be sent, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body))]
            head = h11.Response(status_code=answer.status, headers=headers)
            for event in (head, h11.Data(data=answer.body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _forget_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
