"""HTTP by hand over a socket: requests in pieces, and all that comes back."""

import asyncio
import json


def post(path, value, *headers):
    """Return the head and the body of a request."""
    data = json.dumps(value).encode()
    lines = [
        f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json",
        f"content-length: {len(data)}", *headers,
    ]  # fmt: skip
    return head(*lines), data


def head(*lines):
    return "\r\n".join([*lines, "", ""]).encode()


def get(path, *headers):
    return head(f"GET {path} HTTP/1.1", "host: 127.0.0.1", *headers)


class Socket:
    """One connection to a server on loopback; it is closed at the end of the block."""

    def __init__(self, port, **options):
        self._port, self._options = port, options

    async def __aenter__(self):
        self.reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, **self._options
        )
        return self

    async def __aexit__(self, *_):
        self._writer.transport.abort()

    async def send(self, *data):
        self._writer.write(b"".join(data))
        await self._writer.drain()

    async def until(self, end):
        """Return what comes, up to and with an end."""
        async with asyncio.timeout(10):
            return await self.reader.readuntil(end)

    async def rest(self):
        """Return what comes until the server closes."""
        async with asyncio.timeout(10):
            return await self.reader.read()


async def soon(what):
    """Wait until something holds."""
    async with asyncio.timeout(10):
        while not what():
            await asyncio.sleep(0.005)


def status_of(answer):
    return int(answer.split(b" ", 2)[1])


def problem_of(answer):
    """Return the status of an answer, and the kind of its problem."""
    top, _, data = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in top
    found = json.loads(data)
    assert found["status"] == status_of(answer)
    return found["status"], found["type"].removeprefix("/problems/")
