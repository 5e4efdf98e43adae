"""The feeds that a node holds: its own, and those of all origins within γ hops.

Each feed is known up to a head that was appended, one that is synced, and sums of what was applied
(`coopbandits.agent.origin_sums`), these only of origins that the agent hears. An origin has a feed
for each of its epochs; its sums are those of all of them, in order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coopbandits.agent import Agent, feeds
from coopbandits.agent.feeds import OriginSums
from coopbandits.errors import InputError, RemoteProtocolError, StateError
from coopbandits.fleet.checkpoint import Checkpoint, FeedBase
from coopbandits.fleet.core.wire import Heads
from coopbandits.fleet.ports import Keys
from coopbandits.fleet.record import Block, Feed, Head

# An origin begins an epoch when an older backup of it was restored.
MOST_EPOCHS = 64


@dataclass(slots=True)
class HeldFeed:
    """One feed, as far as it is held.

    Attributes:
        feed: Makes, reads and verifies its records.
        held: Its head among what was appended.
        synced: Its head among what is durable.
        last: The record at `held`; empty if it is not held.
        cut: Records up to this sequence were cut.
        sums: Of what was applied.
        applied: Up to which sequence.
        mark: The sums at the last place where the origin may have signed a checkpoint.
        marked: That place.
    """

    feed: Feed
    held: Head
    synced: Head
    last: bytes = b""
    cut: int = 0
    sums: OriginSums | None = None
    applied: int = 0
    mark: OriginSums | None = None
    marked: Head | None = None


@dataclass(slots=True)
class Origin:
    """An origin's feeds.

    Attributes:
        name: Whose.
        agent: Its number.
        heard: Whether the node's agent learns from it.
        epochs: Its feeds, by epoch, in order.
        base: Its newest checkpoint that is held.
        former: The one before.
        quarantined: Whether two of its records contradict each other.
        proof: These two, with their epoch, once they are durable.
        last_at: When its last record came.
    """

    name: str
    agent: int
    heard: bool
    epochs: dict[int, HeldFeed] = field(default_factory=dict)
    base: Checkpoint | None = None
    former: Checkpoint | None = None
    quarantined: bool = False
    proof: tuple[int, bytes, bytes] | None = None
    last_at: float | None = None

    @property
    def records(self) -> int:
        """How many of its records are durable."""
        return sum(one.synced.sequence for one in self.epochs.values())

    @property
    def heads(self) -> Heads:
        """Epoch, sequence and hash of what is durable."""
        return [
            (epoch, one.synced.sequence, one.synced.hash)
            for epoch, one in self.epochs.items()
            if one.synced.sequence
        ]

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and sequence of its newest checkpoint."""
        return (0, 0) if self.base is None else self.base.place


