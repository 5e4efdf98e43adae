"""One agent's function alone, from everyone's sums: what all observations say, K_z as rounded."""

import numpy as np
import pytest

from coopbandits.gp.marginals import Marginals, turned
from coopbandits.gp.rolling_statistics import RollingStatistics
from reference import formulas

V, M, RIDGE = 5, 3, 0.6


@pytest.fixture
def heard(rng):
    """Four rounds of five agents, summed, with the observations themselves."""
    sums = RollingStatistics(V, M, 3)
    X, y = rng.normal(size=(4, V, M)), rng.normal(size=(4, V))
    for t in range(1, 5):
        sums.add(t, X[t - 1], y[t - 1])
    return sums, X, y


def test_rotated_parts_say_the_same_and_the_last_is_the_agents_own(rng):
    for own in (0.0, 0.7):
        U, delta, me = rng.normal(size=(6, V, 2)), rng.random((6, V)), np.array([0, 1, 2, 3, 4, 0])
        delta[np.arange(6), me] = own
        U[0] = 0.0  # a view that shares nothing
        U[1, 1] = 0.0
        rotated, a = turned(U, delta, me)
        for view, v in enumerate(me):
            K_z = U[view] @ U[view].T
            K_z[v, v] += own
            np.testing.assert_allclose(rotated[view] @ rotated[view].T, K_z, atol=1e-12)
            assert (rotated[view, v, :-1] == 0).all()
            assert a[view] == pytest.approx(np.sqrt(K_z[v, v]))


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("own", [0.0, 0.5])
def test_marginals_are_the_posterior_of_all_observations_under_the_rounded_similarity(
    rng, heard, own, rounded
):
    sums, X, y = heard
    marginals = Marginals(sums, V, RIDGE, rounded=rounded)
    after = np.array([[3, 4, 4, 3, 0], [4, 4, 3, 0, 0]])
    agents, me = np.tile(np.arange(V), (2, 1)), np.array([1, 0])
    U, delta = rng.normal(size=(2, V, 2)), rng.choice([0.0, 0.01, 0.3, 1.0], size=(2, V))
    delta[np.arange(2), me] = own
    scale = rng.uniform(0.5, 2.0, size=(2, V))
    scale[np.arange(2), me] = 1.0
    views = marginals.rotated(U, delta, me, scale)
    mean, covariance, logdet, count = marginals.of(after, agents, views)
    for view, v in enumerate(me):
        taken = marginals.levels[views.level[view]] if rounded else delta[view].copy()
        taken[v] = own
        samples = [(X[:s, u], scale[view, u] * y[:s, u]) for u, s in enumerate(after[view])]
        expected = formulas.weights(U[view], taken, samples, v, np.eye(M), RIDGE)
        np.testing.assert_allclose(mean[view], expected[0], atol=1e-10)
        np.testing.assert_allclose(covariance[view], expected[1], atol=1e-10)
        assert logdet[view] == pytest.approx(expected[2])
        assert count[view] == after[view].sum()


def test_a_ridge_that_is_too_small_for_the_sums_is_told(rng, heard):
    sums = heard[0]
    sums.rows(4)[:, 2 + M :] = -np.eye(M).reshape(-1)  # as rounding may leave them
    marginals = Marginals(sums, V, 1e-9)
    ones = np.ones((1, V))
    views = marginals.rotated(np.ones((1, V, 1)), ones, np.array([0]), ones)
    with pytest.raises(np.linalg.LinAlgError, match="ridge is too small"):
        marginals.of(np.full((1, V), 4), np.arange(V)[None], views)


def test_own_parts_are_rounded_by_a_quarter_at_most_and_may_grow(rng, heard):
    marginals = Marginals(heard[0], V, RIDGE)
    me = np.zeros(40, dtype=np.int64)
    for largest in (1.0, 7.0):
        marginals.reach(largest)
        delta = largest * rng.uniform(0.03, 1.0, size=(40, V))
        ones = np.ones((40, V))
        level = marginals.rotated(np.ones((40, V, 1)), delta, me, ones).level
        ratio = marginals.levels[level[:, 1:]] / delta[:, 1:]
        assert ratio.max() < 1.27
        assert ratio.min() > 1 / 1.27
        assert (level[:, 0] == 0).all()
        nothing = marginals.rotated(np.ones((1, V, 1)), np.zeros((1, V)), me[:1], ones[:1])
        assert nothing.level.max() == 0
