"""How agents act: what is left to chance, and how likely each choice was."""

import dataclasses

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.act import AtRandom, Explore, FollowCentre, Sample, UpperBound
from coopbandits.errors import InputError, ParameterError, StateError
from coopbandits.policy.fingerprint import canonical
from worlds import NETWORKS, Recorded, ragged

FACTS = ("mean", "std")
ALONE = cb.Network.path(1)
BOX = cb.Box([0.0, 0.0], [1.0, 1.0])
RBF = cb.kernels.RBF()


def informed(policy, rng, seed=4, n=5):
    """An agent with n observations of its own."""
    agent = policy.agent(0, ALONE, seed=seed)
    for x, y in zip(rng.normal(size=(n, 2)), rng.normal(size=n), strict=True):
        agent.observe(x, y)
    return agent


class Fading(UpperBound):
    """An act of one's own, with slopes."""

    def score(self, mean, std, width):
        return mean + 0.5 * width * std


ACTS = [UpperBound(), Sample(20), AtRandom(), Fading()]


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("act", ACTS, ids=lambda act: type(act).__name__)
def test_actions_are_taken_as_often_as_their_propensities_say(rng, act, share):
    # E[1{a taken}/p(a)] = 1 for each action with p > 0, by the definition of a propensity
    policy = dataclasses.replace(cb.KernelUCB(kernel=RBF, eta=1.0), act=Explore(act, share))
    agent, offered, n = informed(policy, rng), rng.normal(size=(3, 2)), 3000
    chosen = [agent.decide(offered) for _ in range(n)]  # no reward comes: beliefs stay
    for a in range(3):
        taken = np.array([d.propensity for d in chosen if d.index == a])
        if share == 0 and not isinstance(act, AtRandom | Sample):
            assert (taken == 1.0).all()
        elif len(taken):
            spread = np.sqrt(np.mean(1 / taken) / n)
            assert abs((1 / taken).sum() / n - 1) < 5 * spread
    assert len({d.index for d in chosen}) == 3 or not share


def test_a_choice_without_chance_has_propensity_one(rng):
    agent = cb.KernelUCB(kernel=RBF).agent(0, ALONE)
    offered = rng.normal(size=(4, 2))
    first = agent.decide(offered)
    assert first.propensity == 0.25  # it knew nothing
    agent.reward(first, 1.0)
    assert agent.decide(offered).propensity == 1.0
    assert cb.Uniform().agent(0, ALONE).decide(offered).propensity == 0.25
    assert agent.decide(BOX).propensity is None


def test_a_follower_is_certain(rng):
    network, offered = cb.Network.complete(2), rng.normal(size=(4, 2))
    (first,) = network.centres(1).indices
    for share, expected in [(None, 1.0), (0.2, {0.85, 0.05})]:
        policy = cb.DistKernelUCB(kernel=RBF)
        policy = policy if share is None else policy.exploring(share)
        centre, follower = policy.agent(first, network), policy.agent(1 - first, network)
        (message,) = centre.reward(centre.decide(offered), 1.0)
        follower.receive(message)
        seen = {round(follower.decide(offered).propensity, 12) for _ in range(60)}
        assert seen == (expected if isinstance(expected, set) else {expected})
        assert follower.decide(offered).scores is None


def test_one_draw_does_not_tell_and_several_do(rng):
    offered = rng.normal(size=(4, 2))
    assert informed(cb.KernelTS(kernel=RBF), rng).decide(offered).propensity is None
    assert informed(cb.KernelTS(kernel=RBF).exploring(), rng).decide(offered).propensity is None
    agent = informed(cb.KernelTS(kernel=RBF, samples=8), rng)
    seen = {agent.decide(offered).propensity for _ in range(40)}
    assert len(seen) > 2
    assert seen <= {count / 8 for count in range(1, 9)}


def test_several_draws_take_actions_as_often_as_one_does(rng):
    # the law of the choice is the same: compare with what one draw took
    offered = rng.normal(size=(3, 2))
    X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    shares = []
    for samples in (1, 10):
        agent = cb.KernelTS(kernel=RBF, samples=samples).agent(0, ALONE, seed=4)
        for x, reward in zip(X, y, strict=True):
            agent.observe(x, reward)
        taken = [agent.decide(offered).index for _ in range(2000)]
        shares.append(np.bincount(taken, minlength=3) / 2000)
    assert shares[0].max() < 0.95
    assert np.abs(shares[0] - shares[1]).max() < 5 * np.sqrt(2 * 0.25 / 2000)


def test_one_draw_uses_the_random_numbers_that_it_always_did(rng):
    agent = informed(cb.KernelTS(kernel=RBF), rng)
    twin = cb.act.agent_rng(4, 0)
    for size in (3, 5):
        agent.decide(rng.normal(size=(size, 2)))
        twin.standard_normal(size)
        assert agent._rng.bit_generator.state == twin.bit_generator.state


