"""DynUCB (Nguyen & Lauw 2014): K clusters, and every agent moves to the nearest one, as in K-means.

Nguyen & Lauw, "Dynamic Clustering of Contextual Multi-Armed Bandits", CIKM 2014. After each reward
an agent's own ridge regression is compared with those of the K clusters, and the agent goes to the
one whose weights are nearest. Clusters may change for ever, so agents may follow tasks that change.

What is certain, and what is not: bounds, sums and distances agree with a public implementation; of
the paper itself only the abstract was at hand.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.act import agent_rng
from coopbandits.arrays import Array, BoolArray, IntArray, as_count, as_not_negative, as_positive
from coopbandits.baselines.cluster_sums import ClusterSums
from coopbandits.baselines.offers import check_contexts
from coopbandits.baselines.settings import Named, as_name
from coopbandits.engines import Simulation
from coopbandits.kernels import Linear
from coopbandits.listen import Everyone
from coopbandits.problems.problem import Round

# Distances that differ by rounding only are equal, and an agent stays where it is.
_CLOSE = 1e-9


@dataclass(frozen=True, kw_only=True)
class DynUCB(Named):
    r"""DynUCB: argmax w̄ᵀx + α·√(xᵀM̄⁻¹x·ln(t + 1)), M̄ = λI + Σxxᵀ and w̄ = M̄⁻¹Σxy of the own cluster.

    After its reward agent i goes to the cluster k of least ‖w_i − w̄_k‖, with the w_i that it now
    has by itself, and the sums of the cluster that it leaves and of the one that it joins change.

    Args:
        clusters: K.
        alpha: α, how optimistic decisions are.
        ridge: λ.
        lag: 0 lets agents take turns within a round, each knowing all pulls before its own; 1 lets
            all decide at once, knowing all earlier rounds.
        name: What tables and figures call it.

    Deviation from the paper: it serves one user in a step. Here a round serves all V agents, in
    turn (`lag=0`, as there) or at once (`lag=1`: all are then compared with the w̄_k by which
    they decided, and move together). What the paper leaves open: w̄_k is the one before the step's
    reward; of equally near clusters an agent stays in its own, then goes to the first, so that
    clusters which know nothing yet do not attract anybody; the first clusters are drawn uniformly.
    Whoever's cluster knows nothing chooses at random; λ is 1 there.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.complete(4))
        >>> cb.play(problem, cb.DynUCB(clusters=2), rounds=5).regret.shape
        (5, 4)
    """

    clusters: int = 4
    alpha: float = 1.0
    ridge: float = 1.0
    lag: int = 0
    name: str = "DynUCB"

    def __post_init__(self) -> None:
        as_name(self.name)
        object.__setattr__(self, "clusters", as_count(self.clusters, "clusters"))
        object.__setattr__(self, "alpha", as_not_negative(self.alpha, "alpha"))
        object.__setattr__(self, "ridge", as_positive(self.ridge, "ridge"))
        object.__setattr__(self, "lag", Everyone(lag=self.lag).lag)

    def player(self, simulation: Simulation) -> "DynamicallyClusteredAgents":
        """Make what takes the decisions of a simulation's agents."""
        return DynamicallyClusteredAgents(self, simulation)


class DynamicallyClusteredAgents:
    """Takes all decisions of DynUCB.

    Attributes:
        sums: What agents and the K clusters know.
    """

    name = "clusters"

    def __init__(self, algorithm: DynUCB, simulation: Simulation) -> None:
        V, K = simulation.agents, algorithm.clusters
        self.listens: BoolArray = np.ones((V, V), dtype=np.bool_)
        self.sums = ClusterSums(
            simulation,
            alpha=algorithm.alpha,
            ridge=algorithm.ridge,
            lag=algorithm.lag,
            labels=agent_rng(simulation.seed, V).integers(K, size=V),  # no agent draws from it
            clusters=K,
        )
        self._algorithm = algorithm

    @property
    def refreshes(self) -> int:
        """How often agents changed their clusters."""
        return self.sums.changes

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        check_contexts(Linear(), self._algorithm.ridge, offer)
        rows = np.empty(len(self.sums.labels), dtype=np.int64)
        for turn in self.sums.turns():
            rows[turn] = self.sums.choose(offer, turn)
            centres = self.sums.centres(np.arange(self._algorithm.clusters))
            self.sums.learn(turn, offer.contexts[rows[turn]], offer.rewards[rows[turn]])
            self._reassign(turn, centres)
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes of round t: everyone tells everyone what it saw."""
        return self.sums.traffic(t)

    def similarity(self) -> Array:
        """Return 1 within clusters, 0 across: (V, V)."""
        return self.sums.similarity()

    def _reassign(self, turn: IntArray, centres: Array) -> None:
        """Let each agent of a turn go to the nearest of the w̄_k: (n,), (K, d)."""
        gaps = np.linalg.norm(self.sums.own(turn)[:, None] - centres[None, :], axis=2)
        here = self.sums.labels[turn]
        stays = gaps[np.arange(len(turn)), here]
        least = gaps.min(axis=1)
        close = _CLOSE * np.maximum(1.0, least)
        nearest = (gaps <= (least + close)[:, None]).argmax(axis=1)
        labels = self.sums.labels.copy()
        labels[turn] = np.where(stays <= least + close, here, nearest)
        self.sums.relabel(labels)
