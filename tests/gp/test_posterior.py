import mpmath
import numpy as np
import pytest

from coopbandits.errors import ParameterError
from coopbandits.gp.compositions import Hadamard, JointKernel
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.gp.posterior import Posterior
from coopbandits.kernels import RBF, Linear, Matern
from reference import formulas

KERNELS = [Linear(), RBF(0.8), Matern(nu=1.5)]


@pytest.fixture
def K_z(rng):
    z = rng.normal(size=(5, 2))
    return RBF()(z, z)


def data(rng, n, dim=3, agents=5):
    return rng.integers(agents, size=n), rng.normal(size=(n, dim)), rng.normal(size=n)


def closed_form(kernel, u, X, y, ridge, v, Q):
    mean, variance = formulas.posterior(
        kernel(u, X, u, X), kernel(u, X, v, Q), kernel.diagonal(v, Q), y, ridge
    )
    return (
        mean,
        np.sqrt(variance),
        np.linalg.slogdet(np.eye(len(u)) + kernel(u, X, u, X) / ridge)[1],
    )


@pytest.mark.parametrize(
    "batches", [[300], [1] * 300, [5, 120, 128, 47], [127, 1, 1, 171]], ids=str
)
@pytest.mark.parametrize("K_x", KERNELS, ids=repr)
def test_extending_in_any_batches_matches_the_paper_formula(rng, K_z, K_x, batches):
    kernel, ridge = JointKernel(K_x, DenseKernel(K_z), Hadamard()), 0.5
    u, X, y = data(rng, 300)
    v, Q, _ = data(rng, 9)
    posterior = Posterior(kernel, ridge)
    for part in np.split(np.arange(300), np.cumsum(batches)[:-1]):
        posterior.extend(u[part], X[part], y[part])
    belief = posterior.predict(v, Q)
    mean, std, logdet = closed_form(kernel, u, X, y, ridge, v, Q)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(belief.std, std, rtol=1e-8)
    np.testing.assert_allclose(belief.logdet, logdet, rtol=1e-8)
    assert (belief.count == 300).all()
    assert len(posterior) == 300


def own_covariances(kernel, u, X, ridge, v, Q):
    """The closed formula's covariance of all queries, by an inverse."""
    inverse = np.linalg.inv(kernel(u, X, u, X) + ridge * np.eye(len(u)))
    return kernel(v, Q, v, Q) - kernel(v, Q, u, X) @ inverse @ kernel(u, X, v, Q)


@pytest.mark.parametrize("K_x", KERNELS, ids=repr)
def test_covariances_are_those_of_each_agents_own_queries(rng, K_z, K_x):
    kernel, ridge = JointKernel(K_x, DenseKernel(K_z), Hadamard()), 0.5
    u, X, y = data(rng, 40)
    v, Q = np.array([2, 0, 2, 4, 2, 0]), rng.normal(size=(6, 3))
    posterior = Posterior(kernel, ridge)
    posterior.extend(u, X, y)
    assert posterior.predict(v, Q).covariance is None  # nobody asked
    belief = posterior.predict(v, Q, joint=True)
    expected = own_covariances(kernel, u, X, ridge, v, Q)
    assert belief.covariance.shape == (6, 3)
    for i, agent in enumerate(v):
        own = np.flatnonzero(v == agent)
        np.testing.assert_allclose(belief.covariance[i, : len(own)], expected[i, own], atol=1e-10)
        assert (belief.covariance[i, len(own) :] == 0).all()


def test_covariances_know_an_agents_own_part_of_the_newest_observations(rng, K_z):
    kernel, ridge = JointKernel(RBF(), DenseKernel(K_z), Hadamard()), 0.3
    u, X, y = data(rng, 30)
    v, Q = np.repeat(np.arange(5), 3), rng.normal(size=(15, 3))
    known = rng.random((5, 10)) < 0.5
    known[0], known[1] = True, False
    posterior = Posterior(kernel, ridge)
    posterior.extend(u[:20], X[:20], y[:20])
    newest = posterior.look_ahead(u[20:], X[20:], y[20:])
    belief = newest.believe(posterior.project(v, Q), np.arange(len(known)), known, joint=True)
    for agent in range(5):
        mine = np.append(np.arange(20), 20 + np.flatnonzero(known[agent]))
        at = v == agent
        expected = own_covariances(kernel, u[mine], X[mine], ridge, v[at], Q[at])
        np.testing.assert_allclose(belief.covariance[at], expected, atol=1e-10)
        np.testing.assert_allclose(belief.std[at] ** 2, np.diagonal(expected), atol=1e-10)


