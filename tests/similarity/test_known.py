import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError, SimilarityError

NETWORK = cb.Network.from_edges([(0, 1), (1, 2), (3, 4)], agents=6)


def test_the_laplacian_similarity_is_its_formula():
    A = NETWORK.adjacency.astype(float)
    L = np.diag(A.sum(axis=1)) - A
    for rho in (0.3, 1.0, 4.0):
        K_z = cb.similarity.Laplacian(rho).matrix(NETWORK)
        np.testing.assert_allclose(K_z, np.linalg.inv(L + rho * np.eye(6)), atol=1e-14)
        assert (np.diag(K_z) <= 1 / rho + 1e-12).all()


def test_under_the_laplacian_agents_of_two_parts_are_strangers():
    K_z = cb.similarity.Laplacian(0.1).matrix(NETWORK)
    assert (K_z[:3, 3:] == 0).all()
    assert (K_z[:3, :3] > 0).all()


def test_the_laplacian_of_a_directed_network_takes_arcs_as_edges():
    arcs = cb.Network.from_edges([(0, 1), (2, 1), (3, 4), (4, 3)], agents=6, directed=True)
    similarity = cb.similarity.Laplacian(0.7)
    np.testing.assert_array_equal(similarity.matrix(arcs), similarity.matrix(NETWORK))


def test_clusters_are_the_same_within_and_strangers_across():
    for labels in ([0, 0, 7, 7, 0, 3], ["a", "a", "b", "b", "a", "c"]):
        K_z = cb.similarity.Clusters(labels).matrix(NETWORK)
        expected = [[float(a == b) for b in labels] for a in labels]
        np.testing.assert_array_equal(K_z, expected)


def test_known_contexts_and_the_matrix_of_their_kernel_are_the_same(rng):
    z, kernel = rng.normal(size=(6, 2)), cb.kernels.RBF(0.8)
    by_contexts = cb.similarity.Known(contexts=z, kernel=kernel)
    by_matrix = cb.similarity.Known(matrix=kernel(z, z))
    np.testing.assert_allclose(by_contexts.matrix(NETWORK), by_matrix.matrix(NETWORK), rtol=1e-14)


def test_a_given_matrix_is_copied(rng):
    given = np.eye(6)
    similarity = cb.similarity.Known(matrix=given)
    given[0, 1] = given[1, 0] = 0.5
    np.testing.assert_array_equal(similarity.matrix(NETWORK), np.eye(6))


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], r"not positive semidefinite.*eigenvalue is -1"),
        ([[1.0, 0.5], [0.4, 1.0]], r"not symmetric: K_z\[0, 1\] = 0.5"),
        ([[1e-12, 9e-13], [1e-13, 1e-12]], r"not symmetric: K_z\[0, 1\] = 9e-13"),
        ([[1e-12, 2e-12], [2e-12, 1e-12]], r"not positive semidefinite.*eigenvalue is -1e-12"),
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
        ([1.0, 1.0], r"shape \(2,\)"),
        (np.ones((2, 3)), r"shape \(2, 3\)"),
        (np.ones((0, 0)), r"shape \(0, 0\)"),
        ("same", "array of numbers"),
    ],
    ids=str,
)
def test_a_matrix_that_is_no_kernel_matrix_is_refused(matrix, complaint):
    with pytest.raises(InputError, match=complaint):
        cb.similarity.Known(matrix=matrix)


def test_a_singular_kernel_matrix_is_accepted(rng):
    half = rng.normal(size=(6, 2))
    cb.similarity.Known(matrix=half @ half.T)


def test_known_takes_either_a_matrix_or_contexts_with_a_kernel(rng):
    z = rng.normal(size=(6, 2))
    for arguments, named in [
        ({}, "nothing"),
        ({"contexts": z}, "contexts="),
        ({"kernel": cb.kernels.RBF()}, "kernel="),
        ({"contexts": z, "kernel": cb.kernels.RBF(), "matrix": np.eye(6)}, "matrix="),
    ]:
        with pytest.raises(ParameterError, match=f"Known got .*{named}"):
            cb.similarity.Known(**arguments)


@pytest.mark.parametrize(
    "similarity",
    [cb.similarity.Known(matrix=np.eye(4)), cb.similarity.Clusters([0, 1, 0, 1])],
    ids=["known", "clusters"],
)
def test_a_similarity_for_other_agents_is_refused(similarity):
    with pytest.raises(SimilarityError, match=r"4 .*6"):
        similarity.matrix(NETWORK)


@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan, "x"])
def test_a_rho_that_is_no_positive_number_is_refused(rho):
    with pytest.raises(InputError, match="rho"):
        cb.similarity.Laplacian(rho)


@pytest.mark.parametrize("labels", [[], [[0, 1]], [0.5, 1.0], None])
def test_labels_that_are_no_labels_are_refused(labels):
    with pytest.raises(InputError, match="labels"):
        cb.similarity.Clusters(labels)
