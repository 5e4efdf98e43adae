"""Planted faults: small changes of the fleet's code, each of which the simulation has to find.

A simulator that finds none of them would not find a real one either.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest.mock import patch

from coopbandits.fleet.core import requests
from coopbandits.fleet.core.actions import Cut, SyncFailed
from coopbandits.fleet.core.events import Events
from coopbandits.fleet.core.exchange import Exchange
from coopbandits.fleet.core.feeds import Feeds, Origin
from coopbandits.fleet.core.journal import Journal
from coopbandits.fleet.core.node import NodeCore
from coopbandits.fleet.core.wire import Take


def acknowledge_before_sync():
    """Answers are given when entries are appended."""
    return patch.object(Journal, "when_synced", lambda self, position, answer: self.do(answer))


def show_before_sync():
    """Heads of what was appended are offered."""

    def heads(self):
        held = ((epoch, one.held) for epoch, one in self.epochs.items())
        return [(epoch, head.sequence, head.hash) for epoch, head in held if head.sequence]

    return patch.object(Origin, "heads", property(heads))


def take_a_block_twice():
    """A block is appended whatever is held."""
    taken = Exchange._taken

    def mutant(self, name, take: Take, now, epoch):
        one = self._feeds.origins.get(take.origin)
        feed = one and one.epochs.get(take.epoch)
        if feed is not None and 1 < take.first <= feed.held.sequence:
            block = feed.feed.trusted(take.records)
            feed.held = replace(feed.held, sequence=take.first - 1)
            with patch.object(Feeds, "read", lambda *_: block):
                return taken(self, name, take, now, epoch)
        return taken(self, name, take, now, epoch)

    return patch.object(Exchange, "_taken", mutant)


def count_a_key_twice():
    """An Idempotency-Key is not looked at."""
    check = Events.check_reward
    return patch.object(Events, "check_reward", lambda self, event, key: check(self, event, None))


def decide_again():
    """An event id that is known is decided anew."""
    decide = requests.decide

    def mutant(core, ticket, asked, *, many):
        for one in asked:
            core.events.known.pop(one.event_id, None)
        return decide(core, ticket, asked, many=many)

    return patch.object(requests, "decide", mutant)


def reach_one_hop_further():
    """Feeds are offered and taken one hop beyond γ."""
    made = Feeds.__init__

    def mutant(self, agent, names, every, keys):
        network = agent.network
        hops = agent.policy.listen.carrier(network).distances_from([agent.agent])[0]
        further = [n for n, d in zip(network.names, hops, strict=True) if d <= agent.policy.ttl + 1]
        made(self, agent, further, every, keys)

    def offers(self, origin, to):
        return self.distances.get(origin, 1e9) <= self._ttl or origin == to

    return _both(patch.object(Feeds, "__init__", mutant), patch.object(Exchange, "offers", offers))


def cursor_outside_the_transaction():
    """How far feeds of others are held is kept apart from the entry that holds their records."""
    cursors: dict[tuple[str, str, int], tuple] = {}
    append, replay = Feeds.append, NodeCore.replay

    def appended(self, origin, epoch, head, last):
        append(self, origin, epoch, head, last)
        cursors[self._agent.name, origin, epoch] = head, last

    def replayed(self, entries):
        known = dict(cursors)
        replay(self, entries)
        for (name, origin, epoch), (head, last) in known.items():
            if name == self.settings.name != origin and origin in self.feeds.origins:
                append(self.feeds, origin, epoch, head, last)

    return _both(
        patch.object(Feeds, "append", appended), patch.object(NodeCore, "replay", replayed)
    )


def apply_before_sync():
    """Data are applied when they are appended."""
    advance = NodeCore._advance

    def mutant(self):
        self._apply(self.journal.position)
        advance(self)

    return patch.object(NodeCore, "_advance", mutant)


def reuse_a_sequence():
    """A node on an older log goes on where that ends, and asks nobody."""
    start = NodeCore.start

    def mutant(self, now, *, restored=False, version=""):
        found = start(self, now, restored=False, version=version)
        self.own.writes_from, self.own.heads_known = None, True
        return found

    return patch.object(NodeCore, "start", mutant)


def learn_from_unsynced_data():
    """A learning task is taken of all that was appended."""
    advance = NodeCore._advance

    def mutant(self):
        learning = self.learning
        if learning.news and not learning.busy and self.now >= learning.due:
            self._apply(self.journal.position)
        advance(self)

    return patch.object(NodeCore, "_advance", mutant)


def go_on_after_a_full_disk():
    """What was not written stays done."""
    failed = NodeCore._failed

    def mutant(self, event: SyncFailed):
        actions = failed(self, event)
        if event.full:
            self._stopped = False
            return actions[:-1]
        return actions

    return patch.object(NodeCore, "_failed", mutant)


def offer_once():
    """Heads are offered when they change, and never again."""
    return patch.object(Exchange, "tick", _only_news)


def _only_news(self, now):
    for name, neighbour in self.neighbours.items():
        if neighbour.linked and neighbour.news:
            news, neighbour.news = neighbour.news, {}
            self._have(name, [origin for origin in news if origin], answer=False)


def forget_no_event():
    """Events that have expired stay known."""
    return patch.object(Events, "forget", lambda self, now: None)


def replay_all_at_once():
    """A replay applies data as it meets them, not where the node had."""
    again = NodeCore._again

    def mutant(self, entry, position, payload):
        again(self, entry, position, payload)
        self._apply(position)

    return patch.object(NodeCore, "_again", mutant)


def cut_what_is_needed():
    """The log is cut up to the newest stored state, whatever event is open."""
    snapshot = NodeCore._snapshot

    def mutant(self):
        snapshot(self)
        actions = self.journal._actions
        actions[:] = [
            replace(one, before=self.applied + 1) if isinstance(one, Cut) else one
            for one in actions
        ]

    return patch.object(NodeCore, "_snapshot", mutant)


def overlook_forks():
    """Two records of one sequence are never compared."""
    return patch.object(Exchange, "_suspect", lambda *_: None)


def forget_a_task():
    """A learning task that was under way at a crash is not taken again."""
    replay = NodeCore.replay

    def mutant(self, entries):
        replay(self, entries)
        self.learning.news = False

    return patch.object(NodeCore, "replay", mutant)


@contextmanager
def _both(*patches: AbstractContextManager) -> Iterator[None]:
    one, other = patches
    with one, other:
        yield


MUTANTS: dict[str, Callable[[], AbstractContextManager]] = {
    mutant.__name__.replace("_", " "): mutant
    for mutant in (
        acknowledge_before_sync,
        show_before_sync,
        take_a_block_twice,
        count_a_key_twice,
        decide_again,
        reach_one_hop_further,
        cursor_outside_the_transaction,
        apply_before_sync,
        reuse_a_sequence,
        learn_from_unsynced_data,
        go_on_after_a_full_disk,
        offer_once,
        forget_no_event,
        replay_all_at_once,
        cut_what_is_needed,
        overlook_forks,
        forget_a_task,
    )
}
