r"""What do I know? The exact posterior from a growing Cholesky factor, never an inverse.

Notation, for n observations (agents u, contexts X, rewards y) and K + λI = LLᵀ:

    whitened   Z = L⁻¹ κ(x̃)   (n, m) for m queries,      w = L⁻¹ y   (n,)
    mean       κᵀ(K + λI)⁻¹y = Zᵀw
    variance   K(x̃, x̃) − κᵀ(K + λI)⁻¹κ = K(x̃, x̃) − |Z|²
    logdet     log det(I + K/λ) = 2 Σ log L_ii − n log λ

Deviation from the paper: Algorithm 1, l. 24-32, grows (K + λI)⁻¹. That costs O(n²) an
observation, not O(1), and loses all digits on repeated contexts; bordering L costs the same and
does not.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.errors import ParameterError
from coopbandits.gp.compositions import (
    LARGEST_RATIO,
    JointKernel,
    residual_covariance,
    residual_variance,
)
from coopbandits.gp.covariances import own_rows

# Rows of L are kept in panels of this many, each contiguous from column 0 to its diagonal block:
# the factor grows without a copy, and all but the diagonal blocks of a solve is one matrix product
# per panel.
_PANEL = 128


class Factor:
    """The lower Cholesky factor L of a matrix that grows by rows and columns."""

    def __init__(self) -> None:
        self.size = 0
        self.half_logdet = 0.0
        self._panels: list[Array] = []
        self._corners: list[Array] = []

    def whiten(self, B: Array, done: Array | None = None) -> Array:
        """Solve LZ = B: (n, m).

        Args:
            B: The right-hand side's rows that are not done, (n − k, m), row-major; overwritten.
            done: The first k rows of Z, solved when L had k rows: they stay what they were.
        """
        B = np.require(B, requirements=["C", "W"])  # BLAS works in place on these alone
        first, Z = (0, B) if done is None else (len(done), np.vstack([done, B]))
        for index in range(first // _PANEL, len(self._corners)):
            start = index * _PANEL
            inside, rows = max(first - start, 0), min(_PANEL, self.size - start)
            block = Z[start + inside : start + rows]
            if start:
                block -= self._panels[index][inside:rows] @ Z[:start]
            corner = self._corners[index]
            if inside:
                block -= corner[inside:rows, :inside] @ Z[start : start + inside]
            solve_lower(corner[inside:rows, inside:rows], block, in_place=True)
        return Z

    def unwhiten(self, Z: Array) -> Array:
        """Solve LᵀB = Z: (n, m)."""
        B = np.array(Z, order="C")
        for index in reversed(range(len(self._corners))):
            start = index * _PANEL
            rows = min(_PANEL, self.size - start)
            block = B[start : start + rows]
            block[:] = solve_upper(self._corners[index][:rows, :rows], block)
            if start:
                B[:start] -= self._panels[index][:rows].T @ block
        return B

    def cut(self, size: int, half_logdet: float) -> None:
        """Keep the first rows only, with the log-determinant that they had."""
        panels = -(-size // _PANEL)
        del self._panels[panels:], self._corners[panels:]
        self.size, self.half_logdet = size, half_logdet

    def border(self, Z: Array, S: Array) -> Array:
        """Append k rows: Z = L⁻¹B (n, k) for the new columns B, S the Schur complement (k, k).

        Returns:
            The Cholesky factor of S, the new rows' diagonal block.
        """
        corner, k = cholesky(S), len(S)
        rows = np.empty((k, self.size + k))
        rows[:, : self.size] = Z.T
        rows[:, self.size :] = corner
        done = 0
        while done < k:
            start = self.size - self.size % _PANEL
            if start == self.size:
                self._panels.append(np.zeros((_PANEL, start)))
                self._corners.append(np.zeros((_PANEL, _PANEL)))
            inside = self.size - start
            taken = min(_PANEL - inside, k - done)
            piece = rows[done : done + taken]
            self._panels[-1][inside : inside + taken] = piece[:, :start]
            filled = inside + taken
            self._corners[-1][inside:filled, :filled] = piece[:, start : start + filled]
            self.size += taken
            done += taken
        self.half_logdet += float(np.log(np.diagonal(corner)).sum())
        return corner


@dataclass(frozen=True)
class Belief:
    """What is known at m queries: all of shape (m,).

    `logdet` and `count` are those of the observations that the query's agent knows. `covariance`,
    where it was asked for, is that with the agent's own queries, (m, K) as in `covariances.py`.
    """

    mean: Array
    variance: Array
    logdet: Array
    count: IntArray
    covariance: Array | None = None

    @classmethod
    def nothing(cls, m: int, joint: int = 0) -> "Belief":
        """Make room for m queries of which nothing is known, with `joint` covariances each."""
        covariance = np.zeros((m, joint)) if joint else None
        return cls(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m, dtype=np.int64), covariance)

    @property
    def std(self) -> Array:
        """σ: (m,)."""
        return deviation(self.variance)

    def with_residual(self, prior: JointKernel, agents: IntArray, X: Array, phi: Array) -> "Belief":
        """Add the variance that features leave out at m queries: (m,), (m, d), (m, ·)."""
        left = residual_variance(prior, agents, X, phi)
        covariance = self.covariance
        if covariance is not None:
            more = residual_covariance(prior, agents, X, phi, left)
            covariance = covariance.copy()
            covariance[:, : more.shape[1]] += more
        return replace(self, variance=self.variance + left, covariance=covariance)

    def with_constant(self, mean: Array, variance: Array, agents: IntArray) -> "Belief":
        """Add an own constant of each query's agent, independent of all else: (m,), (m,), (m,)."""
        covariance = self.covariance
        if covariance is not None:
            covariance = covariance.copy()
            for rows in own_rows(agents):
                covariance[rows, : len(rows)] += variance[rows][:, None]
        return replace(
            self,
            mean=self.mean + mean,
            variance=self.variance + variance,
            covariance=covariance,
        )

    def put(self, whole: "Belief", rows: IntArray) -> None:
        """Write this belief into some rows of a larger one."""
        for name in ("mean", "variance", "logdet", "count"):
            getattr(whole, name)[rows] = getattr(self, name)
        if self.covariance is not None and whole.covariance is not None:
            whole.covariance[rows, : self.covariance.shape[1]] = self.covariance


