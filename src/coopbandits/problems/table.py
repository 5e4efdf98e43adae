"""A user's own recorded data: what was offered, and what each action brought."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coopbandits.arrays import (
    Array,
    IntArray,
    as_contexts,
    as_floats,
    column_names,
    is_listing,
    short,
)
from coopbandits.errors import ShapeError
from coopbandits.network import Network, as_network
from coopbandits.problems.problem import Round, check_truth, stacked
from coopbandits.similarity import Given

Nested = npt.NDArray[Any] | Sequence[Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Recorded:
    """A problem of recorded rounds. Made by `table`.

    Args:
        network: The agents.
        rounds: What was offered in each, and what it brought.
        similarity: The true K_z, if it is known.
        name: What tables and figures call it.

    Example:
        >>> contexts, rewards = np.ones((5, 2, 3, 4)), np.zeros((5, 2, 3))
        >>> cb.problems.table(cb.Network.path(2), contexts, rewards).horizon
        5
    """

    network: Network
    rounds: tuple[Round, ...]
    similarity: Given | None = None
    name: str = "table"

    def __repr__(self) -> str:
        sizes = np.concatenate([offer.sizes for offer in self.rounds])
        return (
            f"Recorded({len(self.network)} agents, {self.horizon} rounds, {sizes.min()} … "
            f"{sizes.max()} actions of {self.rounds[0].contexts.shape[1]} numbers)"
        )

    @property
    def horizon(self) -> int:
        """How many rounds were recorded."""
        return len(self.rounds)

    def round(self, t: int, seed: int) -> Round:
        """Return recorded round t; the seed plays no part."""
        return self.rounds[t - 1]


def table(
    network: Network,
    contexts: Nested,
    rewards: Nested,
    expected: Nested | None = None,
    *,
    similarity: Given | None = None,
) -> Recorded:
    """Play recorded data.

    Args:
        network: The agents.
        contexts: (T, V, K, d), or nested lists `[t][v]` of (K, d) where sets differ in size.
        rewards: (T, V, K), or nested lists `[t][v]` of (K,): what each offered action brings, also
            those that were not taken. Logs of the taken actions alone are for `coopbandits.lab`
            (docs/logs.md).
        expected: As rewards, their expectations: regret is measured against them. Without them it
            is measured against the rewards, and includes noise that no policy can foresee.
        similarity: The true K_z, if it is known, for comparisons.

    Example:
        >>> contexts, rewards = np.ones((5, 2, 3, 4)), np.zeros((5, 2, 3))
        >>> problem = cb.problems.table(cb.Network.path(2), contexts, rewards)
        >>> cb.play(problem, cb.LinUCB(), rounds=5).regret.sum().item()
        0.0
    """
    as_network(network)
    check_truth(similarity)
    given_tables = {"contexts": contexts, "rewards": rewards, "expected": expected}
    for name, given in given_tables.items():
        if not is_listing(given) and not (name == "expected" and given is None):
            raise ShapeError(f"{name} must be an array or nested lists, got {short(given)}")
        if column_names(given) is not None:
            inner = "(T, V, K, d)" if name == "contexts" else "(T, V, K)"
            raise ShapeError(
                f"{name} is a table of rows and columns; expected an array {inner}, or nested "
                "lists [t][v] of what agent v was offered in round t"
            )
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
    return Recorded(network, tuple(rounds), similarity)


def _sets(network: Network, row: Any, t: int) -> list[Array]:
    _check_agents("contexts", row, len(network), t)
    sets = [as_contexts(x, f"the decision set contexts[{t}][{v}]") for v, x in enumerate(row)]
    for v, offered in enumerate(sets):
        if offered.shape[1] != sets[0].shape[1]:
            raise ShapeError(
                f"contexts[{t}][{v}] has contexts of {offered.shape[1]} numbers, contexts[{t}][0] "
                f"of {sets[0].shape[1]}; expected one dimension for all"
            )
    return sets


def _values(name: str, row: Any, sizes: IntArray, t: int) -> Array:
    _check_agents(name, row, len(sizes), t)
    parts = []
    for v, (given, size) in enumerate(zip(row, sizes, strict=True)):
        values = as_floats(given, f"{name}[{t}][{v}], of every offered action,")
        if values.shape != (size,):
            raise ShapeError(
                f"{name}[{t}][{v}] has shape {values.shape}; expected ({size},), one for each "
                "action"
            )
        parts.append(values)
    return np.concatenate(parts)


def _check_agents(name: str, row: Any, agents: int, t: int) -> None:
    if not is_listing(row) or len(row) != agents:
        held = len(row) if is_listing(row) else "no"
        raise ShapeError(
            f"{name}[{t}] holds {held} agents; expected {agents}, the agents of the network"
        )
