"""Records of a feed: laid out as the table says, chained, and refused when anything is off."""

import math
import struct
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, strategies as st

from coopbandits.arrays import LARGEST
from coopbandits.errors import RemoteProtocolError
from coopbandits.fleet.keys import Ed25519Keys, HashKeys, public_of
from coopbandits.fleet.record import SIGNATURE, VERSION, Feed, Head, UnchainedError
from coopbandits.protocol.messages import Observation

PRIVATE = {name: bytes([i + 1]) * 32 for i, name in enumerate(["north", "süd"])}
PUBLIC = {name: public_of(private) for name, private in PRIVATE.items()}


def keys_of(origin):
    return HashKeys(origin)


def observation(round_, context, reward, attached=()):
    return Observation(0, round_, np.array(context), reward, np.array(attached, dtype=float))


def chained(feed, observations, keys, after=None):
    """Make the records of observations, one behind the other."""
    head, records = after or feed.beginning, []
    for one in observations:
        records.append(feed.record(head, one, keys))
        head = feed.head(records[-1])
    return records


class Twin:
    """The layout of a record and the chain, from the table of the module and nothing else."""

    def __init__(self, fingerprint, origin, epoch):
        name = origin.encode("utf-8")
        policy = blake2b(fingerprint.encode(), digest_size=16).digest()
        self.begin = bytes([1]) + policy + struct.pack("<H", len(name)) + name
        self.epoch = struct.pack("<Q", epoch)
        self.before = blake2b(
            self.begin + self.epoch, digest_size=32, person=b"coop epoch"
        ).digest()
        self.sequence = 0

    def record(self, round_, reward, context, attached, sign):
        self.sequence += 1
        data = self.begin + self.epoch
        data += struct.pack("<Q", self.sequence) + struct.pack("<Q", round_) + self.before
        data += struct.pack("<H", len(context)) + struct.pack("<H", len(attached))
        for number in (reward, *context, *attached):
            data += struct.pack("<d", number)
        data += sign(data)
        self.before = blake2b(data, digest_size=32).digest()
        return data


numbers = st.floats(-LARGEST, LARGEST, allow_nan=False)
epochs = st.integers(1, 2**62)


@st.composite
def feeds_of(draw):
    """Return fingerprint, origin, epoch, and observations of one size."""
    name = draw(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12))
    d, k = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    one = st.tuples(
        st.integers(1, 2**62 - 1), numbers,
        st.lists(numbers, min_size=d, max_size=d), st.lists(numbers, min_size=k, max_size=k),
    )  # fmt: skip
    values = draw(st.lists(one, min_size=1, max_size=5))
    return draw(st.text(max_size=5)), name, draw(epochs), values


class TestLayout:
    @given(feeds_of())
    def test_records_are_those_of_a_twin_written_from_the_table(self, given):
        fingerprint, origin, epoch, values = given
        feed, keys, twin = Feed(fingerprint, origin, epoch), keys_of(origin), Twin(*given[:3])
        assert feed.beginning == Head(0, twin.before)
        made = chained(feed, [observation(t, x, y, a) for t, y, x, a in values], keys)
        assert made == [twin.record(t, y, x, a, keys.sign) for t, y, x, a in values]
        assert feed.head(made[-1]) == Head(twin.sequence, twin.before)

    @given(feeds_of())
    def test_what_was_written_is_read_to_the_bit_in_any_blocks(self, given):
        fingerprint, origin, epoch, values = given
        feed, keys = Feed(fingerprint, origin, epoch), keys_of(origin)
        made = chained(feed, [observation(t, x, y, a) for t, y, x, a in values], keys)
        head = feed.beginning
        for size in (1, len(made) - 1):
            if size and head.sequence < len(made):
                part = made[head.sequence : head.sequence + size]
                block = feed.read(head, part, keys_of("somebody"))
                here = values[head.sequence : head.sequence + size]
                assert block.rounds == [t for t, *_ in here]
                assert block.rewards.tobytes() == np.array([y for _, y, *_ in here]).tobytes()
                assert block.contexts.tolist() == [x for *_, x, _ in here]
                assert block.attached.tolist() == [a for *_, a in here]
                assert (block.first, block.last) == (head.sequence + 1, part[-1])
                assert block.hashes == [blake2b(r, digest_size=32).digest() for r in part]
                again = feed.trusted(part)
                assert again.hashes == block.hashes
                for one, other in zip(again.observations(0, size), block.observations(0, size),
                                      strict=True):  # fmt: skip
                    assert np.array_equal(one, other)
                head = block.head
        assert head == feed.head(made[-1])


