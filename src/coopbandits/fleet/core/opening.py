"""Make a core of what a store holds: the last state that can be read, and the log behind it."""

from collections.abc import Iterator

from coopbandits.fleet.core.entries import LogEntry, Started, read
from coopbandits.fleet.core.node import NodeCore
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.core.sites import founded
from coopbandits.fleet.core.state import network_of, restore
from coopbandits.fleet.ports import DamageError, Keys, Store, StoredRecord
from coopbandits.network import Network


def opened(settings: Settings, keys: Keys, store: Store, *, states: bool = True) -> NodeCore:
    """Make a node's core as its log has it; `start` follows.

    Args:
        settings: What the node is told.
        keys: Its own, and the others' public ones.
        store: Its log.
        states: Whether to begin from a stored state; if not, the whole log is replayed.
    """
    for core in _restored(settings, keys, store) if states else ():
        core.replay(_entries(store, core.applied))
        return core
    if store.first > 1:
        raise DamageError(
            f"the log begins at entry {store.first}, and no stored state from which it goes on can "
            "be read; restore a backup (coop node restore)"
        )
    core = NodeCore(settings, keys, _first_network(store))
    core.replay(_entries(store, 0))
    return core


def replayed(settings: Settings, keys: Keys, store: Store) -> tuple[NodeCore, int]:
    """Make a core by doing again as much of the log as is there; and say from which entry on.

    Behind a log that was cut that is from its oldest stored state.
    """
    if store.first == 1:
        return opened(settings, keys, store, states=False), 1
    kept = [*_restored(settings, keys, store)]
    if not kept:
        return opened(settings, keys, store), store.first  # says what is wrong
    core = kept[-1]
    first = core.applied + 1
    core.replay(_entries(store, core.applied))
    return core, first


def _restored(settings: Settings, keys: Keys, store: Store) -> Iterator[NodeCore]:
    """Yield the cores of stored states behind which the log goes on, the newest first."""
    for _, data in store.snapshots():
        try:
            core = NodeCore(settings, keys, network_of(data))
            restore(core, data)
        except DamageError:
            continue  # an index; the one before, or the log, has the same
        if core.applied + 1 >= store.first:
            yield core


def _first_network(store: Store) -> Network | None:
    for position, entry in store.entries(0):
        started = read(entry, position)
        if isinstance(started, Started):
            return founded(started.sites, started.edges)
        break
    return None


def _entries(store: Store, after: int) -> Iterator[tuple[int, LogEntry, tuple[StoredRecord, ...]]]:
    for position, entry in store.entries(after):
        yield position, read(entry, position), entry.records
