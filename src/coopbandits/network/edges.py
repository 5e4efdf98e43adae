"""What do given edges say? Pairs of numbers or names, a graph or a table, sorted into arcs.

What makes a network is returned as its arcs, whether it is directed, and its agents' names.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from coopbandits.arrays import IntArray, as_array, as_count, as_flag, is_listing, is_whole, short
from coopbandits.errors import NetworkError
from coopbandits.network.names import as_names, in_order, number_of, numbered
from coopbandits.network.sparse_rows import SparseRows

Facts = tuple[SparseRows, bool, tuple[str, ...] | None]
"""Arcs, whether they are directed, and names."""

# An agent takes some 100 bytes before it does anything.
LARGEST_NETWORK = 20_000_000


def of_edges(
    edges: Any, agents: int | None, *, names: Sequence[str] | None, directed: bool
) -> Facts:
    """Read pairs of numbers or names (`Network.from_edges`)."""
    as_flag(directed, "directed")
    pairs = as_pairs(edges)
    called = None if names is None else as_names(names)
    if called is None and isinstance(pairs, list):
        called = named_by(pairs)
    if called is not None:
        if agents is not None and agents != len(called):
            raise NetworkError(
                f"agents={short(agents)}, but there are {len(called)} names; leave agents= out"
            )
        agents = len(called)
    if isinstance(pairs, list):
        assert called is not None
        places = {name: number for number, name in enumerate(called)}
        ends = set(chain.from_iterable(pairs))
        numbers = {end: number_of(end, called, places, len(called)) for end in ends}
        pairs = numbered(pairs, numbers)
    count = _counted(pairs, agents)
    return arcs_of(pairs, count, directed=directed, names=called), directed, called


def of_graph(graph: Any) -> Facts:
    """Read a NetworkX graph (`Network.from_networkx`)."""
    if not hasattr(graph, "nodes") or not hasattr(graph, "is_directed"):
        raise NetworkError(f"expected a networkx graph, got {short(graph)}")
    labels = in_order(graph.nodes)
    names = None if labels == list(range(len(labels))) else as_names(labels)
    pairs = numbered(list(graph.edges()), {label: v for v, label in enumerate(labels)})
    directed = graph.is_directed()
    count = _counted(pairs, len(labels))
    return arcs_of(pairs, count, directed=directed, names=names), directed, names


def of_frame(
    frame: Any, source: Any, target: Any, *, names: Sequence[str] | None, directed: bool
) -> Facts:
    """Read a table with an edge a row (`Network.from_frame`)."""
    one, other = columns_of(frame, source, target)
    pairs = list(zip(one.tolist(), other.tolist(), strict=True))
    for row, pair in enumerate(pairs):
        if not all(isinstance(end, str) or is_whole(end) for end in pair):
            raise NetworkError(
                f"row {row} of the table has the edge {short(pair)}; expected names, or whole "
                "numbers, as labels of agents"
            )
    labels = in_order(chain.from_iterable(pairs))
    if names is None and labels == list(range(len(labels))):
        return of_edges(pairs, len(labels) or None, names=None, directed=directed)
    named = [(str(i), str(j)) for i, j in pairs]
    given = as_names(labels) if names is None else names
    return of_edges(named, None, names=given, directed=directed)


def as_pairs(edges: Any) -> IntArray | list[tuple[Any, Any]]:
    """Check that edges are pairs: an array (E, 2) of numbers, or a list in which some are named."""
    if hasattr(edges, "__array__") and not isinstance(edges, np.ndarray | type):
        if hasattr(edges, "columns"):
            raise NetworkError(
                f"edges must be pairs (i, j) of agents, got a table with columns "
                f"{short(list(edges.columns))}; Network.from_frame(table, source, target) takes one"
            )
        edges = as_array(edges, "edges")
    # an array of no dimensions says that it can be iterated over, and cannot
    closed = isinstance(edges, np.ma.MaskedArray | type | str | bytes) or (
        isinstance(edges, np.ndarray) and edges.ndim == 0
    )
    if closed or not isinstance(edges, Iterable):
        raise NetworkError(f"edges must be pairs (i, j) of agents, got {short(edges)}")
    if isinstance(edges, np.ndarray) and edges.dtype.kind in "iu":
        return _numbers(edges, edges[:4])
    coming = iter(edges)
    listed = list(islice(coming, 1))
    if all(is_listing(pair) for pair in listed):  # what begins with no pair may never end
        listed += coming
    paired = all(is_listing(pair) and len(pair) == 2 for pair in listed)
    if paired and any(isinstance(end, str) for pair in listed for end in pair):
        if all(isinstance(end, str) or is_whole(end) for pair in listed for end in pair):
            return [(pair[0], pair[1]) for pair in listed]
        raise _no_pairs(listed)
    try:
        pairs = np.array(listed) if listed else np.empty((0, 2), dtype=np.int64)
    except ValueError:
        pairs = np.empty(0)
    return _numbers(pairs, listed)


def _numbers(pairs: Any, listed: Any) -> IntArray:
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise _no_pairs(listed)
    return np.asarray(pairs.astype(np.int64))


def _no_pairs(listed: Any) -> NetworkError:
    return NetworkError(
        f"edges must be pairs (i, j) of agents 0 … V−1, or of names, got {short(listed[:4])}; "
        "Network.from_networkx takes a NetworkX graph"
    )


def named_by(pairs: list[tuple[Any, Any]]) -> tuple[str, ...]:
    """Return the names in a list of pairs, sorted, where they are all the names that there are."""
    ends = set(chain.from_iterable(pairs))
    number = next((end for end in ends if is_whole(end)), None)
    if number is not None:
        raise NetworkError(
            f"edges name some agents by text and one by the number {number}; expected texts only, "
            "or names= with all names in the order of their numbers"
        )
    return as_names(in_order(ends))


def arcs_of(
    pairs: IntArray, agents: int, *, directed: bool, names: tuple[str, ...] | None
) -> SparseRows:
    """Check for strangers, self-loops and duplicates, and sort edges into arcs."""

    def called(agent: int) -> str:
        return str(agent) if names is None else repr(names[agent])

    outside = pairs[(pairs < 0) | (pairs >= agents)]
    if outside.size:
        raise NetworkError(f"an edge names agent {outside[0]}, but the agents are 0 … {agents - 1}")
    loops = pairs[pairs[:, 0] == pairs[:, 1]]
    if loops.size:
        raise NetworkError(
            f"agent {called(loops[0, 0])} has an edge to itself; leave self-loops out, an agent "
            "always knows its own news"
        )
    ordered = pairs if directed else np.sort(pairs, axis=1)
    keys = np.sort(ordered[:, 0] * np.int64(agents) + ordered[:, 1])
    twice = keys[1:][keys[1:] == keys[:-1]]
    if twice.size:
        i, j = divmod(int(twice[0]), agents)
        raise NetworkError(
            f"the edge ({called(i)}, {called(j)}) is given {int((keys == twice[0]).sum())} times; "
            "give each edge once" + ("" if directed else ", in one direction")
        )
    ends = np.divmod(keys, np.int64(agents))
    if not directed:
        ends = np.concatenate(ends), np.concatenate(ends[::-1])
    return SparseRows.of_pairs(*ends, agents)


def _counted(pairs: IntArray, agents: int | None) -> int:
    """Return how many agents there are: as said, or as edges name without a gap."""
    count = int(pairs.max(initial=-1)) + 1 if agents is None else agents
    if is_whole(count) and count == 0:
        raise NetworkError(
            "a network needs at least one agent; got no edges and "
            + ("no agents= (agents=1 makes a network of one)" if agents is None else "no agents")
        )
    count = as_count(count, "agents", most=LARGEST_NETWORK)
    if agents is None and pairs.min() >= 0:
        missing = np.bincount(pairs.reshape(-1), minlength=count) == 0
        if missing.any():
            raise NetworkError(
                f"no edge names agent {int(missing.argmax())}, though one names agent {count - 1}; "
                f"pass agents={count} if agents without edges are meant, else number them 0 … V−1"
            )
    return count


def columns_of(frame: Any, source: Any, target: Any) -> tuple[Any, Any]:
    """Return two columns of a table: pandas, polars, Arrow, or a dict of lists."""
    listed = getattr(frame, "column_names", None)  # Arrow's, whose `columns` are the columns
    try:
        held = list(listed if listed is not None else getattr(frame, "columns", frame))
    except TypeError:
        held = []
    columns = []
    for name in (source, target):
        if not isinstance(name, str) or name not in held:
            raise NetworkError(
                f"{short(name)} is no column of the table; its columns are {short(held)}"
            )
        column = np.asarray(frame[name])
        missing = [value is None or _is_nan(value) for value in column.tolist()]
        if any(missing):
            raise NetworkError(
                f"row {missing.index(True)} of the column {name!r} has no value; drop such rows "
                "first"
            )
        columns.append(column)
    return columns[0], columns[1]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)
