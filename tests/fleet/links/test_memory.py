"""Links in memory deliver when they are told to, always in the same order, and can be cut."""

import pytest

from coopbandits.errors import InputError
from coopbandits.fleet.links.memory import MemoryNetwork


def pair(calls):
    network = MemoryNetwork()
    links = {me: network.links(me, [other]) for me, other in (("A", "B"), ("B", "A"))}
    for me, made in links.items():
        made.start(
            lambda name, data, me=me: calls.append((me, name, data)),
            lambda name, up, me=me: calls.append((me, name, up)),
        )
    return network, links


def test_nothing_is_called_before_deliver():
    calls = []
    network, links = pair(calls)
    links["A"].send("B", b"1")
    assert (calls, network.waiting) == ([], 1)
    assert network.deliver() == 1
    assert calls == [("A", "B", True), ("B", "A", True), ("B", "A", b"1")]
    assert network.deliver() == network.waiting == 0


def test_links_take_turns_and_one_may_be_picked():
    calls = []
    network, links = pair(calls)
    for data in (b"1", b"2"):
        links["A"].send("B", data)
        links["B"].send("A", data)
    assert network.deliver_one("B", "A")
    assert network.deliver(most=2) == 2
    assert calls[2:] == [("A", "B", b"1"), ("B", "A", b"1"), ("A", "B", b"2")]
    assert network.waiting == 1
    assert not network.deliver_one("B", "A")


def test_a_cut_link_loses_what_is_on_its_way():
    calls = []
    network, links = pair(calls)
    links["A"].send("B", b"lost")
    network.cut("B", "A")
    links["A"].send("B", b"dropped")
    assert links["A"].dropped == {"B": 1}
    network.heal("A", "B")
    links["A"].send("B", b"whole")
    network.deliver()
    assert calls == [
        (me, other, up) for up in (True, False, True) for me, other in ("AB", "BA")
    ] + [("B", "A", b"whole")]


def test_a_link_that_is_cut_before_the_start_stays_down():
    network = MemoryNetwork()
    network.cut("A", "B")
    calls = []
    for me, other in ("AB", "BA"):
        network.links(me, [other]).start(print, lambda name, up: calls.append((name, up)))
    network.deliver()
    assert calls == []
    network.heal("A", "B")
    network.deliver()
    assert calls == [("B", True), ("A", True)]


def test_answers_are_delivered_too():
    network = MemoryNetwork()
    links = {me: network.links(me, [other]) for me, other in ("AB", "BA")}
    got = []

    def answer(me):
        def received(name, data):
            got.append(data)
            if data:
                links[me].send(name, data[1:])

        return received

    for me, made in links.items():
        made.start(answer(me), lambda name, up: None)
    links["A"].send("B", b"xyz")
    assert network.deliver() == 4
    assert got == [b"xyz", b"yz", b"z", b""]


def test_two_nodes_of_one_name_are_refused():
    network = MemoryNetwork()
    network.links("A", []).start(print, print)
    with pytest.raises(InputError, match="'A' is there already"):
        network.links("A", []).start(print, print)
