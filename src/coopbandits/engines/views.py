"""Whom does each agent's belief depend on? Views, cut down to those who count."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.estimates import Estimates
from coopbandits.gp.statistics import pairs


@dataclass(frozen=True, eq=False)
class CutViews:
    """Some agents' views, cut down: whose (B,), agents and lags (B, N), me (B,), U, δ.

    An agent to which K_z may be one of several has a view for each, of that weight (B,). `wide`
    views have a column for each of all agents, in order.
    """

    whose: IntArray
    agents: IntArray
    lags: Array
    me: IntArray
    U: Array
    delta: Array
    weight: Array
    wide: bool = False

    @cached_property
    def pairs(self) -> Array:
        """(B, r(r + 1)/2, N) the different numbers of each U_uU_uᵀ."""
        return np.ascontiguousarray(np.swapaxes(pairs(self.U), 1, 2))

    def after(self, t: int) -> IntArray:
        """The last round of each agent that has arrived by the decisions of round t: (B, N)."""
        return (t - np.minimum(self.lags, t)).astype(np.int64)

    def widened(self, V: int) -> "CutViews":
        """Lay the views out with a column for each of V agents."""
        B, _, r = self.U.shape
        row, column = np.nonzero(np.isfinite(self.lags))
        at = row, self.agents[row, column]
        lags, delta, U = np.full((B, V), np.inf), np.zeros((B, V)), np.zeros((B, V, r))
        lags[at], delta[at], U[at] = (
            self.lags[row, column], self.delta[row, column], self.U[row, column]
        )  # fmt: skip
        agents = np.broadcast_to(np.arange(V), (B, V))
        return CutViews(self.whose, agents, lags, self.whose, U, delta, self.weight, wide=True)


# Do so many views go together, of which the smallest has N agents and the largest N', and r parts?
Fits = Callable[[int, int, int, int], bool]


def cut_down(estimates: Estimates, fits: Fits) -> list[CutViews]:
    """Cut each view down to those it is linked to, and put views of like size together."""
    linked = estimates.linked & np.isfinite(estimates.lags[estimates.whose])
    used = ((estimates.U != 0) & linked[..., None]).any(axis=1)
    N, r = linked.sum(axis=1), used.sum(axis=1)
    own = ((estimates.delta > 0) & linked).any(axis=1)
    order = np.lexsort([N, own, r])
    cut: list[CutViews] = []
    start = 0
    while start < len(order):
        first = order[start]
        end = start + 1
        while end < len(order):
            last = order[end]
            if (r[last], own[last]) != (r[first], own[first]):
                break
            if not fits(end + 1 - start, int(N[first]), int(N[last]), int(r[first])):
                break
            end += 1
        most = int(N[order[end - 1]])
        cut.append(_part(estimates, order[start:end], linked, used, most, int(r[first])))
        start = end
    return cut


def _part(
    estimates: Estimates, some: IntArray, linked: BoolArray, used: BoolArray, N: int, r: int
) -> CutViews:
    """Cut down some hypotheses, all of r parts and up to N agents."""
    whose = estimates.whose[some]
    first = np.argsort(~linked[some], axis=1, kind="stable")[:, :N]
    columns = np.argsort(~used[some], axis=1, kind="stable")[:, :r]
    rows = np.arange(len(some))[:, None]
    real = linked[some][rows, first]
    U = estimates.U[some][rows[..., None], first[..., None], columns[:, None, :]]
    return CutViews(
        whose=whose,
        agents=estimates.agents[whose][rows, first],
        lags=np.where(real, estimates.lags[whose][rows, first], np.inf),
        me=(first == estimates.me[whose][:, None]).argmax(axis=1),
        U=U * real[..., None],
        delta=estimates.delta[some][rows, first] * real,
        weight=estimates.weight[some],
    )
