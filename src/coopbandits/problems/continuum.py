"""What do agents face on a continuum? A set to choose from, and a function that is known to us.

Regret is against the highest value of f_v on the agent's set, certified by `optimum.py`: against
the upper end of it, so that regret is never negative and at most the tolerance too large in each
round.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coopbandits.arrays import (
    Array,
    IntArray,
    Seed,
    as_count,
    as_floats,
    as_not_negative,
    as_positive,
    as_seed,
    short,
)
from coopbandits.decision_sets import DecisionSet
from coopbandits.decision_sets.decision_set import as_decision_set
from coopbandits.errors import ParameterError, ShapeError
from coopbandits.gp.compositions import Composition, JointKernel, composition
from coopbandits.kernels import RBF, Kernel, as_kernel
from coopbandits.network import Network, as_network
from coopbandits.problems.functions import Functions, own_functions
from coopbandits.problems.noise import Noise, as_noise
from coopbandits.problems.optimum import Optimum, certified
from coopbandits.problems.problem import check_sizes, check_truth, on_sphere, structure_rng
from coopbandits.problems.rkhs import Function
from coopbandits.similarity import Given, Known, network_kernel

# One set for all agents, one for each, or a function of (round, agent, rng).
Sets = DecisionSet | Sequence[DecisionSet] | Callable[[int, int, np.random.Generator], DecisionSet]


# A highest value that a user rounded to so many digits is taken as it is.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class ContinuumRound:
    """All decision sets of one round.

    Attributes:
        sets: Of agents 0 … V−1.
        best: (V,) the highest expected reward on each, or a little more; never less.
        expected: f: agents (N,), contexts (N, d) -> (N,).
        noise: The law of rewards.
        key: What the round's noise is drawn from: seed and round.

    Example:
        >>> problem = cb.problems.continuum(cb.Network.path(2), cb.Box([0.0], [1.0]), support=5)
        >>> len(problem.offer(1, seed=0).sets)
        2
    """

    sets: tuple[DecisionSet, ...]
    best: Array
    expected: Callable[[IntArray, Array], Array]
    noise: Noise
    key: tuple[int, int]

    @property
    def dim(self) -> int:
        """How many numbers a context has."""
        return self.sets[0].dim

    def pull(self, agent: int, context: Array) -> tuple[float, float]:
        """Return the expectation at a context and the reward of pulling it in this round.

        The noise is the agent's own of this round, whatever it pulls: two policies share it.
        """
        seed, t = self.key
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t, 1, agent)))
        expected = self.expected(np.array([agent]), context[None, :])
        best = float(self.best[agent])
        if expected[0] > best + _ROUNDING * max(1.0, abs(best)):
            raise ParameterError(
                f"agent {agent}'s function is {expected[0]:.6g} at {short(context.tolist())}, "
                f"above its highest value {best:.6g}; give best= the highest value of each "
                "function on its set, or a larger lipschitz="
            )
        return float(expected[0]), float(self.noise.rewards(expected, rng)[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class Continuum:
    """A problem on continua. Made by `continuum` and `continuum_functions`.

    Attributes:
        name: What tables and figures call it.
        network: The agents.
        sets: What each agent may choose from: one set for each agent, or a function of (round,
            agent, rng).
        expected: f: agents (N,), contexts (N, d) -> (N,).
        best: Finds the maximum of an agent's function on a set.
        noise: The law of rewards.
        similarity: The true K_z, where there is one.
        kernel: The true K_x, where there is one.
        norm: The norm B of F in the RKHS of K, where it is known.
        dim: How many numbers a context has, where that is settled before sets are drawn.

    Example:
        >>> problem = cb.problems.continuum(cb.Network.path(2), cb.Box([0.0], [1.0]), support=5)
        >>> problem.kernel
        RBF(lengthscale=1.0)
    """

    name: str
    network: Network
    sets: Sequence[DecisionSet] | Callable[[int, int, np.random.Generator], DecisionSet]
    expected: Callable[[IntArray, Array], Array]
    best: Callable[[int, DecisionSet], Optimum]
    noise: Noise
    similarity: Given | None = None
    kernel: Kernel | None = None
    norm: float | None = None
    dim: int | None = None
    _found: dict[tuple[int, DecisionSet], Optimum] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"Continuum({self.name}, {len(self.network)} agents, {self.noise})"

    @property
    def horizon(self) -> None:
        """None: rounds are drawn as they are needed."""

    def offer(self, t: int, seed: int) -> ContinuumRound:
        """Return round t = 1, 2, …; the same for the same seed."""
        agents = range(len(self.network))
        if callable(self.sets):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t, 0)))
            sets = tuple(as_decision_set(self.sets(t, v, rng)) for v in agents)
            dim = sets[0].dim if self.dim is None else self.dim
            for v, own in enumerate(sets):
                if own.dim != dim:
                    raise ShapeError(
                        f"the decision set of agent {v} in round {t} has {own.dim} numbers; "
                        f"expected {dim}, as of all others"
                    )
        else:
            sets = tuple(self.sets)
        best = np.array([self.optimum(v, own).upper for v, own in enumerate(sets)])
        return ContinuumRound(sets, best, self.expected, self.noise, (seed, t))

    def optimum(self, agent: int, decision_set: DecisionSet) -> Optimum:
        """Return the maximum of an agent's function on a set, found once."""
        key = agent, decision_set
        if key not in self._found:
            self._found[key] = self.best(agent, decision_set)
        return self._found[key]


