"""Notes as server-sent events: as they happen, to so many readers, with signs of life."""

import asyncio
import json

import pytest

from coopbandits.fleet.face import RefusedError
from coopbandits.fleet.http.streams import Notes
from fleet.http.asking import serving
from fleet.http.face_twin import FaceTwin
from fleet.http.sockets import Socket, get, problem_of, soon, status_of

BEGUN = b"retry: 1000\n\n"


def served(test, **settings):
    async def run():
        face = FaceTwin()
        async with serving(face, **settings) as (port, stop):
            await test(face, port, stop)

    asyncio.run(run())


async def note_of(one):
    """Return the next note of a stream."""
    line = (await one.until(b"\n\n")).rpartition(b"data: ")[2]
    return json.loads(line)


def test_every_subscriber_is_told_what_happens_as_it_happens():
    async def test(face, port, _):
        async with Socket(port) as one, Socket(port) as other:
            for each in (one, other):
                await each.send(get("/v1/notes"))
                top = await each.until(BEGUN)
                assert b"content-type: text/event-stream" in top
                assert b"cache-control: no-store" in top
            await soon(lambda: len(face.listeners) == 2)
            for value in (1.5, 2.5):
                face._note(kind="rewarded", value=value)
                for each in (one, other):
                    assert await note_of(each) == {"at": 1000.0, "kind": "rewarded", "value": value}
        await soon(lambda: not face.listeners)  # readers that are gone are listened for no more

    served(test)


def test_where_there_is_nothing_to_say_a_comment_says_that_the_stream_lives():
    async def test(face, port, _):
        async with Socket(port) as one:
            await one.send(get("/v1/notes"))
            for _ in range(3):
                assert await one.until(b": nothing new\n\n")
            face._note(kind="decided")
            assert (await note_of(one))["kind"] == "decided"

    served(test, heartbeat=0.02)


def test_one_subscriber_too_many_is_refused_until_another_ends():
    async def test(face, port, _):
        async with Socket(port) as one:
            async with Socket(port) as other:
                for each in (one, other):
                    await each.send(get("/v1/notes"))
                    await each.until(BEGUN)
                async with Socket(port) as third:
                    await third.send(get("/v1/notes", "connection: close"))
                    answer = await third.rest()
                    assert problem_of(answer) == (503, "busy")
                    assert b"retry-after: 5" in answer
            await soon(lambda: len(face.listeners) == 1)
            async with Socket(port) as third:
                await third.send(get("/v1/notes"))
                assert status_of(await third.until(BEGUN)) == 200

    served(test, subscribers=2)


def test_the_stream_of_a_face_that_ends_is_a_whole_answer():
    async def test(face, port, _):
        face.last_notes = 2
        async with Socket(port) as one:
            await one.send(get("/v1/notes", "connection: close"))
            data = await one.rest()
            assert data.count(b"data: ") == 2
            assert data.endswith(b"0\r\n\r\n")

    served(test)


def test_how_many_subscribe_is_shown():
    async def test(face, port, _):
        async with Socket(port) as one, Socket(port) as other:
            await one.send(get("/v1/notes"))
            await one.until(BEGUN)
            await other.send(get("/metrics", "connection: close"))
            assert b"subscribers 1.0" in await other.rest()

    served(test)


def test_a_server_that_stops_takes_no_new_subscribers():
    async def run():
        face = FaceTwin()
        async with serving(face) as (port, stop), Socket(port) as one:
            await one.send(get("/v1/notes"))
            await one.until(BEGUN)
            stop.set()
            assert (await one.rest()).endswith(b"0\r\n\r\n")
            await soon(lambda: not face.listeners)

    asyncio.run(run())


def test_streams_are_refused_once_they_have_been_closed():
    notes = Notes(FaceTwin(), 1, 15.0, lambda count: None)
    notes.stream()
    notes.close()
    with pytest.raises(RefusedError, match="the node is stopping") as refused:
        notes.stream()
    assert refused.value.kind == "stopping"
