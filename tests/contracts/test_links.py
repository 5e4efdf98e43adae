"""What all links must do: carry to neighbours or lose, say which are up, and end."""

import itertools
import socket
import threading
import time

import pytest

from coopbandits.errors import InputError, LocalProtocolError
from coopbandits.fleet.links import LARGEST
from coopbandits.fleet.links.memory import MemoryNetwork
from coopbandits.fleet.links.zenoh import ZenohLinks

# a line, of which the ends are no neighbours, and one whose names say nothing to a key expression
LINE = {"A": ["B"], "B": ["A", "C"], "C": ["B"]}
ODD = {
    "Zürich/日本 #1*": ["$@?%", "\u2603\n"],
    "$@?%": ["Zürich/日本 #1*"],
    "\u2603\n": ["Zürich/日本 #1*"],
}
PATIENCE = 10.0


class Node:
    """Links, and all calls that came from them, in order."""

    def __init__(self, links):
        self.links, self.calls = links, []

    def start(self):
        self.links.start(
            lambda name, data: self.calls.append((name, data)),
            lambda name, up: self.calls.append((name, up)),
        )

    def up(self, name):
        said = [what for whom, what in self.calls if whom == name and isinstance(what, bool)]
        return bool(said) and said[-1]

    def messages(self, name=None):
        return [
            what for whom, what in self.calls if isinstance(what, bytes) and whom == (name or whom)
        ]


class Memory:
    """Nodes in a `MemoryNetwork`."""

    def __init__(self):
        self.network, self.nodes = MemoryNetwork(), []

    def node(self, me, neighbours):
        self.nodes.append(Node(self.network.links(me, neighbours)))
        return self.nodes[-1]

    def settle(self, condition):
        self.network.deliver()
        assert condition()

    def pause(self):
        self.network.deliver()


class Zenoh:
    """Sessions of one process, on ports of the loopback that were free."""

    def __init__(self):
        self.ports, self.nodes = {}, []

    def node(self, me, neighbours):
        for name in (me, *neighbours):
            self.ports.setdefault(name, f"tcp/127.0.0.1:{free_port()}")
        peers = {name: self.ports[name] for name in neighbours}
        self.nodes.append(Node(ZenohLinks("fleet 1", me, self.ports[me], peers)))
        return self.nodes[-1]

    def settle(self, condition):
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.01)

    def pause(self):
        time.sleep(0.15)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(params=[Memory, Zenoh], ids=["memory", "zenoh"])
def world(request):
    made = request.param()
    before = threading.active_count()
    yield made
    for node in made.nodes:
        node.links.close()
    made.settle(lambda: threading.active_count() <= before)


def started(world, network, expected=None):
    """Start a node of each name, and wait until all links are up, or those that are expected."""
    nodes = {name: world.node(name, neighbours) for name, neighbours in network.items()}
    for name in sorted(nodes, reverse=True):
        nodes[name].start()  # who connects comes last, and need not try again
    world.settle(lambda: linked(nodes, expected or network))
    return nodes


def linked(nodes, network):
    return all(nodes[name].up(other) for name, others in network.items() for other in others)


@pytest.mark.parametrize("network", [LINE, ODD], ids=["line", "odd names"])
def test_neighbours_get_what_is_sent_from_whom_it_is_sent(world, network):
    nodes = started(world, network)
    sent = {}
    for i, (name, others) in enumerate(network.items()):
        for other in others:
            sent[name, other] = [f"{i} {j}".encode() for j in range(20)]
            for data in sent[name, other]:
                nodes[name].links.send(other, data)
    world.settle(lambda: sum(len(node.messages()) for node in nodes.values()) >= 20 * len(sent))
    world.pause()
    for (name, other), messages in sent.items():
        assert sorted(nodes[other].messages(name)) == sorted(messages)
    assert sum(len(node.messages()) for node in nodes.values()) == 20 * len(sent)


def test_nothing_reaches_others_than_neighbours(world):
    """Not even if one of them believes to be a neighbour, and the one between could relay."""
    network = {**LINE, "A": ["B", "C"]}
    nodes = started(world, network, LINE)
    world.pause()
    nodes["A"].links.send("C", b"to C")
    nodes["A"].links.send("B", b"to B")
    world.settle(lambda: nodes["B"].messages() == [b"to B"])
    world.pause()
    assert not nodes["A"].up("C")
    assert nodes["A"].links.dropped == {"C": 1}
    assert [call for call in nodes["C"].calls if call[0] == "A"] == []
    assert nodes["C"].messages() == []


