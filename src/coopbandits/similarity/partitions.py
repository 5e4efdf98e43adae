r"""Who is with whom? Partitions of agents, drawn from what the data say.

`groups.py` finds one grouping. Early on, and among a few agents for long, many groupings explain
the data about as well, and the best of them claims too much. So partitions are drawn, by Gibbs
sampling: one by one, agents leave their groups and join another or found one, with odds

    p(its data | theirs)·(how many are in it)      or      p(its data)·α

which is a Chinese restaurant process as prior over partitions. How readily agents are on their own,
α, and the correlation ρ within groups are drawn too, from a few values each: where nobody is like
anybody α grows, and everyone is left alone. All else is integrated out, so a draw needs the sums of
`statistics.py` only. A walker starts with nobody placed; agents join one by one whom they find.

For the agent that asks the odds themselves are kept: whoever is in its group, in some draw with
ρ = 1, is a hypothesis, and its weight the mean of its odds. Where ρ is less, groups are a way to
say that tasks vary smoothly, and all such draws make one hypothesis: K_z(u, w) is the mean of ρ
where u and w are together, and of 0 where they are apart.

The random numbers come from who asks and how much it knows, so that they are the same in every
engine, and others for every agent and every estimate.

Most of the work is the evidence of groups, and walkers come back to the same groups again and
again, so it is kept. A group's key is the exclusive or of random numbers: one for each agent in it,
and one for its view and ρ.

Axes: W = B·C walkers, C for each of B views; N agents; slots, one for each group, as many as are
ever in use; Q correlations; p numbers that are summed over the agents of a group.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray

# Every α, as powers of _LARGEST·N, each as likely beforehand: from a few groups among N agents to
# nearly as many as there are agents.
_POWERS = np.array([0.0, 1 / 3, 2 / 3, 1.0])
_LARGEST = 0.75
# How likely each correlation within groups is beforehand.
SHARES = np.array([0.75, 1 / 12, 1 / 12, 1 / 12])
_WALKERS, _WARMING, _KEPT = 4, 2, 3
# So many slots there are at first.
_SLOTS = 8
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
        correlations: (Q,) every ρ, 1 first.
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

    def companies(self) -> "Companies":
        """Draw in whose company the asking agent may be."""
        walk = _Walk(self)
        found, smooth = [], np.zeros((len(self.me), *2 * self.members.shape[1:]))
        share = np.zeros(len(self.me))
        for sweep in range(_WARMING + _KEPT):
            odds = walk.sweep()
            if sweep >= _WARMING:
                found.append(walk.companies(odds))
                some = np.flatnonzero(walk.rho > 0)
                np.add.at(smooth, walk.view[some], walk.together(odds)[some])
                np.add.at(share, walk.view[some], 1.0)
            walk.correlate()
            walk.concentrate()
            if sweep < _WARMING:
                walk.follow_the_best()
        view, key, members, weight = (np.concatenate(part) for part in zip(*found, strict=True))
        # the same company is one hypothesis
        _, first, same = np.unique(key, return_index=True, return_inverse=True)
        total = np.bincount(same, weight).astype(np.float64) / (_WALKERS * _KEPT)
        order = np.lexsort([first, -total, view[first]])
        first = first[order]
        smooth /= np.maximum(share, 1.0)[:, None, None]
        share /= _WALKERS * _KEPT
        return Companies(view[first], members[first], total[order], smooth, share)


@dataclass(frozen=True, eq=False)
class Companies:
    """In whose company the asking agents may be: H of them, the likeliest of each view first.

    Attributes:
        view: (H,) of which view.
        members: (H, N) who is in it, all of one mind; the asking agent is.
        weight: (H,) how likely it is.
        smooth: (B, N, N) K_z, but for its diagonal, if tasks vary smoothly.
        share: (B,) how likely that is.
    """

    view: IntArray
    members: BoolArray
    weight: Array
    smooth: Array
    share: Array


class _Walk:
    """Walkers that go from partition to partition."""

    def __init__(self, few: Few) -> None:
        B, N = few.members.shape
        Q = len(few.correlations)
        W = B * _WALKERS
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
        self.slot: IntArray = np.full((W, N), -1)
        # walkers of a view start from different α and ρ
        which = np.arange(W) % _WALKERS
        self.alphas = alphas(self.members.sum(axis=1))
        self.alpha = self.alphas[np.arange(W), which % len(_POWERS)]
        self.rho: IntArray = np.array([0, Q - 1, 0, Q // 2])[which % 4]
        slots = min(N, _SLOTS)
        self.count = np.zeros((W, slots))
        self.key: IntArray = np.zeros((W, slots), dtype=np.int64)
        self.sums = np.zeros((W, slots, few.rows.shape[-1]))
        self.value = np.zeros((W, slots))
        self.noise = _Noise(few)

    def sweep(self) -> Array:
        """Let everyone choose again; return the asking agents' odds of each slot: (W, slots)."""
        walkers, noise = np.arange(len(self.view)), self.noise.of_slots(self.slot.shape[1])
        for agents in self.turns.T:
            odds = self._choose(agents, noise[walkers, agents])
        return odds

    def correlate(self) -> None:
        """Choose ρ again, given who is with whom."""
        Q, W = self.own.shape
        value = np.stack([self._valued(np.full(W, q)) for q in range(Q)])
        fit = self.own + value.sum(axis=2) + np.log(SHARES)[:Q, None]
        rho = (fit.T + self.noise.of(Q)).argmax(axis=1)
        changed = np.flatnonzero(rho != self.rho)
        self.rho = rho
        self.sums[changed] = self._summed(changed, rho[changed])
        self.value = value[rho, np.arange(W)]

    def concentrate(self) -> None:
        """Choose α again, given how many groups there are: p(partition | α) ∝ α^K Γ(α)/Γ(α + n)."""
        fit = _log_prior(self.count[:, None], self.alphas)
        chosen = (fit + self.noise.of(len(_POWERS))).argmax(axis=1)
        self.alpha = self.alphas[np.arange(len(fit)), chosen]

    def follow_the_best(self) -> None:
        """Let walkers that are lost start again from where the best of their view is.

        Lost is who is less likely by e^N: that is no accident of where N agents happen to be.
        """
        shape = (-1, _WALKERS)
        rows = np.arange(len(self.view))
        size = self.members.sum(axis=1)
        fit = self.own[self.rho, rows] + self.value.sum(axis=1) + np.log(SHARES)[self.rho]
        fit += _log_prior(self.count, self.alpha)
        best = fit.reshape(shape).argmax(axis=1) + np.arange(0, len(rows), _WALKERS)
        leader = np.repeat(best, _WALKERS)
        source = np.where(fit < fit[leader] - size, leader, rows)
        for name in ("slot", "alpha", "rho", "count", "key", "sums", "value"):
            setattr(self, name, getattr(self, name)[source])

    def companies(self, odds: Array) -> tuple[IntArray, IntArray, BoolArray, Array]:
        """Return in whose company asking agents may be: view, key (H,), members (H, N), odds.

        Of walkers with ρ = 1.
        """
        inside = self._inside() > 0  # (W, slots, N)
        walkers = np.arange(len(self.view))
        inside[walkers, :, self.me] = True
        key = np.bitwise_xor.reduce(np.where(inside, self.known.agent, 0), axis=2)
        key ^= self.known.asked[self.view, self.rho][:, None]
        w, k = np.nonzero(odds * (self.rho == 0)[:, None])
        return self.view[w], key[w, k], inside[w, k], odds[w, k]

    def together(self, odds: Array) -> Array:
        """Return ρ where two agents are together, or times the asking agent's odds: (W, N, N)."""
        inside = self._inside()
        inside[np.arange(len(odds)), :, self.me] = odds
        rho = self.few.correlations[self.rho]
        return rho[:, None, None] * (np.swapaxes(inside, 1, 2) @ inside)

    def _inside(self) -> Array:
        """Return 1 where an agent is in a slot: (W, slots, N)."""
        slots = np.arange(self.count.shape[1])
        return (self.slot[:, None, :] == slots[:, None]).astype(np.float64)

    def _summed(self, walkers: IntArray, rho: IntArray) -> Array:
        """Return the sums of every slot of some walkers: (k, slots, p)."""
        return self._inside()[walkers] @ self.few.rows[rho, self.view[walkers]]

    def _valued(self, rho: IntArray) -> Array:
        """Return the log evidence of every slot under some ρ, 0 where it is empty: (W, slots)."""
        value = np.zeros(self.count.shape)
        w, k = np.nonzero(self.count)

        def sums(missing: IntArray) -> Array:
            walkers, place = np.unique(w[missing], return_inverse=True)
            return self._summed(walkers, rho[walkers])[place, k[missing]]

        value[w, k] = self.known.log_evidence(self.key[w, k], self.view[w], rho[w], sums)
        return value

    def _leave(self, w: IntArray, agent: IntArray, row: Array) -> IntArray:
        """Let one agent of some walkers leave its slot, where it has one; return it or −1: (k,)."""
        old = self.slot[w, agent]
        self.slot[w, agent] = -1
        placed = np.flatnonzero(old >= 0)
        w_, k_, key = w[placed], old[placed], self.known.agent[agent[placed]]
        self.count[w_, k_] -= 1.0
        self.key[w_, k_] ^= key
        left = self.count[w_, k_] > 0
        self.sums[w_, k_] = np.where(left[:, None], self.sums[w_, k_] - row[placed], 0.0)
        self.value[w_, k_] = 0.0
        w_, k_ = w_[left], k_[left]
        self.value[w_, k_] = self.known.log_evidence(
            self.key[w_, k_],
            self.view[w_],
            self.rho[w_],
            lambda some: self.sums[w_[some], k_[some]],
        )
        return np.asarray(old)

    def _choose(self, agents: IntArray, noise: Array) -> Array:
        """Let one agent of each walker choose its slot again; return its odds: (W, slots)."""
        W = len(self.view)
        w = np.flatnonzero(self.members[np.arange(W), agents])
        every, agent, view, rho = np.arange(len(w)), agents[w], self.view[w], self.rho[w]
        row, old = self.few.rows[rho, view, agent], self.slot[w, agent]
        whole = np.where(old >= 0, self.value[w, old], 0.0)  # if it goes back to where it was
        self._leave(w, agent, row)
        self._make_room(w)
        count = self.count[w]
        other = count > 0
        empty = other.argmin(axis=1)
        joined = np.zeros(count.shape)
        back = np.flatnonzero(old >= 0)
        joined[back, old[back]] = whole[back]
        other[back, old[back]] = False
        i, k = np.nonzero(other)
        joined[i, k] = self.known.log_evidence(
            self.key[w[i], k] ^ self.known.agent[agent[i]],
            view[i],
            rho[i],
            lambda some: self.sums[w[i[some]], k[some]] + row[i[some]],
        )
        joined[every, empty] = self.alone[rho, view, agent]
        logits = joined - self.value[w]
        logits += np.log(np.where(count > 0, count, self.alpha[w][:, None]))
        logits[(count == 0) & (np.arange(count.shape[1]) != empty[:, None])] = -np.inf
        new = (logits + noise[w, : count.shape[1]]).argmax(axis=1)
        self.slot[w, agent] = new
        self.count[w, new] += 1.0
        self.key[w, new] ^= self.known.agent[agent]
        self.sums[w, new] += row
        self.value[w, new] = joined[every, new]
        odds = np.zeros((W, count.shape[1]))
        odds[w] = np.exp(logits - logits.max(axis=1, keepdims=True))
        odds[w] /= odds[w].sum(axis=1, keepdims=True)
        return odds

    def _make_room(self, w: IntArray) -> None:
        """Add slots, so that every walker of some has an empty one."""
        slots = self.count.shape[1]
        if (self.count[w] == 0).any(axis=1).all():
            return
        more = min(self.slot.shape[1], 2 * slots) - slots
        self.count, self.value = (
            np.pad(part, ((0, 0), (0, more))) for part in (self.count, self.value)
        )
        self.key = np.pad(self.key, ((0, 0), (0, more)))
        self.sums = np.pad(self.sums, ((0, 0), (0, more), (0, 0)))


