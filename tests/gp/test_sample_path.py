"""Functions drawn from a posterior have its law: as an identity, and in many draws."""

import numpy as np
import pytest

from coopbandits.errors import ParameterError
from coopbandits.features import Exact, Fourier
from coopbandits.gp.compositions import Hadamard, JointKernel, Sum
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.gp.posterior import Posterior
from coopbandits.gp.sample_path import path_from_posterior, path_from_weights
from coopbandits.gp.statistics import Statistics
from coopbandits.gp.weights import Weights
from coopbandits.kernels import RBF, Linear, Matern

AGENTS, DIM, N, RIDGE = 3, 2, 9, 0.4


class Given:
    """Random numbers that are given: what is drawn is then an affine function of them."""

    def __init__(self, normals):
        self.normals, self.used = normals, 0

    def standard_normal(self, size):
        count = int(np.prod(size))
        taken = self.normals[self.used : self.used + count]
        self.used += count
        return np.pad(taken, (0, count - len(taken))).reshape(size)

    def integers(self, high):
        return 0


def law(draw, X):
    """Offset and covariance at X of all that a draw can be, from one draw for each normal."""
    counter = Given(np.zeros(0))
    offset = draw(counter)(X)
    M = np.column_stack([draw(Given(unit))(X) - offset for unit in np.eye(counter.used)])
    return offset, M @ M.T


def observed(rng, kernel, n=N):
    u, X, y = rng.integers(AGENTS, size=n), rng.normal(size=(n, DIM)), rng.normal(size=n)
    posterior = Posterior(kernel, RIDGE)
    posterior.extend(u, X, y)
    return posterior, u, X, y


def exact(kernel, u, X, y, agent, Q):
    """The closed formula, by an inverse."""
    mine = np.full(len(Q), agent)
    inverse = np.linalg.inv(kernel(u, X, u, X) + RIDGE * np.eye(len(u)))
    W = kernel(mine, Q, u, X) @ inverse
    return W @ y, kernel(mine, Q, mine, Q) - W @ kernel(u, X, mine, Q), W


@pytest.fixture
def K_z(rng):
    z = rng.normal(size=(AGENTS, 2))
    return RBF()(z, z)


@pytest.mark.parametrize("width", [0.0, 1.0, 1.7])
@pytest.mark.parametrize("composition", [Hadamard(), Sum()], ids=repr)
@pytest.mark.parametrize("K_x", [Linear((0.7, 2.0)), Linear() + 0.5 * Linear(2.0)], ids=repr)
def test_with_finite_features_the_law_is_the_posteriors_exactly(rng, K_z, K_x, composition, width):
    kernel = JointKernel(K_x, DenseKernel(K_z), composition)
    posterior, *data = observed(rng, kernel)
    Q = rng.normal(size=(5, DIM))
    for agent in range(AGENTS):
        offset, covariance = law(
            lambda g, v=agent: path_from_posterior(posterior, v, DIM, g, width=width), Q
        )
        mean, expected, _ = exact(kernel, *data, agent, Q)  # type: ignore[call-arg]
        np.testing.assert_allclose(offset, mean, atol=1e-10)
        np.testing.assert_allclose(covariance, width**2 * expected, atol=1e-10)


@pytest.mark.parametrize("K_x", [RBF(1.2), Matern(nu=1.5), RBF() + Linear()], ids=repr)
def test_features_stand_for_the_prior_alone_and_what_data_say_is_exact(rng, K_z, K_x):
    # with Q = φφᵀ for K in the prior: Σ + (I, −W)(Q − K)(I, −W)ᵀ, W = κᵀ(K + λI)⁻¹
    kernel, basis = JointKernel(K_x, DenseKernel(K_z), Hadamard()), Fourier(16, seed=2)
    posterior, u, X, y = observed(rng, kernel)
    at = rng.normal(size=(4, DIM))
    offset, covariance = law(lambda g: path_from_posterior(posterior, 1, DIM, g, basis=basis), at)
    mean, expected, W = exact(kernel, u, X, y, 1, at)
    who, rows = np.append(np.full(4, 1), u), np.vstack([at, X])
    phi = basis.features(K_x, rows)
    error = K_z[np.ix_(who, who)] * (phi @ phi.T) - kernel(who, rows, who, rows)
    left = np.hstack([np.eye(4), -W])
    np.testing.assert_allclose(offset, mean, atol=1e-10)
    np.testing.assert_allclose(covariance, expected + left @ error @ left.T, atol=1e-10)
    assert np.abs(left @ error @ left.T).max() > 1e-3  # sixteen waves do not hide it


