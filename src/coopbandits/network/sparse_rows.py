"""Compressed sparse rows (CSR): for each agent a set of agents, in order.

Arcs, neighbourhoods and whom an agent hears are all kept so: memory follows the pairs that there
are, never V².
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from coopbandits.arrays import BoolArray, IntArray, frozen
from coopbandits.errors import NetworkError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_DENSE = 20_000
"""The most agents for whom an array of V × V numbers is made: at 8 bytes each, 3.2 GB."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A set of agents for each of V agents; read-only.

    Attributes:
        starts: (V + 1,) where each agent's row begins in `agents`, and where the last one ends.
        agents: (n,) the rows, one after the other, each ascending.
    """

    starts: IntArray
    agents: IntArray

    def __post_init__(self) -> None:
        frozen(self.starts)
        frozen(self.agents)

    @classmethod
    def of_pairs(cls, rows: IntArray, agents: IntArray, count: int) -> "SparseRows":
        """Sort different pairs (row, agent) into V rows: (n,), (n,)."""
        order = np.lexsort([agents, rows])
        counts = np.bincount(rows, minlength=count)
        return cls(_starts(counts), agents[order].astype(np.int64))

    @classmethod
    def of_matrix(cls, matrix: "csr_array | BoolArray") -> "SparseRows":
        """Take the cells of a (V, V) matrix that are not 0, sparse or not."""
        if isinstance(matrix, np.ndarray):
            rows, agents = np.nonzero(matrix)
            return cls(_starts(np.bincount(rows, minlength=len(matrix))), agents)
        matrix.sort_indices()
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))

    @classmethod
    def of_lists(cls, rows: list[IntArray]) -> "SparseRows":
        """Take a list of ascending rows."""
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        empty = np.empty(0, dtype=np.int64)
        return cls(_starts(counts), np.concatenate([empty, *rows]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, agent: int) -> IntArray:
        """One agent's row, ascending."""
        return self.agents[self.starts[agent] : self.starts[agent + 1]]

    def __iter__(self) -> Iterator[IntArray]:
        return (self[v] for v in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SparseRows)
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.agents, other.agents)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def counts(self) -> IntArray:
        """(V,) how many agents each row has."""
        return np.diff(self.starts)

    @property
    def rows(self) -> IntArray:
        """(n,) whose row each entry of `agents` is in."""
        return np.repeat(np.arange(len(self)), self.counts)

    def places(self, rows: IntArray, agents: IntArray) -> IntArray:
        """Return where pairs (row, agent) stand in `agents`, −1 for none: (n,), (n,) -> (n,)."""
        keys = rows * np.int64(len(self)) + agents
        at = np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))
        found = self._keys[at] == keys if len(self._keys) else np.zeros(len(keys), dtype=np.bool_)
        return np.where(found, at, -1)

    def has(self, row: int, agent: int) -> bool:
        """Tell whether an agent is in a row."""
        mine = self[row]
        at = int(np.searchsorted(mine, agent))
        return at < len(mine) and int(mine[at]) == agent

    def transposed(self) -> "SparseRows":
        """Return in whose rows each agent is."""
        # a stable sort by agent leaves the rows of each ascending
        order = np.argsort(self.agents, kind="stable")
        return SparseRows(_starts(np.bincount(self.agents, minlength=len(self))), self.rows[order])

    def kept(self, entries: BoolArray) -> "SparseRows":
        """Keep some of the entries: (n,)."""
        ends = np.concatenate([[0], np.cumsum(entries)])
        return SparseRows(ends[self.starts], self.agents[entries])

    def mutual(self) -> "SparseRows":
        """Keep the pairs that stand in each other's rows."""
        return self.kept(self.places(self.agents, self.rows) >= 0)

    def either_way(self) -> "SparseRows":
        """Return the pairs of which one stands in the other's row, both ways."""
        matrix = self.matrix()
        return SparseRows.of_matrix(matrix + matrix.T)

    def within(self, members: IntArray) -> "SparseRows":
        """Return the rows of some agents, ascending, and who of them is in these: renumbered."""
        number = np.full(len(self), -1)
        number[members] = np.arange(len(members))
        rows = [number[self[v]] for v in members.tolist()]
        return SparseRows.of_lists([row[row >= 0] for row in rows])

    def renumbered(self, order: IntArray) -> "SparseRows":
        """Number all agents anew, in an order."""
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return SparseRows.of_pairs(rank[self.rows], rank[self.agents], len(order))

    def matrix(self) -> "csr_array":
        """Return the rows as a sparse matrix of True."""
        from scipy.sparse import csr_array  # noqa: PLC0415 (heavy)

        true = np.ones(len(self.agents), dtype=np.bool_)
        return csr_array((true, self.agents, self.starts), shape=(len(self), len(self)))

    def dense(self, what: str, instead: str) -> BoolArray:
        """Return the rows as a (V, V) array, unless that is too large."""
        check_dense(len(self), what, instead)
        whole = np.zeros((len(self), len(self)), dtype=np.bool_)
        whole[self.rows, self.agents] = True
        return whole

    @cached_property
    def _keys(self) -> IntArray:
        return self.rows * np.int64(len(self)) + self.agents


def alike(*arrays: IntArray, starts: IntArray) -> IntArray:
    """Number rows so that equal rows, and only these, have the same number: (V,).

    Rows are found by hashing; numbers are in order of first appearance.

    Args:
        arrays: (n,) what rows are made of.
        starts: (V + 1,) where each row begins.
    """
    stored = [array.tobytes() for array in arrays]  # of 8 bytes a number
    ends = (8 * starts).tolist()
    numbers: dict[tuple[bytes, ...], int] = {}
    found = np.empty(len(starts) - 1, dtype=np.int64)
    for row, (start, end) in enumerate(pairwise(ends)):
        key = tuple(data[start:end] for data in stored)
        found[row] = numbers.setdefault(key, len(numbers))
    return found


def check_dense(agents: int, what: str, instead: str) -> None:
    """Refuse an array of V × V numbers for many agents, and say what to use instead."""
    if agents > MOST_DENSE:
        raise NetworkError(
            f"{what} of {agents:,} agents would take {8e-9 * agents**2:,.3g} GB as an array; "
            f"expected at most {MOST_DENSE:,} agents; {instead}"
        )


def _starts(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