@pytest.fixture
def feed():
    return Feed("policy", "north", 7)


@pytest.fixture
def made(feed):
    return chained(
        feed,
        [observation(t, [t / 2, -1.0], 0.25 * t, [3.0]) for t in range(1, 7)],
        HashKeys("north"),
    )


KEYS = HashKeys("other")


def signed_as(origin, *parts):
    body = b"".join(parts)
    return body + HashKeys(origin).sign(body)


class TestRefusal:
    def test_a_block_without_records(self, feed):
        with pytest.raises(RemoteProtocolError, match="feed of north, epoch 7: a block without"):
            feed.read(feed.beginning, [], KEYS)

    def test_a_gap_or_records_out_of_order_or_twice(self, feed, made):
        for records, message in (
            (made[1:], "record 1 was expected, 2 came"),
            ([made[0], made[2]], "record 2 was expected, 3 came"),
            ([made[1], made[0]], "record 1 was expected, 2 came"),
            ([made[0], made[0]], "record 2 was expected, 1 came"),
        ):
            with pytest.raises(RemoteProtocolError, match=message):
                feed.read(feed.beginning, records, KEYS)

    @pytest.mark.parametrize(
        "other",
        [Feed("another", "north", 7), Feed("policy", "north", 8), Feed("policy", "nord", 7)],
        ids=["policy", "epoch", "origin"],
    )
    def test_records_of_another_policy_epoch_or_origin(self, feed, other):
        one = other.record(other.beginning, observation(1, [1.0], 1.0), HashKeys(other.origin))
        with pytest.raises(RemoteProtocolError, match="is of another version, policy or feed"):
            feed.read(feed.beginning, [one], KEYS)
        with pytest.raises(RemoteProtocolError, match="is of another version, policy or feed"):
            feed.head(one)

    def test_records_of_another_version(self, feed, made):
        newer = signed_as("north", bytes([VERSION + 1]), made[0][1:-SIGNATURE])
        with pytest.raises(RemoteProtocolError, match="record 1 is of another version"):
            feed.read(feed.beginning, [newer], KEYS)

    def test_records_that_follow_another(self, feed, made):
        other = chained(feed, [observation(9, [1.0, 1.0], 1.0, [0.0])], HashKeys("north"))
        with pytest.raises(
            UnchainedError, match="2 does not follow the record 1 that is held"
        ) as e:
            feed.read(feed.head(other[0]), made[1:], KEYS)
        assert e.value.sequence == 2

    def test_every_length_that_is_not_the_records_own(self, feed, made):
        record = made[0]
        for size in range(len(record) + 1):
            if size == len(record):
                longer = [record + b"\0", record + bytes(8), record + record]
                cases = [*longer, signed_as("north", record[:-SIGNATURE], bytes(8))]
            else:
                cases = [record[:size], signed_as("north", record[:size])]
                if size == len(record) - SIGNATURE:
                    cases.pop()  # this one is the record
            for data in cases:
                with pytest.raises(RemoteProtocolError, match="feed of north, epoch 7: record 1"):
                    feed.read(feed.beginning, [data], KEYS)

    def test_records_of_several_sizes_in_one_block(self, feed):
        for other in (observation(2, [1.0, 2.0], 1.0), observation(2, [], 1.0, [2.0])):
            records = chained(feed, [observation(1, [1.0], 1.0), other], HashKeys("north"))
            with pytest.raises(RemoteProtocolError, match=r"record 2 has .*, others"):
                feed.read(feed.beginning, records, KEYS)

    @pytest.mark.parametrize("where", ["reward", "context", "attached"])
    @pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 2 * LARGEST, -1e308])
    def test_numbers_that_agents_cannot_take(self, feed, where, wrong):
        values = {"reward": 1.0, "context": [1.0, 2.0], "attached": [3.0]}
        values[where] = wrong if where == "reward" else [wrong, *values[where][1:]]
        one = observation(1, values["context"], values["reward"], values["attached"])
        record = feed.record(feed.beginning, one, HashKeys("north"))
        with pytest.raises(RemoteProtocolError, match="is not finite, or larger than agents take"):
            feed.read(feed.beginning, [record], KEYS)

    @pytest.mark.parametrize("round_", [2**62, 2**64 - 1])
    def test_rounds_beyond_those_of_agents(self, feed, round_):
        record = feed.record(feed.beginning, observation(round_, [1.0], 1.0), HashKeys("north"))
        with pytest.raises(RemoteProtocolError, match="a round is too large"):
            feed.read(feed.beginning, [record], KEYS)

    def test_a_context_without_numbers(self, feed):
        record = feed.record(feed.beginning, observation(1, [], 1.0), HashKeys("north"))
        with pytest.raises(RemoteProtocolError, match="a context is empty"):
            feed.read(feed.beginning, [record], KEYS)

    def test_a_signature_of_somebody_else_or_of_other_bytes(self, feed, made):
        body = made[0][:-SIGNATURE]
        for signature in (HashKeys("süd").sign(body), HashKeys("north").sign(body[:-1]), bytes(64)):
            with pytest.raises(RemoteProtocolError, match="signature of record 1 is not north's"):
                feed.read(feed.beginning, [body + signature], KEYS)

    def test_only_the_last_signature_of_a_block_counts_as_the_chain_vouches_for_the_rest(
        self, feed, made
    ):
        class Counting:
            def __init__(self):
                self.asked = []

            def verify(self, origin, data, signature):
                self.asked.append(data)
                return KEYS.verify(origin, data, signature)

        counting = Counting()
        assert feed.read(feed.beginning, made, counting).head == feed.head(made[-1])
        assert counting.asked == [made[-1][:-SIGNATURE]]

    def test_any_byte_of_any_record_of_a_block_is_vouched_for(self, feed, made):
        keys = Ed25519Keys(PRIVATE["süd"], PUBLIC)
        signer = Ed25519Keys(PRIVATE["north"], PUBLIC)
        values = [observation(t, [t / 2, -1.0], 0.25 * t, [3.0]) for t in range(1, 4)]
        block = chained(feed, values, signer)
        assert len(feed.read(feed.beginning, block, keys).hashes) == 3
        for number, record in enumerate(block):
            for place in range(len(record)):
                changed = bytearray(record)
                changed[place] ^= 1 << (place % 8)
                tampered = [*block[:number], bytes(changed), *block[number + 1 :]]
                with pytest.raises(RemoteProtocolError, match="feed of north, epoch 7"):
                    feed.read(feed.beginning, tampered, keys)

    @given(st.lists(st.binary(max_size=200), max_size=3), st.data())
    def test_any_bytes_are_a_remote_protocol_error_and_nothing_else(self, noise, data):
        feed = Feed("policy", "north", 7)
        record = feed.record(feed.beginning, observation(1, [1.0], 1.0), HashKeys("north"))
        start = data.draw(st.integers(0, len(record)))
        with pytest.raises(RemoteProtocolError, match="feed of north, epoch 7"):
            feed.read(feed.beginning, [record[:start] + more for more in noise] or [b""], KEYS)


