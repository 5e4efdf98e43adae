"""How far are two agents apart at most? The diameter, by few breadth-first searches.

A search from v gives its eccentricity ecc(v), and bounds those of all others:
max(ecc(v) − d, d) ≤ ecc(w) ≤ ecc(v) + d for w at distance d (Takes and Kosters). Agents that cannot
be further out than the furthest known are never searched from.
"""

import numpy as np

from coopbandits.network.sparse_rows import SparseRows

# Searches are made so many at a time.
_TOGETHER = 16


def diameter_of(arcs: SparseRows, *, directed: bool) -> float:
    """Return the largest distance; inf if some cannot reach others."""
    from scipy.sparse.csgraph import connected_components, shortest_path  # noqa: PLC0415

    V, graph = len(arcs), arcs.matrix().astype(np.float64)
    if connected_components(graph, directed=directed, connection="strong")[0] > 1:
        return float("inf")
    if len(arcs.agents) == V * (V - 1):
        return float(min(V - 1, 1))
    largest, most, open_ = 0.0, np.full(V, np.inf), np.ones(V, dtype=np.bool_)
    # from the best connected first: it is in the middle
    first = np.argsort(-arcs.counts, kind="stable")[:1]
    while open_.any():
        if first.size:
            some, first = first, first[:0]
        else:
            candidates = np.flatnonzero(open_)
            some = candidates[np.argsort(-most[candidates], kind="stable")[:_TOGETHER]]
        found = np.asarray(shortest_path(graph, method="D", unweighted=True, indices=some))
        furthest = found.max(axis=1)
        largest = max(largest, float(furthest.max()))
        if not directed:  # d(v, w) = d(w, v) is needed
            most = np.minimum(most, (furthest[:, None] + found).min(axis=0))
        open_[some] = False
        open_ &= most > largest
    return largest
