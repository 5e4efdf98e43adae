"""What a decision says of all actions that were offered."""

import dataclasses

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.act import AtRandom, Explore, Sample, UpperBound
from coopbandits.errors import LocalProtocolError
from reference import formulas

ALONE = cb.Network.path(1)
RBF = cb.kernels.RBF()


@pytest.mark.parametrize("act", [UpperBound(), Sample(), Sample(4), Explore(share=0.5)], ids=repr)
def test_scores_are_the_papers_posterior_at_every_action(rng, act):
    policy = dataclasses.replace(cb.KernelUCB(kernel=RBF, eta=0.8, ridge=0.3), act=act)
    agent, X, y = policy.agent(0, ALONE), rng.normal(size=(6, 2)), rng.normal(size=6)
    for x, reward in zip(X, y, strict=True):
        agent.observe(x, reward)
    offered = rng.normal(size=(5, 2))
    mean, variance = formulas.posterior(RBF(X, X), RBF(X, offered), np.ones(5), y, 0.3)
    for _ in range(6):  # explored or not
        decision = agent.decide(offered)
        scores, at = decision.scores, decision.index
        np.testing.assert_allclose(scores.mean, mean, atol=1e-10)
        np.testing.assert_allclose(scores.std, np.sqrt(variance), atol=1e-10)
        np.testing.assert_allclose(scores.upper, mean + 0.8 / np.sqrt(0.3) * scores.std)
        assert (decision.mean, decision.std) == (scores.mean[at], scores.std[at])
        assert not any(a.flags.writeable for a in (scores.mean, scores.std, scores.upper))
    if act == UpperBound():
        assert decision.index == np.argmax(scores.upper)


def test_an_agent_that_knows_nothing_tells_its_prior(rng):
    scores = (
        cb.KernelUCB(kernel=RBF, eta=2.0).agent(0, ALONE).decide(rng.normal(size=(3, 2))).scores
    )
    np.testing.assert_array_equal(scores.mean, 0.0)
    np.testing.assert_array_equal(scores.std, 1.0)
    np.testing.assert_array_equal(scores.upper, 2.0)


def test_where_no_posterior_is_asked_there_are_no_scores(rng):
    policy = dataclasses.replace(cb.LinUCB(), act=AtRandom())
    assert policy.agent(0, ALONE).decide(rng.normal(size=(3, 2))).scores is None
    assert cb.LinUCB().agent(0, ALONE).decide(cb.Box([0.0], [1.0])).scores is None


def test_a_decision_takes_its_reward_as_its_id_does(rng):
    one, two = (cb.LinUCB().agent(0, ALONE, seed=3) for _ in range(2))
    offered = rng.normal(size=(3, 2))
    one.reward(one.decide(offered), 0.7)
    two.reward(two.decide(offered).id, 0.7)
    assert one.to_bytes() == two.to_bytes()
    again = one.decide(offered)
    one.reward(again, 1.0)
    with pytest.raises(LocalProtocolError, match="decision 2 has its reward already"):
        one.reward(again, 1.0)
