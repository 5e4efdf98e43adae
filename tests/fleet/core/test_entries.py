"""Entries of the log: read as they were written, those of earlier releases too."""

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from coopbandits.fleet.core import entries
from coopbandits.fleet.core.entries import (
    Activated,
    Adopted,
    Based,
    Decided,
    Ended,
    Fitting,
    Quarantined,
    Received,
    Recorded,
    Rewarded,
    Started,
    read,
    written,
)
from coopbandits.fleet.ports import DamageError, Entry, StoredRecord

KINDS = {
    1: Started, 2: Decided, 3: Rewarded, 4: Activated, 5: Recorded, 6: Received, 7: Ended,
    8: Fitting, 9: Adopted, 10: Based, 11: Quarantined,
}  # fmt: skip
# Fields that the first release did not write, or may leave out.
LATER = {Started: {"anew"}, Decided: {"agreed", "deferred"}, Rewarded: {"key"}}
times, counts, texts = st.floats(0, 1e12), st.integers(0, 2**62), st.text("aé ☃", max_size=5)
numbers, data = st.floats(-1e15, 1e15), st.binary(max_size=9)
maybe = st.none() | numbers
several = st.lists(st.integers(0, 9), max_size=4)
MADE = {
    Started: st.builds(
        Started,
        times,
        texts,
        texts,
        st.lists(texts, max_size=3),
        st.lists(st.tuples(counts, counts), max_size=3),
        counts,
    ),
    Decided: st.builds(
        Decided,
        counts,
        times,
        texts,
        data,
        counts,
        counts,
        st.lists(texts, max_size=3),
        data,
        several,
        counts,
        several,
        data,
        maybe,
        st.sampled_from(["learner", "control", "baseline"]),
        texts,
        texts,
        st.none() | st.booleans(),
        st.booleans(),
    ),
    Rewarded: st.builds(Rewarded, times, texts, numbers, st.none() | texts),
    Activated: st.builds(Activated, times, texts),
    Recorded: st.builds(Recorded, times, texts, counts, counts, numbers, counts, counts),
    Received: st.builds(Received, times, texts, counts, counts, counts, data, texts),
    Ended: st.builds(Ended, times, st.lists(st.tuples(texts, maybe, counts), max_size=3)),
    Fitting: st.builds(Fitting, counts, times, counts),
    Adopted: st.builds(Adopted, times, counts, data),
    Based: st.builds(Based, times, data),
    Quarantined: st.builds(Quarantined, times, texts, counts, data, data),
}


@given(st.one_of(*MADE.values()))
def test_an_entry_is_read_as_it_was_written(entry):
    records = (StoredRecord("north", 1, 2, b"data"),)
    stored = written(entry, records)
    assert stored.records == records
    assert KINDS[stored.kind] is type(entry)
    assert read(stored, 1) == entry
    assert msgspec.msgpack.decode(stored.body) == msgspec.msgpack.decode(
        msgspec.msgpack.encode({n: getattr(entry, n) for n in entry.__struct_fields__})
    )


def test_every_kind_of_the_table_is_under_test_and_stands_for_ever():
    assert entries._KINDS == KINDS
    table = [line.split("|")[1:3] for line in entries.__doc__.splitlines() if line[:3] == "| 1"]
    table += [line.split("|")[1:3] for line in entries.__doc__.splitlines() if line[:2] == "| "]
    named = {int(n): name.strip(" `") for n, name in table if n.strip().isdigit()}
    assert named == {number: kind.__name__ for number, kind in KINDS.items()}


@pytest.mark.parametrize("kind", [0, 12, 255])
def test_a_kind_that_is_not_known_was_written_by_a_newer_release(kind):
    with pytest.raises(DamageError, match=f"entry 7 of the log is of kind {kind}; .* knows 1 to"):
        read(Entry(kind, b"\x80"), 7)


@pytest.mark.parametrize("number", KINDS)
@settings(max_examples=5)
@given(st.data())
def test_an_entry_without_fields_that_came_later_is_read(number, data):
    kind = KINDS[number]
    entry = data.draw(MADE[kind])
    fields = msgspec.msgpack.decode(written(entry).body)
    later = LATER.get(kind, set())
    defaults = {f.name: f.default for f in msgspec.structs.fields(kind) if not f.required}
    assert later == defaults.keys()
    old = {name: value for name, value in fields.items() if name not in later}
    found = read(Entry(number, msgspec.msgpack.encode(old)), 1)
    assert {name: getattr(found, name) for name in later} == defaults
    newer = Entry(number, msgspec.msgpack.encode({**fields, "even_later": [1]}))
    assert read(newer, 1) == entry
    for name in old:
        less = {key: value for key, value in fields.items() if key != name}
        with pytest.raises(DamageError, match="entry 9 of the log makes no sense"):
            read(Entry(number, msgspec.msgpack.encode(less)), 9)


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x80", b"\x81\xa1x", b"\x91" * 90, b"\xa1\xff"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_body_that_is_none_is_damage(kind, body):
    with pytest.raises(DamageError, match="entry 3 of the log makes no sense"):
        read(Entry(kind, body), 3)
