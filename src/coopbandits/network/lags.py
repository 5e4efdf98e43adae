"""After how many rounds is an observation known where? The LOCAL protocol without faults.

Messages move one edge a round and live for γ hops, so who has heard what by when follows from
distances alone: lag(v, v') = max(1, d(v', v)) where d(v', v) ≤ γ. Only these pairs are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray, frozen, short
from coopbandits.errors import NetworkError, ShapeError
from coopbandits.network.sparse_rows import SparseRows, alike, check_dense

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from coopbandits.network.network import Network

MOST_PAIRS = 250_000_000
"""The most pairs of agents of whom one hears the other: 4 GB."""
# Above any lag: marks what was reached anew.
_NEW = 1 << 30
# Agents are searched from together that reach about so many others in all.
_TOGETHER = 20_000_000


@dataclass(frozen=True, eq=False)
class Lags:
    """The lag matrix, as sparse rows.

    At its decision of round t agent v knows the observation of v' of round t' exactly if v' is one
    of `sources[v]` and t' + lag ≤ t.

    Attributes:
        sources: Whom each agent hears; itself, as a rule, among them.
        rounds: (n,) the lag of each, in the order of `sources.agents`.
    """

    sources: SparseRows
    rounds: IntArray

    def __post_init__(self) -> None:
        frozen(self.rounds)

    @classmethod
    def within(cls, arcs: SparseRows, ttl: int) -> "Lags":
        """Search breadth first, γ hops back along the arcs, from some agents after the others."""
        towards = arcs.transposed().matrix()
        starts, agents, rounds = [np.zeros(1, dtype=np.int64)], [], []
        for rows in _blocks(towards, ttl):
            found = _searched(towards, rows, ttl)
            starts.append(starts[-1][-1] + found.indptr[1:].astype(np.int64))
            agents.append(found.indices.astype(np.int64))
            rounds.append(found.data.astype(np.int64))
            check_pairs(starts[-1][-1], f"what agents hear within {ttl} hops", "a smaller ttl")
        sources = SparseRows(np.concatenate(starts), np.concatenate(agents))
        return cls(sources, np.concatenate(rounds))

    @classmethod
    def of_dense(cls, matrix: Array) -> "Lags":
        """Take a (V, V) matrix, inf where an agent is not heard."""
        heard = np.isfinite(matrix)
        return cls(SparseRows.of_matrix(heard), matrix[heard].astype(np.int64))

    def __len__(self) -> int:
        return len(self.sources)

    def __iter__(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Each agent's sources, and their lags."""
        return (self.row(v) for v in range(len(self)))

    def row(self, agent: int) -> tuple[IntArray, IntArray]:
        """Whom an agent hears, ascending, and after how many rounds."""
        starts = self.sources.starts
        return self.sources[agent], self.rounds[starts[agent] : starts[agent + 1]]

    def hears(self, agent: int, source: int) -> bool:
        """Tell whether an agent hears another."""
        return self.sources.has(agent, source)

    def between(self, agents: IntArray, sources: IntArray) -> Array:
        """Return the lags of pairs, inf where an agent is not heard: (n,), (n,) -> (n,)."""
        at = self.sources.places(agents, sources)
        if not len(self.rounds):
            return np.full(len(at), np.inf)
        return np.where(at >= 0, self.rounds[at], np.inf)

    def kept(self, entries: BoolArray) -> "Lags":
        """Keep some of the pairs: (n,)."""
        return Lags(self.sources.kept(entries), self.rounds[entries])

    @cached_property
    def longest(self) -> int:
        """The longest lag; 0 if nobody is heard."""
        return int(self.rounds.max(initial=0))

    @cached_property
    def kinds(self) -> IntArray:
        """(V,) agents with the same number hear the same agents after the same rounds."""
        return frozen(alike(self.sources.agents, self.rounds, starts=self.sources.starts))

    @cached_property
    def groups(self) -> list[tuple[IntArray, IntArray]]:
        """Agents that hear the same agents: members, and their sources."""
        labels = alike(self.sources.agents, starts=self.sources.starts)
        order = np.argsort(labels, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(labels))[:-1])
        return [(group, self.sources[int(group[0])]) for group in members]

    def views(self, who: IntArray) -> tuple[IntArray, Array]:
        """Lay out whom B agents hear, and their lags, inf where a row is padded: (B, N), (B, N)."""
        starts, counts = self.sources.starts[who], self.sources.counts[who]
        place = np.arange(int(counts.max(initial=0)))
        real = place < counts[:, None]
        at = np.where(real, starts[:, None] + place, 0)
        agents = np.where(real, self.sources.agents[at], 0)
        return agents, np.where(real, self.rounds[at], np.inf)

    def dense(self) -> Array:
        """Return the whole matrix, [v, v'], inf where an agent is not heard: (V, V)."""
        check_dense(len(self), "the lags", "`row(v)` has those of one agent")
        whole = np.full((len(self), len(self)), np.inf)
        whole[self.sources.rows, self.sources.agents] = self.rounds
        return whole


