"""D-LinUCB: the literal algorithm's decisions, LinUCB without a discount, and forgetting."""

import math

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.baselines.discounted_lin_ucb import DiscountedSums
from coopbandits.errors import InputError
from reference import forgetting
from worlds import NETWORKS, assert_same_fields, ragged, world_of


@pytest.mark.parametrize("name", ["path", "two parts", "directed"])
@pytest.mark.parametrize("discount", [0.5, 0.95, 1.0])
@pytest.mark.parametrize("settings", [{"eta": 0.4}, {"norm": 0.5, "noise": 0.2, "delta": 0.1}])
def test_all_agents_take_the_literal_algorithms_decisions(name, discount, settings):
    network, T = NETWORKS[name], 20
    problem = ragged(network, rounds=T)
    algorithm = cb.DiscountedLinUCB(discount=discount, ridge=0.6, **settings)
    run = cb.play(problem, algorithm, rounds=T, seed=2)

    def beta(t):
        if "eta" in settings:
            return 0.4
        weights = sum(discount ** (2 * age) for age in range(t - 1))
        log = 2 * math.log(1 / 0.1) + 3 * math.log(1 + weights / (0.6 * 3))
        return math.sqrt(0.6) * 0.5 + 0.2 * math.sqrt(log)

    for v in range(len(network)):
        expected = forgetting.d_lin_ucb(
            world_of(problem, 2), v, 3, discount=discount, ridge=0.6, beta=beta, rounds=T, seed=2
        )
        np.testing.assert_array_equal(run.actions[:, v], expected)


def test_without_a_discount_it_is_lin_ucb():
    problem = cb.problems.clustered_linear(NETWORKS["grid"], dim=4, noise=0.3)
    faded = cb.DiscountedLinUCB(discount=1.0, ridge=0.5, eta=0.3)
    one = cb.play(problem, faded, rounds=50, seed=1)
    two = cb.play(problem, cb.LinUCB(eta=0.3, ridge=0.5), rounds=50, seed=1)
    assert_same_fields(one, two, but=("engine", "propensities"))


def test_the_deviation_is_that_of_the_estimates_noise_and_a_prior():
    # θ̂ = V⁻¹Σγⁿxy: with noise of variance 1 and a prior term of variance λ it is √(xᵀV⁻¹ṼV⁻¹x)
    rng, d, n, gamma, ridge = np.random.default_rng(0), 3, 12, 0.8, 0.7
    X, queries = rng.normal(size=(n, d)), rng.normal(size=(5, d))
    sums = DiscountedSums(1, d, gamma, ridge)
    for x in X:
        sums.learn(x[None], np.zeros(1))
    weights = gamma ** np.arange(n)[::-1]
    V = ridge * np.eye(d) + (weights[:, None] * X).T @ X
    solved = np.linalg.solve(V, queries.T).T
    by_noise = np.linalg.norm(solved @ (weights[:, None] * X).T, axis=1) ** 2
    by_prior = ridge * np.linalg.norm(solved, axis=1) ** 2
    found = sums.variance(np.zeros(5, dtype=int), queries, solved)
    np.testing.assert_allclose(found, by_noise + by_prior, rtol=1e-12)


def test_it_recovers_from_a_jump_and_lin_ucb_does_not():
    network = cb.Network.from_edges([], agents=8)
    problem = cb.problems.changing(network, kind="jump", at=151, dim=5, noise=0.1, seed=0)
    after = {}
    for policy in (cb.DiscountedLinUCB(discount=0.95, eta=0.3), cb.LinUCB(eta=0.3)):
        run = cb.play(problem, policy, rounds=300, seed=0)
        after[policy.name] = run.regret[150:].sum(axis=0).mean()
    assert after["D-LinUCB"] < 0.5 * after["LinUCB"]


def test_its_radius_covers_what_does_not_change_at_its_rate():
    rng, d, n, gamma, delta, R, ridge = np.random.default_rng(1), 3, 30, 0.9, 0.2, 0.5, 1.0
    algorithm = cb.DiscountedLinUCB(discount=gamma, noise=R, delta=delta, ridge=ridge)
    beta, missed, trials = algorithm.radius(n, d), 0, 400
    weights = gamma ** np.arange(n)[::-1]
    for _ in range(trials):
        theta = rng.normal(size=d)
        theta /= np.linalg.norm(theta)
        X = rng.normal(size=(n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        V = ridge * np.eye(d) + (weights[:, None] * X).T @ X
        tilde = ridge * np.eye(d) + (weights[:, None] ** 2 * X).T @ X
        y = X @ theta + R * rng.normal(size=n)
        pull = V @ (np.linalg.solve(V, X.T @ (weights * y)) - theta)
        missed += pull @ np.linalg.solve(tilde, pull) > beta**2  # for some x
    assert missed <= delta * trials


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"discount": 0.0}, "discount must be above 0 and at most 1, got 0.0"),
        ({"discount": 1.1}, "discount must be above 0 and at most 1, got 1.1"),
        ({"discount": "half"}, "discount must be a number, got 'half'"),
        ({"ridge": 0.0}, "ridge must be above 0"),
        ({"eta": -1.0}, "eta must be >= 0"),
        ({"delta": 1.0}, "delta must be a probability below 1"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        cb.DiscountedLinUCB(**{"discount": 0.9, **change})
