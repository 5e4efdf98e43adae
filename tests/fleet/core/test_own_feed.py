"""A node's own feed, on a log that is older than what its neighbours hold of it."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.fleet.core import state
from coopbandits.fleet.core.actions import Linked
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.face import Decide, Reward
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
