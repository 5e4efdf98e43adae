"""A user's own recorded data: what was offered, and what each action brought."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coopbandits.arrays import Array, IntArray, as_contexts, as_floats, short
from coopbandits.errors import ShapeError
from coopbandits.network import Network, as_network
from coopbandits.problems.problem import Round, stacked

Nested = npt.NDArray[Any] | Sequence[Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Recorded:
    """A problem of recorded rounds. Made by `table`."""

    network: Network
    rounds: tuple[Round, ...]
    name: str = "table"

    @property
    def horizon(self) -> int:
        """How many rounds were recorded."""
        return len(self.rounds)

    def round(self, t: int, seed: int) -> Round:
        """Return recorded round t; the seed plays no part."""
        return self.rounds[t - 1]


def table(
    network: Network, contexts: Nested, rewards: Nested, expected: Nested | None = None
) -> Recorded:
    """Play recorded data.

    Args:
        network: The agents.
        contexts: (T, V, K, d), or nested lists [t][v] of (K, d) where sets differ in size.
        rewards: (T, V, K), or nested lists [t][v] of (K,): what pulling each action brings.
        expected: As rewards, their expectations: regret is measured against them; without them,
            against the rewards.
    """
    as_network(network)
    given_tables = {"contexts": contexts, "rewards": rewards, "expected": expected}
    for name, given in given_tables.items():
        if not hasattr(given, "__len__") and not (name == "expected" and given is None):
            raise ShapeError(f"{name} must be an array or nested lists, got {short(given)}")
    horizon = len(contexts)
    if horizon == 0:
        raise ShapeError("recorded contexts hold no round; expected (T, V, K, d) with T >= 1")
    for name, given in given_tables.items():
        if given is not None and len(given) != horizon:
            raise ShapeError(
                f"{name} hold {len(given)} rounds, contexts hold {horizon}; expected as many"
            )
    rounds: list[Round] = []
    for t in range(horizon):
        agents, X = stacked(_sets(network, contexts[t], t))
        sizes = np.bincount(agents)
        y = _values("rewards", rewards[t], sizes, t)
        f = y if expected is None else _values("expected", expected[t], sizes, t)
        if rounds and X.shape[1] != rounds[0].contexts.shape[1]:
            raise ShapeError(
                f"contexts have {X.shape[1]} numbers in round {t + 1}, "
                f"{rounds[0].contexts.shape[1]} in round 1; expected one dimension for all"
            )
        rounds.append(Round(agents, X, f, y))
    return Recorded(network, tuple(rounds))


def _sets(network: Network, row: Any, t: int) -> list[Array]:
    _check_agents("contexts", row, len(network), t)
    sets = [as_contexts(x, f"the decision set contexts[{t}][{v}]") for v, x in enumerate(row)]
    if len({offered.shape[1] for offered in sets}) > 1:
        raise ShapeError(f"the decision sets contexts[{t}] have contexts of different lengths")
    return sets


def _values(name: str, row: Any, sizes: IntArray, t: int) -> Array:
    _check_agents(name, row, len(sizes), t)
    parts = []
    for v, (given, size) in enumerate(zip(row, sizes, strict=True)):
        values = as_floats(given, f"{name}[{t}][{v}]")
        if values.shape != (size,):
            raise ShapeError(
                f"{name}[{t}][{v}] has shape {values.shape}; expected ({size},), one for each "
                "action"
            )
        parts.append(values)
    return np.concatenate(parts)


def _check_agents(name: str, row: Any, agents: int, t: int) -> None:
    if not hasattr(row, "__len__") or len(row) != agents:
        held = len(row) if hasattr(row, "__len__") else "no"
        raise ShapeError(
            f"{name}[{t}] holds {held} agents; expected {agents}, the agents of the network"
        )
