"""Links that lose, double, delay, reorder and damage what they carry, in virtual time."""

from random import Random


class Wires:
    """All links of a world. Messages go to whoever runs under a name: copies of a node get all.

    Attributes:
        calm: Whether all faults are over.
    """

    def __init__(self, world, plan):
        self._world, self._plan = world, plan
        self._rng = Random(f"links {plan.seed}")
        self._cut: dict[frozenset, int] = {}
        self._deaf: set[tuple[str, str]] = set()
        self.calm = False

    def send(self, source, target, data):
        """Let bytes arrive some time later, or never."""
        rng, plan, count = self._rng, self._plan, self._world.count
        count("sent")
        if not self.joined(source, target) or (source, target) in self._deaf:
            return
        if self.calm:
            self._world.after(rng.uniform(0.01, 0.05), self._arrive, source, target, data)
            return
        if rng.random() < plan.drop:
            count("dropped")
            return
        copies = 1 + (rng.random() < plan.double)
        if copies > 1:
            count("doubled")
        for _ in range(copies):
            mean, longest = plan.delay
            sent = data
            if rng.random() < plan.corrupt:
                at = rng.randrange(len(data))
                sent = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
                count("damaged")
            delay = min(rng.expovariate(1 / mean), longest)
            self._world.after(delay, self._arrive, source, target, sent)

    def joined(self, one, other):
        """Tell whether both ends are there and nothing parts them."""
        hosts = self._world.hosts
        return bool(
            any(host.name == one and host.linked_to(other) for host in hosts)
            and any(host.name == other and host.linked_to(one) for host in hosts)
            and not self._cut.get(frozenset((one, other)))
        )

    def cut(self, one, other, seconds):
        """Part two sites for some time."""
        pair = frozenset((one, other))
        self._cut[pair] = self._cut.get(pair, 0) + 1
        self._world.count("partition")
        self.changed(one, other)
        self._world.after(seconds, self._heal, one, other)

    def deafen(self, source, target, seconds):
        """Let one site not be heard by another for some time, which no one is told."""
        self._deaf.add((source, target))
        self._world.count("one-way")
        self._world.after(seconds, self._deaf.discard, (source, target))

    def heal(self):
        """End all faults."""
        self.calm = True
        self._deaf.clear()
        for pair in sorted(map(sorted, self._cut)):
            self._cut.pop(frozenset(pair))
            self.changed(*pair)

    def _heal(self, one, other):
        pair = frozenset((one, other))
        if self._cut.get(pair):
            self._cut[pair] -= 1
            self.changed(one, other)

    def changed(self, one, other):
        """Tell both ends, some time later, whether they are joined by then."""
        for me, neighbour in ((one, other), (other, one)):
            self._world.after(self._rng.uniform(0.05, 1.0), self._tell, me, neighbour)

    def _tell(self, me, neighbour):
        for host in [*self._world.hosts]:
            if host.name == me and host.linked_to(neighbour):
                host.linked(neighbour, self.joined(me, neighbour))

    def _arrive(self, source, target, data):
        if frozenset((source, target)) in self._cut and self._cut[frozenset((source, target))]:
            return
        for host in [*self._world.hosts]:
            if host.name == target and host.linked_to(source):
                host.arrived(source, data)