def test_many_draws_have_the_posteriors_mean_and_covariance(rng, K_z):
    # waves that are drawn anew average to the kernel itself: nothing but the number of draws counts
    kernel, draws, waves = JointKernel(RBF(), DenseKernel(K_z), Hadamard()), 800, 64
    posterior, *data = observed(rng, kernel)
    Q = np.vstack([data[1][:1], rng.normal(size=(3, DIM))])
    values = np.array([
        path_from_posterior(
            posterior, 2, DIM, rng, width=0.8, basis=Fourier(waves, seed=int(rng.integers(2**32)))
        )(Q)
        for _ in range(draws)
    ])  # fmt: skip
    mean, covariance, W = exact(kernel, *data, 2, Q)  # type: ignore[call-arg]
    covariance *= 0.8**2
    variance = np.diagonal(covariance)
    off = values - mean
    assert (np.abs(off.mean(axis=0)) < 5 * np.sqrt(variance / draws)).all()
    # a Gaussian's, and what the waves add: φφᵀ is a mean of m/2 cosines, carried over by (I, −W)
    carried = 0.8**2 * (1 + np.abs(W).sum(axis=1)) ** 2
    added = np.outer(carried, carried) / (waves / 2)
    spread = np.sqrt((np.outer(variance, variance) + covariance**2 + added) / draws)
    assert (np.abs(off.T @ off / draws - covariance) < 5 * spread).all()
    # and that tells the posterior from the prior
    assert (5 * np.diagonal(spread) < 0.8**2 - variance).any()


def test_the_prior_is_exact_or_made_of_waves_that_are_drawn_anew(rng, K_z):
    linear, *_ = observed(rng, JointKernel(Linear(), DenseKernel(K_z), Hadamard()))
    assert path_from_posterior(linear, 0, DIM, rng).basis == Exact()
    smooth, *_ = observed(rng, JointKernel(RBF(), DenseKernel(K_z), Hadamard()))
    one, two = (path_from_posterior(smooth, 0, DIM, rng).basis for _ in range(2))
    assert (one.count, two.count) == (512, 512)  # type: ignore[attr-defined]
    assert one.seed != two.seed  # type: ignore[attr-defined]


def test_a_drawn_function_stays_the_same_however_it_is_asked(rng, K_z):
    posterior, *_ = observed(rng, JointKernel(Matern(), DenseKernel(K_z), Hadamard()))
    path = path_from_posterior(posterior, 0, DIM, np.random.default_rng(1))
    Q = rng.normal(size=(5, DIM))
    expected = path(Q)
    posterior.extend(np.zeros(200, dtype=int), rng.normal(size=(200, DIM)), rng.normal(size=200))
    np.testing.assert_allclose([path(q[None])[0] for q in Q], expected, atol=1e-12)
    assert np.ptp(expected) > 1e-3


def test_before_anything_is_known_a_function_of_the_prior_is_drawn(rng, K_z):
    kernel = JointKernel(Linear(), DenseKernel(2.0 * K_z), Hadamard())
    posterior, Q = Posterior(kernel, RIDGE), rng.normal(size=(4, DIM))
    offset, covariance = law(lambda g: path_from_posterior(posterior, 1, DIM, g), Q)
    np.testing.assert_array_equal(offset, 0)
    np.testing.assert_allclose(covariance, 2.0 * Q @ Q.T, atol=1e-12)


def test_sums_of_features_give_the_same_law(rng):
    # one agent that is alone: θ ~ N(A⁻¹b, λA⁻¹) from its sums, the posterior from its observations
    kernel, basis = JointKernel(Linear(), DenseKernel(np.eye(1)), Hadamard()), Exact()
    X, y, Q = rng.normal(size=(N, DIM)), rng.normal(size=N), rng.normal(size=(4, DIM))
    sums = Statistics.of(Statistics.rows(X, y).sum(axis=0)[None, None], DIM)
    weights = Weights.pooled(
        np.ones((1, 1, 1)), np.zeros((1, 1)), np.zeros(1, dtype=int), sums, RIDGE
    )
    mean, Z, _ = weights.ask(np.eye(DIM)[None])
    root = np.sqrt(RIDGE) * Z[0]
    offset, covariance = law(
        lambda g: path_from_weights(kernel, basis, 0, mean[0], root, g, width=1.3), Q
    )
    expected_mean, expected, _ = exact(kernel, np.zeros(N, dtype=int), X, y, 0, Q)
    np.testing.assert_allclose(offset, expected_mean, atol=1e-10)
    np.testing.assert_allclose(covariance, 1.3**2 * expected, atol=1e-10)


class Odd:
    def combine(self, K_z, K_x):
        return K_z * K_x**2

    def related(self, K_z):
        return K_z != 0


def test_what_has_no_prior_sample_is_refused(rng, K_z):
    posterior = Posterior(JointKernel(RBF(), DenseKernel(K_z), Odd()), RIDGE)
    with pytest.raises(ParameterError, match=r"Odd.*has no prior sample; expected 'hadamard'"):
        path_from_posterior(posterior, 0, DIM, rng)
    frozen = Posterior(object(), RIDGE)
    with pytest.raises(ParameterError, match="embeddings that are not frozen"):
        path_from_posterior(frozen, 0, DIM, rng)
    posterior = Posterior(JointKernel(RBF(), DenseKernel(K_z), Hadamard()), RIDGE)
    with pytest.raises(ParameterError, match=r"width must be >= 0, got -1\.0"):
        path_from_posterior(posterior, 0, DIM, rng, width=-1.0)
