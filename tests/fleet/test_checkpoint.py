"""Checkpoints: read as they were signed, and refused when anything is off."""

import msgspec
import pytest
from hypothesis import given, strategies as st

from coopbandits.errors import RemoteProtocolError
from coopbandits.fleet.checkpoint import VERSION, Checkpoint, FeedBase
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.record import SIGNATURE, Head

KEYS = HashKeys("other")
counts = st.integers(0, 2**62)
bases = st.builds(
    FeedBase, st.integers(1, 2**62), counts, st.binary(min_size=32, max_size=32),
    st.integers(1, 100), st.binary(max_size=50),
)  # fmt: skip
several = st.lists(bases, min_size=1, max_size=4, unique_by=lambda base: base.epoch).map(
    lambda found: tuple(sorted(found, key=lambda base: base.epoch))
)
names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=9)


def base(epoch=1, sequence=100):
    return FeedBase(epoch, sequence, bytes(32), 3, b"sums")


def signed(fields, origin="north"):
    """Sign what `Checkpoint.signed` would not make."""
    body = msgspec.msgpack.encode(fields)
    return body + HashKeys(origin).sign(body)


def fields(**changes):
    plain = {"epoch": 1, "sequence": 100, "hash": bytes(32), "dim": 3, "sums": b"sums"}
    return {
        "version": VERSION, "fingerprint": "policy", "origin": "north", "feeds": [plain], **changes,
    }  # fmt: skip


@given(names, several, st.text(max_size=9))
def test_what_was_signed_is_read_by_all(origin, feeds, fingerprint):
    made = Checkpoint.signed(fingerprint, origin, feeds, HashKeys(origin))
    for read in (Checkpoint.read(fingerprint, made.data, KEYS), Checkpoint.trusted(made.data)):
        assert read == made
        assert (read.origin, read.feeds) == (origin, feeds)
        assert read.place == (feeds[-1].epoch, feeds[-1].sequence)
        assert [one.head for one in read.feeds] == [Head(one.sequence, one.hash) for one in feeds]


def test_the_plain_fields_are_all_there_is():
    made = Checkpoint.signed("policy", "north", (base(),), HashKeys("north"))
    assert msgspec.msgpack.decode(made.data[:-SIGNATURE]) == fields()
    assert signed(fields()) == made.data
    assert Checkpoint.read("policy", made.data, KEYS) == made


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a checkpoint makes no sense"),
        (bytes(64), "a checkpoint makes no sense"),
        (b"\xc1" * 90, "a checkpoint makes no sense"),
        (signed([1, 2]), "a checkpoint makes no sense"),
        (signed({"version": 1}), "a checkpoint makes no sense"),
        (signed(fields(origin=b"north")), "a checkpoint makes no sense"),
        (
            signed(fields(version=VERSION + 1)),
            "north is of version 2 and policy policy; expected 1",
        ),
        (signed(fields(version=0)), "north is of version 0"),
        (signed(fields(fingerprint="other")), "policy other; expected 1 and policy"),
        (signed(fields(feeds=[])), r"a checkpoint of north has epochs \[\]"),
        (signed(fields(feeds=[base(2), base(1)])), r"a checkpoint of north has epochs \[2, 1\]"),
        (signed(fields(feeds=[base(1), base(1)])), r"a checkpoint of north has epochs \[1, 1\]"),
        (signed(fields(), "south"), "a checkpoint of north is not signed by it"),
        (signed(fields())[:-1], "a checkpoint"),
        (signed(fields()) + b"\0", "a checkpoint"),
    ],
)
def test_what_is_off_is_refused(data, message):
    with pytest.raises(RemoteProtocolError, match=message):
        Checkpoint.read("policy", data, KEYS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epoch": -1}, {"epoch": 2**63}, {"sequence": -1}, {"sequence": 2**63}, {"dim": 0},
        {"dim": -3}, {"dim": 2**40}, {"hash": b""}, {"hash": bytes(31)}, {"hash": bytes(33)},
    ],
    ids=str,
)  # fmt: skip
def test_numbers_that_no_feed_has_are_refused_though_the_origin_signed_them(wrong):
    plain = {**msgspec.to_builtins(base(), builtin_types=(bytes,)), **wrong}
    with pytest.raises(RemoteProtocolError, match="a checkpoint makes no sense"):
        Checkpoint.read("policy", signed(fields(feeds=[plain])), KEYS)


def test_any_bit_of_a_checkpoint_is_vouched_for():
    data = Checkpoint.signed("policy", "north", (base(1), base(5, 7)), HashKeys("north")).data
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RemoteProtocolError, match="a checkpoint"):
            Checkpoint.read("policy", bytes(changed), KEYS)


def test_deep_nesting_is_refused_like_any_other_nonsense():
    deep = b"\x91" * 100_000 + b"\x90"
    body = msgspec.msgpack.encode(fields())
    body = bytes([body[0] + 1]) + body[1:] + b"\xa4more" + deep
    with pytest.raises(RemoteProtocolError, match="a checkpoint makes no sense"):
        Checkpoint.read("policy", body + HashKeys("north").sign(body), KEYS)
