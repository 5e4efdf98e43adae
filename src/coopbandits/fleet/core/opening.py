"""Make a core of what a store holds: the last state that can be read, and the log behind it."""

from collections.abc import Iterator

from coopbandits.fleet.core.entries import LogEntry, Started, read
from coopbandits.fleet.core.node import NodeCore
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.core.state import check_policy, network_of, restore
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
    for _, data in store.snapshots() if states else []:
        try:
            core = NodeCore(settings, keys, network_of(data))
            restore(core, data)
        except DamageError:
            continue  # an index; the one before, or the log, has the same
        if core.applied + 1 < store.first:
            continue
        core.replay(_entries(store, core.applied))
        return core
    if store.first > 1:
        raise DamageError(
            f"the log begins at entry {store.first}, and no stored state from which it goes on can "
            "be read; restore a backup (coop node restore)"
        )
    core = NodeCore(settings, keys, _first_network(settings, store))
    core.replay(_entries(store, 0))
    return core


def _first_network(settings: Settings, store: Store) -> Network | None:
    for position, entry in store.entries(0):
        started = read(entry, position)
        if isinstance(started, Started):
            check_policy(settings, started.policy)
            sites = started.sites
            edges = [(sites[v], sites[u]) for v, u in started.edges]
            return Network.from_edges(edges, names=sites)
        break
    return None


def _entries(store: Store, after: int) -> Iterator[tuple[int, LogEntry, tuple[StoredRecord, ...]]]:
    for position, entry in store.entries(after):
        yield position, read(entry, position), entry.records
