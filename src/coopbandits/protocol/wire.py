"""What becomes of the messages between a simulation's agents? Sent, lost, late, delivered."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import BoolArray, IntArray
from coopbandits.network import Network
from coopbandits.protocol.links import Links

# A message on its way: from whom, to whom, bytes.
Letter = tuple[int, int, bytes]


@dataclass
class Count:
    """What became of messages in one round.

    Attributes:
        sent: How many were sent.
        bytes: Their size.
        delivered: How many arrived.
        late: How many of these were sent in an earlier round.
        lost: How many were lost on a link.
        missed: How many came to an agent that was away.
    """

    sent: int = 0
    bytes: int = 0
    delivered: int = 0
    late: int = 0
    lost: int = 0
    missed: int = 0


class Wire:
    """Carries messages over links; over faultless ones, if none are given."""

    def __init__(self, links: Links | None, network: Network, *, seed: int) -> None:
        self._links, self._network, self._seed = links, network, seed
        self._round = 0
        self._present: BoolArray = np.ones(len(network), dtype=np.bool_)
        self._closed: frozenset[tuple[int, int]] = frozenset()
        self._now: list[Letter] = []
        self._due: list[Letter] = []
        self._later: dict[int, list[Letter]] = {}
        self._crossed: Counter[tuple[int, int]] = Counter()
        self._fates: list[tuple[BoolArray, IntArray]] = []
        self.counts: list[Count] = []

    def begin(self, t: int) -> BoolArray:
        """Begin round t, and tell who is there: (V,)."""
        self._round = t
        self.counts.append(Count())
        if self._links is not None:
            self._present = self._links.present(t, self._network)
            self._closed = self._links.closed(t, self._network)
            self._crossed.clear()
            self._fates = []
            self._due = self._later.pop(t, [])
        return self._present

    def post(self, letter: Letter) -> None:
        """Send a message."""
        sender, to, data = letter
        count = self.counts[-1]
        count.sent, count.bytes = count.sent + 1, count.bytes + len(data)
        if self._links is None:
            self._now.append(letter)
            return
        lost, late = self._fate(sender, to)
        if lost or (sender, to) in self._closed:
            count.lost += 1
        elif late:
            self._later.setdefault(self._round + late, []).append(letter)
        else:
            self._now.append(letter)

    def arrivals(self, sender: int | None = None) -> list[Letter]:
        """Return what arrives now, what comes late first; of one sender's late ones, if named."""
        late = [one for one in self._due if sender in (None, one[0])]
        self._due = [one for one in self._due if sender not in (None, one[0])]
        arriving, self._now = late + self._now, []
        there = [self._present[to] for _, to, _ in arriving]
        count = self.counts[-1]
        count.delivered += sum(there)
        count.late += sum(there[: len(late)])
        count.missed += len(there) - sum(there)
        return [one for one, hears in zip(arriving, there, strict=True) if hears]

    def _fate(self, sender: int, to: int) -> tuple[bool, int]:
        assert self._links is not None
        if not self._links.by_chance:
            return False, 0
        nth = self._crossed[sender, to]
        self._crossed[sender, to] += 1
        if nth == len(self._fates):
            self._fates.append(
                self._links.fates(self._round, nth, agents=len(self._network), seed=self._seed)
            )
        lost, late = self._fates[nth]
        return bool(lost[sender, to]), int(late[sender, to])
