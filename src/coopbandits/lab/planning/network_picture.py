"""How does a small network look, with its agents in groups? Positions, colours and strokes."""

from typing import Any

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.lab.group_colours import group_colours
from coopbandits.network import Network
from coopbandits.palette import FAINT, GROUPS, QUIET

MOST_DRAWN = 100
"""Of a larger network no dots are drawn: `quotient_picture.py` draws its groups."""


def draw_network(axis: Any, network: Network, labels: IntArray) -> list[str]:
    """Draw agents in the colours of their groups; return what the reader must be told.

    Who is alone in its group is white.

    Args:
        axis: Of matplotlib.
        network: Who can send to whom.
        labels: (V,) the group of each agent, 0 … .
    """
    from matplotlib.collections import LineCollection  # noqa: PLC0415 (core starts without it)

    at = positions(network)
    joined = network.arcs.either_way()
    pairs = np.column_stack([joined.rows, joined.agents])
    pairs = pairs[joined.rows < joined.agents]
    alpha = float(np.clip(12 / np.sqrt(len(pairs) + 1), 0.15, 0.8))
    axis.add_collection(
        LineCollection(at[pairs].tolist(), colors=FAINT, linewidths=0.7, alpha=alpha, zorder=1)
    )
    members = np.bincount(labels)
    colours = group_colours(labels, pairs.tolist())
    size = float(np.clip(6000 / len(network), 14, 130))
    for group in np.unique(labels).tolist():
        mine = at[labels == group]
        alone = members[group] == 1
        colour = "white" if alone else GROUPS[colours[group]]
        if not alone:
            bands = [[place.tolist(), mine.mean(axis=0).tolist()] for place in mine]
            axis.add_collection(
                LineCollection(bands, colors=colour, lw=6, alpha=0.3, zorder=2, capstyle="round")
            )
        edge = QUIET if alone else "white"
        axis.scatter(*mine.T, s=size, color=colour, edgecolors=edge, linewidths=0.8, zorder=3)
    axis.set_aspect("equal", adjustable="datalim")
    axis.margins(0.06)
    axis.axis("off")

    singles = int((members == 1).sum())
    notes = ["colours repeat"] if len(members) - singles > len(GROUPS) else []
    notes += [f"white: {singles:,} alone"] if singles else []
    return notes


def positions(network: Network) -> Array:
    """Place agents so that distances on paper are those in the network: (V, 2).

    Each component is placed on its own, its long side across, and the components side by side in
    rows, the largest first.
    """
    at = np.zeros((len(network), 2))
    # in a directed network, the shorter of both ways
    apart = np.minimum(network.distances, network.distances.T)
    parts = sorted(map(np.array, network.components), key=len, reverse=True)
    x = y = tall = 0.0
    width = 1.3 * np.sqrt(len(network))
    for part in parts:
        side = np.sqrt(len(part))
        if x > 0 and x + side > width:
            x, y, tall = 0.0, y - tall, 0.0
        at[part] = _place(apart[np.ix_(part, part)], 0.38 * side)
        at[part] += [x + side / 2, y - side / 2]
        x, tall = x + side, max(tall, side)
    return at


def _place(apart: Array, radius: float) -> Array:
    """Place one component around 0 by Kamada and Kawai's springs: (n, n) -> (n, 2)."""
    import networkx  # noqa: PLC0415 (heavy)

    n = len(apart)
    if n == 1:
        return np.zeros((1, 2))
    apart = np.where(np.isfinite(apart), apart, n)
    distances = {i: dict(enumerate(row)) for i, row in enumerate(apart.tolist())}
    # the springs join all pairs, so only their lengths matter, not which of them are edges
    free = networkx.empty_graph(n)
    placed = networkx.kamada_kawai_layout(free, dist=distances)
    at = np.array([placed[v] for v in range(n)])
    at -= at.mean(axis=0)
    _, axes = np.linalg.eigh(at.T @ at)
    turned: Array = at @ axes[:, ::-1]
    return turned * (radius / np.linalg.norm(turned, axis=1).max())
