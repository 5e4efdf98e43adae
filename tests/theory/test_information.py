from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.theory.information import running_logdet
from reference import formulas

KERNELS = {
    "linear": cb.kernels.Linear(),
    "rbf": cb.kernels.RBF(0.7),
    "matern": cb.kernels.Matern(nu=1.5),
}


def gram_of(rng, n, kernel=KERNELS["rbf"], dim=2):
    X = rng.normal(size=(n, dim))
    return kernel(X, X)


def one_by_one(K, ridge):
    """Σ log(1 + σ²/λ), σ² before each observation by the paper's formula."""
    total = [0.0]
    for n in range(len(K)):
        _, variance = formulas.posterior(
            K[:n, :n], K[:n, n : n + 1], K[n : n + 1, n], np.zeros(n), ridge
        )
        total.append(total[-1] + np.log(1 + variance[0] / ridge))
    return np.array(total[1:])


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_determinant_is_the_product_of_the_variances(rng, kernel, ridge):
    K = gram_of(rng, 20, kernel)
    steps = one_by_one(K, ridge)
    np.testing.assert_allclose(running_logdet(K, ridge), steps, rtol=1e-9)
    assert cb.theory.information_gain(K, ridge=ridge) == pytest.approx(steps[-1] / 2)
    assert cb.theory.information_gain(K, ridge=ridge) == pytest.approx(
        formulas.logdet(K, ridge) / 2
    )


def test_the_gain_is_the_entropy_that_the_function_explains(rng):
    # Definition 1: H(y) − H(y | f) of Gaussians, with noise of variance λ
    K, ridge = gram_of(rng, 6), 0.3
    entropy = 0.5 * np.log(np.linalg.det(2 * np.pi * np.e * (K + ridge * np.eye(6))))
    noise = 0.5 * 6 * np.log(2 * np.pi * np.e * ridge)
    assert cb.theory.information_gain(K, ridge=ridge) == pytest.approx(entropy - noise)


@pytest.mark.parametrize("repeats", [True, False])
@pytest.mark.parametrize("ridge", [0.05, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_choice_keeps_its_guarantee_and_its_bound_holds(seed, ridge, repeats):
    rng = np.random.default_rng([seed, 3])
    K = gram_of(rng, 7) * rng.uniform(0.2, 1.0)
    choices = combinations_with_replacement if repeats else combinations
    for count in range(1, 5):
        greedy = cb.theory.greedy_gain(K, count, ridge=ridge, repeats=repeats)
        best = max(
            cb.theory.information_gain(K[np.ix_(chosen, chosen)], ridge=ridge)
            for chosen in choices(range(len(K)), count)
        )
        assert (1 - 1 / np.e) * best <= greedy.gain + 1e-12
        assert greedy.gain <= best + 1e-12
        assert best <= greedy.upper_bound + 1e-12
        assert repeats or len(set(greedy.chosen)) == count


def test_greedy_gains_are_those_of_what_was_chosen_and_grow_by_less_and_less(rng):
    K = gram_of(rng, 12)
    greedy = cb.theory.greedy_gain(K, 30, ridge=0.5)
    chosen = greedy.chosen
    np.testing.assert_allclose(
        greedy.gains, running_logdet(K[np.ix_(chosen, chosen)], 0.5) / 2, rtol=1e-9
    )
    steps = np.diff(greedy.gains, prepend=0.0)
    assert (steps > 0).all()
    assert (np.diff(steps) <= 1e-12).all()
    assert len(set(chosen[:12])) < 13 <= len(chosen)  # thirty of twelve: some come again


def test_for_orthogonal_candidates_greedy_choice_is_the_best_and_known_to_be():
    greedy = cb.theory.greedy_gain(np.eye(5), 5, ridge=1.0, repeats=False)
    assert greedy.gain == pytest.approx(2.5 * np.log(2))
    assert greedy.upper_bound == pytest.approx(greedy.gain)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: cb.theory.information_gain(np.ones(3)), r"K has shape \(3,\)"),
        (lambda: cb.theory.information_gain([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (lambda: cb.theory.information_gain([[1.0, 2.0], [2.0, 1.0]]), "not positive semidef"),
        (lambda: cb.theory.information_gain(-np.eye(2)), "not positive semidefinite"),
        (lambda: cb.theory.information_gain(np.eye(2), ridge=0), "ridge must be above 0"),
        (lambda: cb.theory.greedy_gain(np.eye(2), 3, repeats=False), "count=3 of 2 candidates"),
    ],
)
def test_what_is_no_gram_matrix_is_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


def test_a_choice_that_does_not_fit_into_memory_is_refused_before_it_starts():
    with pytest.raises(ParameterError, match=r"count=1000000000 would take 16 GB .* smaller count"):
        cb.theory.greedy_gain(np.eye(2), 10**9)


def test_candidates_may_repeat_or_not():
    with pytest.raises(ParameterError, match="repeats must be True or False, got array"):
        cb.theory.greedy_gain(np.eye(2), 2, repeats=np.array([True, False]))
