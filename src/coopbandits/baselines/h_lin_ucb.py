r"""H-LinUCB (Do et al. 2023): share as DisLinUCB does, until what agents differ by would tell.

Do, Nguyen-Tang & Arora, "Multi-Agent Learning with Heterogeneous Linear Contextual Bandits",
NeurIPS 2023. The agents' weights θ_v differ by at most ε, which is known. For the first

    τ = min(T, ⌊1/ε²⌋)

rounds all act as one: another's reward is one's own with a corruption of at most ε, against which
an observation counts with the weight min(1, α/‖x‖), ‖x‖² = xᵀA⁻¹x and A = λI + Σ weight·xxᵀ (He et
al. 2022), and the width grows by α·ε for each. The log-determinant trigger (`server.py`) says when
sums are shared. After round τ each agent is alone.

What is certain, and what is not: τ, the weights, α = √d/(ε·V·T), D = √(T·ln(VT)/(d·V)) and starting
anew after τ are those of the code that the authors published; the paper's text was not at hand, and
may have τ for T in α or in D.
"""

import math
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    as_flag,
    as_not_negative,
    as_positive,
)
from coopbandits.baselines.linear import regressed
from coopbandits.baselines.offers import check_contexts, take
from coopbandits.baselines.server import Server, as_threshold
from coopbandits.baselines.settings import Named, as_name, settled_width
from coopbandits.engines import Simulation
from coopbandits.gp.posterior import deviation
from coopbandits.kernels import Linear
from coopbandits.problems.problem import Round
from coopbandits.width import Width


@dataclass(frozen=True, kw_only=True)
class HLinUCB(Named):
    r"""H-LinUCB: DisLinUCB for τ = min(T, ⌊1/ε²⌋) rounds, then LinUCB alone.

    With ε = 0 it is DisLinUCB for ever, with ε > 1 every agent is alone from the start.

    Deviation from the paper: synchronisations come after a round (`server.py`), with what was seen
    in it. Their width is for λ = B = R = 1, with the largest log det(I + K/λ) and V·t corrupted
    rewards; here it is w + α·ε·n/√λ, with the realised log-determinant and the n observations that
    an agent knows. It holds where w holds for agents that are alike, if contexts have norm at most
    1. An agent that knows nothing, also after round τ, chooses at random.

    Args:
        dissimilarity: ε ≥ |θ_u − θ_v| for all agents u and v.
        ridge: λ.
        eta: η, for the width η/√λ.
        width: How sure am I? `SelfNormalised()`, if neither is given.
        alpha: α, above which an observation's ‖x‖ lowers its weight; √d/(ε·V·T), if not given.
        threshold: D; 0 for a synchronisation after every round, inf for none; √(T·ln(VT)/(d·V)),
            if not given.
        keep: Go on after τ with what one has seen oneself, not anew.
        name: What tables and figures call it.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.path(4))
        >>> cb.play(problem, cb.HLinUCB(dissimilarity=0.1), rounds=5).regret.shape
        (5, 4)
    """

    dissimilarity: float
    ridge: float = 1.0
    eta: float | None = None
    width: Width | None = None
    alpha: float | None = None
    threshold: float | None = None
    keep: bool = False
    name: str = "H-LinUCB"

    def __post_init__(self) -> None:
        as_name(self.name)
        settled_width(self.eta, self.width)
        epsilon = as_not_negative(self.dissimilarity, "dissimilarity")
        object.__setattr__(self, "dissimilarity", epsilon)
        object.__setattr__(self, "ridge", as_positive(self.ridge, "ridge"))
        if self.alpha is not None:
            object.__setattr__(self, "alpha", as_positive(self.alpha, "alpha"))
        if self.threshold is not None:
            object.__setattr__(self, "threshold", as_threshold(self.threshold))
        as_flag(self.keep, "keep")

    def shared_rounds(self, rounds: int) -> int:
        """Return τ, for T rounds."""
        epsilon = self.dissimilarity
        return rounds if epsilon**2 * rounds <= 1 else min(rounds, math.floor(epsilon**-2))

    def weighing(self, *, agents: int, rounds: int, dim: int) -> float:
        """Return α for V agents, T rounds and contexts of d numbers; inf where ε = 0."""
        if self.dissimilarity == 0:
            return math.inf
        default = math.sqrt(dim) / (self.dissimilarity * agents * rounds)
        return default if self.alpha is None else self.alpha

    def trigger(self, *, agents: int, rounds: int, dim: int) -> float:
        """Return D for V agents, T rounds and contexts of d numbers."""
        if self.threshold is not None:
            return self.threshold
        return math.sqrt(rounds * math.log(agents * rounds) / (dim * agents))

    def player(self, simulation: Simulation) -> "HLinPlayer":
        """Make what takes the decisions of a simulation's agents."""
        return HLinPlayer(self, simulation)


