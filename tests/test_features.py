import numpy as np
import pytest

import coopbandits as cb
from coopbandits import features
from coopbandits.errors import InputError, ParameterError, ShapeError
from coopbandits.kernels import RBF, Linear, Matern


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Linear((0.5, 2.0, 1.0)),
        0.3 * Linear(2.0),
        Linear() + 0.5 * Linear((1.0, 3.0, 2.0)),
    ],
    ids=repr,
)
def test_exact_features_are_the_kernel(rng, kernel):
    X, Y = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    basis = features.Exact()
    phi, psi = basis.features(kernel, X), basis.features(kernel, Y)
    np.testing.assert_allclose(phi @ psi.T, kernel(X, Y), atol=1e-12)
    assert phi.shape == (7, basis.size(kernel, 3))
    assert features.is_finite(kernel)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        RBF((0.7, 2.0, 1.3)),
        Matern(nu=0.5),
        Matern(nu=2.5, lengthscale=1.7),
        RBF(1.5) * Matern(nu=1.5),
        RBF(2.0) * (0.5 * RBF() + Matern(nu=2.5)),
        0.4 * RBF() + Linear(),
    ],
    ids=repr,
)
def test_fourier_features_come_near_the_kernel_as_their_number_grows(rng, kernel):
    X = rng.normal(size=(30, 3))
    truth = kernel(X, X)
    errors = []
    for count in (64, 1024, 16384):
        basis = features.Fourier(count, seed=3)
        phi = basis.features(kernel, X)
        assert phi.shape[1] == basis.size(kernel, 3)
        # |φ(x)|² = k(x, x) exactly, whatever the count
        np.testing.assert_allclose((phi**2).sum(axis=1), kernel.diagonal(X), rtol=1e-10)
        errors.append(np.sqrt(((phi @ phi.T - truth) ** 2).mean()))
    # the error falls like m^(−1/2): by 16 from the first to the last
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.02
    assert 6 < errors[0] / errors[2] < 45


