"""What neighbours say to each other: heads, requests, blocks of records, checkpoints and proofs.

Feeds are replicated by anti-entropy. `Have` offers heads of feeds, `Want` asks for what is behind
one, `Take` brings a block of it, `Base` a checkpoint where the records were cut. No message counts
on another to arrive. A frame is magic "CBf", version, CRC-32 of the rest, MessagePack.

A node reads all versions up to its own and writes the highest that the neighbour has said it reads
(`Have.reads`), so that the nodes of a fleet can be upgraded one at a time; keys that it does not
know are ignored.
"""

import struct
from typing import TypeAlias
from zlib import crc32

import msgspec
from msgspec import Struct

from coopbandits.errors import RemoteProtocolError
from coopbandits.fleet.record import Count, Hash

VERSION = 1
_FRAME = struct.Struct("<3sBI")
_MAGIC = b"CBf"

# epoch, sequence and hash of the last record
Heads: TypeAlias = list[tuple[Count, Count, Hash]]


class Have(Struct, frozen=True, tag=1):
    """Heads of the feeds that the sender offers, and of the receiver's own as the sender has it.

    Attributes:
        heads: By origin, what can be asked for.
        bases: By origin, epoch and sequence of the newest checkpoint that can be asked for.
        yours: The receiver's own feeds, as far as the sender holds them.
        reads: The highest version of these messages that the sender reads.
        answer: Whether the sender wants the receiver's heads at once.
    """

    heads: dict[str, Heads]
    bases: dict[str, tuple[Count, Count]]
    yours: Heads
    reads: int = VERSION
    answer: bool = False


class Want(Struct, frozen=True, tag=2):
    """Ask for the records of a feed behind a sequence, up to one that was offered."""

    origin: str
    epoch: Count
    after: Count
    last: Count


class Take(Struct, frozen=True, tag=3):
    """Consecutive records of a feed."""

    origin: str
    epoch: Count
    first: Count
    records: list[bytes]


class WantBase(Struct, frozen=True, tag=6):
    """Ask for the newest checkpoint of an origin."""

    origin: str


class Base(Struct, frozen=True, tag=4):
    """A checkpoint of an origin, as it signed it: the records before it were cut."""

    origin: str
    data: bytes


class Proof(Struct, frozen=True, tag=5):
    """Two records of one origin, epoch and sequence that differ: the origin forked."""

    origin: str
    epoch: Count
    one: bytes
    other: bytes


Spoken: TypeAlias = Have | Want | Take | WantBase | Base | Proof

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Spoken)


def encoded(message: Spoken, version: int = VERSION) -> bytes:
    """Put a message into bytes, in a version that the receiver reads."""
    body = _encoder.encode(message)
    return _FRAME.pack(_MAGIC, min(version, VERSION), crc32(body)) + body


def decoded(data: bytes) -> Spoken:
    """Read a message; anything else is a `RemoteProtocolError`."""
    if len(data) < _FRAME.size or data[:3] != _MAGIC:
        raise RemoteProtocolError(f"{len(data)} bytes are no message between nodes")
    _, version, check = _FRAME.unpack_from(data)
    if not 1 <= version <= VERSION:
        raise RemoteProtocolError(
            f"a message between nodes has version {version}; this release reads 1 to {VERSION}"
        )
    body = memoryview(data)[_FRAME.size :]
    if crc32(body) != check:
        raise RemoteProtocolError("a message between nodes is damaged: its checksum does not match")
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RemoteProtocolError(f"a message between nodes makes no sense: {error}") from error
