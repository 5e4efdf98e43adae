"""What does an agent see of a round? Its contexts, padded to one shape, and which are offered."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Space

from coopbandits.arrays import Array
from coopbandits.errors import ParameterError, ShapeError
from coopbandits.network import Network
from coopbandits.problems.problem import Problem, Round


@dataclass(frozen=True, kw_only=True)
class Observations:
    """The shape of observations, the same for all agents and rounds.

    Attributes:
        agents: What the V agents are called.
        most: K, for how many actions there is room.
        dim: d.
        masked: Whether an action mask comes with the contexts.
    """

    agents: list[str]
    most: int
    dim: int
    masked: bool

    def space(self) -> Space[Any]:
        """Return a new space of one agent's observations."""
        contexts = Box(-np.inf, np.inf, (self.most, self.dim), np.float64)
        if not self.masked:
            return contexts
        return Dict({"observation": contexts, "action_mask": Box(0, 1, (self.most,), np.int8)})

    def state_space(self) -> Space[Any]:
        """Return a new space of `state`."""
        numbers = self.dim + 1 if self.masked else self.dim
        return Box(-np.inf, np.inf, (len(self.agents) * self.most * numbers,), np.float64)

    def of(self, offer: Round) -> list[Any]:
        """Return what each agent sees."""
        contexts, mask = self._padded(offer)
        if not self.masked:
            return list(contexts)
        return [
            {"observation": contexts[v], "action_mask": mask[v]} for v in range(len(self.agents))
        ]

    def state(self, offer: Round) -> Array:
        """Return what all see as one vector: contexts (V, K, d), then masks (V, K)."""
        contexts, mask = self._padded(offer)
        parts = (contexts, mask) if self.masked else (contexts,)
        return np.concatenate([part.ravel() for part in parts], dtype=np.float64)

    def check(self, t: int, offer: Round) -> Round:
        """Return round t, or refuse it if it does not fit."""
        found = len(offer.sizes), offer.contexts.shape[1]
        if found != (len(self.agents), self.dim):
            raise ShapeError(
                f"round {t} has contexts of {found[1]} numbers for {found[0]} agents; expected "
                f"{self.dim} numbers for {len(self.agents)} agents"
            )
        most, least = int(np.argmax(offer.sizes)), int(np.argmin(offer.sizes))
        if offer.sizes[most] > self.most:
            raise ParameterError(
                f"{self.agents[most]} is offered {offer.sizes[most]} actions in round {t}, but "
                f"observations have room for {self.most}; give most_actions= the most that any "
                "round may offer"
            )
        if not self.masked and offer.sizes[least] < self.most:
            raise ParameterError(
                f"{self.agents[least]} is offered {offer.sizes[least]} actions in round {t}, but "
                f"without an action mask all decision sets must have {self.most}; give "
                "action_mask=True"
            )
        return offer

    def _padded(self, offer: Round) -> tuple[Array, npt.NDArray[np.int8]]:
        """Lay decision sets side by side: contexts (V, K, d), zeros behind them; mask (V, K)."""
        places = offer.agents, np.arange(len(offer.agents)) - offer.starts[offer.agents]
        contexts = np.zeros((len(self.agents), self.most, self.dim))
        mask = np.zeros((len(self.agents), self.most), dtype=np.int8)
        contexts[places], mask[places] = offer.contexts, 1
        return contexts, mask


def called(network: Network) -> list[str]:
    """Return what an environment calls the agents: their names, else "agent_0" … ."""
    if network.is_named:
        return list(network.names)
    return [f"agent_{v}" for v in range(len(network))]


def largest_set(problem: Problem, rounds: int) -> int:
    """Return the size of the largest decision set that can be told in advance.

    Of all rounds that will be played where the problem has a horizon, else of round 1.
    """
    last = 1 if problem.horizon is None else rounds
    return max(int(problem.round(t, 0).sizes.max()) for t in range(1, last + 1))
