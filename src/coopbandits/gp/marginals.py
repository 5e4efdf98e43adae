r"""Marginal posteriors: what do everyone's sufficient statistics say about one agent alone?

As in `gp/weights.py`, agents' weights are θ_u = Σ_k U_uk g_k + √δ_u h_u. Here the parts are rotated
so that the asking agent's own function is the last of them, θ_v = a·g_r. The last block of the
Cholesky factor of A is then that of g_r alone: nothing else needs to be solved for.

Others' own parts are integrated out of their sums, which takes as long as all the rest if each view
does it for itself. Here it is done once for each agent and each of a few levels of δ, and a view
takes the nearest: its K_z differs from what it was in others' diagonal, by at most a quarter of δ.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.gp.rolling_statistics import RollingStatistics
from coopbandits.gp.statistics import BATCH, CORNER, Statistics, half, pairs

# Neighbouring levels of δ differ by this factor; below the last one δ counts as 0.
_STEP = 1.6
_LEVELS = 21
_INDEFINITE = "sums of features are not positive semidefinite: the ridge is too small for them"


@dataclass(frozen=True, eq=False)
class Rotated:
    """Views in which the asking agent's function is the last part, a times.

    Attributes:
        U: (B, N, r).
        a: (B,).
        delta: (B, N) others' δ; 0 for the agent itself.
        level: (B, N) which level that is rounded to.
        scale: (B, N) what rewards of each agent are multiplied by.
    """

    U: Array
    a: Array
    delta: Array
    level: IntArray
    scale: Array

    def part(self, index: IntArray) -> "Rotated":
        """Take some of the views."""
        return Rotated(
            self.U[index], self.a[index], self.delta[index], self.level[index], self.scale[index]
        )


def turned(U: Array, delta: Array, me: IntArray) -> tuple[Array, Array]:
    """Rotate the parts of B views: U (B, N, r), δ (B, N), me (B,) -> (B, N, ·), a (B,).

    The asking agent's loadings become (0, …, 0, a), with what it has for itself among them.
    """
    B, N, _ = U.shape
    rows = np.arange(B)
    own = np.sqrt(delta[rows, me])
    if own.any() or not U.shape[2]:  # what the agent has for itself is a part like any other
        U = np.concatenate([U, np.zeros((B, N, 1))], axis=2)
        U[rows, me, -1] = own
    mine = U[rows, me]
    a = np.linalg.norm(mine, axis=1)
    # a reflection takes the agent's loadings to (0, …, 0, −sign·a), away from where they are
    sign = np.where(mine[:, -1] >= 0, 1.0, -1.0)
    normal = mine.copy()
    normal[:, -1] += sign * a
    factor = 2.0 / np.maximum((normal**2).sum(axis=1), 1e-300)
    along = factor[:, None] * (U @ normal[:, :, None])[..., 0]
    U = (along[..., None] * normal[:, None, :] - U) * sign[:, None, None]
    U[rows, me] = 0.0  # exactly, not to rounding
    U[rows, me, -1] = a
    return U, a


class Marginals:
    """Posteriors of views' own functions, from sums."""

    def __init__(
        self, sums: RollingStatistics, agents: int, ridge: float, *, rounded: bool = True
    ) -> None:
        """Make room; with `rounded=False` δ keeps its value, whatever that takes."""
        self._sums, self._ridge, self._rounded, self._agents = sums, ridge, rounded, agents
        m = sums.m
        i, j, self._cell = half(m)
        self._half, self._diagonal = i * m + j, np.flatnonzero(i == j)
        self.levels: Array = np.empty(0)
        self._table, self._made = np.empty(0), np.empty(0, dtype=np.int64)
        if rounded:
            # after each of the last rounds, of each agent and level: n, log det, b̃, half of S̃
            shape = (sums.depth, agents, _LEVELS)
            self._table = np.zeros((*shape, 2 + m + len(i)))
            self._made = np.zeros(shape, dtype=np.int64)  # after which round, 0 for none
            self.reach(1.0)

    @staticmethod
    def bytes(depth: int, agents: int, m: int, *, rounded: bool) -> float:
        """How much memory the levels take, with a batch of views."""
        levels = _LEVELS if rounded else 0
        return 8.0 * depth * agents * levels * (3 + m + m * (m + 1) // 2) + 8.0 * BATCH

    def reach(self, largest: float) -> None:
        """Let the levels reach up to the largest δ; what was made at others is forgotten."""
        if self._rounded and largest > self.levels[-1:].sum():
            self.levels = np.power(_STEP, np.arange(1.0 - _LEVELS, 1.0)) * largest
            self.levels[0] = 0.0
            self._made[:] = 0

    def rotated(self, U: Array, delta: Array, me: IntArray, scale: Array) -> Rotated:
        """Lay out B views, others' δ rounded: U (B, N, r), δ (B, N), me (B,), scale (B, N)."""
        others = delta.copy()
        others[np.arange(len(me)), me] = 0.0
        level = np.zeros(others.shape, dtype=np.int64)
        if self._rounded:
            steps = np.log(np.maximum(others / self.levels[-1], 1e-300)) / np.log(_STEP)
            level = np.clip(np.rint(steps) + _LEVELS - 1, 0, _LEVELS - 1).astype(np.int64)
        return Rotated(*turned(U, delta, me), others, level, scale)

    def of(
        self, after: IntArray, agents: IntArray, views: Rotated
    ) -> tuple[Array, Array, Array, IntArray]:
        """Return θ_v's mean (B, m), covariance (B, m, m), log det(I + K/λ) (B,) and count (B,).

        Args:
            after: (B, N) the last round of each agent that has arrived; 0 for none.
            agents: (B, N).
            views: (B, N, …).
        """
        (B, N), m = agents.shape, self._sums.m
        if self._rounded:
            self._make(after, agents, views.level)
        mean, covariance = np.empty((B, m)), np.empty((B, m, m))
        logdet, count = np.empty(B), np.empty(B, dtype=np.int64)
        size = max(1, int(BATCH // (N * (2 + m + len(self._half)))))
        for start in range(0, B, size):
            some = np.arange(start, min(start + size, B))
            U, known = views.U[some], (after[some] > 0)[..., None]
            heard = self._heard(after[some], agents[some], views.part(some))
            whole = (heard[..., :2] * known).sum(axis=1)
            count[some], logdet[some] = whole[:, 0], whole[:, 1]
            blocks = np.swapaxes(pairs(U) * known, 1, 2) @ heard[..., 2 + m :]
            c = np.swapaxes(U * views.scale[some][..., None] * known, 1, 2) @ heard[..., 2 : 2 + m]
            for view, index in enumerate(some):
                g, root, gained = self._solved(blocks[view], c[view])
                mean[index] = views.a[index] * g
                covariance[index] = (self._ridge * views.a[index] ** 2) * (root @ root.T)
                logdet[index] += gained
        return mean, covariance, np.maximum(logdet, 0.0), count

    def _heard(self, after: IntArray, agents: IntArray, views: Rotated) -> Array:
        """Return n, log det, b̃ and half of S̃ of each agent of some views: (b, N, ·)."""
        if self._rounded:
            return self._table[after % self._sums.depth, agents, views.level]
        statistics = self._sums.statistics(after, agents, spectrum=False)
        shared, logdet = statistics.shared(views.delta / self._ridge)
        facts = [statistics.n[..., None], logdet[..., None], shared.b, shared.packed]
        return np.concatenate(facts, axis=-1)

    def _solved(self, blocks: Array, c: Array) -> tuple[Array, Array, float]:
        """Return the last part's mean (m,), a root of its covariance/λ (m, m) and log det(A/λ).

        From halves of the blocks of A − λI, (r(r + 1)/2, m(m + 1)/2), and c (r, m).
        """
        from scipy.linalg.lapack import dpotrf, dtrtri  # noqa: PLC0415 (heavy)

        r, m = c.shape
        D = r * m
        # column-major, lower half, with c as a last row: its own diagonal changes nothing
        A = np.empty((D + 1, D + 1), order="F")
        pair = half(r)[2]
        for k in range(r):
            for j in range(k + 1):
                A[k * m : (k + 1) * m, j * m : (j + 1) * m] = blocks[pair[j, k]][self._cell]
        A[D, :D] = c.reshape(-1)
        A[D, D] = CORNER
        A[np.arange(D), np.arange(D)] += self._ridge
        L, info = dpotrf(A, lower=1, clean=0, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(_INDEFINITE)
        gained = 2 * np.log(np.diagonal(L)[:D]).sum() - D * np.log(self._ridge)
        inverse, _ = dtrtri(L[D - m : D, D - m : D], lower=1)
        root = np.tril(inverse).T
        return root @ L[D, D - m : D], root, float(gained)

    def _make(self, after: IntArray, agents: IntArray, level: IntArray) -> None:
        """Work out those sums that are asked for and not there yet."""
        depth = self._sums.depth
        missing = (after > 0) & (self._made[after % depth, agents, level] != after)
        for round_ in np.unique(after[missing]):
            here = missing & (after == round_)
            asked = np.zeros(self._made.shape[1:], dtype=np.bool_)
            asked[agents[here], level[here]] = True
            for agent, at in np.argwhere(asked):
                self._integrate(int(round_), agent, at)
            self._made[round_ % depth][asked] = round_

    def _integrate(self, round_: int, agent: int, level: int) -> None:
        """Integrate an agent's own part out of its sums after a round."""
        from scipy.linalg.blas import dsymv  # noqa: PLC0415 (heavy)
        from scipy.linalg.lapack import dpotrf, dpotri  # noqa: PLC0415

        m, c = self._sums.m, self.levels[level] / self._ridge
        row = self._table[round_ % self._sums.depth, agent, level]
        sums = self._sums.rows(round_)[agent]
        size = Statistics.width(m)
        S = sums[2 + m : size]
        row[0], row[1] = sums[0], sums[size:].sum()
        if c == 0:
            row[2 : 2 + m], row[2 + m :] = sums[2 : 2 + m], S[self._half]
            return
        grown = c * S  # I + cS; columns or rows first is the same
        grown[:: m + 1] += 1.0
        L, info = dpotrf(grown.reshape(m, m).T, lower=1, clean=0, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(_INDEFINITE)
        row[1] += 2 * np.log(L.diagonal()).sum()
        inverse, _ = dpotri(L, lower=1, overwrite_c=1)
        row[2 : 2 + m] = dsymv(1.0, inverse, sums[2 : 2 + m], lower=1)
        # S(I + cS)⁻¹ = (I − (I + cS)⁻¹)/c, of which the transposed lower half is the upper one
        held = inverse.T.reshape(-1)[self._half]
        held /= -c
        held[self._diagonal] += 1.0 / c
        row[2 + m :] = held
