"""Where does an agent stand in its network? Spectral embeddings, as network contexts z_v.

The paper suggests that z_v can be a network embedding of user v (3). This one is computed from the
graph alone: `similarity.Known(contexts=spectral_embedding(network, 3), kernel=RBF())` then takes
agents to be alike as far as the network holds them together.
"""

import numpy as np

from coopbandits.arrays import Array, as_count, as_flag, frozen
from coopbandits.errors import ParameterError
from coopbandits.network import Network, as_network

# Eigenvalues nearer than this, in parts of the largest, are one: the choice of a basis among their
# eigenvectors would otherwise be the library's, and differ from machine to machine.
_SAME = 1e-9
_NEGLIGIBLE = 1e-6


def spectral_embedding(network: Network, dim: int = 2, *, unit: bool = False) -> Array:
    r"""Embed the agents by the eigenvectors of the graph's Laplacian with the lowest eigenvalues.

    Coordinate j of agent v is √V·u_j(v): the first coordinates vary least along edges, so that
    agents near each other in the network are near each other here. The constant vector, which
    tells nothing, is left out; where the network falls into parts, the first coordinates tell them
    apart. Each coordinate has mean 0 and mean square 1. Arcs of a directed network count as edges.

    Eigenvectors are fixed by a rule, so the same network always gives the same embedding: in an
    eigenspace with projector P, take P's columns agent by agent and make each orthogonal to those
    before it. So the first agent that a coordinate moves has a positive one.

    Args:
        network: The agents.
        dim: d_z, how many coordinates; at most V − 1.
        unit: Whether to scale each z_v to length 1, so that the linear kernel has K_z(v, v) = 1,
            as the paper's examples ask.

    Returns:
        (V, d_z), read-only.

    Example:
        >>> z = cb.theory.spectral_embedding(cb.Network.path(4), dim=2)
        >>> z.shape, bool(np.allclose(z.T @ z, 4 * np.eye(2)))
        ((4, 2), True)
    """
    V = len(as_network(network))
    d, unit = as_count(dim, "dim"), as_flag(unit, "unit")
    if d >= V:
        raise ParameterError(
            f"dim={d} for {V} agents; expected at most {V - 1}, as the constant vector is left out"
        )
    A = (network.adjacency | network.adjacency.T).astype(np.float64)
    mu, U = np.linalg.eigh(np.diag(A.sum(axis=1)) - A)
    starts = np.flatnonzero(np.diff(mu, prepend=-np.inf) > _SAME * max(mu[-1], 1.0))
    coordinates: list[Array] = []
    for start, end in zip(starts, [*starts[1:], V], strict=True):
        if len(coordinates) >= d:
            break
        projector = U[:, start:end] @ U[:, start:end].T
        size = end - start
        if start == 0:  # all constant vectors are in the first eigenspace
            projector, size = projector - 1.0 / V, size - 1
        coordinates += _basis(projector, size)
    z = np.sqrt(V) * np.column_stack(coordinates[:d])
    if unit:
        lengths = np.linalg.norm(z, axis=1)
        if lengths.min() < _NEGLIGIBLE:
            raise ParameterError(
                f"agent {int(lengths.argmin())} has no direction in {d} dimensions, so it cannot "
                "be scaled to length 1; take a larger dim, or unit=False"
            )
        z /= lengths[:, None]
    return frozen(z)


def _basis(projector: Array, size: int) -> list[Array]:
    """Return an orthonormal basis of a projector's range, by its columns in order."""
    found: list[Array] = []
    rest = projector.copy()
    for column in range(len(projector)):
        if len(found) == size:
            break
        length = np.sqrt(max(rest[column, column], 0.0))  # of P·e, as P is a projector
        if length > _NEGLIGIBLE:
            direction = rest[:, column] / length
            found.append(direction)
            rest -= np.outer(direction, direction)
    return found
