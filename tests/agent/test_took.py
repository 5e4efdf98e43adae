"""Decisions that somebody else took: their rewards are learnt and told as any other."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import CoopBanditsError, LocalProtocolError, ParameterError
from worlds import eager

NETWORK, D = cb.Network.path(3), 2
LINEAR = cb.kernels.Linear()
BOX = cb.Box([-1.0, 0.0], [1.0, 2.0], effort=0.2)
POLICIES = {
    "exact": eager(),
    "sums": eager(features=cb.features.Fourier(8)),
    "evidence": eager(kernel=LINEAR, similarity=cb.similarity.Evidence()),
    "embedding": eager(kernel=LINEAR, similarity=cb.similarity.MeanEmbedding(sample="offered")),
    "frozen": eager(kernel=LINEAR, similarity=cb.similarity.MeanEmbedding(refresh="frozen")),
    "digests": eager(kernel=LINEAR, say=cb.say.Sums()),
    "held back": eager(say=cb.say.WhenUncertain(1e-9)),
    "window": eager(forget=cb.forget.Window(3)),
}


@pytest.mark.parametrize("name", POLICIES)
def test_what_was_taken_is_learnt_and_told_as_an_own_decision(name, rng):
    """An agent that takes what another decided knows and believes the same."""
    policy = POLICIES[name]
    agent, other = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
    for t in range(6):
        offered, y = (BOX if t == 3 else rng.normal(size=(3, D))), rng.normal()
        decision = agent.decide(offered)
        taken = other.took(offered, decision.context if t == 3 else decision.index)
        assert (taken.id, taken.index) == (decision.id, decision.index)
        np.testing.assert_array_equal(taken.context, decision.context)
        assert (taken.mean, taken.std, taken.width, taken.scores) == (None,) * 4
        if t != 2:
            told = [m.to_bytes() for m in agent.reward(decision, y)]
            assert [m.to_bytes() for m in other.reward(taken, y)] == told
    assert (agent.known, agent.awaiting) == (other.known, other.awaiting)
    queries = rng.normal(size=(4, D))
    mine, others = agent.predict(queries), other.predict(queries)
    np.testing.assert_allclose(mine.mean, others.mean, atol=1e-12)
    np.testing.assert_allclose(mine.std, others.std, atol=1e-12)


@pytest.mark.parametrize("name", POLICIES)
def test_it_uses_no_random_number_and_learns_nothing(name, rng):
    policy = POLICIES[name]
    agent, other = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
    for _ in range(3):
        agent.took(rng.normal(size=(3, D)), 0)
    assert agent.known == 0
    offered = rng.normal(size=(40, D))
    assert agent.decide(offered).index == other.decide(offered).index  # the same first draw


def test_the_probability_is_what_is_given(rng):
    agent = POLICIES["exact"].agent(1, NETWORK)
    offered = rng.normal(size=(3, D))
    assert agent.took(offered, 0).propensity is None
    for share in (0.25, 1.0, np.float64(0.5)):
        assert agent.took(offered, np.int64(2), propensity=share).propensity == share


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    ("offered", "index", "propensity", "error", "complaint"),
    [
        (np.eye(D), 2, None, LocalProtocolError, "took index 2 of 2 offered actions"),
        (np.eye(D), -1, None, LocalProtocolError, "took index -1"),
        (np.eye(D), 0.0, None, LocalProtocolError, "took index 0.0"),
        (np.eye(D), True, None, LocalProtocolError, "took index True"),
        (np.eye(D), None, None, LocalProtocolError, "took index None"),
        (np.eye(D), "0", None, LocalProtocolError, "took index '0'"),
        (np.eye(D), np.nan, None, LocalProtocolError, "took index nan"),
        (np.eye(D), [0], None, LocalProtocolError, "took index"),
        (np.eye(3), 0, None, CoopBanditsError, "contexts of 2 numbers"),
        ([[np.nan, 1.0]], 0, None, CoopBanditsError, "must be finite"),
        ("ab", 0, None, CoopBanditsError, "array of numbers"),
        (BOX, 0, None, CoopBanditsError, "point that was taken has shape"),
        (BOX, "north", None, CoopBanditsError, "point that was taken must be"),
        (BOX, [0.0, np.inf], None, CoopBanditsError, "must be finite"),
        (BOX, [0.0, -1.0], None, LocalProtocolError, "is not in"),
        (BOX, [0.0, 0.0, 0.0], None, LocalProtocolError, "is not in"),
        (np.eye(D), 0, 0.0, ParameterError, "propensity must be"),
        (np.eye(D), 0, 1.5, ParameterError, "propensity must be in"),
        (np.eye(D), 0, -0.5, ParameterError, "propensity must be"),
        (np.eye(D), 0, np.nan, CoopBanditsError, "propensity must be finite"),
        (np.eye(D), 0, "often", ParameterError, "propensity must be a number"),
    ],
    ids=range(21),
)
def test_what_cannot_have_been_taken_is_refused(name, offered, index, propensity, error, complaint):
    agent = POLICIES[name].agent(1, NETWORK)
    agent.reward(agent.took(np.eye(D), 0), 1.0)
    before = agent.to_bytes()
    with pytest.raises(error, match=complaint):
        agent.took(offered, index, propensity=propensity)
    assert agent.to_bytes() == before
    assert agent.took(np.eye(D), 1).id == 2


@pytest.mark.parametrize("name", POLICIES)
def test_decisions_expire_once_so_many_more_were_taken(name, rng):
    policy = POLICIES[name]
    agent = policy.agent(1, NETWORK, expire=3)
    for t in range(1, 8):
        agent.took(rng.normal(size=(2, D)), 0)
        assert agent.awaiting == tuple(range(max(1, t - 2), t + 1))
        agent = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
    before = agent.to_bytes()
    with pytest.raises(LocalProtocolError, match="or has expired: 3 more were taken since"):
        agent.reward(4, 1.0)
    assert agent.to_bytes() == before
    agent.reward(5, 1.0)
    assert (agent.known, agent.awaiting) == (1, (6, 7))


@pytest.mark.parametrize("expire", [0, -1, 1.5, "ten", True, np.nan, None])
def test_what_is_no_number_of_decisions_is_refused(expire):
    with pytest.raises(ParameterError, match="expire must be a whole number"):
        cb.Agent(POLICIES["exact"], NETWORK, 1, expire=expire)
