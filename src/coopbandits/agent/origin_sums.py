"""Sufficient statistics of one origin's feed that depend on the feed alone, to the bit.

Floating-point sums depend on the order and the grouping of their terms, and observations come in
blocks of any size. Here they are added in the order of the feed, in chunks that begin at every
`CHUNK`-th observation; what is behind the last whole chunk is kept and summed anew. Whoever holds
the same observations of an origin so holds the same sums, however they came.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from coopbandits.agent.source_sums import Block, SourceSums, Summariser, laid_out
from coopbandits.protocol.messages import Observation

CHUNK = 100


@dataclass(frozen=True, eq=False)
class OriginSums:
    """The sums of one feed; replaced, never changed.

    Attributes:
        base: Of the whole chunks, as a single source.
        tail: The observations behind these, fewer than `CHUNK`.
    """

    base: SourceSums
    tail: tuple[Observation, ...] = ()

    @classmethod
    def empty(cls, summariser: Summariser) -> "OriginSums":
        """Know nothing."""
        return cls(SourceSums.empty(summariser, 1))

    @property
    def count(self) -> int:
        """How many observations there are."""
        return int(self.base.learnt[0]) + len(self.tail)

    def extended(self, block: Block) -> "OriginSums":
        """Add the next observations of the feed; of a block, whole chunks as they are."""
        base, tail, start, count = self.base, self.tail, 0, len(block.y)
        if tail:
            start = min(CHUNK - len(tail), count)
            tail = (*tail, *block.part(0, start).observations)
            if len(tail) == CHUNK:
                base, tail = _added(base, tail), ()
        while count - start >= CHUNK:
            base = base.with_block(0, block.part(start, start + CHUNK), 0, 0)
            start += CHUNK
        return replace(self, base=base, tail=(*tail, *block.part(start, count).observations))

    @property
    def total(self) -> SourceSums:
        """The sums of all of it, as a single source."""
        return _added(self.base, self.tail) if self.tail else self.base

    @property
    def digest(self) -> bytes:
        """A hash that equal feeds share."""
        total = self.total
        held = np.concatenate([np.empty(0), *(one.augmented for _, one in total.held)])
        arrays = (total.sums, total.summaries, total.learnt, total.newest, held)
        return blake2b(b"".join(a.tobytes() for a in arrays), digest_size=32).digest()


def merged(feeds: Sequence[OriginSums]) -> SourceSums:
    """Return the sums of an origin that began several feeds, in their order, as a single source."""
    total = feeds[0].total
    for feed in feeds[1:]:
        total = total.with_source(feed.total)
    return total


def _added(base: SourceSums, observations: Sequence[Observation]) -> SourceSums:
    """Add a chunk, or the beginning of one."""
    X, y, attached = laid_out(observations)
    rounds = np.array([one.round for one in observations], dtype=np.int64)
    return base.with_block(0, Block(observations[0].origin, X, y, attached, rounds), 0, 0)
