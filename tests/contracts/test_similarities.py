"""What every given similarity must be: a new one is tested by being written."""

import dataclasses
import inspect

import numpy as np
import pytest

from coopbandits import kernels, similarity
from worlds import NETWORKS, network_contexts


def made_for(network):
    V = len(network)
    return [
        similarity.Alone(),
        similarity.Same(),
        similarity.Known(matrix=np.full((V, V), 0.5) + 0.5 * np.eye(V)),
        similarity.Known(contexts=network_contexts(V), kernel=kernels.Matern(nu=1.5)),
        similarity.Clusters(np.arange(V) % 3),
        similarity.Clusters({str(v): "ab"[v % 2] for v in range(V + 3)}),
        similarity.LowRank(network_contexts(V), own=0.3),
        similarity.Laplacian(0.4),
        similarity.ArmNetwork(np.kron(np.full((V, V), 0.5) + 0.5 * np.eye(V), np.eye(2)), arms=2),
    ]


def test_every_given_similarity_of_the_package_is_under_contract():
    written = {
        kind
        for _, kind in inspect.getmembers(similarity, inspect.isclass)
        if dataclasses.is_dataclass(kind) and hasattr(kind, "matrix")
        and kind is not similarity.Loadings
    }  # fmt: skip
    assert written == {type(value) for value in made_for(NETWORKS["path"])}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("index", range(len(made_for(NETWORKS["path"]))))
class TestEverySimilarity:
    def test_is_a_kernel_matrix_of_the_agents(self, name, index):
        network = NETWORKS[name]
        value = made_for(network)[index]
        assert isinstance(value, similarity.Given)
        K_z = value.matrix(network)
        assert K_z.shape == (len(network), len(network))
        assert K_z.dtype == np.float64
        np.testing.assert_array_equal(K_z, K_z.T)
        assert np.linalg.eigvalsh(K_z)[0] > -1e-12
        assert (np.diag(K_z) > 0).all()

    def test_says_the_same_by_blocks_pair_by_pair_and_as_a_matrix(self, name, index, rng):
        network = NETWORKS[name]
        value = made_for(network)[index]
        K_z, V = value.matrix(network), len(network)
        kernel = similarity.network_kernel(value, network)
        assert len(kernel) == V
        rows, columns = rng.integers(V, size=2 * V), rng.integers(V, size=V)
        exact = {"rtol": 1e-12, "atol": 1e-14}
        np.testing.assert_allclose(kernel.block(rows, columns), K_z[np.ix_(rows, columns)], **exact)
        pairs = rows, rng.permutation(rows)
        np.testing.assert_allclose(kernel.between(*pairs), K_z[pairs], **exact)
        np.testing.assert_allclose(kernel.own(rows), np.diagonal(K_z)[rows], **exact)
        if kernel.parts is not None:
            alike = kernel.parts[:, None] == kernel.parts
            np.testing.assert_array_equal(alike, K_z != 0)

    def test_hands_out_a_read_only_matrix_that_is_always_the_same(self, name, index):
        network = NETWORKS[name]
        value = made_for(network)[index]
        np.testing.assert_array_equal(value.matrix(network), value.matrix(network))
        with pytest.raises(ValueError, match="read-only"):
            value.matrix(network)[0, 0] = 2.0
