"""Where does each agent of a network stand? Near its clique and neighbours, every time alike."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from coopbandits.lab.group_colours import group_colours

SIDE = 1000
"""Positions are whole numbers from 0 to this."""
MOST_AGENTS = 1200
"""Of larger networks only the agents with the most neighbours are drawn."""
_PULL = 4.0  # of edges within a clique, against those between
_REACH = 3.0  # all edges to other cliques pull an agent as much as this many


def drawing(name: str, facts: dict[str, Any], most_edges: int) -> dict[str, Any]:
    """Return what the page needs to draw a network.

    Args:
        name: Of the network.
        facts: As the run keeps them: agents, edges, cliques, centres.
        most_edges: Edges that may be drawn; those within cliques are drawn first.
    """
    drawn = _drawn_agents(facts)
    places = {agent: place for place, agent in enumerate(drawn)}
    edges = [(places[u], places[v]) for u, v in facts["edges"] if u in places and v in places]
    cliques = [facts["cliques"][agent] for agent in drawn]
    shown = _chosen(edges, cliques, most_edges)
    return {
        "name": name,
        "agents": facts["agents"],
        "edges": len(facts["edges"]),
        "ttl": facts["ttl"],
        "diameter": facts["diameter"],
        "cliqueCount": len(set(facts["cliques"])),
        "alone": sum(size == 1 for size in Counter(facts["cliques"]).values()),
        "bound": facts["clique_cover_bound"],
        "centreCount": len(set(facts["centres"])),
        "graph": facts["graph"],
        "ids": [called(facts, agent) for agent in drawn],
        "at": list(positions(len(drawn), tuple(edges), tuple(cliques))),
        "shown": [end for edge in shown for end in edge],
        "cliques": cliques,
        # an agent whose centre is not drawn has none on the page
        "centres": [places.get(facts["centres"][agent], -1) for agent in drawn],
        "colours": {
            name: _colours([facts[name][agent] for agent in drawn], edges)
            for name in ("cliques", "centres")
        },
    }


def _colours(labels: list[int], edges: list[tuple[int, int]]) -> list[int]:
    """Return the place of each agent's colour among those of groups."""
    colours = group_colours(np.array(labels, dtype=np.int64), edges)
    return [colours[label] for label in labels]


def called(facts: dict[str, Any], agent: int) -> int | str:
    """Return what the page calls an agent: its name, or its number."""
    names = facts.get("names")
    return agent if names is None else str(names[agent])


@lru_cache(maxsize=16)  # a page that is too large is made again with less in it
def positions(
    count: int, edges: Sequence[tuple[int, int]], cliques: Sequence[int]
) -> tuple[int, ...]:
    """Return x and y of every agent, one after the other, by springs from a fixed start."""
    import networkx as nx  # noqa: PLC0415 (heavy)

    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    between = Counter(end for u, v in edges if cliques[u] != cliques[v] for end in (u, v))
    for u, v in edges:
        alike = cliques[u] == cliques[v]
        pull = _PULL if alike else min(1.0, _REACH / max(between[u], between[v]))
        graph.add_edge(u, v, weight=pull)
    placed = nx.spring_layout(graph, seed=0, weight="weight", iterations=120)
    at = np.array([placed[v] for v in range(count)])
    low, high = at.min(axis=0), at.max(axis=0)
    scaled = (at - low) / np.where(high > low, high - low, 1.0)
    return tuple(int(x) for x in np.round(SIDE * scaled).ravel())


def _drawn_agents(facts: dict[str, Any]) -> list[int]:
    if facts["agents"] <= MOST_AGENTS:
        return list(range(facts["agents"]))
    degrees = Counter(end for edge in facts["edges"] for end in edge)
    ranked = sorted(range(facts["agents"]), key=lambda v: (-degrees[v], v))
    return sorted(ranked[:MOST_AGENTS])


def _chosen(edges: list[tuple[int, int]], cliques: list[int], most: int) -> list[tuple[int, int]]:
    """Choose the edges to draw: those within cliques, then others, spread over all of them."""
    within = [(u, v) for u, v in edges if cliques[u] == cliques[v]]
    others = [(u, v) for u, v in edges if cliques[u] != cliques[v]]
    first = _spread(within, most)
    return first + _spread(others, most - len(first))


def _spread(edges: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    if len(edges) <= most:
        return edges
    return [edges[place * len(edges) // most] for place in range(most)]
