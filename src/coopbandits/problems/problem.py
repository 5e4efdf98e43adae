"""What do agents face? A problem offers each agent a decision set in each round.

A problem is any value with `network`, `horizon` (how many rounds it has, None for any number) and
`round(t, seed)`. One seed gives the same rounds to every policy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import LARGEST, Array, BoolArray, IntArray, check_size, short
from coopbandits.errors import NonFiniteError, ParameterError, ShapeError, SimilarityError
from coopbandits.kernels import Kernel
from coopbandits.network import Network
from coopbandits.problems.noise import Noise
from coopbandits.similarity import Given


@dataclass(frozen=True, eq=False)
class Round:
    """All decision sets of one round, agent after agent; N actions in all.

    Attributes:
        agents: (N,) whose action each row is, in order 0 … V−1; every agent has at least one.
        contexts: (N, d).
        expected: (N,) f_v of each action.
        rewards: (N,) what pulling each action brings, noise included.
        sizes: (V,) how many actions each agent has.
        starts: (V,) the first row of each agent.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.path(2), actions=3, dim=4)
        >>> offer = problem.round(1, seed=0)
        >>> offer.agents.tolist(), offer.contexts.shape
        ([0, 0, 0, 1, 1, 1], (6, 4))
    """

    agents: IntArray
    contexts: Array
    expected: Array
    rewards: Array
    sizes: IntArray = field(init=False)
    starts: IntArray = field(init=False)

    def __post_init__(self) -> None:
        for name in ("agents", "contexts", "expected", "rewards"):
            given, kinds = getattr(self, name), "iu" if name == "agents" else "biuf"
            masked = isinstance(given, np.ma.MaskedArray)
            if masked or not isinstance(given, np.ndarray) or given.dtype.kind not in kinds:
                raise ShapeError(
                    f"a round's {name} must be an array of {'whole ' if kinds == 'iu' else ''}"
                    f"numbers, got {short(given)}"
                )
        N = self.agents.size if self.agents.ndim == 1 else 0
        steps = np.diff(self.agents, prepend=-1) if N else np.empty(0)
        if N == 0 or not ((steps == 0) | (steps == 1)).all():
            raise ShapeError(
                "a round's agents must go up from 0 in steps of at most 1, every agent with at "
                f"least one action; got {short(self.agents)}"
            )
        if self.contexts.ndim != 2 or len(self.contexts) != N or self.contexts.shape[1] == 0:
            raise ShapeError(
                f"a round's contexts have shape {self.contexts.shape}; expected ({N}, d)"
            )
        for name in ("expected", "rewards"):
            if getattr(self, name).shape != (N,):
                raise ShapeError(
                    f"a round's {name} have shape {getattr(self, name).shape}; expected ({N},)"
                )
        for name in ("contexts", "expected", "rewards"):
            if not np.isfinite(getattr(self, name)).all():
                raise NonFiniteError(f"a round's {name} must be finite, got NaN or infinity")
            if float(np.abs(getattr(self, name)).max()) > LARGEST:
                raise ParameterError(f"a round's {name} must lie within ±{LARGEST:g}")
        object.__setattr__(self, "sizes", np.bincount(self.agents))
        object.__setattr__(self, "starts", np.cumsum(self.sizes) - self.sizes)

    def padded(self, agents: IntArray | slice) -> tuple[IntArray, BoolArray]:
        """Return the rows of B agents, padded with their last, and which are real: (B, K) each."""
        starts, sizes = self.starts[agents], self.sizes[agents]
        place = np.arange(int(sizes.max()))
        rows = starts[:, None] + np.minimum(place, sizes[:, None] - 1)
        return rows, place < sizes[:, None]

    def rows_of(self, agents: IntArray) -> IntArray:
        """Return the rows of some agents, one agent after the other."""
        sizes = self.sizes[agents]
        before = np.cumsum(sizes) - sizes
        return np.arange(int(sizes.sum())) + np.repeat(self.starts[agents] - before, sizes)


@runtime_checkable
class Problem(Protocol):
    """What agents face.

    Example:
        >>> isinstance(cb.problems.clustered_linear(cb.Network.path(2)), cb.problems.Problem)
        True
    """

    @property
    def network(self) -> Network:
        """The agents."""
        ...

    @property
    def horizon(self) -> int | None:
        """How many rounds there are; None for any number."""
        ...

    def round(self, t: int, seed: int) -> Round:
        """Return round t = 1, 2, …; the same for the same seed."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulated:
    """A problem drawn at random, with its reward functions known.

    Attributes:
        name: What tables and figures call it.
        network: The agents.
        draw: Draws the decision sets of round t: (t, rng) -> agents (N,), contexts (N, d).
        expected: f: agents (N,), contexts (N, d) -> (N,).
        noise: The law of rewards.
        similarity: The true K_z, where there is one.
        kernel: The true K_x, where there is one.
        norm: The norm B of F in the RKHS of K = K_z ⊙ K_x, where it is known.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.path(2), noise=0.2)
        >>> problem.noise, problem.kernel
        (Gaussian(scale=0.2), Linear(lengthscale=1.0))
    """

    name: str
    network: Network
    draw: Callable[[int, np.random.Generator], tuple[IntArray, Array]]
    expected: Callable[[IntArray, Array], Array]
    noise: Noise
    similarity: Given | None = None
    kernel: Kernel | None = None
    norm: float | None = None

    def __repr__(self) -> str:
        return f"Simulated({self.name}, {len(self.network)} agents, {self.noise})"

    @property
    def horizon(self) -> None:
        """None: rounds are drawn as they are needed."""

    def round(self, t: int, seed: int) -> Round:
        """Draw round t from the seed, whatever was drawn before."""
        contexts_rng, noise_rng = (
            np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t, stream)))
            for stream in (0, 1)
        )
        agents, contexts = self.draw(t, contexts_rng)
        expected = self.expected(agents, contexts)
        return Round(agents, contexts, expected, self.noise.rewards(expected, noise_rng))


