"""One node in virtual time: a core with a store, driven as `fleet/runtime.py` drives it.

What the core asks for is done with delays that are drawn, and checked beside it: nothing is
answered, shown or learnt from before it is durable.
"""

from collections import deque
from random import Random

from coopbandits.fleet.core import actions as do, entries, wire
from coopbandits.fleet.core.deciding import reply_of
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.face import Activate, Decide, DecideMany, RefusedError, Reward
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.ports import StoreError, StoreFullError
from coopbandits.fleet.store.memory import MemoryStore
from fleet.simulation.ledger import Ledger, Violation

TICK = 1.0


class Host:
    """A node, over its lives.

    Attributes:
        settings: What it is told from its next start on.
        running: Whether it runs.
        ended: The exit code, if it stopped by itself.
        life: Counts its starts; what was under way in another life is void.
        skew: Seconds by which its clock is wrong.
        copy: Whether it is a second copy of a node.
        held: Whether its log is about to be replaced, so that it must not start.
        restored: Whether its log is a backup, and no epoch that began since is durable.
    """

    def __init__(self, world, settings, *, store=None, ledger=None, seed=""):
        self.world, self.settings, self.name = world, settings, settings.name
        self.store = store or MemoryStore()
        self.ledger = ledger or Ledger(self.name)
        self.running, self.ended, self.life, self.skew = False, None, 0, 0.0
        self.copy = self.held = self.restored = False
        self.core = None
        self.learner_fails = 0
        self._keys = HashKeys(self.name)
        self._rng = Random(f"host {self.name} {world.plan.seed} {seed}")
        self._stall = 0.0
        self._clear()

    def _clear(self):
        self._jobs, self._busy, self._halted, self._told_at = deque(), False, False, 0.0
        self._tickets, self._asked, self._last_ticket = {}, {}, 0
        self._up, self._generation, self._refusing = set(), 0, None

    @property
    def now(self):
        """What the node's clock shows."""
        return self.world.now + self.skew

    def linked_to(self, other):
        """Tell whether it runs and has an edge to a site."""
        return self.running and other in self._neighbours

    # Its life.

    def start(self, *, restored=False):
        """Open the log and begin."""
        self.restored |= restored
        self.life += 1
        self._clear()
        self.running, self.ended = True, None
        network = self.settings.network
        there = network.neighbours(network.index(self.name)).tolist()
        self._neighbours = [network.names[v] for v in there]
        self.core = opened(self.settings, self._keys, self.store)
        self.ledger.follow(self.store)
        self._do(
            self._watched(self.core.start, self.now, restored=self.restored, version="simulated")
        )
        self._later(self._rng.uniform(0, TICK), self._tick)
        for name in self._neighbours:
            self.world.wires.changed(self.name, name)

    def crash(self):
        """End at once; of what was not synced some of the beginning survives."""
        self.running = False
        self.world.count("crash")
        lost = sum(self.store.unsynced)
        self._leave(self.store.crash(self._rng.randint(0, lost)))

    def stop(self):
        """End as told: keep the state, make everything durable."""
        self.world.count("stop")
        self.core.learning.give_up()
        self._do(self.core.snapshot())
        if not self._busy:
            self._pump()
        while self._busy and not self._halted:
            self._sync(announce=False)
            self._pump()
        self.running = False
        self._leave(self.store.crash(0))

    def _leave(self, store):
        self.store = store
        self.life += 1
        self.ledger.follow(store)
        for name in self._neighbours:
            self.world.wires.changed(self.name, name)
        for heard in self._tickets.values():
            heard("lost", None)
        self._tickets = {}

    def _end(self, code, reason):
        self.ended = code, reason
        self.running = False
        self.world.count(f"exit {code}")
        self._leave(self.store.crash(self._rng.randint(0, sum(self.store.unsynced))))
        self.world.ended(self)

    def stall(self, seconds):
        """Let nothing be synced for some time."""
        self._stall = self.world.now + seconds

    def _later(self, seconds, call, *given):
        self.world.after(seconds, self._if_alive, self.life, call, *given)

    def _if_alive(self, life, call, *given):
        if life == self.life and self.running:
            call(*given)

    # What happens to it.

    def ask(self, request, heard):
        """Ask something; `heard(kind, reply)` tells what came of it.

        The kind is "answered", "refused", "down" (nobody listened) or "lost" (no answer came).
        """
        if not self.running:
            heard("down", None)
        elif self._refusing is not None:
            heard("refused", self._refusing)
        else:
            self._last_ticket += 1
            self._tickets[self._last_ticket] = heard
            self._asked[self._last_ticket] = request
            self._handle(do.Asked(self._last_ticket, request))

    def arrived(self, source, data):
        """Let bytes arrive."""
        self._handle(do.Arrived(source, data))

    def linked(self, neighbour, up):
        """Say that a link went up or down."""
        (self._up.add if up else self._up.discard)(neighbour)
        self._handle(do.Linked(neighbour, up))

    def _tick(self):
        self._handle(do.Tick())
        self._later(TICK, self._tick)

    def _handle(self, event):
        if self.running:
            self._do(self._watched(self.core.handle, event, self.now))

    def _watched(self, call, *given, **more):
        """Call the core, and see to it that it does not run ahead of what is durable."""
        found = call(*given, **more)
        core, durable = self.core, self.store.position
        if core.applied > durable:
            raise Violation(f"{self.name}: entry {core.applied} applied, {durable} synced")
        self.world.trace(self, given[0], found)
        return found

    # What it asks for.

    def _do(self, found):
        life = self.life
        for action in found:
            if life != self.life:
                return
            if isinstance(action, do.Append):
                self._check_seen(action.entries)
                self._put(action.entries)
            elif isinstance(action, do.Answer):
                self._answer(action.ticket, action.reply)
            elif isinstance(action, do.Send):
                self._check_shown(action.data)
                self.world.wires.send(self.name, action.neighbour, action.data)
            elif isinstance(action, do.Serve):
                self._serve(action)
            elif isinstance(action, do.Fit):
                self._fit(action)
            elif isinstance(action, do.Recall):
                self._recall(action)
            elif isinstance(action, do.Snapshot):
                at, data = action.position, action.data
                self._put(lambda at=at, data=data: self._snapshot(at, data))
            elif isinstance(action, do.Cut):
                feeds = {(o, e): last for o, e, last in action.feeds}
                self._put(lambda before=action.before, feeds=feeds: self._cut(before, feeds))
            elif isinstance(action, do.Note):
                self.world.noted(self, action)
            elif isinstance(action, do.Rebuild):
                self._rebuild(action.reason)
            elif isinstance(action, do.Stop):
                self._end(action.code, action.reason)

    def _put(self, job):
        if not self._halted:
            self._jobs.append(job)
            if not self._busy:
                self._pump()

    def _pump(self):
        """Write what has queued up, up to the next snapshot or cut."""
        while self._jobs and not self._busy:
            group = []
            while self._jobs and not callable(self._jobs[0]):
                group.extend(self._jobs.popleft())
            if not group:
                self._try(self._jobs.popleft())
                continue
            self.store.write(group)
            self._busy = True
            stalled = max(0.0, self._stall - self.world.now)
            self._later(stalled + self._rng.expovariate(1 / self.world.plan.sync), self._sync)

    def _sync(self, *, announce=True):
        position = self._try(self.store.sync)
        self._busy = False
        if position is not None:
            self.restored = False  # the first that is synced is a start, and its epoch
            self.ledger.follow(self.store)
            if announce:
                self._announce(position, None)
        if self._jobs:
            self._pump()

    def _try(self, job):
        before = self.store.position
        try:
            return job()
        except StoreError as error:
            self._halted = True
            self._jobs.clear()
            self._announce(before, error)
            return None

    def _announce(self, position, error):
        """Tell the core, in order, some time later: its loop may be busy."""
        at = max(self._told_at, self.world.now + self._rng.choice([0.0, 0.001, 0.05]))
        self._told_at = at
        self._later(at - self.world.now, self._synced, self._generation, position, error)

    def _synced(self, generation, position, error):
        if generation != self._generation:
            return
        if error is None:
            self._handle(do.Synced(position))
        else:
            self._handle(do.SyncFailed(isinstance(error, StoreFullError), str(error)))

    def _snapshot(self, at, data):
        self.store.put_snapshot(at, data)
        self.world.count("snapshot")

    def _cut(self, before, feeds):
        first = self.store.first
        self.store.cut(before, feeds)
        if self.store.first > first:
            self.world.count("entries cut", self.store.first - first)
        if feeds:
            self.world.count("feeds cut", len(feeds))

    def _rebuild(self, reason):
        self._generation += 1
        self.world.count("rebuild")
        self._refusing = RefusedError("disk-full", reason)
        for heard in [*self._tickets.values()]:
            heard("refused", self._refusing)
        self._tickets = {}
        self._later(1.0, self._reopen)

    def _reopen(self):
        self.core = opened(self.settings, self._keys, self.store)
        self._halted = False
        self._refusing = None
        self._do(
            self._watched(self.core.start, self.now, restored=self.restored, version="simulated")
        )
        for name in sorted(self._up):
            self._handle(do.Linked(name, True))

    def _fit(self, action):
        outcome = action.task.run()
        if self.learner_fails:
            self.learner_fails -= 1
            self.world.count("learner failed")
            outcome = RuntimeError("the learner failed, as was planned")
        delay = min(self._rng.expovariate(1 / self.world.plan.learning), 8.0)
        self._later(delay, self._fitted, self._generation, action.number, outcome)

    def _fitted(self, generation, number, outcome):
        if generation == self._generation:
            self._handle(do.Fitted(number, outcome))

    def _serve(self, action):
        records = self.store.records(
            action.origin, action.epoch, action.first, action.last, action.most_bytes
        )
        if records:
            message = wire.Take(action.origin, action.epoch, action.first, records)
            data = wire.encoded(message, action.version)
            self.world.wires.send(self.name, action.neighbour, data)

    def _recall(self, action):
        replies = []
        for position in action.positions:
            stored = self.store.entry(position)
            entry = None if stored is None else entries.read(stored, position)
            if not isinstance(entry, entries.Decided):
                raise Violation(f"{self.name}: the decision at {position} cannot be recalled")
            replies.append(reply_of(entry))
        self._answer(action.ticket, replies if action.many else replies[0])

    def _answer(self, ticket, reply):
        heard, request = self._tickets.pop(ticket, None), self._asked.pop(ticket)
        if isinstance(reply, RefusedError):
            kind = "refused"
        else:
            kind = "answered"
            self._check_durable(request, reply)
        if heard is not None:
            heard(kind, reply)

    # What must hold of it.

    def _check_seen(self, appended):
        """Decisions and tasks know only what is durable."""
        for entry in appended:
            read = entries.read(entry, 0) if entry.kind in (2, 8) else None
            if read is not None and read.seen > self.store.position:
                raise Violation(f"{self.name}: knew entry {read.seen} of {self.store.position}")

    def _check_durable(self, request, reply):
        """What is answered stands in the store."""
        known = self.ledger
        if isinstance(request, Decide | DecideMany):
            for one in getattr(reply, "decisions", reply if isinstance(reply, list) else [reply]):
                entry = known.decided.get(one.event_id)
                if entry is None or reply_of(entry) != one:
                    raise Violation(f"{self.name}: answered {one.event_id} before it was durable")
        elif isinstance(request, Reward):
            name, key, value = request.event_id, request.key, request.value
            if not any(
                one == (key, value) or one[0] == key is not None
                for one in known.rewarded.get(name, ())
            ):
                raise Violation(f"{self.name}: took a reward of {name} before it was durable")
        elif isinstance(request, Activate):
            told = request.event_id in known.rewarded
            at_once = not known.decided[request.event_id].deferred
            if not (told or at_once or request.event_id in known.activated):
                raise Violation(f"{self.name}: activated {request.event_id} before it was durable")

    def _check_shown(self, data):
        """What is sent stands in the store."""
        message, known = wire.decoded(data), self.ledger
        if isinstance(message, wire.Have):
            for origin, heads in [*message.heads.items(), (None, message.yours)]:
                for epoch, sequence, digest in heads:
                    if origin is None:
                        fits = any(h[1:] == (epoch, sequence, digest) for h in known.heads)
                    else:
                        fits = (origin, epoch, sequence, digest) in known.heads
                    if sequence and not fits:
                        raise Violation(
                            f"{self.name}: showed {origin} {epoch} {sequence}, unsynced"
                        )
        elif isinstance(message, wire.Base) and message.data not in known.bases:
            raise Violation(f"{self.name}: showed a checkpoint of {message.origin}, unsynced")
