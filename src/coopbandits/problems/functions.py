"""A user's own reward functions, as Python functions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from coopbandits.arrays import Array, IntArray, as_contexts, as_floats, short
from coopbandits.errors import ParameterError, ShapeError
from coopbandits.network import Network, as_network
from coopbandits.problems.noise import Noise, as_noise
from coopbandits.problems.problem import Simulated, check_truth, stacked
from coopbandits.similarity import Given


def functions(
    network: Network,
    functions: Sequence[Callable[[Array], object]],
    decision_sets: Callable[[int, int, np.random.Generator], object],
    *,
    noise: float | Noise = 0.1,
    similarity: Given | None = None,
) -> Simulated:
    """Play a user's own functions.

    Args:
        network: The agents.
        functions: f_v for each agent: takes contexts (K, d), returns expected rewards (K,).
        decision_sets: Draws one decision set: takes round t, agent v and a random generator,
            returns contexts (K, d). K may differ from call to call, d may not.
        noise: A number for Gaussian noise, or a law.
        similarity: The true K_z, if it is known, for comparisons.

    Example:
        >>> problem = cb.problems.functions(
        ...     cb.Network.path(2),
        ...     [lambda X: X[:, 0], lambda X: -X[:, 0]],
        ...     lambda t, v, rng: rng.uniform(size=(5, 1)),
        ... )
        >>> offer = problem.round(1, seed=0)
        >>> bool((offer.expected[offer.agents == 1] <= 0).all())
        True
    """
    as_network(network)
    check_truth(similarity)
    own = own_functions(network, functions)
    if not callable(decision_sets):
        raise ParameterError(
            "decision_sets must be a function of (round, agent, rng) that returns (K, d) "
            f"contexts, got {short(decision_sets)}"
        )
    return Simulated(
        name="functions",
        network=network,
        draw=Sampler(len(network), decision_sets),
        expected=Functions(own),
        noise=as_noise(noise),
        similarity=similarity,
    )


def own_functions(network: Network, functions: Any) -> list[Callable[[Array], object]]:
    """Check that there is one function for each agent."""
    # an array of no dimensions says that it can be iterated over, and cannot
    single = isinstance(functions, np.ndarray) and functions.ndim == 0
    listed = isinstance(functions, Iterable) and not isinstance(functions, type) and not single
    own = list(islice(functions, len(network) + 1)) if listed else []  # it may have no end
    if len(own) != len(network) or not all(map(callable, own)):
        count = "more" if len(own) > len(network) else len(own)
        raise ParameterError(
            f"expected one function for each of {len(network)} agents, got {count}: "
            f"{short(functions)}"
        )
    return own


@dataclass(frozen=True, eq=False)
class Sampler:
    """A user's decision sets, checked as they are drawn."""

    agents: int
    decision_sets: Callable[[int, int, np.random.Generator], object]

    def __call__(self, t: int, rng: np.random.Generator) -> tuple[IntArray, Array]:
        """Draw the decision sets of a round: (N,), (N, d)."""
        sets = [
            as_contexts(
                self.decision_sets(t, v, rng), f"the decision set of agent {v} in round {t}"
            )
            for v in range(self.agents)
        ]
        for v, offered in enumerate(sets):
            if offered.shape[1] != sets[0].shape[1]:
                raise ShapeError(
                    f"agent {v} is offered contexts of {offered.shape[1]} numbers in round {t}, "
                    f"agent 0 of {sets[0].shape[1]}; expected one dimension for all"
                )
        return stacked(sets)


@dataclass(frozen=True, eq=False)
class Functions:
    """A user's reward functions, checked as they are evaluated."""

    own: Sequence[Callable[[Array], object]]

    def __call__(self, agents: IntArray, contexts: Array) -> Array:
        """Evaluate f: (N,), (N, d) -> (N,)."""
        values = np.empty(len(agents))
        for v in np.unique(agents):
            rows = np.flatnonzero(agents == v)
            given = as_floats(self.own[v](contexts[rows]), f"the rewards of agent {v}'s function")
            if given.shape != (len(rows),):
                raise ShapeError(
                    f"agent {v}'s function returned shape {given.shape} for {len(rows)} contexts; "
                    f"expected ({len(rows)},)"
                )
            values[rows] = given
        return values
