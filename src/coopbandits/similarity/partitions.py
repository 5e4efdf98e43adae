r"""Who is with whom? Partitions of agents, drawn from what the data say.

`groups.py` finds one grouping. Early on, and among a few agents for long, many groupings explain
the data about as well, and the best of them claims too much. So partitions are drawn, by Gibbs
sampling: one by one, agents leave their groups and join another or found one, with odds

    p(its data | theirs)·(how many are in it)      or      p(its data)·α

which is a Chinese restaurant process as prior over partitions. How readily agents are on their own,
α, and the correlation ρ within groups are drawn too, from a few values each: where nobody is like
anybody α grows, and everyone is left alone. All else is integrated out, so a draw needs the sums of
`gp/statistics.py` only. A walker starts with nobody placed; agents join one by one whom they find.

For the agent that asks the odds themselves are kept: whoever is in its group, in some draw with
ρ = 1, is a hypothesis, and its weight the mean of its odds. Where ρ is less, groups are a way to
say that tasks vary smoothly, and all such draws make one hypothesis: K_z(u, w) is the mean of ρ
where u and w are together, and of 0 where they are apart.

The random numbers come from who asks and how much it knows, so that they are the same in every
engine, and others for every agent and every estimate.

Most of the work is the evidence of groups. That of pairs is kept: where nobody is like anybody,
most of what an agent may join are others that are on their own.

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

# The log evidence of k groups' sums, of which views, under which ρ: (p, k), (k,), (k,) -> (k,).
# The sums are scratch then.
LogEvidence = Callable[[Array, IntArray, IntArray], Array]


@dataclass(frozen=True, eq=False)
class Few:
    """A few agents in each view, and what is known of them.

    Attributes:
        rows: (p, Q, B, N) what groups add up, under each ρ.
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
            if sweep:
                walk.correlate()
                walk.concentrate()
            if 0 < sweep <= _WARMING:
                walk.follow_the_best()
            odds = walk.sweep()
            if sweep >= _WARMING:
                found.append(walk.companies(odds))
                some = np.flatnonzero(walk.rho > 0)
                np.add.at(smooth, walk.view[some], walk.together(some, odds))
                np.add.at(share, walk.view[some], 1.0)
        draws = _WALKERS * _KEPT
        smooth /= np.maximum(share, 1.0)[:, None, None]
        return Companies.of(found, draws, smooth, share / draws)


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

    @classmethod
    def of(
        cls,
        found: list[tuple[IntArray, BoolArray, Array]],
        draws: int,
        smooth: Array,
        share: Array,
    ) -> "Companies":
        """Put together what was found in so many draws: view, members and odds of each."""
        view, members, odds = (np.concatenate(part) for part in zip(*found, strict=True))
        # the same company is one hypothesis
        key = np.hstack([view[:, None], np.packbits(members, axis=1)])
        _, first, same = np.unique(key, axis=0, return_index=True, return_inverse=True)
        total = np.bincount(same.reshape(-1), odds).astype(np.float64) / draws
        order = np.lexsort([first, -total, view[first]])
        first = first[order]
        return cls(view[first], members[first], total[order], smooth, share)


