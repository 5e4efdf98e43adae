"""Who is how far from whom? The network of agents, its powers, and its partitions.

`network` holds the agents and their edges, `lags` the rounds after which news is known,
`clique_cover` the cliques of Coop-KernelUCB, `centres` those whom Dist-KernelUCB's agents follow.
"""

from coopbandits.network.edges import LARGEST_NETWORK
from coopbandits.network.lags import Lags
from coopbandits.network.network import Network, as_network
from coopbandits.network.sparse_rows import MOST_DENSE, SparseRows

__all__ = ["LARGEST_NETWORK", "MOST_DENSE", "Lags", "Network", "SparseRows", "as_network"]