class Sums:
    """What observations of some agents add up to: n (V,), b (V, d), S (V, d, d), each weighed."""

    def __init__(self, agents: int, dim: int) -> None:
        self.n = np.zeros(agents, dtype=np.int64)
        self.b = np.zeros((agents, dim))
        self.S = np.zeros((agents, dim, dim))

    def add(self, X: Array, y: Array, weights: Array) -> None:
        """Add one observation of each agent: (V, d), (V,), (V,)."""
        self.n += 1
        self.b += (weights * y)[:, None] * X
        self.S += weights[:, None, None] * X[:, :, None] * X[:, None, :]

    def absorb(self, others: "Sums") -> None:
        """Add all that others add up to, to what each has."""
        self.n += others.n.sum()
        self.b += others.b.sum(axis=0)
        self.S += others.S.sum(axis=0)


class HLinPlayer:
    """All agents: sums of what all know, and of what each has seen since.

    Attributes:
        shared_rounds: τ.
        common: What all know.
        synchronised: The rounds after which all have told the server.
        refreshes: 1 once every agent is alone, else 0.
    """

    name = "server"

    def __init__(self, algorithm: HLinUCB, simulation: Simulation) -> None:
        V, T, d = simulation.agents, simulation.rounds, simulation.dim
        sizes = {"agents": V, "rounds": T, "dim": d}
        self._algorithm, self._dim = algorithm, d
        self._width = settled_width(algorithm.eta, algorithm.width)
        self._alpha = algorithm.weighing(**sizes)
        self._server = Server(agents=V, rounds=T, threshold=algorithm.trigger(**sizes))
        self._rngs = simulation.rngs()
        self.shared_rounds = algorithm.shared_rounds(T)
        self._shares = self.shared_rounds > 0 and self._server.threshold < math.inf
        self.common, self._own = Sums(1, d), Sums(V, d)
        self._mine = Sums(V, d)  # all that each has seen itself, none of it weighed
        self.synchronised: list[int] = []
        self.refreshes = 0
        self.listens: BoolArray = np.eye(V, dtype=np.bool_) | self._shares

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        check_contexts(Linear(), self._algorithm.ridge, offer)
        together = t <= self.shared_rounds
        if t == self.shared_rounds + 1:
            self._part()
        mean, norms, logdet = self._believe(offer)
        root = math.sqrt(self._algorithm.ridge)
        count = (self.common.n + self._own.n)[offer.agents]
        width = self._width.factor(
            logdet=logdet[offer.agents],
            count=count,
            ridge=self._algorithm.ridge,
            agents=np.full(len(count), len(self._rngs) if together and self._shares else 1),
        )
        if together and self._algorithm.dissimilarity > 0:
            width = width + self._alpha * self._algorithm.dissimilarity * count / root
        scores = mean + width * root * norms
        rows = take(offer, scores, count[offer.starts] > 0, self._rngs)
        X, y = offer.contexts[rows], offer.rewards[rows]
        if not together:
            self._own.add(X, y, np.ones(len(y)))
            return rows
        self._own.add(X, y, self._weights(norms[rows]))
        if self._algorithm.keep:
            self._mine.add(X, y, np.ones(len(y)))
        gained = self._logdets(self.common.S + self._own.S) - self._logdets(self.common.S)
        if self._server.is_due(t, gained):
            self._synchronise(t)
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes between the agents and the server in round t."""
        return self._server.traffic(t)

    def similarity(self) -> Array:
        """Return all ones while agents share, the identity after: (V, V)."""
        V = len(self._rngs)
        return np.eye(V) if self.refreshes or not self._shares else np.ones((V, V))

    def _weights(self, norms: Array) -> Array:
        """Return min(1, α/‖x‖): (V,)."""
        if self._alpha == math.inf:
            return np.ones(len(norms))
        return self._alpha / np.maximum(norms, self._alpha)

    def _believe(self, offer: Round) -> tuple[Array, Array, Array]:
        """Return mean and ‖x‖ of each row of an offer (M,), and log det(I + K/λ) (V,)."""
        S, b = self.common.S + self._own.S, self.common.b + self._own.b
        mean, solved = regressed(S, b, self._algorithm.ridge, offer)
        squared = np.einsum("md,md->m", offer.contexts, solved)
        return mean, deviation(squared), self._logdets(S)

    def _logdets(self, S: Array) -> Array:
        """Return log det(I + S/λ) of each: (V, d, d) -> (V,)."""
        logdet = np.linalg.slogdet(np.eye(self._dim) + S / self._algorithm.ridge)[1]
        return np.maximum(logdet, 0.0)  # below 0 by rounding only

    def _synchronise(self, t: int) -> None:
        """Let everyone tell everyone what is new, through the server."""
        V, d = len(self._rngs), self._dim
        self.common.absorb(self._own)
        self._own = Sums(V, d)
        # each agent's n, b and half of S go up, and all agents' come down to each
        self._server.synchronise(t, messages=2 * V, numbers=1 + d + d * (d + 1) // 2)
        self.synchronised.append(t)

    def _part(self) -> None:
        """Let every agent go on alone, anew or with what it has seen itself."""
        V, d = len(self._rngs), self._dim
        self.refreshes = int(self._shares)
        self.common = Sums(1, d)
        self._own = self._mine if self._algorithm.keep else Sums(V, d)
