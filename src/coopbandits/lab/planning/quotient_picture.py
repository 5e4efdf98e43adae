"""How do the groups of a large network lie beside each other? A disc for each group.

The quotient of a network by its groups: a group is one vertex, and the edges between two groups are
one line. Of several hundred groups the largest are drawn, and of lines the strongest, so that the
picture stays one that can be read; what is left out is said.
"""

from typing import Any

import numpy as np

from coopbandits.arrays import IntArray
from coopbandits.lab.group_colours import group_colours
from coopbandits.lab.planning.network_picture import positions
from coopbandits.network import Network
from coopbandits.palette import FAINT, GROUPS, QUIET

MOST_DISCS = 60
"""Of more groups the largest are drawn."""
MOST_LINES = 3
"""From each group so many lines are drawn at least, to those it has most edges with."""
# Square points that a disc has at most, and that all of them cover.
_LARGEST, _COVERED = 2600, 30_000


def draw_quotient(axis: Any, network: Network, labels: IntArray) -> list[str]:
    """Draw each group as a disc, as large as it has agents; return what the reader must be told.

    Args:
        axis: Of matplotlib.
        network: Who can send to whom.
        labels: (V,) the group of each agent, 0 … .
    """
    from matplotlib.collections import LineCollection  # noqa: PLC0415 (core starts without it)

    sizes = np.bincount(labels)
    drawn = np.sort(np.argsort(-sizes, kind="stable")[:MOST_DISCS])
    pairs, edges = between(network, labels, drawn)
    strongest = _strongest(pairs, edges, len(drawn))
    quotient = Network.from_edges(pairs[strongest].tolist(), agents=len(drawn))
    at = positions(quotient)
    if len(strongest):
        widths = 0.5 + 4.0 * np.sqrt(edges[strongest] / edges.max())
        lines = at[pairs[strongest]].tolist()
        axis.add_collection(
            LineCollection(lines, colors=FAINT, linewidths=widths.tolist(), alpha=0.6, zorder=1)
        )
    members = sizes[drawn]
    arcs = zip(network.arcs.rows.tolist(), network.arcs.agents.tolist(), strict=True)
    place = group_colours(labels, arcs)
    faces = ["white" if sizes[g] == 1 else GROUPS[place[g]] for g in drawn.tolist()]
    borders = [QUIET if n == 1 else "white" for n in members.tolist()]
    areas = np.clip(members * min(_LARGEST / members.max(), _COVERED / members.sum()), 40, None)
    axis.scatter(
        *at.T, s=areas, c=faces, edgecolors=borders, linewidths=0.8, zorder=3, clip_on=False
    )
    for (x, y), count, area in zip(at.tolist(), members.tolist(), areas.tolist(), strict=True):
        if count > 1 and area >= 130:
            axis.annotate(f"{count:,}", (x, y), ha="center", va="center", fontsize=7, zorder=4)
    axis.set_aspect("equal", adjustable="datalim")
    axis.margins(0.09)
    axis.axis("off")

    notes = ["a disc is a clique, with its agents; white: one agent alone"]
    notes.append("wider lines are more edges between them")
    if len(strongest) < len(pairs):
        notes[-1] += f", the {MOST_LINES} strongest of each"
    if len(drawn) < len(sizes):
        notes.append(
            f"the {len(drawn)} largest cliques are drawn, {members.sum():,} of {len(network):,} "
            "agents"
        )
    return notes


def between(network: Network, labels: IntArray, drawn: IntArray) -> tuple[IntArray, IntArray]:
    """Count the edges between groups: pairs of places in `drawn`, (n, 2), and how many, (n,)."""
    place = np.full(int(labels.max()) + 1, -1, dtype=np.int64)
    place[drawn] = np.arange(len(drawn))
    both = network.arcs.either_way()
    one, other = place[labels[both.rows]], place[labels[both.agents]]
    counted = (one < other) & (one >= 0)
    ends = np.column_stack([one[counted], other[counted]])
    if not len(ends):
        return np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64)
    pairs, edges = np.unique(ends, axis=0, return_counts=True)
    return pairs, edges


def _strongest(pairs: IntArray, edges: IntArray, groups: int) -> IntArray:
    """Choose of each group's pairs those with the most edges: their places."""
    kept: set[int] = set()
    order = np.argsort(-edges, kind="stable")
    for group in range(groups):
        mine = order[(pairs[order] == group).any(axis=1)]
        kept.update(mine[:MOST_LINES].tolist())
    return np.array(sorted(kept), dtype=np.int64)
