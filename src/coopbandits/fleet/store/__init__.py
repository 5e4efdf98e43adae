"""The store: a durable, append-only log of entries, in memory and over SQLite.

`SqliteStore` is what a node writes to, through `GroupCommit`; `MemoryStore` is its twin for
simulation. `chain.py` says how damage is found, `backup.py` how a log is copied.
"""

from coopbandits.fleet.store.backup import Report, backup, restore, verify
from coopbandits.fleet.store.group_commit import GroupCommit
from coopbandits.fleet.store.memory import MemoryStore
from coopbandits.fleet.store.sqlite import SqliteStore

__all__ = ["GroupCommit", "MemoryStore", "Report", "SqliteStore", "backup", "restore", "verify"]
