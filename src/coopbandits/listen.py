"""Whom do I listen to? And so, over which edges does news travel, and when is it known?

An answer gives the lags of a network, the rounds after which v knows what v' saw, for those whom v
listens to, and the edges that its messages use.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import Array, as_count
from coopbandits.errors import ParameterError
from coopbandits.network import Lags, Network, SparseRows
from coopbandits.network.lags import check_pairs

__all__ = [
    "Centre",
    "Clique",
    "Everyone",
    "Listen",
    "Myself",
    "Neighbourhood",
]


@runtime_checkable
class Listen(Protocol):
    """An answer to: whom do I listen to?

    Example:
        >>> isinstance(cb.listen.Neighbourhood(), cb.listen.Listen)
        True
    """

    pooled: ClassVar[bool]
    """Whether all agents are one that takes many actions, so that one bound holds for all."""

    def lags(self, network: Network, ttl: int) -> Lags | Array:
        """Return the lags: sparse, or (V, V) with inf where an agent is not listened to."""
        ...

    def carrier(self, network: Network) -> Network:
        """Return the network that messages travel on."""
        ...


@dataclass(frozen=True, slots=True)
class Myself:
    """Myself only; nothing is sent.

    Example:
        >>> cb.listen.Myself().lags(cb.Network.path(3), ttl=1).sources[1].tolist()
        [1]
    """

    pooled: ClassVar[bool] = False

    def lags(self, network: Network, ttl: int) -> Lags:
        """Return 1 for each agent itself."""
        everyone = np.arange(len(network))
        return Lags(SparseRows(np.arange(len(network) + 1), everyone), np.ones_like(everyone))

    def carrier(self, network: Network) -> Network:
        """Return a network without edges."""
        return Network.from_edges([], agents=len(network))


@dataclass(frozen=True, slots=True)
class Clique:
    """My clique of a clique cover of G_γ (Coop-KernelUCB; Alg. 1, l. 20).

    Example:
        >>> cb.listen.Clique().lags(cb.Network.path(4), ttl=1).sources[1].tolist()
        [0, 1]
    """

    pooled: ClassVar[bool] = False

    def lags(self, network: Network, ttl: int) -> Lags:
        """Return the lags within each clique."""
        labels, within = network.clique_cover(ttl).labels, network.lags(ttl)
        return within.kept(labels[within.sources.rows] == labels[within.sources.agents])

    def carrier(self, network: Network) -> Network:
        """Return the network itself: shortest paths may leave the clique."""
        return network


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """My γ-neighbourhood N_γ(v) (Eager-KernelUCB; naive cooperation).

    Example:
        >>> cb.listen.Neighbourhood().lags(cb.Network.path(4), ttl=1).sources[1].tolist()
        [0, 1, 2]
    """

    pooled: ClassVar[bool] = False

    def lags(self, network: Network, ttl: int) -> Lags:
        """Return the lags within γ."""
        return network.lags(ttl)

    def carrier(self, network: Network) -> Network:
        """Return the network itself."""
        return network


@dataclass(frozen=True, slots=True)
class Centre:
    """A centre listens to its γ-neighbourhood; any other agent's own model to itself (Dist).

    What another agent hears of its centre is an arm to follow (`act.FollowCentre`), not data.

    Example:
        >>> network = cb.Network.complete(3)
        >>> lags = cb.listen.Centre().lags(network, ttl=1)
        >>> network.centres(1).of.tolist(), [lags.sources[v].tolist() for v in range(3)]
        ([0, 0, 0], [[0, 1, 2], [1], [2]])
    """

    pooled: ClassVar[bool] = False

    def lags(self, network: Network, ttl: int) -> Lags:
        """Return the lags of the centres, and 1 for each agent itself."""
        is_centre = np.zeros(len(network), dtype=np.bool_)
        is_centre[network.centres(ttl).indices] = True
        within = network.lags(ttl)
        rows = within.sources.rows
        return within.kept(is_centre[rows] | (rows == within.sources.agents))

    def carrier(self, network: Network) -> Network:
        """Return the network itself."""
        return network


@dataclass(frozen=True, slots=True)
class Everyone:
    """Everyone, whatever the network (Centralised).

    With `lag=0` the agents take turns within a round and each sees all pulls before its own: the
    paper's one agent that pulls V·T arms round-robin. With `lag=1` all news is one round old.

    Args:
        lag: 0 for turns within a round, 1 for all at once.

    Example:
        >>> lags = cb.listen.Everyone(lag=1).lags(cb.Network.from_edges([], agents=3), ttl=1)
        >>> lags.sources[0].tolist()
        [0, 1, 2]
    """

    lag: int = 0
    pooled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if as_count(self.lag, "lag", least=0) > 1:
            raise ParameterError(f"lag must be 0 or 1, got {self.lag!r}")

    def lags(self, network: Network, ttl: int) -> Lags:
        """Return `lag` for agents whose turn is earlier, 1 for the others."""
        V = len(network)
        check_pairs(V * V, "what everyone hears of everyone", "a policy that hears neighbours only")
        turn = np.arange(V)
        rounds = np.where(turn[None, :] < turn[:, None], self.lag, 1)
        return Lags(SparseRows(np.arange(V + 1) * V, np.tile(turn, V)), rounds.reshape(-1))

    def carrier(self, network: Network) -> Network:
        """Return the complete network: everyone tells everyone directly."""
        return Network.complete(len(network)).without(*network.left)
