r"""What may K_z be, to each agent, by now? Weighted hypotheses of the form UUᵀ + diag(δ).

K_z is each agent's own view of those it hears. It is given before the start, or estimated from
sums of what has arrived (`similarity.py`) whenever that is due. This is the one place that asks
whether it is due, estimates it, and drops those who are strangers under it: agents whom no chain of
shared loadings links to the asking one, so that whatever they sent cannot change its posterior.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.compositions import Composition, Hadamard
from coopbandits.gp.network_kernel import LowRankKernel, NetworkKernel
from coopbandits.gp.statistics import pairs
from coopbandits.network import Lags
from coopbandits.similarity.loadings import Loadings, linked, of_rank
from coopbandits.similarity.similarity import Learner, Learnt, Views, estimated, is_due

# Parts of a given K_z below this, relative to the largest, are rounding.
_ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Estimator:
    """How K_z is estimated, and when.

    Attributes:
        similarity: Says when.
        learner: Estimates it.
        composition: How K_z and K_x make K, which says who is a stranger.
    """

    similarity: Learnt
    learner: Learner
    composition: Composition

    def summary_size(self, dim: int) -> int:
        """How many numbers a summary of an observation has: p."""
        attached = np.zeros((1, self.learner.attached(dim)))
        return self.learner.summaries(np.zeros((1, dim)), attached, np.zeros(1)).shape[1]


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """What K_z may be in the views of B agents: H hypotheses in all, those of each agent together.

    Attributes:
        agents: (B, N) whom each agent hears, in order; rows are padded.
        heard: (B, N) False where a row is padded.
        me: (B,) the column of the agent itself.
        U: (H, N, r).
        delta: (H, N).
        whose: (H,) in whose view.
        weight: (H,) how likely each is to its agent.
        linked: (H, N) who is no stranger.
        scale: (H, N) what rewards of each agent are multiplied by (`Loadings.scale`).
        fitted_at: (B,) from how many observations K_z was last estimated.
        state: (B, N, k) what the estimator keeps of each agent for its next estimate.
    """

    agents: IntArray
    heard: BoolArray
    me: IntArray
    U: Array
    delta: Array
    whose: IntArray
    weight: Array
    linked: BoolArray
    scale: Array
    fitted_at: IntArray
    state: IntArray

    @classmethod
    def of(
        cls, lags: Lags, who: IntArray, K_z: NetworkKernel | None, *, most: int | None = None
    ) -> "Hypotheses":
        """Lay out the views of some agents, of a K_z that is given, or of one that is not known.

        Args:
            lags: Of a plan: whom agents hear.
            who: (B,) whose views.
            K_z: None where it is to be estimated: at first everyone is alone.
            most: Of a given view with more parts than this, so many are kept (`of_rank`).
        """
        agents, rounds = lags.views(who)
        heard = np.isfinite(rounds)
        mine = (agents == who[:, None]) & heard
        B, N = agents.shape
        whose, weight = np.arange(B), np.ones(B)
        fitted_at = np.zeros(B, dtype=np.int64)
        ones, state = np.ones((B, N)), np.empty((B, N, 0), dtype=np.int64)
        me = mine.argmax(axis=1)
        if K_z is None:
            U, delta = np.zeros((B, N, 0)), np.ones((B, N))
            return cls(agents, heard, me, U, delta, whose, weight, mine, ones, fitted_at, state)
        U, delta = _given(K_z, agents, heard, me, most)
        return cls(agents, heard, me, U, delta, whose, weight, heard, ones, fitted_at, state)

    def refreshed(
        self, estimator: Estimator, known: IntArray, views: Callable[[IntArray], Views]
    ) -> tuple["Hypotheses", IntArray]:
        """Estimate K_z again for the agents for whom it is due, and return who they are.

        Args:
            estimator: How, and when.
            known: (B,) how many observations have arrived.
            views: What some of the agents (b,) have heard.
        """
        sources = self.heard.sum(axis=1)
        due = np.flatnonzero(is_due(estimator.similarity, known, self.fitted_at, sources))
        if not due.size:
            return self, due
        loadings = estimated(estimator.learner, self.given(views(due), known[due], due))
        if not isinstance(estimator.composition, Hadamard):  # what is scaled is K_z ⊙ K_x
            loadings = loadings.unscaled()
        fitted_at = self.fitted_at.copy()
        fitted_at[due] = known[due]
        return replace(self._put(due, loadings, estimator.composition), fitted_at=fitted_at), due

    def given(self, views: Views, known: IntArray, some: IntArray | None = None) -> Views:
        """Add to the views of some agents, or of all, what an estimate goes on from."""
        at = np.arange(len(self.me)) if some is None else some
        return replace(views, known=known, before=self.fitted_at[at], state=self.state[at])

    def adopted(self, loadings: Loadings, fitted_at: int, composition: Composition) -> "Hypotheses":
        """Let a single agent take K_z to be what was estimated earlier."""
        new = self._put(np.array([0]), loadings, composition)
        return replace(new, fitted_at=np.array([fitted_at]))

    def stored(self) -> dict[str, Any]:
        """Return the arrays that a single agent's K_z can be taken up again from."""
        return {
            "sources": self.agents[0],
            "U": self.U,
            "delta": self.delta,
            "weight": self.weight,
            "scale": self.scale,
            "state": self.state[0],
        }

    @cached_property
    def together(self) -> "list[Batch]":
        """All hypotheses, those that share as many parts together."""
        return batches(self, lambda *sizes: True)

    def matrix(self, h: int) -> Array:
        """K_z under one hypothesis, between those that its agent hears: (n, n)."""
        heard = self.heard[self.whose[h]]
        return Loadings(self.U[h, heard][None], self.delta[h, heard][None]).matrix[0]

    @property
    def expected(self) -> Array:
        """(B, N) each agent's own row of K_z, the mean of what it may be; 0 where padded."""
        H, me = np.arange(len(self.whose)), self.me[self.whose]
        row = np.einsum("hr,hnr->hn", self.U[H, me], self.U)
        row[H, me] += self.delta[H, me]
        row /= self.scale
        expected = np.zeros(self.agents.shape)
        np.add.at(expected, self.whose, self.weight[:, None] * row)
        return expected * self.heard

    def _put(self, due: IntArray, loadings: Loadings, composition: Composition) -> "Hypotheses":
        """Let some agents take K_z to be what was estimated, and the others what it was."""
        kept = ~np.isin(self.whose, due)
        whose = np.concatenate([self.whose[kept], due[loadings.view]])
        order = np.argsort(whose, kind="stable")
        r = max(self.U.shape[2], loadings.U.shape[2])
        U = np.zeros((len(whose), self.agents.shape[1], r))
        old = int(kept.sum())
        U[:old, :, : self.U.shape[2]] = self.U[kept]
        U[old:, :, : loadings.U.shape[2]] = loadings.U
        used = (U != 0).any(axis=(0, 1))
        viewers = due[loadings.view]
        linked_now = linked(loadings, self.me[viewers], composition) & self.heard[viewers]
        state = np.full((*self.heard.shape, loadings.state.shape[2]), -1)
        if self.state.shape == state.shape:
            state[:] = self.state
        state[due] = loadings.state
        return replace(
            self,
            state=state,
            scale=np.concatenate([self.scale[kept], loadings.scale])[order],
            U=U[order, :, : max(1, int(np.flatnonzero(used).max(initial=0)) + 1)],
            delta=np.concatenate([self.delta[kept], loadings.delta])[order],
            linked=np.concatenate([self.linked[kept], linked_now])[order],
            weight=np.concatenate([self.weight[kept], loadings.weight])[order],
            whose=whose[order],
        )


