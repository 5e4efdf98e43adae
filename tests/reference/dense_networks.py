"""Networks as arrays of V × V numbers, literally: what sparse rows must agree with."""

import networkx as nx
import numpy as np


def distances(network):
    """[i, j] the distance from i to j, by NetworkX: (V, V), inf where there is no way."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(network)))
    for i, j in network.edges:
        graph.add_edge(i, j)
        if not network.directed:
            graph.add_edge(j, i)
    far = np.full((len(network), len(network)), np.inf)
    for i, reached in nx.all_pairs_shortest_path_length(graph):
        for j, steps in reached.items():
            far[i, j] = steps
    return far


def lags(network, ttl):
    """[v, v'] = max(1, d(v', v)) within γ, else inf."""
    towards = distances(network).T
    return np.where(towards <= ttl, np.maximum(towards, 1.0), np.inf)


def listened(kind, network, ttl):
    """The lag matrix of an answer to: whom do I listen to?"""
    V = len(network)
    own, within = np.eye(V, dtype=bool), lags(network, ttl)
    if kind == "myself":
        return np.where(own, 1.0, np.inf)
    if kind == "clique":
        labels = network.clique_cover(ttl).labels
        return np.where(labels[:, None] == labels, within, np.inf)
    if kind == "centre":
        is_centre = np.isin(np.arange(V), network.centres(ttl).indices)
        return np.where(is_centre[:, None] | own, within, np.inf)
    if kind == "everyone":
        return np.ones((V, V))
    return within


def transmissions(network, ttl, rounds):
    """Messages on all edges in each round: those of h < γ hops ago cross the edges out of where
    they are."""
    far, sends = distances(network), np.zeros(len(network))
    for i, j in network.edges:
        sends[i] += 1
        sends[j] += not network.directed
    sent = [((far == hop) @ sends).sum() for hop in range(min(ttl, rounds))]
    return np.cumsum(np.pad(sent, (0, rounds - len(sent)))).astype(int)


def without_strangers(heard, K_z):
    """Drop from each row those whom no chain of pairs with K_z ≠ 0, all heard, links to it."""
    learnt = np.full_like(heard, np.inf)
    for v, row in enumerate(heard):
        members = np.flatnonzero(np.isfinite(row))
        graph = nx.from_numpy_array(K_z[np.ix_(members, members)] != 0)
        chain = nx.node_connected_component(graph, int(np.flatnonzero(members == v)[0]))
        mine = members[sorted(chain)]
        learnt[v, mine] = row[mine]
    return learnt