class _Walk:
    """Walkers that go from partition to partition."""

    def __init__(self, few: Few) -> None:
        _, Q, B, N = few.rows.shape
        self.few = few
        self.view = np.repeat(np.arange(B), _WALKERS)
        W = len(self.view)
        self.members = few.members[self.view]
        self.me = few.me[self.view]
        self.own = (few.own * few.members).sum(axis=2)[:, self.view]
        # the log evidence of each agent by itself, and of each pair once it is known
        q, view, _ = (index.reshape(-1) for index in np.indices((Q, B, N)))
        self.rows = few.rows.reshape(len(few.rows), -1)
        self.alone = few.log_evidence(self.rows.copy(), view, q).reshape(Q, B, N)
        self.pairs = np.full((Q, B, N, N), np.nan)
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
        self.count: IntArray = np.zeros((W, slots), dtype=np.int64)
        self.names: IntArray = np.zeros((W, slots), dtype=np.int64)
        self.value = np.zeros((W, slots))
        self.sums = np.zeros((len(few.rows), W * slots))
        self.chance = _Chance(few)

    def sweep(self) -> Array:
        """Let everyone choose again; return the asking agents' odds of each slot: (W, slots)."""
        walkers, chance = np.arange(len(self.view)), self.chance.of_agents(self.slot.shape[1])
        for agents in self.turns.T:
            odds = self._choose(agents, chance[walkers, agents])
        return odds

    def correlate(self) -> None:
        """Choose ρ again, given who is with whom."""
        Q, W = self.own.shape
        w, k = np.nonzero(self.count)
        value, sums = np.zeros((Q, *self.count.shape)), []
        for q in range(Q):
            sums.append(self._summed(q))
            value[q, w, k] = self.few.log_evidence(
                sums[q][:, w * self.count.shape[1] + k], self.view[w], np.full(len(w), q)
            )
        fit = self.own + value.sum(axis=2) + np.log(SHARES)[:Q, None]
        self.rho = _drawn(fit.T, self.chance.of_walkers())[0]
        self.value = value[self.rho, np.arange(W)]
        self.sums = np.choose(np.repeat(self.rho, self.count.shape[1]), sums)

    def concentrate(self) -> None:
        """Choose α again, given how many groups there are: p(partition | α) ∝ α^K Γ(α)/Γ(α + n)."""
        fit = _log_prior(self.count[:, None], self.alphas)
        chosen = _drawn(fit, self.chance.of_walkers())[0]
        self.alpha = self.alphas[np.arange(len(fit)), chosen]

    def follow_the_best(self) -> None:
        """Let walkers that are lost start again from where the best of their view is.

        Lost is who is less likely by e^N: that is no accident of where N agents happen to be.
        """
        W, slots = self.count.shape
        rows = np.arange(W)
        size = self.members.sum(axis=1)
        fit = self.own[self.rho, rows] + self.value.sum(axis=1) + np.log(SHARES)[self.rho]
        fit += _log_prior(self.count, self.alpha)
        best = fit.reshape(-1, _WALKERS).argmax(axis=1) + np.arange(0, W, _WALKERS)
        leader = np.repeat(best, _WALKERS)
        source = np.where(fit < fit[leader] - size, leader, rows)
        for name in ("slot", "alpha", "rho", "count", "names", "value"):
            setattr(self, name, getattr(self, name)[source])
        self.sums = self.sums.reshape(-1, W, slots)[:, source].reshape(-1, W * slots)

    def companies(self, odds: Array) -> tuple[IntArray, BoolArray, Array]:
        """Return in whose company asking agents may be: view (H,), members (H, N), odds (H,).

        Of walkers with ρ = 1.
        """
        w, k = np.nonzero(odds * (self.rho == 0)[:, None])
        inside = self.slot[w] == k[:, None]
        inside[np.arange(len(w)), self.me[w]] = True
        return self.view[w], inside, odds[w, k]

    def together(self, some: IntArray, odds: Array) -> Array:
        """Return ρ where two agents are together, or times the asking agent's odds: (k, N, N)."""
        inside = self._inside(some)
        inside[np.arange(len(some)), :, self.me[some]] = odds[some]
        rho = self.few.correlations[self.rho[some]]
        return rho[:, None, None] * (np.swapaxes(inside, 1, 2) @ inside)

    def _inside(self, some: IntArray) -> Array:
        """Return 1 where an agent of some walkers is in a slot: (k, slots, N)."""
        slots = np.arange(self.count.shape[1])
        return (self.slot[some][:, None, :] == slots[:, None]).astype(np.float64)

    def _summed(self, q: int) -> Array:
        """Return the sums of every slot under some ρ: (p, W·slots)."""
        W, slots = self.count.shape
        _, _, B, N = self.few.rows.shape
        inside = self._inside(np.arange(W)).reshape(B, -1, N)
        sums = inside @ self.few.rows[:, q].transpose(1, 2, 0)
        return np.ascontiguousarray(sums.reshape(W * slots, -1).T)

    def _choose(self, agents: IntArray, chance: Array) -> Array:
        """Let one agent of each walker choose its slot again; return its odds: (W, slots)."""
        W = len(self.view)
        _, _, B, N = self.few.rows.shape
        w = np.flatnonzero(self.members[np.arange(W), agents])
        every, agent, view, rho, old = (
            np.arange(len(w)), agents[w], self.view[w], self.rho[w], self.slot[w, agents[w]]
        )  # fmt: skip
        row = self.rows[:, (rho * B + view) * N + agent]
        whole = self.value[w, old]  # if it goes back to where it was
        back = np.flatnonzero(old >= 0)
        self._leave(w[back], old[back], agent[back], row[:, back])
        self._make_room(w)
        slots = self.count.shape[1]
        count = self.count[w]
        # what each group is worth with this agent: known of pairs, and of the group that it left
        joined = np.where(count > 0, np.nan, 0.0)
        i, k = np.nonzero(count == 1)
        joined[i, k] = self.pairs[rho[i], view[i], agent[i], self.names[w[i], k]]
        joined[back, old[back]] = whole[back]
        i, k = np.nonzero(np.isnan(joined))
        # and what the group that it left is worth without it
        left = back[count[back, old[back]] > 1]
        at = np.concatenate([w[i] * slots + k, w[left] * slots + old[left]])
        of = np.concatenate([i, left])
        sums = self.sums[:, at]
        sums[:, : len(i)] += row[:, i]
        worth = self.few.log_evidence(sums, view[of], rho[of])
        joined[i, k], self.value[w[left], old[left]] = worth[: len(i)], worth[len(i) :]
        pair = np.flatnonzero(count[i, k] == 1)
        i, k, worth = i[pair], k[pair], worth[pair]
        name = self.names[w[i], k]
        self.pairs[rho[i], view[i], agent[i], name] = worth
        self.pairs[rho[i], view[i], name, agent[i]] = worth
        empty = (count > 0).argmin(axis=1)
        joined[every, empty] = self.alone[rho, view, agent]
        logits = joined - self.value[w]
        weight = count.astype(np.float64)
        weight[every, empty] = self.alpha[w]
        logits += _log(weight)
        new, its_odds = _drawn(logits, chance[w])
        self.slot[w, agent] = new
        self.count[w, new] += 1
        self.names[w, new] += agent
        self.sums[:, w * slots + new] += row
        self.value[w, new] = joined[every, new]
        odds = np.zeros((W, slots))
        odds[w] = its_odds
        return odds

    def _leave(self, w: IntArray, old: IntArray, agent: IntArray, row: Array) -> None:
        """Let an agent of some walkers leave its slot; what three or more are worth is open."""
        at = w * self.count.shape[1] + old
        self.slot[w, agent] = -1
        self.count[w, old] -= 1
        self.names[w, old] -= agent
        left = self.count[w, old]
        self.sums[:, at] = np.where(left > 0, self.sums[:, at] - row, 0.0)
        name = np.where(left == 1, self.names[w, old], 0)
        self.value[w, old] = np.where(left == 1, self.alone[self.rho[w], self.view[w], name], 0.0)

    def _make_room(self, w: IntArray) -> None:
        """Add slots, so that every walker of some has an empty one."""
        W, slots = self.count.shape
        if (self.count[w] == 0).any(axis=1).all():
            return
        more = min(self.slot.shape[1], 2 * slots) - slots
        self.count, self.names, self.value = (
            np.pad(part, ((0, 0), (0, more))) for part in (self.count, self.names, self.value)
        )
        sums = self.sums.reshape(-1, W, slots)
        self.sums = np.pad(sums, ((0, 0), (0, 0), (0, more))).reshape(-1, W * (slots + more))


