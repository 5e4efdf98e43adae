"""What became durable at a node, read from its store entry by entry, beside the core."""

import struct
from copy import copy
from dataclasses import dataclass, field
from hashlib import blake2b

from coopbandits.fleet.checkpoint import Checkpoint
from coopbandits.fleet.core import entries

_FIELDS = struct.Struct("<QQQ32sHH")


class Violation(AssertionError):
    """A node did what it must never do."""


@dataclass(frozen=True)
class Written:
    """A record's bytes, read apart from the code of the fleet."""

    epoch: int
    sequence: int
    round: int
    before: bytes
    reward: float
    context: tuple[float, ...]
    hash: bytes

    @classmethod
    def of(cls, data):
        """Read one."""
        (length,) = struct.unpack_from("<H", data, 17)
        at = 19 + length
        epoch, sequence, round_, before, d, k = _FIELDS.unpack_from(data, at)
        numbers = struct.unpack_from(f"<{1 + d + k}d", data, at + _FIELDS.size)
        digest = blake2b(data, digest_size=32).digest()
        return cls(epoch, sequence, round_, before, numbers[0], numbers[1 : 1 + d], digest)


@dataclass
class Ledger:
    """All that became durable at one node, over all its lives.

    Attributes:
        name: The node's.
        position: Up to which entry it was read.
        decided: By event, its decision; of the last, if an id was used again after it expired.
        rewarded: By event, key and value of each reward that was written down, in order.
        activated: Events.
        recorded: Own records, by (epoch, sequence): event and when it closed.
        records: By (origin, epoch), the records by sequence.
        ends: By (origin, epoch), sequence and hash of the last one.
        heads: All (origin, epoch, sequence, hash) that may be shown.
        bases: Checkpoints.
        ended: Events that closed without a record, with what counted.
        replaced: Whether it was replaced by an older one.
    """

    name: str
    position: int = 0
    decided: dict = field(default_factory=dict)
    rewarded: dict = field(default_factory=dict)
    activated: set = field(default_factory=set)
    recorded: dict = field(default_factory=dict)
    records: dict = field(default_factory=dict)
    ends: dict = field(default_factory=dict)
    heads: set = field(default_factory=set)
    bases: set = field(default_factory=set)
    ended: dict = field(default_factory=dict)
    replaced: bool = False

    def copied(self):
        """Return what stood there by now; it does not change with this one."""
        other = copy(self)
        for name in ("decided", "activated", "recorded", "ends", "heads", "bases"):
            setattr(other, name, copy(getattr(self, name)))
        other.rewarded = {event: [*rewards] for event, rewards in self.rewarded.items()}
        other.ended = dict(self.ended)
        other.records = {key: dict(known) for key, known in self.records.items()}
        return other

    def follow(self, store):
        """Read what was added to a store."""
        for position, stored in store.entries(self.position):
            self.position = position
            self._add(entries.read(stored, position), stored.records, position)

    def _add(self, entry, records, position):
        if isinstance(entry, entries.Decided):
            self.decided[entry.event] = entry
        elif isinstance(entry, entries.Rewarded):
            self.rewarded.setdefault(entry.event, []).append((entry.key, entry.value))
        elif isinstance(entry, entries.Activated):
            self.activated.add(entry.event)
        elif isinstance(entry, entries.Ended):
            self.ended.update({event: value for event, value, _ in entry.events})
        elif isinstance(entry, entries.Based):
            self._based(Checkpoint.trusted(entry.data))
        if isinstance(entry, entries.Recorded):
            if len(records) != 1:
                raise Violation(f"{self.name}: entry {position} stands without its record")
            self.recorded[entry.epoch, entry.sequence] = entry.event, entry.at
        if isinstance(entry, entries.Received) and len(records) != entry.last - entry.first + 1:
            raise Violation(f"{self.name}: entry {position} stands without its records")
        for record in records:
            self._record(record)

    def _record(self, record):
        key, one = (record.origin, record.epoch), Written.of(record.data)
        sequence, digest = self.ends.get(key, (0, None))
        if one.sequence != sequence + 1 or (digest is not None and one.before != digest):
            raise Violation(
                f"{self.name}: record {one.sequence} of {key} was applied behind {sequence}; each "
                "comes once and in order"
            )
        self.ends[key] = one.sequence, one.hash
        self.heads.add((*key, one.sequence, one.hash))
        self.records.setdefault(key, {})[one.sequence] = one

    def _based(self, checkpoint):
        self.bases.add(checkpoint.data)
        for base in checkpoint.feeds:
            key = checkpoint.origin, base.epoch
            if self.ends.get(key, (0, None))[0] < base.sequence:
                self.ends[key] = base.sequence, base.hash
            self.heads.add((*key, base.sequence, base.hash))
