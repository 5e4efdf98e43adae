import numpy as np
import pytest

from coopbandits.compositions import Hadamard, JointKernel, Kronecker, Sum, composition
from coopbandits.errors import ParameterError
from coopbandits.kernels import RBF


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
    for made in (Kronecker(), Hadamard()):
        K = JointKernel(RBF(), K_z, made)(agents, contexts, agents, contexts)
        np.testing.assert_allclose(K, grid[np.ix_(cells, cells)], rtol=1e-14)


def test_the_sum_is_halved_so_that_a_normalised_kernel_stays_normalised(rng):
    u, X = np.array([0, 1, 1]), rng.normal(size=(3, 2))
    joint = JointKernel(RBF(), np.array([[1.0, 0.2], [0.2, 1.0]]), Sum())
    np.testing.assert_allclose(joint.diagonal(u, X), 1.0)
    np.testing.assert_allclose(joint(u, X, u, X)[0, 1], (0.2 + RBF()(X[:1], X[1:2])[0, 0]) / 2)


@pytest.mark.parametrize("made", [Hadamard(), Sum(), Kronecker()], ids=repr)
def test_every_composition_is_a_kernel_with_the_diagonal_it_says(rng, K_z, made):
    u, X = rng.integers(4, size=20), rng.normal(size=(20, 2))
    joint = JointKernel(RBF(), K_z, made)
    K = joint(u, X, u, X)
    np.testing.assert_allclose(K, K.T, rtol=1e-14)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    np.testing.assert_allclose(joint.diagonal(u, X), np.diag(K), rtol=1e-14)


def test_compositions_are_found_by_name_or_given():
    assert composition("hadamard") == Hadamard()
    assert composition("sum") == Sum()
    assert composition("kronecker") == Kronecker()
    assert composition(Sum()) == Sum()
    with pytest.raises(ParameterError, match=r"'xor' is not known.*hadamard, kronecker, sum"):
        composition("xor")
