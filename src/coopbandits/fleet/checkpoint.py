"""A checkpoint: the sums of an origin's feeds up to a place in them, signed by the origin.

With it the records before that place can be cut, and a newcomer starts from it. The sums are those
that follow from the feeds to the bit (`coopbandits.agent.origin_sums`), so whoever starts from a
checkpoint has the same sums as one who took every record.
"""

from dataclasses import dataclass

import msgspec
from msgspec import Struct

from coopbandits.errors import RemoteProtocolError
from coopbandits.fleet.ports import Keys
from coopbandits.fleet.record import SIGNATURE, Count, Dimension, Hash, Head

VERSION = 1


class FeedBase(Struct, frozen=True):
    """One feed up to its checkpoint: where it ends, and the sums so far.

    Attributes:
        epoch: Which feed.
        sequence: Of its last record.
        hash: Of the same.
        dim: How many numbers a context has.
        sums: As `coopbandits.agent.feeds.stored_sums` has them.
    """

    epoch: Count
    sequence: Count
    hash: Hash
    dim: Dimension
    sums: bytes

    @property
    def head(self) -> Head:
        """Where it ends."""
        return Head(self.sequence, self.hash)


class _Signed(Struct, frozen=True):
    version: int
    fingerprint: str
    origin: str
    feeds: list[FeedBase]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All feeds of an origin, up to a place in the last of them.

    Attributes:
        origin: Whose.
        feeds: One an epoch, in their order.
        data: The same with its signature, as it travels.
    """

    origin: str
    feeds: tuple[FeedBase, ...]
    data: bytes

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and sequence of the last record that it covers."""
        return self.feeds[-1].epoch, self.feeds[-1].sequence

    @classmethod
    def signed(
        cls, fingerprint: str, origin: str, feeds: tuple[FeedBase, ...], keys: Keys
    ) -> "Checkpoint":
        """Make one as its origin."""
        body = msgspec.msgpack.encode(_Signed(VERSION, fingerprint, origin, list(feeds)))
        return cls(origin, feeds, body + keys.sign(body))

    @classmethod
    def trusted(cls, data: bytes) -> "Checkpoint":
        """Read one that was made or verified by the node itself."""
        read = msgspec.msgpack.decode(data[:-SIGNATURE], type=_Signed)
        return cls(read.origin, tuple(read.feeds), data)

    @classmethod
    def read(cls, fingerprint: str, data: bytes, keys: Keys) -> "Checkpoint":
        """Verify one; anything else is a `RemoteProtocolError`."""
        body, signature = data[:-SIGNATURE], data[-SIGNATURE:]
        try:
            read = msgspec.msgpack.decode(body, type=_Signed)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RemoteProtocolError(f"a checkpoint makes no sense: {error}") from error
        epochs = [feed.epoch for feed in read.feeds]
        if read.version != VERSION or read.fingerprint != fingerprint:
            raise RemoteProtocolError(
                f"a checkpoint of {read.origin} is of version {read.version} and policy "
                f"{read.fingerprint[:12]}; expected {VERSION} and {fingerprint[:12]}"
            )
        if not epochs or epochs != sorted(set(epochs)):
            raise RemoteProtocolError(f"a checkpoint of {read.origin} has epochs {epochs[:8]}")
        if not keys.verify(read.origin, body, signature):
            raise RemoteProtocolError(f"a checkpoint of {read.origin} is not signed by it")
        return cls(read.origin, tuple(read.feeds), data)
