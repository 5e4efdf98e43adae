"""Independent agents that forget: linear regression on sums from which the past fades or drops.

Each agent is on its own and takes the highest xᵀθ̂ + β·(the deviation of xᵀθ̂'s noise); what its sums
hold, that deviation and β are the algorithm's.
"""

from typing import Protocol

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.baselines.linear import regressed
from coopbandits.baselines.offers import check_contexts, take
from coopbandits.engines import Simulation
from coopbandits.gp.posterior import deviation
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from coopbandits.network import SparseRows
from coopbandits.problems.problem import Round


class FadingSums(Protocol):
    """What V agents remember.

    Attributes:
        S: (V, d, d) the Σxxᵀ of each, as far as it is remembered.
        b: (V, d) its Σxy.
    """

    S: Array
    b: Array

    def variance(self, agents: IntArray, X: Array, Y: Array) -> Array:
        """Return the squared deviation at rows X, with Y = A⁻¹X: (M,), (M, d) twice -> (M,)."""
        ...

    def learn(self, X: Array, y: Array) -> None:
        """Forget for one round, and add one observation of each agent: (V, d), (V,)."""
        ...


class Forgetful(Protocol):
    """An algorithm of agents that forget."""

    @property
    def ridge(self) -> float:
        """λ."""
        ...

    def radius(self, known: int, dim: int) -> float:
        """Return β after so many rounds, for contexts of d numbers."""
        ...


class ForgettingAgents:
    """Takes all decisions of independent agents that forget.

    Attributes:
        sums: What they remember.
    """

    name, refreshes = "independent regressions", 0

    def __init__(self, algorithm: Forgetful, simulation: Simulation, sums: FadingSums) -> None:
        self.sums = sums
        self._algorithm, self._dim = algorithm, simulation.dim
        self._rngs = simulation.rngs()
        self.listens: SparseRows = Myself().lags(simulation.network, 1).sources

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        ridge = self._algorithm.ridge
        check_contexts(Linear(), ridge, offer)
        mean, solved = regressed(self.sums.S, self.sums.b, ridge, offer)
        spread = deviation(self.sums.variance(offer.agents, offer.contexts, solved))
        scores = mean + self._algorithm.radius(t - 1, self._dim) * spread
        rows = take(offer, scores, np.full(len(self._rngs), t > 1), self._rngs)
        self.sums.learn(offer.contexts[rows], offer.rewards[rows])
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return 0 messages and 0 bytes."""
        return 0, 0

    def similarity(self) -> Array:
        """Return 1 for each agent and itself, the only pairs of `listens`: (V,)."""
        return np.ones(len(self._rngs))
