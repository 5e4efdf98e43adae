r"""Who is with whom, among many? Groupings drawn from the best one on, everyone at once.

`partitions.py` draws groupings agent by agent, with all else integrated out. Among many agents that
takes long, and whole groups hardly ever move. Here the groups' weights are drawn too, so that given
these everyone chooses at once, by Gibbs sampling from what `groups.py` found:

    θ_g ~ N(P_g⁻¹ Σ b_u, σ²P_g⁻¹),   P_g = κI + Σ S_u,   over all u in g
    π ~ Dirichlet(½ + how many are in each group, 0.3 + how many are on their own)
    u joins g with odds π_g p(its data | θ_g), or is on its own with odds π_0 p(its data)

For the agent that asks the odds are taken with the weights integrated out, and without its own data
in any group. Whoever is in a group of some draw is a hypothesis then, as in `partitions.py`.

The random numbers come from who asks and how much it knows, as there.

Axes: B views, C walkers in each; N agents; G groups, one more being on one's own; m features.
"""

from dataclasses import dataclass
from functools import cached_property
from math import isqrt

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.statistics import column_draws, half
from coopbandits.similarity.groups import log_normaliser
from coopbandits.similarity.partitions import Companies

_WALKERS, _WARMING, _KEPT = 4, 12, 3
# Of so many sweeps, once everyone has settled, the last is kept.
_APART = 2
# What a group, and being on one's own, are worth in agents beforehand.
_GROUP, _OWN = 0.5, 0.3
# Odds below this make no hypothesis.
_NONE = 1e-4


