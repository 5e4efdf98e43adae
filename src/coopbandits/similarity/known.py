"""K_z that is given: nothing, everything, a matrix, of low rank, or clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coopbandits.arrays import (
    CAME_LATER,
    Array,
    ByContent,
    IntArray,
    as_contexts,
    as_floats,
    frozen,
    is_listing,
    short,
)
from coopbandits.errors import ParameterError, ShapeError, SimilarityError
from coopbandits.gp.network_kernel import ClusterKernel, DenseKernel, LowRankKernel
from coopbandits.kernels import Kernel, as_kernel
from coopbandits.network import Network
from coopbandits.similarity.similarity import ByBlocks, as_similarity

# Rounding makes an exact kernel matrix's smallest eigenvalue slightly negative; more than this,
# relative to the largest, is no rounding.
_PSD_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class Alone(ByBlocks):
    """Nothing: K_z is the identity, and every agent learns from itself only.

    Example:
        >>> cb.similarity.Alone().matrix(cb.Network.path(2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    def blocks(self, network: Network) -> ClusterKernel:
        """Return the identity: a cluster for each agent."""
        return ClusterKernel(np.arange(len(network)))


@dataclass(frozen=True, slots=True)
class Same(ByBlocks):
    """As much as my own: K_z is all ones, as if all agents had one reward function.

    Example:
        >>> cb.similarity.Same().matrix(cb.Network.path(2)).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """

    def blocks(self, network: Network) -> ClusterKernel:
        """Return all ones: one cluster."""
        return ClusterKernel(np.zeros(len(network), dtype=np.int64))


@dataclass(frozen=True, eq=False, init=False)
class Known(ByContent, ByBlocks):
    """A K_z that is given: as a matrix, or as network contexts z_v (V, d_z) and a kernel on them.

    Exactly one of `matrix=` and `contexts=` with `kernel=` is given.

    Args:
        contexts: (V, d_z) network contexts z_v.
        kernel: Between them.
        matrix: (V, V) K_z itself.

    Example:
        >>> z = [[0.0], [0.0], [9.0]]
        >>> K_z = cb.similarity.Known(contexts=z, kernel=cb.kernels.RBF())
        >>> K_z.matrix(cb.Network.path(3)).round(6).tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        >>> cb.similarity.Known(matrix=np.eye(3)) == cb.similarity.Known(matrix=np.eye(3))
        True
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

    def blocks(self, network: Network) -> DenseKernel:
        """Return the given K_z, if it is one for these agents."""
        _check_agents("K_z is given", len(self.K_z), network)
        return DenseKernel(self.K_z)

    def matrix(self, network: Network) -> Array:
        """Return the given K_z, if it is one for these agents."""
        return self.blocks(network).matrix


@dataclass(frozen=True, eq=False, init=False)
class LowRank(ByContent, ByBlocks):
    """A K_z of few parts: UUᵀ + diag(δ), what agents share and what each has for itself.

    For as many agents as there are: nothing of it is V × V.

    Args:
        loadings: U (V, r).
        own: δ, (V,) or one number for all; at least 0.

    Example:
        >>> cb.similarity.LowRank([[1.0], [0.5]], own=0.1).matrix(cb.Network.path(2)).tolist()
        [[1.1, 0.5], [0.5, 0.35]]
    """

    U: Array
    delta: Array

    def __init__(self, loadings: object, own: object = 0.0) -> None:
        U = as_contexts(loadings, "the loadings")
        delta = as_floats(own, "own")
        if delta.shape not in ((), (len(U),)) or (delta < 0).any():
            raise ParameterError(
                f"own={short(own)}; expected a number >= 0, or {len(U)} of them, one for each row "
                "of the loadings"
            )
        object.__setattr__(self, "U", frozen(U))
        object.__setattr__(self, "delta", frozen(np.broadcast_to(delta, len(U)).copy()))

    def blocks(self, network: Network) -> LowRankKernel:
        """Return the given K_z, if it is one for these agents."""
        _check_agents("loadings are given", len(self.U), network)
        return LowRankKernel(self.U, self.delta)


@dataclass(frozen=True, eq=False, init=False)
class Clusters(ByContent, ByBlocks):
    """The same within a cluster, nothing across: K_z(v, v') = 1 if the labels agree, else 0.

    Args:
        labels: One for each agent, in the order of their numbers; or by name, {"north": "cold"}.
            By name there may be more than a network has, such as those of agents that join later.

    Example:
        >>> K_z = cb.similarity.Clusters(["cold", "warm", "cold"])
        >>> K_z.matrix(cb.Network.path(3)).tolist()
        [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    labels: IntArray
    by_name: tuple[tuple[str, int], ...] = field(metadata=CAME_LATER, default=())

    def __init__(self, labels: Sequence[object] | np.ndarray | Mapping[str, object]) -> None:
        if isinstance(labels, Mapping):
            names, listed = [*labels], [*labels.values()]
            strangers = [name for name in names if type(name) is not str]
            if strangers or not names:
                raise ShapeError(
                    f"cluster labels by name need names of agents, got {short(labels)}; expected "
                    "such as {'north': 'cold', 'south': 'warm'}"
                )
            codes = _codes(listed)
            pairs = sorted(zip(names, codes.tolist(), strict=True))
            object.__setattr__(self, "labels", frozen(codes[:0]))
            object.__setattr__(self, "by_name", tuple(pairs))
            return
        object.__setattr__(self, "labels", frozen(_codes(labels)))
        object.__setattr__(self, "by_name", ())

    def labels_of(self, network: Network) -> IntArray:
        """Return the label of each agent of a network: (V,)."""
        if not self.by_name:
            if len(self.labels) != len(network):
                raise SimilarityError(
                    f"there are {len(self.labels)} cluster labels, but the network has "
                    f"{len(network)} agents; expected one label for each agent"
                )
            return self.labels
        known = dict(self.by_name)
        missing = next((name for name in network.names if name not in known), None)
        if missing is not None:
            raise SimilarityError(
                f"agent {missing!r} has no cluster label; labels are given for "
                f"{short(list(known))}; expected one for each agent of the network"
            )
        return np.array([known[name] for name in network.names], dtype=np.int64)

    def blocks(self, network: Network) -> ClusterKernel:
        """Return ones within clusters and zeros across."""
        return ClusterKernel(self.labels_of(network))


def _codes(labels: Any) -> IntArray:
    """Number labels, in order: (V,)."""
    hidden = isinstance(labels, np.ma.MaskedArray)
    try:
        given = np.asarray(labels) if is_listing(labels) else np.empty(0)
    except Exception:  # lists within the list; an `__array__` of anybody's may raise anything
        given = np.empty(0)
    if given.dtype.kind == "O" and all(isinstance(label, str) for label in given.flat):
        given = given.astype(np.str_)  # as a table's column of texts
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iubUS" or hidden:
        raise ShapeError(
            f"cluster labels must be a list of whole numbers or names, one for each agent; "
            f"got {short(labels)}"
        )
    return np.unique(given, return_inverse=True)[1].astype(np.int64)


def _check_agents(what: str, given: int, network: Network) -> None:
    if given != len(network):
        raise SimilarityError(
            f"{what} for {given} agents, but the network has {len(network)}; expected one row for "
            "each agent of the network"
        )