def continuum(
    network: Network,
    decision_set: Sets,
    *,
    kernel: Kernel | None = None,
    similarity: Given | None = None,
    noise: float | Noise = 0.1,
    norm: float = 1.0,
    support: int = 100,
    compose: str | Composition = "hadamard",
    tolerance: float = 1e-6,
    seed: Seed = 0,
) -> Continuum:
    r"""f_v(x) = F(x, z_v) on a continuum, F = Σ a_i K(·, x̃_i), scaled to norm B = √(aᵀKa).

    The paper's main setting. `similarity=Same()` is the fully cooperative one; `Clusters(labels)`
    with `kernel=Linear()` is its setup 1.

    Args:
        network: The agents.
        decision_set: A `Box` or `Polytope` for all agents, one for each, or a function of (round,
            agent, rng) that returns one; then every set that is drawn costs its own certificate.
        kernel: K_x; RBF(1.0) if not given.
        similarity: K_z; if not given, an RBF(1.0) kernel on network contexts z_v drawn uniformly
            on the unit sphere of d dimensions.
        noise: A number for Gaussian noise, or a law.
        norm: B.
        support: How many augmented contexts x̃_i F is made of; their x are drawn from the set.
        compose: How K_z and K_x make K.
        tolerance: By how much regret may be too large in a round, in parts of B.
        seed: Of F and the z_v. (Noise comes from the seed of `play`.)

    Example:
        >>> box = cb.Box([0.0], [1.0])
        >>> problem = cb.problems.continuum(cb.Network.path(2), box, support=5)
        >>> run = cb.play(problem, cb.KernelUCB(cb.kernels.RBF()), rounds=2)
        >>> run.contexts.shape, bool((run.regret >= 0).all())
        ((2, 2, 1), True)
    """
    as_network(network)
    rng, V = structure_rng(as_seed(seed)), len(network)
    sets = _sets(decision_set, V)
    first = as_decision_set(sets(1, 0, rng)) if callable(sets) else sets[0]
    count = as_count(support, "support")
    check_sizes(agents=V, actions=1, dim=first.dim, support=count)
    K_x = RBF() if kernel is None else kernel
    if similarity is None:
        similarity = Known(contexts=on_sphere(rng, V, first.dim), kernel=RBF())
    joint = JointKernel(as_kernel(K_x), network_kernel(similarity, network), composition(compose))
    function = Function.draw(
        joint,
        rng.integers(V, size=count),
        first.sample(rng, count),
        as_not_negative(norm, "norm"),
        rng,
    )
    gap = as_positive(tolerance, "tolerance") * max(function.norm, 1e-300)
    return Continuum(
        name="continuum",
        network=network,
        sets=sets,
        expected=function,
        best=Certified(function, gap),
        noise=as_noise(noise),
        similarity=similarity,
        kernel=K_x,
        norm=function.norm,
        dim=first.dim,
    )


@dataclass(frozen=True, eq=False)
class Certified:
    """Finds the maxima of an RKHS function's parts; agents with the same part share it."""

    function: Function
    tolerance: float
    _found: dict[tuple[bytes, float, DecisionSet], Optimum] = field(default_factory=dict)

    def __call__(self, agent: int, decision_set: DecisionSet) -> Optimum:
        """Return the maximum of an agent's function on a set."""
        part = self.function.of_agent(agent)
        key = part.weights.tobytes(), part.constant, decision_set
        if key not in self._found:
            self._found[key] = part.optimum(decision_set, self.tolerance)
        return self._found[key]


