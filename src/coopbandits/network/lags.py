"""After how many rounds is an observation known where? The LOCAL protocol without faults.

Messages move one edge a round and live for γ hops, so who has heard what by when follows from
distances alone.
"""

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.network.network import Network


def lags(network: Network, ttl: int) -> Array:
    """The lag matrix: [v, v'] = max(1, d(v', v)) within γ, else inf.

    At its decision of round t agent v knows the observation of v' of round t' exactly if
    t' + lag ≤ t.
    """
    towards = network.distances.T
    return np.where(towards <= ttl, np.maximum(towards, 1.0), np.inf)


def transmissions(network: Network, ttl: int, rounds: int) -> IntArray:
    """Count the messages on all edges in each round of a faultless network: (T,).

    News of round t' crosses the edges out of every agent at distance h < γ of its origin in round
    t' + h, once per edge, the way back included.
    """
    degrees = network.adjacency.sum(axis=1)
    per_hop = [((network.distances == hop) @ degrees).sum() for hop in range(min(ttl, rounds))]
    padded = np.zeros(rounds, dtype=np.int64)
    padded[: len(per_hop)] = per_hop
    return np.cumsum(padded)
