"""Zenoh between processes that are killed and stalled, with others that speak out of turn."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import zenoh

from coopbandits.errors import ParameterError
from coopbandits.fleet.links.zenoh import QUEUED, ByteQueue, ZenohLinks

PATIENCE = 20.0

PEER = """
import sys, time
from coopbandits.fleet.links.zenoh import ZenohLinks

fleet, me, listen, neighbour, endpoint = sys.argv[1:]
links = ZenohLinks(fleet, me, listen, {neighbour: endpoint})
links.start(lambda name, data: links.send(name, b"echo " + data[:20]), lambda name, up: None)
print("started", flush=True)
sys.stdin.readline()  # and ends without closing
"""


def endpoint():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{one.getsockname()[1]}"


def wait_for(condition):
    """Wait for what comes soon, on however busy a machine."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


class Peers:
    """A node of this process, and neighbours in processes of their own."""

    def __init__(self, me, *names):
        self.me, self.ports = me, {name: endpoint() for name in (me, *names)}
        self.links = ZenohLinks("f", me, self.ports[me], {n: self.ports[n] for n in names})
        self.processes, self.messages, self.changes = {}, [], []
        self.links.start(
            lambda name, data: self.messages.append((name, data)),
            lambda name, up: self.changes.append((name, up)),
        )

    def launch(self, name):
        process = subprocess.Popen(
            [sys.executable, "-c", PEER, "f", name, self.ports[name], self.me, self.ports[self.me]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes[name] = process
        assert process.stdout.readline() == "started\n"
        return process

    def up(self, name):
        return dict(self.changes).get(name, False)

    def end(self):
        self.links.close()
        for process in self.processes.values():
            process.kill()
            process.communicate()


@pytest.fixture
def peers(request):
    made = Peers(*request.param)
    yield made
    made.end()


# which of the two connects depends on their names
@pytest.mark.parametrize("peers", [("a", "b"), ("b", "a")], indirect=True, ids=["out", "in"])
def test_a_killed_neighbour_is_down_at_once_and_up_when_it_is_back(peers):
    [name] = peers.links.neighbours
    process = peers.launch(name)
    wait_for(lambda: peers.up(name))
    peers.links.send(name, b"1")
    wait_for(lambda: peers.messages == [(name, b"echo 1")])
    process.kill()
    process.communicate()
    wait_for(lambda: not peers.up(name))
    peers.links.send(name, b"2")
    peers.launch(name)
    wait_for(lambda: peers.up(name))
    peers.links.send(name, b"3")
    wait_for(lambda: peers.messages == [(name, b"echo 1"), (name, b"echo 3")])
    assert peers.changes == [(name, True), (name, False), (name, True)]


@pytest.mark.parametrize("peers", [("a", "b", "c")], indirect=True)
def test_a_stalled_neighbour_delays_nobody_and_not_the_end(peers):
    process = peers.launch("b")
    peers.launch("c")
    wait_for(lambda: peers.up("b") and peers.up("c"))
    os.kill(process.pid, signal.SIGSTOP)
    try:
        big = bytes(256_000)
        for i in range(60):
            peers.links.send("b", big)
            peers.links.send("c", b"%d" % i)
        wait_for(lambda: len(peers.messages) == 60)
        assert peers.links.dropped["b"] > 0
        assert peers.links.dropped["c"] == 0
        peers.links.close()  # though "b" does not answer
    finally:
        os.kill(process.pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("peers", [("a", "b")], indirect=True)
def test_a_stalled_neighbour_is_down_after_its_lease_and_up_when_it_goes_on(peers):
    process = peers.launch("b")
    wait_for(lambda: peers.up("b"))
    os.kill(process.pid, signal.SIGSTOP)
    wait_for(lambda: not peers.up("b"))
    os.kill(process.pid, signal.SIGCONT)
    wait_for(lambda: peers.up("b"))


@pytest.mark.parametrize("peers", [("a", "b")], indirect=True)
def test_a_process_may_end_without_closing(peers):
    process = peers.launch("b")
    wait_for(lambda: peers.up("b"))
    process.stdin.close()
    assert process.wait(timeout=PATIENCE) == 0
    process.stdout.close()
    del peers.processes["b"]
    wait_for(lambda: not peers.up("b"))


@pytest.fixture
def outsider():
    """A session of no node, that connects where it is told to."""
    sessions = []

    def joined(*endpoints):
        config = zenoh.Config()
        for key, value in {
            "mode": "peer",
            "listen/endpoints": [],
            "connect/endpoints": endpoints,
            "scouting/delay": 0,
            "scouting/multicast/enabled": False,
            "scouting/gossip/enabled": False,
        }.items():
            config.insert_json5(key, json.dumps(value))
        sessions.append(zenoh.open(config))
        return sessions[-1]

    yield joined
    for session in sessions:
        session.close()


class Heard:
    def __init__(self, fleet, me, listen, peers):
        self.links, self.calls = ZenohLinks(fleet, me, listen, peers), []
        self.links.start(
            lambda name, data: self.calls.append((name, data)),
            lambda name, up: self.calls.append((name, up)),
        )


def test_a_node_relays_nothing_and_hears_its_neighbours_only(outsider):
    """An outsider next to b speaks in the name of others, to b and over b to c."""
    b_at, c_at = endpoint(), endpoint()
    c = Heard("f", "c", c_at, {"a": endpoint(), "b": b_at})
    b = Heard("f", "b", b_at, {"c": c_at})
    try:
        session = outsider(b_at)
        wait_for(lambda: ("c", True) in b.calls and ("b", True) in c.calls)
        wait_for(lambda: len(session.info.peers_zid()) == 1)
        tokens = [session.liveliness().declare_token(f"coop/f/{to}/a/1") for to in "bc"]
        for key in ("f/c/a", "f/c/b", "f/b/a", "f/b/b", "f/b", "g/b/c", "f/b/c/d"):
            session.put(f"coop/{key}", b"wrong")
        session.put("coop/f/b/c", b"last")  # nobody but TLS can tell that this is not c
        wait_for(lambda: ("c", b"last") in b.calls)
        time.sleep(0.2)
        assert b.calls == [("c", True), ("c", b"last")]
        assert c.calls == [("b", True)]
        assert len(tokens) == 2
    finally:
        b.links.close()
        c.links.close()


def test_a_neighbour_that_was_started_again_before_it_was_missed_is_told_of(outsider):
    node = Heard("f", "b", listen := endpoint(), {"c": endpoint()})
    try:
        old, new = outsider(listen), outsider(listen)
        first = old.liveliness().declare_token("coop/f/b/c/1")
        wait_for(lambda: node.calls == [("c", True)])
        second = new.liveliness().declare_token("coop/f/b/c/2")
        wait_for(lambda: node.calls[1:] == [("c", False), ("c", True)])
        first.undeclare()
        time.sleep(0.2)
        assert len(node.calls) == 3
        second.undeclare()
        wait_for(lambda: node.calls[3:] == [("c", False)])
    finally:
        node.links.close()


def test_fleets_of_other_names_do_not_hear_each_other():
    a_at, b_at = endpoint(), endpoint()
    b, a = Heard("g", "b", b_at, {"a": a_at}), Heard("f", "a", a_at, {"b": b_at})
    time.sleep(0.5)
    a.links.close()
    b.links.close()
    assert a.calls == b.calls == []


def test_links_may_be_closed_from_within_a_call():
    a_at, b_at = endpoint(), endpoint()
    b, done = Heard("f", "b", b_at, {"a": a_at}), threading.Event()
    a = ZenohLinks("f", "a", a_at, {"b": b_at})

    def end(*_):
        a.close()
        done.set()

    a.start(end, end)
    try:
        assert done.wait(5)
        wait_for(lambda: b.calls == [("a", True), ("a", False)])
    finally:
        b.links.close()


@pytest.mark.parametrize(
    ("listen", "complaint"),
    [
        ("tcp/127.0.0.1:0", "leaves the port open"),
        ("127.0.0.1", "cannot listen on '127.0.0.1'"),
        ("tcp/192.0.2.1:7447", "cannot listen on"),  # no address of this machine
    ],
)
def test_endpoints_where_nobody_can_listen_are_refused(listen, complaint):
    with pytest.raises(ParameterError, match=complaint):
        ZenohLinks("f", "a", listen, {"b": endpoint()}).start(print, print)


def test_a_port_that_is_taken_is_refused_and_can_be_taken_later():
    listen = endpoint()
    first = ZenohLinks("f", "a", listen, {})
    first.start(print, print)
    second = ZenohLinks("f", "b", listen, {})
    with pytest.raises(ParameterError, match="Address already in use"):
        second.start(print, print)
    first.close()
    second.start(print, print)
    second.close()


def test_a_full_queue_drops_the_oldest_messages_and_no_change():
    queue = ByteQueue(10)
    assert queue.put("a", bytes(4)) == []
    assert queue.put("a", True) == []
    assert queue.put("b", bytes(6)) == []
    assert queue.put("b", False) == []
    assert queue.put("c", bytes(5)) == ["a", "b"]
    assert [queue.get() for _ in range(3)] == [("a", True), ("b", False), ("c", bytes(5))]
    assert queue.put("d", bytes(11)) == ["d"]
    queue.close()
    assert queue.get() is None
    assert queue.put("a", b"") == ["a"]
    assert queue.put("a", True) == []


def test_a_node_that_does_not_listen_holds_no_more_than_its_queue():
    a_at, b_at = endpoint(), endpoint()
    go_on, held = threading.Event(), []
    b = ZenohLinks("f", "b", b_at, {"a": a_at})

    def received(name, data):
        held.append(data)
        go_on.wait(10)

    b.start(received, lambda name, up: None)
    a = Heard("f", "a", a_at, {"b": b_at})
    try:
        wait_for(lambda: a.calls == [("b", True)])
        for _ in range(QUEUED // 250_000 + 20):
            a.links.send("b", bytes(250_000))
            time.sleep(0.01)
        wait_for(lambda: b.refused["a"] > 0)
        go_on.set()
        a.links.send("b", b"last")
        wait_for(lambda: held[-1] == b"last")
        assert a.calls == [("b", True)]
    finally:
        go_on.set()
        a.links.close()
        b.close()
