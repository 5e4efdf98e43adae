import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.gp.statistics import Statistics, joint_log_evidence
from coopbandits.similarity import Coregionalised, Laplacian, LearntLaplacian
from coopbandits.similarity.common_noise import common_noise
from coopbandits.similarity.coregionalised import Owns, climb, start
from learnt_views import K_z_of, learner_of, linear_samples, tasks, view
from reference import formulas


def correlations(rho, network):
    """(L + ρI)⁻¹ scaled to a diagonal of 1, literally."""
    A = network.adjacency.astype(float)
    K_z = np.linalg.inv(np.diag(A.sum(axis=1) + rho) - A)
    return K_z / np.sqrt(np.outer(np.diagonal(K_z), np.diagonal(K_z)))


def test_every_step_raises_the_joint_evidence(rng):
    for n in (2, 15):
        samples = linear_samples(rng, tasks(rng, 3)[np.arange(9) % 3], n=n)
        sums = np.array([Statistics.rows(phi, y).sum(axis=0) for phi, y in samples])
        statistics = Statistics.of(sums[None], 5)
        noise, ratio = common_noise(
            Statistics.of(sums, 5), np.arange(9)[None], np.ones((1, 9), dtype=bool)
        )
        U, delta = start(statistics, ratio, 3)
        owns = Owns.of(statistics, ratio)
        before = joint_log_evidence(statistics, U, delta, noise, ratio)[0]
        first = before
        for _ in range(12):
            U, delta = climb(statistics, owns, U, delta, noise, ratio)
            now = joint_log_evidence(statistics, U, delta, noise, ratio)[0]
            assert now > before - 1e-6 * abs(before)
            before = now
        assert before > first + 1.0


@pytest.mark.parametrize("rank", [2, 5, 7])
def test_the_start_has_the_leading_parts_of_what_agents_find_by_themselves(rng, rank):
    samples = linear_samples(rng, tasks(rng, 3)[np.arange(9) % 3], n=6)
    sums = np.array([Statistics.rows(phi, y).sum(axis=0) for phi, y in samples])
    U, delta = start(Statistics.of(sums[None], 5), np.array([0.7]), rank)
    theta = np.array(
        [np.linalg.solve(phi.T @ phi + 0.7 * np.eye(5), phi.T @ y) for phi, y in samples]
    )
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(theta @ theta.T)
    leading = vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0.0))
    np.testing.assert_allclose(U[0] @ U[0].T, 0.5 * leading @ leading.T, atol=1e-10)
    assert U.shape == (1, 9, rank)
    assert (delta == 0.5).all()


def test_coregionalised_finds_agents_of_one_task_when_there_are_data(rng):
    labels = np.arange(9) % 3
    K_z = K_z_of(
        Coregionalised(steps=40), linear_samples(rng, tasks(rng, 3)[labels], n=80, noise=0.1)
    )
    same = np.equal.outer(labels, labels) & ~np.eye(9, dtype=bool)
    different = np.not_equal.outer(labels, labels)
    assert K_z[same].min() > 0.9
    # correlations, not probabilities: two random tasks of five numbers are not orthogonal
    assert K_z[different].max() < 0.8


def test_the_laplacians_rho_is_the_one_of_greatest_density(rng):
    network, rhos = cb.Network.path(5), (0.05, 0.5, 5.0, 50.0)
    K_true = correlations(0.05, network)
    L = np.linalg.cholesky(K_true + 1e-9 * np.eye(5))
    for theta in (L @ rng.normal(size=(5, 8)) / np.sqrt(8), tasks(rng, 5, dim=8)):
        samples = linear_samples(rng, theta, n=12)
        similarity = Laplacian.by_evidence(rhos, noise=0.3)
        learner = similarity.learner(cb.kernels.Linear(), network)
        one = view(learner, samples)
        _, ratio = common_noise(learner.read(one), one.index, one.heard, 0.3)
        densities = [
            formulas.stacked_log_density(samples, correlations(rho, network), 0.09, ratio[0])
            for rho in rhos
        ]
        best = correlations(rhos[int(np.argmax(densities))], network)
        np.testing.assert_allclose(learner.estimate(one).matrix[0], best, atol=1e-9)


def test_neighbours_alike_get_a_small_rho_and_strangers_a_large_one(rng):
    network = cb.Network.path(6)
    same = linear_samples(rng, np.repeat(tasks(rng, 1), 6, axis=0), n=30)
    different = linear_samples(rng, tasks(rng, 6), n=30)
    for samples, low, high in [(same, 0.8, 1.0), (different, 0.0, 0.2)]:
        learner = Laplacian.by_evidence().learner(cb.kernels.Linear(), network)
        K_z = learner.estimate(view(learner, samples)).matrix[0]
        assert low <= K_z[0, 1] <= high


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Coregionalised(rank=0), "rank"),
        (lambda: Coregionalised(steps=0), "steps"),
        (lambda: Coregionalised(noise=-1.0), "noise must be"),
        (lambda: Laplacian.by_evidence([]), "at least one number"),
        (lambda: Laplacian.by_evidence([0.0]), "rho must be"),
        (lambda: Laplacian.by_evidence(None), "rho must be"),
        (lambda: Laplacian.by_evidence(noise=0.0), "noise must be"),
    ],
)
def test_bad_input_is_refused(make, match):
    with pytest.raises(ParameterError, match=match):
        make()


def test_the_rank_may_exceed_the_agents(rng):
    K_z = K_z_of(Coregionalised(rank=7), linear_samples(rng, tasks(rng, 2), n=3))
    assert K_z.shape == (2, 2)
    assert learner_of(Coregionalised(), 2).attached(5) == 0


def test_rhos_may_be_one_number_or_a_list_of_them():
    for given in (0.5, np.array(0.5), [0.5], np.array([0.5]), (0.5,)):
        assert Laplacian.by_evidence(given).rhos == (0.5,)
    for nothing in ([], np.array([])):
        with pytest.raises(ParameterError, match="rhos must hold at least one number, got"):
            Laplacian.by_evidence(nothing)
    for wrong in (None, "1", np.array(None), [[1.0]], [None]):
        with pytest.raises(ParameterError, match="rho must be a number"):
            Laplacian.by_evidence(wrong)
    with pytest.raises(ParameterError, match="rhos must hold at least one number, got None"):
        LearntLaplacian(None)


def test_more_steps_than_can_be_made_are_refused():
    with pytest.raises(ParameterError, match="steps must be at most 10000, got 2147483647"):
        Coregionalised(steps=2**31 - 1)
