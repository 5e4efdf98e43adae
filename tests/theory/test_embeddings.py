import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from worlds import NETWORKS


def laplacian(network):
    A = network.adjacency | network.adjacency.T
    return np.diag(A.sum(axis=1)) - A.astype(float)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_coordinates_are_the_lowest_eigenvectors_orthogonal_and_centred(network):
    V, L = len(network), laplacian(network)
    z = cb.theory.spectral_embedding(network, V - 1)
    np.testing.assert_allclose(z.T @ z, V * np.eye(V - 1), atol=1e-8)
    np.testing.assert_allclose(z.sum(axis=0), 0, atol=1e-8)
    expected = np.sort(np.linalg.eigvalsh(L))[1:]
    np.testing.assert_allclose(L @ z, z * expected, atol=1e-8)
    first = np.array([column[np.abs(column) > 1e-5][0] for column in z.T])
    assert (first > 0).all()


def test_a_path_is_embedded_by_its_cosines():
    V = 9
    z = cb.theory.spectral_embedding(cb.Network.path(V), 3)
    for j in (1, 2, 3):
        cosine = np.sqrt(2) * np.cos(np.pi * j * (np.arange(V) + 0.5) / V)
        np.testing.assert_allclose(z[:, j - 1], cosine, atol=1e-9)


def test_in_a_complete_network_all_are_equally_far_from_each_other():
    # one eigenvalue V − 1 times over: the rule, not the library, chooses the basis
    V = 6
    z = cb.theory.spectral_embedding(cb.Network.complete(V), V - 1)
    gaps = np.linalg.norm(z[:, None] - z[None, :], axis=2)
    np.testing.assert_allclose(gaps[~np.eye(V, dtype=bool)], np.sqrt(2 * V), rtol=1e-9)
    # agent 0 is moved by the first coordinate only, agent 1 by the first two, and so on
    np.testing.assert_allclose(np.triu(z[: V - 1], k=1), 0, atol=1e-9)
    assert (np.diagonal(z) > 0).all()


def test_two_parts_are_told_apart_by_the_first_coordinate():
    network = cb.Network.from_edges([(0, 1), (1, 2), (3, 4)])
    first = cb.theory.spectral_embedding(network, 1)[:, 0]
    np.testing.assert_allclose(first[:3], first[0])
    np.testing.assert_allclose(first[3:], first[3])
    assert first[0] > 0 > first[3]


def test_agents_that_are_renumbered_keep_their_distances(rng):
    network = NETWORKS["erdos-renyi"]
    order = rng.permutation(len(network))
    renumbered = cb.Network(network.adjacency[np.ix_(order, order)])
    for dim in (2, 4):
        z, y = (cb.theory.spectral_embedding(n, dim) for n in (network, renumbered))
        np.testing.assert_allclose(y @ y.T, (z @ z.T)[np.ix_(order, order)], atol=1e-8)


def test_an_embedding_is_a_set_of_network_contexts():
    network = cb.Network.grid(3, 4)
    z = cb.theory.spectral_embedding(network, 2)
    known = cb.similarity.Known(contexts=z, kernel=cb.kernels.RBF())
    K_z = known.matrix(network)
    near, far = K_z[0, 1], K_z[0, 11]
    assert 1 > near > far
    policy = cb.CoopKernelUCB(kernel=cb.kernels.RBF(), similarity=known, eta=1.0)
    problem = cb.problems.kernel(network, seed=0)
    assert cb.play(problem, policy, 3).regret.shape == (3, 12)


def test_unit_contexts_make_the_linear_kernel_one_on_its_diagonal():
    network = cb.Network.path(5)
    z = cb.theory.spectral_embedding(network, 2, unit=True)
    np.testing.assert_allclose(np.diagonal(cb.kernels.Linear()(z, z)), 1.0)
    with pytest.raises(ParameterError, match="agent 2 has no direction in 1 dimensions"):
        cb.theory.spectral_embedding(network, 1, unit=True)


def test_more_coordinates_than_there_are_are_refused():
    with pytest.raises(ParameterError, match="dim=5 for 5 agents; expected at most 4"):
        cb.theory.spectral_embedding(cb.Network.path(5), 5)


def test_vectors_are_scaled_or_not():
    with pytest.raises(ParameterError, match="unit must be True or False, got array"):
        cb.theory.spectral_embedding(cb.Network.path(3), 1, unit=np.array([True, False]))