def test_others_than_neighbours_and_larger_messages_are_refused(world):
    node = world.node("A", ["B", "D"])
    node.start()
    with pytest.raises(InputError, match="'C' is no neighbour; the neighbours are: B, D"):
        node.links.send("C", b"")
    with pytest.raises(InputError, match="'A' is no neighbour"):
        node.links.send("A", b"")
    with pytest.raises(InputError, match=f"{LARGEST + 1} bytes for 'B' is too large.* {LARGEST}"):
        node.links.send("B", bytes(LARGEST + 1))


@pytest.mark.parametrize(
    ("me", "neighbours", "complaint"),
    [
        ("A", ["A"], "its own neighbour"),
        (" ", ["A"], "cannot be a name"),
        ("A", [""], "cannot be a name"),
        ("A", ["\ud800"], "cannot be a name"),
    ],
)
def test_names_that_cannot_be_are_refused(world, me, neighbours, complaint):
    with pytest.raises(InputError, match=complaint):
        world.node(me, neighbours)


def test_messages_of_any_size_arrive_whole(world, rng):
    nodes = started(world, LINE)
    messages = [rng.bytes(size) for size in (0, 1, 65_480, 65_536, 256_000, LARGEST)]
    for i, message in enumerate(messages, 1):
        nodes["A"].links.send("B", message)
        # one at a time: what is sent too fast may be lost
        world.settle(lambda i=i: len(nodes["B"].messages("A")) == i)
    assert nodes["B"].messages("A") == messages


def test_a_link_is_up_while_both_ends_are_there(world):
    first = world.node("A", ["B"])
    first.start()
    world.pause()
    assert first.calls == []
    for _ in range(2):
        first.calls.clear()
        second = world.node("B", ["A"])
        second.start()
        world.settle(lambda second=second: first.up("B") and second.up("A"))
        second.links.send("A", b"here")
        world.settle(lambda: b"here" in first.messages())
        assert first.calls == [("B", True), ("B", b"here")]
        second.links.close()
        world.settle(lambda: not first.up("B"))
        assert first.calls == [("B", True), ("B", b"here"), ("B", False)]
        first.links.send("B", b"nobody is there")
    assert first.links.dropped == {"B": 2}


def test_sending_to_who_has_never_been_there_does_no_harm(world):
    node = world.node("A", ["B"])
    node.start()
    begun = time.monotonic()
    for _ in range(1000):
        node.links.send("B", b"x" * 1000)
    assert time.monotonic() - begun < 1
    assert node.links.dropped == {"B": 1000}
    assert node.calls == []


def test_after_the_end_nothing_is_called(world):
    nodes = started(world, LINE)
    for node in nodes.values():
        node.calls.clear()
    stop = threading.Event()

    def talk():
        while not stop.is_set():
            nodes["A"].links.send("B", b"x")
            time.sleep(0.001)

    talker = threading.Thread(target=talk)
    talker.start()
    try:
        world.settle(lambda: talker.is_alive() and (world.pause() or nodes["B"].messages()))
        nodes["B"].links.close()
        calls = list(nodes["B"].calls)
        world.pause()
    finally:
        stop.set()
        talker.join()
    assert nodes["B"].calls == calls
    nodes["B"].links.close()
    nodes["B"].links.send("A", b"nothing")
    world.pause()
    assert nodes["B"].calls == calls
    assert nodes["A"].messages() == []
    assert nodes["B"].links.dropped["A"] == 1


def test_links_may_end_before_they_begin(world):
    world.node("A", ["B"]).links.close()


def test_links_start_once_and_send_afterwards(world):
    node = world.node("A", ["B"])
    with pytest.raises(LocalProtocolError, match="call start before send"):
        node.links.send("B", b"")
    node.start()
    with pytest.raises(LocalProtocolError, match="started already"):
        node.start()
    node.links.close()
    with pytest.raises(LocalProtocolError, match="started already"):
        node.start()


def test_what_the_caller_does_to_its_bytes_later_changes_no_message(world):
    nodes = started(world, LINE)
    data = bytearray(b"before")
    nodes["A"].links.send("B", data)
    data[:] = b"after!"
    world.settle(nodes["B"].messages)
    assert nodes["B"].messages() == [b"before"]


def test_two_calls_never_come_at_once(world):
    """From several neighbours, and of links besides messages."""
    busy, overlaps, count = threading.Lock(), [], itertools.count()
    hub = world.node("hub", ["x", "y"])

    def call(*_):
        if not busy.acquire(blocking=False):
            overlaps.append(next(count))
            return
        time.sleep(0.002)
        next(count)
        busy.release()

    hub.links.start(call, call)
    others = [world.node(name, ["hub"]) for name in ("x", "y")]
    for other in others:
        other.start()
    world.settle(lambda: all(other.up("hub") for other in others))
    for _ in range(20):
        for other in others:
            other.links.send("hub", b"x")
    world.pause()
    assert overlaps == []
    assert next(count) > 20