class TestContradiction:
    def test_two_signed_records_of_one_sequence_that_differ_are_a_fork(self, feed, made):
        other = chained(feed, [observation(1, [9.0, 9.0], 9.0, [9.0])], HashKeys("north"))
        assert feed.contradict(made[0], other[0], KEYS)
        assert feed.contradict(other[0], made[0], KEYS)
        later = chained(feed, [observation(2, [1.0, 1.0], 0.0, [3.0])] * 2, HashKeys("north"),
                        after=Head(2, b"f" * 32))  # fmt: skip
        assert feed.contradict(made[2], later[0], KEYS)

    def test_nothing_else_is(self, feed, made):
        forged = made[0][: -SIGNATURE - 1] + b"\x01"
        other = Feed("policy", "north", 8)
        elsewhere = other.record(other.beginning, observation(1, [9.0], 9.0), HashKeys("north"))
        for one, two in (
            (made[0], made[0]),
            (made[0], made[1]),
            (made[0], forged + HashKeys("süd").sign(forged)),
            (made[0], forged + made[0][-SIGNATURE:]),
            (made[0], elsewhere),
            (made[0], made[0][:-1]),
            (made[0], b""),
            (b"", b""),
        ):
            assert not feed.contradict(one, two, KEYS)
            assert not feed.contradict(two, one, KEYS)

    def test_one_record_signed_twice_is_none(self, feed, made):
        """Signatures of one record may differ where keys are not Ed25519's."""

        class Lenient:
            def verify(self, origin, data, signature):
                return True

        assert not feed.contradict(made[0], made[0][:-SIGNATURE] + bytes(64), Lenient())
