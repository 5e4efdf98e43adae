import numpy as np
import pytest

from coopbandits import kernels
from coopbandits.errors import ParameterError, ShapeError
from coopbandits.kernels import RBF, Linear, Matern, Scaled, matern_profile
from reference import formulas


@pytest.mark.parametrize(
    ("kernel", "literal"),
    [
        (Linear(), formulas.linear),
        (Linear(2.0), lambda x, y: formulas.linear(x, y, 2.0)),
        (RBF(0.7), lambda x, y: formulas.rbf(x, y, 0.7)),
        (RBF((0.5, 1, 3)), lambda x, y: formulas.rbf(x, y, np.array([0.5, 1, 3]))),
        (RBF(np.array([0.5, 1, 3])), lambda x, y: formulas.rbf(x, y, np.array([0.5, 1, 3]))),
        *[
            (Matern(nu=nu, lengthscale=1.3), lambda x, y, nu=nu: formulas.matern(x, y, nu, 1.3))
            for nu in (0.5, 0.8, 1.5, 2.0, 2.5, 3.7, 12.0)
        ],
    ],
    ids=lambda value: repr(value) if not callable(value) or hasattr(value, "diagonal") else "",
)
def test_every_kernel_equals_its_formula(rng, kernel, literal):
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(5, 3))
    X[0] = Y[0]
    np.testing.assert_allclose(kernel(X, Y), formulas.gram(literal, X, Y), rtol=1e-11)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_general_matern_formula_has_the_closed_forms_as_special_cases(nu):
    r = np.array([[0.0, 1e-8, 1e-3, 0.1, 1.0, 5.0, 30.0]]).T
    closed = Matern(nu=nu)(r, np.zeros((1, 1)))[:, 0]
    np.testing.assert_allclose(matern_profile(np.sqrt(2 * nu) * r[:, 0], nu), closed, rtol=1e-12)


def test_a_very_smooth_matern_is_nearly_rbf(rng):
    X = rng.normal(size=(8, 2))
    np.testing.assert_allclose(Matern(nu=500.0)(X, X), RBF()(X, X), atol=2e-3)


def test_a_smooth_matern_stays_finite_where_its_bessel_function_overflows():
    z = np.array([0.0, 1e-300, 1e-8, 1e-3, 1.0])
    k = matern_profile(z, 80.0)
    assert np.isfinite(k).all()
    np.testing.assert_allclose(k, 1 - z**2 / (4 * 79), atol=1e-5)
    assert (np.diff(k) <= 0).all()


def test_the_product_of_two_rbf_kernels_is_rbf_on_scaled_concatenated_contexts(rng):
    # the paper's Examples (§3.2): K_z ⊙ K_x with x̂ = [x/σ_x; z/σ_z]
    x, z = rng.normal(size=(9, 3)), rng.normal(size=(9, 2))
    product = RBF(0.6)(x, x) * RBF(1.7)(z, z)
    joined = np.hstack([x / 0.6, z / 1.7])
    np.testing.assert_allclose(product, RBF()(joined, joined), rtol=1e-12)


@pytest.mark.parametrize("kind", [Linear, RBF, Matern])
@pytest.mark.parametrize(
    "lengthscale",
    [1e-60, [1, [2]], 10**400, 0.0, -1.0, np.nan, np.inf, (1.0, 0.0), (), "wide", None],
)
def test_a_lengthscale_that_is_no_positive_number_is_refused(kind, lengthscale):
    with pytest.raises(ValueError, match="lengthscale"):
        kind(lengthscale=lengthscale)


@pytest.mark.parametrize("nu", [0.0, -0.5, np.nan, np.inf, "smooth", 1001])
def test_a_smoothness_that_is_no_positive_number_is_refused(nu):
    with pytest.raises(ValueError, match="nu must be"):
        Matern(nu=nu)


def test_contexts_that_do_not_fit_the_lengthscales_are_refused(rng):
    with pytest.raises(ShapeError, match=r"2 lengthscales.*\(4, 3\)"):
        RBF((1.0, 2.0))(rng.normal(size=(4, 3)), rng.normal(size=(4, 3)))


def test_a_negative_scale_is_refused():
    with pytest.raises(ParameterError, match="scale must be >= 0, got -1"):
        -1.0 * RBF()


def test_a_kernel_plus_a_number_is_refused():
    for make in (lambda: RBF() + 1.0, lambda: 1.0 + RBF(), lambda: RBF() + RBF):
        with pytest.raises(ParameterError, match="is no kernel"):
            make()
    with pytest.raises(ParameterError, match="is no kernel"):
        RBF() * RBF


def test_kernels_can_be_summed():
    X = np.ones((2, 2))
    np.testing.assert_array_equal(sum([RBF(), Linear()])(X, X), RBF()(X, X) + Linear()(X, X))


class Cubic:
    """A kernel of a user's own, without gradients."""

    def __call__(self, X, Y):
        return (1 + X @ Y.T) ** 3

    def diagonal(self, X):
        return (1 + (X**2).sum(axis=1)) ** 3


def test_a_kernel_without_a_gradient_is_differentiated_by_differences(rng):
    X, Y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    expected = 3 * ((1 + X @ Y.T) ** 2)[..., None] * Y
    np.testing.assert_allclose(kernels.gradient_of(Cubic(), X, Y), expected, rtol=1e-8, atol=1e-7)
    product = RBF() * Cubic()
    whole = RBF().gradient(X, Y) * Cubic()(X, Y)[..., None] + RBF()(X, Y)[..., None] * expected
    np.testing.assert_allclose(product.gradient(X, Y), whole, rtol=1e-8, atol=1e-7)  # type: ignore[attr-defined]
    own = 6 * ((1 + (X**2).sum(axis=1)) ** 2)[:, None] * X
    np.testing.assert_allclose(kernels.diagonal_gradient_of(Cubic(), X), own, rtol=1e-8, atol=1e-7)


def test_a_kink_has_no_slope():
    X = np.array([[0.3, 0.1]])
    for nu in (0.2, 0.5, 0.9, 1.0):
        assert (Matern(nu=nu).gradient(X, X) == 0).all()


@pytest.mark.parametrize("left", [np.ones(2), np.eye(2), np.ma.masked, np.array(["a"]), "a", [1]])
def test_only_a_number_multiplies_and_only_a_kernel_is_added_from_the_left(left):
    with pytest.raises(ParameterError, match="a kernel's scale must be a number"):
        left * RBF()
    with pytest.raises(ParameterError, match="is no kernel"):
        left + RBF()


@pytest.mark.parametrize("two", [2, np.float64(2.0), np.int64(2), np.array(2.0)], ids=repr)
def test_numbers_of_numpy_scale_a_kernel_from_both_sides(two):
    assert two * RBF() == RBF() * two == Scaled(RBF(), 2.0)
    assert sum([RBF(), Linear()]) == np.int64(0) + RBF() + Linear() == RBF() + Linear()