@pytest.mark.parametrize("act", [UpperBound(), Sample(3), AtRandom(), FollowCentre()], ids=repr)
def test_exploring_on_a_continuum_takes_any_point_of_it(rng, act):
    plain = dataclasses.replace(cb.KernelUCB(kernel=cb.kernels.RBF(0.3)), act=act)
    agent, n = informed(plain.exploring(0.5), rng), 40
    chosen = [agent.decide(BOX) for _ in range(n)]
    assert all(one.propensity is None and one.scores is None for one in chosen)
    points = np.array([one.context for one in chosen])
    assert BOX.contains(points).all()
    assert len(np.unique(points.round(4), axis=0)) > 0.5 * n - 3 * np.sqrt(0.25 * n)
    if act == UpperBound():
        bounds = np.array([one.mean + one.width * one.std for one in chosen])
        best = np.isclose(bounds, bounds.max(), atol=1e-6)
        assert abs(best.mean() - 0.5) < 5 * np.sqrt(0.25 / n)  # the others are any points


def test_what_is_said_of_an_explored_point_is_said_of_that_point(rng):
    agent = informed(cb.KernelUCB(kernel=RBF).exploring(0.99), rng)
    for _ in range(5):
        point = agent.decide(BOX)
        [mean], [std] = (getattr(agent.decide(point.context[None]).scores, k) for k in FACTS)
        assert (point.mean, point.std) == pytest.approx((mean, std), abs=1e-12)


def test_a_run_on_a_continuum_explores_without_propensities():
    problem = cb.problems.continuum(cb.Network.path(3), cb.Box([0.0], [1.0]))
    policy = cb.KernelUCB(kernel=cb.kernels.RBF(0.3)).exploring(0.3)
    run = cb.play(problem, policy, rounds=4)
    assert run.propensities.shape == (4, 3)
    assert np.isnan(run.propensities).all()


def test_exploring_changes_the_act_and_nothing_else():
    policy = cb.LinUCB()
    exploring = policy.exploring(0.1)
    assert exploring.act == Explore(UpperBound(), 0.1)
    assert dataclasses.replace(exploring, act=policy.act).fingerprint == policy.fingerprint
    assert exploring.fingerprint != policy.fingerprint != policy.exploring(0.2).fingerprint


def test_old_fingerprints_stay():
    assert canonical(Sample()) == "Sample{}"
    assert "samples=int:3" in canonical(Sample(3))


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (1.0, r"share=1; expected a number in \[0, 1\)"),
        (1.5, r"share=1.5; expected a number in \[0, 1\)"),
        (-0.1, "share"),
        (np.nan, "share must be finite"),
        ("much", "share"),
        (True, "share"),
    ],
    ids=str,
)
def test_a_share_outside_of_its_range_is_refused(share, told):
    with pytest.raises(InputError, match=told):
        Explore(share=share)


@pytest.mark.parametrize("act", [None, "UpperBound", UpperBound, Explore()], ids=str)
def test_what_cannot_be_explored_around_is_refused(act):
    with pytest.raises(ParameterError, match="the act to explore around"):
        Explore(act)


@pytest.mark.parametrize("samples", [0, -1, 1.5, "8", True, 10**6], ids=str)
def test_numbers_of_draws_are_whole_and_positive(samples):
    with pytest.raises(ParameterError, match="samples"):
        cb.LinTS(samples=samples)


def test_draws_that_fit_into_no_memory_are_refused(monkeypatch):
    monkeypatch.setattr("coopbandits.arrays.LARGEST_ARRAY", 8 * 1000)
    policy = cb.LinTS(samples=200)
    with pytest.raises(ParameterError, match="take fewer samples"):
        cb.play(ragged(NETWORKS["grid"]), policy, rounds=3, engine="exact")


def test_an_act_of_ones_own_that_draws_cannot_tell_either(rng):
    policy = dataclasses.replace(cb.KernelTS(kernel=RBF), act=Recorded())
    assert informed(policy, rng).decide(rng.normal(size=(3, 2))).propensity is None


@pytest.mark.parametrize("act", [UpperBound(), Sample(4), AtRandom()], ids=repr)
def test_a_restored_agent_explores_as_the_stored_one_would_have(rng, act):
    plain = dataclasses.replace(cb.KernelUCB(kernel=RBF), act=act)
    policy = plain.exploring(0.5)
    agent, sets = informed(policy, rng), rng.normal(size=(12, 4, 2))
    agent.reward(agent.decide(sets[0]), 1.0)
    again = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=ALONE)
    for offered in sets:
        assert again.preview(offered) == agent.preview(offered)  # which uses nothing up
        one, two = agent.decide(offered), again.decide(offered)
        assert (one.index, one.propensity) == (two.index, two.propensity)
    with pytest.raises(StateError, match="act"):
        cb.Agent.from_bytes(agent.to_bytes(), policy=plain, network=ALONE)