class ObservationKernel(Protocol):
    """K between observations: rows of agents beside rows of contexts."""

    def __call__(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Evaluate every pair: (n,), (n, d), (m,), (m, d) -> (n, m)."""
        ...

    def diagonal(self, u: IntArray, X: Array) -> Array:
        """Evaluate each with itself: (n,), (n, d) -> (n,)."""
        ...


@runtime_checkable
class SmoothKernel(ObservationKernel, Protocol):
    """One that also tells its slopes."""

    def gradient(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Differentiate every pair by x: (n,), (n, d), (m,), (m, d) -> (n, m, d)."""
        ...

    def diagonal_gradient(self, u: IntArray, X: Array) -> Array:
        """Differentiate each K(x̃, x̃) by x: (n,), (n, d) -> (n, d)."""
        ...


class Posterior:
    """The exact posterior of one set of observations, extended and queried in any batches."""

    def __init__(self, kernel: ObservationKernel, ridge: float) -> None:
        self.kernel, self.ridge = kernel, ridge
        self._factor = Factor()
        self._agents: IntArray = np.empty(0, dtype=np.int64)
        self._contexts: Array = np.empty((0, 0))
        self._whitened_rewards: Array = np.empty(0)

    def __len__(self) -> int:
        return self._factor.size

    @property
    def logdet(self) -> float:
        """Log det(I + K/λ), twice the information gain of the observations."""
        gained = 2 * self._factor.half_logdet - len(self) * float(np.log(self.ridge))
        return max(gained, 0.0)  # below 0 by rounding only

    @property
    def whitened_rewards(self) -> Array:
        """L⁻¹y: (n,)."""
        return self._whitened_rewards[: len(self)]

    def whiten(self, B: Array) -> Array:
        """Solve LZ = B: (n, m)."""
        return self._factor.whiten(B.copy())

    def unwhiten(self, Z: Array) -> Array:
        """Solve LᵀB = Z: (n, m)."""
        return self._factor.unwhiten(Z)

    def extend(self, agents: IntArray, X: Array, y: Array) -> None:
        """Learn k observations: (k,), (k, d), (k,). (Alg. 1, l. 24-32.)"""
        if len(y):
            self.absorb(self.look_ahead(agents, X, y))
        elif not len(self):  # d is known from now on
            self._contexts = np.empty((0, X.shape[1]))

    @property
    def mark(self) -> tuple[int, float]:
        """How far it has come, for `reset`."""
        return len(self), self._factor.half_logdet

    def reset(self, mark: tuple[int, float]) -> None:
        """Forget all that was learnt since a mark, to the bit."""
        self._factor.cut(*mark)

    def absorb(self, newest: "Newest") -> None:
        """Learn all that was looked ahead to, if nothing was learnt since."""
        corner = self._factor.border(newest.Z, newest.S)
        whitened = solve_lower(corner, newest.residual[:, None])[:, 0]
        self._store(newest.agents, newest.X, whitened)

    def predict(self, agents: IntArray, X: Array, *, joint: bool = False) -> Belief:
        """Return the belief at m augmented contexts, with covariances if `joint`."""
        return self.believe(self.project(agents, X), joint=joint)

    def believe(self, asked: "Projection", *, joint: bool = False) -> Belief:
        """Return the belief at projected queries, with covariances if `joint`."""
        mean, variance = self._moments(asked)
        logdet, count = np.full(len(mean), self.logdet), np.full(len(mean), len(self))
        covariance = self._covariance(asked) if joint else None
        return Belief(mean, variance, logdet, count, covariance)

    @property
    def agents(self) -> IntArray:
        """(n,) whose the observations are."""
        return self._agents[: len(self)]

    @property
    def contexts(self) -> Array:
        """(n, d) of the observations."""
        return self._contexts[: len(self)]

    def coefficients(self, r: Array) -> Array:
        """Return (K + λI)⁻¹(y − r): (n,)."""
        whitened = self._factor.whiten(r[:, None].copy())[:, 0]
        left = self._whitened_rewards[: len(self)] - whitened
        return self._factor.unwhiten(left[:, None])[:, 0]

    def look_ahead(
        self, agents: IntArray, X: Array, y: Array, done: Array | None = None
    ) -> "Newest":
        """Condition on observations that only some agents have, without learning them.

        `done` is what `project` returned for them when fewer observations were known.
        """
        new = self.project(agents, X, done)
        S = self.kernel(agents, X, agents, X) - new.Z.T @ new.Z
        S[np.diag_indices_from(S)] += self.ridge  # the one place that adds λ
        return Newest(self, agents, X, new.Z, S, y - self._moments(new)[0])

    def project(self, agents: IntArray, X: Array, done: Array | None = None) -> "Projection":
        """Whiten m augmented contexts by all that is known; `done` are the first rows of Z."""
        n, first = len(self), 0 if done is None else len(done)
        if first == n:
            return Projection(agents, X, np.empty((0, len(X))) if done is None else done)
        known = slice(first, n)
        B = self.kernel(self._agents[known], self._contexts[known], agents, X)
        return Projection(agents, X, self._factor.whiten(B, done))

    def _moments(self, asked: "Projection") -> tuple[Array, Array]:
        """Return mean and variance at projected queries: (m,), (m,)."""
        mean = asked.Z.T @ self._whitened_rewards[: len(self)]
        variance = self.kernel.diagonal(asked.agents, asked.X)
        return mean, variance - np.einsum("ij,ij->j", asked.Z, asked.Z)

    def _covariance(self, asked: "Projection") -> Array:
        """Return the covariance of projected queries with their agents' own: (m, K)."""
        blocks = own_rows(asked.agents)
        covariance = np.zeros((len(asked.agents), max(map(len, blocks))))
        for rows in blocks:
            u, X, Z = asked.agents[rows], asked.X[rows], asked.Z[:, rows]
            covariance[rows, : len(rows)] = self.kernel(u, X, u, X) - Z.T @ Z
        return covariance

    def _store(self, agents: IntArray, X: Array, whitened_rewards: Array) -> None:
        n = len(self)
        start = n - len(agents)
        if n > len(self._agents):
            room = max(2 * len(self._agents), n, 64)
            self._agents = _grown(self._agents[:start], (room,))
            self._contexts = _grown(self._contexts[:start], (room, X.shape[1]))
            self._whitened_rewards = _grown(self._whitened_rewards[:start], (room,))
        self._agents[start:n] = agents
        self._contexts[start:n] = X
        self._whitened_rewards[start:n] = whitened_rewards


@dataclass(frozen=True)
class Projection:
    """Augmented contexts (m,), (m, d), whitened by a posterior's observations: Z (n, m)."""

    agents: IntArray
    X: Array
    Z: Array


@dataclass(frozen=True)
class Newest:
    """The newest observations beside a common past: each agent knows some of them.

    S is their Schur complement given the past (k, k), computed once; an agent that knows a part of
    them factors its own sub-block of it.
    """

    past: Posterior
    agents: IntArray
    X: Array
    Z: Array
    S: Array
    residual: Array

    def believe(
        self, asked: Projection, members: IntArray, known: BoolArray, *, joint: bool = False
    ) -> Belief:
        """Return the belief at projected queries.

        Args:
            asked: The queries, of the agents whose decisions they are.
            members: (n,) agents, ascending; those asked are among them.
            known: (n, k) which of the newest observations each of them knows.
            joint: Whether to return covariances too.
        """
        agents, X = asked.agents, asked.X
        mean, variance = self.past._moments(asked)
        cross = self.past.kernel(self.agents, self.X, agents, X) - self.Z.T @ asked.Z
        logdet, count = np.full(len(mean), self.past.logdet), np.full(len(mean), len(self.past))
        covariance = self.past._covariance(asked) if joint else None
        for agent in np.unique(agents):
            mine = np.flatnonzero(agents == agent)
            part = np.flatnonzero(known[np.searchsorted(members, agent)])
            if part.size == 0:
                continue
            corner = cholesky(self.S[np.ix_(part, part)])
            solved = solve_lower(
                corner, np.column_stack([self.residual[part], cross[np.ix_(part, mine)]])
            )
            fresh, extra = solved[:, 0], solved[:, 1:]
            mean[mine] += extra.T @ fresh
            variance[mine] -= np.einsum("ij,ij->j", extra, extra)
            if covariance is not None:
                covariance[mine, : len(mine)] -= extra.T @ extra
            gained = 2 * np.log(np.diagonal(corner)).sum() - part.size * np.log(self.past.ridge)
            logdet[mine] += max(gained, 0.0)
            count[mine] += part.size
        return Belief(mean, variance, logdet, count, covariance)


def deviation(variance: Array) -> Array:
    """Take the root of a variance; the one place that clamps rounding below 0."""
    return np.sqrt(np.maximum(variance, 0.0))


def cholesky(S: Array) -> Array:
    """Factor a Gram matrix with its ridge, or say why it has no factor."""
    try:
        return np.asarray(np.linalg.cholesky(S), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise ParameterError(
            "a Gram matrix is not positive definite to machine precision: the ridge is too small "
            f"beside the kernel (K/λ above about {LARGEST_RATIO:g}), or K is no kernel"
        ) from error


def solve_lower(corner: Array, B: Array, *, in_place: bool = False) -> Array:
    """Solve LX = B: (k, k), (k, m)."""
    from scipy.linalg.blas import dtrsm  # noqa: PLC0415 (half of the import time, if at the top)

    # Transposes of row-major arrays are column-major: BLAS reads them as they are. BᵀL⁻ᵀ = (L⁻¹B)ᵀ
    return np.asarray(dtrsm(1.0, corner.T, B.T, side=1, lower=0, overwrite_b=in_place)).T


def solve_upper(corner: Array, B: Array) -> Array:
    """Solve LᵀX = B: (k, k), (k, m)."""
    from scipy.linalg.blas import dtrsm  # noqa: PLC0415 (as above)

    return np.asarray(dtrsm(1.0, corner.T, B.T, side=1, lower=0, trans_a=1)).T


def _grown(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    bigger = np.zeros(shape, dtype=array.dtype)
    if array.size:
        bigger[: len(array)] = array
    return bigger