def test_fourier_features_are_the_same_for_the_same_seed_and_in_any_batch(rng):
    X = rng.normal(size=(6, 4))
    one, two = (features.Fourier(32, seed=5).features(RBF(), X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    rows = np.vstack([features.Fourier(32, seed=5).features(RBF(), x[None]) for x in X])
    np.testing.assert_allclose(rows, one, atol=1e-14)
    assert not np.allclose(one, features.Fourier(32, seed=6).features(RBF(), X))


@pytest.mark.parametrize("kernel", [RBF(), Matern(nu=0.5), Linear() * RBF()], ids=repr)
def test_nystrom_features_are_exact_at_the_reference_and_never_too_large(rng, kernel):
    R, X = rng.normal(size=(12, 3)), rng.normal(size=(40, 3))
    basis = features.Nystrom(R)
    phi = basis.features(kernel, R)
    np.testing.assert_allclose(phi @ phi.T, kernel(R, R), atol=1e-8)
    assert phi.shape[1] == basis.size(kernel, 3) <= 12
    psi = basis.features(kernel, X)
    assert ((psi**2).sum(axis=1) <= kernel.diagonal(X) + 1e-9).all()


def test_nystrom_features_of_repeated_references_have_as_many_as_there_are_different_ones(rng):
    R = np.repeat(rng.normal(size=(4, 2)), 3, axis=0)
    assert features.Nystrom(R).size(RBF(), 2) == 4


def test_a_basis_that_does_not_fit_says_what_does(rng):
    with pytest.raises(ParameterError, match="no finite exact features"):
        features.Exact().features(RBF(), np.eye(2))
    with pytest.raises(ParameterError, match="no Fourier features"):
        features.Fourier().features(RBF() * Linear(), np.eye(2))
    with pytest.raises(ShapeError, match="3 lengthscales"):
        features.Fourier().features(RBF((1.0, 2.0, 3.0)), np.eye(2))
    with pytest.raises(ShapeError, match="reference contexts have 2 numbers"):
        features.Nystrom(np.eye(2)).features(RBF(), np.eye(3))
    with pytest.raises(ParameterError, match="even"):
        features.Fourier(33)
    policy = cb.EagerKernelUCB(kernel=RBF() * Linear())  # K_z by evidence needs a basis
    with pytest.raises(ParameterError, match=r"features=Nystrom\(reference\)"):
        policy.agent(0, cb.Network.path(2))
    for wrong in ("fourier", features.Fourier):
        for make in (
            cb.similarity.Evidence,
            cb.similarity.MeanEmbedding,
            cb.similarity.Coregionalised,
            cb.similarity.Laplacian.by_evidence,
            cb.similarity.Population.by_evidence,
        ):
            with pytest.raises(ParameterError, match="is no basis"):
                make(features=wrong)


class Squares:
    """A basis of a user's own, without a Jacobian."""

    def features(self, kernel, X):
        return X**2

    def size(self, kernel, dim):
        return dim


@pytest.mark.parametrize(
    ("basis", "kernel"),
    [
        (features.Exact(), Linear((0.5, 2.0, 1.0))),
        (features.Exact(), 0.3 * Linear() + Linear(2.0)),
        (features.Fourier(32), RBF((0.7, 2.0, 1.3))),
        (features.Fourier(32), 0.5 * RBF() * Matern(nu=1.5) + Linear(0.8)),
        (features.Nystrom(np.random.default_rng(0).normal(size=(9, 3))), Matern(nu=2.5)),
        (features.Leading(features.Fourier(32), 5), RBF()),
        (features.Leading(Squares(), 2), RBF()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_basis_has_the_jacobian_of_central_differences(rng, basis, kernel):
    X = rng.normal(size=(6, 3))
    jacobian = features.jacobian_of(basis, kernel, X)
    assert jacobian.shape == (6, basis.size(kernel, 3), 3)
    for j in range(3):
        step = 1e-5 * np.eye(3)[j]
        change = basis.features(kernel, X + step) - basis.features(kernel, X - step)
        np.testing.assert_allclose(jacobian[..., j], change / 2e-5, atol=2e-8)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"basis": None}, "None is no basis of features"),
        ({"basis": "Fourier"}, "'Fourier' is no basis of features"),
        ({"basis": features.Fourier}, "is no basis of features"),
        ({"count": 0}, "number of features must be a whole number >= 1, got 0"),
        ({"count": 2.5}, "number of features must be a whole number"),
        ({"count": np.array([1, 2])}, "number of features must be a whole number"),
    ],
    ids=str,
)
def test_leading_features_are_some_of_a_basis(settings, said):
    with pytest.raises(ParameterError, match=said):
        features.Leading(**{"basis": features.Fourier(8), **settings})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kernel": None}, "None is no kernel"),
        ({"kernel": RBF}, "is no kernel"),
        ({"contexts": [[1.0, 2.0], [3.0]]}, "sample of contexts must be an array of numbers"),
        ({"contexts": [1.0, 2.0]}, r"sample of contexts has shape \(2,\)"),
        ({"most": 0}, "most must be a whole number >= 1, got 0"),
        ({"most": "all"}, "most must be a whole number >= 1, got 'all'"),
        ({"tolerance": -1.0}, "tolerance must be >= 0"),
        ({"tolerance": np.nan}, "tolerance must be finite"),
        ({"tolerance": None}, "tolerance must be a number"),
    ],
    ids=str,
)
def test_a_reference_is_chosen_by_a_kernel_from_contexts(settings, said):
    with pytest.raises(InputError, match=said):
        features.reference(**{"kernel": RBF(), "contexts": np.eye(3), **settings})


def test_features_that_do_not_fit_into_memory_are_refused_before_they_are_made():
    with pytest.raises(ParameterError, match=r"1,000,000,000 features .* take 8e\+09 GB; expected"):
        features.Fourier(10**9)
    sample = np.linspace(0.0, 1.0, 10**5)[:, None]
    with pytest.raises(ParameterError, match="reference contexts would take 80 GB for 100,000 × "):
        features.reference(RBF(), sample, most=10**9)
