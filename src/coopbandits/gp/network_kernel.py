r"""K_z between agents, evaluated where it is asked for: never as V × V numbers.

| kernel | K_z(v, v') | memory |
|---|---|---|
| `ClusterKernel` | 1 if the labels agree, else 0; all alike and all alone are its extremes | V |
| `LowRankKernel` | U_v·U_v' + δ_v 1{v = v'} | V·r |
| `LaplacianKernel` | (L + ρI)⁻¹, L the graph's Laplacian | that of a sparse factor |
| `DenseKernel` | a matrix | V² |
| `SubsetKernel` | a matrix between some agents, 0 for others | n² |
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.network.sparse_rows import SparseRows, check_dense

# Columns of an inverse are kept up to so many numbers, 256 MB.
_COLUMNS_KEPT = 32_000_000


@runtime_checkable
class NetworkKernel(Protocol):
    """A positive semidefinite kernel between the agents of a network."""

    def __len__(self) -> int:
        """How many agents there are: V."""
        ...

    @property
    def parts(self) -> IntArray | None:
        """(V,) labels that agree exactly where K_z is not 0; None if there are no such."""
        ...

    def own(self, agents: IntArray) -> Array:
        """Evaluate agents each with itself: (n,) -> (n,)."""
        ...

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """Evaluate every pair: (n,), (m,) -> (n, m)."""
        ...

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        """Evaluate pair by pair: (n,), (n,) -> (n,)."""
        ...


@dataclass(frozen=True, eq=False)
class ClusterKernel:
    """1 where labels agree, else 0: labels (V,), numbered from 0."""

    labels: IntArray

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def parts(self) -> IntArray:
        """The labels."""
        return self.labels

    def own(self, agents: IntArray) -> Array:
        """All ones."""
        return np.ones(len(agents))

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """Compare every pair of labels."""
        mine, others = self.labels[rows], self.labels[columns]
        if self._count > len(rows):
            return (mine[:, None] == others).astype(np.float64)
        # a row for each label, taken whole: many times faster than pair by pair
        return np.take((np.arange(self._count)[:, None] == others).astype(np.float64), mine, axis=0)

    @cached_property
    def _count(self) -> int:
        return int(self.labels.max()) + 1

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        """Compare labels pair by pair."""
        return (self.labels[rows] == self.labels[columns]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class LowRankKernel:
    """UUᵀ + diag(δ): U (V, r), δ (V,)."""

    U: Array
    delta: Array
    parts: None = None

    def __len__(self) -> int:
        return len(self.U)

    def own(self, agents: IntArray) -> Array:
        """|U_v|² + δ_v."""
        return self.between(agents, agents)

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """Multiply loadings, and add what each agent has for itself."""
        same = rows[:, None] == columns
        return self.U[rows] @ self.U[columns].T + same * self.delta[rows][:, None]

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        """Do so pair by pair."""
        shared = np.einsum("nr,nr->n", self.U[rows], self.U[columns])
        return np.asarray(shared + (rows == columns) * self.delta[rows])


@dataclass(frozen=True, eq=False)
class DenseKernel:
    """A matrix (V, V)."""

    matrix: Array
    parts: None = None

    def __len__(self) -> int:
        return len(self.matrix)

    def own(self, agents: IntArray) -> Array:
        """Look the diagonal up."""
        return np.diagonal(self.matrix)[agents]

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """Look every pair up."""
        # whole rows: many times faster than pair by pair
        return np.take(self.matrix[:, columns], rows, axis=0)

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        """Look pairs up."""
        return np.asarray(self.matrix[rows, columns])


@dataclass(frozen=True, eq=False)
class SubsetKernel:
    """A matrix (n, n) between some agents (n,), ascending, of V."""

    agents: IntArray
    matrix: Array
    count: int
    parts: None = None

    def __len__(self) -> int:
        return self.count

    def own(self, agents: IntArray) -> Array:
        """Look the diagonal up, of these agents."""
        return np.diagonal(self.matrix)[np.searchsorted(self.agents, agents)]

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """Look every pair up, of these agents."""
        at = np.searchsorted(self.agents, columns)
        return np.take(self.matrix[:, at], np.searchsorted(self.agents, rows), axis=0)

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        """Look pairs up, of these agents."""
        at = np.searchsorted(self.agents, rows), np.searchsorted(self.agents, columns)
        return np.asarray(self.matrix[at])


@dataclass(frozen=True, eq=False)
class LaplacianKernel:
    """(L + ρI)⁻¹ of a graph, by a sparse factor (SuperLU); columns are solved for as asked.

    Attributes:
        neighbours: Of the graph; symmetric.
        rho: ρ.
        scaled: Whether it is divided by √(K_vv·K_ww), to a diagonal of 1.
    """

    neighbours: SparseRows
    rho: float
    scaled: bool = False
    _kept: "OrderedDict[int, Array]" = field(default_factory=OrderedDict, repr=False)

    def __len__(self) -> int:
        return len(self.neighbours)

    @cached_property
    def parts(self) -> IntArray:
        """The graph's connected components, within which no cell of the inverse is 0."""
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 (heavy)

        return connected_components(self.neighbours.matrix(), directed=False)[1].astype(np.int64)

    def own(self, agents: IntArray) -> Array:
        """Look the diagonal up."""
        return np.ones(len(agents)) if self.scaled else self._unscaled(agents)

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """Solve for columns of the inverse."""
        different, at = np.unique(columns, return_inverse=True)
        solved = np.column_stack([column[rows] for column in self._columns(different)])
        if self.scaled:
            own = np.sqrt(self._unscaled(rows)), np.sqrt(self._unscaled(different))
            solved = solved / (own[0][:, None] * own[1])
        return np.asarray(solved[:, at])

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        """Solve for columns of the inverse, and pick one cell for each pair."""
        found = np.empty(len(rows))
        order = np.argsort(columns, kind="stable")
        different, starts = np.unique(columns[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        for first in range(0, len(different), self._together):
            some = slice(first, first + self._together)
            for column, start, end in zip(
                self._columns(different[some]), starts[some], ends[some], strict=True
            ):
                here = order[start:end]
                found[here] = column[rows[here]]
        if self.scaled:
            found /= np.sqrt(self._unscaled(rows) * self._unscaled(columns))
        return found

    @property
    def _together(self) -> int:
        return max(1, _COLUMNS_KEPT // (4 * len(self)))

    def _unscaled(self, agents: IntArray) -> Array:
        """Return diagonal cells of the inverse, each solved for once: (n,) -> (n,)."""
        missing = np.unique(agents[np.isnan(self._diagonal[agents])])
        for first in range(0, len(missing), self._together):
            some = missing[first : first + self._together]
            columns = self._columns(some)
            self._diagonal[some] = [column[v] for v, column in zip(some, columns, strict=True)]
        return self._diagonal[agents]

    @cached_property
    def _diagonal(self) -> Array:
        return np.full(len(self), np.nan)

    @cached_property
    def _factor(self) -> Any:
        from scipy.sparse import diags_array  # noqa: PLC0415 (heavy)
        from scipy.sparse.linalg import splu  # noqa: PLC0415 (heavy)

        degrees = self.neighbours.counts.astype(np.float64)
        matrix = diags_array(degrees + self.rho) - self.neighbours.matrix().astype(np.float64)
        return splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def _columns(self, agents: IntArray) -> list[Array]:
        """Return columns of the inverse: each (V,); the last ones asked for are kept."""
        wanted: list[int] = agents.tolist()
        new = [v for v in wanted if v not in self._kept]
        found = {v: self._kept[v] for v in wanted if v in self._kept}
        if new:
            unit = np.zeros((len(self), len(new)))
            unit[new, np.arange(len(new))] = 1.0
            for v, column in zip(
                new, np.ascontiguousarray(self._factor.solve(unit).T), strict=True
            ):
                # rounding must not link what no path does
                found[v] = np.where(self.parts == self.parts[v], column, 0.0)
        for v in wanted:
            self._kept[v] = found[v]
            self._kept.move_to_end(v)
        while len(self._kept) > max(len(wanted), _COLUMNS_KEPT // len(self)):
            self._kept.popitem(last=False)
        return [found[v] for v in wanted]


ONE_AGENT = ClusterKernel(np.zeros(1, dtype=np.int64))
"""K_z of one agent: 1."""


def dense(kernel: NetworkKernel) -> Array:
    """Return all of K_z: (V, V), symmetric; up to 20,000 agents."""
    check_dense(len(kernel), "K_z", "`block(rows, columns)` has that between some agents")
    everyone = np.arange(len(kernel))
    whole = kernel.block(everyone, everyone)
    return np.asarray(0.5 * (whole + whole.T))
