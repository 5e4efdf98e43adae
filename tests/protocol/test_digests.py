import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

import coopbandits as cb
from coopbandits.errors import ParameterError, RemoteProtocolError
from coopbandits.gp.statistics import Statistics
from coopbandits.protocol.digests import Digest, DigestRelay, digest_size, packed, sound, unpacked
from worlds import DIM, eager

PHI, Y = np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 3.0]]), np.array([1.0, -0.5, 0.25])
ROW = Statistics.rows(PHI, Y).sum(axis=0)


def digest(**changes):
    facts = {"round": 3, "origin": 2, "sums": packed(ROW), "summaries": np.empty(0), "ttl": 2}
    return Digest(**{**facts, **changes})


def forged(numbers, round=3, origin=2, ttl=2, m=2, p=0, version=2):
    head = struct.pack("<3sBQIIII", b"CBs", version, round, origin, ttl, m, p)
    return head + struct.pack(f"<{len(numbers)}d", *numbers)


def test_the_layout_is_the_documented_one():
    n, q, b, S = 3, (Y**2).sum(), PHI.T @ Y, PHI.T @ PHI
    numbers = [n, q, *b, S[0, 0], S[0, 1], S[1, 1]]
    assert digest().to_bytes() == forged(numbers)
    with_more = digest(summaries=np.array([3.0, 9.0]))
    assert with_more.to_bytes() == forged([*numbers, 3.0, 9.0], p=2)
    assert len(with_more.to_bytes()) == digest_size(2, 2) == 28 + 8 * 9
    first = Digest.from_bytes(forged(numbers, version=1))  # as the first version wrote it
    assert first.to_bytes() == digest().to_bytes()


def test_bytes_give_the_digest_back():
    data = digest(summaries=np.array([3.0, 0.1 + 0.2])).to_bytes()
    back = Digest.from_bytes(data)
    assert (back.round, back.origin, back.ttl, back.count) == (3, 2, 2, 3)
    np.testing.assert_array_equal(unpacked(back.sums), ROW)
    assert back.to_bytes() == data


@pytest.mark.parametrize("m", [1, 2, 3, 10, 64])
def test_half_of_a_symmetric_matrix_holds_all_of_it(rng, m):
    row = Statistics.rows(rng.normal(size=(4, m)), rng.normal(size=4)).sum(axis=0)
    assert len(packed(row)) == 2 + m + m * (m + 1) // 2
    np.testing.assert_array_equal(unpacked(packed(row)), row)


GOOD = [3.0, 1.3125, 0.75, 3.25, 1.25, 1.5, 14.0]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no digest"),
        (b"CBm\x01" + bytes(60), "no digest"),
        (b"CBs\x09" + forged(GOOD)[4:], "version 9"),
        (forged(GOOD)[:-1], "83 bytes; 84 are expected"),
        (forged([np.nan, *GOOD[1:]]), "must be finite"),
        (forged([*GOOD[:-1], np.inf]), "must be finite"),
        (forged([*GOOD[:-1], 1e111]), "within ±1e"),
        (forged([2.5, *GOOD[1:]]), r"2\.5 is no count"),
        (forged([0.0, *GOOD[1:]]), "0 is no count"),
        (forged([2.0**63, *GOOD[1:]], round=2**63 - 1), "is no count"),
        (forged([2.0**51, *GOOD[1:]], round=2**63 - 1), f"up to {2**50}"),
        (forged([4.0, *GOOD[1:]]), "4 is no count of observations up to its round 3"),
        (forged([*GOOD, 4.0], p=1), "is no count"),
        (forged(GOOD, round=0), "round must be a whole number >= 1"),
        (forged(GOOD, round=2**63), "round must be at most"),
        (forged(GOOD, ttl=0), "ttl must be a whole number >= 1"),
        (forged([3.0, 1.0], m=0), "no sums of features"),
    ],
    ids=range(17),
)
def test_bytes_that_are_no_digest_are_a_peers_fault(data, complaint):
    with pytest.raises(RemoteProtocolError, match=complaint):
        Digest.from_bytes(data)


