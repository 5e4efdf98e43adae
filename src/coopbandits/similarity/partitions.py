r"""Who is with whom among a few agents? Partitions drawn from what the data say.

`groups.py` finds one grouping. Among many agents that is enough: groups are large, and their data
leave little doubt. Among a few each group has two or three agents, several groupings explain the
data about as well, and the best of them claims too much. So there all of them are weighed, by Gibbs
sampling: one by one, agents leave their groups and join another or found one, with odds

    p(its rewards | theirs)·(how many are in it)      or      p(its rewards)

which is a Chinese restaurant process as prior over partitions. The correlation ρ within groups is
drawn too. All else is integrated out, so a draw needs the sums of `statistics.py` only. The agent
that asks comes last, and for it the odds themselves are kept.

Random numbers are the same for every view: what an agent draws depends on what it has heard alone.

Axes: W = B·C walkers, C for each of B views; N agents; N slots, one for each group, so that all can
be alone; R correlations; p numbers that are summed over the agents of a group.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray

# A group is written as a number with a bit for each agent.
MOST = 60
_WALKERS, _WARMING, _KEPT = 4, 2, 4

# The log evidence of k groups' sums, of which views, under which ρ: (k, p), (k,), (k,) -> (k,)
LogEvidence = Callable[[Array, IntArray, IntArray], Array]


@dataclass(frozen=True, eq=False)
class Draws:
    """The groups of others that were drawn in each view, those first that mean most to the asker.

    Attributes:
        members: (B, L, N) who is in each.
        weight: (B, L) ρ times how often it was drawn, on average; 0 where a view has fewer groups.
        odds: (B, L) how likely the asking agent is in it, when it is there.
    """

    members: BoolArray
    weight: Array
    odds: Array


@dataclass(frozen=True, eq=False)
class Few:
    """A few agents in each view, and what is known of them.

    Attributes:
        rows: (R, B, N, p) what groups add up, under each ρ.
        own: (R, B, N) what each agent adds to the log evidence, whatever its group.
        log_evidence: Of sums of rows; 0 for a sum of nothing.
        correlations: (R,) every ρ, all as likely beforehand.
        members: (B, N) who is there.
        me: (B,) the column of the agent that asks, which is there.
    """

    rows: Array
    own: Array
    log_evidence: LogEvidence
    correlations: Array
    members: BoolArray
    me: IntArray

    def draw(self, start: IntArray, rho: IntArray) -> Draws:
        """Draw partitions, from a first one and a first ρ: (B, N) slots, (B,) places of ρ."""
        walk = _Walk(self, start, rho)
        slots, odds, weight = [], [], []
        for sweep in range(_WARMING + _KEPT):
            mine = walk.sweep(sweep)
            if sweep >= _WARMING:
                slots.append(walk.others())
                odds.append(mine)
                weight.append(self.correlations[walk.rho])
            walk.correlate(sweep)
        return _counted(*(_by_view(parts, len(self.me)) for parts in (slots, odds, weight)))


class _Walk:
    """Walkers that go from partition to partition."""

    def __init__(self, few: Few, start: IntArray, rho: IntArray) -> None:
        B, N = few.members.shape
        self.few = few
        self.view = np.repeat(np.arange(B), _WALKERS)
        self.walker = np.tile(np.arange(_WALKERS), B)
        self.me = few.me[self.view]
        self.members = few.members[self.view]
        self.own = (few.own * few.members).sum(axis=2)[:, self.view]
        # the asking agent last, the others in order
        last = np.argsort(np.arange(N) == few.me[:, None], axis=1, kind="stable")
        self.turns = last[self.view]
        self.slot: IntArray = np.where(self.members, start[self.view], -1)
        self.rho: IntArray = rho[self.view]
        self.count = self._inside().sum(axis=2)
        self.sums, self.value = self._summed(self.rho)

    def sweep(self, number: int) -> Array:
        """Let everyone choose again; return the asking agents' odds of each slot: (W, N)."""
        odds = np.zeros(self.count.shape)
        for agents in self.turns.T:
            odds = self._choose(agents, _noise()[0][number, self.walker, agents])
        return odds

    def correlate(self, number: int) -> None:
        """Choose ρ again, given who is with whom."""
        R, W = self.own.shape
        found = [self._summed(np.full(W, rho)) for rho in range(R)]
        fit = self.own + [value.sum(axis=1) for _, value in found]
        self.rho = (fit.T + _noise()[1][number, self.walker, :R]).argmax(axis=1)
        self.sums = np.stack([sums for sums, _ in found])[self.rho, np.arange(W)]
        self.value = np.stack([value for _, value in found])[self.rho, np.arange(W)]

    def others(self) -> IntArray:
        """Return everyone's slot, −1 for the asking agents and whoever is not there: (W, N)."""
        slot = self.slot.copy()
        slot[np.arange(len(slot)), self.me] = -1
        return slot

    def _inside(self) -> Array:
        """Return 1 where an agent is in a slot: (W, slots, N)."""
        slots = np.arange(self.slot.shape[1])
        return (self.slot[:, None, :] == slots[:, None]).astype(np.float64)

    def _summed(self, rho: IntArray) -> tuple[Array, Array]:
        """Return the sums of every slot, and their log evidence: (W, N, p), (W, N)."""
        sums = self._inside() @ self.few.rows[rho, self.view]
        w, k = np.nonzero(self.count)
        value = np.zeros(self.count.shape)
        value[w, k] = self.few.log_evidence(sums[w, k], self.view[w], rho[w])
        return sums, value

    def _choose(self, agents: IntArray, noise: Array) -> Array:
        """Let one agent of each walker choose its slot again; return its odds: (W, N)."""
        W, N = self.slot.shape
        w = np.flatnonzero(self.members[np.arange(W), agents])
        agent, view, rho = agents[w], self.view[w], self.rho[w]
        row, old = self.few.rows[rho, view, agent], self.slot[w, agent]
        self.count[w, old] -= 1.0
        stay = np.flatnonzero(self.count[w, old] > 0)
        self.value[w, old] = 0.0
        self.sums[w, old] = np.where((self.count[w, old] > 0)[:, None], self.sums[w, old] - row, 0)
        self.value[w[stay], old[stay]] = self.few.log_evidence(
            self.sums[w[stay], old[stay]], view[stay], rho[stay]
        )
        count = self.count[w]
        open_ = count > 0
        open_[np.arange(len(w)), open_.argmin(axis=1)] = True  # and one that is empty
        i, k = np.nonzero(open_)
        joined = np.zeros(count.shape)
        joined[i, k] = self.few.log_evidence(self.sums[w[i], k] + row[i], view[i], rho[i])
        logits = joined - self.value[w] + np.log(np.maximum(count, 1.0))
        logits = np.where(open_, logits, -np.inf)
        new = (logits + noise[w, :N]).argmax(axis=1)
        self.slot[w, agent] = new
        self.count[w, new] += 1.0
        self.sums[w, new] += row
        self.value[w, new] = joined[np.arange(len(w)), new]
        odds = np.zeros((W, N))
        odds[w] = np.exp(logits - logits.max(axis=1, keepdims=True))
        odds[w] /= odds[w].sum(axis=1, keepdims=True)
        return odds


