"""Whom do I listen to? And so, over which edges does news travel, and when is it known?

An answer gives the lag matrix of a network, [v, v'] the rounds after which v knows what v' saw
(inf: v does not listen to v'), and the edges that its messages use.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import Array, as_count
from coopbandits.errors import ParameterError
from coopbandits.network import Network
from coopbandits.network.lags import lags


@runtime_checkable
class Listen(Protocol):
    """An answer to: whom do I listen to?"""

    pooled: ClassVar[bool]
    """Whether all agents are one that takes many actions, so that one bound holds for all."""

    def lags(self, network: Network, ttl: int) -> Array:
        """Return the lag matrix: (V, V), inf where an agent is not listened to."""
        ...

    def carrier(self, network: Network) -> Network:
        """Return the network that messages travel on."""
        ...


@dataclass(frozen=True, slots=True)
class Myself:
    """Myself only; nothing is sent."""

    pooled: ClassVar[bool] = False

    def lags(self, network: Network, ttl: int) -> Array:
        """Return 1 on the diagonal, inf elsewhere."""
        return np.where(np.eye(len(network), dtype=np.bool_), 1.0, np.inf)

    def carrier(self, network: Network) -> Network:
        """Return a network without edges."""
        return Network(np.zeros_like(network.adjacency), directed=False)


@dataclass(frozen=True, slots=True)
class Clique:
    """My clique of a clique cover of G_γ (Coop-KernelUCB; Alg. 1, l. 20)."""

    pooled: ClassVar[bool] = False

    def lags(self, network: Network, ttl: int) -> Array:
        """Return the lags within each clique, inf across."""
        labels = network.clique_cover(ttl).labels
        return np.where(labels[:, None] == labels[None, :], lags(network, ttl), np.inf)

    def carrier(self, network: Network) -> Network:
        """Return the network itself: shortest paths may leave the clique."""
        return network


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """My γ-neighbourhood N_γ(v) (Eager-KernelUCB; naive cooperation)."""

    pooled: ClassVar[bool] = False

    def lags(self, network: Network, ttl: int) -> Array:
        """Return the lags within γ."""
        return lags(network, ttl)

    def carrier(self, network: Network) -> Network:
        """Return the network itself."""
        return network


@dataclass(frozen=True, slots=True)
class Centre:
    """A centre listens to its γ-neighbourhood; any other agent's own model to itself (Dist).

    What another agent hears of its centre is an arm to follow (`act.FollowCentre`), not data.
    """

    pooled: ClassVar[bool] = False

    def lags(self, network: Network, ttl: int) -> Array:
        """Return the lags of the centres, and 1 on the diagonal."""
        is_centre = np.zeros(len(network), dtype=np.bool_)
        is_centre[network.centres(ttl).indices] = True
        heard = is_centre[:, None] | np.eye(len(network), dtype=np.bool_)
        return np.where(heard, lags(network, ttl), np.inf)

    def carrier(self, network: Network) -> Network:
        """Return the network itself."""
        return network


@dataclass(frozen=True, slots=True)
class Everyone:
    """Everyone, whatever the network (Centralised).

    With `lag=0` the agents take turns within a round and each sees all pulls before its own: the
    paper's one agent that pulls V·T arms round-robin. With `lag=1` all news is one round old.
    """

    lag: int = 0
    pooled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if as_count(self.lag, "lag", least=0) > 1:
            raise ParameterError(f"lag must be 0 or 1, got {self.lag!r}")

    def lags(self, network: Network, ttl: int) -> Array:
        """Return `lag` for agents whose turn is earlier, 1 for the others."""
        turn = np.arange(len(network))
        return np.where(turn[None, :] < turn[:, None], float(self.lag), 1.0)

    def carrier(self, network: Network) -> Network:
        """Return the complete network: everyone tells everyone directly."""
        return Network.complete(len(network))
