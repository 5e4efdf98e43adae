import numpy as np
import pytest

import coopbandits as cb
from reference import formulas


def gram_of(rng, n, lengthscale=0.7):
    X = rng.normal(size=(n, 2))
    return cb.kernels.RBF(lengthscale)(X, X)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
def test_it_is_the_trace_and_the_sum_of_what_is_left_of_the_variances(rng, ridge):
    K = gram_of(rng, 15)
    found = cb.theory.effective_dimension(K, ridge=ridge)
    assert found == pytest.approx(np.trace(K @ np.linalg.inv(K + ridge * np.eye(15))))
    # Σσ²_n(x_i)/λ, σ² at each observation once all are known
    _, left = formulas.posterior(K, K, np.diagonal(K), np.zeros(15), ridge)
    assert found == pytest.approx(left.sum() / ridge)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
def test_it_is_how_fast_the_determinant_falls_with_the_ridge(rng, ridge):
    K, step = gram_of(rng, 15), 1e-5
    up, down = (2 * cb.theory.information_gain(K, ridge=ridge * np.exp(s)) for s in (step, -step))
    assert cb.theory.effective_dimension(K, ridge=ridge) == pytest.approx(
        (down - up) / (2 * step), rel=1e-6
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ridge", [0.01, 0.3, 5.0])
def test_both_dimensions_bound_the_determinant(seed, ridge):
    rng = np.random.default_rng(seed)
    for lengthscale in (0.1, 1.0):
        K = gram_of(rng, 40, lengthscale)
        L = 2 * cb.theory.information_gain(K, ridge=ridge)
        d_eff = cb.theory.effective_dimension(K, ridge=ridge)
        largest = np.linalg.eigvalsh(K)[-1]
        assert d_eff <= L <= d_eff * (1 + np.log(1 + largest / ridge))
        for rounds in (2, 40, 10_000):
            d = cb.theory.valko_dimension(K, ridge=ridge, rounds=rounds)
            assert (d - 1) * np.log(1 + np.log(rounds)) <= L


def test_valkos_dimension_is_the_first_that_its_definition_admits(rng):
    K, ridge = gram_of(rng, 20), 0.2
    mu = np.sort(np.linalg.eigvalsh(K))[::-1]
    literal = next(j for j in range(21) if j * ridge * np.log(20) >= mu[j:].sum())
    assert 1 < literal < 20
    assert cb.theory.valko_dimension(K, ridge=ridge) == literal


def test_a_finite_rank_is_the_most_that_either_can_be(rng):
    X = rng.normal(size=(50, 3))
    K = X @ X.T
    assert cb.theory.effective_dimension(K, ridge=1e-6) == pytest.approx(3, abs=1e-5)
    assert cb.theory.valko_dimension(K, ridge=1e-6) == 3
    assert cb.theory.valko_dimension(np.eye(4), rounds=1) == 4  # ln 1 = 0: all of it
