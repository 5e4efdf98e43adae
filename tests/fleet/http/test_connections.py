"""Connections have limits: of time, of size, of number; and whoever speaks no HTTP is told so."""

import asyncio
import logging
from itertools import count

import pytest

from coopbandits.fleet.http import connections
from coopbandits.fleet.http.connections import HEADER_BYTES, MOST_CONNECTIONS
from fleet.http.asking import body, serving
from fleet.http.face_twin import FaceTwin
from fleet.http.sockets import Socket, get, post, problem_of, soon, status_of


def served(test, **settings):
    """Run a test with a face and the port at which it is served."""

    async def run():
        face = FaceTwin()
        async with serving(face, **settings) as (port, _):
            await test(face, port)

    asyncio.run(run())


@pytest.mark.parametrize("said", [b"", b"GET", b"GET /healthz HTTP/1.1\r\nhost: 127."])
def test_a_head_that_does_not_come_in_time_is_answered_with_408_and_closed(monkeypatch, said):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)

    async def test(face, port):
        async with Socket(port) as one:
            await one.send(said)
            assert problem_of(await one.rest()) == (408, "timeout")

    served(test)


def test_the_next_request_of_a_connection_has_its_time_too(monkeypatch):
    async def test(face, port):
        async with Socket(port) as one:
            await one.send(get("/healthz"))
            await one.until(b"}")
            monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
            await one.send(b"GET /heal")
            assert problem_of(await one.rest()) == (408, "timeout")

    served(test)


def test_a_body_that_does_not_come_in_time_is_answered_with_408_and_closed():
    async def test(face, port):
        async with Socket(port) as one:
            top, data = post("/v1/decide", body())
            await one.send(top, data[:-1])
            assert problem_of(await one.rest()) == (408, "timeout")
            assert face.asked == 0

    served(test, body_timeout=0.1)


def test_a_reader_that_does_not_read_is_let_go_and_its_stream_ends(monkeypatch):
    monkeypatch.setattr(connections, "STALLED_SECONDS", 0.1)
    made, closed = [], []

    async def test(face, port):
        def log(after, most):
            try:
                for number in count():
                    made.append(number)
                    yield {"position": number, "filler": "x" * 100_000}
            finally:
                closed.append(True)

        face.log = log
        async with Socket(port, limit=1000) as one:
            await one.send(get("/v1/log"))
            await soon(lambda: closed)
            before = len(made)
            assert not (await one.rest()).endswith(b"0\r\n\r\n")  # and never an end that is none
        async with Socket(port) as other:
            await other.send(get("/healthz", "connection: close"))
            assert status_of(await other.rest()) == 200
        assert len(made) == before

    served(test)


def test_one_connection_too_many_is_refused_until_another_ends():
    async def test(face, port):
        held = [Socket(port) for _ in range(MOST_CONNECTIONS)]
        try:
            for one in held:
                await one.__aenter__()
            await held[-1].send(get("/healthz"))
            assert status_of(await held[-1].until(b"}")) == 200
            async with Socket(port) as more:
                await more.send(get("/healthz"))
                answer = await more.rest()
                assert problem_of(answer) == (503, "busy")
                assert b"retry-after: 1" in answer
            await held.pop().__aexit__()
            for _ in range(500):
                async with Socket(port) as more:
                    await more.send(get("/healthz", "connection: close"))
                    if status_of(await more.rest()) == 200:
                        return
                await asyncio.sleep(0.01)
            raise AssertionError("no room was made")
        finally:
            for one in held:
                if hasattr(one, "reader"):
                    await one.__aexit__()

    served(test)


@pytest.mark.parametrize(
    "said",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"HELO there\r\n\r\n",
     b"GET /healthz HTTP/1.1\r\n\r\n",  # no host
     b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
     b"x" * (2 * HEADER_BYTES)],
)  # fmt: skip
def test_what_is_no_http_is_answered_with_a_problem_and_closed(said, caplog, capfd):
    caplog.set_level(logging.CRITICAL)

    async def test(face, port):
        async with Socket(port) as one:
            await one.send(said)
            assert problem_of(await one.rest()) == (400, "bad-request")
            assert face.asked == 0

    served(test)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("pieces", [1, 40])
@pytest.mark.parametrize("more", [0, 1])
def test_a_head_has_so_many_bytes_however_it_comes(more, pieces):
    plain = get("/healthz", "connection: close", "x-more: ")
    data = get(
        "/healthz", "connection: close", "x-more: " + "y" * (HEADER_BYTES - len(plain) + more)
    )
    assert len(data) == HEADER_BYTES + more

    async def test(face, port):
        async with Socket(port) as one:
            size = -(-len(data) // pieces)
            for start in range(0, len(data), size):
                await one.send(data[start : start + size])
                await asyncio.sleep(0)
            answer = await one.rest()
            if more:
                assert problem_of(answer) == (400, "bad-request")
            else:
                assert status_of(answer) == 200

    served(test)


def test_a_head_of_many_lines_is_counted_as_a_whole():
    lines = [f"x-{number}: {'y' * 190}" for number in range(100)]

    async def test(face, port):
        async with Socket(port) as one:
            await one.send(get("/v1/status", *lines))
            assert problem_of(await one.rest()) == (400, "bad-request")

    served(test)
