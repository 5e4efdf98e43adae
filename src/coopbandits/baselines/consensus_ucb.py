"""coop-UCB2 (Landgren, Srivastava & Leonard 2016): agents mix their counts and sums of each arm.

Running consensus: in every round each agent takes a weighted mean of its neighbours' estimates and
its own, so that all come to agree on how often each arm was pulled, and with what reward.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.act import first_best
from coopbandits.arrays import Array, BoolArray, IntArray, as_not_negative, as_number
from coopbandits.baselines.settings import Named, as_name
from coopbandits.engines import Simulation
from coopbandits.errors import NetworkError, ParameterError
from coopbandits.network import Network
from coopbandits.problems.problem import Round
from coopbandits.protocol.messages import message_size


@dataclass(frozen=True, kw_only=True)
class ConsensusUCB(Named):
    r"""coop-UCB2: argmax ŝ/n̂ + R·√(2g·(n̂ + √ln τ)/(V·n̂)·ln τ/n̂), with τ = t − 1, over K arms.

    n̂ and ŝ (V, K) estimate each arm's pulls and rewards per agent, n̂ ← P(n̂ + ξ), ŝ ← P(ŝ + ξ·y)
    after every round, with ξ the arms pulled in it and P = I − (κ/d_max)·L.

    Agents know no contexts: they must be offered the same K actions, in one order, in every round,
    and an action must bring the same to all (`problems.fully_cooperative`).

    Args:
        noise: R, the sub-Gaussian constant of the rewards' noise (their σ_g).
        exploration: g = γ/G(η) of the paper, G(η) = 1 − η²/16; above 1 in their theorem.
        kappa: κ, how much of the neighbours' estimates is taken, 0 < κ ≤ 1. Up to 1/2 no agent's
            estimates can swing to and fro.
        name: What tables and figures call it.

    Deviation from the paper: agents first pull each arm once, there in no stated order; here each
    goes through them from a first one drawn at random. An arm that an agent has lost sight of
    (n̂ = 0, which κ = 1 allows) is pulled next. Each component of the network is one of its own,
    with its own V and d_max. Their f(t) is √ln t.

    Example:
        >>> problem = cb.problems.fully_cooperative(cb.Network.path(4))
        >>> cb.play(problem, cb.ConsensusUCB(noise=0.1), rounds=5).regret.shape
        (5, 4)
    """

    noise: float = 1.0
    exploration: float = 1.1
    kappa: float = 0.5
    name: str = "coop-UCB2"

    def __post_init__(self) -> None:
        as_name(self.name)
        for field in ("noise", "exploration"):
            object.__setattr__(self, field, as_not_negative(getattr(self, field), field))
        object.__setattr__(self, "kappa", as_number(self.kappa, "kappa"))
        if not 0 < self.kappa <= 1:
            raise ParameterError(f"kappa must be above 0 and at most 1, got {self.kappa}")

    def player(self, simulation: Simulation) -> "MixedEstimates":
        """Make what takes the decisions of a simulation's agents."""
        return MixedEstimates(self, simulation)


def consensus_matrix(network: Network, kappa: float) -> Array:
    """P = I − (κ/d_max)·L, in each component by itself: (V, V), symmetric, rows of sum 1."""
    A = network.adjacency
    if (A != A.T).any():
        raise NetworkError(
            "running consensus needs edges that carry news both ways, but some arc of the network "
            "has no way back; take an undirected network"
        )
    degrees = A.sum(axis=1)
    P = np.zeros(A.shape)
    for members in network.components:
        share = kappa / max(1, int(degrees[members].max()))
        block = np.ix_(members, members)
        P[block] = share * A[block]
        P[members, members] = 1 - share * degrees[members]
    return P


class MixedEstimates:
    """Takes all decisions of coop-UCB2.

    Attributes:
        counts: (V, K) n̂, what each agent takes for the pulls of each arm per agent.
        sums: (V, K) ŝ, the same of rewards.
    """

    name, refreshes = "consensus", 0

    def __init__(self, algorithm: ConsensusUCB, simulation: Simulation) -> None:
        network, self._algorithm = simulation.network, algorithm
        self._P = consensus_matrix(network, algorithm.kappa)
        self.listens: BoolArray = network.adjacency.T | np.eye(len(network), dtype=np.bool_)
        self._edges = int(network.adjacency.sum())
        self._agents = np.ones(len(network))  # of each agent's component
        for members in network.components:
            self._agents[members] = len(members)
        self._rngs = simulation.rngs()
        self._arms: Array = np.empty((0, 0))
        self._first: IntArray = np.zeros(len(network), dtype=np.int64)
        self.counts: Array = np.empty((len(network), 0))
        self.sums: Array = np.empty((len(network), 0))

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, learn its reward, and mix: (V,)."""
        V = len(self._rngs)
        if t == 1:
            self._arms = offer.contexts[: offer.sizes[0]].copy()
        self._check(t, offer)
        K = len(self._arms)
        if t == 1:
            self._first = np.array([rng.integers(K) for rng in self._rngs])
            self.counts, self.sums = np.zeros((V, K)), np.zeros((V, K))
        arms = (self._first + t - 1) % K if t <= K else self._best(t - 1)
        rows = offer.starts + arms
        pulled = np.zeros((V, K))
        pulled[np.arange(V), arms] = 1.0
        self.counts = self._P @ (self.counts + pulled)
        self.sums = self._P @ (self.sums + pulled * offer.rewards[rows][:, None])
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and bytes of round t: 2K numbers from each to each neighbour."""
        return self._edges, self._edges * message_size(2 * len(self._arms) - 1)

    def similarity(self) -> Array:
        """Return P: how much of the mixture that v takes is u's, [v, u]: (V, V)."""
        return self._P.copy()

    def _best(self, past: int) -> IntArray:
        """Return the arm of the highest index, after so many rounds: (V,)."""
        lost = self.counts == 0
        n = np.where(lost, 1.0, self.counts)
        log = np.log(past)
        share = (n + np.sqrt(log)) / (self._agents[:, None] * n)
        width = np.sqrt(2 * self._algorithm.exploration * share * log / n)
        index = self.sums / n + self._algorithm.noise * width
        return np.where(lost.any(axis=1), lost.argmax(axis=1), first_best(index))

    def _check(self, t: int, offer: Round) -> None:
        """Refuse decision sets that are not the same for all agents in all rounds."""
        V, (K, d) = len(self._rngs), self._arms.shape
        same = offer.contexts.shape == (V * K, d) and (offer.sizes == K).all()
        if not same or (offer.contexts.reshape(V, K, d) != self._arms).any():
            raise ParameterError(
                f"{self._algorithm.name} knows no contexts, only arms: it needs the same actions "
                f"for all agents in all rounds, but round {t} offers others than agent 0's in "
                "round 1; take a problem such as problems.fully_cooperative"
            )
