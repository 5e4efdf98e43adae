"""The server: uvicorn in an event loop that somebody else runs, without signals of its own."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.applications import Starlette

from coopbandits.errors import ParameterError
from coopbandits.fleet.http.connections import HEADER_BYTES, BoundedConnection, BoundedHead

KEEP_ALIVE_SECONDS = 30
BACKLOG = 256


async def serve(
    app: Starlette,
    host: str,
    port: int,
    *,
    on_started: Callable[[int], None],
    stop: asyncio.Event,
    drain: float = 10.0,
) -> None:
    """Serve an application until told to stop; then answer what is under way, and return.

    Streams end at once. If it is cancelled, connections are closed as they are.

    Args:
        app: Made by `make_app`.
        host: The address to listen on; whether it may be reached from elsewhere is the caller's
            to decide.
        port: The port; 0 for any that is free.
        on_started: Is told the port, once connections are taken.
        stop: Set to stop.
        drain: Seconds that requests under way are given.
    """
    listening = _listen(host, port)
    config = uvicorn.Config(
        BoundedHead(app),
        http=BoundedConnection,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        # uvicorn waits for connections as long as that, which may be a fraction.
        timeout_graceful_shutdown=drain,  # type: ignore[arg-type]
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        while not server.started and not running.done():
            await asyncio.sleep(0.005)
        if server.started:
            on_started(listening.getsockname()[1])
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        app.state.notes.close()
        server.should_exit = True
        await running
    finally:
        app.state.notes.close()
        running.cancel()
        stopping.cancel()
        await asyncio.gather(running, stopping, return_exceptions=True)
        for listener in getattr(server, "servers", []):
            listener.close()
        for connection in list(server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        for task in list(server.server_state.tasks):
            task.cancel()
        listening.close()


class _Server(uvicorn.Server):
    """uvicorn, which leaves signals to the node."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise ParameterError(
            f"cannot listen on {host} port {port}: {error}; choose an address of this machine and "
            "a port that no other program has, or port 0 for any that is free"
        ) from error
    # Connections inherit it. An answer is written in two parts, and the second would wait 40 ms for
    # the first to be acknowledged; asyncio sets it only where a socket names TCP as its protocol.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
