"""A whole fleet in virtual time: a heap of what happens next, and everything drawn from a seed."""

import heapq
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random

from coopbandits.fleet.core import actions as do
from fleet.simulation import faults, invariants
from fleet.simulation.host import Host
from fleet.simulation.ledger import Violation
from fleet.simulation.mutants import MUTANTS
from fleet.simulation.network import Wires
from fleet.simulation.plan import Plan, drawn
from fleet.simulation.users import Users

# Virtual time begins here, as a clock of the year 2001 would show it.
BEGIN = 1e9


@dataclass
class Report:
    """What a seed came to.

    Attributes:
        seed: Which.
        seconds: Of virtual time.
        counts: How often what happened.
        trace: A hash of all that happened.
        failure: What must never have happened; None if nothing did.
    """

    seed: int
    seconds: float
    counts: Counter = field(default_factory=Counter)
    trace: str = ""
    failure: str | None = None


class World:
    """A fleet, its users and its faults.

    Attributes:
        plan: What was drawn.
        now: The virtual time.
        hosts: All nodes, copies of nodes among them.
        users: Of each node.
        replaced: Of nodes whose log was replaced, what they had recorded before.
        found: Origins of which somebody said that they forked.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.now = plan, BEGIN
        self._next, self._heap = 0, []
        self._trace = blake2b(digest_size=16)
        self.counts = Counter()
        self.wires = Wires(self, plan)
        self.grown = False
        self.hosts, self.users = [], {}
        self.replaced, self.found = {}, set()
        self.rng = Random(f"faults {plan.seed}")
        there = plan.sites[:-1] if plan.newcomer else plan.sites
        for name in there:
            self.settle(name)

    def settle(self, name):
        """Let a node begin, and its users."""
        host = Host(self, self.plan.told(name, grown=self.grown))
        self.hosts.append(host)
        self.users[name] = Users(self, host)
        self.after(self.rng.uniform(0, 1), self.revive, host)
        self.after(self.rng.uniform(1, 3), self.users[name].work)

    # Time.

    def after(self, seconds, call, *given):
        """Let something be called some time later."""
        self._next += 1
        heapq.heappush(self._heap, (self.now + seconds, self._next, call, given))

    def run(self, until):
        """Let time pass."""
        while self._heap and self._heap[0][0] <= until:
            self.now, _, call, given = heapq.heappop(self._heap)
            call(*given)
        self.now = until

    # What nodes do.

    def count(self, what, times=1):
        """Count something that happened."""
        self.counts[what] += times

    def trace(self, host, event, found):
        """Remember a step of a core in the hash of all."""
        kind = type(event).__name__ if not isinstance(event, float) else "start"
        self._trace.update(f"{self.now!r} {host.name} {kind} {len(found)}".encode())
        for action in found:
            if isinstance(action, do.Append):
                for entry in action.entries:
                    self._trace.update(entry.body)
            elif isinstance(action, do.Send):
                self._trace.update(action.data)

    def noted(self, host, note):
        """Take note of what a core says."""
        if note.kind == "quarantined":
            self.found.add(note.fields["origin"])
            self.count("quarantined")
        elif note.kind in ("refused", "epoch", "adopted", "checkpoint", "received"):
            self.count(f"said {note.kind}")

    def ended(self, host):
        """Let an operator do what the exit code asks for."""
        code, reason = host.ended
        if code == do.FORK:
            self.found.add(host.name)
            if not {"copy", "old log"} & set(self.plan.faults):
                raise Violation(f"{host.name} stopped for a fork that there never was: {reason}")
            if host.copy:
                self.hosts.remove(host)
            else:
                self.after(4.0, faults.resolve_fork, self, host)
        elif code == do.DISK:
            self.after(2.0, self.revive, host)
        else:
            raise Violation(f"{host.name} stopped with exit code {code}: {reason}")

    def revive(self, host, *, restored=False):
        """Start a node, if it does not run and nobody is about to replace its log."""
        if not host.running and not host.held:
            host.start(restored=restored)

    def node(self, name):
        """Return a site's node; not a copy of it."""
        return next(host for host in self.hosts if host.name == name and not host.copy)

    @property
    def hash(self):
        """A hash of all that happened so far."""
        return self._trace.hexdigest()

    @property
    def nodes(self):
        """All nodes, without copies."""
        return [host for host in self.hosts if not host.copy]

    def play(self):
        """Let faults happen, end them, and look at what is left."""
        plan = self.plan
        faults.schedule(self)
        self.run(BEGIN + plan.seconds)
        faults.end(self)
        self.run(self.now + 6.0)
        for users in self.users.values():
            users.calm = True
        self.run(self.now + 36.0)
        if self.counts[f"exit {do.FORK}"]:
            self.run(self.now + 30.0)
        for _ in range(8):  # what came last may be being learnt, which takes up to eight seconds
            if any(host.running and host.core.learning.busy for host in self.hosts):
                self.run(self.now + 4.0)
        invariants.check_end(self)


def simulated(seed: int, mutant: str | None = None) -> Report:
    """Play the world of a seed, with a mutant planted if one is named."""
    world = World(drawn(seed))
    failure = None
    try:
        with MUTANTS[mutant]() if mutant else nullcontext():
            world.play()
    except Violation as error:
        failure = str(error)
    except Exception as error:  # whatever a node raises is a failure of it
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        at = where and f"{where.tb_frame.f_code.co_filename.rpartition('/')[2]}:{where.tb_lineno}"
        failure = f"{type(error).__name__} at {at}: {error}"
    report = Report(seed, world.now - BEGIN, world.counts, world.hash, failure)
    if failure is not None:
        report.failure = f"seed {seed}: {failure}\nreplay it: {replay(seed, mutant)}"
    return report


def replay(seed: int, mutant: str | None = None) -> str:
    """Return the command that plays a seed again."""
    more = f" --mutant '{mutant}'" if mutant else ""
    command = f".venv/bin/python -m fleet.simulation --first {seed} --seeds 1{more}"
    return f"PYTHONPATH=tests {command}"
