"""Choices that are left to chance: all engines and the literal twin know how likely they were."""

import dataclasses

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.act import AtRandom, Explore, FollowCentre, Sample, UpperBound
from coopbandits.features import Fourier, Nystrom
from lockstep_engines import KERNELS, all_engines, literal, similarity_of
from reference import algorithms
from worlds import NETWORKS, Recorded, neighbours_of, ragged, world_of

ROUNDS = 9
ACTS = {
    "upper bound": (UpperBound(), 0),
    "one draw": (Sample(), 1),
    "seven draws": (Sample(7), 7),
}


@pytest.mark.parametrize("share", [None, 0.0, 0.3])
@pytest.mark.parametrize(("name", "kernel"), [("directed", "linear"), ("grid", "rbf")])
@pytest.mark.parametrize("act", ACTS)
def test_every_engine_takes_the_literal_decisions_with_their_probabilities(
    act, name, kernel, share
):
    inner, samples = ACTS[act]
    network, (K_x, k_x) = NETWORKS[name], KERNELS[kernel]
    similarity, K_z = similarity_of(network, 1)
    problem = ragged(network, 1, rounds=ROUNDS)
    eager = cb.EagerKernelUCB(kernel=K_x, similarity=similarity, ttl=2, ridge=0.7, eta=0.9)
    policy = dataclasses.replace(eager, act=inner if share is None else Explore(inner, share))
    actions, sent, likely = algorithms.cooperate_and_explore(
        world_of(problem, 1),
        neighbours_of(network),
        lambda v, w: True,
        literal(k_x, K_z),
        ttl=2,
        ridge=0.7,
        width=algorithms.fixed(0.9),
        rounds=ROUNDS,
        seed=1,
        samples=samples,
        share=share,
    )
    run = all_engines(problem, policy, 1, rounds=ROUNDS)
    np.testing.assert_array_equal(run.actions, actions)
    np.testing.assert_allclose(run.propensities, likely, rtol=1e-14)
    assert run.messages.tolist() == sent
    assert not run.propensities.flags.writeable


@pytest.mark.parametrize("listen", [cb.listen.Everyone(lag=0), cb.listen.Centre()], ids=repr)
@pytest.mark.parametrize(
    "act",
    [UpperBound(), Sample(5), AtRandom(), FollowCentre(), FollowCentre(patience=2), Recorded()],
    ids=lambda act: repr(act).partition(" at ")[0],
)
def test_all_engines_explore_alike_around_any_act(act, listen):
    policy = cb.Policy(
        name="any",
        kernel=cb.kernels.Linear(),
        listen=listen,
        similarity=cb.similarity.Laplacian(1.0),
        width=cb.width.SelfNormalised(noise=0.3),
        act=act,
        ttl=3,
    )
    problem = ragged(NETWORKS["spiked star"], 5)
    plain = all_engines(problem, policy, seed=2, rounds=8)
    explored = all_engines(problem, policy.exploring(0.4), seed=2, rounds=8)
    assert (plain.actions != explored.actions).any()
    sizes = np.array([problem.round(t, 2).sizes for t in range(1, 9)])
    if not isinstance(act, Recorded):  # whose single draws do not tell
        assert (explored.propensities >= 0.4 / sizes - 1e-15).all()
        assert (explored.propensities <= 0.6 + 0.4 / sizes + 1e-15).all()
    if isinstance(act, AtRandom):
        np.testing.assert_allclose(explored.propensities, 1 / sizes, rtol=1e-15)


@pytest.mark.parametrize(
    "similarity",
    [cb.similarity.Laplacian(1.0), cb.similarity.Evidence()],
    ids=["given", "learnt"],
)
@pytest.mark.parametrize(
    "basis",
    [Nystrom(np.random.default_rng(3).normal(size=(6, 3))), Fourier(8)],
    ids=["nystrom", "fourier"],
)
@pytest.mark.parametrize("act", [UpperBound(), Sample(6)], ids=repr)
def test_agents_with_features_explore_as_the_engine_does(act, basis, similarity):
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.RBF(1.5), similarity=similarity, ttl=2, ridge=0.6, features=basis
    )
    policy = dataclasses.replace(policy, act=Explore(act, 0.2))
    problem = ragged(NETWORKS["two parts"], 3)
    one, two = (
        cb.play(problem, policy, rounds=6, seed=1, engine=engine, laziness=0.0)
        for engine in ("sparse", "messages")
    )
    np.testing.assert_array_equal(one.actions, two.actions)
    np.testing.assert_array_equal(one.propensities, two.propensities)
    assert np.isfinite(one.propensities).all()


@pytest.mark.parametrize("samples", [pytest.param(1, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize(
    "kernel", [cb.kernels.Linear(), pytest.param(cb.kernels.RBF(), marks=pytest.mark.slow)], ids=str
)
def test_a_learnt_similarity_explores_alike_in_every_engine(kernel, samples):
    policy = cb.EagerKernelTS(
        kernel=kernel,
        similarity=cb.similarity.Evidence(),
        ttl=2,
        ridge=0.8,
        eta=0.7,
        samples=samples,
    )
    all_engines(ragged(NETWORKS["directed"], 5), policy.exploring(0.25), seed=2, rounds=6)


def test_where_nobody_can_tell_there_is_no_number():
    problem = ragged(NETWORKS["grid"], 2)
    run = cb.play(problem, cb.CLUB(), rounds=5)  # an algorithm that is no row of four answers
    assert run.propensities.shape == (5, 9)
    assert np.isnan(run.propensities).all()
    links = cb.Links(away={2: (2, 4)})
    run = cb.play(problem, cb.LinUCB(), rounds=5, links=links)
    np.testing.assert_array_equal(np.isnan(run.propensities), run.away)
