"""What may happen to a node, and what it may ask its driver to do."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from coopbandits.agent.learning import LearningResult, LearningTask
from coopbandits.fleet.face import RefusedError, Reply, Request
from coopbandits.fleet.ports import Entry

# What happens.


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody asks; the answer bears the same ticket."""

    ticket: int
    request: Request


@dataclass(frozen=True, slots=True)
class Synced:
    """The log is durable up to a position."""

    position: int


@dataclass(frozen=True, slots=True)
class SyncFailed:
    """Entries could not be made durable; if the disk is full nothing of them was written."""

    full: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Arrived:
    """Bytes came from a neighbour."""

    neighbour: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Linked:
    """A link went up or down."""

    neighbour: str
    up: bool


@dataclass(frozen=True, slots=True)
class Fitted:
    """A learning task ended."""

    number: int
    result: LearningResult | Exception


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Input: TypeAlias = Asked | Synced | SyncFailed | Arrived | Linked | Fitted | Tick

# What is to be done.


@dataclass(frozen=True, slots=True)
class Append:
    """Write entries and sync them; they take the next positions. `Synced` follows."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer who asked."""

    ticket: int
    reply: Reply | RefusedError


@dataclass(frozen=True, slots=True)
class Recall:
    """Answer with the decision that stands in the log at a position."""

    ticket: int
    positions: tuple[int, ...]
    many: bool


@dataclass(frozen=True, slots=True)
class Send:
    """Hand bytes to a neighbour; they may be lost."""

    neighbour: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Serve:
    """Read records of a feed from the store and hand them to a neighbour, as one `Take`.

    Attributes:
        version: Of the message that the neighbour reads.
        last: No record behind it may be shown.
        most_bytes: A block has at most so many.
    """

    neighbour: str
    version: int
    origin: str
    epoch: int
    first: int
    last: int
    most_bytes: int


@dataclass(frozen=True, slots=True)
class Fit:
    """Run a learning task. `Fitted` follows."""

    number: int
    task: LearningTask


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Keep the state behind a position, after the entries up to it: an index of the log."""

    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """Drop entries before a position, and records of feeds (origin, epoch) up to a sequence."""

    before: int
    feeds: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Make the core anew from the log: what was done since was not written."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End the node at once, with an exit code."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something happened that people may watch; nothing depends on it."""

    kind: str
    fields: dict[str, Any]


Action: TypeAlias = (
    Append | Answer | Recall | Send | Serve | Fit | Snapshot | Cut | Rebuild | Stop | Note
)

# Exit codes.
CONFIGURATION, DISK, DAMAGED, FORK = 2, 3, 4, 5
