"""Links over Eclipse Zenoh: plain publish and subscribe between peers, without a server.

A message goes to the key `coop/{fleet}/{to}/{from}`. A liveliness token at
`coop/{fleet}/{to}/{from}/{session}` says that the sender is there and takes messages; it goes away
with the sender's connection: at once when its process ends, after `LEASE` when it stalls or the
network is cut.

What Zenoh 1.10 does, and what is made of it:

- Of two neighbours, the one whose name comes first connects, and tries again for ever. Connections
  from both sides would end each other. Peers relay nothing, and find nobody else: multicast and
  gossip are off.
- A put waits for a busy connection before it drops a message: for 50 ms here, instead of the 1 ms
  after which Zenoh drops a quarter of a burst of small messages. So each neighbour has a queue and
  a thread of its own, which alone is held up until the lease of a stalled connection is over.
- Zenoh calls back from the thread that reads the connection. What arrives waits in a queue for one
  thread that hands it over; when that is slow, the oldest messages are dropped.
- `Session.close` waits 10 s for a stalled connection. It runs in a thread that is not waited for
  longer than `PATIENCE`.
- Some native threads are shared by all sessions of a process, and stay. Zenoh must not be used in a
  process before it forks.
"""

import json
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from coopbandits.errors import MissingExtraError, ParameterError
from coopbandits.fleet.links import LARGEST, checked_message, checked_names, checked_order

try:
    import zenoh
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "Eclipse Zenoh is not installed, and links between machines need it; try: "
        "pip install 'coopbandits[fleet]'"
    ) from error

LEASE = 2.0  # seconds without a sign of life after which a connection is given up
PATIENCE = 2.0  # seconds for which `close` waits
QUEUED = 4 << 20  # bytes that may wait for a neighbour, and for the own node per neighbour

_WAIT = 50_000  # microseconds for which a put may wait for a connection that is busy
_RETRY = {"period_init_ms": 100, "period_max_ms": 500, "period_increase_factor": 1.5}


