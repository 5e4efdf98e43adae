"""What is an engine? It takes the decisions of all agents of a simulation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np

from coopbandits.act import agent_rng
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.network import Network, SparseRows
from coopbandits.problems.problem import Round
from coopbandits.similarity.chain_diagnostics import ChainDiagnostics


class Engine(Protocol):
    """Takes the decisions of all agents, round after round."""

    @property
    def name(self) -> str:
        """What a run's record calls it."""
        ...

    @property
    def listens(self) -> SparseRows | BoolArray:
        """Whom each agent hears of: sparse rows, or [v, u] of an array (V, V)."""
        ...

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        ...

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes that crossed all edges in round t."""
        ...

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        ...

    def similarity(self) -> Array:
        """Return what agents take others' news to be worth.

        For each pair of `listens`, (n,), where these are sparse rows; else [v, u] of (V, V).
        """
        ...


@runtime_checkable
class KnowsPropensities(Protocol):
    """An engine that also knows how likely its agents' last choices were."""

    @property
    def propensities(self) -> Array:
        """(V,) of the last round; NaN where it is not known, or the agent was away."""
        ...


# (agent, sweeps) -> what its chains find
AskChains = Callable[[int, int], ChainDiagnostics]


@runtime_checkable
class KnowsChains(Protocol):
    """An engine whose agents may keep Gibbs chains."""

    def chains(self) -> AskChains | None:
        """Return what answers for the agents' Gibbs chains from now on, None without any."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulation:
    """What an algorithm is told before the first round.

    Attributes:
        network: The agents.
        contexts: (M, d) the first round's.
        rounds: T.
        seed: Of the agents' own choices.
        memory_limit: In bytes; what needs more is refused.
    """

    network: Network
    contexts: Array
    rounds: int
    seed: int
    memory_limit: float = 8e9

    @property
    def agents(self) -> int:
        """V."""
        return len(self.network)

    @property
    def dim(self) -> int:
        """The numbers d of a context."""
        return self.contexts.shape[1]

    def rngs(self) -> list[np.random.Generator]:
        """Return the random numbers of each agent, from their start."""
        return [agent_rng(self.seed, v) for v in range(self.agents)]


@runtime_checkable
class Algorithm(Protocol):
    """How all agents of a simulation decide, where that is no row of four answers."""

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        ...

    def named(self, name: str) -> Self:
        """Return the same algorithm under another name."""
        ...

    def player(self, simulation: Simulation) -> Engine:
        """Make what takes the decisions of a simulation's agents."""
        ...