@pytest.mark.parametrize("n", [1, 127, 128, 300])
def test_coefficients_solve_for_what_is_left_of_the_rewards(rng, K_z, n):
    kernel, ridge = JointKernel(RBF(), DenseKernel(K_z), Hadamard()), 0.5
    u, X, y = data(rng, n)
    posterior = Posterior(kernel, ridge)
    for part in np.array_split(np.arange(n), 3):
        posterior.extend(u[part], X[part], y[part])
    r = rng.normal(size=n)
    expected = np.linalg.solve(kernel(u, X, u, X) + ridge * np.eye(n), y - r)
    np.testing.assert_allclose(posterior.coefficients(r), expected, atol=1e-10)
    np.testing.assert_array_equal(posterior.agents, u)
    np.testing.assert_array_equal(posterior.contexts, X)


def test_without_observations_the_belief_is_the_prior(rng, K_z):
    kernel = JointKernel(Linear(), DenseKernel(K_z), Hadamard())
    v, Q, _ = data(rng, 4)
    belief = Posterior(kernel, 1.0).predict(v, Q)
    np.testing.assert_array_equal(belief.mean, 0)
    np.testing.assert_allclose(belief.std, np.linalg.norm(Q, axis=1))
    np.testing.assert_array_equal(belief.logdet, 0)


@pytest.mark.parametrize("known_to_all", [0, 1, 40, 130, 200])
def test_each_agent_sees_its_own_part_of_the_newest_observations(rng, K_z, known_to_all):
    kernel, ridge = JointKernel(RBF(), DenseKernel(K_z), Hadamard()), 0.3
    u, X, y = data(rng, known_to_all + 12)
    v, Q = np.repeat(np.arange(5), 3), rng.normal(size=(15, 3))
    known = rng.random((5, 12)) < 0.5
    known[0], known[1] = True, False
    posterior = Posterior(kernel, ridge)
    past, newest = np.split(np.arange(known_to_all + 12), [known_to_all])
    posterior.extend(u[past], X[past], y[past])
    ahead = posterior.look_ahead(u[newest], X[newest], y[newest])
    belief = ahead.believe(posterior.project(v, Q), np.arange(len(known)), known)
    for agent in range(5):
        mine = np.concatenate([past, newest[known[agent]]]).astype(int)
        at = v == agent
        mean, std, logdet = closed_form(kernel, u[mine], X[mine], y[mine], ridge, v[at], Q[at])
        np.testing.assert_allclose(belief.mean[at], mean, rtol=1e-8, atol=1e-14)
        np.testing.assert_allclose(belief.std[at], std, rtol=1e-8)
        np.testing.assert_allclose(belief.logdet[at], logdet, rtol=1e-8, atol=1e-14)
        assert (belief.count[at] == len(mine)).all()
    assert len(posterior) == known_to_all


def exact_posterior(K, kappa, k_self, y, counts, ridge):
    """The closed formula in 60 digits, for distinct contexts seen `counts` times each.

    c observations of one context with noise λ are one observation of their mean with noise λ/c.
    """
    with mpmath.workdps(60):
        A = mpmath.matrix(K.tolist())
        for i, count in enumerate(counts):
            A[i, i] += mpmath.mpf(ridge) / int(count)
        weights = mpmath.lu_solve(A, mpmath.matrix(y))
        mean, variance = [], []
        for j in range(kappa.shape[1]):
            column = mpmath.matrix(kappa[:, j].tolist())
            solved = mpmath.lu_solve(A, column)
            mean.append(float((column.T * weights)[0]))
            variance.append(float(mpmath.mpf(float(k_self[j])) - (column.T * solved)[0]))
        logdet = mpmath.log(mpmath.det(A)) + sum(
            mpmath.log(int(c)) - mpmath.log(mpmath.mpf(ridge)) for c in counts
        )
        return np.array(mean), np.array(variance), float(logdet)


