r"""K_z out of what was found: of groups, or of groupings that were drawn.

With R_ug the probability that u is in group g, and ρ the correlation within groups,

    K_z = ρRRᵀ + diag(1 − ρ|R_u|²)

so K_z(u, w) is ρ times the probability that u and w are in one group, and what is uncertain is an
agent's own. Where groups are sought thoroughly there are several K_z instead, one for each group in
which the asking agent may be; where groupings are drawn, one for each company: ρ between those in
it, everyone else apart.

Leading axes: B views; N agents; G groups.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.statistics import BATCH
from coopbandits.similarity.crowds import Many
from coopbandits.similarity.groups import CORRELATIONS, Groups, log_normaliser
from coopbandits.similarity.loadings import Loadings
from coopbandits.similarity.partitions import Companies, Few, LogEvidence

# Odds below this are none, and what is as certain is certain: strangers are strangers then.
_SMALLEST = 0.02
# The most companies that a view keeps: of a few agents, and of many.
_OF_FEW, HYPOTHESES = 16, 24
# Among many hardly two draws are the same, and odds are spread thinner.
_RAREST = 0.004
# The most parts of a K_z where tasks vary smoothly.
PARTS = 12
_UNEVEN, _GOLDEN = 1e-3, (5**0.5 - 1) / 2
# Parts of a K_z below this, relative to the largest, are rounding.
_ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Found:
    """What was found in each view.

    Attributes:
        groups: What the agents' data say, under ρ = 1.
        places: (B, N, G) how likely each agent is in each group of the best grouping, if sought.
        rho: (B,) the correlation within groups, likewise.
        members: (B, N) the agents that anything is known of, the asking one included.
        me: (B,) the column of the agent that asks.
        seeds: (B, ·) of what is drawn.
    """

    groups: Groups
    places: Array
    rho: Array
    members: BoolArray
    me: IntArray
    seeds: IntArray

    def loadings(self, few: BoolArray, crowd: BoolArray, *, separate: bool) -> Loadings:
        """Return K_z, of what is drawn among a few agents, or in a crowd: (B,), (B,).

        Elsewhere it is of groups: one, or if they are separate one for each.
        """
        rest, parts = np.flatnonzero(~few & ~crowd), []
        if rest.size:
            left = self._take(rest)
            made = each if separate else packed
            parts.append((rest, made(left.places, left.rho, left.me)))
        for some in self._portions(np.flatnonzero(few)):
            parts.append((some, self._take(some)._drawn()))
        for rho in CORRELATIONS:
            for some in self._portions(np.flatnonzero(crowd & (self.rho == rho))):
                parts.append((some, self._take(some)._drawn_at_once(rho)))
        return Loadings.gathered(self.members.shape, parts)

    def _drawn(self) -> Loadings:
        """Draw in whose company the asking agent may be: each is a K_z, all others apart."""
        at = self._there()
        few = self._few((np.arange(len(at))[:, None], at))
        return loaded(few.companies(), at, few.me, self.members.shape[1], _OF_FEW, _SMALLEST)

    def _drawn_at_once(self, rho: float) -> Loadings:
        """Do the same among many, of one ρ: from the best groups on, everyone at once."""
        at = self._there()
        many = self._many((np.arange(len(at))[:, None], at), rho)
        N = self.members.shape[1]
        whole = loaded(many.companies(), at, many.me, N, HYPOTHESES, _RAREST)
        return Loadings(
            np.sqrt(rho) * whole.U, 1.0 - rho * (1.0 - whole.delta), whole.view, whole.weight
        )

    def _there(self) -> IntArray:
        """Return where those are that anything is known of, then others to fill up: (B, most)."""
        most = int(self.members.sum(axis=1).max())
        return np.argsort(~self.members, axis=1, kind="stable")[:, :most]

    def _many(self, at: tuple[IntArray, IntArray], rho: float) -> Many:
        """Lay out what groupings of the agents at some places are drawn from, under one ρ."""
        groups, places, members = self.groups.under(rho), self.places[at], self.members[at]
        G = places.shape[2]
        rows = groups.shared.compact[at] * members[..., None]
        level = np.repeat(groups.noise, members.shape[1]), np.repeat(groups.ratio, members.shape[1])
        columns = np.ascontiguousarray(rows.reshape(-1, rows.shape[2]).T)
        loner = 1.0 - places.sum(axis=2) > places.max(axis=2)
        return Many(
            rows=rows,
            own=log_normaliser(columns, groups.shared.b.shape[-1], *level).reshape(members.shape),
            noise=groups.noise,
            ratio=groups.ratio,
            groups=G,
            start=np.where(loner, G, places.argmax(axis=2)),
            members=members,
            me=(at[1] == self.me[:, None]).argmax(axis=1),
            seeds=self.seeds,
        )

    def _few(self, at: tuple[IntArray, IntArray]) -> Few:
        """Lay out what partitions of the agents at some places are drawn from."""
        every = [self.groups.under(rho) for rho in CORRELATIONS]
        rows = np.stack([groups.shared.compact[at] for groups in every])
        noise, law = self.groups.noise, self.groups.contexts
        own = np.stack([(one.base - 0.5 * one.shared.q / noise[:, None])[at] for one in every])
        if law is not None:
            sample = np.concatenate([law.n[..., None], law.n[..., None] * law.mean], axis=2)[at]
            rows = np.concatenate([rows, np.broadcast_to(sample, (*own.shape, sample.shape[2]))], 3)
        return Few(
            rows=np.ascontiguousarray(np.moveaxis(rows, 3, 0)),
            own=own,
            log_evidence=self._log_evidence(np.stack([groups.ratio for groups in every])),
            correlations=np.array(CORRELATIONS),
            members=self.members[at],
            me=(at[1] == self.me[:, None]).argmax(axis=1),
            seeds=self.seeds,
        )

    def _log_evidence(self, ratio: Array) -> LogEvidence:
        """Return what gives the log evidence of groups, under κ (Q, B)."""
        noise, law = self.groups.noise, self.groups.contexts
        m, width = self.groups.shared.b.shape[-1], self.groups.shared.compact.shape[-1]

        def of(sums: Array, view: IntArray, q: IntArray) -> Array:
            value = log_normaliser(sums[:width], m, noise[view], ratio[q, view])
            if law is None:
                return value
            return value + law.evidence(sums[width], sums[width + 1 :].T)

        return of

    def _portions(self, views: IntArray) -> list[IntArray]:
        """Cut views of a few agents into portions whose draws fit into memory."""
        most = int(self.members[views].sum(axis=1).max(initial=1))
        m = self.groups.shared.b.shape[-1]
        size = max(1, BATCH // (most * (most + m * m)))
        return [views[start : start + size] for start in range(0, len(views), size)]

    def _take(self, index: IntArray) -> "Found":
        """Take some views, in order."""
        return Found(
            self.groups.take(index),
            self.places[index],
            self.rho[index],
            self.members[index],
            self.me[index],
            self.seeds[index],
        )


def loaded(
    companies: Companies,
    at: IntArray,
    me: IntArray,
    N: int,
    most: int,
    least: float,
) -> Loadings:
    """Make a K_z of each company, and one of all draws in which tasks vary smoothly.

    Whom the asking agent has next to nothing in common with is on its own.

    Args:
        companies: Of B views.
        at: (B, most) the places of their columns.
        me: (B,) the column of the agent that asks, among these.
        N: How many agents a view has.
        most: How many companies a view keeps.
        least: How likely these are.
    """
    B, here = at.shape
    views, share = np.arange(B), companies.share.copy()
    weight = companies.weight.copy()
    known = companies.smooth[views, me] >= _SMALLEST
    known[views, me] = True
    # who is like nobody by any ρ is on its own
    alone = np.flatnonzero(companies.members.sum(axis=1) == 1)
    alone = alone[known.sum(axis=1)[companies.view[alone]] == 1]
    weight[alone] += share[companies.view[alone]]
    share[companies.view[alone]] = 0.0
    rank = np.arange(len(companies.view)) - np.searchsorted(companies.view, companies.view)
    kept = (rank < most) & (weight >= least)
    # where all are unlikely, the likeliest stays
    kept |= (rank == 0) & (share[companies.view] < _SMALLEST)
    smooth = np.flatnonzero(share >= _SMALLEST)
    inside = companies.members[kept]
    width = min(here, PARTS) if smooth.size else 1
    U = np.zeros((len(inside) + len(smooth), here, width))
    U[: len(inside), :, 0] = inside & (inside.sum(axis=1) > 1)[:, None]
    if smooth.size:
        some = known[smooth]
        # parts that are as large as each other are told apart by columns, not by padding
        uneven = 1.0 + _UNEVEN * (np.arange(here) * _GOLDEN % 1.0)
        alike = companies.smooth[smooth] * (some[:, :, None] & some[:, None, :])
        parts = Loadings.of(alike * uneven[:, None] * uneven).U[:, :, -width:] / uneven[:, None]
        size = (parts**2).sum(axis=1, keepdims=True)
        parts *= size > _ROUNDING * size.max(axis=2, keepdims=True)
        # strangers stay strangers, whatever rounding says
        U[len(inside) :] = parts * some[..., None]
    view = np.concatenate([companies.view[kept], smooth])
    weight = np.concatenate([weight[kept], share[smooth]])
    order = np.argsort(view, kind="stable")
    view, weight = view[order], weight[order]
    wide = np.zeros((len(view), N, U.shape[2]))
    wide[np.arange(len(view))[:, None], at[view]] = U[order]
    delta = np.maximum(1.0 - (wide**2).sum(axis=2), 0.0)
    return Loadings(wide, delta, view, weight / np.bincount(view, weight, minlength=B)[view])


def packed(places: Array, rho: Array, me: IntArray) -> Loadings:
    """Keep the groups that the asking agent may be in, and settle what is as good as certain.

    What others share in a group that the asking agent is not in is given back to each as its own:
    K_z between the asking agent and everyone stays, and it learns the same but for what such groups
    say about agents that may be in one of them.
    """
    mine = places[np.arange(len(me)), me] >= _SMALLEST
    R = np.where(places > 1.0 - _SMALLEST, 1.0, places)
    R = np.where((places < _SMALLEST) | ~mine[:, None, :], 0.0, R)
    R *= ((R > 0).sum(axis=1) > 1)[:, None, :]
    order = np.argsort(-R.sum(axis=1), axis=1, kind="stable")
    used = max(1, int((R > 0).any(axis=1).sum(axis=1).max()))
    R = np.take_along_axis(R, order[:, None, :], axis=2)[:, :, :used]
    delta = np.maximum(1.0 - rho[:, None] * (R**2).sum(axis=2), 0.0)
    return Loadings(np.sqrt(rho)[:, None, None] * R, delta)


def each(places: Array, rho: Array, me: IntArray) -> Loadings:
    """Make a K_z of each group that the asking agent may be in: everyone is in one, or on its own.

    Where groups are large this is better than a K_z of averages: under each hypothesis the agent
    learns from a whole group, or from nobody.
    """
    B, N, G = places.shape
    views = np.arange(B)
    inside = np.zeros((B, N, G + 1), dtype=np.bool_)
    inside[..., :G] = places > 0.5
    inside[views, me] = False
    company: BoolArray = np.asarray(inside.any(axis=1))
    # a group without company is as good as none
    odds = places[views, me] * company[:, :G]
    odds = np.hstack([odds, 1.0 - odds.sum(axis=1, keepdims=True)])
    odds = np.where(odds < np.minimum(_SMALLEST, odds.max(axis=1, keepdims=True)), 0.0, odds)
    odds /= odds.sum(axis=1, keepdims=True)
    view, group = np.nonzero(odds)
    U = inside[view, :, group].astype(np.float64)
    U[np.arange(len(view)), me[view]] = group < G
    U *= np.sqrt(rho)[view, None]
    return Loadings(U[..., None], 1.0 - U**2, view, odds[view, group])
