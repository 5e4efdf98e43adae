"""Agents with a constant of their own, on continua and where they draw."""

from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent.continuum import best_point
from differences import slopes_are_those_of_differences

NETWORK = cb.Network.path(3)
POLICIES = {
    "exact": cb.EagerKernelUCB(cb.kernels.RBF(0.6), similarity=cb.similarity.Same(), intercept=3.0),
    "exact, linear": cb.EagerKernelUCB(
        cb.kernels.Linear(), similarity=cb.similarity.Laplacian(1.0), intercept=3.0
    ),
    "fourier": cb.EagerKernelUCB(
        cb.kernels.RBF(0.6),
        similarity=cb.similarity.Same(),
        features=cb.features.Fourier(24),
        intercept=3.0,
    ),
    "nystrom": cb.EagerKernelUCB(
        cb.kernels.RBF(0.6),
        similarity=cb.similarity.Same(),
        features=cb.features.Nystrom(np.random.default_rng(1).normal(size=(9, 2))),
        intercept=3.0,
    ),
}


def taught(policy, shift=5.0, n=14):
    """Agent 1 of a path, who has heard of all three."""
    rng, agent = np.random.default_rng(2), policy.agent(1, NETWORK)
    for i in range(n):
        x = rng.uniform(-1, 1, size=2)
        agent.observe(x, shift * (1 + i % 3) + np.sin(3 * x[0]) - x[1] ** 2, origin=i % 3)
    agent.predict(np.zeros((1, 2)))
    return agent


@pytest.mark.parametrize("name", POLICIES)
def test_surfaces_believe_what_is_predicted_and_their_slopes_are_differences(name):
    agent = taught(POLICIES[name])
    surface = agent._beliefs.surface(np.empty(0))
    X = np.random.default_rng(3).uniform(-1, 1, size=(6, 2))
    mean, std = surface.believe(X)
    predicted = agent.predict(X)
    np.testing.assert_allclose(mean, predicted.mean, atol=1e-9)
    np.testing.assert_allclose(std, predicted.std, atol=1e-8)
    slopes_are_those_of_differences(surface, X, atol=1e-5)


@pytest.mark.parametrize("name", POLICIES)
def test_functions_that_are_drawn_have_the_posteriors_mean_and_variance(name):
    agent = taught(POLICIES[name])
    rng, X = np.random.default_rng(4), np.array([[0.2, -0.3], [0.9, 0.8]])
    draws = np.array([agent._beliefs.draw(2, 1.0, rng)(X) for _ in range(1500)])
    predicted = agent.predict(X)
    error = predicted.std / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - predicted.mean) < 5 * error + 1e-9).all()
    np.testing.assert_allclose(draws.std(axis=0), predicted.std, rtol=0.12)


@pytest.mark.parametrize("name", POLICIES)
def test_a_constant_moves_the_best_point_of_a_continuum_by_nothing_to_speak_of(name):
    policy, box = replace(POLICIES[name], intercept=30.0), cb.Box([-1, -1], [1, 1])
    found = []
    for shift in (0.0, 50.0):
        agent = taught(policy, shift)
        rng = np.random.default_rng(0)
        found.append(best_point(box, agent._beliefs, np.empty(0), policy.act, 0.1, rng))
    gap = agent.predict(np.array(found)).mean
    assert abs(gap[0] - gap[1]) < 0.05


@pytest.mark.parametrize("make", [cb.EagerKernelUCB, cb.EagerKernelTS])
def test_continua_are_played_with_an_intercept(make):
    problem = cb.problems.continuum(NETWORK, cb.Box([0.0], [1.0]), seed=0)

    policy = make(problem.kernel, similarity=problem.similarity, intercept=5.0, eta=0.3)
    for one in (policy, replace(policy, features=cb.features.Fourier(32))):
        run = cb.play(problem, one, rounds=12, seed=1)
        assert run.regret[-4:].mean() < run.regret[:4].mean()
