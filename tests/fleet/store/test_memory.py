"""The twin in memory: crashes, failures and a full disk as they are planned."""

import pytest

from coopbandits.errors import ParameterError
from coopbandits.fleet.ports import Entry, StoredRecord, StoreError, StoreFullError
from coopbandits.fleet.store import MemoryStore


def entry(number):
    return Entry(1, bytes([number]), (StoredRecord("north", 1, number, bytes([number])),))


def bodies(store):
    return [entry.body for _, entry in store.entries()]


def test_what_was_written_is_seen_once_it_is_synced():
    store = MemoryStore()
    store.write([entry(1), entry(2)])
    store.write([entry(3)])
    assert (store.position, store.unsynced) == (0, (2, 1))
    assert bodies(store) == store.records("north", 1, 1, 9, 100) == []
    assert (store.sync(), store.unsynced) == (3, ())
    assert bodies(store) == store.records("north", 1, 1, 9, 100) == [b"\1", b"\2", b"\3"]


@pytest.mark.parametrize("keep", range(4))
def test_a_crash_keeps_as_many_unsynced_entries_as_it_is_told(keep):
    store = MemoryStore()
    store.append([entry(1)])
    store.put_snapshot(1, b"state")
    store.write([entry(2)])
    store.write([entry(3), entry(4)])
    found = store.crash(keep)
    assert found.position == 1 + keep
    assert bodies(found) == [bytes([k]) for k in range(1, 2 + keep)]
    assert found.snapshots() == [(1, b"state")]
    assert found.append([entry(9)]) == 2 + keep
    with pytest.raises(StoreError, match="it has crashed"):
        store.append([entry(5)])


def test_a_crash_cannot_keep_what_was_never_written():
    store = MemoryStore()
    store.write([entry(1)])
    with pytest.raises(ParameterError, match=r"can keep 0 … 1 of the unsynced entries, got 2"):
        store.crash(2)


def test_a_failed_sync_stops_the_store_and_a_crash_may_still_keep_its_entries():
    for keep in (0, 1):
        store = MemoryStore()
        store.fail_next_sync(StoreError("the disk is broken"))
        with pytest.raises(StoreError, match="the disk is broken"):
            store.append([entry(1)])
        with pytest.raises(StoreError, match="cannot be written any more: the disk is broken"):
            store.append([entry(2)])
        assert store.position == 0
        assert bodies(store.crash(keep)) == [b"\1"][:keep]


def test_a_full_disk_drops_the_batch_and_the_store_goes_on():
    store = MemoryStore()
    store.append([entry(1), entry(2)])
    store.full_at(store.disk_bytes)
    with pytest.raises(StoreFullError, match="nothing was written"):
        store.append([entry(3)])
    assert (store.position, store.unsynced) == (2, ())
    store.cut(2, {("north", 1): 1})
    assert store.append([entry(3)]) == 3
    assert bodies(store) == [b"\2", b"\3"]


def test_what_it_takes_is_what_was_put_in_less_what_was_cut():
    store = MemoryStore()
    store.append([entry(k) for k in range(50)])
    store.put_snapshot(50, bytes(100))
    store.cut(51, {("north", 1): 49})
    assert store.disk_bytes == 100