def as_lags(value: Any, agents: int) -> Lags:
    """Check the lags that a `Listen`, perhaps a user's own, returns: sparse, or (V, V) with inf."""
    if isinstance(value, Lags) and len(value) == agents:
        return value
    matrix = np.asarray(value) if not isinstance(value, Lags) else np.empty(0)
    if matrix.shape != (agents, agents) or matrix.dtype.kind not in "iuf":
        raise ShapeError(
            f"lags are {short(value)}; expected a ({agents}, {agents}) array, inf where an agent "
            "is not heard, or what network.lags(ttl) returns"
        )
    return Lags.of_dense(matrix)


def transmissions(network: "Network", ttl: int, rounds: int) -> IntArray:
    """Count the messages on all edges in each round of a faultless network: (T,).

    News of round t' crosses the edges out of every agent at distance h < γ of its origin in round
    t' + h, once per edge, the way back included.
    """
    degrees = network.arcs.counts
    per_hop = [int(degrees.sum())]
    if min(ttl, rounds) > 1:
        lags = network.lags(min(ttl, rounds) - 1)
        receivers = lags.sources.rows
        others = receivers != lags.sources.agents
        sent = np.bincount(lags.rounds[others], degrees[receivers[others]], minlength=2)
        per_hop += sent[1:].astype(np.int64).tolist()
    padded = np.zeros(rounds, dtype=np.int64)
    padded[: len(per_hop)] = per_hop
    return np.cumsum(padded)


def check_pairs(pairs: float, what: str, advice: str) -> None:
    """Refuse more pairs of agents that hear each other than fit into memory."""
    if pairs > MOST_PAIRS:
        raise NetworkError(
            f"{what} is more than {MOST_PAIRS:,} pairs of agents, of 16 bytes each; take {advice}, "
            "or a sparser network"
        )


def _blocks(towards: "csr_array", ttl: int) -> list[slice]:
    """Cut the agents into blocks that reach no more than so many pairs together."""
    V = towards.shape[0]
    # there are no more agents at h hops than walks of h steps
    walks = reach = np.ones(V)
    for _ in range(min(ttl, V)):
        walks = np.minimum(towards @ walks, V)
        wider = np.minimum(reach + walks, V)
        if (wider == reach).all():
            break
        reach = wider
    cut = np.flatnonzero(np.diff(np.cumsum(reach) // _TOGETHER)) + 1
    return [slice(*ends) for ends in pairwise([0, *cut.tolist(), V])]


def _searched(towards: "csr_array", rows: slice, ttl: int) -> "csr_array":
    """Return the lags of some agents: (n, V), stored where there are any."""
    from scipy.sparse import csr_array, eye_array  # noqa: PLC0415 (heavy)

    V, n = towards.shape[0], rows.stop - rows.start
    frontier = csr_array(towards[rows])
    own = eye_array(n, V, k=rows.start, dtype=np.int32, format="csr")
    lags = csr_array(_filled(frontier, 1) + own)
    for hop in range(2, ttl + 1):
        both = csr_array(lags + _filled(csr_array(frontier @ towards), _NEW))
        new = both.data == _NEW
        if not new.any():
            break
        both.data = np.where(new, hop, both.data % _NEW).astype(np.int32)
        lags = both
        ends = np.concatenate([[0], np.cumsum(new)])
        true = np.ones(int(ends[-1]), dtype=np.bool_)
        frontier = csr_array((true, both.indices[new], ends[both.indptr]), shape=(n, V))
    lags.sort_indices()
    return lags


def _filled(matrix: "csr_array", value: int) -> "csr_array":
    """Return a matrix with the same cells, all of one value."""
    from scipy.sparse import csr_array  # noqa: PLC0415 (heavy)

    data = np.full(matrix.nnz, value, dtype=np.int32)
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
