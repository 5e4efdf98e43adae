import numpy as np
import pytest

from coopbandits.gp.statistics import (
    Statistics,
    column_draws,
    column_halves,
    coupled,
    half,
    halves,
    joint_log_evidence,
)
from reference import formulas


def drawn(rng, agents=4, m=3, most=6):
    """Samples of unequal size, the last with one observation only."""
    sizes = [*rng.integers(2, most, size=agents - 1), 1]
    return [(rng.normal(size=(n, m)), rng.normal(size=n)) for n in sizes]


def statistics_of(samples):
    """(1, N, …) statistics of samples."""
    m = samples[0][0].shape[1]
    sums = np.array([Statistics.rows(phi, y).sum(axis=0) for phi, y in samples])
    assert sums.shape[1] == Statistics.width(m)
    return Statistics.of(sums[None], m)


def test_sums_of_rows_are_the_statistics(rng):
    samples = drawn(rng)
    statistics = statistics_of(samples)
    for u, (phi, y) in enumerate(samples):
        assert statistics.n[0, u] == len(y)
        np.testing.assert_allclose(statistics.S[0, u], phi.T @ phi, atol=1e-12)
        np.testing.assert_allclose(statistics.b[0, u], phi.T @ y, atol=1e-12)
        assert statistics.q[0, u] == pytest.approx(y @ y)


@pytest.mark.parametrize("noise", [0.1, 2.0])
@pytest.mark.parametrize("ratio", [0.05, 1.0, 30.0])
def test_an_agents_evidence_is_the_density_of_its_rewards(rng, noise, ratio):
    samples = drawn(rng)
    value = statistics_of(samples).log_evidence(np.array(noise), np.array(ratio))
    for u, sample in enumerate(samples):
        twin = formulas.stacked_log_density([sample], np.ones((1, 1)), noise, ratio)
        assert value[0, u] == pytest.approx(twin, rel=1e-10)


@pytest.mark.parametrize("c", [0.0, 0.3, 40.0])
def test_integrating_out_an_own_part_leaves_the_density_of_the_shared_one(rng, c):
    """p(y | w) = N(y; Φw, σ²(I + cΦΦᵀ)), for any shared part w."""
    noise, samples = 0.7, drawn(rng)
    shared, logdet = statistics_of(samples).shared(np.full((1, 4), c))
    w = rng.normal(size=3)
    for u, (phi, y) in enumerate(samples):
        misfit = shared.q[0, u] - 2 * w @ shared.b[0, u] + w @ shared.S[0, u] @ w
        value = -0.5 * (misfit / noise + logdet[0, u] + len(y) * np.log(2 * np.pi * noise))
        covariance = noise * (np.eye(len(y)) + c * phi @ phi.T)
        assert value == pytest.approx(formulas.log_density(y - phi @ w, covariance), rel=1e-9)


@pytest.mark.parametrize("r", [1, 2, 4])
def test_joint_evidence_is_the_density_of_all_rewards_at_once(rng, r):
    samples = drawn(rng)
    U, delta = rng.normal(size=(1, 4, r)), rng.uniform(size=(1, 4))
    noise, ratio = 0.4, 1.7
    value = joint_log_evidence(
        statistics_of(samples), U, delta, np.array([noise]), np.array([ratio])
    )
    K_z = U[0] @ U[0].T + np.diag(delta[0])
    assert value[0] == pytest.approx(
        formulas.stacked_log_density(samples, K_z, noise, ratio), rel=1e-9
    )


def test_pooled_statistics_are_a_sum_of_kronecker_products(rng):
    statistics = statistics_of(drawn(rng))
    U = rng.normal(size=(1, 4, 3))
    A, c = coupled(U, statistics)
    expected = sum(np.kron(np.outer(u, u), S) for u, S in zip(U[0], statistics.S[0], strict=True))
    np.testing.assert_allclose(A[0], expected, atol=1e-12)
    np.testing.assert_allclose(
        c[0], sum(np.kron(u, b) for u, b in zip(U[0], statistics.b[0], strict=True)), atol=1e-12
    )


def test_half_of_a_symmetric_matrix_gives_it_back(rng):
    A = rng.normal(size=(5, 5))
    A = A + A.T
    i, j, cell = half(5)
    np.testing.assert_array_equal(A[i, j][cell], A)


def test_a_bordered_factor_gives_quadratic_form_and_determinant(rng):
    B = rng.normal(size=(3, 4, 6))
    P = B @ np.swapaxes(B, 1, 2) + 0.1 * np.eye(4)
    h = rng.normal(size=(3, 4))
    quadratic = np.array([v @ np.linalg.inv(A) @ v for A, v in zip(P, h, strict=True)])
    value, half_logdet = halves(P, h, quadratic + 1.0)
    np.testing.assert_allclose(value, quadratic / 2, rtol=1e-9)
    np.testing.assert_allclose(half_logdet, np.log(np.linalg.det(P)) / 2, rtol=1e-9)


@pytest.mark.parametrize("m", [1, 4, 16, 17])
def test_compact_columns_give_the_same_as_the_matrices(rng, m):
    """Small ones are eliminated by hand, large ones factored."""
    X, y = rng.normal(size=(3, 2 * m, m)), rng.normal(size=(3, 2 * m))
    sums = np.array([Statistics.rows(*pair).sum(axis=0) for pair in zip(X, y, strict=True)])
    statistics = Statistics.of(sums, m)
    columns = statistics.compact.T.copy()
    i, j, _ = half(m)
    np.testing.assert_array_equal(statistics.packed, statistics.S[:, i, j])
    columns[: len(i)] += 0.5 * (i == j)[:, None]
    columns[-1] += 1.0
    found = column_halves(columns, m)
    expected = halves(statistics.S + 0.5 * np.eye(m), statistics.b, statistics.q + 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("m", [1, 4, 16])
def test_draws_from_compact_columns_have_the_mean_and_the_covariance_asked_for(rng, m):
    """A draw is linear in chance: of none it is P⁻¹h, and what chance adds has covariance P⁻¹."""
    X, h = rng.normal(size=(2 * m, m)), rng.normal(size=m)
    P = X.T @ X + 0.5 * np.eye(m)
    columns = np.concatenate([P[half(m)[0], half(m)[1]], h])[:, None].repeat(m + 1, axis=1)
    drawn = column_draws(columns, np.hstack([np.zeros((m, 1)), np.eye(m)]))
    mean, root = drawn[:, 0], drawn[:, 1:] - drawn[:, :1]
    np.testing.assert_allclose(mean, np.linalg.solve(P, h), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(P), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("m", [2, 20])
def test_columns_that_are_no_covariance_are_refused(m):
    i, j, _ = half(m)
    columns = np.concatenate([-1.0 * (i == j), np.ones(m + 1)])[:, None].repeat(3, axis=1)
    with pytest.raises(np.linalg.LinAlgError):
        column_halves(columns, m)