def _given(
    K_z: NetworkKernel, agents: IntArray, heard: BoolArray, me: IntArray, most: int | None
) -> tuple[Array, Array]:
    """Factor a given K_z in each view; padding loads on nothing: U (B, N, r), δ (B, N)."""
    if isinstance(K_z, LowRankKernel) and (most is None or K_z.U.shape[1] <= most):
        return K_z.U[agents] * heard[..., None], K_z.delta[agents] * heard
    parts, delta = [], np.zeros(agents.shape)
    for view, (row, known) in enumerate(zip(agents, heard, strict=True)):
        K = K_z.block(row[known], row[known])
        values, vectors = np.linalg.eigh(K)
        kept = values > _ROUNDING * max(values[-1], 1e-300)
        own = vectors[:, kept] * np.sqrt(values[kept])
        if most is not None and own.shape[1] > most:
            own = of_rank(K[None], me[view : view + 1], most)[0]
            delta[view, known] = np.maximum(np.diagonal(K) - (own**2).sum(axis=1), 0.0)
        U = np.zeros((len(row), own.shape[1]))
        U[known] = own
        parts.append(U)
    r = max(part.shape[1] for part in parts)
    U = np.stack([np.pad(part, ((0, 0), (0, r - part.shape[1]))) for part in parts])
    return U, delta


