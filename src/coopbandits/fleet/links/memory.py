"""Links in memory: nodes in one process exchange bytes when the test says so."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from coopbandits.errors import InputError
from coopbandits.fleet.links import checked_message, checked_names, checked_order


class MemoryNetwork:
    """What joins nodes of one process: one queue for each (from, to).

    Nothing is called before `deliver`, so that no node is called while it works. Which link
    comes first is fixed: the order in which they were first used.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, MemoryLinks] = {}
        self._queues: dict[tuple[str, str], deque[bytes]] = {}
        self._changes: deque[tuple[MemoryLinks, str, bool]] = deque()
        self._up: set[tuple[str, str]] = set()
        self._cut: set[frozenset[str]] = set()

    @property
    def waiting(self) -> int:
        """How many messages are on their way."""
        return sum(map(len, self._queues.values()))

    def links(self, me: str, neighbours: Iterable[str]) -> "MemoryLinks":
        """Return a node's links to its neighbours; after `close`, others of the same name."""
        return MemoryLinks(self, me, neighbours)

    def deliver(self, most: int | None = None) -> int:
        """Tell of links and hand messages over, also those that this causes, up to so many.

        The queues take turns, one message each. Returns how many messages were handed over.
        """
        delivered = 0
        while True:
            self._tell()
            busy = [pair for pair, queue in self._queues.items() if queue]
            if not busy:
                return delivered
            for pair in busy:
                if delivered == most:
                    return delivered
                if self.deliver_one(*pair):
                    delivered += 1

    def deliver_one(self, source: str, target: str) -> bool:
        """Hand over the oldest message of one link, if there is one."""
        self._tell()
        queue = self._queues.get((source, target))
        if not queue:
            return False
        self._nodes[target].take(source, queue.popleft())
        return True

    def cut(self, one: str, other: str) -> None:
        """Take a link down; what is on its way is lost."""
        self._cut.add(frozenset((one, other)))
        self._update(one, other)

    def heal(self, one: str, other: str) -> None:
        """Let a link that was cut come up again."""
        self._cut.discard(frozenset((one, other)))
        self._update(one, other)

    def is_up(self, source: str, target: str) -> bool:
        """Tell whether what one sends to the other may arrive."""
        return (source, target) in self._up

    def put(self, source: str, target: str, data: bytes) -> None:
        """Queue a message; called by `MemoryLinks`."""
        self._queues.setdefault((source, target), deque()).append(data)

    def join(self, links: "MemoryLinks") -> None:
        """Let a node in; called by `MemoryLinks`."""
        if links.me in self._nodes:
            raise InputError(f"{links.me!r} is there already; close its links before others start")
        self._nodes[links.me] = links
        for neighbour in links.neighbours:
            self._update(links.me, neighbour)

    def leave(self, links: "MemoryLinks") -> None:
        """Let a node out; called by `MemoryLinks`."""
        if self._nodes.get(links.me) is links:
            del self._nodes[links.me]
            for neighbour in links.neighbours:
                self._update(links.me, neighbour)

    def _update(self, one: str, other: str) -> None:
        one, other = sorted((one, other))  # the order of calls depends on names only
        a, b = self._nodes.get(one), self._nodes.get(other)
        joined = a is not None and b is not None and other in a.neighbours and one in b.neighbours
        up = joined and frozenset((one, other)) not in self._cut
        for source, target, node in ((one, other, a), (other, one, b)):
            if up == self.is_up(source, target):
                continue
            if up:
                self._up.add((source, target))
            else:
                self._up.discard((source, target))
                self._queues.pop((source, target), None)
            if node is not None:
                self._changes.append((node, target, up))

    def _tell(self) -> None:
        while self._changes:
            node, neighbour, up = self._changes.popleft()
            node.tell(neighbour, up)


class MemoryLinks:
    """A node's links in a `MemoryNetwork`; made by `MemoryNetwork.links`."""

    def __init__(self, network: MemoryNetwork, me: str, neighbours: Iterable[str]) -> None:
        self.me = me
        self.neighbours = checked_names(me, neighbours)
        self._network = network
        self._calls: tuple[Callable[[str, bytes], None], Callable[[str, bool], None]] | None = None
        self._closed = False
        self._dropped: Counter[str] = Counter()

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many messages were dropped, by neighbour."""
        return MappingProxyType(self._dropped)

    def start(
        self, received: Callable[[str, bytes], None], linked: Callable[[str, bool], None]
    ) -> None:
        """Join the network; the calls come from `MemoryNetwork.deliver`."""
        checked_order(self._calls is not None or self._closed, expected=False)
        self._network.join(self)
        self._calls = received, linked

    def send(self, neighbour: str, data: bytes) -> None:
        """Queue bytes for a neighbour, or drop them if the link is down."""
        checked_message(self.neighbours, neighbour, data)
        checked_order(self._calls is not None, expected=True)
        if not self._closed and self._network.is_up(self.me, neighbour):
            self._network.put(self.me, neighbour, bytes(data))
        else:
            self._dropped[neighbour] += 1

    def close(self) -> None:
        """Leave the network; what is on its way is lost."""
        self._closed = True
        self._network.leave(self)

    def take(self, source: str, data: bytes) -> None:
        """Hand a message over; called by `MemoryNetwork`."""
        if self._calls is not None and not self._closed:
            self._calls[0](source, data)

    def tell(self, neighbour: str, up: bool) -> None:
        """Say that a link came up or went down; called by `MemoryNetwork`."""
        if self._calls is not None and not self._closed:
            self._calls[1](neighbour, up)
