"""What every store of a log must be: a new one is tested by being listed."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from coopbandits.errors import ParameterError
from coopbandits.fleet.ports import Entry, StoredRecord, StoreError
from coopbandits.fleet.store import MemoryStore, SqliteStore

FEEDS = [("north", 1), ("north", 2), ("süd", 1)]


def open_memory(_folder, before=None):
    return MemoryStore() if before is None else before.crash()


def open_sqlite(folder, before=None):
    if before is not None:
        before.close()
    return SqliteStore(folder / "node", identity="north")


STORES = {"memory": open_memory, "sqlite": open_sqlite}


@pytest.fixture(params=STORES)
def reopened(request, tmp_path):
    stores = []

    def open_again(before=None):
        stores.append(STORES[request.param](tmp_path, before))
        return stores[-1]

    yield open_again
    stores[-1].close()


def record(sequence, data=b"data", feed=("north", 1)):
    return StoredRecord(*feed, sequence, data)  # type: ignore[call-arg]


class Model:
    """A log as the port describes it, in a few lines: nothing is fast, nothing fails."""

    def __init__(self):
        self.log, self.first, self.index, self.kept = [], 1, {}, {}

    def append(self, batch):
        for entry in batch:
            self.log.append(entry)
            for one in entry.records:
                self.index[one.origin, one.epoch, one.sequence] = one.data

    def cut(self, before, feeds):
        self.first = max(self.first, min(before, len(self.log) + 1))
        for (origin, epoch), last in feeds.items():
            for key in [k for k in self.index if k[:2] == (origin, epoch) and k[2] <= last]:
                del self.index[key]

    def put_snapshot(self, position, data):
        self.kept = dict(sorted({**self.kept, position: data}.items())[-2:])

    def entries(self):
        for position, entry in enumerate(self.log, 1):
            if position >= self.first:
                kept = [r for r in entry.records if (r.origin, r.epoch, r.sequence) in self.index]
                yield position, Entry(entry.kind, entry.body, tuple(kept))

    def records(self, origin, epoch, first, last, most_bytes):
        found = []
        while first <= last and (origin, epoch, first) in self.index:
            data = self.index[origin, epoch, first]
            if found and sum(map(len, found)) + len(data) > most_bytes:
                break
            found.append(data)
            first += 1
        return found


def agree(store, model, most_bytes=20):
    assert (store.position, store.first) == (len(model.log), model.first)
    assert list(store.entries()) == list(model.entries())
    middle = (model.first + store.position) // 2
    behind = [(position, entry) for position, entry in model.entries() if position > middle]
    assert list(store.entries(middle)) == behind
    assert store.snapshots() == sorted(model.kept.items(), reverse=True)
    for feed in FEEDS:
        for first in (0, 1, 4):
            request = (*feed, first, 9, most_bytes)
            assert store.records(*request) == model.records(*request)
    for position in (0, model.first - 1, model.first, store.position, store.position + 1):
        assert store.entry(position) == dict(model.entries()).get(position)


sizes = st.sampled_from([0, 1, 7, 30])
steps = st.one_of(
    st.tuples(
        st.just("append"),
        st.lists(st.tuples(sizes, st.lists(st.sampled_from(FEEDS), max_size=4)), max_size=3),
    ),
    st.tuples(st.just("cut"), st.integers(0, 12), st.dictionaries(
        st.sampled_from(FEEDS), st.integers(0, 8), max_size=2
    )),
    st.tuples(st.just("snapshot"), st.integers(0, 5), sizes),
    st.tuples(st.just("reopen")),
)  # fmt: skip


@pytest.mark.parametrize("kind", STORES)
@settings(max_examples=40)
@given(plan=st.lists(steps, max_size=12))
def test_any_sequence_of_calls_leaves_what_the_port_describes(kind, plan):
    with tempfile.TemporaryDirectory(dir=fast_folder()) as name:
        store, model = STORES[kind](Path(name)), Model()
        heads = dict.fromkeys(FEEDS, 0)
        for number, (what, *values) in enumerate(plan):
            if what == "append":
                batch = []
                for size, feeds in values[0]:
                    records = []
                    for feed in feeds:
                        heads[feed] += 1
                        records.append(record(heads[feed], bytes([number]) * size, feed))
                    batch.append(Entry(1 + number, b"b" * size, tuple(records)))
                assert store.append(batch) == len(model.log) + len(batch)
                model.append(batch)
            elif what == "cut":
                store.cut(*values)
                model.cut(*values)
            elif what == "snapshot":
                position, data = max(0, len(model.log) - values[0]), bytes([number]) * values[1]
                store.put_snapshot(position, data)
                model.put_snapshot(position, data)
            else:
                store = STORES[kind](Path(name), store)
            agree(store, model)
        store = STORES[kind](Path(name), store)
        agree(store, model)
        store.close()


def fast_folder():
    """A folder in memory, where there is one: what is tested here is not the disk."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class TestEveryStore:
    def test_is_empty_at_first(self, reopened):
        store = reopened()
        assert (store.position, store.first, list(store.entries())) == (0, 1, [])
        assert (store.entry(1), store.snapshots(), store.append([])) == (None, [], 0)

    def test_a_record_that_is_already_kept_is_refused_and_changes_nothing(self, reopened):
        store = reopened()
        store.append([Entry(1, b"a", (record(1),))])
        for batch in (
            [Entry(1, b"b"), Entry(1, b"c", (record(1),))],
            [Entry(1, b"b", (record(2),)), Entry(1, b"c", (record(2),))],
        ):
            with pytest.raises(ParameterError, match="is already kept; a record is appended once"):
                store.append(batch)
        assert store.append([Entry(2, b"d", (record(2, b"other"),))]) == 2
        assert store.records("north", 1, 1, 9, 1000) == [b"data", b"other"]

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            (Entry(0, b""), "kind of an entry must be 1 … 255, got 0"),
            (Entry(256, b""), "kind of an entry must be 1 … 255, got 256"),
            (Entry(1, b"", (record(-1),)), "got 1 and -1 of 'north'"),
            (Entry(1, b"", (record(1, feed=("", 1)),)), "must have 1 … 65535 bytes, got 0"),
        ],
    )
    def test_what_cannot_be_written_down_is_refused(self, reopened, entry, message):
        store = reopened()
        with pytest.raises(ParameterError, match=message):
            store.append([Entry(1, b"before"), entry])
        assert (store.append([Entry(255, b"")]), store.position) == (1, 1)

    def test_a_snapshot_ahead_of_the_log_is_refused(self, reopened):
        store = reopened()
        store.append([Entry(1, b"")])
        with pytest.raises(ParameterError, match="must stand at a position of the log, 0 … 1"):
            store.put_snapshot(2, b"")

    def test_a_record_returns_after_its_feed_was_cut_under_its_new_entry(self, reopened):
        store = reopened()
        store.append([Entry(1, b"old", (record(1),))])
        store.cut(0, {("north", 1): 1})
        store.append([Entry(1, b"new", (record(1, b"again"),))])
        store = reopened(store)
        old, new = store.entries()
        assert old == (1, Entry(1, b"old"))
        assert new == (2, Entry(1, b"new", (record(1, b"again"),)))

    def test_takes_less_after_a_cut(self, reopened):
        store = reopened()
        store.append([Entry(1, bytes(1000), (record(k, bytes(1000)),)) for k in range(2000)])
        full = store.disk_bytes
        store.cut(2001, {("north", 1): 1999})
        store = reopened(store)
        assert store.disk_bytes < full / 2

    def test_refuses_to_be_written_once_it_is_closed(self, reopened):
        store = reopened()
        store.close()
        for call in (
            lambda: store.append([Entry(1, b"")]),
            lambda: store.put_snapshot(0, b""),
            lambda: store.cut(1, {}),
        ):
            with pytest.raises(StoreError, match="open it again to use it"):
                call()
