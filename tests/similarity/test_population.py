"""One correlation between any two agents: given, and estimated by evidence."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.similarity import LearntPopulation, Population
from coopbandits.similarity.common_noise import common_noise
from learnt_views import K_z_of, learner_of, linear_samples, tasks, view
from reference import formulas
from worlds import NETWORKS, ragged


def exchangeable(rho, agents):
    """ρ11ᵀ + (1 − ρ)I, literally."""
    return np.array([[1.0 if u == v else rho for v in range(agents)] for u in range(agents)])


def population(rng, rho, agents, dim=6):
    """Weights with the correlation ρ between any two agents."""
    common, own = rng.normal(size=dim), rng.normal(size=(agents, dim))
    return (np.sqrt(rho) * common + np.sqrt(1 - rho) * own) / np.sqrt(dim)


@pytest.mark.parametrize("rho", [0.0, 0.4, 1.0])
def test_the_given_one_is_its_formula_and_positive_semidefinite(rho):
    K_z = Population(rho).matrix(cb.Network.path(6))
    np.testing.assert_allclose(K_z, exchangeable(rho, 6), atol=1e-15)
    smallest, largest = np.linalg.eigvalsh(K_z)[[0, -1]]
    assert smallest == pytest.approx(1 - rho, abs=1e-12)
    assert largest == pytest.approx(1 + 5 * rho)


def test_its_extremes_decide_as_alone_and_as_same():
    problem = ragged(NETWORKS["grid"], 3)
    for rho, same in [(0.0, cb.similarity.Alone()), (1.0, cb.similarity.Same())]:
        one, two = (
            cb.play(problem, cb.EagerKernelUCB(cb.kernels.RBF(), similarity=K_z, ttl=2), rounds=8)
            for K_z in (Population(rho), same)
        )
        np.testing.assert_array_equal(one.actions, two.actions)
        np.testing.assert_array_equal(one.listens, two.listens)


@pytest.mark.parametrize("truth", [0.0, 0.5, 0.9, 1.0])
def test_the_estimate_is_the_one_of_greatest_density(rng, truth):
    rhos = (0.0, 0.2, 0.5, 0.8, 0.95, 1.0)
    learner = learner_of(Population.by_evidence(rhos, noise=0.3), 7)
    chosen = set()
    for n in (4, 12):
        samples = linear_samples(rng, population(rng, truth, 7), n=n)
        one = view(learner, samples)
        _, ratio = common_noise(learner.read(one), one.index, one.heard, 0.3)
        densities = [
            formulas.stacked_log_density(samples, exchangeable(rho, 7), 0.09, ratio[0])
            for rho in rhos
        ]
        best = rhos[int(np.argmax(densities))]
        K_z = learner.estimate(one).matrix[0]
        np.testing.assert_allclose(K_z, exchangeable(best, 7), atol=1e-12)
        chosen.add(best)
    assert max(abs(best - truth) for best in chosen) < 0.7  # the cases differ


def test_agents_alike_get_a_large_rho_and_different_ones_a_small_one(rng):
    alike, different = population(rng, 1.0, 12), tasks(rng, 12, dim=6)
    for theta, low, high in [(alike, 0.95, 1.0), (different, 0.0, 0.3)]:
        K_z = K_z_of(Population.by_evidence(), linear_samples(rng, theta, n=30))
        assert low <= K_z[0, 1] <= high


def test_a_scale_outlier_is_unrelated_and_changes_nothing_for_the_others(rng):
    samples = linear_samples(rng, population(rng, 0.9, 8), n=20)
    without = K_z_of(Population.by_evidence(), [*samples, None])
    assert without[0, 1] > 0.5
    for size in (1e3, 1e30):
        spoilt = [*samples, (samples[0][0], size * rng.normal(size=20))]
        np.testing.assert_allclose(K_z_of(Population.by_evidence(), spoilt), without, atol=1e-12)


def test_who_was_not_heard_of_is_unrelated_but_the_agent_itself_is_not(rng):
    samples = linear_samples(rng, population(rng, 1.0, 5), n=20)
    K_z = K_z_of(Population.by_evidence(), [None, *samples, None], me=0)
    assert (K_z[0, 1:6] > 0.7).all()
    np.testing.assert_array_equal(K_z[6], np.eye(7)[6])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Population(-0.1), "rho must be from 0 to 1, got -0.1"),
        (lambda: Population(1.5), "rho must be from 0 to 1, got 1.5"),
        (lambda: Population("much"), "rho must be a number"),
        (lambda: Population.by_evidence([]), "rhos must hold at least one number"),
        (lambda: Population.by_evidence([0.5, 2.0]), "rho must be from 0 to 1, got 2"),
        (lambda: Population.by_evidence(noise=0.0), "noise must be"),
        (lambda: LearntPopulation(None), "rhos must hold at least one number, got None"),
    ],
)
def test_bad_input_is_refused(make, match):
    with pytest.raises(ParameterError, match=match):
        make()


def test_one_number_may_be_given_alone():
    assert Population.by_evidence(0.5).rhos == (0.5,)