def alphas(agents: IntArray) -> Array:
    """Return every α, for so many agents: (…) -> (…, 4)."""
    return np.asarray(np.maximum(_LARGEST * agents, 1.0)[..., None] ** _POWERS)


def _log_prior(count: Array, alpha: Array) -> Array:
    """Return log p(partition | α), of slots that hold so many: (…, slots), (…) -> (…)."""
    from scipy.special import gammaln  # noqa: PLC0415 (heavy)

    inside = gammaln(np.maximum(count, 1.0)).sum(axis=-1)
    groups, size = (count > 0).sum(axis=-1), count.sum(axis=-1)
    return np.asarray(inside + groups * np.log(alpha) + gammaln(alpha) - gammaln(alpha + size))


class _Known:
    """The log evidence of groups that was computed already, by key.

    Attributes:
        agent: (N,) what each agent adds to a key.
        asked: (B, Q) what a view and ρ add.
    """

    def __init__(self, few: Few) -> None:
        B, N = few.members.shape
        rng = np.random.default_rng(0)
        highest = np.iinfo(np.int64).max
        self.agent: IntArray = rng.integers(highest, size=(N,))
        self.asked: IntArray = rng.integers(highest, size=(B, len(few.correlations)))
        self._evidence = few.log_evidence
        size = 1 << int(np.ceil(np.log2(_ROOM * B * N)))
        self._keys = np.full(size, -1)
        self._values = np.zeros(size)

    def log_evidence(
        self, key: IntArray, view: IntArray, rho: IntArray, sums: Callable[[IntArray], Array]
    ) -> Array:
        """Return the log evidence of k groups; `sums` returns those of some of them, by index."""
        key = key ^ self.asked[view, rho]
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


class _Noise:
    """What decides where odds leave it open: Gumbel noise, of each view by itself."""

    def __init__(self, few: Few) -> None:
        self._rngs = [np.random.default_rng(seed) for seed in few.seeds]
        self._counts = few.members.sum(axis=1)

    def of_slots(self, N: int) -> Array:
        """Draw for each walker, agent and slot: (W, N, N)."""
        noise = np.zeros((len(self._rngs), _WALKERS, N, N))
        for of_view, rng, count in zip(noise, self._rngs, self._counts, strict=True):
            of_view[:, :count, :count] = rng.gumbel(size=(_WALKERS, count, count))
        return noise.reshape(-1, N, N)

    def of(self, choices: int) -> Array:
        """Draw for each walker and one of so many choices: (W, choices)."""
        return np.concatenate([rng.gumbel(size=(_WALKERS, choices)) for rng in self._rngs])
