"""The paper's setup 1 (§5): linear rewards, one task per cluster of agents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray, Seed, as_choice, as_count, as_seed
from coopbandits.errors import ShapeError
from coopbandits.kernels import Linear
from coopbandits.network import Network, as_network
from coopbandits.problems.noise import Noise, as_noise
from coopbandits.problems.problem import (
    FreshContexts,
    Simulated,
    check_sizes,
    on_sphere,
    structure_rng,
)
from coopbandits.similarity import Clusters


def clustered_linear(
    network: Network,
    *,
    ttl: int = 1,
    dim: int = 10,
    actions: int = 8,
    noise: float | Noise = 0.1,
    seed: Seed = 0,
    clusters: str | Sequence[int] | IntArray | Mapping[str, object] = "centres",
) -> Simulated:
    r"""f_v(x) = θ_cᵀx for v in cluster c, θ_c and contexts uniform on the unit sphere.

    Args:
        network: The agents.
        ttl: γ, of which the clusters are made.
        dim: d.
        actions: How many contexts are offered to each agent in each round.
        noise: A number for Gaussian noise, or a law.
        seed: Of the tasks θ_c. (Contexts and noise come from the seed of `play`.)
        clusters: "centres", one cluster per centre of G_γ and everyone joins its centre;
            "independent sets", the paper's words taken literally; or a label for each agent, in
            order or by name.

    Deviation from the paper: setup 1 says that the clusters are the independent sets of G_γ. Their
    members could never hear each other within γ, against its own motivation, so "centres" is the
    default.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.path(3), clusters=[0, 0, 1], dim=4)
        >>> problem.similarity == cb.similarity.Clusters([0, 0, 1])
        True
        >>> problem.round(1, seed=0).contexts.shape  # three agents, eight actions each
        (24, 4)
    """
    as_network(network)
    gamma, d = as_count(ttl, "ttl"), as_count(dim, "dim")
    count = as_count(actions, "actions")
    check_sizes(agents=len(network), actions=count, dim=d)
    labels = _labels(network, gamma, clusters)
    similarity = Clusters(labels)
    theta = on_sphere(structure_rng(as_seed(seed)), int(similarity.labels.max()) + 1, d)
    return Simulated(
        name="clustered linear",
        network=network,
        draw=FreshContexts(len(network), count, d),
        expected=Tasks(theta, similarity.labels),
        noise=as_noise(noise),
        similarity=similarity,
        kernel=Linear(),
        # F = Σ_c 1{v in c}·θ_cᵀx has one part of norm 1 for each cluster
        norm=float(np.sqrt(len(theta))),
    )


@dataclass(frozen=True, eq=False)
class Tasks:
    """One linear task θ_c per cluster: f_v(x) = θ_cᵀx for v in cluster c."""

    theta: Array
    labels: IntArray

    def __call__(self, agents: IntArray, contexts: Array) -> Array:
        """Evaluate f: (N,), (N, d) -> (N,)."""
        return np.einsum("nd,nd->n", self.theta[self.labels[agents]], contexts)


def _labels(
    network: Network, ttl: int, clusters: str | Sequence[int] | IntArray | Mapping[str, object]
) -> IntArray:
    if isinstance(clusters, str):
        names = ("centres", "independent sets")
        name = as_choice(clusters, "clusters", names, otherwise="a label for each agent")
        return network.centres(ttl).of if name == "centres" else _independent_sets(network, ttl)
    given = Clusters(clusters)
    if not given.by_name and given.labels.shape != (len(network),):
        raise ShapeError(
            f"cluster labels have shape {given.labels.shape}; expected ({len(network)},), one for "
            "each agent"
        )
    return given.labels_of(network)


def _independent_sets(network: Network, ttl: int) -> IntArray:
    """Partition G_γ into independent sets: greedy colouring, agents of many neighbours first."""
    neighbours = network.power(ttl).arcs.either_way()
    labels = np.full(len(network), -1)
    for agent in np.argsort(-neighbours.counts, kind="stable").tolist():
        taken = set(labels[neighbours[agent]].tolist())
        labels[agent] = next(label for label in range(len(network)) if label not in taken)
    return labels