def test_what_is_not_even_bytes_is_the_callers_fault():
    with pytest.raises(ParameterError, match="expected bytes"):
        Digest.from_bytes("CBs")


def test_a_newer_digest_is_news_and_an_older_one_is_not():
    relay = DigestRelay(0, agents=5, ttl=2)
    assert relay.accept(digest(round=5))[0]
    assert relay.accept(digest(round=5)) == (False, [])
    assert relay.accept(digest(round=4)) == (False, [])
    is_news, onward = relay.accept(digest(round=6))
    assert is_news
    assert [d.ttl for d in onward] == [1]


def test_an_older_digest_goes_on_where_the_newer_one_ended():
    relay = DigestRelay(0, agents=5, ttl=3)
    assert relay.accept(digest(round=5, ttl=1)) == (True, [])
    is_news, onward = relay.accept(digest(round=4, ttl=3))
    assert not is_news
    assert [(d.round, d.ttl) for d in onward] == [(4, 2)]
    assert relay.accept(digest(round=4, ttl=2)) == (False, [])


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6), st.integers(1, 3)), max_size=40),
)
def test_what_is_handed_on_says_more_to_someone_than_all_before(mails):
    relay, seen = DigestRelay(3, agents=4, ttl=3), []
    for origin, round_, ttl in mails:
        is_news, onward = relay.accept(digest(origin=origin, round=round_, ttl=ttl))
        before = [(r, h) for o, r, h in seen if o == origin]
        assert is_news == all(round_ > r for r, _ in before)
        assert bool(onward) == (ttl > 1 and all(round_ > r for r, h in before if h >= ttl))
        seen.append((origin, round_, ttl))
    assert len(relay.newest) <= 9


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"origin": 5}, r"digest names agent 5 as its origin.*0 … 4"),
        ({"ttl": 4}, r"4 hops left.*start with 3"),
        ({"origin": 0}, "bears the name of agent 0"),
        ({"sums": "x"}, "must be finite numbers"),
        ({"sums": [10**400]}, "must be finite numbers"),
        ({"sums": [[1.0]]}, "in one row"),
        ({"sums": np.ones(6)}, "6 numbers are no sums"),
        ({"round": "x"}, "round must be a whole number"),
    ],
    ids=str,
)
def test_what_the_protocol_does_not_allow_is_a_peers_fault(changes, complaint):
    relay = DigestRelay(0, agents=5, ttl=3)
    with pytest.raises(RemoteProtocolError, match=complaint):
        relay.check(digest(**changes))
    assert relay.newest == {}


def test_my_own_digest_comes_back_and_ends_here():
    relay = DigestRelay(2, agents=5, ttl=3)
    sent = relay.send(3, packed(ROW), np.empty(0))
    returned = Digest(3, 2, sent.sums, sent.summaries, 2)
    assert relay.accept(relay.check(returned)) == (False, [])


def checks(**changes):
    return sound(digest(**changes), m=2, p=0, ridge=1.0, scale=1.0)


def test_true_sums_are_sound_and_stay_as_they_are():
    np.testing.assert_array_equal(checks().sums, packed(ROW))


@pytest.mark.parametrize(
    ("numbers", "complaint"),
    [
        ([3.0, 1.0, 0.0, 0.0, 1.0, 2.0, 1.0], "no observations add up to"),  # S is indefinite
        ([3.0, 1.0, 5.0, 0.0, 1.0, 0.0, 1.0], "no observations add up to"),  # |b|² > q·tr S
        ([3.0, -1.0, 0.0, 0.0, 1.0, 0.0, 1.0], "no observations add up to"),  # Σy² < 0
        ([3.0, 1.0, 0.0, 0.0, 1e12, 0.0, 1.0], "leaves no digits"),
        ([3.0, 1.0, 0.0, 1.0], "4 sums .* 7 and 0 are expected, for 2 features"),
    ],
)
def test_sums_that_no_observations_have_are_refused(numbers, complaint):
    with pytest.raises(RemoteProtocolError, match=complaint):
        checks(sums=np.array(numbers))


