"""Clients over a socket of their own: one request at a time, as few cycles as Python allows."""

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.fleet.world import ACTIONS, World


class Wire:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return status and body of the answer."""
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._received()
        head_bytes, _, rest = data.partition(b"\r\n\r\n")
        status = int(head_bytes[9:12])
        length = 0
        for line in head_bytes.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        while len(rest) < length:
            rest += self._received()
        return status, rest

    def _received(self) -> bytes:
        data = self._socket.recv(65536)
        if not data:
            raise RuntimeError("the node closed the connection")
        return data

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def decide_body(world: World) -> bytes:
    """Draw a request for a decision."""
    actions = [{"id": f"a{i}", "context": x} for i, x in enumerate(world.sphere(ACTIONS).tolist())]
    return json.dumps({"actions": actions}, separators=(",", ":")).encode()


def decided(wire: Wire, body: bytes) -> str:
    """Ask for a decision, and return its event."""
    status, answer = wire.ask("POST", "/v1/decide", body)
    if status != 200:
        raise RuntimeError(f"decide was answered with {status}: {answer[:300]!r}")
    return str(json.loads(answer)["event_id"])


def rewarded(wire: Wire, event: str, value: float) -> float:
    """Send a reward, and return the seconds it took."""
    since = time.perf_counter()
    status, answer = wire.ask("POST", f"/v1/events/{event}/reward", b'{"value":%.6f}' % value)
    if status != 204:
        raise RuntimeError(f"reward was answered with {status}: {answer[:300]!r}")
    return time.perf_counter() - since


def closed_loop(count: int, seconds: float, made: Callable[[int], Callable[[], Any]]) -> float:
    """Let threads do something over and over; return how often a second all of them did.

    Args:
        count: How many threads.
        seconds: For how long.
        made: Makes what a thread does.
    """
    done, ready, go = [0] * count, threading.Barrier(count + 1), threading.Event()
    wrong: list[BaseException] = []
    stop = threading.Event()

    def run(number: int) -> None:
        try:
            step = made(number)
            ready.wait()
            go.wait()
            while not stop.is_set():
                step()
                done[number] += 1
        except BaseException as error:  # told by whoever waits
            wrong.append(error)
            ready.abort()

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    try:
        ready.wait(60)
    except threading.BrokenBarrierError:
        raise RuntimeError(f"a client failed: {wrong[:1]}") from None
    since = time.perf_counter()
    go.set()
    time.sleep(seconds)
    total = sum(done)
    lasted = time.perf_counter() - since
    stop.set()
    for thread in threads:
        thread.join(30)
    if wrong:
        raise RuntimeError(f"a client failed: {wrong[0]!r}")
    return total / lasted


def percentiles(times: list[float]) -> dict[str, float]:
    """Return p50, p99 and the largest, in milliseconds."""
    each = 1e3 * np.array(times)
    return {
        "count": len(each),
        "p50": round(float(np.percentile(each, 50)), 4),
        "p99": round(float(np.percentile(each, 99)), 4),
        "largest": round(float(each.max()), 4),
    }
