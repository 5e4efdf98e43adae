r"""The chain of hashes over a log, and what it says of the records that came with its entries.

$$c_n = H(c_{n-1} \Vert kind_n \Vert |body_n| \Vert body_n \Vert references_n), \quad
c_0 = H(identity)$$

H is BLAKE2b with 256 bits. References name the records of an entry in runs of one feed: origin,
epoch, first sequence, count, then the digest of each record. A digest has 128 bits and covers the
position of the entry, the record's key and its bytes.

A cut takes entries away and leaves some of their records, whose references are then gone. What
vouches for those is a `Balance`: the number and the sum modulo 2^128 of the digests of all records,
less those of all references. Appending adds to both alike, so only a cut changes it.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from coopbandits.errors import ParameterError
from coopbandits.fleet.ports import Entry, StoredRecord

DIGEST_BYTES = 16
_MODULUS = 2 ** (8 * DIGEST_BYTES)
_HEAD = struct.Struct(">BI")
_KEY = struct.Struct(">QQQH")
_RUN = struct.Struct(">HQQI")


class Reference(NamedTuple):
    """A record that came with an entry: its key, and the digest of its bytes."""

    origin: bytes
    epoch: int
    sequence: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Balance:
    """How many records there are without a reference, and the sum of their digests."""

    count: int = 0
    total: int = 0

    def plus(self, digests: Iterable[bytes]) -> "Balance":
        """Count records more, or references less."""
        values = [int.from_bytes(digest, "big") for digest in digests]
        return Balance(self.count + len(values), (self.total + sum(values)) % _MODULUS)

    def minus(self, digests: Iterable[bytes]) -> "Balance":
        """Count records less, or references more."""
        values = [int.from_bytes(digest, "big") for digest in digests]
        return Balance(self.count - len(values), (self.total - sum(values)) % _MODULUS)


def genesis(identity: str) -> bytes:
    """Return the chain before the first entry of a node's log."""
    return blake2b(b"coopbandits log\0" + identity.encode(), digest_size=32).digest()


def chain(before: bytes, kind: int, body: bytes, references: bytes) -> bytes:
    """Return the chain behind an entry."""
    head = before + _HEAD.pack(kind, len(body))
    return blake2b(b"".join((head, body, references)), digest_size=32).digest()


def record_digest(position: int, origin: bytes, epoch: int, sequence: int, data: bytes) -> bytes:
    """Return the digest of a record that came with the entry at a position."""
    key = _KEY.pack(position, epoch, sequence, len(origin)) + origin
    return blake2b(key + data, digest_size=DIGEST_BYTES).digest()


def references_of(position: int, records: Sequence[StoredRecord]) -> list[Reference]:
    """Return the references of an entry that is to stand at a position."""
    found = []
    for record in records:
        origin = record.origin.encode()
        digest = record_digest(position, origin, record.epoch, record.sequence, record.data)
        found.append(Reference(origin, record.epoch, record.sequence, digest))
    return found


def pack(references: Sequence[Reference]) -> bytes:
    """Write references down, successive records of a feed as one run."""
    if not references:
        return b""
    parts: list[bytes] = []
    start = 0
    for end in range(1, len(references) + 1):
        first = references[start]
        if end < len(references):
            here = references[end]
            follows = first.sequence + end - start
            if (here.origin, here.epoch, here.sequence) == (first.origin, first.epoch, follows):
                continue
        parts.append(_RUN.pack(len(first.origin), first.epoch, first.sequence, end - start))
        parts.append(first.origin)
        parts.extend(reference.digest for reference in references[start:end])
        start = end
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """Successive records of one feed that came with one entry."""

    origin: bytes
    epoch: int
    first: int
    digests: tuple[bytes, ...]


def unpack(data: bytes) -> Iterator[ReferenceRun]:
    """Read references; their bytes are under the chain, so they are not checked here."""
    at = 0
    while at < len(data):
        length, epoch, first, count = _RUN.unpack_from(data, at)
        start = at + _RUN.size + length
        at = start + count * DIGEST_BYTES
        digests = tuple(data[i : i + DIGEST_BYTES] for i in range(start, at, DIGEST_BYTES))
        yield ReferenceRun(data[start - length : start], epoch, first, digests)


def check_batch(batch: Sequence[Entry]) -> None:
    """Refuse entries that cannot be written down."""
    for entry in batch:
        if not 1 <= entry.kind <= 255:
            raise ParameterError(f"the kind of an entry must be 1 … 255, got {entry.kind}")
        for record in entry.records:
            if not (0 <= record.epoch < 2**63 and 0 <= record.sequence < 2**63):
                raise ParameterError(
                    "epoch and sequence of a record must be 0 … 2^63 - 1, got "
                    f"{record.epoch} and {record.sequence} of {record.origin!r}"
                )
            if not 1 <= len(record.origin.encode()) < 2**16:
                raise ParameterError(
                    "the origin of a record must have 1 … 65535 bytes, got "
                    f"{len(record.origin.encode())}"
                )


def twice(record: StoredRecord) -> ParameterError:
    """Say that a record is already in the index."""
    return ParameterError(
        f"record {record.sequence} of {record.origin!r} in epoch {record.epoch} is already kept; "
        "a record is appended once, so compare with what is there before appending"
    )
