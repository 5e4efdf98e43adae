"""GoB.Lin: its pseudocode, and the regression that it is."""

import math

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.gp.posterior import Posterior
from coopbandits.policy import plan
from lockstep_engines import all_engines
from reference import social
from worlds import NETWORKS, ragged, world_of

ROUNDS = 6


def experiments(alpha):
    return lambda spread, size, t: alpha * math.sqrt(spread * math.log(t + 1))


def theorem(norm, noise, delta):
    return lambda spread, size, t: (
        math.sqrt(spread) * (noise * math.sqrt(math.log(size / delta)) + norm)
    )


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize(
    ("name", "seed"), [("path", 0), ("star", 1), ("two parts", 2), ("directed", 3)]
)
def test_goblin_takes_the_printed_algorithms_decisions(name, lag, seed):
    problem = ragged(NETWORKS[name], seed, rounds=ROUNDS)
    expected = social.goblin(
        world_of(problem, seed),
        NETWORKS[name].adjacency,
        bonus=experiments(0.6),
        rounds=ROUNDS,
        seed=seed,
        lag=lag,
    )
    run = all_engines(problem, cb.GoBLin(alpha=0.6, lag=lag), seed, rounds=ROUNDS)
    np.testing.assert_array_equal(run.actions, expected)


def test_the_width_of_the_theorem_is_self_normalised_with_the_root_of_delta():
    network, seed, delta = NETWORKS["grid"], 2, 0.1
    problem = ragged(network, seed, rounds=ROUNDS)
    expected = social.goblin(
        world_of(problem, seed),
        network.adjacency,
        bonus=theorem(0.5, 0.3, delta),
        rounds=ROUNDS,
        seed=seed,
        lag=0,
    )
    width = cb.width.SelfNormalised(norm=0.5, noise=0.3, delta=math.sqrt(delta))
    run = cb.play(problem, cb.GoBLin(width=width), rounds=ROUNDS, seed=seed)
    np.testing.assert_array_equal(run.actions, expected)


@pytest.mark.parametrize("name", ["path", "grid", "two parts"])
def test_its_mean_is_ridge_regression_that_pulls_neighbours_together(rng, name):
    # w minimises Σ(y − w_vᵀx)² + Σ‖w_v‖² + Σ‖w_v − w_u‖² over the edges (their equation 2)
    network = NETWORKS[name]
    V, d, n = len(network), 3, 25
    agents, X, y = rng.integers(V, size=n), rng.normal(size=(n, d)), rng.normal(size=n)
    rows, targets = [], []  # of one least-squares problem without a single kernel
    for v, x, value in zip(agents, X, y, strict=True):
        row = np.zeros((V, d))
        row[v] = x
        rows.append(row.ravel())
        targets.append(value)
    rows += list(np.eye(V * d))
    for i, j in network.edges:
        for k in range(d):
            row = np.zeros((V, d))
            row[i, k], row[j, k] = 1.0, -1.0
            rows.append(row.ravel())
    targets += [0.0] * (len(rows) - len(targets))
    w = np.linalg.lstsq(np.array(rows), np.array(targets), rcond=None)[0].reshape(V, d)
    posterior = Posterior(plan(cb.GoBLin(), network).kernel, 1.0)
    posterior.extend(agents, X, y)
    asked = rng.normal(size=(V, d))
    np.testing.assert_allclose(
        posterior.predict(np.arange(V), asked).mean, (w * asked).sum(axis=1), rtol=1e-9
    )


def test_agents_without_edges_play_linucb_with_its_width_each_on_its_own():
    # L = 0: what anybody else saw tells an agent nothing
    network = cb.Network.from_edges([], agents=4)
    problem = ragged(network, 3, rounds=ROUNDS)
    run = cb.play(problem, cb.GoBLin(alpha=0.7), rounds=ROUNDS, seed=3)
    alone = cb.LinUCB(width=cb.width.Logarithmic(0.7))
    np.testing.assert_array_equal(
        run.actions, cb.play(problem, alone, rounds=ROUNDS, seed=3).actions
    )


def test_everyone_tells_everyone():
    problem = ragged(NETWORKS["path"], rounds=4)
    run = cb.play(problem, cb.GoBLin(lag=1), rounds=4)
    np.testing.assert_array_equal(run.messages, [7 * 6] * 4)


def test_alpha_and_width_together_are_refused():
    with pytest.raises(ParameterError, match=r"alpha=0.5 is short for width=Logarithmic\(alpha\)"):
        cb.GoBLin(alpha=0.5, width=cb.width.Fixed(1.0))
    with pytest.raises(ParameterError, match="alpha must be >= 0"):
        cb.GoBLin(alpha=-1.0)
    with pytest.raises(ParameterError, match="lag must be 0 or 1"):
        cb.GoBLin(lag=2)


def test_a_run_in_turn_that_does_not_fit_is_told_of_the_lag():
    problem = cb.problems.clustered_linear(cb.Network.path(40))
    with pytest.raises(ParameterError, match="take lag=1, or play fewer rounds"):
        cb.play(problem, cb.GoBLin(), rounds=100, memory_limit=1e6)
