"""What does a network put into the bounds? χ̄(G_γ) and α(G_γ), each between two bounds."""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import as_count
from coopbandits.network import Network, as_network
from coopbandits.network.centres import bounded_independent_set


@dataclass(frozen=True, slots=True)
class Between:
    """A whole number that is hard to compute: at least `least`, at most `most`.

    Attributes:
        least: A bound from below.
        most: A bound from above.

    Example:
        >>> cb.theory.independence_number(cb.Network.path(5), 1)
        Between(least=3, most=3)
    """

    least: int
    most: int

    @property
    def known(self) -> bool:
        """Whether the bounds meet."""
        return self.least == self.most


def clique_cover_number(network: Network, ttl: int) -> Between:
    """Bound χ̄(G_γ), the fewest cliques of G_γ that share out the agents.

    `most` is the cover that Coop-KernelUCB uses, so the number that its bound holds. On a path
    χ̄ = ⌈V/(γ+1)⌉ (the paper prints ⌈V/γ⌉).

    Args:
        network: The agents.
        ttl: γ.

    Example:
        >>> cb.theory.clique_cover_number(cb.Network.path(6), 2)
        Between(least=2, most=2)
    """
    cover = as_network(network).clique_cover(ttl)
    return Between(cover.lower_bound, len(cover.cliques))


def independence_number(network: Network, ttl: int) -> Between:
    """Bound α(G_γ), the most agents of whom no two are within γ steps of each other.

    Dist-KernelUCB's centres are such agents, so there are at most α of them. No two of them share a
    clique, so α ≤ χ̄.

    Args:
        network: The agents.
        ttl: γ.

    Example:
        >>> cb.theory.independence_number(cb.Network.path(6), 2)
        Between(least=2, most=2)
    """
    gamma = as_count(ttl, "ttl")
    cliques = clique_cover_number(network, gamma).most
    found = len(network.centres(gamma).indices)
    if found < cliques:
        ones = np.ones(len(network), dtype=np.int64)
        chosen, bound = bounded_independent_set(network.power(gamma).arcs.mutual(), ones)
        return Between(max(found, len(chosen)), min(cliques, bound))
    return Between(found, cliques)
