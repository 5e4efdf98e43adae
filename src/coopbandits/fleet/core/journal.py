"""What a step of the core leaves behind: entries for the log, answers that wait for it, actions.

Entries get their positions here, before they are written. What waits for a position is done once
the log is synced up to it: *answer and show to others only what is synced*.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

from coopbandits.fleet.core.actions import Action, Answer, Append, Note, Recall
from coopbandits.fleet.core.entries import LogEntry, written
from coopbandits.fleet.ports import Entry, StoredRecord


@dataclass(frozen=True, slots=True)
class Data:
    """An entry that waits to be applied, with what it was made of."""

    position: int
    entry: LogEntry
    payload: Any


class Journal:
    """Positions, and what waits for them.

    Attributes:
        position: Of the last entry that was appended.
        synced: Up to which the log is durable.
        unapplied: Data that wait to be synced.
    """

    def __init__(self) -> None:
        self.position = self.synced = 0
        self._entries: list[Entry] = []
        self._actions: list[Action] = []
        self._waiting: deque[tuple[int, Answer | Recall]] = deque()
        self.unapplied: deque[Data] = deque()

    def append(self, entry: LogEntry, records: tuple[StoredRecord, ...] = ()) -> int:
        """Append an entry, and return its position."""
        self.position += 1
        self._entries.append(written(entry, records))
        return self.position

    def append_data(self, entry: LogEntry, records: tuple[StoredRecord, ...], payload: Any) -> int:
        """Append an entry that is applied once it is synced, and return its position."""
        position = self.append(entry, records)
        self.unapplied.append(Data(position, entry, payload))
        return position

    def do(self, action: Action) -> None:
        """Ask the driver for something, now."""
        self._actions.append(action)

    def note(self, kind: str, **fields: Any) -> None:
        """Tell who watches."""
        self._actions.append(Note(kind, fields))

    def when_synced(self, position: int, answer: Answer | Recall) -> None:
        """Answer once a position is durable."""
        if position <= self.synced:
            self.do(answer)
        else:
            self._waiting.append((position, answer))

    def sync(self, position: int) -> None:
        """Do what waited for a position."""
        self.synced = max(self.synced, position)
        held = self._waiting
        self._waiting = deque()
        for place, answer in held:
            self.when_synced(place, answer)

    def taken(self) -> list[Action]:
        """Return what is to be done, the entries first."""
        actions, entries = self._actions, self._entries
        self._actions, self._entries = [], []
        return [Append(tuple(entries)), *actions] if entries else actions

    def forgotten(self) -> list[int]:
        """Drop all that waits, and return the tickets of who asked."""
        waiting, self._waiting = self._waiting, deque()
        return [answer.ticket for _, answer in waiting]
