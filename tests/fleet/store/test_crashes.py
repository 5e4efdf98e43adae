"""What is left of a log when its process is killed, its disk fails or fills up."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coopbandits.fleet.ports import Entry, StoredRecord, StoreFullError
from coopbandits.fleet.store import SqliteStore, verify

WRITER = [sys.executable, str(Path(__file__).with_name("writer.py"))]
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}


def synced(folder):
    """The last position that was acknowledged."""
    file = Path(f"{folder}.synced")
    return max(map(int, file.read_text().split()), default=0) if file.exists() else 0


def check(folder):
    """All that was acknowledged is there, once, under its position; return the last position."""
    store = SqliteStore(folder, identity="node")
    position, first = store.position, store.first
    assert position >= synced(folder)
    found = [(at, entry.body) for at, entry in store.entries()]
    assert found == [(at, str(at).encode()) for at in range(first, position + 1)]
    names = [str(at).encode() * 20 for at in range(max(1, first - 90), position + 1)]
    assert store.records("node", 1, max(1, first - 90), 2**40, 2**40) == names
    for at, data in store.snapshots():
        assert data == str(at).encode()
    store.close()
    return position


def kill_often(folder, times, seed):
    draw = random.Random(seed)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*WRITER, "serve"], stdin=pipe, stdout=pipe, text=True, env=ENVIRONMENT
    ) as parent:
        last = 0
        for _ in range(times):
            parent.stdin.write(f"{folder}\n")
            parent.stdin.flush()
            child = int(parent.stdout.readline())
            until = time.monotonic() + 20
            while synced(folder) <= last and time.monotonic() < until:
                time.sleep(0.002)
            time.sleep(draw.uniform(0, 0.08))
            os.kill(child, signal.SIGKILL)
            assert parent.stdout.readline() == "ended\n"
            position = check(folder)
            assert position > last
            last = position
        parent.stdin.close()
    assert synced(folder) > times


def test_nothing_acknowledged_is_lost_or_doubled_when_a_node_is_killed(tmp_path):
    kill_often(tmp_path / "node", 20, seed=1)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_doubled_in_two_hundred_kills(tmp_path):
    kill_often(tmp_path / "node", 200, seed=2)


def strace_works():
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(
        ["strace", "-f", "-e", "trace=fsync", "-o", os.devnull, "true"],
        capture_output=True, check=False,
    )  # fmt: skip
    return tried.returncode == 0


def write_with_failing_syncs(folder, when):
    inject = f"inject=fsync,fdatasync:error=EIO:when={when}"
    return subprocess.run(
        ["strace", "-f", "-e", "trace=fsync,fdatasync", "-e", inject, "-o", os.devnull,
         *WRITER, "once", str(folder)],
        capture_output=True, text=True, check=True, env=ENVIRONMENT, timeout=60,
    ).stdout.split()  # fmt: skip


needs_strace = pytest.mark.skipif(
    not strace_works(), reason="strace is not there or may not trace, so syncs cannot be failed"
)


@needs_strace
def test_a_store_refuses_to_go_on_after_a_failed_sync_and_has_lost_nothing(tmp_path):
    folder = tmp_path / "node"
    for number in (1, 2, 3):
        SqliteStore(folder, identity="node").close()
        # from one sync on all fail, so at least one of a commit is among them
        assert write_with_failing_syncs(folder, f"{5 * number}+") == ["StoreError", "StoreError"]
        assert check(folder) >= synced(folder) > 0


@needs_strace
@pytest.mark.slow
def test_a_single_failed_sync_loses_nothing_wherever_it_falls(tmp_path):
    folder = tmp_path / "node"
    SqliteStore(folder, identity="node").close()
    for when in range(3, 40, 3):
        outcome = write_with_failing_syncs(folder, when)
        # a checkpoint that fails is tried again with the next commit
        assert outcome in (["StoreError", "StoreError"], ["NoneType", "NoneType"])
        check(folder)


def large(number):
    return Entry(1, bytes([number % 256]) * 3000, (StoredRecord("node", 1, number, bytes(500)),))


def fill(store):
    """Append until no room is left; return the position of the last entry that fitted."""
    number = store.position
    with pytest.raises(StoreFullError, match="nothing was written, free some space"):  # noqa: PT012
        while number < 5000:  # until it is full
            number += 1
            assert store.append([large(number)]) == number
    assert store.position == number - 1
    assert store.entry(number) is None
    assert store.records("node", 1, number, number, 10**6) == []
    return number - 1


def whole(store):
    expected = [(at, large(at)) for at in range(store.first, store.position + 1)]
    assert list(store.entries()) == expected


def test_a_log_that_may_not_grow_is_full_and_takes_entries_again_after_a_cut(tmp_path):
    store = SqliteStore(tmp_path / "node", identity="node", most_bytes=400_000)
    position = fill(store)
    assert 50 < position < 130
    with pytest.raises(StoreFullError):
        store.put_snapshot(position, bytes(100_000))
    assert store.snapshots() == []
    store.cut(position - 9, {("node", 1): position - 10})
    for number in range(position + 1, position + 41):
        store.append([large(number)])
    store.close()
    store = SqliteStore(tmp_path / "node", identity="node")
    assert (store.first, store.position) == (position - 9, position + 40)
    whole(store)
    store.close()


def test_a_full_disk_loses_nothing_and_the_store_goes_on_once_there_is_room(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        filler = disk / "filler"
        filler.write_bytes(bytes(700_000))
        store = SqliteStore(disk / "node", identity="node")
        first = fill(store)
        with pytest.raises(StoreFullError):
            store.append([large(first + 1)])
        filler.unlink()
        second = fill(store)
        assert second > first
        whole(store)
        store.close()
        assert verify(disk / "node").damage == ()
        store = SqliteStore(disk / "node", identity="node")
        assert store.position == second
        whole(store)
        store.close()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
