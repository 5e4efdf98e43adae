"""The mark: a small file that says how far the log was synced, written after each commit.

Two slots of 64 bytes are written in turn, each with position, chain and a count of writes under a
CRC, so that a torn write leaves the slot before it. The file is not synced with each write: after
a power failure it may lag behind the log. The log never lags behind it: where it does, the log was
rolled back or lost.
"""

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from coopbandits.fleet.ports import DamageError

_SLOT = struct.Struct(">8sQQ32s4xI")
_MAGIC = b"coopmrk1"
SLOT_BYTES = _SLOT.size


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a log was synced: a position, the chain there, and which write of the mark it is."""

    position: int
    chain: bytes
    count: int

    def pack(self) -> bytes:
        """Write one slot down."""
        body = _SLOT.pack(_MAGIC, self.count, self.position, self.chain, 0)[:-4]
        return body + struct.pack(">I", zlib.crc32(body))


def unpack(data: bytes) -> Mark | None:
    """Read a slot; None if it is damaged or was never written."""
    if len(data) != SLOT_BYTES or zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
        return None
    magic, count, position, chain, _ = _SLOT.unpack(data)
    return Mark(position, chain, count) if magic == _MAGIC else None


def read(path: Path) -> Mark:
    """Return the newer of the two slots that are whole."""
    data = path.read_bytes()
    slots = (unpack(data[:SLOT_BYTES]), unpack(data[SLOT_BYTES:]))
    whole = [slot for slot in slots if slot is not None]
    if not whole:
        raise DamageError(
            f"{path} is damaged: neither of its two slots is whole, so nothing says how far the "
            "log was synced; restore a backup of the folder"
        )
    return max(whole, key=lambda slot: slot.count)


def create(path: Path, position: int, chain: bytes) -> None:
    """Write a new file with both slots, and sync it."""
    with path.open("wb") as file:
        file.write(Mark(position, chain, 0).pack() + Mark(position, chain, 1).pack())
        file.flush()
        os.fsync(file.fileno())


class MarkFile:
    """The mark of a log that is open: written in place, without a sync."""

    def __init__(self, path: Path) -> None:
        self.last = read(path)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def write(self, position: int, chain: bytes) -> None:
        """Say that the log is synced up to a position."""
        mark = Mark(position, chain, self.last.count + 1)
        data = mark.pack()
        if os.pwrite(self._descriptor, data, mark.count % 2 * SLOT_BYTES) != len(data):
            raise OSError("the mark was written in part")
        self.last = mark

    def sync(self) -> None:
        """Make the last write durable."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)
