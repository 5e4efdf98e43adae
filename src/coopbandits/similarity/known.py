"""K_z that is given: nothing, everything, a matrix, or clusters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray, as_contexts, as_floats, frozen, is_listing, short
from coopbandits.errors import ParameterError, ShapeError, SimilarityError
from coopbandits.kernels import Kernel, as_kernel
from coopbandits.network import Network
from coopbandits.similarity.similarity import as_similarity

# Rounding makes an exact kernel matrix's smallest eigenvalue slightly negative; more than this,
# relative to the largest, is no rounding.
_PSD_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class Alone:
    """Nothing: K_z is the identity, and every agent learns from itself only."""

    def matrix(self, network: Network) -> Array:
        """Return the identity."""
        return frozen(np.eye(len(network)))


@dataclass(frozen=True, slots=True)
class Same:
    """As much as my own: K_z is all ones, as if all agents had one reward function."""

    def matrix(self, network: Network) -> Array:
        """Return all ones."""
        return frozen(np.ones((len(network), len(network))))


@dataclass(frozen=True, eq=False, init=False)
class Known:
    """A K_z that is given: as a matrix, or as network contexts z_v (V, d_z) and a kernel on them.

    Exactly one of `matrix=` and `contexts=` with `kernel=` is given.
    """

    K_z: Array

    def __init__(
        self, *, contexts: object = None, kernel: Kernel | None = None, matrix: object = None
    ) -> None:
        by_contexts, by_kernel, by_matrix = (g is not None for g in (contexts, kernel, matrix))
        if by_contexts != by_kernel or by_contexts == by_matrix:
            named = {"contexts": by_contexts, "kernel": by_kernel, "matrix": by_matrix}
            given = [f"{name}=" for name, is_given in named.items() if is_given]
            raise ParameterError(
                f"Known got {' and '.join(given) or 'nothing'} and no more; expected either "
                "matrix= alone, or contexts= together with kernel="
            )
        if kernel is not None:
            z = as_contexts(contexts, "the network contexts")
            K_z = as_kernel(kernel)(z, z)
        else:
            K_z = as_floats(matrix, "the similarity matrix")
        smallest = float(np.linalg.eigvalsh(as_similarity(K_z))[0])
        if smallest < -_PSD_TOLERANCE * np.abs(K_z).max():
            raise SimilarityError(
                f"K_z is not positive semidefinite: its smallest eigenvalue is {smallest:.6g}; "
                "expected a kernel matrix (set negative eigenvalues to 0 to get the nearest one)"
            )
        object.__setattr__(self, "K_z", frozen(0.5 * (K_z + K_z.T)))

    def matrix(self, network: Network) -> Array:
        """Return the given K_z, if it is one for these agents."""
        if len(self.K_z) != len(network):
            raise SimilarityError(
                f"K_z is given for {len(self.K_z)} agents, but the network has {len(network)}; "
                "expected one row for each agent of the network"
            )
        return self.K_z


@dataclass(frozen=True, eq=False, init=False)
class Clusters:
    """The same within a cluster, nothing across: K_z(v, v') = 1 if the labels agree, else 0."""

    labels: IntArray

    def __init__(self, labels: Sequence[object] | np.ndarray) -> None:
        hidden = isinstance(labels, np.ma.MaskedArray)
        try:
            given = np.asarray(labels) if is_listing(labels) else np.empty(0)
        except ValueError:  # lists within the list
            given = np.empty(0)
        if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iubUS" or hidden:
            raise ShapeError(
                f"cluster labels must be a list of whole numbers or names, one for each agent; "
                f"got {short(labels)}"
            )
        codes = np.unique(given, return_inverse=True)[1].astype(np.int64)
        object.__setattr__(self, "labels", frozen(codes))

    def matrix(self, network: Network) -> Array:
        """Return ones within clusters and zeros across."""
        if len(self.labels) != len(network):
            raise SimilarityError(
                f"there are {len(self.labels)} cluster labels, but the network has "
                f"{len(network)} agents; expected one label for each agent"
            )
        return frozen((self.labels[:, None] == self.labels[None, :]).astype(np.float64))
