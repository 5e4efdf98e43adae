"""SW-UCB: the literal algorithm's decisions, LinUCB with a window of all rounds, and forgetting."""

import math

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.baselines.sliding_window_lin_ucb import WindowSums
from coopbandits.errors import InputError
from reference import forgetting
from worlds import NETWORKS, assert_same_fields, ragged, world_of


@pytest.mark.parametrize("name", ["path", "two parts", "directed"])
@pytest.mark.parametrize("window", [1, 4, 30])
@pytest.mark.parametrize("settings", [{"eta": 0.4}, {"norm": 0.5, "noise": 0.2, "delta": 0.1}])
def test_all_agents_take_the_literal_algorithms_decisions(name, window, settings):
    network, T = NETWORKS[name], 20
    problem = ragged(network, rounds=T)
    algorithm = cb.SlidingWindowLinUCB(window=window, ridge=0.6, **settings)
    run = cb.play(problem, algorithm, rounds=T, seed=2)
    beta = 0.4
    if "eta" not in settings:
        beta = 0.2 * math.sqrt(3 * math.log((1 + window / 0.6) / 0.1)) + math.sqrt(0.6) * 0.5
    for v in range(len(network)):
        expected = forgetting.sw_ucb(
            world_of(problem, 2), v, 3, window=window, ridge=0.6, beta=beta, rounds=T, seed=2
        )
        np.testing.assert_array_equal(run.actions[:, v], expected)


def test_a_window_of_all_rounds_is_lin_ucb():
    problem = cb.problems.clustered_linear(NETWORKS["grid"], dim=4, noise=0.3)
    sliding = cb.SlidingWindowLinUCB(window=50, ridge=0.5, eta=0.3)
    one = cb.play(problem, sliding, rounds=50, seed=1)
    two = cb.play(problem, cb.LinUCB(eta=0.3, ridge=0.5), rounds=50, seed=1)
    assert_same_fields(one, two, but=("engine", "propensities"))


def test_it_is_lin_ucb_that_forgets_by_the_same_window():
    network = cb.Network.from_edges([], agents=6)
    problem = cb.problems.changing(network, kind="jump", at=21, dim=4, noise=0.3)
    sliding = cb.SlidingWindowLinUCB(window=7, ridge=0.5, eta=0.3)
    forgets = cb.LinUCB(eta=0.3, ridge=0.5, forget=cb.forget.Window(rounds=7))
    one, two = (cb.play(problem, policy, rounds=50, seed=1) for policy in (sliding, forgets))
    assert_same_fields(one, two, but=("engine", "propensities"))


def test_what_left_the_window_changes_nothing():
    # two pasts that differ in their first ten rounds alone: sums agree once these have dropped out
    rng = np.random.default_rng(0)
    one, two = WindowSums(3, 2, 5), WindowSums(3, 2, 5)
    for t in range(30):
        X, y = rng.normal(size=(3, 2)), rng.normal(size=3)
        other = rng.normal(size=(3, 2)) if t < 10 else X
        one.learn(X, y)
        two.learn(other, y)
        apart = not np.allclose(one.S, two.S, atol=1e-12)
        assert apart == (t < 14)


def test_sums_of_a_long_run_are_those_of_the_last_window():
    rng, w, d = np.random.default_rng(0), 7, 3
    sums, seen = WindowSums(2, d, w), []
    for _ in range(1000):
        X, y = 100.0 * rng.normal(size=(2, d)), rng.normal(size=2)
        sums.learn(X, y)
        seen = [*seen, (X, y)][-w:]
        S = sum(X[:, :, None] * X[:, None, :] for X, _ in seen)
        b = sum(X * y[:, None] for X, y in seen)
        # each of at most w subtractions rounds at the size of what it subtracts
        np.testing.assert_allclose(sums.S, S, atol=1e-15 * w * 1e6)
        np.testing.assert_allclose(sums.b, b, atol=1e-15 * w * 1e4)


def test_it_recovers_from_a_jump_and_lin_ucb_does_not():
    network = cb.Network.from_edges([], agents=8)
    problem = cb.problems.changing(network, kind="jump", at=151, dim=5, noise=0.1, seed=0)
    after = {}
    for policy in (cb.SlidingWindowLinUCB(window=50, eta=0.3), cb.LinUCB(eta=0.3)):
        run = cb.play(problem, policy, rounds=300, seed=0)
        after[policy.name] = run.regret[150:].sum(axis=0).mean()
    assert after["SW-LinUCB"] < 0.5 * after["LinUCB"]


def test_its_radius_covers_what_does_not_change_at_its_rate():
    rng, d, w, delta, R, ridge = np.random.default_rng(1), 3, 20, 0.2, 0.5, 1.0
    algorithm = cb.SlidingWindowLinUCB(window=w, noise=R, delta=delta, ridge=ridge)
    beta, missed, trials = algorithm.radius(w, d), 0, 400
    for _ in range(trials):
        theta = rng.normal(size=d)
        theta /= np.linalg.norm(theta)
        X = rng.normal(size=(w, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        A = ridge * np.eye(d) + X.T @ X
        gap = np.linalg.solve(A, X.T @ (X @ theta + R * rng.normal(size=w))) - theta
        missed += gap @ A @ gap > beta**2  # for some x
    assert missed <= delta * trials


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": 0}, "window must be a whole number >= 1, got 0"),
        ({"window": 2.5}, "window must be a whole number >= 1, got 2.5"),
        ({"ridge": 0.0}, "ridge must be above 0"),
        ({"eta": -1.0}, "eta must be >= 0"),
        ({"delta": 1.0}, "delta must be a probability below 1"),
        ({"noise": -0.1}, "noise must be >= 0"),
        ({"norm": float("nan")}, "norm must be finite"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        cb.SlidingWindowLinUCB(**{"window": 5, **change})


def test_a_window_that_does_not_fit_into_memory_is_refused():
    problem = cb.problems.clustered_linear(cb.Network.path(3), dim=2)
    with pytest.raises(InputError, match="above memory_limit=1e"):
        cb.play(problem, cb.SlidingWindowLinUCB(window=10**6), rounds=2000, memory_limit=1e5)
    # a window is never longer than the run
    cb.play(problem, cb.SlidingWindowLinUCB(window=2**31), rounds=5)
