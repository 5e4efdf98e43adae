from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits import features
from coopbandits.agent.factor_beliefs import FactorBeliefs
from coopbandits.agent.statistics_beliefs import StatisticsBeliefs
from coopbandits.policy import plan
from coopbandits.protocol import Observation
from differences import slopes_are_those_of_differences
from reference import formulas

NETWORK = cb.Network.path(3)
KERNELS = [
    cb.kernels.RBF(0.5),
    cb.kernels.Matern(nu=0.5),
    cb.kernels.Matern(nu=1.5, lengthscale=(0.5, 1.0)),
    cb.kernels.Matern(nu=3.1),
    cb.kernels.Linear(),
    cb.kernels.RBF() * cb.kernels.Linear() + 0.3 * cb.kernels.Matern(nu=2.5),
]


def policy_of(kernel, **changes):
    given = {"similarity": cb.similarity.Laplacian(rho=1.0), "ttl": 2, "ridge": 0.3, **changes}
    return cb.EagerKernelUCB(kernel=kernel, **given)


def observations(rng, count=9, dim=2):
    return [
        Observation(int(rng.integers(3)), 1, rng.normal(size=dim), float(rng.normal()))
        for _ in range(count)
    ]


def surfaces(policy, seen, learnt, attached=()):
    """The beliefs of agent 1, the first `learnt` observations learnt before the rest."""
    beliefs = FactorBeliefs(policy, plan(policy, NETWORK), 1)
    beliefs.learn(seen[:learnt])
    beliefs.learn(seen[learnt:])
    return beliefs.surface(np.array(attached))


def summed(policy, seen):
    """The beliefs of agent 1 from statistics."""
    beliefs = StatisticsBeliefs(policy, plan(policy, NETWORK), 1, 2)
    beliefs.learn(seen)
    return beliefs


@pytest.mark.parametrize("learnt", [0, 4, 9])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_beliefs_are_the_papers_and_slopes_those_of_differences(rng, kernel, learnt):
    policy, seen, X = policy_of(kernel), observations(rng), rng.normal(size=(6, 2))
    surface = surfaces(policy, seen, learnt)
    slopes_are_those_of_differences(surface, X)
    joint = plan(policy, NETWORK).kernel
    u, C, y = (np.array([getattr(o, k) for o in seen]) for k in ("origin", "context", "reward"))
    me = np.ones(6, dtype=int)
    mean, variance = formulas.posterior(
        joint(u, C, u, C), joint(u, C, me, X), joint.diagonal(me, X), y, 0.3
    )
    found = surface.believe(X)
    np.testing.assert_allclose(found[0], mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found[1], np.sqrt(variance), rtol=1e-8, atol=1e-10)


def test_slopes_pass_the_panels_of_a_long_factor(rng):
    surface = surfaces(policy_of(cb.kernels.RBF()), observations(rng, 300), 290)
    slopes_are_those_of_differences(surface, rng.normal(size=(4, 2)))


def test_a_sum_of_kernels_and_frozen_embeddings_have_slopes_too(rng):
    seen, X = observations(rng), rng.normal(size=(5, 2))
    slopes_are_those_of_differences(
        surfaces(policy_of(cb.kernels.RBF(), compose="sum"), seen, 4), X
    )
    frozen = cb.similarity.MeanEmbedding(refresh="frozen", features=features.Fourier(8))
    policy = policy_of(cb.kernels.RBF(), similarity=frozen)
    seen = [replace(one, attached=rng.normal(size=8)) for one in seen]
    slopes_are_those_of_differences(surfaces(policy, seen, 4, rng.normal(size=8)), X)


@pytest.mark.parametrize(
    "basis",
    [
        features.Fourier(16),
        features.Nystrom(np.random.default_rng(0).normal(size=(7, 2))),
        features.Leading(features.Fourier(16), 6),
    ],
    ids=lambda basis: type(basis).__name__,
)
def test_slopes_of_sums_are_those_of_differences(rng, basis):
    policy = policy_of(cb.kernels.Matern(nu=2.5), features=basis)
    beliefs = summed(policy, observations(rng))
    surface, X = beliefs.surface(np.empty(0)), rng.normal(size=(6, 2))
    slopes_are_those_of_differences(surface, X)
    belief = beliefs.predict(X, np.empty(0))
    np.testing.assert_allclose(surface.believe(X), (belief.mean, belief.std), rtol=1e-8)


def test_exact_features_and_the_linear_kernel_have_one_surface(rng):
    seen, X = observations(rng), rng.normal(size=(6, 2))
    policy = policy_of(cb.kernels.Linear(0.7))
    beliefs = summed(replace(policy, features=features.Exact()), seen)
    exact, sums = surfaces(policy, seen, 4).slopes(X), beliefs.surface(np.empty(0)).slopes(X)
    for name in ("mean", "std", "mean_by_x", "std_by_x"):
        np.testing.assert_allclose(getattr(exact, name), getattr(sums, name), rtol=1e-7, atol=1e-9)


def test_where_nothing_is_left_to_know_sigma_has_no_slope():
    # a linear function along one direction, known to the last digit at x = 0
    policy, known = policy_of(cb.kernels.Linear()), Observation(1, 1, np.array([1.0, 0.0]), 2.0)
    at = surfaces(policy, [known], 1).slopes(np.zeros((1, 2)))
    assert at.std[0] == 0
    assert (at.std_by_x == 0).all()
