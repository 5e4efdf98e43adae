"""Damage to a log is found when it is opened, or harmless: of every bit, length and file.

Two small logs are damaged: one as it is closed, and one as a crash leaves it, of which all content
is still in SQLite's write-ahead log. Their pages are small, so that all their bits can be tried.
"""

import random
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from coopbandits.errors import CoopBanditsError, StateError
from coopbandits.fleet.ports import DamageError, Entry, StoredRecord, StoreError
from coopbandits.fleet.store import SqliteStore, verify
from coopbandits.fleet.store.folder import LOG, MARK
from coopbandits.fleet.store.mark import create as create_mark

WAL = f"{LOG}-wal"
FOUND = (DamageError, StateError, StoreError)


@dataclass(frozen=True)
class Image:
    """The files of a folder, and what it holds."""

    files: dict[str, bytes]
    content: tuple


def entry(number):
    records = [StoredRecord("north", 1, number, bytes([number]) * 20)]
    records += [StoredRecord("süd", 7, number, b"s" * number)] * (number % 2)
    return Entry(number, b"body" * (number % 3) + bytes([number]), tuple(records))


def content(store):
    """All of a log but its snapshots, which are an index of the rest."""
    feeds = [("north", 1), ("süd", 7)]
    records = [store.records(*feed, first, 99, 10**6) for feed in feeds for first in range(1, 9)]
    return store.first, store.position, tuple(store.entries()), tuple(map(tuple, records))


