r"""Who is with whom among a few agents? Partitions drawn from what the data say.

`groups.py` finds one grouping. Among many agents that is enough: groups are large, and their data
leave little doubt. Among a few each group has two or three agents, several groupings explain the
data about as well, and the best of them claims too much. So there partitions are drawn, by Gibbs
sampling: one by one, agents leave their groups and join another or found one, with odds

    p(its data | theirs)·(how many are in it)      or      p(its data)·α

which is a Chinese restaurant process as prior over partitions. The correlation ρ within groups is
drawn too. All else is integrated out, so a draw needs the sums of `statistics.py` only. The agent
that asks comes last, and for it the odds themselves are kept.

The random numbers come from who asks and how much it knows, so that they are the same in every
engine, and others for every agent and every estimate.

Most of the work is the evidence of groups, and walkers come back to the same groups again and
again, so it is kept. A group's key is the exclusive or of random numbers: one for each agent in it,
and one for its view and ρ.

Axes: W = B·C walkers, C for each of B views; N agents; N slots, one for each group, so that all can
be alone; Q correlations; p numbers that are summed over the agents of a group.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray

# How many agents a group of one's own is worth beforehand: α.
_ALPHA = 2.0
_WALKERS, _WARMING, _KEPT = 4, 4, 4
# Groups whose evidence is kept, for each agent of each view.
_ROOM = 128

# The log evidence of k groups' sums, of which views, under which ρ: (k, p), (k,), (k,) -> (k,)
LogEvidence = Callable[[Array, IntArray, IntArray], Array]


@dataclass(frozen=True, eq=False)
class Few:
    """A few agents in each view, and what is known of them.

    Attributes:
        rows: (Q, B, N, p) what groups add up, under each ρ.
        own: (Q, B, N) what each agent adds to the log evidence, whatever its group.
        log_evidence: Of sums of rows.
        correlations: (Q,) every ρ, all as likely beforehand.
        members: (B, N) who is there; the columns of those come first.
        me: (B,) the column of the agent that asks, which is there.
        seeds: (B, ·) of the random numbers of each view.
    """

    rows: Array
    own: Array
    log_evidence: LogEvidence
    correlations: Array
    members: BoolArray
    me: IntArray
    seeds: IntArray

    def together(self, start: IntArray, rho: IntArray) -> Array:
        """Return the mean of ρ where two agents are together, and 0 where apart: (B, N, N).

        Args:
            start: (B, N) slots of a first partition, for every other walker; the rest start apart.
            rho: (B,) which ρ to start with.
        """
        walk = _Walk(self, start, rho)
        B, N = self.members.shape
        total = np.zeros((B, N, N))
        for sweep in range(_WARMING + _KEPT):
            odds = walk.sweep(sweep)
            if sweep >= _WARMING:
                total += walk.together(odds).reshape(B, _WALKERS, N, N).sum(axis=1)
            walk.correlate(sweep)
        return total / (_WALKERS * _KEPT)


class _Walk:
    """Walkers that go from partition to partition."""

    def __init__(self, few: Few, start: IntArray, rho: IntArray) -> None:
        B, N = few.members.shape
        Q = len(few.correlations)
        self.few = few
        self.view = np.repeat(np.arange(B), _WALKERS)
        self.members = few.members[self.view]
        self.me = few.me[self.view]
        self.own = (few.own * few.members).sum(axis=2)[:, self.view]
        self.known = _Known(few)
        # the log evidence of each agent by itself: (Q, B, N)
        q, view, _ = (index.reshape(-1) for index in np.indices((Q, B, N)))
        flat = few.rows.reshape(Q * B * N, -1)
        self.alone = few.log_evidence(flat, view, q).reshape(Q, B, N)
        # the asking agent last, the others in order
        last = np.argsort(np.arange(N) == few.me[:, None], axis=1, kind="stable")
        self.turns = last[self.view]
        apart = (np.arange(len(self.view)) % 2 == 1)[:, None]
        slot = np.where(apart, np.arange(N), start[self.view])
        self.slot: IntArray = np.where(self.members, slot, -1)
        self.rho: IntArray = rho[self.view]
        inside = self._inside()
        self.count = inside.sum(axis=2)
        keys = np.where(inside > 0, self.known.agent, 0)
        self.key: IntArray = np.asarray(np.bitwise_xor.reduce(keys, axis=2))
        self.sums = self._summed(np.arange(len(self.view)), self.rho)
        self.value = self._valued(self.rho)
        self.slot_noise, self.rho_noise = _noise(few, Q)

    def sweep(self, number: int) -> Array:
        """Let everyone choose again; return the asking agents' odds of each slot: (W, N)."""
        walkers = np.arange(len(self.view))
        for agents in self.turns.T:
            odds = self._choose(agents, self.slot_noise[number, walkers, agents])
        return odds

    def correlate(self, number: int) -> None:
        """Choose ρ again, given who is with whom."""
        Q, W = self.own.shape
        value = np.stack([self._valued(np.full(W, q)) for q in range(Q)])
        fit = self.own + value.sum(axis=2)
        rho = (fit.T + self.rho_noise[number]).argmax(axis=1)
        changed = np.flatnonzero(rho != self.rho)
        self.rho = rho
        self.sums[changed] = self._summed(changed, rho[changed])
        self.value = value[rho, np.arange(W)]

    def together(self, odds: Array) -> Array:
        """Return ρ where two agents are together, or times the asking agent's odds: (W, N, N)."""
        inside = self._inside()
        inside[np.arange(len(odds)), :, self.me] = odds
        rho = self.few.correlations[self.rho]
        return rho[:, None, None] * (np.swapaxes(inside, 1, 2) @ inside)

    def _inside(self) -> Array:
        """Return 1 where an agent is in a slot: (W, slots, N)."""
        slots = np.arange(self.slot.shape[1])
        return (self.slot[:, None, :] == slots[:, None]).astype(np.float64)

    def _summed(self, walkers: IntArray, rho: IntArray) -> Array:
        """Return the sums of every slot of some walkers: (k, N, p)."""
        return self._inside()[walkers] @ self.few.rows[rho, self.view[walkers]]

    def _valued(self, rho: IntArray) -> Array:
        """Return the log evidence of every slot under some ρ, 0 where it is empty: (W, N)."""
        value = np.zeros(self.count.shape)
        w, k = np.nonzero(self.count)

        def sums(missing: IntArray) -> Array:
            walkers, place = np.unique(w[missing], return_inverse=True)
            return self._summed(walkers, rho[walkers])[place, k[missing]]

        value[w, k] = self.known.log_evidence(self.key[w, k], self.view[w], rho[w], sums)
        return value

    def _choose(self, agents: IntArray, noise: Array) -> Array:
        """Let one agent of each walker choose its slot again; return its odds: (W, N)."""
        W, N = self.slot.shape
        w = np.flatnonzero(self.members[np.arange(W), agents])
        every, agent, view, rho = np.arange(len(w)), agents[w], self.view[w], self.rho[w]
        row, old = self.few.rows[rho, view, agent], self.slot[w, agent]
        joined = np.zeros((len(w), N))
        joined[every, old] = self.value[w, old]  # of the old slot, if it goes back to it
        self.count[w, old] -= 1.0
        self.key[w, old] ^= self.known.agent[agent]
        left = self.count[w, old] > 0
        self.sums[w, old] = np.where(left[:, None], self.sums[w, old] - row, 0.0)
        self.value[w, old] = 0.0
        w_, k_ = w[left], old[left]
        self.value[w_, k_] = self.known.log_evidence(
            self.key[w_, k_], view[left], rho[left], lambda some: self.sums[w_[some], k_[some]]
        )
        count = self.count[w]
        other = count > 0
        empty = other.argmin(axis=1)
        other[every, old] = False
        i, k = np.nonzero(other)
        joined[i, k] = self.known.log_evidence(
            self.key[w[i], k] ^ self.known.agent[agent[i]],
            view[i],
            rho[i],
            lambda some: self.sums[w[i[some]], k[some]] + row[i[some]],
        )
        joined[every, empty] = self.alone[rho, view, agent]
        logits = joined - self.value[w] + np.log(np.where(count > 0, count, _ALPHA))
        logits[(count == 0) & (np.arange(N) != empty[:, None])] = -np.inf
        new = (logits + noise[w]).argmax(axis=1)
        self.slot[w, agent] = new
        self.count[w, new] += 1.0
        self.key[w, new] ^= self.known.agent[agent]
        self.sums[w, new] += row
        self.value[w, new] = joined[every, new]
        odds = np.zeros((W, N))
        odds[w] = np.exp(logits - logits.max(axis=1, keepdims=True))
        odds[w] /= odds[w].sum(axis=1, keepdims=True)
        return odds


