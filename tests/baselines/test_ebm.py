"""ebmUCB and ebmTS: their literal twin, the prior that they estimate, and what they refuse."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines import Simulation
from coopbandits.errors import ParameterError
from reference import hierarchical
from worlds import NETWORKS, ragged, world_of

SETTINGS = {"alpha": 0.6, "noise": 0.5, "variance": 0.7, "weight": 2.0, "steps": 2}


def player_of(algorithm, agents, dim, seed=0):
    contexts = np.ones((1, dim))
    return algorithm.player(
        Simulation(network=cb.Network.path(agents), contexts=contexts, rounds=5, seed=seed)
    )


def population(rng, agents, n, mu, Sigma, noise):
    """n observations of each agent, whose weights are drawn from N(μ, Σ)."""
    theta = rng.multivariate_normal(mu, Sigma, size=agents)
    X = rng.normal(size=(agents, n, len(mu)))
    return [(x, x @ w + noise * rng.normal(size=n)) for x, w in zip(X, theta, strict=True)]


def told(player, data):
    player.S[:] = [X.T @ X for X, _ in data]
    player.b[:] = [X.T @ y for X, y in data]
    return player


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("make", [cb.EbmUCB, cb.EbmTS])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_all_agents_take_the_literal_algorithms_decisions(make, lag, seed):
    problem = ragged(NETWORKS["grid"], seed)
    expected, mu, Sigma = hierarchical.ebm(
        world_of(problem, seed),
        9,
        draws=make is cb.EbmTS,
        rounds=12,
        seed=seed,
        lag=lag,
        **SETTINGS,
    )
    run = cb.play(problem, make(lag=lag, **SETTINGS), rounds=12, seed=seed)
    np.testing.assert_array_equal(run.actions, expected)
    player = make(lag=lag, **SETTINGS).player(
        Simulation(network=problem.network, contexts=np.ones((1, 3)), rounds=12, seed=seed)
    )
    for t in range(1, 13):
        player.play(t, problem.round(t, seed))
    np.testing.assert_allclose(player.mu, mu, atol=1e-10)
    np.testing.assert_allclose(player.Sigma, Sigma, atol=1e-10)
    rho = mu @ mu / (mu @ mu + np.trace(Sigma))
    assert player.similarity()[0, 1] == pytest.approx(rho)


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_every_step_raises_the_marginal_likelihood(rng, weight):
    data = population(rng, 12, 6, np.array([1.0, -1.0, 0.5]), np.diag([0.5, 0.1, 0.02]), 0.3)
    kept = {"noise": 0.3, "variance": 0.8, "weight": weight}
    player = told(player_of(cb.EbmUCB(**kept), 12, 3), data)
    values = [hierarchical.log_evidence(player.mu, player.Sigma, data, **kept)]
    for _ in range(25):
        player._maximise()
        values.append(hierarchical.log_evidence(player.mu, player.Sigma, data, **kept))
    assert (np.diff(values) > -1e-10).all()  # once it has converged, rounding is left
    assert (np.diff(values)[:4] > 1e-8).all()
    assert values[-1] > values[0] + 5


def test_the_prior_of_many_agents_is_found(rng):
    mu = np.array([1.0, -0.5, 0.0])
    Sigma = np.array([[0.5, 0.3, 0.0], [0.3, 0.4, 0.0], [0.0, 0.0, 0.05]])
    player = told(
        player_of(cb.EbmUCB(noise=0.3), 2000, 3), population(rng, 2000, 8, mu, Sigma, 0.3)
    )
    for _ in range(60):
        player._maximise()
    # the error of a mean of 2000 draws is at most 0.016, that of a variance about as much
    np.testing.assert_allclose(player.mu, mu, atol=0.06)
    np.testing.assert_allclose(player.Sigma, Sigma, atol=0.06)


def test_draws_have_the_mean_and_the_covariance_of_the_posterior(rng):
    data = population(rng, 3, 5, np.zeros(3), np.eye(3), 0.5)
    player = told(player_of(cb.EbmTS(alpha=2.0, noise=0.5), 3, 3), data)
    player.mu, player.Sigma = np.array([0.5, 0.0, -1.0]), np.diag([1.0, 0.3, 0.0])  # of rank two
    m, P = player._posterior(np.array([1]))
    drawn = player._drawn(np.full(20_000, 1), rng.standard_normal((20_000, 3)))
    np.testing.assert_allclose(drawn.mean(axis=0), m[0], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), 4.0 * P[0], atol=0.05)


def test_under_the_first_prior_an_agent_believes_a_ridge_regression(rng):
    data = population(rng, 4, 6, np.zeros(3), np.eye(3), 0.5)
    player = told(player_of(cb.EbmUCB(noise=0.5, variance=0.4), 4, 3), data)
    m, P = player._posterior(np.arange(4))
    for v, (X, y) in enumerate(data):
        inverse = np.linalg.inv(X.T @ X + 0.25 / 0.4 * np.eye(3))  # λ = σ²/τ²
        np.testing.assert_allclose(m[v], inverse @ X.T @ y, atol=1e-12)
        np.testing.assert_allclose(P[v], 0.25 * inverse, atol=1e-12)


def test_agents_with_one_common_task_learn_faster_than_alone():
    problem = cb.problems.clustered_linear(
        cb.Network.complete(20), dim=6, noise=0.3, seed=0, clusters=[0] * 20
    )
    for make, alone in ((cb.EbmUCB, cb.LinUCB), (cb.EbmTS, cb.LinTS)):
        one = cb.play(problem, make(alpha=1.0, noise=0.3, lag=1), rounds=60)
        two = cb.play(problem, alone(eta=0.3, ridge=0.09), rounds=60)
        assert one.regret.sum() < 0.8 * two.regret.sum()
        assert one.similarity(60)[0, 1] > 0.7


@pytest.mark.parametrize("make", [cb.EbmUCB, cb.EbmTS])
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"alpha": -1.0}, "alpha must be >= 0, got -1"),
        ({"noise": 0.0}, "noise must be above 0"),
        ({"variance": 0.0}, "variance must be above 0"),
        ({"weight": -1.0}, "weight must be >= 0"),
        ({"steps": 0}, "steps must be"),
        ({"lag": 2}, "lag must be 0 or 1, got 2"),
    ],
    ids=range(6),
)
def test_settings_out_of_range_are_refused(make, settings, complaint):
    with pytest.raises(ParameterError, match=complaint):
        make(**settings)
