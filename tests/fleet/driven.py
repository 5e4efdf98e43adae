"""Cores joined to logs in memory by hand: no loop, no thread, no clock."""

from collections import deque
from itertools import pairwise

import numpy as np

import coopbandits as cb
from coopbandits.fleet.api import Action, DecideManyReply, DecideManyRequest, DecideRequest
from coopbandits.fleet.core.actions import (
    Answer,
    Append,
    Arrived,
    Asked,
    Cut,
    Fit,
    Fitted,
    Linked,
    Note,
    Recall,
    Send,
    Serve,
    Snapshot,
    Stop,
    Synced,
    Tick,
)
from coopbandits.fleet.core.deciding import reply_of
from coopbandits.fleet.core.entries import read
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.core.wire import Take, encoded
from coopbandits.fleet.face import Decide, DecideMany, RefusedError, Reward
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.store import MemoryStore

DIM = 3


def linear(**changes):
    options = {"similarity": cb.similarity.Same(), "ttl": 2, "features": cb.features.Exact()}
    return cb.EagerKernelUCB(cb.kernels.Linear(), **{**options, **changes})


def path(names="abcde"):
    return cb.Network.from_edges([*pairwise(names)], names=[*names])


def settings_of(name, network, **changes):
    options = {
        "fleet": "driven", "name": name, "network": network, "policy": linear(),
        "have_every": 10.0, "want_timeout": 5.0, "pace": 1e9,
    }  # fmt: skip
    return Settings(**{**options, **changes})


def request(rng, actions=4, **more):
    """Ask for a decision between some actions at random."""
    offered = [Action(f"a{k}", rng.normal(size=DIM).tolist()) for k in range(actions)]
    return DecideRequest(offered, **more)


class Driven:
    """One core with its log; what it sends waits in `outbox`."""

    def __init__(self, settings, store=None, *, keys=None, restored=False, now=1000.0, states=True):
        self.settings = settings
        self.store = MemoryStore() if store is None else store
        self.keys = keys or HashKeys(settings.name)
        self.outbox, self.notes, self.served, self.answers = deque(), [], [], {}
        self.waiting, self.stopped, self.tickets, self.now = deque(), None, 0, now
        self.holding, self.fits = False, True
        self.core = opened(settings, self.keys, self.store, states=states)
        self.now = max(self.now, self.core.now)
        self.do(self.core.start(self.now, restored=restored, version="test"))

    @property
    def name(self):
        return self.settings.name

    def handle(self, event):
        self.do(self.core.handle(event, self.now))

    def do(self, actions):
        """Carry actions out, and hand in what follows."""
        for one in actions:
            if isinstance(one, Append):
                if self.holding:
                    self.store.write(one.entries)
                else:
                    self.waiting.append(Synced(self.store.append(one.entries)))
            elif isinstance(one, Answer):
                self.answers[one.ticket] = one.reply
            elif isinstance(one, Recall):
                replies = [reply_of(self.entry(position)) for position in one.positions]
                self.answers[one.ticket] = DecideManyReply(replies) if one.many else replies[0]
            elif isinstance(one, Send):
                self.outbox.append((one.neighbour, one.data))
            elif isinstance(one, Serve):
                self.serve(one)
            elif isinstance(one, Fit):
                if self.fits:
                    self.waiting.append(Fitted(one.number, one.task.run()))
            elif isinstance(one, Snapshot):
                self.store.put_snapshot(one.position, one.data)
            elif isinstance(one, Cut):
                self.store.cut(one.before, {(o, e): last for o, e, last in one.feeds})
            elif isinstance(one, Note):
                self.notes.append(one)
            elif isinstance(one, Stop):
                self.stopped = one
            else:
                raise AssertionError(one)
        while self.waiting:
            self.handle(self.waiting.popleft())

    def serve(self, one):
        self.served.append(one)
        records = self.store.records(one.origin, one.epoch, one.first, one.last, one.most_bytes)
        if records:
            take = Take(one.origin, one.epoch, one.first, records)
            self.outbox.append((one.neighbour, encoded(take, one.version)))

    def sync(self):
        """Make durable what was held back."""
        self.holding = False
        self.handle(Synced(self.store.sync()))

    def entry(self, position):
        return read(self.store.entry(position), position)

    def entries(self):
        return [read(stored, position) for position, stored in self.store.entries()]

    def ask(self, request):
        self.tickets += 1
        self.handle(Asked(self.tickets, request))
        reply = self.answers.get(self.tickets)
        if isinstance(reply, RefusedError):
            raise reply
        return reply

    def decide(self, rng=None, actions=3, **more):
        rng = rng or np.random.default_rng(self.tickets)
        return self.ask(Decide(request(rng, actions, **more)))

    def play(self, rounds, seed=0):
        """Decide and be rewarded, some at once."""
        rng = np.random.default_rng([seed, ord(self.name[0])])
        while rounds:
            count = min(rounds, 8)
            requests = [request(rng, 2) for _ in range(count)]
            reply = self.ask(DecideMany(DecideManyRequest(requests)))
            for one in reply.decisions:
                self.ask(Reward(one.event_id, float(rng.normal())))
            rounds -= count

    def tick(self, seconds=0.0):
        self.now += seconds
        self.handle(Tick())

    def write(self):
        """Let a node write to its feed though no neighbour has answered."""
        self.tick(self.settings.heads_wait + 0.1)
        assert self.core.own.writing

    def noted(self, kind):
        return [one.fields for one in self.notes if one.kind == kind]

    def sums(self):
        """Return a hash of the sums of each feed that is held."""
        return {
            (origin.name, epoch): feed.sums.digest
            for origin, epoch, feed in self.core.feeds.all()
            if feed.sums is not None and feed.applied
        }

    def heads(self):
        """Return the durable head of each feed that is held."""
        return {
            (origin.name, epoch): feed.synced
            for origin, epoch, feed in self.core.feeds.all()
            if feed.synced.sequence
        }

    def again(self, *, restored=False, states=True, **changes):
        """Start it again from its log, as after a crash."""
        settings = self.settings
        if changes:
            settings = Settings(**{
                **{name: getattr(settings, name) for name in settings.__dataclass_fields__},
                **changes,
            })  # fmt: skip
        return Driven(
            settings, self.store.crash(), keys=self.keys, restored=restored, now=self.now,
            states=states,
        )  # fmt: skip


class Wires:
    """Nodes by name, and the messages between them."""

    def __init__(self, nodes):
        self.nodes = {node.name: node for node in nodes}
        self.said = []

    def link(self, one, other, up=True):
        self.nodes[one].handle(Linked(other, up))
        self.nodes[other].handle(Linked(one, up))

    def link_all(self):
        for name, node in self.nodes.items():
            for near in node.core.exchange.neighbours:
                if near in self.nodes and name < near:
                    self.link(name, near)

    def collect(self):
        """Return what was sent: from, to, bytes."""
        found = []
        for name, node in self.nodes.items():
            while node.outbox:
                to, data = node.outbox.popleft()
                found.append((name, to, data))
        self.said += found
        return found

    def settle(self):
        """Hand messages over until there are none."""
        while sent := self.collect():
            for source, target, data in sent:
                if target in self.nodes:
                    self.nodes[target].handle(Arrived(source, data))

    def pass_time(self, seconds):
        for node in self.nodes.values():
            node.tick(seconds)
        self.settle()
