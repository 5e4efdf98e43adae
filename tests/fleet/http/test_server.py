"""The server ends when it is told to: what is under way is answered, and no longer than `drain`."""

import asyncio
import socket
import time

import pytest

from coopbandits.errors import ParameterError
from coopbandits.fleet.http.app import make_app
from coopbandits.fleet.http.server import serve
from fleet.http.asking import body, serving
from fleet.http.face_twin import FaceTwin
from fleet.http.sockets import Socket, get, post, soon, status_of

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def refuses(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


async def half_sent(one, request):
    """Send the head of a request, and wait until the application reads its body."""
    top, data = request
    await one.send(top.replace(b"\r\n\r\n", b"\r\nexpect: 100-continue\r\n\r\n"))
    assert await one.until(CONTINUE) == CONTINUE
    await one.send(data[:7])
    return data[7:]


def test_a_request_under_way_is_answered_though_no_new_connection_is_taken():
    face = FaceTwin()

    async def run():
        async with (
            serving(face, drain=10.0) as (port, stop),
            Socket(port) as one,
            Socket(port) as idle,
        ):
            await idle.send(get("/healthz"))
            await idle.until(b"}")
            rest = await half_sent(one, post("/v1/decide", body(event_id="one")))
            stop.set()
            await soon(lambda: refuses(port))
            assert await idle.rest() == b""  # between two requests: closed
            assert not face.events
            await one.send(rest)
            answer = await one.rest()
            assert status_of(answer) == 200
            assert "one" in face.events

    asyncio.run(run())


def test_a_request_that_does_not_end_is_given_so_long_and_no_longer():
    face = FaceTwin()

    async def run():
        began = time.monotonic()
        async with serving(face, drain=0.2) as (port, stop), Socket(port) as one:
            await half_sent(one, post("/v1/decide", body(event_id="one")))
            stop.set()
            assert status_of(await one.rest() or b"x 503") in (500, 503)
        assert time.monotonic() - began > 0.2

    asyncio.run(run())
    assert face.asked == 0


def test_streams_end_as_whole_answers_when_the_server_stops():
    async def run():
        async with serving(FaceTwin(), drain=10.0) as (port, stop), Socket(port) as one:
            await one.send(get("/v1/notes"))
            await one.until(b"retry: 1000\n\n")
            began = time.monotonic()
            stop.set()
            assert (await one.rest()).endswith(b"0\r\n\r\n")
            assert time.monotonic() - began < 5.0  # not the time that requests are given

    asyncio.run(run())


def test_a_port_that_another_has_is_refused_and_nothing_is_left():
    async def run(port):
        await serve(
            make_app(FaceTwin()), "127.0.0.1", port, on_started=lambda _: None, stop=asyncio.Event()
        )

    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ParameterError, match="a port that no other program has"),
    ):
        asyncio.run(run(taken.getsockname()[1]))