@dataclass(frozen=True, eq=False)
class Batch:
    """Some hypotheses of like size, cut down to those who count and the parts they share.

    Attributes:
        index: (b,) which hypotheses.
        whose: (b,) in which view each is.
        viewers: (b,) whose view that is.
        agents: (b, n).
        real: (b, n) False pads a row.
        columns: (b, n) where each is in its view.
        me: (b,) the column of the agent itself.
        U: (b, n, r).
        delta: (b, n).
        weight: (b,).
        scale: (b, n) what rewards of each agent are multiplied by.
        wide: Whether there is a column for each of all agents, in order.
    """

    index: IntArray
    whose: IntArray
    viewers: IntArray
    agents: IntArray
    real: BoolArray
    columns: IntArray
    me: IntArray
    U: Array
    delta: Array
    weight: Array
    scale: Array
    wide: bool = False

    @cached_property
    def pairs(self) -> Array:
        """(b, r(r + 1)/2, n) the different numbers of each U_uU_uᵀ."""
        return np.ascontiguousarray(np.swapaxes(pairs(self.U), 1, 2))

    def widened(self, V: int) -> "Batch":
        """Lay the hypotheses out with a column for each of V agents."""
        b, _, r = self.U.shape
        row, column = np.nonzero(self.real)
        at = row, self.agents[row, column]
        real, columns = np.zeros((b, V), dtype=np.bool_), np.zeros((b, V), dtype=np.int64)
        delta, U, scale = np.zeros((b, V)), np.zeros((b, V, r)), np.ones((b, V))
        real[at], columns[at] = True, self.columns[row, column]
        scale[at] = self.scale[row, column]
        delta[at], U[at] = self.delta[row, column], self.U[row, column]
        agents = np.broadcast_to(np.arange(V), (b, V))
        return Batch(
            self.index,
            self.whose,
            self.viewers,
            agents,
            real,
            columns,
            self.viewers,
            U,
            delta,
            self.weight,
            scale,
            wide=True,
        )


# Do so many hypotheses go together, of which the smallest has n agents and the largest n', r parts?
Fits = Callable[[int, int, int, int], bool]


def batches(hypotheses: Hypotheses, fits: Fits) -> list[Batch]:
    """Cut each hypothesis down to those it links, and put those of like size together."""
    linked_, U = hypotheses.linked, hypotheses.U
    used: BoolArray = np.asarray(((U != 0) & linked_[..., None]).any(axis=1))
    n, r = linked_.sum(axis=1), used.sum(axis=1)
    own: BoolArray = np.asarray(((hypotheses.delta > 0) & linked_).any(axis=1))
    order = np.lexsort([n, own, r])
    cut: list[Batch] = []
    start = 0
    while start < len(order):
        first = order[start]
        end = start + 1
        while end < len(order):
            last = order[end]
            if (r[last], own[last]) != (r[first], own[first]):
                break
            if not fits(end + 1 - start, int(n[first]), int(n[last]), int(r[first])):
                break
            end += 1
        most = int(n[order[end - 1]])
        cut.append(_batch(hypotheses, order[start:end], used, most, int(r[first])))
        start = end
    return cut


def _batch(hypotheses: Hypotheses, some: IntArray, used: BoolArray, n: int, r: int) -> Batch:
    """Cut down some hypotheses, all of r parts and up to n agents."""
    whose, inside = hypotheses.whose[some], hypotheses.linked[some]
    columns = np.argsort(~inside, axis=1, kind="stable")[:, :n]
    parts = np.argsort(~used[some], axis=1, kind="stable")[:, :r]
    rows = np.arange(len(some))[:, None]
    real = inside[rows, columns]
    U = hypotheses.U[some][rows[..., None], columns[..., None], parts[:, None, :]]
    return Batch(
        index=some,
        whose=whose,
        viewers=hypotheses.agents[whose, hypotheses.me[whose]],
        agents=hypotheses.agents[whose][rows, columns],
        real=real,
        columns=columns,
        me=(columns == hypotheses.me[whose][:, None]).argmax(axis=1),
        U=U * real[..., None],
        delta=hypotheses.delta[some][rows, columns] * real,
        weight=hypotheses.weight[some],
        scale=np.where(real, hypotheses.scale[some][rows, columns], 1.0),
    )