def check_truth(similarity: object) -> None:
    """Check a true K_z that is known: one that is given, or None."""
    given = isinstance(similarity, Given) and not isinstance(similarity, type)
    if similarity is not None and not given:
        raise SimilarityError(
            f"similarity={short(similarity)} is no K_z that is known; expected a value such as "
            "coopbandits.similarity.Known(matrix=…) or Clusters(labels), or None"
        )


def structure_rng(seed: int) -> np.random.Generator:
    """The random numbers of a problem's fixed parts; apart from those of its rounds."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))


def check_sizes(*, agents: int, actions: int, dim: int, support: int = 1) -> None:
    """Refuse a problem whose rounds, or whose function's Gram matrix, do not fit into memory."""
    offered = agents * actions
    check_size(
        offered,
        dim,
        what=f"a round of {agents} agents with {actions} actions of {dim} numbers",
        advice="take fewer actions, a smaller dim or fewer agents",
    )
    check_size(
        max(offered, support, dim),
        support,
        what=f"a function of support={support} on {offered} offered actions of {dim} numbers",
        advice="take a smaller support, or fewer actions",
    )


def on_sphere(rng: np.random.Generator, count: int, dim: int) -> Array:
    """Draw `count` points uniformly on the unit sphere: (count, d); so K_x(x, x) ≤ 1."""
    points = rng.standard_normal((count, dim))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@dataclass(frozen=True)
class FreshContexts:
    """Offer every agent new contexts on the unit sphere in every round."""

    agents: int
    actions: int
    dim: int

    def __call__(self, t: int, rng: np.random.Generator) -> tuple[IntArray, Array]:
        """Draw the decision sets of a round: (N,), (N, d)."""
        agents = np.repeat(np.arange(self.agents), self.actions)
        return agents, on_sphere(rng, len(agents), self.dim)


def stacked(sets: Sequence[Array]) -> tuple[IntArray, Array]:
    """Lay the decision sets of agents 0 … V−1 under each other: (N,), (N, d)."""
    agents = np.repeat(np.arange(len(sets)), [len(offered) for offered in sets])
    return agents, np.concatenate(sets)