@dataclass(frozen=True, eq=False)
class Many:
    """Many agents in each view, and what is known of them, under some ρ.

    Attributes:
        rows: (B, N, h + m + 1) what groups add up; 0 of who is not there.
        own: (B, N) the log evidence of each by itself, without what it adds to any group's.
        noise: (B,) σ².
        ratio: (B,) κ.
        groups: How many there may be.
        start: (B, N) in which of these each is at first; on its own is one more.
        members: (B, N) who is there; the columns of those come first.
        me: (B,) the column of the agent that asks, which is there.
        seeds: (B, ·) of the random numbers of each view.
    """

    rows: Array
    own: Array
    noise: Array
    ratio: Array
    groups: int
    start: IntArray
    members: BoolArray
    me: IntArray
    seeds: IntArray

    def companies(self) -> Companies:
        """Draw in whose company the asking agent may be."""
        rngs = [np.random.default_rng(seed) for seed in self.seeds]
        start = np.where(self.members, self.start, -1)
        slot: IntArray = np.repeat(start[:, None, :], _WALKERS, axis=1)
        found = []
        for sweep in range(_WARMING + _APART * _KEPT):
            slot = self._swept(slot, rngs)
            if sweep >= _WARMING and (sweep - _WARMING) % _APART == _APART - 1:
                found.append(self._asked(slot))
        B, N = self.members.shape
        nothing = np.zeros((B, N, N)), np.zeros(B)
        return Companies.of(found, _WALKERS * _KEPT, *nothing)

    def _swept(self, slot: IntArray, rngs: list[np.random.Generator]) -> IntArray:
        """Let everyone choose again: (B, C, N)."""
        B, C, N = slot.shape
        G, m = self.groups, self._m
        i, j, _ = half(m)
        sums, count = self._pooled(slot)
        columns = np.ascontiguousarray(sums[..., :-1].reshape(B * C * G, -1).T)
        columns[: len(i)][i == j] += np.repeat(self.ratio, C * G)
        chance = np.stack([rng.standard_normal((C, G, m)) for rng in rngs])
        noise = self.noise[:, None, None, None]
        chance = (chance * np.sqrt(noise)).reshape(-1, m).T
        theta = column_draws(columns, chance).T.reshape(B, C, G, m)
        worth = np.array([*[_GROUP] * G, _OWN])
        share = np.stack(
            [rng.standard_gamma(of + worth) for rng, of in zip(rngs, count, strict=True)]
        )
        # log p(data | θ) is linear in the data's sums; each cell off the diagonal stands for two
        twice = np.where(i == j, 1.0, 2.0)
        by = np.zeros((B, C, G + 1, self._facts.shape[1]))
        by[:, :, :G, : len(i)] = theta[..., i] * theta[..., j] * (-0.5 * twice / noise)
        by[:, :, :G, len(i) : -2] = theta / noise
        by[:, :, G, -2] = 1.0
        by[..., -1] = np.log(share)
        odds = (by.reshape(B, C * (G + 1), -1) @ self._facts).reshape(B, C, G + 1, N)
        odds -= odds.max(axis=2, keepdims=True)
        np.exp(odds, out=odds)
        for g in range(1, G + 1):
            odds[:, :, g] += odds[:, :, g - 1]
        chance = np.ones((B, C, N))
        for of_view, rng, here in zip(chance, rngs, self.members.sum(axis=1), strict=True):
            of_view[:, :here] -= rng.random((C, here))
        chance *= odds[:, :, G]
        chosen = (odds < chance[:, :, None]).sum(axis=2)
        return np.where(self.members[:, None], chosen, -1)

    def _asked(self, slot: IntArray) -> tuple[IntArray, BoolArray, Array]:
        """Return in whose company asking agents may be: view (H,), members (H, N), odds (H,)."""
        B, C, _ = slot.shape
        G, views = self.groups, np.arange(B)
        others = slot.copy()
        others[views, :, self.me] = -1
        rest, count = self._pooled(others)
        mine = self.rows[views, self.me][:, None, None]
        noise, ratio = (np.repeat(level, C * G) for level in (self.noise, self.ratio))
        joined, left = (
            log_normaliser(
                np.ascontiguousarray(sums.reshape(B * C * G, -1).T), self._m, noise, ratio
            )
            for sums in (rest + mine, rest)
        )
        logits = np.empty((B, C, G + 1))
        logits[..., :G] = (joined - left).reshape(B, C, G) + np.log(count[..., :G] + _GROUP)
        logits[..., G] = self.own[views, self.me][:, None] + np.log(count[..., G] + _OWN)
        odds = np.exp(logits - logits.max(axis=2, keepdims=True))
        odds /= odds.sum(axis=2, keepdims=True)
        # a group without company is as good as none
        empty = count[..., :G] == 0
        odds[..., G] += (odds[..., :G] * empty).sum(axis=2)
        odds[..., :G] *= ~empty
        view, walker, group = np.nonzero(odds > _NONE)
        company = (others[view, walker] == group[:, None]) & (group < G)[:, None]
        company[np.arange(len(view)), self.me[view]] = True
        return view, company, odds[view, walker, group]

    @property
    def _m(self) -> int:
        """How many features there are: rows hold m(m + 1)/2 + m + 1 numbers."""
        return (isqrt(8 * self.rows.shape[2] + 1) - 3) // 2

    @cached_property
    def _facts(self) -> Array:
        """What the log odds of a place are linear in: sums, log evidence by itself, and 1.

        (B, h + m + 2, N).
        """
        own = self.own[..., None]
        return np.ascontiguousarray(
            np.swapaxes(np.concatenate([self.rows[..., :-1], own, np.ones_like(own)], axis=2), 1, 2)
        )

    def _pooled(self, slot: IntArray) -> tuple[Array, Array]:
        """Return the sums of every group, and how many are in each, and on their own.

        (B, C, G, h + m + 1), (B, C, G + 1).
        """
        B, C, N = slot.shape
        inside = slot[:, :, None, :] == np.arange(self.groups + 1)[:, None]
        weight = inside[:, :, :-1].astype(np.float64).reshape(B, -1, N)
        return (weight @ self.rows).reshape(B, C, self.groups, -1), inside.sum(axis=3)
