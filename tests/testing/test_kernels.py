"""Kernels that are none are found, each by what it breaks."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError
from coopbandits.testing import check_kernel

RBF = cb.kernels.RBF()


class Own:
    """A Gaussian kernel of one's own, sound but for what a test breaks."""

    def __call__(self, X, Y):
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2) / 2)

    def diagonal(self, X):
        return np.ones(len(X))


class WithGradients(Own):
    def gradient(self, X, Y):
        return (Y[None] - X[:, None]) * self(X, Y)[..., None]

    def diagonal_gradient(self, X):
        return np.zeros_like(X)


class Asymmetric(Own):
    def __call__(self, X, Y):
        return super().__call__(X, Y) * np.exp(0.1 * X[:, :1])


class Indefinite(Own):
    def __call__(self, X, Y):
        return 1 - np.sqrt(((X[:, None] - Y[None]) ** 2).sum(axis=2)) / 2


class Misjudged(Own):
    def diagonal(self, X):
        return np.full(len(X), 2.0)


class Normalising(Own):
    """Scales by the largest of what it is given, so that a pair depends on the others."""

    def __call__(self, X, Y):
        return X @ Y.T / max(1.0, np.abs(X).max() * np.abs(Y).max())

    def diagonal(self, X):
        return np.diag(self(X, X)).copy()


class Overwriting(Own):
    def __call__(self, X, Y):
        X /= 2.0
        Y /= 2.0
        return super().__call__(X, Y)


class DiagonalOverwriting(Own):
    def diagonal(self, X):
        X[:] = 0.0
        return np.ones(len(X))


class Noisy(Own):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, X, Y):
        return super().__call__(X, Y) + 1e-6 * self.rng.random()


class Single(Own):
    def __call__(self, X, Y):
        return super().__call__(X, Y).astype(np.float32)


class Listing(Own):
    def __call__(self, X, Y):
        return super().__call__(X, Y).tolist()


class Flat(Own):
    def __call__(self, X, Y):
        return super().__call__(X, Y).ravel()


class ColumnDiagonal(Own):
    def diagonal(self, X):
        return np.ones((len(X), 1))


class Overflowing(Own):
    def __call__(self, X, Y):
        with np.errstate(all="ignore"):
            return np.exp(X @ Y.T)

    def diagonal(self, X):
        return np.exp((X**2).sum(axis=1))


class Rational(Own):
    """1/|x − y|^0.1 has no value where contexts are equal."""

    def __call__(self, X, Y):
        with np.errstate(divide="ignore"):
            return ((X[:, None] - Y[None]) ** 2).sum(axis=2) ** -0.05

    def diagonal(self, X):
        return np.full(len(X), np.inf)


class Backwards(WithGradients):
    def gradient(self, X, Y):
        return -super().gradient(X, Y)


class Transposed(WithGradients):
    def gradient(self, X, Y):
        return super().gradient(X, Y).transpose(2, 0, 1)


class Undefined(WithGradients):
    def gradient(self, X, Y):
        gaps = Y[None] - X[:, None]
        with np.errstate(invalid="ignore"):
            return gaps / np.abs(gaps) * np.abs(gaps) * self(X, Y)[..., None]


class Steep(WithGradients):
    def diagonal_gradient(self, X):
        return np.ones_like(X)


class NoDiagonal:
    def __call__(self, X, Y):
        return X @ Y.T


@pytest.mark.parametrize("kernel", [Own(), WithGradients(), RBF, 3.0 * RBF, cb.kernels.Linear()])
@pytest.mark.parametrize("dim", [1, 3, 8])
def test_a_sound_kernel_passes(kernel, dim):
    check_kernel(kernel, dim=dim)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Asymmetric(), r"is not symmetric, k\(X, Y\) and k\(Y, X\)ᵀ: .* and .* at \(\d, \d\)"),
        (Indefinite(), r"must be positive semidefinite, but has eigenvalues from -"),
        (Misjudged(), r"diagonal\(X\) of .* is not that of k\(X, X\): 2 and 1 at \(0\)"),
        (Normalising(), r"must rate each pair by itself, all at once and alone"),
        (Overwriting(), r"Overwriting.* changes an array that it is given"),
        (DiagonalOverwriting(), r"the diagonal of .* changes an array that it is given"),
        (Noisy(), r"answers differently when it is asked the same again"),
        (Single(), r"must be a numpy array of float64"),
        (Listing(), r"must be a numpy array of float64, got \[\["),
        (Flat(), r"must have shape \(6, 5\), got \(30,\)"),
        (ColumnDiagonal(), r"diagonal of .* must have shape \(6,\), got \(6, 1\)"),
        (Overflowing(), r"at equal and far contexts must be finite, got NaN or infinity at"),
        (Rational(), r"must be finite, got NaN or infinity at \(0, 0\)"),
        (Backwards(), r"the gradient of .* is not that of differences"),
        (Transposed(), r"the gradient of .* must have shape \(6, 5, 3\), got \(3, 6, 5\)"),
        (Undefined(), r"the gradient of .* at equal contexts must be finite"),
        (Steep(), r"the diagonal_gradient of .* is not that of differences"),
        (NoDiagonal(), r"is no kernel; expected a value with __call__\(X, Y\) and diagonal"),
        (cb.kernels.RBF, r"is no kernel; expected a value"),
        (None, r"None is no kernel"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_broken_kernel_is_found(kernel, message):
    with pytest.raises(AssertionError, match=message):
        check_kernel(kernel)


def test_a_kernel_of_arms_is_checked_between_arms(rng):
    kernel = cb.arms.kernel(arm=cb.arms.Table.separate(3), context=RBF)
    contexts = np.column_stack([rng.integers(3, size=20), rng.normal(size=(20, 2))])
    check_kernel(kernel, contexts=contexts, labels=[0])

    class Leaning:
        """Tells of a slope between arms."""

        def __call__(self, X, Y):
            return kernel(X, Y)

        def diagonal(self, X):
            return kernel.diagonal(X)

        def gradient(self, X, Y):
            slopes = kernel.gradient(X, Y)  # type: ignore[attr-defined]
            slopes[..., 0] = 0.5
            return slopes

    with pytest.raises(AssertionError, match="0 between labels"):
        check_kernel(Leaning(), contexts=contexts, labels=[0])


def test_a_kernel_on_part_of_the_space_is_checked_there(rng):
    class OnTheUnitBall(Own):
        def __call__(self, X, Y):
            assert max(np.abs(X).max(), np.abs(Y).max()) < 1.0
            return super().__call__(X, Y)

    check_kernel(OnTheUnitBall(), contexts=0.9 * rng.random((20, 2)), far=None)
    with pytest.raises(InputError, match="contexts has 5 rows; expected at least 12"):
        check_kernel(OnTheUnitBall(), contexts=0.9 * rng.random((5, 2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 0}, "dim must be a whole number >= 1"),
        ({"rtol": 0.0}, "rtol must be above 0"),
        ({"far": -1.0}, "far must be above 0"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_settings_of_a_check_are_no_failed_check(change, message):
    with pytest.raises(InputError, match=message):
        check_kernel(RBF, **change)
