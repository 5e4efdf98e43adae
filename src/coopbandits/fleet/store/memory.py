"""The log's twin in memory, for simulation: it crashes, fails and fills up when told.

`append` is `write`, which puts entries into a buffer, and `sync`, which makes them durable.
A simulator calls the two apart, lets time pass between them, and crashes in between.
"""

from collections.abc import Iterator, Mapping, Sequence

from coopbandits.errors import ParameterError
from coopbandits.fleet.ports import Entry, StoredRecord, StoreError, StoreFullError
from coopbandits.fleet.store.chain import check_batch, twice

# What an entry and a record take beside their bytes, about as in SQLite.
_ENTRY_BYTES, _RECORD_BYTES = 64, 96


def _size(entry: Entry) -> int:
    records = sum(len(record.data) + _RECORD_BYTES for record in entry.records)
    return len(entry.body) + _ENTRY_BYTES + records


class MemoryStore:
    """A log in memory. Nothing is copied: entries are values."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []  # durable, from `first` on
        self._first = 1
        self._feeds: dict[tuple[str, int], dict[int, tuple[int, bytes]]] = {}
        self._any_cut = False
        self._snapshots: dict[int, bytes] = {}
        self._bytes = 0
        self._buffer: list[Entry] = []
        self._batches: list[int] = []
        self._keys: set[tuple[str, int, int]] = set()  # of records in the buffer
        self._failures: list[Exception] = []
        self._limit: int | None = None
        self._broken: str | None = None

    @property
    def position(self) -> int:
        """The position of the last durable entry; 0 if there is none."""
        return self._first + len(self._entries) - 1

    @property
    def first(self) -> int:
        """The position of the first entry that was not cut; `position + 1` if there is none."""
        return self._first

    @property
    def disk_bytes(self) -> int:
        """What it would take on disk, about."""
        return self._bytes

    @property
    def unsynced(self) -> tuple[int, ...]:
        """How many entries each batch has that was written and not synced, the oldest first."""
        return tuple(self._batches)

    def append(self, batch: Sequence[Entry]) -> int:
        """Write entries, make them durable, and return the new position."""
        self.write(batch)
        return self.sync()

    def write(self, batch: Sequence[Entry]) -> None:
        """Put entries into the buffer; a crash may lose them."""
        self._check_usable()
        check_batch(batch)
        keys = set()
        for record in (record for entry in batch for record in entry.records):
            key = (record.origin, record.epoch, record.sequence)
            feed = self._feeds.get((record.origin, record.epoch), {})
            if record.sequence in feed or key in self._keys or key in keys:
                raise twice(record)
            keys.add(key)
        if batch:
            self._keys |= keys
            self._buffer.extend(batch)
            self._batches.append(len(batch))

    def sync(self) -> int:
        """Make all that was written durable, and return the new position.

        After a failure, entries stay in the buffer and a crash may still keep them; not so on a
        full disk, which drops them.
        """
        self._check_usable()
        self._fail_as_planned(sum(map(_size, self._buffer)))
        for entry in self._buffer:
            self._keep(entry)
        self._empty()
        return self.position

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Yield entries behind a position, in order, with those of their records that are kept."""
        position = max(after + 1, self._first)
        while (found := self.entry(position)) is not None:
            yield position, found
            position = max(position + 1, self._first)

    def entry(self, position: int) -> Entry | None:
        """Return one entry; None if it was cut."""
        if not self._first <= position <= self.position:
            return None
        entry = self._entries[position - self._first]
        if not self._any_cut or not entry.records:
            return entry
        kept = tuple(record for record in entry.records if self._is_kept(position, record))
        return entry if len(kept) == len(entry.records) else Entry(entry.kind, entry.body, kept)

    def records(
        self, origin: str, epoch: int, first: int, last: int, most_bytes: int
    ) -> list[bytes]:
        """Return the records of a feed from one sequence to another, up to a size; at least one."""
        feed = self._feeds.get((origin, epoch), {})
        found: list[bytes] = []
        for sequence in range(first, last + 1):
            if sequence not in feed:
                break
            _, data = feed[sequence]
            most_bytes -= len(data)
            if found and most_bytes < 0:
                break
            found.append(data)
        return found

    def put_snapshot(self, position: int, data: bytes) -> None:
        """Keep a snapshot of the state behind a position, and drop all but the last two."""
        self._check_usable()
        if not 0 <= position <= self.position:
            raise ParameterError(
                f"a snapshot must stand at a position of the log, 0 … {self.position}, got "
                f"{position}"
            )
        self._fail_as_planned(len(data))
        kept = sorted({**self._snapshots, position: data}.items())[-2:]
        self._bytes += sum(len(value) for _, value in kept)
        self._bytes -= sum(map(len, self._snapshots.values()))
        self._snapshots = dict(kept)

    def snapshots(self) -> list[tuple[int, bytes]]:
        """Return the snapshots, the newest first."""
        return sorted(self._snapshots.items(), reverse=True)

    def cut(self, before: int, feeds: Mapping[tuple[str, int], int]) -> None:
        """Drop entries before a position, and of each feed (origin, epoch) some records."""
        self._check_usable()
        self._fail_as_planned(0)
        for key, sequence in feeds.items():
            feed = self._feeds.get(key, {})
            for dropped in [kept for kept in feed if kept <= sequence]:
                self._bytes -= len(feed.pop(dropped)[1]) + _RECORD_BYTES
                self._any_cut = True
        count = max(0, min(before, self.position + 1) - self._first)
        for entry in self._entries[:count]:
            self._bytes -= len(entry.body) + _ENTRY_BYTES
        del self._entries[:count]
        self._first += count

    def close(self) -> None:
        """Refuse to be used from now on."""
        self._broken = "it was closed"

    def crash(self, keep: int = 0) -> "MemoryStore":
        """Return the log as it is found after a crash; this one is gone.

        Args:
            keep: How many of the unsynced entries survive, the oldest first. An entry survives
                whole or not at all.
        """
        if not 0 <= keep <= len(self._buffer):
            raise ParameterError(
                f"a crash can keep 0 … {len(self._buffer)} of the unsynced entries, got {keep}"
            )
        found = MemoryStore()
        found._entries, found._first, found._bytes = self._entries, self._first, self._bytes
        found._feeds, found._snapshots = self._feeds, self._snapshots
        found._any_cut, found._limit = self._any_cut, self._limit
        for entry in self._buffer[:keep]:
            found._keep(entry)
        self._broken = "it has crashed"
        self._entries, self._feeds, self._snapshots = [], {}, {}
        self._empty()
        return found

    def fail_next_sync(self, error: Exception) -> None:
        """Let the next sync fail, or the next snapshot or cut; several calls queue up."""
        self._failures.append(error)

    def full_at(self, most_bytes: int | None) -> None:
        """Let the disk be full at a size; None for never."""
        self._limit = most_bytes

    def _keep(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._bytes += _size(entry)
        position = self.position
        for record in entry.records:
            feed = self._feeds.setdefault((record.origin, record.epoch), {})
            feed[record.sequence] = (position, record.data)

    def _is_kept(self, position: int, record: StoredRecord) -> bool:
        kept = self._feeds.get((record.origin, record.epoch), {}).get(record.sequence)
        return kept is not None and kept[0] == position

    def _fail_as_planned(self, more: int) -> None:
        full = self._limit is not None and more > 0 and self._bytes + more > self._limit
        error: Exception | None = None
        if self._failures:
            error = self._failures.pop(0)
        elif full:
            error = StoreFullError(
                f"no room is left for {more} bytes beside {self._bytes} of {self._limit}; nothing "
                "was written, free some space and try again"
            )
        if isinstance(error, StoreFullError):
            self._empty()
        elif error is not None:
            self._broken = str(error)
        if error is not None:
            raise error

    def _empty(self) -> None:
        self._buffer, self._batches, self._keys = [], [], set()

    def _check_usable(self) -> None:
        if self._broken is not None:
            raise StoreError(
                f"the log cannot be written any more: {self._broken}; open it again to use it"
            )