def continuum_functions(
    network: Network,
    functions: Sequence[Callable[[Array], object]],
    decision_set: Sets,
    *,
    best: object = None,
    lipschitz: float | None = None,
    noise: float | Noise = 0.1,
    similarity: Given | None = None,
    tolerance: float = 1e-3,
) -> Continuum:
    """Play a user's own functions on a continuum.

    Args:
        network: The agents.
        functions: f_v for each agent: takes contexts (N, d), returns expected rewards (N,).
        decision_set: As in `continuum`.
        best: (V,) the highest value of each function on its set, where it is known and the sets
            stay the same.
        lipschitz: L with |f(x) − f(x')| ≤ L·|x − x'| on the whole box around a set; the highest
            values are then certified. Cheap in 1 and 2 dimensions.
        noise: A number for Gaussian noise, or a law.
        similarity: The true K_z, if it is known, for comparisons.
        tolerance: With `lipschitz`, by how much regret may be too large in a round, in parts of
            L times the set's largest side.

    Example:
        >>> problem = cb.problems.continuum_functions(
        ...     cb.Network.path(2), [lambda X: X[:, 0]] * 2, cb.Box([0.0], [1.0]), best=[1.0, 1.0]
        ... )
        >>> problem.offer(1, seed=0).best.tolist()
        [1.0, 1.0]
    """
    as_network(network)
    check_truth(similarity)
    own = Functions(own_functions(network, functions))
    sets = _sets(decision_set, len(network))
    found: KnownBest | Lipschitz
    if best is not None and lipschitz is None:
        values = as_floats(best, "best")
        if values.shape != (len(network),):
            raise ShapeError(
                f"best has shape {values.shape}; expected ({len(network)},), one for each agent"
            )
        found = KnownBest(values)
    elif best is None and lipschitz is not None:
        slope = as_positive(lipschitz, "lipschitz")
        found = Lipschitz(own, slope, as_positive(tolerance, "tolerance"))
    else:
        raise ParameterError(
            "regret needs the highest value of each function: give either best=, (V,) of them, or "
            "lipschitz=, by which they can be certified"
        )
    return Continuum(
        name="continuum functions",
        network=network,
        sets=sets,
        expected=own,
        best=found,
        noise=as_noise(noise),
        similarity=similarity,
    )


@dataclass(frozen=True, eq=False)
class KnownBest:
    """Highest values that a user knows."""

    values: Array

    def __call__(self, agent: int, decision_set: DecisionSet) -> Optimum:
        """Return the maximum of an agent's function."""
        value = float(self.values[agent])
        return Optimum(np.full(decision_set.dim, np.nan), value, value, 0)


@dataclass(frozen=True, eq=False)
class Lipschitz:
    """Finds the maxima of functions that change by at most L per unit of distance."""

    functions: Functions
    slope: float
    tolerance: float

    def __call__(self, agent: int, decision_set: DecisionSet) -> Optimum:
        """Return the maximum of an agent's function on a set."""

        def values(X: Array) -> Array:
            return self.functions(np.full(len(X), agent), X)

        def function(X: Array) -> tuple[Array, Array]:
            # differences that stay within the set's box
            size = decision_set.high - decision_set.low
            step = 1e-6 * np.where(X + 1e-6 * size <= decision_set.high, size, -size)
            at = values(X)
            columns = []
            for j in range(decision_set.dim):
                moved = X.copy()
                moved[:, j] += step[:, j]
                gap = np.where(step[:, j] != 0, step[:, j], 1.0)
                columns.append((values(moved) - at) / gap)
            return at, np.column_stack(columns)

        def bounds(C: Array, H: Array) -> tuple[Array, Array, Array]:
            return values(C), np.zeros_like(C), self.slope * np.linalg.norm(H, axis=1)

        side = float((decision_set.high - decision_set.low).max())
        gap = self.tolerance * self.slope * max(side, 1e-300)
        return certified(decision_set, function, bounds, tolerance=gap)


def _sets(given: Any, agents: int) -> Any:
    """Settle what agents choose from: a tuple of sets, or a function that draws them."""
    if callable(given) and not isinstance(given, type):
        return given
    if isinstance(given, Sequence):
        sets = tuple(as_decision_set(each) for each in given)
        if len(sets) != agents:
            raise ShapeError(
                f"got {len(sets)} decision sets; expected {agents}, one for each agent"
            )
    else:
        sets = (as_decision_set(given),) * agents
    if len({each.dim for each in sets}) > 1:
        raise ShapeError(
            f"the agents' decision sets have {sorted({each.dim for each in sets})} numbers; "
            "expected one dimension for all"
        )
    return sets
