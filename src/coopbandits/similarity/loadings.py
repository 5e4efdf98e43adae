r"""What form has a learnt K_z? UUᵀ + diag(δ): what agents share, and what each has for itself.

Any positive semidefinite K_z has it (δ = 0 if need be). Where the data leave K_z open there are
several, each with a probability.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.compositions import Composition


@dataclass(frozen=True, eq=False)
class Loadings:
    """K_z = UUᵀ + diag(δ) in each of B views, or several that it may be: H hypotheses in all.

    Attributes:
        U: (H, N, r).
        delta: (H, N).
        view: (H,) whose hypothesis each is, in order; unless given, each view has one.
        weight: (H,) how likely each is, relative to the others of its view.
        scale: (H, N) σ_v/σ_u: what rewards of each agent are multiplied by, so that their noise is
            that of the asking agent. K_z is that of functions in these units. Unless given, 1.
        state: (B, N, k) whole numbers that a learner keeps of each agent for its next estimate.

    Example:
        >>> loadings = cb.similarity.Loadings(np.ones((1, 2, 1)), np.full((1, 2), 0.5))
        >>> loadings.matrix.tolist()
        [[[1.5, 1.0], [1.0, 1.5]]]
    """

    U: Array
    delta: Array
    view: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    weight: Array = field(default_factory=lambda: np.empty(0))
    scale: Array = field(default_factory=lambda: np.empty((0, 0)))
    state: IntArray = field(default_factory=lambda: np.empty((0, 0, 0), dtype=np.int64))

    def __post_init__(self) -> None:
        if not len(self.view):
            object.__setattr__(self, "view", np.arange(len(self.U)))
            object.__setattr__(self, "weight", np.ones(len(self.U)))
        if not len(self.scale):
            object.__setattr__(self, "scale", np.ones(self.delta.shape))
        if not len(self.state) and len(self.view):
            B, N = int(self.view[-1]) + 1, self.delta.shape[1]
            object.__setattr__(self, "state", np.empty((B, N, 0), dtype=np.int64))

    @property
    def matrix(self) -> Array:
        """K_z under each hypothesis: (H, N, N)."""
        K_z = self.U @ self.U.transpose(0, 2, 1)
        index = np.arange(K_z.shape[1])
        K_z[:, index, index] += self.delta
        return K_z

    @property
    def expected(self) -> Array:
        """K_z in each view, the mean of what it may be, rewards as they are: (B, N, N)."""
        starts = np.searchsorted(self.view, np.arange(self.view[-1] + 1))
        matrix = self.unscaled().matrix
        return np.asarray(np.add.reduceat(self.weight[:, None, None] * matrix, starts))

    @classmethod
    def of(cls, K_z: Array) -> "Loadings":
        """Factor K_z of each view, negative eigenvalues set to 0: (B, N, N), N the rank."""
        values, vectors = np.linalg.eigh(K_z)
        return cls(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :], np.zeros(K_z.shape[:2]))

    @classmethod
    def gathered(
        cls, shape: tuple[int, int], parts: Iterable[tuple[IntArray, "Loadings"]]
    ) -> "Loadings":
        """Put the loadings of batches of views into their places; padding is on its own: (B, N)."""
        parts = list(parts)
        view = np.concatenate([rows[part.view] for rows, part in parts])
        U = np.zeros((len(view), shape[1], max(part.U.shape[2] for _, part in parts)))
        delta, scale = np.ones((len(view), shape[1])), np.ones((len(view), shape[1]))
        state = np.full((*shape, max(part.state.shape[2] for _, part in parts)), -1)
        start = 0
        for rows, part in parts:
            H, N, r = part.U.shape
            here = slice(start, start + H)
            U[here, :N, :r], delta[here, :N], scale[here, :N] = part.U, part.delta, part.scale
            if part.state.shape[2]:
                state[rows, :N] = part.state[: len(rows)]
            start += H
        weight = np.concatenate([part.weight for _, part in parts])
        order = np.argsort(view, kind="stable")
        return cls(U[order], delta[order], view[order], weight[order], scale[order], state)

    def take(self, index: IntArray | BoolArray) -> "Loadings":
        """Take some of the hypotheses."""
        return Loadings(
            self.U[index], self.delta[index], self.view[index], self.weight[index],
            self.scale[index], self.state,
        )  # fmt: skip

    def unscaled(self) -> "Loadings":
        """Take rewards as they are."""
        U, delta = self.U / self.scale[..., None], self.delta / self.scale**2
        return Loadings(U, delta, self.view, self.weight, np.ones(delta.shape), self.state)

    def leading(self) -> "Loadings":
        """Drop the parts that are rounding, of one view whose δ is 0."""
        size = (self.U**2).sum(axis=(0, 1))
        return Loadings(self.U[:, :, size > 1e-11 * max(size.max(), 1e-300)], self.delta)


def linked(loadings: Loadings, me: IntArray, composition: Composition) -> BoolArray:
    """Tell who is linked to the agent itself by a chain of shared loadings: (H, N).

    `me` is (H,) too. The others are strangers: whatever they sent cannot change the posterior.
    Under a composition that relates all agents, such as a sum, nobody is a stranger.
    """
    if composition.related(np.zeros((1, 1)))[0, 0]:
        return np.ones(loadings.delta.shape, dtype=np.bool_)
    shares = loadings.U != 0
    rows = np.arange(len(me))
    inside = np.zeros(shares.shape[:2], dtype=np.bool_)
    inside[rows, me] = True
    while True:
        touched = (inside[:, :, None] & shares).any(axis=1)
        wider = inside | (shares & touched[:, None, :]).any(axis=2)
        if (wider == inside).all():
            return inside
        inside = wider


def of_rank(K_z: Array, me: IntArray, rank: int) -> Array:
    """Keep the parts of K_z that matter most to the asking agent: (B, N, N) -> U (B, N, rank).

    The first part is the asking agent's own, so that what K_z says between it and all others stays
    exact; the rest are the principal parts of what is left among the others, weighed by how much
    they matter to it. UUᵀ ≤ K_z, and the diagonal's remainder is each agent's own.

    They are sought among what a few landmarks tell of all agents, a partial Cholesky factor.
    """
    B, N, _ = K_z.shape
    rows = np.arange(B)
    weight = np.abs(K_z[rows, me])
    factor = _landmarks(K_z, me, weight, min(N, 3 * rank))
    first, rest = factor[:, :, :1], factor[:, :, 1:]
    if rest.shape[2] <= rank - 1:
        return np.pad(factor, ((0, 0), (0, 0), (0, rank - factor.shape[2])))
    weighed = rest * weight[..., None]
    _, directions = np.linalg.eigh(np.swapaxes(weighed, 1, 2) @ weighed)
    return np.concatenate([first, rest @ directions[:, :, ::-1][:, :, : rank - 1]], axis=2)


def _landmarks(K_z: Array, me: IntArray, weight: Array, count: int) -> Array:
    """Factor K_z through some agents, the asking one first: (B, N, N) -> (B, N, count).

    The next landmark is the agent about which the asking one would learn most that the landmarks
    so far do not tell.
    """
    B, N, _ = K_z.shape
    rows = np.arange(B)
    U, left = np.zeros((B, N, count)), np.diagonal(K_z, axis1=1, axis2=2).copy()
    landmark = me
    for k in range(count):
        column = K_z[rows, :, landmark] - (U @ U[rows, landmark][..., None])[..., 0]
        pivot = left[rows, landmark][:, None]
        sound = pivot > 1e-9
        U[:, :, k] = np.where(sound, column / np.sqrt(np.where(sound, pivot, 1.0)), 0.0)
        left = np.maximum(left - U[:, :, k] ** 2, 0.0)
        worth = left * weight
        # rounding must not choose among equals
        landmark = (worth >= worth.max(axis=1, keepdims=True) - 1e-9).argmax(axis=1)
    return U
