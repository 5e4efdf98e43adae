"""What every given similarity must be: a new one is tested by being written."""

import dataclasses
import inspect

import numpy as np
import pytest

from coopbandits import kernels, similarity
from coopbandits.testing import check_similarity
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
        similarity.Population(0.7),
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
    def test_is_a_similarity(self, name, index):
        network = NETWORKS[name]
        check_similarity(made_for(network)[index], network=network, rtol=1e-12)

    def test_hands_out_a_read_only_matrix(self, name, index):
        network = NETWORKS[name]
        value = made_for(network)[index]
        with pytest.raises(ValueError, match="read-only"):
            value.matrix(network)[0, 0] = 2.0
