"""Frames between neighbours: read as they were written, refused when they are not."""

import struct
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, strategies as st

from coopbandits.errors import RemoteProtocolError
from coopbandits.fleet.core import wire
from coopbandits.fleet.core.wire import (
    VERSION,
    Base,
    Have,
    Proof,
    Take,
    Want,
    WantBase,
    decoded,
    encoded,
)

names = st.text(st.characters(blacklist_categories=["Cs"]), max_size=9)
counts = st.integers(0, 2**62)
hashes = st.binary(min_size=32, max_size=32)
heads = st.lists(st.tuples(counts, counts, hashes), max_size=3)
data = st.binary(max_size=40)
messages = st.one_of(
    st.builds(
        Have, st.dictionaries(names, heads, max_size=3),
        st.dictionaries(names, st.tuples(counts, counts), max_size=2), heads,
        st.integers(1, 9), st.booleans(),
    ),
    st.builds(Want, names, counts, counts, counts),
    st.builds(Take, names, counts, counts, st.lists(data, max_size=3)),
    st.builds(WantBase, names),
    st.builds(Base, names, data),
    st.builds(Proof, names, counts, data, data),
)  # fmt: skip

SOME = [
    Have({"north": [(1, 2, bytes(32))]}, {"süd": (3, 4)}, [(5, 6, bytes(range(32)))], answer=True),
    Want("north", 1, 2, 3),
    Take("north", 1, 2, [b"one", b"two"]),
    WantBase("north"),
    Base("north", b"data"),
    Proof("north", 1, b"one", b"other"),
]


def framed(body, version=1, magic=b"CBf"):
    return magic + bytes([version]) + struct.pack("<I", crc32(body)) + body


def packed(**fields):
    return framed(msgspec.msgpack.encode(fields))


@given(messages)
def test_a_message_is_read_as_it_was_written(message):
    assert decoded(encoded(message)) == message


@pytest.mark.parametrize("message", SOME, ids=lambda one: type(one).__name__)
class TestEveryMessage:
    def test_is_a_frame_of_magic_version_checksum_and_a_map_of_its_fields(self, message):
        fields = {"type": type(message).__struct_config__.tag}
        fields |= {name: getattr(message, name) for name in message.__struct_fields__}
        assert encoded(message) == packed(**fields)

    def test_of_which_any_bit_is_flipped_is_refused(self, message):
        frame = encoded(message)
        for bit in range(8 * len(frame)):
            changed = bytearray(frame)
            changed[bit // 8] ^= 1 << bit % 8
            with pytest.raises(RemoteProtocolError, match=r"message|messages"):
                decoded(bytes(changed))

    def test_that_is_cut_short_or_goes_on_is_refused(self, message):
        frame = encoded(message)
        for wrong in (*(frame[:size] for size in range(len(frame))), frame + b"\0"):
            with pytest.raises(RemoteProtocolError, match="between nodes"):
                decoded(wrong)

    def test_may_hold_keys_that_are_not_known_yet(self, message):
        fields = msgspec.msgpack.decode(encoded(message)[8:])
        assert decoded(packed(**fields, later=[1, {"x": None}])) == message

    def test_lacks_no_field_but_those_that_came_later(self, message):
        fields = msgspec.msgpack.decode(encoded(message)[8:])
        defaults = {"reads", "answer"}
        for name in fields:
            less = packed(**{key: value for key, value in fields.items() if key != name})
            if name in defaults:
                assert type(decoded(less)) is type(message)
            else:
                with pytest.raises(RemoteProtocolError, match="makes no sense"):
                    decoded(less)

    def test_is_read_in_all_versions_up_to_the_own(self, message, monkeypatch):
        body = encoded(message)[8:]
        monkeypatch.setattr(wire, "VERSION", 3)
        for version in (1, 2, 3):
            assert decoded(framed(body, version)) == message
            assert encoded(message, version) == framed(body, version)
        assert encoded(message, 9) == framed(body, 3)
        for version in (0, 4, 255):
            with pytest.raises(RemoteProtocolError, match=f"version {version}; .* reads 1 to 3"):
                decoded(framed(body, version))


def test_a_version_that_is_not_known_yet_is_refused():
    with pytest.raises(RemoteProtocolError, match=f"version {VERSION + 1}; this release reads"):
        decoded(framed(encoded(SOME[0])[8:], VERSION + 1))


@pytest.mark.parametrize(
    "fields",
    [
        {"type": 7, "origin": "north"},
        {"type": "have"},
        {"origin": "north"},
        {"type": 2, "origin": "north", "epoch": -1, "after": 0, "last": 1},
        {"type": 2, "origin": "north", "epoch": 2**63, "after": 0, "last": 1},
        {"type": 2, "origin": "north", "epoch": 1, "after": -1, "last": 1},
        {"type": 2, "origin": "north", "epoch": 1, "after": 0.5, "last": 1},
        {"type": 2, "origin": 3, "epoch": 1, "after": 0, "last": 1},
        {"type": 3, "origin": "north", "epoch": -1, "first": 1, "records": [b"r"]},
        {"type": 3, "origin": "north", "epoch": 1, "first": 1, "records": ["text"]},
        {"type": 5, "origin": "north", "epoch": -1, "one": b"", "other": b""},
        {"type": 1, "heads": {"north": [[-1, 1, bytes(32)]]}, "bases": {}, "yours": []},
        {"type": 1, "heads": {"north": [[1, 2**64 - 1, bytes(32)]]}, "bases": {}, "yours": []},
        {"type": 1, "heads": {"north": [[1, 1, bytes(31)]]}, "bases": {}, "yours": []},
        {"type": 1, "heads": {}, "bases": {"north": [-1, 1]}, "yours": []},
        {"type": 1, "heads": {}, "bases": {}, "yours": [[-1, 1, bytes(32)]]},
        {"type": 1, "heads": {}, "bases": {}, "yours": [[1, 1]]},
    ],
    ids=str,
)  # fmt: skip
def test_fields_that_no_message_has_are_refused(fields):
    with pytest.raises(RemoteProtocolError, match="a message between nodes makes no sense"):
        decoded(packed(**fields))


def test_deep_nesting_is_refused_like_any_other_nonsense():
    body = msgspec.msgpack.encode({"type": 6, "origin": "north"})
    body = bytes([body[0] + 1]) + body[1:] + b"\xa4more" + b"\x91" * 100_000 + b"\x90"
    with pytest.raises(RemoteProtocolError, match="makes no sense"):
        decoded(framed(body))


@given(st.binary(max_size=60), st.sampled_from(SOME))
def test_any_bytes_under_a_right_checksum_are_a_message_or_refused(noise, message):
    body = encoded(message)[8:]
    for other in (noise, body[: len(noise)] + noise, noise + body[len(noise) :]):
        try:
            assert isinstance(decoded(framed(other)), wire.Spoken)
        except RemoteProtocolError as error:
            assert "a message between nodes makes no sense" in str(error)  # noqa: PT017
