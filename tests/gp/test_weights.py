"""Everyone's sums say about one agent's function what all observations together say."""

import numpy as np
import pytest

from coopbandits.gp.statistics import Statistics
from coopbandits.gp.weights import Weights
from reference import formulas


@pytest.mark.parametrize("own", ["all", "others", "none", "mine"])
def test_pooled_sums_give_the_posterior_of_all_observations(rng, own):
    N, m, ridge = 4, 3, 0.6
    for r in (1, 2, 3):
        U = rng.normal(size=(N, r)) * (rng.random((N, r)) < 0.8)
        delta = rng.random(N)
        me = int(rng.integers(N))
        if own in ("none", "mine"):
            delta[np.arange(N) != me] = 0.0
        if own in ("none", "others"):
            delta[me] = 0.0
        sizes = [5, 2, 4, 3]
        samples = [(rng.normal(size=(n, m)), rng.normal(size=n)) for n in sizes]
        sums = np.array([Statistics.rows(phi, y).sum(axis=0) for phi, y in samples])
        weights = Weights.pooled(
            U[None], delta[None], np.array([me]), Statistics.of(sums[None], m), ridge
        )
        X = rng.normal(size=(4, m))
        mean, Z, logdet = weights.ask(X[None])
        expected = formulas.weights(U, delta, samples, me, X, ridge)
        np.testing.assert_allclose(mean[0], expected[0], atol=1e-9)
        np.testing.assert_allclose(ridge * Z[0] @ Z[0].T, expected[1], atol=1e-9)
        assert logdet[0] == pytest.approx(expected[2], rel=1e-9)


def test_many_rows_are_answered_as_few_are(rng):
    m, K = 3, 1_000
    sums = Statistics.rows(rng.normal(size=(5, m)), rng.normal(size=5)).sum(axis=0)
    weights = Weights.pooled(
        np.ones((1, 1, 1)), np.zeros((1, 1)), np.array([0]), Statistics.of(sums[None, None], m), 0.5
    )
    phi = rng.normal(size=(1, K, m))
    mean, Z, logdet = weights.ask(phi)
    assert Z.shape == (1, K, m)
    for rows in (slice(0, 1), slice(255, 257), slice(998, 1000)):
        few = weights.ask(phi[:, rows])
        np.testing.assert_allclose(mean[:, rows], few[0], rtol=1e-12)
        np.testing.assert_allclose(Z[:, rows], few[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(logdet, few[2], rtol=1e-12)
