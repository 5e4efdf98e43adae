"""What is an engine? It takes the decisions of all agents of a simulation."""

from typing import Protocol

from coopbandits.arrays import Array, IntArray
from coopbandits.problems.problem import Round


class Engine(Protocol):
    """Takes the decisions of all agents, round after round."""

    name: str

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
        """Return what each agent takes the others' news to be worth, [v, u]: (V, V)."""
        ...
