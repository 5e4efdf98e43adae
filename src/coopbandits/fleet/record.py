"""A record: one observation of an origin's feed, chained by hashes and signed.

A feed is append-only: the records of one (origin, epoch), numbered 1, 2, … without a gap. Each
holds the hash of the one before, so the last signature of a block vouches for all of it. An origin
begins a new epoch when it cannot be sure how its last one ended (an older backup was restored).

| bytes | what |
|---|---|
| 1 | version |
| 16 | fingerprint of the policy |
| 2, n | length of the origin's name, the name in UTF-8 |
| 8, 8, 8 | epoch, sequence, the origin's round |
| 32 | hash of the record before, or of the beginning of the epoch |
| 2, 2 | d, how many numbers the context has; k, how many are attached |
| 8 each | reward, context, attached: float64, little-endian, as the agents compute with them |
| 64 | signature of all before |
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from coopbandits.arrays import LARGEST, Array
from coopbandits.errors import RemoteProtocolError
from coopbandits.fleet.ports import Keys
from coopbandits.protocol.messages import Observation

VERSION = 1
SIGNATURE = 64
_HASH = 32
_AFTER_NAME = struct.Struct("<QQQ32sHH")
# The same, of many records at once.
_FIELDS = np.dtype(
    [("epoch", "<u8"), ("sequence", "<u8"), ("round", "<u8"), ("before", "u1", (_HASH,)),
     ("d", "<u2"), ("k", "<u2")]
)  # fmt: skip
_LAST_ROUND = 2**62

Bytes: TypeAlias = NDArray[np.uint8]
Fields: TypeAlias = NDArray[np.void]

# Epochs, sequences, hashes and d, where a peer says them: what a log can keep.
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**62)]
Hash: TypeAlias = Annotated[bytes, Meta(min_length=_HASH, max_length=_HASH)]
Dimension: TypeAlias = Annotated[int, Meta(ge=1, le=2**16 - 1)]


@dataclass(frozen=True, slots=True)
class Head:
    """Where a feed ends: the sequence of its last record, and that record's hash."""

    sequence: int
    hash: bytes


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Consecutive records of one feed, verified.

    Attributes:
        first: The sequence of the first.
        hashes: (k,) of each.
        rounds: (k,) the origin's.
        rewards: (k,).
        contexts: (k, d).
        attached: (k, ·).
        last: The last record's bytes.
    """

    first: int
    hashes: list[bytes]
    rounds: list[int]
    rewards: Array
    contexts: Array
    attached: Array
    last: bytes

    @property
    def head(self) -> Head:
        """Where the feed ends with it."""
        return Head(self.first + len(self.hashes) - 1, self.hashes[-1])

    def observations(self, start: int, stop: int) -> tuple[Array, Array, list[int], Array]:
        """Return contexts, rewards, rounds and what is attached of some of them."""
        at = slice(start, stop)
        return self.contexts[at], self.rewards[at], self.rounds[at], self.attached[at]


class Feed:
    """What all records of one (origin, epoch) share, and how one is made, read and verified."""

    def __init__(self, fingerprint: str, origin: str, epoch: int) -> None:
        self.origin, self.epoch = origin, epoch
        name = origin.encode()
        policy = blake2b(fingerprint.encode(), digest_size=16).digest()
        self._prefix = struct.pack("<B16sH", VERSION, policy, len(name)) + name
        self._same = self._prefix + struct.pack("<Q", epoch)
        beginning = blake2b(self._same, digest_size=_HASH, person=b"coop epoch").digest()
        self.beginning = Head(0, beginning)

    def record(self, after: Head, one: Observation, keys: Keys) -> bytes:
        """Make and sign the record that comes after another."""
        numbers = np.concatenate([[one.reward], one.context, one.attached]).astype("<f8")
        d, k = len(one.context), len(one.attached)
        fields = _AFTER_NAME.pack(self.epoch, after.sequence + 1, one.round, after.hash, d, k)
        body = self._prefix + fields + numbers.tobytes()
        return body + keys.sign(body)

    def read(self, after: Head, records: Sequence[bytes], keys: Keys) -> Block:
        """Verify records that are said to come after another; else a `RemoteProtocolError`."""
        if not records:
            raise self._refused("a block without records")
        rows = self._rows(records, after.sequence + 1)
        fields, hashes = self._fields(rows), _hashes(records)
        sequences = after.sequence + np.arange(1, len(records) + 1, dtype=np.uint64)
        before = np.frombuffer(b"".join([after.hash, *hashes[:-1]]), dtype=np.uint8)
        d, k = fields["d"][0].item(), fields["k"][0].item()
        faults = np.stack(
            [
                (rows[:, : len(self._same)] != np.frombuffer(self._same, dtype=np.uint8)).any(1),
                fields["sequence"] != sequences,
                (fields["before"] != before.reshape(-1, _HASH)).any(1),
                (fields["d"] != d) | (fields["k"] != k),
            ]
        )
        if faults.any():
            at = int(faults.any(0).argmax())
            raise self._fault(int(faults[:, at].argmax()), int(sequences[at]), fields[at])
        if rows.shape[1] != len(self._prefix) + _AFTER_NAME.size + 8 * (1 + d + k) + SIGNATURE:
            raise self._refused(
                f"record {sequences[0]} has {rows.shape[1]} bytes for {d} + {k} numbers"
            )
        last = records[-1]
        if not keys.verify(self.origin, last[:-SIGNATURE], last[-SIGNATURE:]):
            raise self._refused(f"the signature of record {sequences[-1]} is not {self.origin}'s")
        if not d or fields["round"].max() >= _LAST_ROUND:
            raise self._refused("a context is empty, or a round is too large")
        block = self._block(rows, fields, hashes, last)
        numbers = np.concatenate([block.rewards[:, None], block.contexts, block.attached], axis=1)
        if not np.isfinite(numbers).all() or np.abs(numbers).max(initial=0.0) > LARGEST:
            raise self._refused("a number is not finite, or larger than agents take")
        return block

    def trusted(self, records: Sequence[bytes]) -> Block:
        """Read records that were made or verified by the node itself."""
        rows = self._rows(records, 1)
        return self._block(rows, self._fields(rows), _hashes(records), records[-1])

    def _rows(self, records: Sequence[bytes], first: int) -> Bytes:
        """Lay records out one a row, (n, bytes of a record); all have as many."""
        size = len(records[0])
        if size < len(self._prefix) + _AFTER_NAME.size + SIGNATURE:
            raise self._refused(f"record {first} is of another version, policy or feed")
        other = next((i for i, data in enumerate(records) if len(data) != size), None)
        if other is not None:
            raise self._refused(
                f"record {first + other} has {len(records[other])} bytes, others {size}"
            )
        return np.frombuffer(b"".join(records), dtype=np.uint8).reshape(len(records), size)

    def _fields(self, rows: Bytes) -> Fields:
        """Return what stands behind the name in each record."""
        start = len(self._prefix)
        laid_out = np.ascontiguousarray(rows[:, start : start + _AFTER_NAME.size])
        return laid_out.view(_FIELDS)[:, 0]

    def _fault(self, which: int, sequence: int, fields: np.void) -> RemoteProtocolError:
        """Say what is wrong with a record."""
        if which == 2:
            return UnchainedError(self.origin, self.epoch, sequence)
        return self._refused(
            (
                f"record {sequence} is of another version, policy or feed",
                f"record {sequence} was expected, {fields['sequence']} came",
                "",
                f"record {sequence} has {fields['d']} + {fields['k']} numbers, others not",
            )[which]
        )

    def _block(self, rows: Bytes, fields: Fields, hashes: list[bytes], last: bytes) -> Block:
        start, d = len(self._prefix) + _AFTER_NAME.size, fields["d"][0].item()
        numbers = np.ascontiguousarray(rows[:, start:-SIGNATURE]).view("<f8").astype(np.float64)
        return Block(
            fields["sequence"][0].item(),
            hashes,
            fields["round"].tolist(),
            numbers[:, 0].copy(),
            numbers[:, 1 : 1 + d].copy(),
            numbers[:, 1 + d :].copy(),
            last,
        )

    def head(self, data: bytes) -> Head:
        """Return the head that a record of this feed makes, without verifying anything."""
        start = len(self._prefix)
        if not data.startswith(self._same) or len(data) < start + _AFTER_NAME.size + SIGNATURE:
            raise self._refused("a record is of another version, policy or feed")
        sequence = _AFTER_NAME.unpack_from(data, start)[1]
        return Head(sequence, blake2b(data, digest_size=_HASH).digest())

    def contradict(self, one: bytes, other: bytes, keys: Keys) -> bool:
        """Tell whether two records are both the origin's, of one sequence, and not the same."""
        try:
            same = self.head(one).sequence == self.head(other).sequence
        except RemoteProtocolError:
            return False
        bodies = [data[:-SIGNATURE] for data in (one, other)]
        signed = [
            keys.verify(self.origin, data[:-SIGNATURE], data[-SIGNATURE:]) for data in (one, other)
        ]
        return same and all(signed) and bodies[0] != bodies[1]

    def _refused(self, why: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"feed of {self.origin}, epoch {self.epoch}: {why}")


def _hashes(records: Sequence[bytes]) -> list[bytes]:
    return [blake2b(data, digest_size=_HASH).digest() for data in records]


class UnchainedError(RemoteProtocolError):
    """A record does not follow the one that is held: one of the two is of a fork."""

    def __init__(self, origin: str, epoch: int, sequence: int) -> None:
        super().__init__(
            f"feed of {origin}, epoch {epoch}: record {sequence} does not follow the record "
            f"{sequence - 1} that is held"
        )
        self.sequence = sequence
