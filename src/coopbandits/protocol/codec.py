"""One layout for all that travels: a header, and little-endian float64 numbers.

| bytes | what |
|---|---|
| 3 | magic: "CBm" a message, "CBs" a digest of sums |
| 1 | version |
| 8, 4, 4 | round, origin, hops left |
| 2, 2 or 4, 4 | two sizes, which say how many numbers follow: of a message, of a digest |
| 8 each | the numbers |

Version 1 is still read. Its messages have one size of 4 bytes: what was attached stood behind the
context, unnamed, and whoever knows d tells them apart. Its digests are as they are now.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, as_bytes
from coopbandits.errors import RemoteProtocolError

VERSION = 2


@dataclass(frozen=True, eq=False)
class Kind:
    """What may travel: a message, or a digest.

    Attributes:
        name: What errors call it.
        magic: The first three bytes.
        numbers: How many numbers follow two sizes.
        sizes: How these are packed, as `struct` has it.
        first_sizes: How version 1 packed them.
    """

    name: str
    magic: bytes
    numbers: Callable[[int, int], int]
    sizes: str
    first_sizes: str

    def size(self, first: int, second: int = 0) -> int:
        """How many bytes it takes."""
        return self._header(VERSION).size + 8 * self.numbers(first, second)

    def encode(
        self, round_: int, origin: int, ttl: int, sizes: tuple[int, int], numbers: Array
    ) -> bytes:
        """Put header and numbers into bytes."""
        layout = self._header(VERSION)
        try:
            header = layout.pack(self.magic, VERSION, round_, origin, ttl, *sizes)
        except struct.error as error:
            raise RemoteProtocolError(
                f"a {self.name} cannot carry {sizes[0]} and {sizes[1]} numbers: {error}"
            ) from error
        return header + numbers.astype("<f8").tobytes()

    def decode(self, data: bytes) -> tuple[int, int, int, tuple[int, int], Array]:
        """Return round, origin, hops left, sizes and numbers; else a `RemoteProtocolError`."""
        data = as_bytes(data)
        if len(data) < 4 or data[:3] != self.magic:
            raise RemoteProtocolError(
                f"{len(data)} bytes that start with {data[:8]!r} are no {self.name} of coopbandits"
            )
        version = data[3]
        if version not in (1, VERSION):
            raise RemoteProtocolError(
                f"the {self.name} has version {version}; this release reads versions 1 and "
                f"{VERSION}"
            )
        layout = self._header(version)
        if len(data) < layout.size:
            raise RemoteProtocolError(
                f"the {self.name} has {len(data)} bytes; its header alone has {layout.size}"
            )
        _, _, round_, origin, ttl, first, *rest = layout.unpack_from(data)
        second = rest[0] if rest else 0
        expected = layout.size + 8 * self.numbers(first, second)
        if len(data) != expected:
            raise RemoteProtocolError(
                f"the {self.name} has {len(data)} bytes; {expected} are expected for the sizes "
                f"{first} and {second} in its header"
            )
        numbers = np.frombuffer(data, dtype="<f8", offset=layout.size).astype(np.float64)
        return round_, origin, ttl, (first, second), numbers

    def _header(self, version: int) -> struct.Struct:
        return struct.Struct("<3sBQII" + (self.sizes if version == VERSION else self.first_sizes))
