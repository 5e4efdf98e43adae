"""What a node's core is joined to: ports, each with a twin in memory and one for production.

| port | memory | production |
|---|---|---|
| `Store` | `store/memory.py` | `store/sqlite.py` |
| `Links` | `links/memory.py` | `links/zenoh.py` |
| `Keys` | `keys.py` `HashKeys` | `keys.py` `Ed25519Keys` |
| `Learner` | `learner.py` `InlineLearner` | `learner.py` `ProcessLearner` |

Time is a number that whoever drives the core hands in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from coopbandits.agent.learning import LearningResult, LearningTask
from coopbandits.errors import CoopBanditsError


class StoredRecord(NamedTuple):
    """A record of a feed as the store keeps it: where it stands, and its bytes with signature."""

    origin: str
    epoch: int
    sequence: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a node's write-ahead log; the store does not know what it means.

    Attributes:
        kind: Which, 1 … 255.
        body: Its bytes.
        records: Records of feeds that become durable with it; the store indexes them.
    """

    kind: int
    body: bytes
    records: tuple[StoredRecord, ...] = ()


class StoreError(CoopBanditsError):
    """The log cannot be written: the disk is broken, or a sync failed. The node must stop."""


class StoreFullError(StoreError):
    """No room is left; nothing of the batch was written."""


class DamageError(CoopBanditsError):
    """What was stored is not what was written."""


class Store(Protocol):
    """A durable, append-only log of entries, with an index of records and of snapshots.

    Positions count from 1, without gaps. One thread appends; `records` and `entry` may be called
    from another.
    """

    @property
    def position(self) -> int:
        """The position of the last entry; 0 if there is none."""

    @property
    def first(self) -> int:
        """The position of the first entry that was not cut; `position + 1` if there is none."""

    @property
    def disk_bytes(self) -> int:
        """What it takes on disk."""

    def append(self, batch: Sequence[Entry]) -> int:
        """Write entries in one transaction, make them durable, and return the new position.

        Raises `StoreFullError` (nothing was written, and another try may work) or `StoreError`.
        """

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Yield entries behind a position, in order, with their records."""

    def entry(self, position: int) -> Entry | None:
        """Return one entry; None if it was cut."""

    def records(
        self, origin: str, epoch: int, first: int, last: int, most_bytes: int
    ) -> list[bytes]:
        """Return the records of a feed from one sequence to another, up to a size; at least one.

        Stops before a record that was cut or is not there; so it may return none.
        """

    def put_snapshot(self, position: int, data: bytes) -> None:
        """Keep a snapshot of the state behind a position, and drop all but the last two."""

    def snapshots(self) -> list[tuple[int, bytes]]:
        """Return the snapshots that are whole, the newest first."""

    def cut(self, before: int, feeds: Mapping[tuple[str, int], int]) -> None:
        """Drop entries before a position, and records of feeds (origin, epoch) up to a sequence.

        Records of the entries that are dropped stay, unless their feed is cut.
        """

    def close(self) -> None:
        """Let go of files."""


class Links(Protocol):
    """Carries bytes to neighbours, or loses them; nothing is promised. Sending never blocks."""

    def start(
        self, received: Callable[[str, bytes], None], linked: Callable[[str, bool], None]
    ) -> None:
        """Begin; the calls may come from any thread, with a neighbour's name."""

    def send(self, neighbour: str, data: bytes) -> None:
        """Hand bytes to a neighbour; they are dropped if the link is down or stalls."""

    def close(self) -> None:
        """End; no call comes after it."""


class Keys(Protocol):
    """Signs for one origin, and verifies for all of a fleet. Signatures have 64 bytes."""

    def sign(self, data: bytes) -> bytes:
        """Sign as the own origin."""

    def verify(self, origin: str, data: bytes, signature: bytes) -> bool:
        """Tell whether an origin signed it."""


class Learner(Protocol):
    """Runs learning tasks off the request path, one at a time."""

    def start(self, finished: Callable[[int, LearningResult | Exception], None]) -> None:
        """Begin; `finished` may be called from any thread, with the task's number."""

    def submit(self, number: int, task: LearningTask) -> None:
        """Run a task."""

    def close(self) -> None:
        """End, with whatever runs."""
