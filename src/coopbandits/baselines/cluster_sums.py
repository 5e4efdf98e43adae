r"""Ridge regression of clusters of agents: sums of each agent and of each cluster, LinUCB by these.

An agent of the cluster C decides by

    argmax w̄ᵀx + α·√(xᵀM̄⁻¹x·ln(t + 1))      M̄ = λI + Σ_{u∈C} S_u      w̄ = M̄⁻¹ Σ_{u∈C} b_u

with S_u = Σxxᵀ and b_u = Σxy of all that u saw itself; t is the number of the step, all agents'
together. CLUB, SCLUB and DynUCB share it, and differ in how clusters come about.
"""

import math
from collections.abc import Iterator

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.baselines.offers import take
from coopbandits.engines import Simulation
from coopbandits.listen import Everyone
from coopbandits.network.lags import transmissions
from coopbandits.problems.problem import Round
from coopbandits.protocol.messages import message_size


class ClusterSums:
    """What V agents in clusters know, served in turn (`lag` 0) or all at once (`lag` 1).

    Attributes:
        labels: (V,) the number of each agent's cluster.
        counts: (V,) T, how many observations each agent made.
        S: (V, d, d) and
        b: (V, d), the sums of each agent.
        counts_of: (C,) how many observations each cluster has.
        S_of: (C, d, d) and
        b_of: (C, d), the sums of each cluster; 0 for one without agents.
        changes: How often agents changed their clusters.
    """

    def __init__(
        self,
        simulation: Simulation,
        *,
        alpha: float,
        ridge: float,
        lag: int,
        labels: IntArray,
        clusters: int,
    ) -> None:
        V, d = simulation.agents, simulation.dim
        self.labels = labels
        self.counts: IntArray = np.zeros(V, dtype=np.int64)
        self.S: Array = np.zeros((V, d, d))
        self.b: Array = np.zeros((V, d))
        self.counts_of: IntArray = np.zeros(clusters, dtype=np.int64)
        self.S_of: Array = np.zeros((clusters, d, d))
        self.b_of: Array = np.zeros((clusters, d))
        self.changes = 0
        self._alpha, self._ridge, self._lag = alpha, ridge * np.eye(d), lag
        self._steps = 0
        self._rngs = simulation.rngs()
        carrier = Everyone(lag=lag).carrier(simulation.network)
        self._messages = transmissions(carrier, 1, simulation.rounds)

    def turns(self) -> Iterator[IntArray]:
        """Yield who is served together, one turn of a round after the other."""
        agents = np.arange(len(self.labels))
        yield from (agents[:, None] if self._lag == 0 else agents[None, :])

    def choose(self, offer: Round, turn: IntArray) -> IntArray:
        """Choose a row of the offer for each agent of a turn, by its cluster's sums: (n,)."""
        rows = np.empty(len(turn), dtype=np.int64)
        labels = self.labels[turn]
        for label in np.unique(labels):
            agents = turn[labels == label]
            asked, offered = offer.padded(agents)
            scores = self._bounds(int(label), offer.contexts[asked[offered]])
            knows = np.full(len(agents), self.counts_of[label] > 0)
            rngs = [self._rngs[v] for v in agents]
            rows[labels == label] = take(offer, scores, knows, rngs, agents)
        return rows

    def learn(self, turn: IntArray, X: Array, y: Array) -> None:
        """Add what each agent of a turn saw to its sums and its cluster's: (n,), (n, d), (n,)."""
        outer, product = X[:, :, None] * X[:, None, :], X * y[:, None]
        self.S[turn] += outer
        self.b[turn] += product
        self.counts[turn] += 1
        labels = self.labels[turn]
        np.add.at(self.S_of, labels, outer)
        np.add.at(self.b_of, labels, product)
        np.add.at(self.counts_of, labels, 1)
        self._steps += len(turn)

    def own(self, agents: IntArray) -> Array:
        """Return the ridge regression w of each of some agents by itself: (n,) -> (n, d)."""
        return self._solved(self.S[agents], self.b[agents])

    def centres(self, clusters: IntArray) -> Array:
        """Return the ridge regression w̄ of each of some clusters: (n,) -> (n, d)."""
        return self._solved(self.S_of[clusters], self.b_of[clusters])

    def relabel(self, labels: IntArray) -> None:
        """Let agents change their clusters: (V,)."""
        moved = labels != self.labels
        if not moved.any():
            return
        for label in np.unique(np.concatenate([self.labels[moved], labels[moved]])):
            members = np.flatnonzero(labels == label)
            self.S_of[label] = self.S[members].sum(axis=0)
            self.b_of[label] = self.b[members].sum(axis=0)
            self.counts_of[label] = self.counts[members].sum()
        self.labels = labels
        self.changes += 1

    def similarity(self) -> Array:
        """Return 1 within clusters, 0 across: (V, V)."""
        return (self.labels[:, None] == self.labels[None, :]).astype(np.float64)

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes of round t: everyone tells everyone what it saw."""
        messages = int(self._messages[t - 1])
        return messages, messages * message_size(self.b.shape[1])

    def _solved(self, S: Array, b: Array) -> Array:
        return np.asarray(np.linalg.solve(self._ridge + S, b[..., None])[..., 0])

    def _bounds(self, label: int, X: Array) -> Array:
        """Return a cluster's upper bounds: (m, d) -> (m,)."""
        optimism = self._alpha * math.sqrt(math.log(self._steps + 2))  # ln(t + 1)
        factor = np.linalg.cholesky(self._ridge + self.S_of[label])
        Z = np.linalg.solve(factor, np.vstack([self.b_of[label], X]).T)
        mean, spread = Z[:, 1:].T @ Z[:, 0], np.sqrt(np.einsum("dm,dm->m", Z[:, 1:], Z[:, 1:]))
        return np.asarray(mean + optimism * spread)


def lowest(labels: IntArray) -> IntArray:
    """Name each cluster by its lowest agent: (V,) -> (V,)."""
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[place], dtype=np.int64)


def uncertainty(counts: IntArray) -> Array:
    """Return F(T) = √((1 + ln(1 + T))/(1 + T)), how far off an estimate of T rewards may be."""
    more = 1.0 + counts
    return np.asarray(np.sqrt((1 + np.log(more)) / more))
