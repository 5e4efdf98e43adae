"""Agents whose drivers keep feeds: sums follow from feeds alone, results from what was stored."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent import feeds
from coopbandits.agent.origin_sums import CHUNK, merged

NETWORK, D = cb.Network.path(4), 3
FORGET = [None, cb.forget.Exponential(40.0), cb.forget.Window(70)]
BASES = {
    "linear": {"kernel": cb.kernels.Linear(), "features": cb.features.Exact()},
    "fourier": {"kernel": cb.kernels.RBF(), "features": cb.features.Fourier(16)},
}


def agent_of(base="linear", agent=1, **changes):
    options = {"similarity": cb.similarity.Evidence(chains=2), "ttl": 2, "eta": 0.3, **changes}
    made = cb.EagerKernelUCB(**{**BASES[base], **options}).agent(agent, NETWORK)
    feeds.settle_dimension(made, D)
    return made


def observed(rng, agent, count, first=1):
    X, y = rng.normal(size=(count, D)), rng.normal(size=count)
    attached = rng.normal(size=(count, feeds.attached_size(agent)))
    return X, y, np.arange(first, first + count), attached


def in_blocks(agent, origin, data, sizes):
    sums, start = None, 0
    for size in sizes:
        part = [rows[start : start + size] for rows in data]
        sums = feeds.extended(agent, sums, origin, *part)
        start += size
    return sums


@pytest.mark.parametrize("forget", FORGET, ids=["never", "exponential", "window"])
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("count", [1, CHUNK - 1, CHUNK, 2 * CHUNK + 7])
def test_sums_follow_from_the_feed_to_the_bit_however_it_came(base, forget, count, rng):
    agent = agent_of(base, forget=forget)
    data = observed(rng, agent, count)
    whole = in_blocks(agent, 0, data, [count])
    sizes = rng.multinomial(count, np.full(9, 1 / 9))
    split = in_blocks(agent, 0, data, [s for s in sizes if s])
    assert whole.count == split.count == count
    assert whole.digest == split.digest
    assert (
        whole.digest != in_blocks(agent, 0, [r[::-1] for r in data], [count]).digest or count == 1
    )


@pytest.mark.parametrize("forget", FORGET, ids=["never", "exponential", "window"])
@pytest.mark.parametrize("base", BASES)
def test_an_agent_with_sums_of_feeds_believes_what_one_that_heard_them_does(base, forget, rng):
    one, other = agent_of(base, forget=forget), agent_of(base, forget=forget)
    for origin, count in ((0, 130), (2, 40)):
        X, y, rounds, attached = observed(rng, one, count)
        one.hear(origin, X, y, rounds=rounds, attached=attached)
        sums = feeds.extended(other, None, origin, X, y, rounds, attached)
        feeds.take_sums(other, {origin: [sums]})
        feeds.take_sums(other, {origin: [sums]})  # a second time changes nothing
    assert one.known == other.known == 170
    queries = rng.normal(size=(5, D))
    a, b = one.predict(queries), other.predict(queries)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(a.std, b.std, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("forget", FORGET, ids=["never", "exponential", "window"])
def test_an_origin_that_began_a_second_feed_counts_with_both(forget, rng):
    one, other = agent_of(forget=forget), agent_of(forget=forget)
    X, y, rounds, attached = observed(rng, one, 150)
    one.hear(0, X, y, rounds=rounds, attached=attached)
    data = (X, y, rounds, attached)
    parts = [
        feeds.extended(other, None, 0, *[rows[at] for rows in data])
        for at in (slice(0, 90), slice(90, 150))
    ]
    feeds.take_sums(other, {0: parts})
    assert merged(parts).learnt[0] == other.known == 150
    queries = rng.normal(size=(5, D))
    a, b = one.predict(queries), other.predict(queries)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(a.std, b.std, rtol=1e-8, atol=1e-9)


def test_own_rewards_count_once_in_beliefs_and_in_sums(rng):
    driven, plain = agent_of(), agent_of()
    sums = None
    for _ in range(7):
        X = rng.normal(size=(4, D))
        decision, same = driven.decide(X, learn=False), plain.decide(X, learn=False)
        assert decision.index == same.index
        one = feeds.observation(driven, decision.id, 0.5)
        [message] = plain.reward(same, 0.5)
        np.testing.assert_array_equal(one.attached, message.attached)
        np.testing.assert_array_equal(one.context, message.context)
        driven.reward(decision, 0.5)
        sums = feeds.extended(
            driven, sums, 1, one.context[None], np.array([one.reward]), [one.round],
            one.attached[None],
        )  # fmt: skip
        feeds.take_sums(driven, {1: [sums]})
        queries = rng.normal(size=(3, D))
        a, b = driven.predict(queries, learn=False), plain.predict(queries, learn=False)
        np.testing.assert_allclose(a.mean, b.mean, rtol=1e-12, atol=1e-12)
        if decision.id % 3 == 0:
            for agent in (driven, plain):
                agent.adopt(agent.learning_task().run())
    assert driven.known == plain.known == 7


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("similarity", ["evidence", "given"])
def test_a_stored_result_is_adopted_to_the_bit_without_sampling(base, similarity, rng, monkeypatch):
    more = {} if similarity == "evidence" else {"similarity": cb.similarity.Same()}
    live, replayed = agent_of(base, **more), agent_of(base, **more)
    for round_ in range(3):
        for agent in (live, replayed):
            seeded = np.random.default_rng(round_)
            X, y, rounds, attached = observed(seeded, agent, 30, 1 + 30 * round_)
            agent.hear(0, X, y, rounds=rounds, attached=attached)
            agent.hear(2, X, -y, rounds=rounds, attached=attached)
        task = live.learning_task()
        result = task.run()
        live.adopt(result)
        data = feeds.stored_result(task, result)
        with monkeypatch.context() as patched:
            patched.setattr(type(task), "run", None)
            again = replayed.learning_task()
            replayed.adopt(feeds.restored_result(replayed, again, data))
        assert (similarity == "evidence") == bool(data)
        assert live.to_bytes() == replayed.to_bytes()


def test_rounds_that_were_used_are_not_used_again():
    agent = agent_of()
    feeds.skip_to(agent, 41)
    assert agent.decide(np.eye(D), learn=False).id == 42
    feeds.skip_to(agent, 7)
    assert agent.decide(np.eye(D), learn=False).id == 43


def test_an_observation_of_no_open_decision_is_refused():
    with pytest.raises(cb.errors.LocalProtocolError, match="decision 1 is not open"):
        feeds.observation(agent_of(), 1, 0.0)


@pytest.mark.parametrize("forget", FORGET, ids=["never", "exponential", "window"])
def test_stored_sums_go_on_to_the_bit(forget, rng):
    agent = agent_of(forget=forget)
    data = observed(rng, agent, 250)
    whole = in_blocks(agent, 0, data, [250])
    half = in_blocks(agent, 0, data, [130])
    again = feeds.restored_sums(agent, 0, feeds.stored_sums(half))
    assert again.digest == half.digest
    rest = [rows[130:] for rows in data]
    assert feeds.extended(agent, again, 0, *rest).digest == whole.digest


def test_stored_sums_that_no_observations_have_are_refused(rng):
    agent = agent_of()
    sums = in_blocks(agent, 0, observed(rng, agent, 130), [130])
    sums.base.sums[0, 2] *= 1e6  # b without the q that goes with it
    with pytest.raises(cb.errors.StateError, match="stored sums make no sense"):
        feeds.restored_sums(agent, 0, feeds.stored_sums(sums))
    with pytest.raises(cb.errors.StateError, match="no stored agent"):
        feeds.restored_sums(agent, 0, b"nothing")
