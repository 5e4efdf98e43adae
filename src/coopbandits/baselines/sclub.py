"""SCLUB (Li, Chen, Li & Leung 2019): clusters are sets, which agents leave and which merge.

Li, Chen, Li & Leung, "Improved Algorithm on Online Clustering of Bandits", IJCAI 2019. All agents
start in one cluster. In a phase an agent that has been served is compared with what its cluster
had estimated when the phase began, and leaves it if it differs; clusters all of whose agents have
been checked in the phase merge if they are alike.

What is certain, and what is not: phases, F and the two tests of estimates agree with a public
implementation of the paper's algorithms 1 to 4; the paper's text was not at hand.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray, as_not_negative, as_positive
from coopbandits.baselines.cluster_sums import ClusterSums, lowest, uncertainty
from coopbandits.baselines.offers import check_contexts
from coopbandits.baselines.settings import Named, as_name
from coopbandits.engines import Simulation
from coopbandits.kernels import Linear
from coopbandits.listen import Everyone
from coopbandits.problems.problem import Round


@dataclass(frozen=True, kw_only=True)
class SCLUB(Named):
    r"""SCLUB: argmax w̄ᵀx + α·√(xᵀM̄⁻¹x·ln(t + 1)), M̄ = λI + Σxxᵀ and w̄ = M̄⁻¹Σxy of the own cluster.

    Phase s = 1, 2, … has 2^s steps. When it begins no agent is checked, and every cluster C keeps
    w̃_C = w̄_C and T̃_C = T_C. After its step agent i leaves C, and is a cluster by itself, if

        ‖w_i − w̃_C‖ > α_θ·(F(T_i) + F(T̃_C)),      F(T) = √((1 + ln(1 + T))/(1 + T)),

    and is checked. Then two clusters A and B whose agents are all checked merge if

        ‖w̄_A − w̄_B‖ < (α_θ/2)·(F(T_A) + F(T_B)).

    Args:
        alpha: α, how optimistic decisions are.
        alpha_theta: α_θ, how far apart two estimates must be; 0 parts agents at once and for good,
            a large one never.
        ridge: λ.
        lag: 0 lets agents take turns within a round, each knowing all pulls before its own; 1 lets
            all decide at once, knowing all earlier rounds.
        name: What tables and figures call it.

    Deviation from the paper: it serves one user in a step. Here a round serves all V agents: in
    turn (`lag=0`, V steps, as there) or at once (`lag=1`, one step of a phase, after which all
    agents are tested, then all checked, then clusters merged). Agents are served equally often, so
    its tests of how often they are served are left out. The width is that of CLUB's experiments,
    and whoever knows nothing chooses at random. What the paper leaves open: pairs of clusters are
    gone through once a step, in the order of their lowest agents, and merge at once; a cluster
    that comes about within a phase keeps as w̃ and T̃ what it has then; one that an agent leaves
    keeps those it had.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.complete(4))
        >>> cb.play(problem, cb.SCLUB(alpha_theta=2.0), rounds=5).regret.shape
        (5, 4)
    """

    alpha: float = 1.0
    alpha_theta: float = 1.0
    ridge: float = 1.0
    lag: int = 0
    name: str = "SCLUB"

    def __post_init__(self) -> None:
        as_name(self.name)
        object.__setattr__(self, "alpha", as_not_negative(self.alpha, "alpha"))
        object.__setattr__(self, "alpha_theta", as_not_negative(self.alpha_theta, "alpha_theta"))
        object.__setattr__(self, "ridge", as_positive(self.ridge, "ridge"))
        object.__setattr__(self, "lag", Everyone(lag=self.lag).lag)

    def player(self, simulation: Simulation) -> "SetClusteredAgents":
        """Make what takes the decisions of a simulation's agents."""
        return SetClusteredAgents(self, simulation)


