"""The entries of a node's write-ahead log, and their bytes: MessagePack, one number a kind.

| kind | entry | operation or data |
|---|---|---|
| 1 | `Started` | operation |
| 2 | `Decided` | operation |
| 3 | `Rewarded` | operation |
| 4 | `Activated` | operation |
| 5 | `Recorded` | data: the node's own observation, with its record |
| 6 | `Received` | data: a block of another origin's records, or of lost ones of its own |
| 7 | `Ended` | operation: events that closed without a record |
| 8 | `Fitting` | operation: a learning task was taken |
| 9 | `Adopted` | data: what it found |
| 10 | `Based` | data: a checkpoint, the node's own or another's |
| 11 | `Quarantined` | data |

Entries of a kind that is not known were written by a newer release; a log with them is refused.
Fields that came later have defaults, so logs of older releases are read as they are.
"""

from typing import TypeAlias

import msgspec
from msgspec import Struct

from coopbandits.fleet.api import Group
from coopbandits.fleet.ports import DamageError, Entry, StoredRecord


class Started(Struct, frozen=True):
    """The node started: who it is, in which network, in which epoch its own records stand.

    Attributes:
        at: When.
        version: Of coopbandits.
        policy: Its fingerprint.
        sites: Names of all sites, in the order of their numbers.
        edges: Between them, by number.
        epoch: Of the node's own feed from now on.
        anew: Whether a process began; if not, it goes on in another epoch.
    """

    at: float
    version: str
    policy: str
    sites: list[str]
    edges: list[tuple[int, int]]
    epoch: int
    anew: bool = True


class Decided(Struct, frozen=True):
    """A decision was taken.

    Attributes:
        seen: Up to which position data had been applied.
        at: When.
        event: Its id.
        digest: Of the request, to tell another one of the same id.
        number: Which of the node's decisions.
        round: The agent's; 0 where it was not asked and learns nothing.
        ids: Of the actions, in the order of the request.
        contexts: (K, d) float64, little-endian.
        allowed: Which of the actions were not excluded.
        index: The action that was taken.
        order: The allowed ones, the best first.
        scores: (3, allowed) mean, σ and upper bound; empty where no belief was asked.
        propensity: With which probability the action was taken.
        group: Who decided.
        mode: Of the node.
        version: Of its beliefs.
        agreed: In mode "apprentice": whether the agent would have taken the same.
        deferred: Whether the event waits for its activation.
    """

    seen: int
    at: float
    event: str
    digest: bytes
    number: int
    round: int
    ids: list[str]
    contexts: bytes
    allowed: list[int]
    index: int
    order: list[int]
    scores: bytes
    propensity: float | None
    group: Group
    mode: str
    version: str
    agreed: bool | None = None
    deferred: bool = False


class Rewarded(Struct, frozen=True):
    """A reward came for an event."""

    at: float
    event: str
    value: float
    key: str | None = None


class Activated(Struct, frozen=True):
    """A deferred event counts from now on."""

    at: float
    event: str


class Recorded(Struct, frozen=True):
    """An event closed with a reward, and its observation stands in the node's own feed.

    Attributes:
        at: When.
        event: Its id.
        decided: The position of its decision.
        round: The agent's.
        value: What counted.
        epoch: Of the record.
        sequence: Of the record.
    """

    at: float
    event: str
    decided: int
    round: int
    value: float
    epoch: int
    sequence: int


class Received(Struct, frozen=True):
    """A block of records came, and was verified."""

    at: float
    origin: str
    epoch: int
    first: int
    last: int
    hash: bytes
    via: str


class Ended(Struct, frozen=True):
    """Events closed without a record: no reward came, or the agent does not learn from them.

    Attributes:
        at: When.
        events: Of each its id, what counted, and the position of its decision.
    """

    at: float
    events: list[tuple[str, float | None, int]]


class Fitting(Struct, frozen=True):
    """A learning task was taken."""

    seen: int
    at: float
    number: int


class Adopted(Struct, frozen=True):
    """A learning task was finished; `data` holds the hypotheses of K_z, if they are new."""

    at: float
    number: int
    data: bytes


class Based(Struct, frozen=True):
    """A checkpoint of an origin, as it signed it."""

    at: float
    data: bytes


class Quarantined(Struct, frozen=True):
    """Two records of one origin contradict each other: nothing more is taken from it."""

    at: float
    origin: str
    epoch: int
    one: bytes
    other: bytes


LogEntry: TypeAlias = (
    Started
    | Decided
    | Rewarded
    | Activated
    | Recorded
    | Received
    | Ended
    | Fitting
    | Adopted
    | Based
    | Quarantined
)

_KINDS: dict[int, type[LogEntry]] = {
    1: Started,
    2: Decided,
    3: Rewarded,
    4: Activated,
    5: Recorded,
    6: Received,
    7: Ended,
    8: Fitting,
    9: Adopted,
    10: Based,
    11: Quarantined,
}
_NUMBERS = {kind: number for number, kind in _KINDS.items()}
_DECODERS = {number: msgspec.msgpack.Decoder(kind) for number, kind in _KINDS.items()}
_encoder = msgspec.msgpack.Encoder()


def written(entry: LogEntry, records: tuple[StoredRecord, ...] = ()) -> Entry:
    """Put an entry into bytes."""
    return Entry(_NUMBERS[type(entry)], _encoder.encode(entry), records)


def read(stored: Entry, position: int) -> LogEntry:
    """Read an entry's bytes."""
    if stored.kind not in _DECODERS:
        raise DamageError(
            f"entry {position} of the log is of kind {stored.kind}; this release knows 1 to "
            f"{max(_DECODERS)}: it was written by a newer one, which reads it"
        )
    try:
        entry: LogEntry = _DECODERS[stored.kind].decode(stored.body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise DamageError(f"entry {position} of the log makes no sense: {error}") from error
    return entry
