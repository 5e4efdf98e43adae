"""CLUB (Gentile, Li & Zappella 2014): who is alike is found while all learn, by cutting edges.

A graph over all agents starts connected. An edge goes for good once its ends' own ridge regressions
are further apart than they should be; the connected parts that are left are the clusters, and an
agent decides by the sums of its cluster.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.act import agent_rng
from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    as_not_negative,
    as_number,
    as_positive,
)
from coopbandits.baselines.cluster_sums import ClusterSums, uncertainty
from coopbandits.baselines.offers import check_contexts
from coopbandits.baselines.settings import Named, as_name
from coopbandits.engines import Simulation
from coopbandits.errors import ParameterError
from coopbandits.kernels import Linear
from coopbandits.listen import Everyone
from coopbandits.network import Network
from coopbandits.problems.problem import Round


@dataclass(frozen=True, kw_only=True)
class CLUB(Named):
    r"""CLUB: argmax w̄ᵀx + α·√(xᵀM̄⁻¹x·ln(t + 1)), M̄ = λI + Σxxᵀ and w̄ = M̄⁻¹Σxy of the own cluster.

    The edge of i and j goes for good when ‖w_i − w_j‖ > CB(T_i) + CB(T_j), for the w = M⁻¹b that
    each has of its own T observations, CB(T) = α₂·√((1 + ln(1 + T))/(1 + T)). These are the
    bounds of their experiments; those of their theorem need constants that nobody knows.

    Args:
        alpha: α, how optimistic decisions are.
        alpha_2: α₂, how far apart two estimates must be; 0 cuts at once, a large one never.
        p: With which probability each pair of agents is joined at the start; drawn until the graph
            is connected. They take 3·ln(V)/V for many agents.
        ridge: λ.
        lag: 0 lets agents take turns within a round, each knowing all pulls before its own; 1 lets
            all decide at once, knowing all earlier rounds.
        name: What tables and figures call it.

    Deviation from the paper: it serves one user in a step. Here a round serves all V agents, in
    turn (then t, estimates and edges move on with every step, as printed) or at once (then with
    every round). Whoever knows nothing chooses at random; λ is 1 there.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.complete(4))
        >>> cb.play(problem, cb.CLUB(alpha_2=2.0), rounds=5).regret.shape
        (5, 4)
    """

    alpha: float = 1.0
    alpha_2: float = 1.0
    p: float = 1.0
    ridge: float = 1.0
    lag: int = 0
    name: str = "CLUB"

    def __post_init__(self) -> None:
        as_name(self.name)
        object.__setattr__(self, "alpha", as_not_negative(self.alpha, "alpha"))
        object.__setattr__(self, "alpha_2", as_not_negative(self.alpha_2, "alpha_2"))
        object.__setattr__(self, "ridge", as_positive(self.ridge, "ridge"))
        object.__setattr__(self, "lag", Everyone(lag=self.lag).lag)
        object.__setattr__(self, "p", as_number(self.p, "p"))
        if not 0 < self.p <= 1:
            raise ParameterError(f"p must be a probability above 0, up to 1, got {self.p}")

    def player(self, simulation: Simulation) -> "ClusteredAgents":
        """Make what takes the decisions of a simulation's agents."""
        return ClusteredAgents(self, simulation)


class ClusteredAgents:
    """Takes all decisions of CLUB.

    Attributes:
        sums: What agents and clusters know; a cluster is named by its lowest agent.
        edges: (V, V) whom the graph still joins.
    """

    name = "clusters"

    def __init__(self, club: CLUB, simulation: Simulation) -> None:
        V = simulation.agents
        # a stream that no agent draws from, and no network of the same seed
        graph_seed = int(agent_rng(simulation.seed, V).integers(2**62))
        graph = Network.erdos_renyi(V, club.p, seed=graph_seed)
        self.listens: BoolArray = np.ones((V, V), dtype=np.bool_)
        self.edges: BoolArray = graph.adjacency.copy()
        self.sums = ClusterSums(
            simulation,
            alpha=club.alpha,
            ridge=club.ridge,
            lag=club.lag,
            labels=np.zeros(V, dtype=np.int64),
            clusters=V,
        )
        self._club = club
        self._estimates: Array = np.zeros((V, simulation.dim))  # each agent's own w

    @property
    def refreshes(self) -> int:
        """How often clusters split."""
        return self.sums.changes

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        check_contexts(Linear(), self._club.ridge, offer)
        rows = np.empty(len(self.edges), dtype=np.int64)
        for turn in self.sums.turns():
            rows[turn] = self.sums.choose(offer, turn)
            # the printed test compares what was estimated before this step's reward
            cut = self._apart(turn)
            self.sums.learn(turn, offer.contexts[rows[turn]], offer.rewards[rows[turn]])
            self._estimates[turn] = self.sums.own(turn)
            if cut.size:
                self._cut(cut)
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes of round t: everyone tells everyone what it saw."""
        return self.sums.traffic(t)

    def similarity(self) -> Array:
        """Return 1 within clusters, 0 across: (V, V)."""
        return self.sums.similarity()

    def _apart(self, turn: IntArray) -> IntArray:
        """Return the pairs whose edge must go, of those with an end in this turn: (·, 2)."""
        v, u = np.nonzero(self.edges[turn])
        v = turn[v]
        if len(turn) > 1:  # then all edges are there twice
            v, u = v[v < u], u[v < u]
        gaps = self._estimates[v] - self._estimates[u]
        bounds = self._club.alpha_2 * uncertainty(self.sums.counts)  # CB of each agent
        apart = np.sqrt(np.einsum("ed,ed->e", gaps, gaps)) > bounds[v] + bounds[u]
        return np.column_stack([v[apart], u[apart]])

    def _cut(self, pairs: IntArray) -> None:
        """Delete edges, and split the clusters that they held together."""
        v, u = pairs.T
        self.edges[v, u] = self.edges[u, v] = False
        labels = self.sums.labels.copy()
        for label in np.unique(labels[v]):
            left = labels == label
            while left.any():
                part = self._reached(int(left.argmax()))
                labels[part] = part.argmax()
                left &= ~part
        self.sums.relabel(labels)

    def _reached(self, v: int) -> BoolArray:
        """Tell whom the graph still links to an agent: (V,)."""
        inside = np.zeros(len(self.edges), dtype=np.bool_)
        inside[v] = True
        newest = np.array([v])
        while newest.size:
            beside = self.edges[newest].any(axis=0) & ~inside
            inside |= beside
            newest = np.flatnonzero(beside)
        return inside
