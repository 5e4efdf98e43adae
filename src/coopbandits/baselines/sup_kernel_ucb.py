r"""SupKernelUCB (Valko et al. 2013): every agent alone, on levels whose rewards are independent.

Valko, Korda, Munos, Flaounas & Cristianini, "Finite-Time Analysis of Kernelised Contextual
Bandits", UAI 2013. KernelUCB chooses by rewards it has seen, so what it has learnt from is not
independent, and its bound must be wide. Here each level s = 1, 2, … has its own index set Ψ^(s) of
rounds and its own posterior (BaseKernelUCB). An agent starts a round at level 1 with all actions:

1. all widths w·σ ≤ 1/√T: take the best upper bound; no level learns from it;
2. all ≤ 2^−s: keep the actions whose bound is within 2^(1−s) of the best, go on at level s + 1;
3. else take an action that is wider than 2^−s, and add the round to Ψ^(s).

What level s learns is chosen by its widths, and so by contexts, and by rewards of lower levels.
As 2^−s ≤ 1/√T at the level ⌈log₂(T)/2⌉, no agent goes higher, and S = ⌈ln T⌉ levels are enough.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from coopbandits.act import TIE
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.baselines.offers import check_contexts, pick
from coopbandits.baselines.settings import Named, as_name, check_memory, settle_bound
from coopbandits.baselines.side_by_side import SideBySide
from coopbandits.engines import Simulation
from coopbandits.kernels import Kernel, as_kernel
from coopbandits.problems.problem import Round


@dataclass(frozen=True, kw_only=True)
class SupKernelUCB(Named):
    r"""SupKernelUCB: KernelUCB on levels, each of which learns only where it is unsure.

    w = B + (R/√λ)·√(2 ln(2TK/δ)) for K offered actions, their η for R = 1; or w = η/√λ if `eta` is
    given. Guarantee: if f has norm at most B and the noise is independent and R-sub-Gaussian, the
    bounds of one level hold in all rounds with probability at least 1 − δ.

    Deviation from the paper: it leaves open which of the unsure actions is taken (case 3); the
    least sure is. An agent that knows nothing takes one of those at random. A width within 1e-9 of
    a mark counts as not above it. B and R are 1 there.

    Args:
        kernel: K_x.
        ridge: λ.
        norm: B.
        noise: R.
        delta: δ.
        eta: η, for a width that guarantees nothing.
        name: What tables and figures call it.

    Example:
        >>> problem = cb.problems.fully_cooperative(cb.Network.path(4))
        >>> cb.play(problem, cb.SupKernelUCB(cb.kernels.RBF()), rounds=5).regret.shape
        (5, 4)
    """

    kernel: Kernel = field(kw_only=False)
    ridge: float = 1.0
    norm: float = 1.0
    noise: float = 1.0
    delta: float = 0.05
    eta: float | None = None
    name: str = "SupKernelUCB"

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        as_name(self.name)
        settle_bound(self)

    def width(self, actions: int, rounds: int) -> float:
        """Return w, the factor of σ, for K offered actions and T rounds."""
        if self.eta is not None:
            return self.eta / math.sqrt(self.ridge)
        spread = math.sqrt(2 * math.log(2 * rounds * actions / self.delta))
        return self.norm + self.noise / math.sqrt(self.ridge) * spread

    def player(self, simulation: Simulation) -> "SupKernelPlayer":
        """Make what takes the decisions of a simulation's agents."""
        return SupKernelPlayer(self, simulation)


class SupKernelPlayer:
    """All agents, each with a posterior for each of its levels.

    Attributes:
        index_sets: Ψ, [v][s − 1] the rounds from which level s of agent v has learnt.
    """

    name, refreshes = "levels", 0

    def __init__(self, algorithm: SupKernelUCB, simulation: Simulation) -> None:
        V, T = simulation.agents, simulation.rounds
        check_memory(algorithm.name, 4.0 * V * T**2, simulation)
        self._algorithm, self._rounds = algorithm, T
        self._rngs = simulation.rngs()
        self._knows = np.zeros(V, dtype=np.bool_)
        self._levels: list[SideBySide] = []
        self.index_sets: list[list[list[int]]] = [[] for _ in range(V)]
        self.listens: BoolArray = np.eye(V, dtype=np.bool_)

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        check_contexts(self._algorithm.kernel, self._algorithm.ridge, offer)
        rows, left = offer.padded(slice(None))
        V = len(rows)
        X, rewards = offer.contexts[rows], offer.rewards[rows]
        widths = np.array([self._algorithm.width(int(k), self._rounds) for k in offer.sizes])
        action, knew = np.zeros(V, dtype=np.int64), self._knows.copy()
        climbing, s = np.arange(V), 1
        while climbing.size:
            level = self._level(s, X.shape[2])
            Z = level.project(climbing, X[climbing])
            mean, std = level.believe(climbing, X[climbing], Z)
            spread = np.where(left[climbing], widths[climbing, None] * std, -np.inf)
            bounds = np.where(left[climbing], mean + spread, -np.inf)
            sure = spread.max(axis=1) <= 1 / math.sqrt(self._rounds) + TIE
            unsure = ~sure & (spread.max(axis=1) > 2.0**-s + TIE)
            wide = np.where(spread > 2.0**-s + TIE, spread, -np.inf)
            scores = np.where(sure[:, None], bounds, wide)
            stops = np.flatnonzero(sure | unsure)
            v = climbing[stops]
            action[v] = pick(scores[stops], knew[v], [self._rngs[agent] for agent in v])
            learning = np.flatnonzero(unsure)
            if learning.size:
                v = climbing[learning]
                z = Z[learning, :, action[v]]
                level.learn(v, X[v, action[v]], z, rewards[v, action[v]])
                self._knows[v] = True
                for agent in v:
                    self.index_sets[agent][s - 1].append(t)
            best = bounds.max(axis=1, keepdims=True)
            kept = bounds >= best - 2.0 ** (1 - s) - TIE * np.maximum(1.0, np.abs(best))
            left[climbing] &= kept
            climbing, s = climbing[~(sure | unsure)], s + 1
        return offer.starts + action

    def traffic(self, t: int) -> tuple[int, int]:
        """Return 0 messages and 0 bytes."""
        return 0, 0

    def similarity(self) -> Array:
        """Return the identity: nobody's news is worth anything to another."""
        return np.eye(len(self._rngs))

    def _level(self, s: int, dim: int) -> SideBySide:
        if s > len(self._levels):
            kernel, ridge = self._algorithm.kernel, self._algorithm.ridge
            self._levels.append(SideBySide(kernel, ridge, agents=len(self._rngs), dim=dim))
            for sets in self.index_sets:
                sets.append([])
        return self._levels[s - 1]
