r"""What is a similarity? A K_z that is given, or one that is learnt from what arrives.

A given one has `matrix(network)`, or, for many agents, `blocks(network)` beside it. A learnt one
makes a learner, which does two things: it turns each observation into a *summary*, a row of p
numbers whose first is 1, and it turns the sums of these rows, one for each agent heard from, into
K_z. So whoever keeps one sum per agent can learn K_z: the simulator, an agent that gets messages,
an agent restored from bytes. Nothing but what has arrived is in the sums.

K_z is each agent's own view of the others, in the form of `loadings.py`. Where the data leave it
open, a learner says so: it returns several, each with a probability, and what an agent believes is
the mixture of what it would believe under each.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    as_choice,
    as_count,
    as_floats,
    as_positive,
    frozen,
    short,
)
from coopbandits.errors import ParameterError, SimilarityError
from coopbandits.features import as_basis
from coopbandits.gp.network_kernel import DenseKernel, NetworkKernel, dense
from coopbandits.kernels import Kernel
from coopbandits.network import Network, as_network
from coopbandits.similarity.chain_diagnostics import ChainDiagnostics
from coopbandits.similarity.loadings import Loadings

REFRESH = ("every round", "growing", "frozen")
_SMALLEST_SCALE = 1e-50
# Under "growing" K_z is estimated at every decision until an agent has heard so many observations
# from each it listens to, on average, and so many in all: these are the rounds in which most is
# learnt about K_z. A learnt similarity may ask for more.
EARLY = (12, 0)
# Views are worked on together that are at least this share as wide as the widest of them.
_ALIKE = 0.75


@runtime_checkable
class Given(Protocol):
    """A K_z that is known before the start.

    One that also has `blocks(network)`, which returns a `NetworkKernel`, is asked for that alone:
    then no array of V × V numbers is made.

    Example:
        >>> class Halves:
        ...     def matrix(self, network):
        ...         return 0.5 + 0.5 * np.eye(len(network))
        >>> isinstance(Halves(), cb.similarity.Given)
        True
    """

    def matrix(self, network: Network) -> Array:
        """Return K_z for the agents of a network: (V, V)."""
        ...


class ByBlocks(Protocol):
    """A given K_z whose matrix follows from its blocks."""

    def blocks(self, network: Network) -> NetworkKernel:
        """Return what evaluates K_z between some agents."""
        ...

    def matrix(self, network: Network) -> Array:
        """Return all of K_z: (V, V), read-only; up to 20,000 agents."""
        return frozen(dense(self.blocks(network)))


@runtime_checkable
class Learnt(Protocol):
    """A K_z that is learnt from what arrives.

    Example:
        >>> isinstance(cb.similarity.Evidence(), cb.similarity.Learnt)
        True
    """

    @property
    def refresh(self) -> str:
        """When K_z is estimated again: "every round", "growing" or "frozen"."""
        ...

    @property
    def growth(self) -> float:
        """Under "growing": later on, again once this many times as many observations are known."""
        ...

    @property
    def early(self) -> tuple[int, int]:
        """Under "growing": up to how many observations K_z is estimated at every decision.

        From each agent heard from, on average; and in all, if that is more.
        """
        ...

    def learner(self, kernel: Kernel, network: Network) -> "Learner":
        """Make what learns K_z, for agents of a network that use a kernel K_x."""
        ...


Similarity = Given | Learnt


@dataclass(frozen=True, eq=False)
class Views:
    """What B agents have heard, each from up to N agents.

    Many agents hear the same from one, so sums are kept once: what a learner works out for an agent
    by itself, it works out once for each row of `table`.

    Attributes:
        agents: (B, N) from whom.
        heard: (B, N) whether anything has been heard from them; False where a row is padded.
        me: (B,) the column of the agent itself, heard or not.
        table: (P, p) sums of what was heard from one agent; a row of 0 where nothing was.
        index: (B, N) which row of the table each is.
        known: (B,) how many observations there are, faded or not.
        before: (B,) how many there were at the last estimate.
        state: (B, N, k) what the learner kept of each agent at the last estimate, `Loadings.state`;
            k is 0 at first.

    Example:
        >>> views = cb.similarity.Views.apart(np.array([[0, 1]]), np.array([0]), np.ones((1, 2, 3)))
        >>> views.others.tolist()
        [[False, True]]
    """

    agents: IntArray
    heard: BoolArray
    me: IntArray
    table: Array
    index: IntArray
    known: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    before: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    state: IntArray = field(default_factory=lambda: np.empty((0, 0, 0), dtype=np.int64))

    def __post_init__(self) -> None:
        if not len(self.known):
            counts = np.where(self.heard, self.table[self.index, 0], 0.0).sum(axis=1)
            object.__setattr__(self, "known", np.clip(counts, 0.0, 2.0**53).astype(np.int64))
            object.__setattr__(self, "before", np.zeros(len(self.me), dtype=np.int64))
            object.__setattr__(self, "state", np.empty((*self.heard.shape, 0), dtype=np.int64))

    @classmethod
    def of(cls, agents: IntArray, me: IntArray, table: Array, index: IntArray) -> "Views":
        """Make views; an agent with a count of 0 has not been heard from."""
        used, places = np.unique(index, return_inverse=True)
        kept = table[used]
        heard = (kept[:, 0] > 0)[places.reshape(index.shape)]
        return cls(agents, np.asarray(heard), me, kept, places.reshape(index.shape))

    @classmethod
    def apart(cls, agents: IntArray, me: IntArray, sums: Array) -> "Views":
        """Make views of sums that nobody shares: (B, N), (B,), (B, N, p)."""
        index = np.arange(agents.size).reshape(agents.shape)
        return cls.of(agents, me, sums.reshape(-1, sums.shape[-1]), index)

    @property
    def summaries(self) -> Array:
        """(B, N, p) the sums of what was heard; 0 where nothing was."""
        return np.asarray(self.table[self.index])

    def batches(self, most: int) -> Iterator[tuple[IntArray, "Views"]]:
        """Cut the views into batches of up to so many agents, if a view has no more by itself.

        Views of about one width go together and lose the padding: in most networks a few agents
        hear from many, and many from a few. Each batch comes with its places among the views.
        """
        columns = np.arange(self.heard.shape[1])
        last = np.where(self.heard, columns, -1).max(axis=1, initial=-1)
        width = np.maximum(last, self.me) + 1
        order = np.argsort(-width, kind="stable")
        start = 0
        while start < len(order):
            widest = int(width[order[start]])
            alike = int((width[order[start:]] >= _ALIKE * widest).sum())
            rows = np.sort(order[start : start + min(alike, max(1, most // widest))])
            start += len(rows)
            yield (
                rows,
                Views(
                    self.agents[rows, :widest],
                    self.heard[rows, :widest],
                    self.me[rows],
                    self.table,
                    self.index[rows, :widest],
                    self.known[rows],
                    self.before[rows],
                    self.state[rows, :widest],
                ),
            )

    @property
    def others(self) -> BoolArray:
        """(B, N) those heard from, without the agent itself."""
        others = self.heard.copy()
        others[np.arange(len(self.me)), self.me] = False
        return others


@runtime_checkable
class Learner(Protocol):
    """Learns K_z; holds no state.

    Example:
        >>> similarity = cb.similarity.Coregionalised()
        >>> learner = similarity.learner(cb.kernels.Linear(), cb.Network.path(2))
        >>> isinstance(learner, cb.similarity.Learner), learner.attached(3)
        (True, 0)
    """

    def attached(self, dim: int) -> int:
        """How many numbers k go with a context of d numbers in a message."""
        ...

    def sampled(self, agents: IntArray, contexts: Array, rows: IntArray) -> Array:
        """What V agents attach to this round's messages: (V, k).

        Args:
            agents: (M,) to whom each context was offered.
            contexts: (M, d).
            rows: (V,) which row each agent chose.
        """
        ...

    def summaries(self, X: Array, attached: Array, y: Array) -> Array:
        """Summarise n observations: (n, d), (n, k), (n,) -> (n, p)."""
        ...

    def estimate(self, views: Views) -> Loadings:
        """Learn K_z from what was heard, in each view by itself."""
        ...


@runtime_checkable
class SamplesChains(Protocol):
    """An estimator of K_z by Gibbs chains, which can be asked what they find."""

    def diagnose(self, views: Views, sweeps: int) -> ChainDiagnostics:
        """Let the chains of a single view go on for so many sweeps, beside what is believed."""
        ...


def settle(similarity: Any, *, allowed: tuple[str, ...] = REFRESH[:2]) -> None:
    """Check what learnt similarities share: `features`, `refresh`, `growth`, and `noise` if any."""
    if getattr(similarity, "noise", None) is not None:
        noise = as_positive(similarity.noise, "noise")
        if noise < _SMALLEST_SCALE:  # its square must not vanish
            raise ParameterError(f"noise must be at least {_SMALLEST_SCALE:g}, got {noise}")
        object.__setattr__(similarity, "noise", noise)
    as_basis(similarity.features)
    refresh = as_choice(similarity.refresh, "refresh", allowed)
    object.__setattr__(similarity, "refresh", refresh)
    growth = as_positive(similarity.growth, "growth")
    if growth <= 1:
        raise ParameterError(f"growth must be above 1, got {growth}")
    object.__setattr__(similarity, "growth", growth)


def is_due(similarity: Learnt, known: IntArray, last: IntArray, sources: IntArray) -> BoolArray:
    """Tell for B agents whether K_z is to be estimated again: (B,).

    Args:
        similarity: Says when.
        known: (B,) how many observations are known.
        last: (B,) how many were at the last estimate.
        sources: (B,) from how many agents.
    """
    each, in_all = similarity.early
    early = known <= np.maximum(each * sources, in_all)
    if similarity.refresh == "every round":
        early = np.ones_like(early)
    return np.asarray((known > last) & (early | (known >= similarity.growth * last)))


def estimated(learner: Learner, views: Views) -> Loadings:
    """Let a learner estimate K_z; where numbers fail it, an agent is on its own.

    Peers may send any finite numbers, and must not be able to stop an agent.
    """
    B, N = views.heard.shape
    try:
        with np.errstate(all="ignore"):
            loadings = learner.estimate(views)
    except np.linalg.LinAlgError:
        if B == 1:
            return _alone(1, N, views.state)
        return Loadings.gathered(
            (B, N), ((rows, estimated(learner, view)) for rows, view in views.batches(1))
        )
    sound = np.isfinite(loadings.U.sum(axis=(1, 2)) + loadings.delta.sum(axis=1) + loadings.weight)
    sound &= np.isfinite(loadings.scale.sum(axis=1))
    sound &= loadings.weight > 0
    if sound.all():
        total = np.bincount(loadings.view, loadings.weight)[loadings.view]
        if (np.abs(total - 1.0) <= 1e-12).all():
            return loadings
        return replace(loadings, weight=loadings.weight / total)
    lost = ~np.logical_and.reduceat(sound, np.searchsorted(loadings.view, np.arange(B)))
    return Loadings.gathered(
        (B, N),
        (
            (np.arange(B), loadings.take(~lost[loadings.view])),
            (np.flatnonzero(lost), _alone(int(lost.sum()), N, views.state[lost])),
        ),
    )


def _alone(B: int, N: int, state: IntArray) -> Loadings:
    """Everyone on its own, in B views of N agents, with what was kept of them."""
    ones = np.ones((B, N))
    return Loadings(np.zeros((B, N, 1)), ones, np.arange(B), np.ones(B), ones, state)


def network_kernel(similarity: Any, network: Network) -> NetworkKernel:
    """Ask a similarity, perhaps a user's own, for its K_z of a network, and check it.

    Args:
        similarity: What was given as one.
        network: The agents.

    Example:
        >>> kernel = cb.similarity.network_kernel(cb.similarity.Same(), cb.Network.path(3))
        >>> kernel.block(np.array([0]), np.array([1, 2])).tolist()
        [[1.0, 1.0]]
    """
    if hasattr(similarity, "blocks") and not isinstance(similarity, type):
        kernel = similarity.blocks(as_network(network))
        if not isinstance(kernel, NetworkKernel) or len(kernel) != len(network):
            raise SimilarityError(
                f"the blocks of {short(similarity)} are {short(kernel)}; expected a NetworkKernel "
                f"of {len(network)} agents"
            )
        return kernel
    return DenseKernel(frozen(similarity_matrix(similarity, network)))


def similarity_matrix(similarity: Any, network: Network) -> Array:
    """Ask a similarity, perhaps a user's own, for all of its K_z, and check it: (V, V).

    Args:
        similarity: What was given as one.
        network: The agents.

    Example:
        >>> cb.similarity.similarity_matrix(cb.similarity.Alone(), cb.Network.path(2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    if not isinstance(similarity, Given) or isinstance(similarity, type):
        raise SimilarityError(
            f"{short(similarity)} is no similarity; expected a value such as those of "
            "coopbandits.similarity"
        )
    return as_similarity(similarity.matrix(as_network(network)), len(network))


def as_similarity(K_z: object, agents: int | None = None) -> Array:
    """Check that a K_z is a finite symmetric matrix, for as many agents as there are.

    Args:
        K_z: What was given as one.
        agents: V, if it is known.

    Example:
        >>> cb.similarity.as_similarity([[1, 0], [0, 1]], agents=2).dtype
        dtype('float64')
    """
    matrix = as_floats(K_z, "K_z")
    agents = None if agents is None else as_count(agents, "agents")
    expected = ("V", "V") if agents is None else (agents, agents)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or agents not in (None, len(matrix)):
        raise SimilarityError(
            f"K_z has shape {matrix.shape}; expected ({expected[0]}, {expected[1]}), a row an agent"
        )
    gap = np.abs(matrix - matrix.T)
    if gap.max(initial=0.0) > 1e-10 * np.abs(matrix).max(initial=0.0):
        v, w = np.unravel_index(int(gap.argmax()), gap.shape)
        raise SimilarityError(
            f"K_z is not symmetric: K_z[{v}, {w}] = {matrix[v, w]:.6g} but "
            f"K_z[{w}, {v}] = {matrix[w, v]:.6g}"
        )
    if matrix.size == 0:
        raise SimilarityError("K_z has shape (0, 0); expected a row an agent, at least one")
    return matrix
