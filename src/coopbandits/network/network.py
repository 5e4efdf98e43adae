r"""Who is how far from whom? The agents' network G, its powers G_γ, and its partitions.

Agents are 0 … V−1, and may have names. Edges are undirected unless the network says otherwise;
d(i, j) counts edges on a shortest path from i to j along the arcs. G_γ joins agents at distance
1 … γ. All of it is kept as sparse rows; what depends on γ is computed once per γ and kept.

A network never changes, but others grow out of it, as agents and edges come and go (`growth.py`).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    Seed,
    as_count,
    as_flag,
    as_seed,
    frozen,
    short,
)
from coopbandits.errors import NetworkError, ParameterError
from coopbandits.network import generators, growth
from coopbandits.network.centres import Centres, choose_centres, extended_centres
from coopbandits.network.clique_cover import CliqueCover, Stage, cover_by_cliques, extended_cover
from coopbandits.network.diameter import diameter_of
from coopbandits.network.edges import LARGEST_NETWORK, of_edges, of_frame, of_graph
from coopbandits.network.lags import Lags
from coopbandits.network.names import as_names, number_of
from coopbandits.network.sparse_rows import MOST_DENSE, SparseRows, check_dense

if TYPE_CHECKING:
    import networkx


class Network:
    """The agents and who can send to whom. Never changes once made.

    Args:
        adjacency: (V, V) who sends to whom, an array of True and False or a sparse one;
            `from_edges` and others make it.
        directed: Whether news travels along arcs, not edges.
        names: What agents 0 … V−1 are called.

    Example:
        >>> network = cb.Network.from_edges([("north", "hub"), ("hub", "south")])
        >>> len(network), network.index("south")
        (3, 2)
        >>> cb.Network.path(5).distances[0].tolist()
        [0.0, 1.0, 2.0, 3.0, 4.0]
        >>> cb.Network.grid(2, 2) == cb.Network.from_edges([(0, 1), (2, 3), (0, 2), (1, 3)])
        True
        >>> cb.Network.path(4).clique_cover(1).cliques
        ((0, 1), (2, 3))
    """

    def __init__(
        self,
        adjacency: Any,
        *,
        directed: bool = False,
        names: Sequence[str] | None = None,
    ) -> None:
        """Take a (V, V) matrix of who sends to whom, an array of True and False or a sparse one.

        `from_edges` and others make it.
        """
        as_flag(directed, "directed")
        if hasattr(adjacency, "tocsr"):
            matrix = adjacency.tocsr(copy=True)
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
        else:
            matrix = np.array(adjacency) if hasattr(adjacency, "dtype") else np.empty(0)
        if matrix.dtype != np.bool_ or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise NetworkError(
                f"{short(adjacency)} is no adjacency matrix; expected a (V, V) array of True and "
                "False; Network.from_edges takes pairs, Network.from_networkx a graph"
            )
        arcs = SparseRows.of_matrix(matrix)
        if (
            len(arcs) == 0
            or (arcs.rows == arcs.agents).any()
            or (not directed and arcs != arcs.transposed())
        ):
            raise NetworkError(
                "expected an adjacency matrix of at least one agent, with an empty diagonal, and "
                "symmetric unless directed=True"
            )
        self._set(arcs, directed, None if names is None else _names_for(names, len(arcs)))

    def _set(
        self,
        arcs: SparseRows,
        directed: bool = False,
        names: tuple[str, ...] | None = None,
        left: tuple[int, ...] = (),
        whole: "Network | None" = None,
        before: "Network | None" = None,
        ancestors: tuple[str, ...] = (),
        absent: tuple[int, ...] = (),
    ) -> None:
        self._arcs, self._directed, self._names = arcs, directed, names
        self._left, self._whole, self._before, self._ancestors = left, whole, before, ancestors
        self._absent = absent
        self._lags: dict[int, Lags] = {}
        self._clique_covers: dict[int, CliqueCover] = {}
        self._centres: dict[int, Centres] = {}

    @classmethod
    def _made(cls, *facts: Any) -> "Network":
        """Make a network of what `_set` takes, which has been checked."""
        network = cls.__new__(cls)
        network._set(*facts)
        return network

    def __len__(self) -> int:
        return len(self._arcs)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Network) and self.fingerprint == other.fingerprint
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        # those it grew out of in a list: nested, they would soon be too deep
        chain: list[tuple[Any, ...]] = []
        network: Network | None = self.whole
        while network is not None:
            facts = network._arcs, network._directed, network._names, network._ancestors
            chain.append((*facts, network._absent))
            network = network._before
        own = (self._arcs, self._left, self._ancestors) if self._whole is not None else None
        return _rebuilt, (chain[::-1], own)

    def __repr__(self) -> str:
        count = len(self._arcs.agents) // (1 if self._directed else 2)
        kind, plural = "arc" if self._directed else "edge", "s" * (count != 1)
        left = f", {len(self._left)} left" if self._left else ""
        return f"Network({len(self)} agents{left}, {count} {kind}{plural})"

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[int | str, int | str]],
        agents: int | None = None,
        *,
        names: Sequence[str] | None = None,
        directed: bool = False,
    ) -> "Network":
        """Build a network of pairs of agents, each edge once.

        Args:
            edges: Pairs (i, j) of agents, by number or by name; with `directed=True`, arcs from i
                to j.
            agents: How many agents there are. Without it there are as many as the edges name, and
                each of 0 … V−1 must be named; with it agents without edges are allowed.
            names: What agents 0 … V−1 are called, in place of `agents`. Without it agents that
                edges call by name are numbered in the order of their names.
            directed: Whether news travels from i to j only.
        """
        return cls._made(*of_edges(edges, agents, names=names, directed=directed))

    @classmethod
    def from_networkx(cls, graph: "networkx.Graph") -> "Network":
        """Build a network of a NetworkX graph.

        Nodes 0 … V−1, in any order, are agents of that number. Other labels become names, and
        agents are numbered in their order: numbers by size, texts by the alphabet. Weights and
        other attributes of edges are not used.

        Args:
            graph: `networkx.Graph` or `networkx.DiGraph`.

        Example:
            >>> import networkx as nx
            >>> cb.Network.from_networkx(nx.path_graph(4)) == cb.Network.path(4)
            True
        """
        return cls._made(*of_graph(graph))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        source: str,
        target: str,
        *,
        names: Sequence[str] | None = None,
        directed: bool = False,
    ) -> "Network":
        """Build a network of a table with an edge a row: pandas, polars, Arrow or a dict of lists.

        Args:
            frame: The table.
            source: The column of one end; with `directed=True`, of the sender.
            target: The column of the other.
            names: What agents 0 … V−1 are called, those without edges among them. Without it,
                labels are numbered and named as those of a NetworkX graph are.
            directed: Whether news travels from source to target only.
        """
        return cls._made(*of_frame(frame, source, target, names=names, directed=directed))

    @classmethod
    def complete(cls, agents: int) -> "Network":
        """Join every pair of agents.

        Args:
            agents: V.

        Example:
            >>> cb.Network.complete(3)
            Network(3 agents, 3 edges)
        """
        return cls._made(generators.complete(as_count(agents, "agents", most=MOST_DENSE)))

    @classmethod
    def path(cls, agents: int) -> "Network":
        """Join the agents in a line.

        Args:
            agents: V.

        Example:
            >>> cb.Network.path(3).neighbours(1).tolist()
            [0, 2]
        """
        count = as_count(agents, "agents", most=LARGEST_NETWORK)
        return cls.from_edges(generators.path(count), agents=count)

    @classmethod
    def star(cls, agents: int, *, spike: int = 1) -> "Network":
        """Join all agents to agent 0 through spikes of `spike` agents each (the last may be short).

        `spike=1` is the star; `spike=γ/2` is the paper's γ/2-star, whose power G_γ is complete.

        Args:
            agents: V.
            spike: How many agents each spike has.

        Example:
            >>> cb.Network.star(4).neighbours(0).tolist()
            [1, 2, 3]
        """
        count = as_count(agents, "agents", most=LARGEST_NETWORK)
        return cls.from_edges(generators.star(count, as_count(spike, "spike")), agents=count)

    @classmethod
    def grid(cls, rows: int, columns: int) -> "Network":
        """Join the agents of a rectangle, numbered row by row, to those beside and below.

        Args:
            rows: How many rows.
            columns: How many agents in each.

        Example:
            >>> cb.Network.grid(2, 3).neighbours(0).tolist()
            [1, 3]
        """
        height, width = as_count(rows, "rows"), as_count(columns, "columns")
        count = as_count(height * width, "rows·columns", most=LARGEST_NETWORK)
        return cls.from_edges(generators.grid(height, width), agents=count)

    @classmethod
    def erdos_renyi(cls, agents: int, p: float, *, seed: Seed = 0) -> "Network":
        """Join each pair with probability p; draw anew until the network is connected.

        Args:
            agents: V.
            p: The probability.
            seed: The same one draws the same network; a Generator or None will do too.

        Example:
            >>> cb.Network.erdos_renyi(10, 0.5, seed=1) == cb.Network.erdos_renyi(10, 0.5, seed=1)
            True
        """
        draw = generators.ErdosRenyi(agents, p)
        rng = np.random.default_rng(as_seed(seed))
        for _ in range(draw.attempts):
            network = cls.from_edges(draw.edges(rng), agents=draw.agents)
            if len(network.components) == 1:
                return network
        raise draw.refusal

    @classmethod
    def barabasi_albert(cls, agents: int, m: int, *, seed: Seed = 0) -> "Network":
        """Let each new agent join m others, those with many edges preferred.

        Args:
            agents: V.
            m: How many.
            seed: The same one draws the same network; a Generator or None will do too.

        Example:
            >>> cb.Network.barabasi_albert(10, 2, seed=1)
            Network(10 agents, 16 edges)
        """
        count = as_count(agents, "agents", most=LARGEST_NETWORK)
        rng = np.random.default_rng(as_seed(seed))
        return cls.from_edges(generators.barabasi_albert(count, m, rng), agents=count)

    @property
    def directed(self) -> bool:
        """Whether news travels along arcs, not edges."""
        return self._directed

    @property
    def arcs(self) -> SparseRows:
        """To whom each agent sends, as sparse rows."""
        return self._arcs

    @cached_property
    def adjacency(self) -> BoolArray:
        """(V, V), read-only: [i, j] whether i sends to j; up to 20,000 agents."""
        return frozen(self._arcs.dense("the adjacency matrix", "`arcs` has sparse rows"))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What agents 0 … V−1 are called; their numbers, as texts, where they have no names."""
        return self._names or tuple(map(str, range(len(self))))

    @property
    def is_named(self) -> bool:
        """Whether agents have names besides their numbers."""
        return self._names is not None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {} if self._names is None else {name: v for v, name in enumerate(self._names)}

    def index(self, agent: int | str) -> int:
        """Return the number of an agent that is given by number or by name."""
        return number_of(agent, self._names, self._places, len(self))

    def called(self, agent: int) -> str:
        """Return how messages to people call agent v: by its name, or by its number."""
        return str(agent) if self._names is None else repr(self._names[agent])

    @property
    def left(self) -> tuple[int, ...]:
        """The numbers of agents that left, in order."""
        return self._left

    @property
    def whole(self) -> "Network":
        """The network of all agents and edges that ever were: what agents plan on."""
        return self._whole or self

    @property
    def before(self) -> "Network | None":
        """The whole network before the last that joined; None if there was none."""
        return self._before

    @property
    def absent(self) -> tuple[int, ...]:
        """Of a whole network: who had left when the last joined, whom no newcomer joins."""
        return self._absent

    @cached_property
    def fingerprint(self) -> str:
        """A hash of agents, names, edges and of what it grew out of, in any process (version 2)."""
        kind = "arcs" if self._directed else "edges"
        head = f"2,{len(self)},{kind},{self._left},{self._names}"
        if self._absent:
            head += f",{self._absent}"
        past = [one.fingerprint for one in (self._whole, self._before) if one is not None]
        digest = sha256("|".join([head, *past]).encode())
        for array in (self._arcs.starts, self._arcs.agents):
            digest.update(array.astype("<i8").tobytes())
        return digest.hexdigest()

    @property
    def ancestors(self) -> tuple[str, ...]:
        """The fingerprints of the networks that this one grew out of, the oldest first."""
        return self._ancestors

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges (i < j), or the arcs, in order."""
        i, j = self._arcs.rows, self._arcs.agents
        shown = slice(None) if self._directed else i < j
        return tuple(zip(i[shown].tolist(), j[shown].tolist(), strict=True))

    @cached_property
    def distances(self) -> Array:
        """(V, V), read-only: [i, j] the distance from i to j, inf where there is no way.

        Up to 20,000 agents; `distances_from` and `lags` work for more.
        """
        check_dense(
            len(self),
            "the distances",
            "`distances_from(agents)` has those from some agents, `lags(ttl)` those within γ",
        )
        return frozen(self.distances_from(range(len(self))))

    def distances_from(self, agents: Iterable[int | str]) -> Array:
        """Return the distances from n agents to all: (n, V), inf where there is no way."""
        from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415

        some = [self.index(agent) for agent in agents]
        # an unweighted search is one breadth-first pass per agent
        graph = self._arcs.matrix().astype(np.float64)
        found = shortest_path(graph, method="D", unweighted=True, indices=some)
        return np.asarray(found).reshape(len(some), len(self))

    @cached_property
    def diameter(self) -> float:
        """The largest distance between two agents; inf if some cannot reach others."""
        return diameter_of(self._arcs, directed=self._directed)

    @cached_property
    def components(self) -> tuple[IntArray, ...]:
        """The agents of each connected part (arcs taken as edges), ordered by lowest agent."""
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

        _, labels = connected_components(self._arcs.matrix(), directed=False)
        order = np.argsort(labels, kind="stable")
        parts = map(frozen, np.split(order, np.cumsum(np.bincount(labels))[:-1]))
        return tuple(sorted(parts, key=lambda members: int(members[0])))

    def neighbours(self, agent: int | str) -> IntArray:
        """The agents that v sends to, in order."""
        return self._arcs[self.index(agent)]

    def lags(self, ttl: int) -> Lags:
        """After how many rounds each agent knows what others within γ saw, as sparse rows."""
        gamma = as_count(ttl, "ttl")
        if gamma not in self._lags:
            self._lags[gamma] = Lags.within(self._arcs, gamma)
        return self._lags[gamma]

    def power(self, ttl: int) -> "Network":
        """G_γ: an edge (arc) from i to j wherever j is at most γ steps from i."""
        others = _others(self.lags(ttl).sources)
        return Network._made(others.transposed(), self._directed, self._names)

    def neighbourhood(self, agent: int | str, ttl: int) -> IntArray:
        """N_γ(v): the agents whose news reaches v within γ steps, v among them, in order."""
        return self.lags(ttl).sources[self.index(agent)]

    def clique_cover(self, ttl: int) -> CliqueCover:
        """Partition the agents into few cliques of G_γ; in a directed network, both ways.

        Where agents have joined, cliques of before stay; a newcomer is in one in which it hears
        all and all hear it, else in its own. Who left stays in its clique.
        """
        gamma, whole = as_count(ttl, "ttl"), self.whole
        if gamma not in whole._clique_covers:
            known, stages = whole._since(gamma, lambda one: gamma in one._clique_covers)
            whole._clique_covers[gamma] = (
                extended_cover(known.clique_cover(gamma), stages)
                if stages
                else cover_by_cliques(whole._mutual(gamma))
            )
        return whole._clique_covers[gamma]

    def centres(self, ttl: int) -> Centres:
        """Choose centres: the heaviest independent set of G_γ, with weights |N_γ(v)|.

        In a directed network neighbours are those within γ in both directions, for independence,
        weights and degrees alike: a centre must hear its followers, and they must hear it. Where
        agents have joined, centres stay; a newcomer follows one, or is one if it hears none.
        """
        gamma, whole = as_count(ttl, "ttl"), self.whole
        if gamma not in whole._centres:
            known, stages = whole._since(gamma, lambda one: gamma in one._centres)
            whole._centres[gamma] = (
                extended_centres(known.centres(gamma), stages)
                if stages
                else choose_centres(whole._mutual(gamma))
            )
        return whole._centres[gamma]

    def _since(self, ttl: int, done: "Callable[[Network], bool]") -> "tuple[Network, list[Stage]]":
        """Return the last network before that is done, or the first, and each growth since.

        Each is who hears whom, and who had left.
        """
        stages: list[Stage] = []
        network = self
        while network._before is not None and not done(network):
            stages.append((network._mutual(ttl), network._absent))
            network = network._before
        return network, stages[::-1]

    def with_agents(
        self,
        agents: int | str | Iterable[str],
        edges: Iterable[tuple[int | str, int | str]] = (),
    ) -> "Network":
        """Return the network with more agents, which get the next numbers.

        Args:
            agents: Their names; or how many there are, in a network without names. An agent that
                left comes back under its number if it is named.
            edges: New edges, of old and new agents.
        """
        return growth.with_agents(self, agents, edges)

    def without(self, *agents: int | str) -> "Network":
        """Return the network without some agents and their edges; their numbers stay theirs."""
        return growth.without(self, agents)

    def with_edges(self, edges: Iterable[tuple[int | str, int | str]]) -> "Network":
        """Return the network with more edges."""
        return growth.with_edges(self, edges)

    def without_edges(self, edges: Iterable[tuple[int | str, int | str]]) -> "Network":
        """Return the network without some edges."""
        return growth.without_edges(self, edges)

    def to_networkx(self) -> "networkx.Graph":
        """Return the network as a NetworkX graph, its nodes the agents' names, or numbers."""
        import networkx  # noqa: PLC0415

        graph = networkx.DiGraph() if self._directed else networkx.Graph()
        label: Sequence[Any] = self._names or range(len(self))
        graph.add_nodes_from(label)
        graph.add_edges_from((label[i], label[j]) for i, j in self.edges)
        return graph

    def _mutual(self, ttl: int) -> SparseRows:
        """Who is within γ of whom, both ways, without oneself."""
        others = _others(self.lags(ttl).sources)
        return others.mutual() if self._directed else others


