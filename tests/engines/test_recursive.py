"""Beliefs that learn one observation at a time are those of all observations at once."""

import numpy as np
import pytest

from coopbandits.engines import recursive
from coopbandits.engines.recursive import RecursiveRegression

V, M, RIDGE = 4, 3, 0.6


def literal(prior, phi, y):
    """Return mean, covariance and log det(I + K/λ) of n observations: (m, m), (n, m), (n,)."""
    K = phi @ prior @ phi.T
    across = prior @ phi.T
    inverse = np.linalg.inv(K + RIDGE * np.eye(len(y)))
    logdet = np.linalg.slogdet(np.eye(len(y)) + K / RIDGE)[1]
    return across @ inverse @ y, prior - across @ inverse @ across.T, logdet


def agrees(regression, v, prior, phi, y, asked):
    mean, covariance, logdet = literal(prior, np.array(phi).reshape(-1, M), np.array(y))
    found, variance, joint = regression.ask(np.repeat(asked[None], V, axis=0), joint=True)
    np.testing.assert_allclose(found[v], asked @ mean, atol=1e-10)
    np.testing.assert_allclose(joint[v], asked @ covariance @ asked.T, atol=1e-10)
    np.testing.assert_allclose(variance[v], np.diagonal(joint[v]))
    plain = regression.ask(np.repeat(asked[None], V, axis=0), joint=False)
    np.testing.assert_allclose(plain[1][v], variance[v], atol=1e-12)
    assert plain[2] is None
    assert regression.logdet[v] == pytest.approx(logdet)


@pytest.mark.parametrize("rounds", [1, 16, 40])
@pytest.mark.parametrize("cache", [1, 100_000])
def test_one_at_a_time_is_all_at_once_whoever_learns(rng, rounds, cache, monkeypatch):
    monkeypatch.setattr(recursive, "_CACHE", cache)
    root = rng.normal(size=(V, M, M))
    prior = root @ np.swapaxes(root, 1, 2)
    regression = RecursiveRegression(prior.copy(), RIDGE)
    heard = [([], []) for _ in range(V)]
    for _ in range(rounds):
        who, phi, y = rng.random(V) < 0.7, rng.normal(size=(V, M)), rng.normal(size=V)
        regression.learn(who, phi, y)
        for v in np.flatnonzero(who):
            heard[v][0].append(phi[v])
            heard[v][1].append(y[v])
    for v in range(V):
        agrees(regression, v, prior[v], *heard[v], rng.normal(size=(5, M)))
        assert regression.count[v] == len(heard[v][1])


def test_who_is_told_afresh_forgets_what_it_learnt_and_nobody_else_does(rng):
    prior = np.repeat(np.eye(M)[None], V, axis=0)
    regression, told = RecursiveRegression(prior.copy(), RIDGE), np.diag([1.0, 2.0, 3.0])
    phi, y = rng.normal(size=(20, V, M)), rng.normal(size=(20, V))
    everyone = np.ones(V, dtype=bool)
    for t in range(18):
        regression.learn(everyone, phi[t], y[t])
    one = np.array([1])
    regression.reset(one, np.zeros((1, M)), told[None], np.zeros(1), np.array([7]))
    for t in (18, 19):
        regression.learn(everyone, phi[t], y[t])
    asked = rng.normal(size=(5, M))
    agrees(regression, 1, told, phi[18:, 1], y[18:, 1], asked)
    agrees(regression, 0, np.eye(M), phi[:, 0], y[:, 0], asked)
    assert regression.seen.tolist() == [0, 7, 0, 0]
    assert regression.count.tolist() == [20, 9, 20, 20]


def test_many_repeats_leave_a_belief_as_sure_as_it_should_be():
    regression = RecursiveRegression(np.eye(2)[None].copy(), 1.0)
    phi, asked = np.array([[0.6, 0.8]]), np.array([[[0.6, 0.8], [0.8, -0.6]]])
    n = 20_000
    for _ in range(n):
        regression.learn(np.array([True]), phi, np.array([0.5]))
    mean, variance, _ = regression.ask(asked, joint=False)
    np.testing.assert_allclose(variance, [[1 / (n + 1), 1.0]], rtol=1e-9)
    np.testing.assert_allclose(mean, [[0.5 * n / (n + 1), 0.0]], atol=1e-10)
