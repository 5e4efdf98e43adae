"""Who is how far from whom? The network of agents, its powers, and its partitions.

`network` holds the agents and their edges, `lags` the rounds after which news is known,
`clique_cover` the cliques of Coop-KernelUCB, `centres` those whom Dist-KernelUCB's agents follow.
"""

from coopbandits.network.network import LARGEST_NETWORK, Network, as_network

__all__ = ["LARGEST_NETWORK", "Network", "as_network"]