def scratch():
    """A folder in memory, where there is one: what is tested here is not the disk."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


def image(crashed, page=512):
    """Write a small log with two snapshots and a cut, and take its files."""
    with scratch() as name:
        folder = Path(name) / "node"
        folder.mkdir()
        empty = sqlite3.connect(folder / LOG)
        for setting in (f"page_size = {page}", "auto_vacuum = INCREMENTAL"):
            empty.execute(f"PRAGMA {setting}").fetchall()
        empty.execute("VACUUM")
        empty.close()
        store = SqliteStore(folder, identity="north")
        store.append([entry(1), entry(2), entry(3)])
        store.append([entry(4)])
        store.put_snapshot(3, b"three" * 9)
        store.put_snapshot(4, b"four" * 9)
        store.cut(3, {("north", 1): 1})
        store.append([entry(5)])
        held = content(store)
        if crashed:
            copy = Path(name) / "copy"
            shutil.copytree(folder, copy)
            store.close()
            folder = copy
        else:
            store.close()
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        files = {name: data for name, data in files.items() if name in (LOG, WAL, MARK)}
        assert (WAL in files) == crashed
        return Image(files, held)


CLOSED, CRASHED = image(crashed=False), image(crashed=True)
IMAGES = {"closed": CLOSED, "crashed": CRASHED}


def outcome(folder, found, files):
    """Open what is left of a log: "found", "harmless", or what went wrong unseen."""
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    try:
        store = SqliteStore(folder, identity="north")
    except FOUND:
        return "found"
    try:
        if content(store) != found:
            return "another log"
        if not {*store.snapshots()} <= {(3, b"three" * 9), (4, b"four" * 9)}:
            return "another snapshot"
        store.append([entry(6)])
        after = content(store)
    except CoopBanditsError as error:
        return f"after it was opened: {error}"
    finally:
        store.close()
    again = SqliteStore(folder, identity="north")
    try:
        return "harmless" if content(again) == after else "another log in the end"
    finally:
        again.close()


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def flips(which, bits):
    """Return how often each outcome came of flipping single bits of a file."""
    taken, name = IMAGES[which[0]], which[1]
    counts = {"found": 0, "harmless": 0}
    with scratch() as place:
        for bit in bits:
            files = {**taken.files, name: flipped(taken.files[name], bit)}
            said = outcome(Path(place), taken.content, files)
            assert said in counts, f"bit {bit} of {name}: {said}"
            counts[said] += 1
    return counts


FILES = [("closed", LOG), ("closed", MARK), ("crashed", LOG), ("crashed", WAL), ("crashed", MARK)]


def bits_of(which):
    return 8 * len(IMAGES[which[0]].files[which[1]])


@pytest.mark.parametrize("which", IMAGES)
def test_what_is_not_damaged_opens_as_it_was(which, tmp_path):
    taken = IMAGES[which]
    assert outcome(tmp_path, taken.content, taken.files) == "harmless"
    assert taken.content[:2] == (3, 5)


@pytest.mark.parametrize("which", FILES, ids=" ".join)
def test_single_bits_that_flip_are_found_or_harmless(which):
    draw = random.Random(f"{which}")
    counts = flips(which, draw.sample(range(bits_of(which)), 150))
    if which[1] == MARK or which == ("crashed", LOG):
        # one of two slots is whole; and the write-ahead log has newer pages in the place of all
        assert counts["found"] == 0
    elif which[1] == WAL:
        assert counts["harmless"] == 0
    else:  # about half of the log's bits are of no use to anybody
        assert min(counts.values()) > 20


@pytest.mark.slow
@pytest.mark.parametrize("which", FILES, ids=" ".join)
def test_every_single_bit_that_flips_is_found_or_harmless(which):
    flips(which, range(bits_of(which)))


@pytest.mark.parametrize("row", [3, 4])
def test_a_snapshot_of_which_any_bit_flipped_is_left_out(row, tmp_path):
    for name, data in CLOSED.files.items():
        (tmp_path / name).write_bytes(data)
    whole = {3: b"three" * 9, 4: b"four" * 9}
    for column in ("data", "hash"):
        connection = sqlite3.connect(tmp_path / LOG)
        query = f"SELECT {column} FROM snapshots WHERE position = ?"
        (value,) = connection.execute(query, (row,)).fetchone()
        for bit in range(0, 8 * len(value), 5):
            change = f"UPDATE snapshots SET {column} = ? WHERE position = ?"
            connection.execute(change, (flipped(value, bit), row))
            connection.commit()
            store = SqliteStore(tmp_path, identity="north")
            kept = [(position, whole[position]) for position in whole if position != row]
            assert store.snapshots() == kept
            assert content(store) == CLOSED.content
            store.close()
        connection.execute(change, (value, row))
        connection.commit()
        connection.close()


def lengths(data):
    """Return lengths to which a file is cut short: at all ends of its pages, and between."""
    return sorted({0, 1, len(data) - 1, *range(0, len(data), 512), *range(24, len(data), 536)})


@pytest.mark.parametrize("which", FILES, ids=" ".join)
def test_a_file_that_was_cut_short_is_found_or_harmless(which, tmp_path):
    taken, name = IMAGES[which[0]], which[1]
    counts = {"found": 0, "harmless": 0}
    for length in lengths(taken.files[name]):
        files = {**taken.files, name: taken.files[name][:length]}
        said = outcome(tmp_path, taken.content, files)
        assert said in counts, f"{name} of {length} bytes: {said}"
        counts[said] += 1
    assert counts["found"] > 0


def test_a_torn_tail_of_the_write_ahead_log_after_the_last_commit_is_harmless(tmp_path):
    """What was being written when the power failed was never acknowledged."""
    noise = random.Random(1).randbytes(5000)
    whole = CRASHED.files[WAL]
    for tail in (b"", noise[:1], noise[:23], noise[:535], noise, bytes(3000), whole[32:1000]):
        files = {**CRASHED.files, WAL: whole + tail}
        assert outcome(tmp_path, CRASHED.content, files) == "harmless"


def test_an_entry_whose_mark_was_not_written_is_kept(tmp_path):
    """The log may be ahead of the mark: killed between the two, it is."""
    store = SqliteStore(tmp_path / "node", identity="north")
    store.append([entry(1)])
    behind = (tmp_path / "node" / MARK).read_bytes()
    store.append([entry(2)])
    store.close()
    (tmp_path / "node" / MARK).write_bytes(behind)
    store = SqliteStore(tmp_path / "node", identity="north")
    assert [one for _, one in store.entries()] == [entry(1), entry(2)]
    store.close()


@pytest.mark.parametrize(
    ("which", "name", "message"),
    [
        ("closed", LOG, "missing or empty, but its mark is there"),
        ("closed", MARK, "it is missing, but the log has entries"),
        ("crashed", LOG, "missing or empty, but its mark is there"),
        ("crashed", MARK, "it is missing, but the log has entries"),
        ("crashed", WAL, "damaged: "),
    ],
)
def test_a_file_that_is_gone_is_named(which, name, message, tmp_path):
    for other, data in IMAGES[which].files.items():
        if other != name:
            (tmp_path / other).write_bytes(data)
    with pytest.raises(DamageError, match=message):
        SqliteStore(tmp_path, identity="north")
    assert verify(tmp_path).damage


@pytest.mark.parametrize("ahead", [6, 2**40])
def test_a_mark_ahead_of_the_log_says_that_entries_were_lost(ahead, tmp_path):
    for name, data in CLOSED.files.items():
        (tmp_path / name).write_bytes(data)
    create_mark(tmp_path / MARK, ahead, bytes(32))
    with pytest.raises(DamageError, match=f"ends at entry 5, but {ahead} entries were synced"):
        SqliteStore(tmp_path, identity="north")


@pytest.mark.parametrize("position", [2, 3, 5])
def test_a_mark_of_another_history_is_told_from_the_logs(position, tmp_path):
    for name, data in CLOSED.files.items():
        (tmp_path / name).write_bytes(data)
    create_mark(tmp_path / MARK, position, bytes(32))
    with pytest.raises(DamageError, match=f"entry {position} is not the one that was synced"):
        SqliteStore(tmp_path, identity="north")


def test_an_older_log_under_a_newer_mark_is_found(tmp_path):
    """Somebody copied yesterday's database back, and not the folder."""
    store = SqliteStore(tmp_path / "node", identity="north")
    store.append([entry(1)])
    store.close()
    old = (tmp_path / "node" / LOG).read_bytes()
    store = SqliteStore(tmp_path / "node", identity="north")
    store.append([entry(2)])
    store.close()
    (tmp_path / "node" / LOG).write_bytes(old)
    with pytest.raises(DamageError, match="ends at entry 1, but 2 entries were synced"):
        SqliteStore(tmp_path / "node", identity="north")


