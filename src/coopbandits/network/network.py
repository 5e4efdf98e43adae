r"""Who is how far from whom? The agents' network G, its powers G_γ, and its partitions.

Agents are 0 … V−1. Edges are undirected unless the network says otherwise; d(i, j) counts edges
on a shortest path from i to j along the arcs. G_γ joins agents at distance 1 … γ. The γ-th power,
the clique cover and the centres are computed once per γ and kept.
"""

from collections.abc import Iterable
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    as_agent,
    as_count,
    as_flag,
    as_number,
    as_seed,
    frozen,
    is_listing,
    is_whole,
    short,
)
from coopbandits.errors import NetworkError, ParameterError
from coopbandits.network.centres import Centres, choose_centres
from coopbandits.network.clique_cover import CliqueCover, cover_by_cliques

if TYPE_CHECKING:
    import networkx

_ATTEMPTS = 1_000
_FORLORN = 100.0
# networkx holds every edge as a tuple, of some 200 bytes
_MOST_DRAWN = 10_000_000
# who sends to whom, and how far, are kept for every pair
LARGEST_NETWORK = 50_000
# distances, at 8 bytes each, then take 3.2 GB
MOST_DISTANCES = 20_000


class Network:
    """The agents and who can send to whom. Never changes once made."""

    def __init__(self, adjacency: BoolArray, *, directed: bool = False) -> None:
        """Take a (V, V) matrix of who sends to whom; `from_edges` and others make it."""
        as_flag(directed, "directed")
        matrix = np.array(adjacency) if hasattr(adjacency, "dtype") else np.empty(0)
        if matrix.dtype != np.bool_ or matrix.ndim != 2 or len(matrix) != matrix.shape[1]:
            raise NetworkError(
                f"{short(adjacency)} is no adjacency matrix; expected a (V, V) array of True and "
                "False; Network.from_edges takes pairs, Network.from_networkx a graph"
            )
        if (
            len(matrix) == 0
            or matrix.diagonal().any()
            or (not directed and (matrix != matrix.T).any())
        ):
            raise NetworkError(
                "expected an adjacency matrix of at least one agent, with an empty diagonal, and "
                "symmetric unless directed=True"
            )
        self._adjacency = frozen(matrix)
        self._directed = directed
        self._clique_covers: dict[int, CliqueCover] = {}
        self._centres: dict[int, Centres] = {}

    def __len__(self) -> int:
        return len(self._adjacency)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Network)
            and self._directed == other._directed
            and np.array_equal(self._adjacency, other._adjacency)
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._adjacency, self._directed)

    def __repr__(self) -> str:
        count = int(np.count_nonzero(self._adjacency)) // (1 if self._directed else 2)
        kind, plural = "arc" if self._directed else "edge", "s" * (count != 1)
        return f"Network({len(self)} agents, {count} {kind}{plural})"

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[int, int]],
        agents: int | None = None,
        *,
        directed: bool = False,
    ) -> "Network":
        """Build a network of pairs of agents, each edge once.

        Args:
            edges: Pairs (i, j) of agents; with `directed=True`, arcs from i to j.
            agents: How many agents there are. Without it there are as many as the edges name, and
                each of 0 … V−1 must be named; with it agents without edges are allowed.
            directed: Whether news travels from i to j only.
        """
        as_flag(directed, "directed")
        pairs = _as_pairs(edges)
        named = np.unique(pairs)
        count = int(named.max(initial=-1)) + 1 if agents is None else agents
        if is_whole(count) and count == 0:
            raise NetworkError(
                "a network needs at least one agent; got no edges and "
                + ("no agents= (agents=1 makes a network of one)" if agents is None else "agents=0")
            )
        count = as_count(count, "agents", most=LARGEST_NETWORK)
        if named.size and (named[0] < 0 or named[-1] >= count):
            stranger = int(named[0] if named[0] < 0 else named[-1])
            raise NetworkError(
                f"an edge names agent {stranger}, but the agents are 0 … {count - 1}"
            )
        if agents is None and named.size < count:
            missing = int(np.setdiff1d(np.arange(count), named)[0])
            raise NetworkError(
                f"no edge names agent {missing}, though one names agent {count - 1}; pass "
                f"agents={count} if agents without edges are meant, else number them 0 … V−1"
            )
        return cls(_adjacency_of(pairs, count, directed=directed), directed=directed)

    @classmethod
    def from_networkx(cls, graph: "networkx.Graph") -> "Network":
        """Build a network of a NetworkX graph whose nodes are 0 … V−1, in any order.

        Weights and other attributes of edges are not used.
        """
        if not hasattr(graph, "nodes") or not hasattr(graph, "is_directed"):
            raise NetworkError(f"expected a networkx graph, got {short(graph)}")
        nodes = set(graph.nodes)
        if nodes != set(range(len(nodes))):
            raise NetworkError(
                f"the graph's nodes must be 0 … V−1, got {short(list(graph.nodes)[:5])}; relabel "
                "with networkx.convert_node_labels_to_integers(graph, ordering='sorted')"
            )
        return cls.from_edges(
            list(graph.edges()), agents=graph.number_of_nodes(), directed=graph.is_directed()
        )

    @classmethod
    def complete(cls, agents: int) -> "Network":
        """Join every pair of agents."""
        count = as_count(agents, "agents", most=LARGEST_NETWORK)
        return cls(~np.eye(count, dtype=np.bool_), directed=False)

    @classmethod
    def path(cls, agents: int) -> "Network":
        """Join the agents in a line."""
        count = as_count(agents, "agents", most=LARGEST_NETWORK)
        return cls.from_edges([(v, v + 1) for v in range(count - 1)], agents=count)

    @classmethod
    def star(cls, agents: int, *, spike: int = 1) -> "Network":
        """Join all agents to agent 0 through spikes of `spike` agents each (the last may be short).

        `spike=1` is the star; `spike=γ/2` is the paper's γ/2-star, whose power G_γ is complete.
        """
        count, length = as_count(agents, "agents", most=LARGEST_NETWORK), as_count(spike, "spike")
        return cls.from_edges(
            [(0 if v % length == 1 % length else v - 1, v) for v in range(1, count)], agents=count
        )

    @classmethod
    def grid(cls, rows: int, columns: int) -> "Network":
        """Join the agents of a rectangle, numbered row by row, to those beside and below."""
        height, width = as_count(rows, "rows"), as_count(columns, "columns")
        as_count(height * width, "rows·columns", most=LARGEST_NETWORK)
        v = np.arange(height * width).reshape(height, width)
        beside = np.column_stack([v[:, :-1].ravel(), v[:, 1:].ravel()])
        below = np.column_stack([v[:-1].ravel(), v[1:].ravel()])
        return cls.from_edges([*beside.tolist(), *below.tolist()], agents=height * width)

    @classmethod
    def erdos_renyi(cls, agents: int, p: float, *, seed: int = 0) -> "Network":
        """Join each pair with probability p; draw anew until the network is connected."""
        count, rng = (
            as_count(agents, "agents", most=LARGEST_NETWORK),
            np.random.default_rng(as_seed(seed)),
        )
        if not 0 <= as_number(p, "p") <= 1:
            raise ParameterError(f"p must be a probability, 0 … 1, got {p}")
        upper = np.triu(np.ones((count, count), dtype=np.bool_), k=1)
        # where so many are expected to be without an edge, no draw is connected
        hopeless = count * (1.0 - p) ** (count - 1) > _FORLORN and count > 1
        for _ in range(0 if hopeless else _ATTEMPTS):
            drawn = np.array([rng.random(count) < p for _ in range(count)]) & upper
            network = cls(drawn | drawn.T, directed=False)
            if len(network.components) == 1:
                return network
        raise ParameterError(
            f"{_ATTEMPTS} draws of {count} agents with p={p} gave no connected network; "
            f"p above {np.log(max(count, 2)) / count:.3g} (ln V / V) makes one likely"
        )

    @classmethod
    def barabasi_albert(cls, agents: int, m: int, *, seed: int = 0) -> "Network":
        """Let each new agent join m others, those with many edges preferred."""
        import networkx  # noqa: PLC0415 (heavy; only this generator needs it)

        count, links = as_count(agents, "agents", most=LARGEST_NETWORK), as_count(m, "m")
        if links >= count:
            raise ParameterError(f"m must be below the number of agents, got m={m} of {count}")
        if links * (count - links) > _MOST_DRAWN:
            raise ParameterError(
                f"{count} agents that join m={m} others make {links * (count - links):,} edges; "
                f"expected at most {_MOST_DRAWN:,}; take a smaller m"
            )
        rng = np.random.default_rng(as_seed(seed))
        return cls.from_networkx(networkx.barabasi_albert_graph(count, links, seed=rng))

    @property
    def directed(self) -> bool:
        """Whether news travels along arcs, not edges."""
        return self._directed

    @property
    def adjacency(self) -> BoolArray:
        """(V, V), read-only: [i, j] whether i sends to j."""
        return self._adjacency

    @cached_property
    def fingerprint(self) -> str:
        """A hash of agents and edges: equal for equal networks, in any process."""
        head = f"{len(self)},{'arcs' if self._directed else 'edges'},"
        return sha256(head.encode() + np.packbits(self._adjacency).tobytes()).hexdigest()

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges (i < j), or the arcs, in order."""
        shown = self._adjacency if self._directed else np.triu(self._adjacency)
        return tuple((int(i), int(j)) for i, j in np.argwhere(shown))

    @cached_property
    def distances(self) -> Array:
        """(V, V), read-only: [i, j] the distance from i to j, inf where there is no way."""
        from scipy.sparse import csr_array  # noqa: PLC0415
        from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415

        if len(self) > MOST_DISTANCES:
            raise NetworkError(
                f"the distances of {len(self):,} agents would take {8e-9 * len(self) ** 2:,.3g} "
                f"GB; expected at most {MOST_DISTANCES:,} agents; take a part of the network"
            )
        # an unweighted search is one breadth-first pass per agent
        graph = csr_array(self._adjacency.astype(np.float64))
        return frozen(np.asarray(shortest_path(graph, method="D", unweighted=True)))

    @cached_property
    def diameter(self) -> float:
        """The largest distance between two agents; inf if some cannot reach others."""
        return float(self.distances.max())

    @cached_property
    def components(self) -> tuple[IntArray, ...]:
        """The agents of each connected part (arcs taken as edges), ordered by lowest agent."""
        from scipy.sparse import csr_array  # noqa: PLC0415
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

        _, labels = connected_components(csr_array(self._adjacency), directed=False)
        parts = [np.flatnonzero(labels == part) for part in range(labels.max() + 1)]
        return tuple(sorted(parts, key=lambda members: int(members[0])))

    def neighbours(self, agent: int) -> IntArray:
        """The agents that v sends to, in order."""
        return np.flatnonzero(self._adjacency[as_agent(agent, len(self))])

    def power(self, ttl: int) -> "Network":
        """G_γ: an edge (arc) from i to j wherever j is at most γ steps from i."""
        gamma = as_count(ttl, "ttl")
        return Network((self.distances >= 1) & (self.distances <= gamma), directed=self._directed)

    def neighbourhood(self, agent: int, ttl: int) -> IntArray:
        """N_γ(v): the agents whose news reaches v within γ steps, v among them, in order."""
        gamma = as_count(ttl, "ttl")
        return np.flatnonzero(self.distances[:, as_agent(agent, len(self))] <= gamma)

    def clique_cover(self, ttl: int) -> CliqueCover:
        """Partition the agents into few cliques of G_γ; in a directed network, both ways."""
        gamma = as_count(ttl, "ttl")
        if gamma not in self._clique_covers:
            self._clique_covers[gamma] = cover_by_cliques(self._mutual(gamma))
        return self._clique_covers[gamma]

    def centres(self, ttl: int) -> Centres:
        """Choose centres: the heaviest independent set of G_γ, with weights |N_γ(v)|.

        In a directed network neighbours are those within γ in both directions, for independence,
        weights and degrees alike: a centre must hear its followers, and they must hear it.
        """
        gamma = as_count(ttl, "ttl")
        if gamma not in self._centres:
            self._centres[gamma] = choose_centres(self._mutual(gamma))
        return self._centres[gamma]

    def to_networkx(self) -> "networkx.Graph":
        """Return the network as a NetworkX graph."""
        import networkx  # noqa: PLC0415

        graph = networkx.DiGraph() if self._directed else networkx.Graph()
        graph.add_nodes_from(range(len(self)))
        graph.add_edges_from(self.edges)
        return graph

    def _mutual(self, ttl: int) -> BoolArray:
        power = self.power(ttl).adjacency
        return power & power.T


def as_network(value: Any) -> Network:
    """Check that a value is a network."""
    if not isinstance(value, Network):
        raise ParameterError(
            f"expected a coopbandits.Network, got {short(value)}; Network.from_networkx and "
            "Network.from_edges make one"
        )
    return value


def _rebuilt(adjacency: BoolArray, directed: bool) -> Network:
    return Network(adjacency, directed=directed)


def _as_pairs(edges: Any) -> IntArray:
    """Check that edges are pairs of whole numbers: (E, 2)."""
    # an array of no dimensions says that it can be iterated over, and cannot
    closed = isinstance(edges, np.ma.MaskedArray | type) or (
        isinstance(edges, np.ndarray) and edges.ndim == 0
    )
    if closed or not isinstance(edges, Iterable):
        raise NetworkError(f"edges must be pairs (i, j) of agents, got {short(edges)}")
    coming = iter(edges)
    listed = list(islice(coming, 1))
    if all(is_listing(pair) for pair in listed):  # what begins with no pair may never end
        listed += coming
    try:
        pairs = np.array(listed) if listed else np.empty((0, 2), dtype=np.int64)
    except ValueError:
        pairs = np.empty(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise NetworkError(
            f"edges must be pairs (i, j) of agents 0 … V−1, got {short(listed[:4])}; "
            "Network.from_networkx takes a NetworkX graph"
        )
    return pairs.astype(np.int64)


def _adjacency_of(pairs: IntArray, agents: int, *, directed: bool) -> BoolArray:
    """Check for self-loops and duplicates, and spread the edges over a (V, V) matrix."""
    loops = pairs[pairs[:, 0] == pairs[:, 1]]
    if loops.size:
        raise NetworkError(
            f"agent {loops[0, 0]} has an edge to itself; leave self-loops out, an agent always "
            "knows its own news"
        )
    ordered = pairs if directed else np.sort(pairs, axis=1)
    unique, counts = np.unique(ordered, axis=0, return_counts=True)
    if (counts > 1).any():
        i, j = unique[int(np.argmax(counts > 1))]
        raise NetworkError(
            f"the edge ({i}, {j}) is given {counts.max()} times; give each edge once"
            + ("" if directed else ", in one direction")
        )
    adjacency = np.zeros((agents, agents), dtype=np.bool_)
    adjacency[ordered[:, 0], ordered[:, 1]] = True
    return adjacency if directed else adjacency | adjacency.T
