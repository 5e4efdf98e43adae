"""Streams: the log as JSON Lines, and notes as server-sent events.

A stream gives way to other requests between its pieces, ends when its reader is gone, and ends
when the server stops.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from itertools import chain, islice
from typing import Any

from starlette.types import Receive, Send

from coopbandits.fleet.face import Face, RefusedError
from coopbandits.fleet.http.answers import Headers, Stream, encode, headers_of
from coopbandits.fleet.http.routes import EVENT_STREAM, JSON_LINES

LINES_AT_ONCE = 50
RETRY_MILLISECONDS = 1000


def log_lines(records: Iterator[dict[str, object]]) -> Stream:
    """Return the stream of a log; the first record is fetched before the answer begins."""
    whole = chain(list(islice(records, 1)), records)

    async def run(receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_gone(receive))
        try:
            await _start(send, stream.headers)
            while lines := [encode(record) for record in islice(whole, LINES_AT_ONCE)]:
                await send(_piece(b"\n".join(lines) + b"\n"))
                await asyncio.sleep(0)
                if gone.done():
                    return
            await send(_piece(b"", last=True))
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            if isinstance(records, Generator):
                records.close()

    stream = Stream(headers_of(JSON_LINES), run)
    return stream


class Notes:
    """Streams a face's notes to a bounded number of subscribers.

    Args:
        face: Whose.
        most: How many subscribers at once.
        heartbeat: Seconds after which a comment is sent where there is nothing to say.
        changed: Is told how many subscribers there are.
    """

    def __init__(
        self, face: Face, most: int, heartbeat: float, changed: Callable[[int], None]
    ) -> None:
        self._face, self._most, self._heartbeat, self._changed = face, most, heartbeat, changed
        self._subscribers = 0
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all streams, and refuse new ones: the server stops."""
        self._closing.set()

    def stream(self) -> Stream:
        """Return a stream of what happens from now on."""
        if self._closing.is_set():
            raise RefusedError("stopping", "the node is stopping; subscribe again later", 1.0)
        if self._subscribers >= self._most:
            raise RefusedError(
                "busy",
                f"{self._most} subscribers have the notes streamed to them already, and that is "
                "the most; close one, or try again later",
                5.0,
            )
        return Stream(headers_of(EVENT_STREAM), self._run)

    def _count(self, change: int) -> None:
        self._subscribers += change
        self._changed(self._subscribers)

    async def _run(self, receive: Receive, send: Send) -> None:
        self._count(1)
        notes = self._face.notes()
        gone = asyncio.create_task(_gone(receive))
        closing = asyncio.create_task(self._closing.wait())
        coming = asyncio.create_task(_next(notes))
        try:
            await _start(send, headers_of(EVENT_STREAM))
            await send(_piece(b"retry: %d\n\n" % RETRY_MILLISECONDS))
            while not (gone.done() or closing.done()):
                await asyncio.wait(
                    (coming, gone, closing),
                    timeout=self._heartbeat,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if coming.done():
                    note = coming.result()
                    if note is None:
                        break
                    coming = asyncio.create_task(_next(notes))
                    await send(_piece(b"data: %s\n\n" % encode(note)))
                elif not (gone.done() or closing.done()):
                    await send(_piece(b": nothing new\n\n"))
            await send(_piece(b"", last=True))
        finally:
            self._count(-1)
            for task in (coming, gone, closing):
                task.cancel()
            await asyncio.gather(coming, gone, closing, return_exceptions=True)
            if isinstance(notes, AsyncGenerator):
                await notes.aclose()


async def _next(notes: AsyncIterator[dict[str, object]]) -> dict[str, object] | None:
    """Return the next note; None if there will be none."""
    return await anext(notes, None)


async def _gone(receive: Receive) -> None:
    """Wait until the reader is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _start(send: Send, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": headers})


def _piece(body: bytes, last: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": not last}
