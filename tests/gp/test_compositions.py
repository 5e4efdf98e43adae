import numpy as np
import pytest

from coopbandits.errors import ParameterError
from coopbandits.gp.compositions import Hadamard, JointKernel, Sum, composition
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.kernels import RBF, Linear


@pytest.fixture
def K_z(rng):
    A = rng.normal(size=(4, 4))
    return A @ A.T


def test_the_observations_gram_is_a_principal_submatrix_of_the_kronecker_product(rng, K_z):
    # four agents, six contexts; some cells of the 4 × 6 grid are observed
    X = rng.normal(size=(6, 2))
    grid = np.kron(K_z, RBF()(X, X))
    cells = rng.choice(24, size=10, replace=False)
    agents, contexts = cells // 6, X[cells % 6]
    for name in ("kronecker", "hadamard"):
        K = JointKernel(RBF(), DenseKernel(K_z), composition(name))(
            agents, contexts, agents, contexts
        )
        np.testing.assert_allclose(K, grid[np.ix_(cells, cells)], rtol=1e-14)


def test_the_sum_is_halved_so_that_a_normalised_kernel_stays_normalised(rng):
    u, X = np.array([0, 1, 1]), rng.normal(size=(3, 2))
    joint = JointKernel(RBF(), DenseKernel(np.array([[1.0, 0.2], [0.2, 1.0]])), Sum())
    np.testing.assert_allclose(joint.diagonal(u, X), 1.0)
    np.testing.assert_allclose(joint(u, X, u, X)[0, 1], (0.2 + RBF()(X[:1], X[1:2])[0, 0]) / 2)


@pytest.mark.parametrize("made", [Hadamard(), Sum()], ids=repr)
def test_every_composition_is_a_kernel_with_the_diagonal_it_says(rng, K_z, made):
    u, X = rng.integers(4, size=20), rng.normal(size=(20, 2))
    joint = JointKernel(RBF(), DenseKernel(K_z), made)
    K = joint(u, X, u, X)
    np.testing.assert_allclose(K, K.T, rtol=1e-14)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    np.testing.assert_allclose(joint.diagonal(u, X), np.diag(K), rtol=1e-14)


def test_compositions_are_found_by_name_or_given():
    assert composition("hadamard") == Hadamard()
    assert composition("sum") == Sum()
    assert composition("kronecker") == Hadamard()
    assert composition(Sum()) == Sum()
    with pytest.raises(ParameterError, match=r"'xor' is not known.*'kronecker' or 'sum'"):
        composition("xor")


class Cubed:
    """A composition of a user's own, which does not tell its share."""

    def combine(self, K_z, K_x):
        return K_z * K_x**3

    def related(self, K_z):
        return K_z != 0


@pytest.mark.parametrize(
    "compose",
    ["hadamard", "sum", Cubed()],
    ids=["hadamard", "sum", "own"],
)
def test_a_joint_kernel_has_the_gradient_of_central_differences(rng, compose):
    K_z = np.array([[1.0, 0.4], [0.4, 0.8]])
    joint = JointKernel(RBF(), DenseKernel(K_z), composition(compose))
    u, X = np.array([0, 1, 1]), rng.normal(size=(3, 2))
    w, Y = np.array([1, 0, 0, 1]), rng.normal(size=(4, 2))
    linear = JointKernel(Linear(), DenseKernel(K_z), composition(compose))
    for j in range(2):
        step = 1e-5 * np.eye(2)[j]
        change = joint(u, X + step, w, Y) - joint(u, X - step, w, Y)
        np.testing.assert_allclose(joint.gradient(u, X, w, Y)[..., j], change / 2e-5, atol=1e-8)
        whole = linear.diagonal(u, X + step) - linear.diagonal(u, X - step)
        own = linear.diagonal_gradient(u, X)[:, j]
        np.testing.assert_allclose(own, whole / 2e-5, rtol=1e-7, atol=1e-7)
