"""Group commit: order, one transaction for what has queued up, and what follows a failure."""

import threading

import pytest

from coopbandits.fleet.ports import Entry, StoreError, StoreFullError
from coopbandits.fleet.store import GroupCommit, MemoryStore


class Gated(MemoryStore):
    """A store that writes when it is let, and says what it was asked to do."""

    def __init__(self):
        super().__init__()
        self.open, self.begun, self.calls = threading.Event(), threading.Semaphore(0), []

    def _enter(self, *what):
        self.begun.release()
        assert self.open.wait(10)
        self.calls.append(what)

    def append(self, batch):
        self._enter("append", len(batch))
        return super().append(batch)

    def put_snapshot(self, position, data):
        self._enter("snapshot", position)
        super().put_snapshot(position, data)

    def cut(self, before, feeds):
        self._enter("cut", before)
        super().cut(before, feeds)


class Finished:
    """What a group commit has reported, and a way to wait for it."""

    def __init__(self):
        self.all, self.more = [], threading.Semaphore(0)

    def __call__(self, position, error):
        self.all.append((position, error))
        self.more.release()

    def wait(self):
        assert self.more.acquire(timeout=10)
        return self.all[-1]


@pytest.fixture
def store():
    return Gated()


@pytest.fixture
def finished():
    return Finished()


@pytest.fixture
def commit(store, finished):
    made = GroupCommit(store, finished)
    yield made
    store.open.set()
    made.close()


def entries(count):
    return [Entry(1, b"body")] * count


def test_what_queues_up_during_a_commit_is_written_in_one_transaction(store, finished, commit):
    commit.put(entries(1))
    assert store.begun.acquire(timeout=10)
    for count in (2, 3, 1):
        commit.put(entries(count))
    assert commit.queued == 7
    store.open.set()
    commit.close()
    assert store.calls == [("append", 1), ("append", 6)]
    assert finished.all == [(1, None), (7, None)]
    assert commit.queued == 0


def test_snapshots_and_cuts_are_carried_out_in_the_order_of_the_queue(store, finished, commit):
    commit.put(entries(1))
    assert store.begun.acquire(timeout=10)
    commit.put(entries(2))
    commit.put_snapshot(3, b"state")
    commit.cut(2, {})
    commit.put(entries(1))
    commit.put(entries(1))
    store.open.set()
    commit.close()
    steps = [("append", 1), ("append", 2), ("snapshot", 3), ("cut", 2), ("append", 2)]
    assert store.calls == steps
    assert finished.all == [(1, None), (3, None), (5, None)]
    assert (store.first, store.snapshots()) == (2, [(3, b"state")])


@pytest.mark.parametrize("job", ["put", "put_snapshot", "cut"])
def test_after_a_failure_nothing_is_written_until_it_is_resumed(store, finished, commit, job):
    values = {"put": (entries(2),), "put_snapshot": (1, b""), "cut": (1, {})}
    store.open.set()
    commit.put(entries(1))
    assert finished.wait() == (1, None)
    store.open.clear()
    error = StoreFullError("no room")
    store.fail_next_sync(error)
    while store.begun.acquire(blocking=False):
        pass
    getattr(commit, job)(*values[job])
    assert store.begun.acquire(timeout=10)
    commit.put(entries(4))  # follows from what will fail
    store.open.set()
    assert finished.wait() == (1, error)
    commit.put(entries(5))  # its sender does not know yet
    assert (commit.halted, commit.queued, store.position) == (True, 0, 1)
    commit.resume()
    commit.put(entries(6))
    assert finished.wait() == (7, None)
    assert finished.all == [(1, None), (1, error), (7, None)]


def test_any_error_of_a_store_is_reported(store, finished, commit):
    store.open.set()
    error = OSError("the disk has gone")
    store.fail_next_sync(error)
    commit.put(entries(1))
    assert finished.wait() == (0, error)
    commit.resume()
    commit.put(entries(1))
    position, refused = finished.wait()
    assert position == 0
    assert isinstance(refused, StoreError)


def test_closing_without_draining_leaves_the_queue_unwritten(store, finished):
    commit = GroupCommit(store, finished)
    commit.put(entries(1))
    assert store.begun.acquire(timeout=10)
    commit.put(entries(5))
    closing = threading.Thread(target=commit.close, kwargs={"drain": False})
    closing.start()
    while commit.queued:
        pass
    store.open.set()
    closing.join(10)
    assert store.calls == [("append", 1)]
    commit.put(entries(1))
    assert store.position == 1