class Feeds:
    """All feeds of a node."""

    def __init__(self, agent: Agent, names: Sequence[str], every: int, keys: Keys) -> None:
        """Hold nothing.

        Args:
            agent: Whose sums are kept.
            names: Of the origins within γ hops, the node itself among them.
            every: A feed may have a checkpoint at each so many records.
            keys: To verify records.
        """
        self._agent, self._every, self._keys = agent, every, keys
        self._fingerprint = agent.policy.fingerprint
        heard = set(agent.sources.tolist())
        self.origins = {
            name: Origin(name, number, number in heard)
            for name in names
            for number in [agent.network.index(name)]
        }
        self._away: list[Any] = []  # what is held of origins that are out of reach now

    def feed(self, origin: str, epoch: int) -> Feed:
        """Return what reads the records of a feed, held or not."""
        held = self.origins[origin].epochs.get(epoch)
        return Feed(self._fingerprint, origin, epoch) if held is None else held.feed

    def open(self, origin: str, epoch: int) -> HeldFeed:
        """Return a feed, begun if it is not held yet."""
        one = self.origins[origin]
        if epoch not in one.epochs:
            if len(one.epochs) >= MOST_EPOCHS:
                raise RemoteProtocolError(
                    f"{origin} began more than {MOST_EPOCHS} epochs: it was restored from a backup "
                    "so many times, or it is not what it says"
                )
            feed = Feed(self._fingerprint, origin, epoch)
            one.epochs[epoch] = HeldFeed(feed, feed.beginning, feed.beginning)
            one.epochs = dict(sorted(one.epochs.items()))
        return one.epochs[epoch]

    def held(self, origin: str, epoch: int) -> Head:
        """Return where a feed ends among what was appended."""
        one = self.origins[origin].epochs.get(epoch)
        return self.feed(origin, epoch).beginning if one is None else one.held

    def holds_part(self, origin: str, ends: Iterable[tuple[int, int]]) -> bool:
        """Tell whether some, and not all, records are held of a feed up to its end."""
        return any(0 < self.held(origin, epoch).sequence < last for epoch, last in ends)

    def read(self, origin: str, epoch: int, records: Sequence[bytes]) -> Block:
        """Verify records that are to follow what is held."""
        block = self.feed(origin, epoch).read(self.held(origin, epoch), records, self._keys)
        self._check_sizes(origin, block)
        return block

    def _check_sizes(self, origin: str, block: Block) -> None:
        """Refuse what the agent cannot learn from, if it knows by now what it can."""
        dim = self._agent._inbox.dim
        size = block.contexts.shape[1], block.attached.shape[1]
        if dim is not None and size != (dim, feeds.attached_size(self._agent)):
            raise RemoteProtocolError(
                f"records of {origin} have contexts of {size[0]} numbers and {size[1]} attached; "
                f"this node uses {dim} and {feeds.attached_size(self._agent)}"
            )

    def append(self, origin: str, epoch: int, head: Head, last: bytes) -> None:
        """Let a feed end further on, among what was appended."""
        one = self.open(origin, epoch)
        one.held, one.last = head, last

    def sync(self, origin: str, epoch: int, head: Head, at: float) -> None:
        """Let a feed end further on, among what is durable."""
        one = self.origins[origin]
        one.epochs[epoch].synced, one.last_at = head, at

    def apply(self, origin: str, epoch: int, block: Block) -> bool:
        """Add a block to the sums of its feed; whether there is anything new to learn."""
        one, agent = self.origins[origin], self._agent
        held = one.epochs[epoch]
        if not one.heard:
            held.applied = block.head.sequence
            return False
        start, count = 0, len(block.hashes)
        while start < count:
            place = held.applied + start
            stop = min(count, start + self._every - place % self._every)
            X, y, rounds, attached = block.observations(start, stop)
            try:
                feeds.settle_dimension(agent, X.shape[1])
                held.sums = feeds.extended(agent, held.sums, one.agent, X, y, rounds, attached)
            except InputError:  # of another size than the agent's: stored, and never learnt
                held.applied = block.head.sequence
                return False
            start = stop
            if (held.applied + stop) % self._every == 0:
                held.mark = held.sums
                held.marked = Head(held.applied + stop, block.hashes[stop - 1])
        held.applied = block.head.sequence
        return True

    def sums(self, names: Sequence[str]) -> dict[int, list[OriginSums]]:
        """Return the sums of some origins, feed by feed, as `take_sums` takes them."""
        found = {}
        for name in names:
            one = self.origins[name]
            known = [feed.sums for feed in one.epochs.values() if feed.sums is not None]
            if one.heard and known:
                found[one.agent] = known
        return found

    def checkpoint(self, name: str, epoch: int) -> Checkpoint | None:
        """Sign a checkpoint of the own feeds, if one is due and there is none yet."""
        one = self.origins[name]
        current = one.epochs.get(epoch)
        if current is None or current.marked is None or current.mark is None:
            return None
        if one.place >= (epoch, current.marked.sequence):
            return None
        dim = self._agent._inbox.dim
        assert dim is not None
        bases = [
            FeedBase(
                number, feed.synced.sequence, feed.synced.hash, dim, feeds.stored_sums(feed.sums)
            )
            for number, feed in one.epochs.items()
            if number < epoch and feed.sums is not None and feed.applied == feed.synced.sequence
        ]
        place = current.marked
        stored = feeds.stored_sums(current.mark)
        bases.append(FeedBase(epoch, place.sequence, place.hash, dim, stored))
        return Checkpoint.signed(self._fingerprint, name, tuple(bases), self._keys)

    def read_checkpoint(self, data: bytes) -> Checkpoint:
        """Verify a checkpoint of an origin within reach."""
        read = Checkpoint.read(self._fingerprint, data, self._keys)
        if read.origin not in self.origins:
            raise RemoteProtocolError(f"a checkpoint of {read.origin} came, who is not within γ")
        epochs = self.origins[read.origin].epochs.keys() | {base.epoch for base in read.feeds}
        if len(epochs) > MOST_EPOCHS:
            raise RemoteProtocolError(
                f"a checkpoint of {read.origin} makes it {len(epochs)} epochs; expected at most "
                f"{MOST_EPOCHS}"
            )
        for base in read.feeds:
            one = self.origins[read.origin].epochs.get(base.epoch)
            if (
                one is not None
                and one.marked == base.head
                and one.mark is not None
                and one.mark.digest != self._sums_of(read.origin, base).digest
            ):
                raise RemoteProtocolError(
                    f"the checkpoint of {read.origin} at {base.epoch}, {base.sequence} is not what "
                    "its records add up to"
                )
            if self.origins[read.origin].heard and self._agent._inbox.dim is not None:
                self._sums_of(read.origin, base)
        return read

    def base_appended(self, checkpoint: Checkpoint) -> None:
        """Let feeds end where a checkpoint does, if they ended before."""
        for base in checkpoint.feeds:
            one = self.open(checkpoint.origin, base.epoch)
            if one.held.sequence < base.sequence:
                one.held, one.last, one.cut = base.head, b"", base.sequence

    def base_applied(self, checkpoint: Checkpoint, at: float) -> bool:
        """Take over what a checkpoint knows more; whether there is anything new to learn."""
        one, news = self.origins[checkpoint.origin], False
        for base in checkpoint.feeds:
            feed = one.epochs[base.epoch]
            if feed.applied >= base.sequence:
                continue
            feed.applied = base.sequence
            if feed.synced.sequence < base.sequence:
                feed.synced, one.last_at = base.head, at
            if one.heard:
                try:
                    feeds.settle_dimension(self._agent, base.dim)
                    feed.sums = self._sums_of(checkpoint.origin, base)
                except (InputError, RemoteProtocolError):  # of another size than the agent's
                    continue
                news = True
        if checkpoint.place > one.place:
            one.former, one.base = one.base, checkpoint
        return news

    def covered(self) -> dict[tuple[str, int], int]:
        """Return up to where two checkpoints cover feeds: who lacks these starts from one."""
        return {
            (one.name, base.epoch): base.sequence
            for one in self.origins.values()
            if one.former is not None
            for base in one.former.feeds
        }

    def cut(self, covered: dict[tuple[str, int], int]) -> tuple[tuple[str, int, int], ...]:
        """Let records of feeds be cut up to a sequence, and return where that is news."""
        cuts = []
        for (name, epoch), sequence in covered.items():
            feed = self.origins[name].epochs[epoch]
            if feed.cut < sequence:
                feed.cut = sequence
                cuts.append((name, epoch, sequence))
        return tuple(cuts)

    def _sums_of(self, origin: str, base: FeedBase) -> OriginSums:
        if base.dim != self._agent._inbox.dim:
            raise RemoteProtocolError(
                f"a checkpoint of {origin} is of contexts of {base.dim} numbers; this node uses "
                f"{self._agent._inbox.dim}"
            )
        try:
            sums = feeds.restored_sums(self._agent, self.origins[origin].agent, base.sums)
        except StateError as error:
            raise RemoteProtocolError(f"a checkpoint of {origin}: {error}") from error
        if sums.count != base.sequence:
            raise RemoteProtocolError(
                f"a checkpoint of {origin} counts {sums.count} records of {base.sequence}"
            )
        return sums

    def stored(self) -> list[Any]:
        """Return plain values that `restore` takes."""
        return [
            [
                one.name,
                None if one.base is None else one.base.data,
                None if one.former is None else one.former.data,
                one.quarantined,
                one.proof,
                one.last_at,
                [
                    [
                        epoch,
                        feed.held.sequence,
                        feed.held.hash,
                        feed.last,
                        feed.cut,
                        None if feed.sums is None else feeds.stored_sums(feed.sums),
                        feed.applied,
                        None if feed.mark is None else feeds.stored_sums(feed.mark),
                        None if feed.marked is None else [feed.marked.sequence, feed.marked.hash],
                    ]
                    for epoch, feed in one.epochs.items()
                ],
            ]
            for one in self.origins.values()
        ] + self._away

    def restore(self, stored: list[Any]) -> None:
        """Hold again what `stored` returned."""
        agent = self._agent
        for kept in stored:
            name, base, former, quarantined, proof, last_at, epochs = kept
            one = self.origins.get(name)
            if one is None:  # not within γ any more; the log has its records, should it come back
                self._away.append(kept)
                continue
            one.quarantined, one.last_at = quarantined, last_at
            one.proof = None if proof is None else (proof[0], proof[1], proof[2])
            one.base = None if base is None else Checkpoint.trusted(base)
            one.former = None if former is None else Checkpoint.trusted(former)
            for epoch, sequence, digest, last, cut, sums, applied, mark, marked in epochs:
                feed = self.open(name, epoch)
                feed.held, feed.last, feed.cut = Head(sequence, digest), last, cut
                feed.applied = applied
                read = [
                    None if data is None else feeds.restored_sums(agent, one.agent, data)
                    for data in (sums, mark)
                ]
                feed.sums, feed.mark = read if one.heard else (None, None)
                feed.marked = None if marked is None else Head(*marked)

    def all(self) -> Iterator[tuple[Origin, int, HeldFeed]]:
        """Yield each feed with its origin and epoch."""
        for one in self.origins.values():
            for epoch, feed in one.epochs.items():
                yield one, epoch, feed