@pytest.mark.parametrize("byte", range(0x80, 0x100, 16))
def test_what_sqlite_quotes_of_a_damaged_log_need_not_be_text(byte, tmp_path):
    """sqlite3 raises UnicodeDecodeError where a message of SQLite's quotes what is no UTF-8."""
    statement = CLOSED.files[LOG].index(b"NOT NULL, body")
    damaged = bytearray(CLOSED.files[LOG])
    damaged[statement + 4] = byte
    for name, data in {**CLOSED.files, LOG: bytes(damaged)}.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(DamageError, match=r"log\.sqlite is damaged: SQLite cannot read it"):
        SqliteStore(tmp_path, identity="north")
    assert verify(tmp_path).damage


def test_a_log_that_may_be_read_and_not_written_is_found_when_it_is_opened(tmp_path):
    """One bit of SQLite's header says so; a start would else get as far as its first entry."""
    files = {**CLOSED.files, LOG: flipped(CLOSED.files[LOG], 8 * 18)}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(StoreError, match=r"cannot be used: .*readonly"):
        SqliteStore(tmp_path, identity="north")


def test_nothing_is_changed_by_a_start_that_found_damage(tmp_path):
    """What is left may still be read by other means."""
    draw = random.Random(4)
    for _ in range(40):
        bit = draw.randrange(bits_of(("closed", LOG)))
        files = {**CLOSED.files, LOG: flipped(CLOSED.files[LOG], bit)}
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
        try:
            SqliteStore(tmp_path, identity="north").close()
        except FOUND:
            assert {name: (tmp_path / name).read_bytes() for name in files} == files