class SetClusteredAgents:
    """Takes all decisions of SCLUB.

    Attributes:
        sums: What agents and clusters know; a cluster is named by its lowest agent.
        checked: (V,) who has been served in this phase.
        phase: s.
    """

    name = "clusters"

    def __init__(self, sclub: SCLUB, simulation: Simulation) -> None:
        V, d = simulation.agents, simulation.dim
        self.listens: BoolArray = np.ones((V, V), dtype=np.bool_)
        self.sums = ClusterSums(
            simulation,
            alpha=sclub.alpha,
            ridge=sclub.ridge,
            lag=sclub.lag,
            labels=np.zeros(V, dtype=np.int64),
            clusters=V,
        )
        self.checked: BoolArray = np.zeros(V, dtype=np.bool_)
        self.phase = 0
        self._steps_left = 0
        self._sclub = sclub
        # w̃ and T̃ of each agent's cluster
        self._pivots: Array = np.zeros((V, d))
        self._pivot_counts: IntArray = np.zeros(V, dtype=np.int64)

    @property
    def refreshes(self) -> int:
        """How often clusters split or merged."""
        return self.sums.changes

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        check_contexts(Linear(), self._sclub.ridge, offer)
        rows = np.empty(len(self.checked), dtype=np.int64)
        for turn in self.sums.turns():
            if self._steps_left == 0:
                self._begin_phase()
            self._steps_left -= 1
            rows[turn] = self.sums.choose(offer, turn)
            self.sums.learn(turn, offer.contexts[rows[turn]], offer.rewards[rows[turn]])
            self._split(turn)
            self.checked[turn] = True
            self._merge()
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes of round t: everyone tells everyone what it saw."""
        return self.sums.traffic(t)

    def similarity(self) -> Array:
        """Return 1 within clusters, 0 across: (V, V)."""
        return self.sums.similarity()

    def _begin_phase(self) -> None:
        self.phase += 1
        self._steps_left = 2**self.phase
        self.checked[:] = False
        self._keep_pivots(np.arange(len(self.checked)))

    def _keep_pivots(self, agents: IntArray) -> None:
        """Keep what the clusters of some agents estimate now, as w̃ and T̃."""
        labels, place = np.unique(self.sums.labels[agents], return_inverse=True)
        self._pivots[agents] = self.sums.centres(labels)[place]
        self._pivot_counts[agents] = self.sums.counts_of[labels][place]

    def _split(self, turn: IntArray) -> None:
        """Let agents leave clusters that they differ from."""
        gaps = np.linalg.norm(self.sums.own(turn) - self._pivots[turn], axis=1)
        bounds = uncertainty(self.sums.counts[turn]) + uncertainty(self._pivot_counts[turn])
        leaving = turn[gaps > self._sclub.alpha_theta * bounds]
        if leaving.size:
            labels = self.sums.labels.copy()
            labels[leaving] = len(labels) + leaving
            self.sums.relabel(lowest(labels))
            self._keep_pivots(leaving)

    def _merge(self) -> None:
        """Merge clusters that are checked and alike."""
        labels = self.sums.labels.copy()
        unchecked = np.unique(labels[~self.checked])
        ready = np.setdiff1d(np.unique(labels), unchecked)
        if not self._alike(ready).any():
            return
        for place, one in enumerate(ready):
            for other in ready[place + 1 :]:
                both = np.array([one, other])
                if (labels == one).any() and (labels == other).any() and self._alike(both).any():
                    labels[labels == other] = one
                    self.sums.relabel(labels.copy())
                    self._keep_pivots(np.flatnonzero(labels == one))

    def _alike(self, clusters: IntArray) -> BoolArray:
        """Tell which pairs of some clusters may merge: (n,) -> (n, n), above the diagonal."""
        centres = self.sums.centres(clusters)
        gaps = np.linalg.norm(centres[:, None] - centres[None, :], axis=2)
        F = uncertainty(self.sums.counts_of[clusters])
        return np.triu(gaps < 0.5 * self._sclub.alpha_theta * (F[:, None] + F[None, :]), 1)
