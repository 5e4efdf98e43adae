"""Requests to an application in this process, and to a server on loopback."""

import asyncio
import contextlib

import httpx

from coopbandits.fleet.http.app import make_app
from coopbandits.fleet.http.server import serve

BASE = "http://127.0.0.1:8080"
JSON = {"content-type": "application/json"}


def body(*names, **more):
    names = names or ("a", "b")
    actions = [{"id": name, "context": [float(place), 1.0]} for place, name in enumerate(names)]
    return {"actions": actions, **more}


def talk(face, *requests, **settings):
    """Send requests (method, path, arguments of httpx) one after the other; return the answers."""

    async def run():
        transport = httpx.ASGITransport(make_app(face, **settings))
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            return [
                await client.request(method, path, **(more[0] if more else {}))
                for method, path, *more in requests
            ]

    return asyncio.run(run())


def say(face, method, path, **more):
    [answer] = talk(face, (method, path, more))
    return answer


def kind_of(answer):
    """The kind of a problem, after checking that it is one."""
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert {"type", "title", "detail"} <= set(problem)
    assert all(problem.values())
    return problem["type"].removeprefix("/problems/")


@contextlib.asynccontextmanager
async def serving(face, drain=1.0, **settings):
    """Run a server in this loop; yields its port and what stops it."""
    ports = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    server = asyncio.create_task(
        serve(
            make_app(face, hosts=None, **settings),
            "127.0.0.1",
            0,
            on_started=ports.set_result,
            stop=stop,
            drain=drain,
        )
    )
    await asyncio.wait([server, ports], return_when=asyncio.FIRST_COMPLETED)
    assert ports.done(), server.exception()
    try:
        yield ports.result(), stop
    finally:
        stop.set()
        async with asyncio.timeout(10):
            await server