@lru_cache(maxsize=1)
def _noise() -> tuple[Array, Array]:
    """Return Gumbel noise for each sweep and walker: of each agent's slots, and of ρ."""
    rng = np.random.default_rng(0)
    shape = (_WARMING + _KEPT, _WALKERS)
    return rng.gumbel(size=(*shape, MOST, MOST)), rng.gumbel(size=(*shape, MOST))


def _by_view(parts: list[Any], views: int) -> Any:
    """Put together what the walkers of each view found: (W, …) of each sweep -> (B, S, …)."""
    found = np.stack(parts, axis=1)
    return found.reshape(views, -1, *found.shape[2:])


def _counted(slots: IntArray, odds: Array, weight: Array) -> Draws:
    """Count the groups in S draws of each view: slots (B, S, N), odds (B, S, N), ρ (B, S)."""
    B, S, N = slots.shape
    inside = slots[:, :, None, :] == np.arange(N)[:, None]
    view, draw, slot = np.nonzero(inside.any(axis=3))
    members = inside[view, draw, slot]
    codes = members @ (1 << np.arange(N, dtype=np.int64))
    order = np.lexsort((codes, view))  # equal groups of a view side by side
    view, draw, slot, codes = view[order], draw[order], slot[order], codes[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (view[1:] != view[:-1]) | (codes[1:] != codes[:-1])
    first, kind = np.flatnonzero(new), np.cumsum(new) - 1
    total = np.bincount(kind, weights=weight[view, draw], minlength=len(first))
    mine = np.bincount(kind, weights=weight[view, draw] * odds[view, draw, slot])
    view, members = view[first], members[order][first]
    order = np.lexsort((-mine, view))
    place = np.arange(len(order)) - np.searchsorted(view, view[order])
    L = int(place.max(initial=0)) + 1
    found = Draws(np.zeros((B, L, N), dtype=np.bool_), np.zeros((B, L)), np.zeros((B, L)))
    at = view[order], place
    found.members[at] = members[order]
    found.weight[at] = total[order] / S
    found.odds[at] = mine[order] / total[order]
    return found
