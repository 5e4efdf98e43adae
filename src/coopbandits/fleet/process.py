"""A node as a process: its parts, its signals and its exit code.

| exit code | why |
|---|---|
| 0 | it was told to stop (SIGTERM, SIGINT): requests were answered, and all is on disk |
| 2 | the configuration, or a log that is another node's or a newer release's |
| 3 | the disk: the log cannot be read, or made durable |
| 4 | the log is damaged |
| 5 | a fork: another copy of the node writes, or its log was replaced by an older one |
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Literal

from coopbandits.errors import CoopBanditsError
from coopbandits.fleet.configuration import Configuration
from coopbandits.fleet.core.actions import CONFIGURATION, DAMAGED, DISK
from coopbandits.fleet.http.app import make_app
from coopbandits.fleet.http.server import serve
from coopbandits.fleet.learner import ProcessLearner
from coopbandits.fleet.links.zenoh import ZenohLinks
from coopbandits.fleet.ports import DamageError, StoreError
from coopbandits.fleet.runtime import Node
from coopbandits.fleet.service_manager import ServiceManager
from coopbandits.fleet.store.sqlite import SqliteStore

_log = logging.getLogger("coopbandits.fleet")
# What the node runs on, and speaks through its log.
_OTHERS = ("uvicorn.error", "asyncio")
# Seconds between two looks for the parent, where the node ends with it.
_ORPHANED = 0.25


def open_store(configuration: Configuration) -> SqliteStore:
    """Open a node's log."""
    return SqliteStore(
        configuration.folder,
        identity=configuration.identity,
        most_bytes=configuration.said.log.most_bytes,
    )


def exit_code(error: CoopBanditsError) -> int:
    """Return with which code a node ends that cannot start."""
    if isinstance(error, DamageError):
        return DAMAGED
    return DISK if isinstance(error, StoreError) else CONFIGURATION


def run(
    configuration: Configuration,
    *,
    on_ready: Callable[[int, Node], None] | None = None,
    learner: Literal["spawn", "fork"] = "spawn",
    parent: int | None = None,
) -> int:
    """Be a node until it is told to stop, or has to; return the exit code.

    Args:
        configuration: Of the node.
        on_ready: Is told the port, once requests are taken.
        learner: How its learner's process is started; "fork" where nothing has started a thread.
        parent: A process id: the node ends when its parent is another.
    """
    _start_log(configuration)
    try:
        return asyncio.run(_run(configuration, on_ready, learner, parent))
    except CoopBanditsError as error:
        sys.stderr.write(f"coop node {configuration.settings.name}: {error}\n")
        return exit_code(error)


async def _run(
    configuration: Configuration,
    on_ready: Callable[[int, Node], None] | None,
    learner: Literal["spawn", "fork"],
    parent: int | None,
) -> int:
    said, settings = configuration.said, configuration.settings
    manager, stop = ServiceManager(os.environ), asyncio.Event()
    store = open_store(configuration)
    links = ZenohLinks(settings.fleet, settings.name, configuration.listen, configuration.peers)
    node = Node(
        settings,
        configuration.keys,
        store,
        links,
        ProcessLearner(learner),
        restored=store.restored,
    )
    try:
        await node.start()
    except CoopBanditsError:
        await node.stop(drain=False)
        raise
    gc.freeze()  # modules and the state so far live as long as the node: no need to walk them again
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def ready(port: int) -> None:
        _log.info("node %s of fleet %s at http://%s:%d", settings.name, settings.fleet,
                  said.http.host, port)  # fmt: skip
        manager.ready(f"node {settings.name} on port {port}")
        if on_ready is not None:
            on_ready(port, node)

    chores = [
        asyncio.create_task(_end_with(node, stop)),
        asyncio.create_task(_clear_restored(node, store)),
        asyncio.create_task(_sign_of_life(manager)),
        asyncio.create_task(_end_with_parent(parent, stop)),
    ]
    try:
        await serve(
            make_app(node, body_limit=said.http.body_limit),
            said.http.host,
            said.http.port,
            on_started=ready,
            stop=stop,
            drain=said.http.drain,
        )
    finally:
        manager.stopping()
        for chore in chores:
            chore.cancel()
        await node.stop()
    code = node.ended.result()[0] if node.ended.done() else 0
    _log.info("node %s stopped with exit code %d", settings.name, code)
    return code


async def _end_with(node: Node, stop: asyncio.Event) -> None:
    """Stop serving once the core has stopped by itself."""
    await asyncio.wait([node.ended])
    stop.set()


async def _clear_restored(node: Node, store: SqliteStore) -> None:
    """Take the mark of a backup away, once the epoch that began after it is durable."""
    if not store.restored:
        return
    began = node.core.journal.position
    while node.core.journal.synced < began:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(store.clear_restored)


async def _sign_of_life(manager: ServiceManager) -> None:
    while manager.watchdog is not None:
        manager.alive()
        await asyncio.sleep(manager.watchdog / 3)


async def _end_with_parent(parent: int | None, stop: asyncio.Event) -> None:
    while parent is not None:
        if os.getppid() != parent:
            stop.set()
            return
        await asyncio.sleep(_ORPHANED)


def _start_log(configuration: Configuration) -> None:
    """Write the log for people to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    name = configuration.settings.name
    form = f"%(asctime)s %(levelname)s {name.replace('%', '%%')} %(message)s"
    handler.setFormatter(logging.Formatter(form))
    level = logging.getLevelName(configuration.said.log_level.upper())
    # The server says at its own level of information what the node says itself.
    others = max(level, logging.WARNING)
    for log, least in ((_log, level), *((logging.getLogger(name), others) for name in _OTHERS)):
        log.handlers[:] = [handler]
        log.propagate = False
        log.setLevel(least)
