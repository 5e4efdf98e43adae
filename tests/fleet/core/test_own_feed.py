"""A node's own feed, on a log that is older than what its neighbours hold of it."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.fleet.core import state
from coopbandits.fleet.core.actions import Linked
from coopbandits.fleet.core.entries import Received
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.core.settings import RewardRules
from coopbandits.fleet.face import Decide, RefusedError, Reward
from coopbandits.fleet.store import MemoryStore
from fleet.driven import DIM, Driven, Wires, linear, path, request, settings_of

AGO = 11.0  # seconds in which neighbours offer each other everything


def copied(store):
    """Return a log of the same entries."""
    other = MemoryStore()
    other.append([entry for _, entry in store.entries()])
    return other


class Lost:
    """Nodes a and b; b holds records of a that are not in an older log of a.

    The event "open" awaits its reward in the older log. It was rewarded since, unless `closed` is
    false, and so were some later ones.
    """

    def __init__(self, *, closed=True, lost=3, **changes):
        self.a, self.b = (Driven(settings_of(name, path("ab"), **changes)) for name in "ab")
        self.meet()
        self.a.play(5)
        self.a.ask(Decide(request(np.random.default_rng(7), event_id="open")))
        self.meet()
        self.older = copied(self.a.store)
        if closed:
            self.a.ask(Reward("open", 0.75))
        self.a.play(lost, seed=3)
        self.meet()
        self.epoch = self.a.core.epoch
        self.records = self.b.heads()["a", self.epoch].sequence
        assert self.records == 5 + closed + lost

    def meet(self):
        """Link both, and let them exchange all that they have to say."""
        wires = Wires([self.a, self.b])
        wires.link_all()
        wires.settle()
        wires.pass_time(AGO)

    def start(self, *, restored=True):
        """Start a on the older log; b is not linked yet."""
        self.b.handle(Linked("a", False))
        self.a = Driven(
            self.a.settings, copied(self.older), keys=self.a.keys, restored=restored,
            now=self.a.now + 1,
        )  # fmt: skip
        return self.a

    def start_again(self):
        """Start a again, as after a crash."""
        self.a = self.a.again()
        return self.a


def refused(node, event, key=None):
    """Return for what a reward is refused; nothing of it is kept."""
    before = node.core.events.known[event].values
    with pytest.raises(RefusedError, match=event) as caught:
        node.ask(Reward(event, 0.5, key))
    assert node.core.events.known[event].values == before
    return caught.value.kind


def outcome(node, event):
    found = node.core.events.known[event]
    return found.closed, found.reward, found.recorded


POLICIES = {
    "linear": linear(),
    "scaled": linear(scale=3.0, scaling=cb.Scaling([0.1] * DIM, [0.7] * DIM)),
    "embedding": linear(similarity=cb.similarity.MeanEmbedding(0.7)),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_lost_record_closes_its_event_and_none_that_got_its_round_since(name, rng):
    """The node starts twice before it hears of its loss, and rounds alone do not tell the two."""
    fleet = Lost(policy=POLICIES[name])
    a = fleet.start(restored=False)
    a.ask(Decide(request(rng, event_id="since")))
    a.ask(Reward("since", -0.9))
    assert a.core.events.known["since"].round == 7  # b holds records of rounds 1 to 9
    a = fleet.start_again()
    fleet.meet()
    assert a.core.own.epoch_began > a.core.events.known["since"].position
    assert outcome(a, "open") == (True, pytest.approx(0.75), True)
    assert outcome(a, "since") == (True, -0.9, True)
    assert sorted(head.sequence for head in a.heads().values()) == [1, fleet.records]
    assert fleet.b.heads() == a.heads()
    again = opened(a.settings, a.keys, copied(a.store), states=False)
    assert state.same(a.core, again)


def test_a_reward_is_refused_while_its_event_may_stand_in_lost_records(rng):
    fleet = Lost()
    a = fleet.start()
    assert refused(a, "open") == refused(a, "open", "key") == "recovering"
    a.ask(Decide(request(rng, event_id="since")))
    a.ask(Reward("since", -0.9))
    fleet.meet()
    assert refused(a, "open") == "event-closed"
    assert outcome(a, "open") == (True, 0.75, True)
    assert outcome(a, "since") == (True, -0.9, True)


def test_a_reward_is_taken_once_neighbours_hold_no_record_of_its_event():
    fleet = Lost(closed=False)
    a = fleet.start()
    assert refused(a, "open") == "recovering"
    fleet.meet()
    a.ask(Reward("open", 0.5))
    assert outcome(a, "open") == (True, 0.5, True)
    assert sorted(head.sequence for head in a.heads().values()) == [1, fleet.records]


def test_a_reward_is_refused_for_no_longer_than_the_node_waits_for_neighbours():
    """It is kept then; a record that a neighbour turns out to hold counts in its place."""
    fleet = Lost()
    a = fleet.start()
    a.tick(a.settings.heads_wait - 0.1)
    assert refused(a, "open") == "recovering"
    a.tick(0.2)
    a.ask(Reward("open", 0.5))
    assert outcome(a, "open") == (False, None, False)
    fleet.meet()
    assert outcome(a, "open") == (True, 0.75, True)
    assert sum(head.sequence for head in fleet.b.heads().values()) == fleet.records


def test_of_events_that_wait_for_lost_records_only_those_that_expire_are_closed(rng):
    """One more than may be known: the oldest is counted again, which cannot be helped."""
    a, b = (Driven(settings_of(name, path("ab"), rewards=RewardRules(most=10))) for name in "ab")
    wires = Wires([a, b])
    wires.link_all()
    wires.settle()
    names = [f"open {number}" for number in range(10)]
    for name in names:
        a.ask(Decide(request(rng, event_id=name)))
    older = copied(a.store)
    for name in names:
        a.ask(Reward(name, 0.75))
    wires.pass_time(AGO)
    wires.link("a", "b", up=False)
    a = wires.nodes["a"] = Driven(a.settings, older, keys=a.keys, restored=True, now=a.now + 1)
    a.write()
    for name in names:
        a.ask(Reward(name, 0.75))
    a.ask(Decide(request(rng, event_id="new")))
    assert [outcome(a, name)[0] for name in names[1:]] == [False] * 9
    wires.link_all()
    wires.settle()
    wires.pass_time(AGO)
    assert [outcome(a, name) for name in names[1:]] == [(True, 0.75, True)] * 9
    assert sorted(head.sequence for head in b.heads().values()) == [1, 10]


def test_a_node_that_lost_nothing_takes_rewards_at_once():
    fleet = Lost(closed=False)
    fleet.b.handle(Linked("a", False))
    a = fleet.start_again()
    assert not a.core.own.writing
    a.ask(Reward("open", 0.5))


def test_a_reward_of_an_event_that_gets_no_record_is_taken_at_once(rng):
    a = Driven(settings_of("a", path("ab"), mode="off"))
    a.ask(Decide(request(rng, event_id="open")))
    a = a.again(restored=True)
    assert not a.core.own.writing
    a.ask(Reward("open", 0.5))
    assert outcome(a, "open") == (True, 0.5, False)


def test_lost_records_come_back_block_after_block_without_waiting():
    fleet = Lost(lost=40, block_bytes=1_000)
    a = fleet.start()
    wires = Wires([a, fleet.b])
    wires.link_all()
    wires.settle()
    assert a.heads()["a", fleet.epoch].sequence == fleet.records
    blocks = [one for one in a.entries() if isinstance(one, Received) and one.origin == "a"]
    assert len(blocks) > 5
