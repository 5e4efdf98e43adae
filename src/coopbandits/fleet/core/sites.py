"""A fleet's network as it stands in logs, and how one grows out of another.

Sites are called by name. Their numbers are for ever: newcomers come behind all that were.
"""

from coopbandits.errors import NetworkError
from coopbandits.network import Network

Layout = tuple[list[str], list[tuple[int, int]]]


def layout(network: Network) -> Layout:
    """Return the names of all sites and the edges between them, each once."""
    edges = [(v, u) for v in range(len(network)) for u in network.neighbours(v).tolist() if v < u]
    return [*network.names], edges


def founded(sites: list[str], edges: list[tuple[int, int]]) -> Network:
    """Return the network of a layout that grew out of no other."""
    return Network.from_edges([(sites[v], sites[u]) for v, u in edges], names=sites)


def grown(network: Network, sites: list[str], edges: list[tuple[int, int]]) -> Network:
    """Return the network with other sites and edges, as one that grew out of it."""
    before, old = layout(network)
    if sites[: len(before)] != before:
        missing = [name for name in before if name not in sites]
        raise NetworkError(
            f"the fleet's sites were {', '.join(before[:8])}; now "
            + (f"{missing[0]} is missing" if missing else "their order is another")
            + ". Sites keep their numbers for ever: put new ones behind all others, and leave one "
            "that is gone in the list, without edges"
        )
    for number in range(len(before), len(sites)):
        joined = [(sites[v], sites[u]) for v, u in edges if max(v, u) == number]
        network = network.with_agents(sites[number], joined)
    lost, new = set(old) - set(edges), {e for e in edges if max(e) < len(before)} - set(old)
    if new:
        network = network.with_edges([(sites[v], sites[u]) for v, u in sorted(new)])
    if lost:
        network = network.without_edges([(sites[v], sites[u]) for v, u in sorted(lost)])
    return network