def test_rounding_below_zero_is_mended():
    # two features that were always the same, but for rounding as large as the ridge
    numbers = np.array([3.0, 1.0, 0.0, 0.0, 1e9, 1e9 * (1 + 1e-9), 1e9])
    assert np.linalg.eigvalsh([[1e9, numbers[5]], [numbers[5], 1e9]])[0] < -0.9
    S = unpacked(checks(sums=numbers).sums)[4:].reshape(2, 2)
    assert np.linalg.eigvalsh(S)[0] > -1e-6
    assert S[0, 0] == pytest.approx(1e9)


def test_a_peer_cannot_stop_an_agent_by_sums(network, rng):
    agent = eager(kernel=cb.kernels.Linear(), say=cb.say.Sums()).agent(2, network)
    refused = 0
    for t in range(1, 200):
        scale = 10.0 ** rng.integers(-5, 20, size=2 + DIM + 6)
        sums = scale * rng.normal(size=len(scale))
        sums[0] = t
        if t % 3 == 0:  # some that could be true
            phi = 10.0 ** rng.integers(0, 5) * rng.normal(size=(t, DIM))
            sums = packed(Statistics.rows(phi, rng.normal(size=t)).sum(axis=0))
        try:
            agent.receive(Digest(t, 1, sums, np.empty(0), 1))
        except RemoteProtocolError:
            refused += 1
        if t % 5 == 0:
            decision = agent.decide(rng.normal(size=(3, DIM)))
            assert np.isfinite([decision.mean, decision.std]).all()
    assert 100 < refused < 140


def test_sums_of_features_of_any_size_are_sound_before_and_after_they_are_mended(rng):
    sizes = np.array([1e4, 1.0, 1e-6, 1e-161, 1e-170])
    for n in (1, 2, 3, 10):
        row = Statistics.rows(sizes * rng.normal(size=(n, 5)), rng.normal(size=n)).sum(axis=0)
        facts = {"m": 5, "p": 0, "ridge": 1.0, "scale": 1.0}
        mended = sound(digest(round=n, sums=packed(row)), **facts)
        again = sound(mended, **facts)  # by the next who hears of it, or when it is restored
        for one in (mended, again):
            np.testing.assert_allclose(one.sums, packed(row), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("tiny", [0.0, 5e-324, 1e-300])
def test_products_that_are_infinite_beside_their_squares_are_refused(tiny):
    for numbers in ([3.0, tiny, 1e25, 0.0, tiny, 0.0, 1.0], [3.0, 1.0, 0, 0, tiny, 1e25, tiny]):
        with pytest.raises(RemoteProtocolError, match="no observations add up to"):
            checks(sums=np.array(numbers))


def test_a_count_of_any_size_cannot_make_sums_too_large_for_a_factor(network, rng):
    policy = eager(
        kernel=cb.kernels.RBF(), features=cb.features.Fourier(6), say=cb.say.Sums(), ttl=1
    )
    for n in 10.0 ** np.arange(1, 16):
        agent = policy.agent(2, network)
        agent.decide(rng.normal(size=(3, DIM)))
        phi = rng.normal(size=6)
        phi *= np.sqrt(0.99e10) / np.linalg.norm(phi)
        row = n * Statistics.rows(phi[None], np.ones(1))[0]
        message = Digest(int(n), 1, packed(row), np.empty(0), 1)
        if n > 1e4:
            with pytest.raises(RemoteProtocolError, match="leaves no digits"):
                agent.receive(message)
        else:
            agent.receive(message)
        assert np.isfinite(agent.decide(rng.normal(size=(3, DIM))).mean)


def test_sums_of_another_size_cannot_fix_mine(network, rng):
    agent = eager(kernel=cb.kernels.Linear(), say=cb.say.Sums()).agent(2, network)
    agent.receive(digest(origin=1, ttl=1))  # two features
    assert agent.known == 3
    agent.decide(rng.normal(size=(2, DIM)))
    assert agent.known == 0
    before = agent.to_bytes()
    with pytest.raises(RemoteProtocolError, match="for 3 features"):
        agent.receive(digest(origin=3, ttl=1))
    assert agent.to_bytes() == before