def _drawn(logits: Array, chance: Array) -> tuple[IntArray, Array]:
    """Choose by numbers in (0, 1], one for each row; return which, and the odds: (k,), (k, n)."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    below = odds.cumsum(axis=1)
    below /= below[:, -1:]
    return (below < chance[:, None]).sum(axis=1), odds


def alphas(agents: IntArray) -> Array:
    """Return every α, for so many agents: (…) -> (…, 4)."""
    return np.asarray(np.maximum(_LARGEST * agents, 1.0)[..., None] ** _POWERS)


def _log_prior(count: IntArray, alpha: Array) -> Array:
    """Return log p(partition | α), of slots that hold so many: (…, slots), (…) -> (…)."""
    from scipy.special import gammaln  # noqa: PLC0415 (heavy)

    inside = gammaln(np.maximum(count, 1.0)).sum(axis=-1)
    groups, size = (count > 0).sum(axis=-1), count.sum(axis=-1)
    return np.asarray(inside + groups * np.log(alpha) + gammaln(alpha) - gammaln(alpha + size))


def _log(value: Array) -> Array:
    """The logarithm, −inf at 0."""
    with np.errstate(divide="ignore"):
        return np.log(value)


class _Chance:
    """What decides where odds leave it open: numbers in (0, 1], of each view by itself."""

    def __init__(self, few: Few) -> None:
        self._rngs = [np.random.default_rng(seed) for seed in few.seeds]
        self._counts = few.members.sum(axis=1)

    def of_agents(self, N: int) -> Array:
        """Draw one for each walker and agent: (W, N)."""
        chance = np.ones((len(self._rngs), _WALKERS, N))
        for of_view, rng, count in zip(chance, self._rngs, self._counts, strict=True):
            of_view[:, :count] -= rng.random((_WALKERS, count))
        return chance.reshape(-1, N)

    def of_walkers(self) -> Array:
        """Draw one for each walker: (W,)."""
        return 1.0 - np.concatenate([rng.random(_WALKERS) for rng in self._rngs])
