r"""Who is with whom, as others see it: groupings that travel with messages.

Whoever hears many agents knows sooner who is with whom than whoever hears a few of them. So each
message carries some groupings that its sender drew of the agents it knows. An agent takes the word
of one who knows those that it knows itself and many more, from more observations; its own data
decide in whose company it is then, or whether it is on its own. How the others are grouped, and how
alike groups are, is taken on trust.

In a grouping each agent has a digit: 0 if it is not known, 1 … G for a group, G + 1 if it is on its
own. One more digit says which correlation within groups goes with all of them. Digits are packed
into as few float64 numbers as hold them to the last bit; one more number is how many observations
the sender knows.

Axes: B views; D groupings; N agents in a view, V in all; P rows of a table of what was said.
"""

from dataclasses import dataclass
from functools import cached_property
from math import log2

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.similarity.similarity import Views

# Whose word is taken: who knows so many times as many agents, and this share of mine.
_MORE, _MINE = 1.5, 0.9
# At least so many groups have names: among a few agents no more are looked for than there are.
LEAST_GROUPS = 12
# Nothing is said for the sake of fewer than this share of all agents.
_ENOUGH = 0.1
# So many bits a float64 number holds.
_BITS = 53
# A digit of every agent is too much to say in larger networks.
MOST_AGENTS = 1000


@dataclass(frozen=True, eq=False)
class Said:
    """Groupings of the agents in B views.

    Attributes:
        digits: (B, D, N).
        rho: (B,) which correlation within groups goes with all of a view's.
        groups: G, how many may have a name.
    """

    digits: IntArray
    rho: IntArray
    groups: int

    @classmethod
    def nothing(cls, shape: tuple[int, int], groups: int) -> "Said":
        """Nothing is said, in B views of N agents."""
        B, N = shape
        digits, rho = np.zeros((B, 0, N), dtype=np.int64), np.zeros(B, dtype=np.int64)
        return cls(digits, rho, groups)

    def take(self, index: IntArray) -> "Said":
        """Take some views, in order."""
        return Said(self.digits[index], self.rho[index], self.groups)


@dataclass(frozen=True, eq=False)
class Heard:
    """What P agents said of all V, and from how many observations: (P,)."""

    said: Said
    known: Array


