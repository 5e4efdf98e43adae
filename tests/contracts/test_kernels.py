"""What every kernel must be: a new one is tested by being written."""

import dataclasses
import inspect

import numpy as np
import pytest

import coopbandits as cb
from coopbandits import arms, kernels
from coopbandits.testing import check_kernel

DIM, ARMS = 3, 4
TABLE = arms.Table([[1.0, 0.5, 0.0, 0.2], [0.5, 2.0, 0, 0], [0, 0, 0, 0], [0.2, 0, 0, 1.0]])
MADE = [
    kernels.Linear(),
    kernels.Linear(lengthscale=(0.5, 1.0, 2.0)),
    kernels.RBF(),
    kernels.RBF(lengthscale=(0.5, 1.0, 2.0)),
    kernels.Matern(nu=0.5),
    kernels.Matern(nu=1.5, lengthscale=0.7),
    kernels.Matern(nu=2.5, lengthscale=(0.5, 1.0, 2.0)),
    kernels.Matern(nu=0.3),
    kernels.Matern(nu=0.8),
    kernels.Matern(nu=1.0),
    kernels.Matern(nu=4.2),
    kernels.Matern(nu=40.0),
    0.3 * kernels.RBF(),
    kernels.RBF() * kernels.Linear(),
    kernels.RBF(0.5) + 0.5 * kernels.Linear() * kernels.Matern(nu=1.5),
    TABLE,
    arms.ActiveDimensions(TABLE, 0),
    arms.ActiveDimensions(kernels.Matern(nu=1.5), [0, 2]),
    arms.ActiveDimensions(kernels.RBF((0.5, 2.0)), 1, others=True),
    arms.kernel(arm=TABLE, context=kernels.RBF()),
    0.5 * arms.kernel(arm=TABLE, context=kernels.Linear())
    + arms.ActiveDimensions(kernels.RBF(), 1),
]


def has_arms(kernel):
    if kernel == TABLE:
        return True
    parts = [getattr(kernel, name, None) for name in ("kernel", "left", "right")]
    return any(has_arms(part) for part in parts if part is not None)


def drawn(kernel, rng, n):
    """Contexts that a kernel takes: where it has arms, their first number is one."""
    X = rng.normal(size=(n, DIM))
    if has_arms(kernel):
        X[:, 0] = rng.integers(ARMS, size=n)
    return X[:, :1] if kernel == TABLE else X


def test_every_kernel_of_the_package_is_under_contract():
    written = {
        kind
        for room in (kernels, arms)
        for _, kind in inspect.getmembers(room, inspect.isclass)
        if kind.__module__ == room.__name__ and dataclasses.is_dataclass(kind)
    }
    assert written == {type(kernel) for kernel in MADE}


@pytest.mark.parametrize("kernel", MADE, ids=repr)
class TestEveryKernel:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_is_a_kernel(self, kernel, rng, seed):
        labels = [0] if has_arms(kernel) else []
        contexts = drawn(kernel, rng, 34)
        check_kernel(kernel, contexts=contexts, labels=labels, rtol=1e-13, seed=seed)

    def test_is_a_value(self, kernel):
        assert kernel == dataclasses.replace(kernel)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign"):
            setattr(kernel, dataclasses.fields(kernel)[0].name, None)

    def test_can_be_scaled_added_and_multiplied(self, kernel, rng):
        X, Y = drawn(kernel, rng, 4), drawn(kernel, rng, 3)
        other = cb.kernels.RBF(0.8)
        for made, expected in [
            (2.5 * kernel, 2.5 * kernel(X, Y)),
            (kernel * 2.5, 2.5 * kernel(X, Y)),
            (kernel + other, kernel(X, Y) + other(X, Y)),
            (kernel * other, kernel(X, Y) * other(X, Y)),
        ]:
            np.testing.assert_allclose(made(X, Y), expected, rtol=1e-14)
