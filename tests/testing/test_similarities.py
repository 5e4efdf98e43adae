"""Given similarities that are none are found, each by what it breaks."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.gp.network_kernel import ClusterKernel, DenseKernel
from coopbandits.testing import check_similarity
from learnt_views import Torn


class Own:
    """1/2 everywhere and 1 on the diagonal, sound but for what a test breaks."""

    def matrix(self, network):
        V = len(network)
        return np.full((V, V), 0.5) + 0.5 * np.eye(V)


class Asymmetric(Own):
    def matrix(self, network):
        K_z = super().matrix(network)
        K_z[0, 1] = 0.4
        return K_z


class Indefinite(Own):
    def matrix(self, network):
        return 2 * np.eye(len(network)) - super().matrix(network)


class Small(Own):
    def matrix(self, network):
        return super().matrix(network)[1:, 1:]


class Hidden(Own):
    def matrix(self, network):
        K_z = super().matrix(network)
        K_z[2] = K_z[:, 2] = 0.0
        return K_z


class Undefined(Own):
    def matrix(self, network):
        K_z = super().matrix(network)
        K_z[1, 1] = np.nan
        return K_z


class Drawn(Own):
    rng = np.random.default_rng(0)

    def matrix(self, network):
        return super().matrix(network) + self.rng.random()


class ByBlocks(Own):
    def blocks(self, network):
        return DenseKernel(self.matrix(network))


class OtherBlocks(Own):
    def blocks(self, network):
        return DenseKernel(np.eye(len(network)))


class NoBlocks(Own):
    def blocks(self, network):
        return self.matrix(network)


class WrongParts(Own):
    """Its matrix is all ones, and so are its blocks, but for their labels."""

    class Kernel(ClusterKernel):
        @property
        def parts(self):
            return np.arange(len(self.labels))

    def matrix(self, network):
        return np.ones((len(network), len(network)))

    def blocks(self, network):
        return self.Kernel(np.zeros(len(network), dtype=int))


class Hasty(Torn):
    def __init__(self, **schedule):
        for name, value in schedule.items():
            object.__setattr__(self, name, value)


@pytest.mark.parametrize(
    "similarity",
    [Own(), ByBlocks(), cb.similarity.Laplacian(0.5), cb.similarity.Coregionalised(rank=1)],
)
def test_a_sound_similarity_passes(similarity):
    check_similarity(similarity)
    check_similarity(similarity, network=cb.Network.star(8), kernel=cb.kernels.RBF(), seed=2)


@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        (Asymmetric(), r"the matrix of .* is not symmetric: 0.4 and 0.5 at \(0, 1\)"),
        (Indefinite(), r"must be positive semidefinite, but has eigenvalues from -"),
        (Small(), r"must have shape \(9, 9\), got \(8, 8\)"),
        (Hidden(), r"must be above 0 on its diagonal, got 0"),
        (Undefined(), r"must be finite, got NaN or infinity at \(1, 1\)"),
        (Drawn(), r"gives another matrix when it is asked again"),
        (OtherBlocks(), r"block of .* is not that of its matrix"),
        (NoBlocks(), r"expected a NetworkKernel of 9 agents"),
        (WrongParts(), r"parts of .* must agree exactly where its matrix is not 0"),
        (Hasty(refresh="never"), r"refresh of .* is 'never'; expected one of every round, growing"),
        (Hasty(growth=1.0), r"growth of .* must be above 1, got 1.0"),
        (Hasty(early=12), r"early of .* must be two numbers >= 0, got 12"),
        (cb.similarity.Same, r"is no similarity; expected a value with matrix"),
        (np.eye(9), r"is no similarity"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_broken_similarity_is_found(similarity, message):
    with pytest.raises(AssertionError, match=message):
        check_similarity(similarity)