@dataclass(frozen=True)
class Hearsay:
    """How groupings are said.

    Attributes:
        agents: V.
        groups: G, the most that a grouping has.
        draws: D, how many groupings go with a message.
        correlations: How many there are to choose from.
    """

    agents: int
    groups: int
    draws: int
    correlations: int

    @property
    def size(self) -> int:
        """How many numbers it takes."""
        return self._packed + 1

    def packed(self, said: Said, agents: IntArray, known: Array) -> Array:
        """Pack what B agents say of those in their views.

        Args:
            said: What they say.
            agents: (B, N) of whom.
            known: (B,) from how many observations.

        Returns:
            (B, size).
        """
        B, D, _ = said.digits.shape
        every = np.zeros((B, D, self.agents), dtype=np.int64)
        # padding says nothing, whoever it names
        at = np.arange(B)[:, None, None], np.arange(D)[:, None], agents[:, None, :]
        np.maximum.at(every, at, said.digits)
        flat = np.zeros((B, self._packed * len(self._powers)), dtype=np.int64)
        flat[:, : D * self.agents] = every.reshape(B, -1)
        flat[:, D * self.agents] = said.rho
        return np.column_stack([flat.reshape(B, self._packed, -1) @ self._powers, known])

    def unpacked(self, numbers: Array) -> Heard:
        """Read what was said, of all agents; numbers that say nothing are 0: (P, size)."""
        numbers, known = numbers[:, :-1], numbers[:, -1]
        sound = (numbers >= 0) & (numbers < 2.0**_BITS) & (numbers == np.floor(numbers))
        whole = np.where(sound, numbers, 0.0).astype(np.int64)
        flat = (whole[..., None] // self._powers % self._base).reshape(len(numbers), -1)
        end = self.draws * self.agents
        digits = np.minimum(flat[:, :end], self.groups + 1)
        rho = np.minimum(flat[:, end], self.correlations - 1)
        digits = digits.reshape(-1, self.draws, self.agents)
        return Heard(Said(digits, rho, self.groups), known)

    def taken(
        self, heard: Heard, views: Views, members: BoolArray, known: Array
    ) -> tuple[BoolArray, Said]:
        """Tell who takes another's word, and what it says of those known: (B,), digits (B, D, N).

        Of those whose word may be taken, that of who knows most agents is.

        Args:
            heard: What was said by those whom the rows of the views' table are about.
            views: Who has heard from whom.
            members: (B, N) of whom anything is known.
            known: (B,) from how many observations.
        """
        B, said = len(views.me), heard.said
        named = np.asarray((said.digits > 0).any(axis=1))
        mine = np.zeros((B, self.agents), dtype=np.bool_)
        np.logical_or.at(mine, (np.arange(B)[:, None], views.agents), members)
        fit = np.take_along_axis(_knows_more(mine, named), views.index, axis=1)
        fit &= views.others & members & (heard.known[views.index] >= known[:, None])
        most = np.where(fit, named.sum(axis=1)[views.index], -1).argmax(axis=1)
        row = views.index[np.arange(B), most]
        digits = np.take_along_axis(said.digits[row], views.agents[:, None, :], axis=2)
        theirs = Said(digits * members[:, None, :], said.rho[row], self.groups)
        return np.asarray(fit.any(axis=1)), theirs

    @property
    def _packed(self) -> int:
        """How many numbers hold all digits."""
        return -(-(self.draws * self.agents + 1) // len(self._powers))

    @property
    def _base(self) -> int:
        return max(self.groups + 2, self.correlations)

    @cached_property
    def _powers(self) -> IntArray:
        """What each digit of a number counts."""
        return np.asarray(self._base ** np.arange(int(_BITS / log2(self._base)), dtype=np.int64))


def of_use(lags: Array) -> bool:
    """Tell whether enough agents may ever take another's word: lags (V, V), inf for never."""
    heard = np.isfinite(lags)
    return bool((_knows_more(heard, heard) & heard).any(axis=1).mean() >= _ENOUGH)


def _knows_more(mine: BoolArray, theirs: BoolArray) -> BoolArray:
    """Tell who knows those whom I know, and many more: (B, V), (P, V) -> (B, P)."""
    count = mine.sum(axis=1)[:, None]
    common = mine.astype(np.float32) @ theirs.astype(np.float32).T
    return np.asarray((theirs.sum(axis=1) >= _MORE * count) & (common >= _MINE * count))


def spoken(slots: IntArray, rho: IntArray, draws: int, groups: int) -> Said:
    """Say groupings that were drawn, the newest first; all of one ρ, that of the first.

    Args:
        slots: (B, K, N) where each agent is in each draw: −1 if not there, −2 if on its own.
        rho: (B, K) which correlation within groups goes with each draw.
        draws: How many are said; if there are fewer, some are said again.
        groups: How many are named, the largest; who is in another is on its own.
    """
    B = len(slots)
    same = rho == rho[:, :1]
    order = np.argsort(~same, axis=1, kind="stable")
    which = order[np.arange(B)[:, None], np.arange(draws) % same.sum(axis=1)[:, None]]
    said = slots[np.arange(B)[:, None], which]
    size = (said[..., None] == np.arange(int(said.max(initial=0)) + 1)).sum(axis=2)
    # the largest first: if there are too many, the smallest go without a name
    name = np.argsort(np.argsort(-size, axis=2, kind="stable"), axis=2) + 1
    name = np.where(size > 1, np.minimum(name, groups + 1), groups + 1)
    digits = np.take_along_axis(name, np.maximum(said, 0), axis=2)
    digits = np.where(said == -2, groups + 1, digits)
    return Said(np.where(said == -1, 0, digits), rho[:, 0], groups)
