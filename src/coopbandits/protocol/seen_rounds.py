"""Which rounds of one origin have been seen? Runs of rounds, so that memory stays bounded."""

from bisect import bisect_right
from dataclasses import dataclass, field

# So many runs of rounds are remembered; of more, the oldest counts as seen, with all before it.
WINDOW = 256


@dataclass(eq=False)
class SeenRounds:
    """The rounds of one origin that have been seen.

    Attributes:
        settled: Up to which round all counts as seen, with all hops left.
        firsts: Where each run of rounds beyond it begins, ascending.
        lasts: Where each ends.
        hops: The most hops left of any copy, of rounds of which that is not the most that can come;
            of the newest of them no more than `WINDOW`.
    """

    settled: int = 0
    firsts: list[int] = field(default_factory=list)
    lasts: list[int] = field(default_factory=list)
    hops: dict[int, int] = field(default_factory=dict)

    def __contains__(self, round_: int) -> bool:
        run = bisect_right(self.firsts, round_) - 1
        return round_ <= self.settled or (run >= 0 and round_ <= self.lasts[run])

    def most_hops(self, round_: int, most: int, ttl: int) -> int:
        """Return the most hops left of any copy so far, 0 if there was none.

        Args:
            round_: Of the origin.
            most: How many can be left of what comes from it.
            ttl: γ.
        """
        if round_ <= self.settled:
            return ttl
        return self.hops.get(round_, most) if round_ in self else 0

    def note(self, round_: int, hops: int, most: int) -> None:
        """Remember a copy of a round with so many hops left, of so many that can be."""
        if round_ not in self:
            self._add(round_)
        if hops == most:
            self.hops.pop(round_, None)
        else:
            self.hops[round_] = hops
        if len(self.hops) > WINDOW:
            del self.hops[min(self.hops)]
        if len(self.firsts) > WINDOW:
            self.settle(self.lasts[0])

    def settle(self, round_: int) -> None:
        """Let all rounds up to one count as seen, with all hops left."""
        self.settled = max(self.settled, round_)
        runs = [
            (max(first, self.settled + 1), last)
            for first, last in zip(self.firsts, self.lasts, strict=True)
            if last > self.settled
        ]
        self.firsts, self.lasts = [first for first, _ in runs], [last for _, last in runs]
        self.hops = {known: hops for known, hops in self.hops.items() if known > self.settled}

    def _add(self, round_: int) -> None:
        """Add a round to the run before it, to the one after it, or as a run of its own."""
        after = bisect_right(self.firsts, round_)
        joins = after > 0 and self.lasts[after - 1] == round_ - 1
        meets = after < len(self.firsts) and self.firsts[after] == round_ + 1
        if joins and meets:
            self.lasts[after - 1] = self.lasts[after]
            del self.firsts[after], self.lasts[after]
        elif joins:
            self.lasts[after - 1] = round_
        elif meets:
            self.firsts[after] = round_
        else:
            self.firsts.insert(after, round_)
            self.lasts.insert(after, round_)