class _Known:
    """The log evidence of groups that was computed already, by key.

    Attributes:
        agent: (N,) what each agent adds to a key.
    """

    def __init__(self, few: Few) -> None:
        B, N = few.members.shape
        rng = np.random.default_rng(0)
        highest = np.iinfo(np.int64).max
        self.agent: IntArray = rng.integers(highest, size=(N,))
        self._asked: IntArray = rng.integers(highest, size=(B, len(few.correlations)))
        self._evidence = few.log_evidence
        size = 1 << int(np.ceil(np.log2(_ROOM * B * N)))
        self._keys = np.full(size, -1)
        self._values = np.zeros(size)

    def log_evidence(
        self, key: IntArray, view: IntArray, rho: IntArray, sums: Callable[[IntArray], Array]
    ) -> Array:
        """Return the log evidence of k groups; `sums` returns those of some of them, by index."""
        key = key ^ self._asked[view, rho]
        place = key & (len(self._keys) - 1)
        value = self._values[place]
        missing = np.flatnonzero(self._keys[place] != key)
        if missing.size:
            _, first, same = np.unique(key[missing], return_index=True, return_inverse=True)
            some = missing[first]
            found = self._evidence(sums(some), view[some], rho[some])
            value[missing] = found[same]
            self._keys[place[some]], self._values[place[some]] = key[some], found
        return np.asarray(value)


def _noise(few: Few, Q: int) -> tuple[Array, Array]:
    """Return Gumbel noise of each sweep and walker: of agents' slots (·, W, N, N), of ρ (·, W, Q).

    How much of it a view draws must not depend on the other views.
    """
    B, N = few.members.shape
    shape = (_WARMING + _KEPT, _WALKERS)
    slots, rho = np.zeros((*shape, B, N, N)), np.zeros((*shape, B, Q))
    for b, (seed, count) in enumerate(zip(few.seeds, few.members.sum(axis=1), strict=True)):
        rng = np.random.default_rng(seed)
        slots[:, :, b, :count, :count] = rng.gumbel(size=(*shape, count, count))
        rho[:, :, b] = rng.gumbel(size=(*shape, Q))
    W = B * _WALKERS
    return (
        np.swapaxes(slots, 1, 2).reshape(shape[0], W, N, N),
        np.swapaxes(rho, 1, 2).reshape(shape[0], W, Q),
    )