@pytest.mark.parametrize("batch", [1, 7, 400])
@pytest.mark.parametrize("K_x", [Linear(), RBF(), Matern(nu=2.5)], ids=repr)
def test_contexts_of_norm_one_repeated_fifty_times_at_a_tiny_ridge_stay_correct(rng, K_x, batch):
    ridge, distinct = 1e-6, rng.normal(size=(8, 10))
    distinct /= np.linalg.norm(distinct, axis=1, keepdims=True)  # K ≤ 1, as the paper assumes
    which = rng.permutation(np.repeat(np.arange(8), 50))
    y = rng.normal(size=400)
    kernel = JointKernel(K_x, DenseKernel(np.ones((1, 1))), Hadamard())
    zeros = np.zeros(400, dtype=int)
    posterior = Posterior(kernel, ridge)
    for start in range(0, 400, batch):
        part = slice(start, start + batch)
        posterior.extend(zeros[part], distinct[which[part]], y[part])
    # at the repeated contexts, very near them, and elsewhere
    Q = np.vstack([distinct, distinct + 1e-4 * rng.normal(size=(8, 10)), rng.normal(size=(4, 10))])
    belief = posterior.predict(zeros[: len(Q)], Q)
    with mpmath.workdps(60):
        means = [mpmath.fsum(map(float, y[which == i])) / 50 for i in range(8)]
    mean, variance, logdet = exact_posterior(
        K_x(distinct, distinct), K_x(distinct, Q), K_x.diagonal(Q), means, [50] * 8, ridge
    )
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(belief.std**2, variance, rtol=1e-6)
    np.testing.assert_allclose(belief.logdet, logdet, rtol=1e-6)


@pytest.mark.parametrize("ridge", [1e-10, 1e-6, 1.0, 1e6])
def test_the_variance_is_never_negative_and_nothing_is_nan(rng, ridge):
    kernel = JointKernel(RBF(), DenseKernel(np.ones((1, 1))), Hadamard())
    X = np.repeat(rng.normal(size=(5, 2)), 30, axis=0)
    zeros = np.zeros(len(X), dtype=int)
    posterior = Posterior(kernel, ridge)
    for i in range(len(X)):
        posterior.extend(zeros[:1], X[i : i + 1], np.ones(1))
        belief = posterior.predict(zeros[:20], X[:20])
        assert np.isfinite(belief.mean).all()
        assert (belief.std >= 0).all()
        assert np.isfinite(belief.logdet).all()


def test_a_ridge_below_machine_precision_is_refused_and_nothing_is_learnt(rng):
    posterior = Posterior(JointKernel(RBF(), DenseKernel(np.ones((1, 1))), Hadamard()), 1e-40)
    X = np.zeros((3, 2))
    with pytest.raises(ParameterError, match="not positive definite"):
        posterior.extend(np.zeros(3, dtype=int), X, np.ones(3))
    assert len(posterior) == 0
    posterior.extend(np.zeros(1, dtype=int), X[:1], np.ones(1))
    assert len(posterior) == 1


def test_information_never_hurts(rng, K_z):
    # a larger set of observations never has a larger variance or a smaller determinant
    kernel = JointKernel(RBF(), DenseKernel(K_z), Hadamard())
    u, X, y = data(rng, 60)
    v, Q, _ = data(rng, 10)
    posterior = Posterior(kernel, 0.2)
    before = posterior.predict(v, Q)
    for start in range(0, 60, 10):
        part = slice(start, start + 10)
        posterior.extend(u[part], X[part], y[part])
        after = posterior.predict(v, Q)
        assert (after.std <= before.std + 1e-12).all()
        assert (after.logdet > before.logdet).all()
        before = after


def test_the_determinant_is_the_product_of_the_variances_it_was_built_from(rng, K_z):
    # ∏(1 + σ²/λ) = det(I + K/λ), the identity behind the variance lemma (reading 10)
    kernel, ridge = JointKernel(RBF(), DenseKernel(K_z), Hadamard()), 0.4
    u, X, y = data(rng, 50)
    posterior, total = Posterior(kernel, ridge), 0.0
    for i in range(50):
        std = posterior.predict(u[i : i + 1], X[i : i + 1]).std[0]
        total += np.log1p(std**2 / ridge)
        posterior.extend(u[i : i + 1], X[i : i + 1], y[i : i + 1])
    assert posterior.logdet == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("n", [0, 1, 127, 128, 300])
def test_what_was_learnt_since_a_mark_is_forgotten_to_the_bit(rng, K_z, n):
    kernel = JointKernel(RBF(), DenseKernel(K_z), Hadamard())
    (u, X, y), (v, Q, _) = data(rng, n + 150), data(rng, 6)
    posterior, twin = Posterior(kernel, 0.5), Posterior(kernel, 0.5)
    for each in (posterior, twin):
        each.extend(u[:n], X[:n], y[:n])
    mark = posterior.mark
    posterior.extend(u[n:], X[n:], y[n:])
    posterior.reset(mark)
    for again in range(2):
        one, two = posterior.predict(v, Q), twin.predict(v, Q)
        assert one.mean.tobytes() == two.mean.tobytes(), again
        assert (one.std.tobytes(), one.logdet[0]) == (two.std.tobytes(), two.logdet[0])
        for each in (posterior, twin):  # and it goes on as if nothing had been
            each.extend(u[n:], X[n:], y[n:])
