"""How do agents join and leave, and edges come and go? Networks that grow out of another.

An agent's number is for ever: newcomers get the next ones, and those of agents that left are not
given again. So messages mean the same between agents of which some know of a change already and
some do not yet, and whatever was stored under a number stays right.

Agents plan (whom to expect news from, K_z, cliques, centres) on the whole network, of all agents
and edges that ever were: what a leaver told stays, and cliques stay. Messages go where there are
edges now. A network keeps the fingerprints of those that it grew out of, its ancestors.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.arrays import IntArray, as_count, is_whole, short
from coopbandits.errors import NetworkError
from coopbandits.network.edges import LARGEST_NETWORK, arcs_of, as_pairs
from coopbandits.network.names import as_names, numbered
from coopbandits.network.sparse_rows import SparseRows

if TYPE_CHECKING:
    from coopbandits.network.network import Network


def with_agents(network: "Network", agents: Any, edges: Any) -> "Network":
    """Add agents, or let some come back (`Network.with_agents`)."""
    V, names, left = len(network), network.names if network.is_named else None, network.left
    if is_whole(agents) and names is None:
        count = V + as_count(agents, "agents", most=LARGEST_NETWORK - V)
        return _grown(network, count, None, left, edges)
    if is_whole(agents):
        raise NetworkError(
            f"the agents of this network have names; name the newcomers, got {short(agents)}"
        )
    if isinstance(agents, set | frozenset):
        agents = sorted(agents, key=str)  # a set has no order of its own
    listed = as_names([agents] if isinstance(agents, str) else agents)
    back = {network.names[v]: v for v in left if network.names[v] in listed}
    new = [name for name in listed if name not in back]
    if new and names is None:
        raise NetworkError(
            "the agents of this network have no names, so newcomers cannot be called "
            f"{short(new)}; say how many there are, or build the network with names="
        )
    called = None if names is None else as_names([*names, *new])
    still = tuple(v for v in left if v not in back.values())
    return _grown(network, V + len(new), called, still, edges)


def without(network: "Network", agents: Any) -> "Network":
    """Take agents away, with their edges (`Network.without`)."""
    leaving = {network.index(agent) for agent in agents}
    if not leaving:
        return network
    gone = sorted(leaving & set(network.left))
    if gone:
        raise NetworkError(f"agent {network.called(gone[0])} has left this network already")
    if len(leaving) + len(network.left) == len(network):
        raise NetworkError("nobody would be left in the network; keep at least one agent")
    arcs = network.arcs
    ends = np.isin(arcs.rows, list(leaving)) | np.isin(arcs.agents, list(leaving))
    left = tuple(sorted({*network.left, *leaving}))
    return _next(network, arcs.kept(~ends), left, network.whole)


def with_edges(network: "Network", edges: Any) -> "Network":
    """Add edges (`Network.with_edges`)."""
    names = network.names if network.is_named else None
    return _grown(network, len(network), names, network.left, edges)


def without_edges(network: "Network", edges: Any) -> "Network":
    """Take edges away (`Network.without_edges`)."""
    pairs = _numbered(network, edges)
    both = pairs if network.directed else np.concatenate([pairs, pairs[:, ::-1]])
    at = network.arcs.places(both[:, 0], both[:, 1])
    if (at < 0).any():
        i, j = both[int(np.argmax(at < 0))].tolist()
        raise NetworkError(
            f"there is no edge ({network.called(i)}, {network.called(j)}) to take away"
        )
    kept = np.ones(len(network.arcs.agents), dtype=np.bool_)
    kept[at] = False
    return _next(network, network.arcs.kept(kept), network.left, network.whole)


def _numbered(network: "Network", edges: Any) -> IntArray:
    pairs = as_pairs(edges)
    listed = pairs if isinstance(pairs, list) else [(i, j) for i, j in pairs.tolist()]
    return numbered(listed, {end: network.index(end) for pair in listed for end in pair})


def _grown(
    network: "Network",
    count: int,
    names: tuple[str, ...] | None,
    left: tuple[int, ...],
    edges: Any,
) -> "Network":
    """Return the network with so many agents, and more edges."""
    empty = np.zeros(count - len(network), dtype=np.int64)

    def padded(arcs: SparseRows) -> SparseRows:
        return SparseRows(np.append(arcs.starts, arcs.starts[-1] + empty), arcs.agents)

    make = type(network)._made
    room = make(padded(network.arcs), network.directed, names, left)
    new = _numbered(room, edges)
    gone = [agent for agent in left if (new == agent).any()]
    if gone:
        raise NetworkError(
            f"an edge names agent {room.called(gone[0])}, who has left; with_agents lets it come "
            "back"
        )
    added = arcs_of(new, count, directed=network.directed, names=names)
    twice = room.arcs.places(added.rows, added.agents) >= 0
    if twice.any():
        at = int(np.argmax(twice))
        i, j = room.called(int(added.rows[at])), room.called(int(added.agents[at]))
        raise NetworkError(f"the edge ({i}, {j}) is there already; give new edges only")
    whole, ever = network.whole, _joined(padded(network.whole.arcs), added)
    if len(whole) < count or whole.arcs != ever:
        whole = make(ever, network.directed, names, (), None, whole, (), left)
    return _next(network, _joined(room.arcs, added), left, whole)


def _next(
    network: "Network", arcs: SparseRows, left: tuple[int, ...], whole: "Network"
) -> "Network":
    """Make a network that grew out of this one, of arcs that there are and all that ever were."""
    names = whole.names if whole.is_named else None
    ancestors = tuple(dict.fromkeys((*network.ancestors, network.fingerprint)))
    make = type(network)._made
    if not left and arcs == whole.arcs:  # all there ever was is there
        past = whole.before, ancestors, whole.absent
        return make(arcs, network.directed, names, (), None, *past)
    return make(arcs, network.directed, names, left, whole, None, ancestors)


def _joined(one: SparseRows, other: SparseRows) -> SparseRows:
    """Join the rows of both."""
    return SparseRows.of_matrix(one.matrix() + other.matrix())
