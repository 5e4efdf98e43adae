"""CLUB (Gentile, Li & Zappella 2014): who is alike is found while all learn, by cutting edges.

A graph over all agents starts connected. An edge goes for good once its ends' own ridge regressions
are further apart than they should be; the connected parts that are left are the clusters, and an
agent decides by the sums of its cluster.
"""

import math
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
from coopbandits.baselines.offers import check_contexts, take
from coopbandits.baselines.settings import Named, as_name
from coopbandits.engines import Simulation
from coopbandits.errors import ParameterError
from coopbandits.kernels import Linear
from coopbandits.listen import Everyone
from coopbandits.network import Network
from coopbandits.network.lags import transmissions
from coopbandits.problems.problem import Round
from coopbandits.protocol.messages import message_size


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
        labels: (V,) the lowest agent of each agent's cluster.
        edges: (V, V) whom the graph still joins.
        estimates: (V, d) each agent's own w.
        counts: (V,) each agent's own T.
    """

    name = "clusters"

    def __init__(self, club: CLUB, simulation: Simulation) -> None:
        V, d = simulation.agents, simulation.dim
        # a stream that no agent draws from, and no network of the same seed
        graph_seed = int(agent_rng(simulation.seed, V).integers(2**62))
        graph = Network.erdos_renyi(V, club.p, seed=graph_seed)
        self.listens: BoolArray = np.ones((V, V), dtype=np.bool_)
        self.refreshes = 0
        self.labels: IntArray = np.zeros(V, dtype=np.int64)
        self.edges: BoolArray = graph.adjacency.copy()
        self.estimates: Array = np.zeros((V, d))
        self.counts: IntArray = np.zeros(V, dtype=np.int64)
        self._club, self._dim = club, d
        self._rngs = simulation.rngs()
        self._ridge = club.ridge * np.eye(d)
        # M = λI + Σxxᵀ and b = Σxy of each agent
        self._M: Array = np.tile(self._ridge, (V, 1, 1))
        self._b: Array = np.zeros((V, d))
        # the same of each cluster, at its lowest agent
        self._M_of: Array = self._M.copy()
        self._b_of: Array = np.zeros((V, d))
        self._count_of: IntArray = np.zeros(V, dtype=np.int64)
        self._steps = 0
        self._own: Array = np.empty(V)  # CB of each agent
        self._bound_own(np.arange(V))
        carrier = Everyone(lag=club.lag).carrier(graph)
        self._messages = transmissions(carrier, 1, simulation.rounds)

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        check_contexts(Linear(), self._club.ridge, offer)
        agents = np.arange(len(self._rngs))
        rows = np.empty(len(agents), dtype=np.int64)
        for turn in agents[:, None] if self._club.lag == 0 else agents[None, :]:
            for label in np.unique(self.labels[turn]) if len(turn) > 1 else self.labels[turn]:
                members = turn[self.labels[turn] == label]
                rows[members] = self._choose(offer, int(label), members)
            # the printed test compares what was estimated before this step's reward
            cut = self._apart(turn)
            self._learn(turn, offer, rows[turn])
            if cut.size:
                self._cut(cut)
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes of round t: everyone tells everyone what it saw."""
        messages = int(self._messages[t - 1])
        return messages, messages * message_size(self._dim)

    def similarity(self) -> Array:
        """Return 1 within clusters, 0 across: (V, V)."""
        return (self.labels[:, None] == self.labels[None, :]).astype(np.float64)

    def _choose(self, offer: Round, label: int, agents: IntArray) -> IntArray:
        """Choose a row for each of some agents of one cluster: (n,) -> (n,)."""
        rows, offered = offer.padded(agents)
        scores = self._bounds(label, offer.contexts[rows[offered]])
        knows = np.full(len(agents), self._count_of[label] > 0)
        return take(offer, scores, knows, [self._rngs[v] for v in agents], agents)

    def _bounds(self, label: int, X: Array) -> Array:
        """Return a cluster's upper bounds: (m, d) -> (m,)."""
        optimism = self._club.alpha * math.sqrt(math.log(self._steps + 2))  # ln(t + 1)
        factor = np.linalg.cholesky(self._M_of[label])
        Z = np.linalg.solve(factor, np.vstack([self._b_of[label], X]).T)
        mean, spread = Z[:, 1:].T @ Z[:, 0], np.sqrt(np.einsum("dm,dm->m", Z[:, 1:], Z[:, 1:]))
        return np.asarray(mean + optimism * spread)

    def _apart(self, turn: IntArray) -> IntArray:
        """Return the pairs whose edge must go, of those with an end in this turn: (·, 2)."""
        v, u = np.nonzero(self.edges[turn])
        v = turn[v]
        if len(turn) > 1:  # then all edges are there twice
            v, u = v[v < u], u[v < u]
        gaps = self.estimates[v] - self.estimates[u]
        apart = np.sqrt(np.einsum("ed,ed->e", gaps, gaps)) > self._own[v] + self._own[u]
        return np.column_stack([v[apart], u[apart]])

    def _learn(self, turn: IntArray, offer: Round, rows: IntArray) -> None:
        """Add what each agent of a turn saw to its own sums and its cluster's."""
        X, y = offer.contexts[rows], offer.rewards[rows]
        outer, product = X[:, :, None] * X[:, None, :], X * y[:, None]
        self._M[turn] += outer
        self._b[turn] += product
        self.counts[turn] += 1
        np.add.at(self._M_of, self.labels[turn], outer)
        np.add.at(self._b_of, self.labels[turn], product)
        np.add.at(self._count_of, self.labels[turn], 1)
        self.estimates[turn] = np.linalg.solve(self._M[turn], self._b[turn][..., None])[..., 0]
        self._bound_own(turn)
        self._steps += len(turn)

    def _bound_own(self, turn: IntArray) -> None:
        """Work out how far off an agent's own estimate may be, for its T: CB(T)."""
        more = 1.0 + self.counts[turn]
        self._own[turn] = self._club.alpha_2 * np.sqrt((1 + np.log(more)) / more)

    def _cut(self, pairs: IntArray) -> None:
        """Delete edges, and split the clusters that they held together."""
        v, u = pairs.T
        self.edges[v, u] = self.edges[u, v] = False
        split = False
        for label in np.unique(self.labels[v]):
            left = self.labels == label
            while True:
                part = self._reached(int(left.argmax()))
                if (part == left).all():
                    break
                split = True
                self._settle(part)
                left &= ~part
            self._settle(left)
        self.refreshes += split

    def _settle(self, part: BoolArray) -> None:
        """Make one cluster of some agents: (V,)."""
        members = np.flatnonzero(part)
        self.labels[members] = members[0]
        self._M_of[members[0]] = self._ridge + (self._M[members] - self._ridge).sum(axis=0)
        self._b_of[members[0]] = self._b[members].sum(axis=0)
        self._count_of[members[0]] = self.counts[members].sum()

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