class ByteQueue:
    """A queue of messages between threads, bounded by their bytes; the oldest go first.

    Of one more than there is room for, the oldest are dropped. What has no bytes to speak of, such
    as a change of a link, is never dropped.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._items: deque[tuple[str, bytes | bool]] = deque()
        self._ready = threading.Condition(threading.Lock())
        self._closed = False

    def put(self, name: str, item: bytes | bool) -> list[str]:
        """Append a message or a change, and return of whom messages were dropped instead."""
        dropped: list[str] = []
        with self._ready:
            if self._closed:
                return [name] if isinstance(item, bytes) else []
            self._items.append((name, item))
            self._size += len(item) if isinstance(item, bytes) else 0
            if self._size > self._most:
                dropped = self._make_room()
            self._ready.notify()
        return dropped

    def get(self) -> tuple[str, bytes | bool] | None:
        """Wait for the oldest, and return it; None once the queue is closed."""
        with self._ready:
            while not self._items and not self._closed:
                self._ready.wait()
            if self._closed:
                return None
            name, item = self._items.popleft()
            self._size -= len(item) if isinstance(item, bytes) else 0
            return name, item

    def close(self) -> None:
        """Drop what waits, and let `get` return."""
        with self._ready:
            self._closed = True
            self._items.clear()
            self._ready.notify_all()

    def _make_room(self) -> list[str]:
        dropped, changes = [], []
        while self._size > self._most:
            name, item = self._items.popleft()
            if isinstance(item, bytes):
                self._size -= len(item)
                dropped.append(name)
            else:
                changes.append((name, item))
        self._items.extendleft(reversed(changes))
        return dropped


class ZenohLinks:
    """Links to neighbours over Eclipse Zenoh, each with a TCP connection of its own.

    Args:
        fleet: The fleet's name; others are not heard.
        me: The node's own name.
        listen: Where it listens, such as "tcp/127.0.0.1:7447". Others must know the port, so it
            cannot be 0.
        peers: Where each neighbour listens.
    """

    def __init__(self, fleet: str, me: str, listen: str, peers: Mapping[str, str]) -> None:
        self.me = me
        self.neighbours = checked_names(me, peers)
        checked_names(fleet, ())
        if listen.rpartition(":")[2] == "0":
            raise ParameterError(
                f"listen={listen!r} leaves the port open, but neighbours must know it; name one"
            )
        self._fleet, self._listen, self._peers = fleet, listen, dict(peers)
        self._queues = {name: ByteQueue(QUEUED) for name in self.neighbours}
        self._arrived = ByteQueue(QUEUED * max(1, len(self.neighbours)))
        self._sessions: dict[str, set[str]] = {name: set() for name in self.neighbours}
        self._lock = threading.Lock()
        self._dropped: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._threads: list[threading.Thread] = []
        self._session: Any = None  # its stubs have no types of what is returned
        self._closed = False

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many messages to neighbours were dropped before they were on their way."""
        return MappingProxyType(self._dropped)

    @property
    def refused(self) -> Mapping[str, int]:
        """How many messages of neighbours were dropped because the node did not take them."""
        return MappingProxyType(self._refused)

    def start(
        self, received: Callable[[str, bytes], None], linked: Callable[[str, bool], None]
    ) -> None:
        """Listen, and connect to neighbours as they appear; the calls come from one thread."""
        checked_order(self._session is not None or self._closed, expected=False)
        try:
            self._session = zenoh.open(self._config())
        except zenoh.ZError as error:
            raise ParameterError(
                f"cannot listen on {self._listen!r} with the peers {self._peers}: {error}. Give "
                'endpoints such as "tcp/127.0.0.1:7447", of which the own is free'
            ) from error
        self._threads = [
            threading.Thread(target=self._send_all, args=(name,), daemon=True)
            for name in self.neighbours
        ]
        self._threads.append(
            threading.Thread(target=self._hand_over, args=(received, linked), daemon=True)
        )
        for thread in self._threads:
            thread.start()
        # First what takes messages, then what says so.
        for name in self.neighbours:
            self._listen_to(name)
        token = f"{os.getpid()}-{self._session.zid()}"
        liveliness = self._session.liveliness()
        self._tokens = [
            liveliness.declare_token(f"{self._key(name, self.me)}/{token}")
            for name in self.neighbours
        ]

    def send(self, neighbour: str, data: bytes) -> None:
        """Queue bytes for a neighbour's thread; the oldest that wait are dropped if it stalls."""
        checked_message(self.neighbours, neighbour, data)
        checked_order(self._session is not None or self._closed, expected=True)
        if self._closed or not self._sessions[neighbour]:
            lost = [neighbour]
        else:
            lost = self._queues[neighbour].put(neighbour, bytes(data))
        self._count(self._dropped, lost)

    def close(self) -> None:
        """End within about twice `PATIENCE`, whatever connections and callbacks do."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for queue in (*self._queues.values(), self._arrived):
            queue.close()
        if self._session is None:
            return
        closing = threading.Thread(target=self._close_session, daemon=True)
        closing.start()
        closing.join(PATIENCE)
        until = time.monotonic() + PATIENCE
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))

    def _key(self, target: str, source: str) -> str:
        return "/".join(("coop", *(quote(part, safe="") for part in (self._fleet, target, source))))

    def _config(self) -> zenoh.Config:
        connect = [endpoint for name, endpoint in self._peers.items() if self.me < name]
        settings = {
            "mode": "peer",
            "listen/endpoints": [self._listen],
            "connect/endpoints": connect,
            "connect/timeout_ms": -1,
            "connect/exit_on_failure": False,
            "connect/retry": _RETRY,
            "scouting/delay": 0,  # else `open` waits for who might be found
            "scouting/multicast/enabled": False,
            "scouting/gossip/enabled": False,
            "transport/unicast/open_timeout": int(2000 * LEASE),
            "transport/unicast/accept_timeout": int(2000 * LEASE),
            "transport/link/tx/lease": int(1000 * LEASE),
            "transport/link/rx/max_message_size": 2 * LARGEST,
            "transport/link/tx/queue/congestion_control/drop/wait_before_drop": _WAIT,
            "transport/link/tx/queue/congestion_control/drop/max_wait_before_drop_fragments": _WAIT,
            "transport/shared_memory/enabled": False,  # it would outlive a killed process
        }
        config = zenoh.Config()
        for key, value in settings.items():
            config.insert_json5(key, json.dumps(value))
        return config

    def _listen_to(self, name: str) -> None:
        def arrived(sample: Any) -> None:
            self._count(self._refused, self._arrived.put(name, sample.payload.to_bytes()))

        def appeared(sample: Any) -> None:
            session = str(sample.key_expr).rpartition("/")[2]
            self._link(name, session, up=sample.kind == zenoh.SampleKind.PUT)

        key, callback = self._key(self.me, name), zenoh.handlers.Callback
        self._session.declare_subscriber(key, callback(arrived, indirect=False))
        self._session.liveliness().declare_subscriber(
            f"{key}/*", callback(appeared, indirect=False), history=True
        )

    def _link(self, name: str, session: str, *, up: bool) -> None:
        with self._lock:
            sessions = self._sessions[name]
            before = bool(sessions)
            if up == (session in sessions):
                return
            if up:
                sessions.add(session)
            else:
                sessions.discard(session)
            changes = [False, True] if up and before else [up] if up or not sessions else []
            for change in changes:
                self._arrived.put(name, change)

    def _send_all(self, name: str) -> None:
        queue, key = self._queues[name], self._key(name, self.me)
        while (item := queue.get()) is not None:
            try:
                self._session.put(
                    key, item[1], congestion_control=zenoh.CongestionControl.DROP, express=True
                )
            except zenoh.ZError:  # the session is closing
                self._count(self._dropped, [name])

    def _hand_over(
        self, received: Callable[[str, bytes], None], linked: Callable[[str, bool], None]
    ) -> None:
        while (item := self._arrived.get()) is not None:
            name, what = item
            if isinstance(what, bytes):
                received(name, what)
            else:
                linked(name, what)

    def _count(self, counter: Counter[str], names: list[str]) -> None:
        if names:
            with self._lock:
                counter.update(names)

    def _close_session(self) -> None:
        try:
            self._session.close()
        except zenoh.ZError:
            return  # a stalled connection: Zenoh has given up waiting for it