def as_network(value: Any) -> Network:
    """Check that a value is a network."""
    if not isinstance(value, Network):
        raise ParameterError(
            f"expected a coopbandits.Network, got {short(value)}; Network.from_networkx and "
            "Network.from_edges make one"
        )
    return value


def _rebuilt(chain: list[tuple[Any, ...]], own: tuple[Any, ...] | None) -> Network:
    """Make the networks that one grew out of, the oldest first, and it itself."""
    whole: Network | None = None
    for arcs, directed, names, ancestors, absent in chain:
        frozen(arcs.starts), frozen(arcs.agents)  # what was pickled can be written to
        whole = Network._made(arcs, directed, names, (), None, whole, ancestors, absent)
        _ = whole.fingerprint  # each rests on that of the one before
    assert whole is not None
    if own is None:
        return whole
    arcs, left, ancestors = own
    frozen(arcs.starts), frozen(arcs.agents)
    return Network._made(arcs, whole.directed, whole._names, left, whole, None, ancestors)


def _names_for(names: Any, agents: int) -> tuple[str, ...]:
    called = as_names(names)
    if len(called) != agents:
        raise NetworkError(f"there are {len(called)} names for {agents} agents; expected one each")
    return called


def _others(sources: SparseRows) -> SparseRows:
    """Leave each agent out of its own row."""
    return sources.kept(sources.rows != sources.agents)
