r"""Posteriors from sums, for any K_z = UUᵀ + diag(δ), each agent with its own (`weights.py`).

Agents that are no strangers to the asking one are few once groups are settled: each view is cut
down to them and to the parts they share, and views of like size are worked on together.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.compositions import JointKernel
from coopbandits.engines.estimates import Estimates
from coopbandits.engines.marginals import Marginals, Rotated
from coopbandits.engines.record import Record
from coopbandits.engines.sums import Sums
from coopbandits.features import Basis
from coopbandits.policy import Plan, Policy
from coopbandits.posterior import Belief, deviation
from coopbandits.problems.problem import Round
from coopbandits.statistics import Statistics, pairs, unpacked
from coopbandits.weights import OwnPart, Weights

# Where exactness is given up for speed, a given K_z of more parts keeps so many.
_PARTS = 6
# Views are worked on in batches of about this many numbers.
_BATCH = 300_000
# Covariances are updated in batches of about this many numbers, which stay in a core's cache.
_CACHE = 100_000
# A view of more than this share of all agents is as wide as all of them.
_WIDE = 0.3
# With more features than this, one matrix for each agent takes longer than one for each view.
_NARROW = 24


@dataclass(frozen=True, eq=False)
class _Views:
    """Some agents' views, cut down: whose (B,), agents and lags (B, N), me (B,), U, δ."""

    whose: IntArray
    agents: IntArray
    lags: Array
    me: IntArray
    U: Array
    delta: Array
    wide: bool = False
    rotated: Rotated | None = None

    @cached_property
    def pairs(self) -> Array:
        """(B, r(r + 1)/2, N) the different numbers of each U_uU_uᵀ."""
        return np.ascontiguousarray(np.swapaxes(pairs(self.U), 1, 2))

    def after(self, t: int) -> IntArray:
        """The last round of each agent that has arrived by the decisions of round t: (B, N)."""
        return (t - np.minimum(self.lags, t)).astype(np.int64)


class _Standing:
    """What V agents believe of their weights, and how much news they have looked at.

    Attributes:
        mean: (V, m).
        covariance: (V, m, m).
        logdet: (V,).
        count: (V,).
        seen: (V,) how many observations there were when all of them were last looked at.
    """

    def __init__(self, V: int, m: int) -> None:
        self.mean, self.covariance = np.zeros((V, m)), np.zeros((V, m, m))
        self.logdet = np.zeros(V)
        self.count = np.zeros(V, dtype=np.int64)
        self.seen = np.zeros(V, dtype=np.int64)

    def forget(self, agents: IntArray) -> None:
        """Let some agents look at everything again."""
        self.seen[agents] = 0

    def stand(
        self, agents: IntArray, mean: Array, covariance: Array, logdet: Array, count: IntArray
    ) -> None:
        """Let some agents believe what follows from all that has arrived: (B, m), …, (B,)."""
        self.mean[agents], self.covariance[agents] = mean, covariance
        self.logdet[agents], self.count[agents] = logdet, count
        self.seen[agents] = count

    def learn(self, agents: IntArray, phi: Array, y: Array, ridge: float) -> None:
        """Learn one observation of each agent's own: (B,), (B, m), (B,)."""
        size = max(1, _CACHE // phi.shape[1] ** 2)
        for start in range(0, len(agents), size):
            some = slice(start, start + size)
            self._learn(agents[some], phi[some], y[some], ridge)

    def _learn(self, agents: IntArray, phi: Array, y: Array, ridge: float) -> None:
        C = self.covariance[agents]
        gain = (C @ phi[..., None])[..., 0]
        variance = np.einsum("bm,bm->b", gain, phi)
        surprise = y - np.einsum("bm,bm->b", phi, self.mean[agents])
        self.mean[agents] += gain * (surprise / (ridge + variance))[:, None]
        C -= gain[:, :, None] * gain[:, None, :] / (ridge + variance)[:, None, None]
        self.covariance[agents] = C
        self.logdet[agents] += np.log1p(variance / ridge)
        self.count[agents] += 1


class MixedSums:
    """Every agent's posterior from the statistics of those it has heard from.

    With `late` above 0, an agent's own observations count at once, but those of others only when
    there are so many more, as a share of all that it has looked at: its belief is that of all but
    the newest of others' news.
    """

    def __init__(
        self, policy: Policy, plan: Plan, basis: Basis, dim: int, late: float = 0.0
    ) -> None:
        self._policy, self._plan, self._late = policy, plan, late
        self._sums = Sums(plan, policy.kernel, basis, dim)
        self.estimates = Estimates(policy, plan)
        if plan.learner is None:
            assert isinstance(plan.kernel, JointKernel)
            self.estimates.give(plan.kernel.K_z, most=_PARTS if late else None)
        self._views: list[_Views] = []
        self._standing = _Standing(len(plan.lags), self._sums.m if late else 0)
        self._marginals: Marginals | None = None
        if late:
            self._marginals = Marginals(self._sums, len(plan.lags), policy.ridge)

    def bytes_after(self, rounds: int) -> float:
        """How much memory the sums take, with a batch of agents; T does not matter."""
        N, r = self._shape()
        largest = (r + 1) * self._sums.m + 64
        views = self.estimates.U.shape[0] * N * (r + 4)
        levels = self._marginals.bytes if self._marginals else 0.0
        return self._sums.bytes + levels + 8.0 * (2 * views + 3 * _BATCH + 3 * largest**2)

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly."""
        V, m = len(self._plan.lags), self._sums.m
        N, r = self._shape()
        if self._plan.learner is not None:
            r = min(r, 12)  # a guess: how many parts are shared is known to the data only
        D = (r + 1) * m + 9
        return rounds * (1e6 + V * (1e5 + N * (r * m) ** 2 / 2 + 2 * N * m**3 + D**3 / 2))

    def believe(self, t: int, offer: Round, X: Array, judging: BoolArray, record: Record) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: X (M, ·), (V,)."""
        joint = draws(self._policy.act)
        belief = Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        changed = np.empty(0, dtype=np.int64)
        if self._plan.learner is not None:
            changed = self.estimates.refresh(t, record)
        if t == 1:
            return belief
        self._sums.add(t - 1, record)
        if changed.size or not self._views:
            self._views = self._cut_down()
        phi = self._sums.features(X)
        beyond = self._plan.outside(offer.agents, X, phi)
        if self._late:
            self._standing.forget(changed)
        for views in self._views:
            if not judging[views.whose].any():
                continue
            sizes, starts = offer.sizes[views.whose], offer.starts[views.whose]
            place = np.arange(int(sizes.max()))
            rows = starts[:, None] + np.minimum(place, sizes[:, None] - 1)
            if self._late:
                mean, left, right, logdet, count = self._stand(t, views, phi[rows], record)
            else:
                mean, left, right, logdet, count = self._afresh(t, views, phi[rows])
            real = place < sizes[:, None]
            view, column = np.nonzero(real)
            row = rows[view, column]
            variance = np.einsum("bkd,bkd->bk", left, right)[view, column] + beyond[row]
            covariance = None
            if joint:
                covariance = (left @ np.swapaxes(right, 1, 2))[view, column] * real[view]
                covariance += self._plan.outside_jointly(
                    offer.agents[row], X[row], phi[row], beyond[row]
                )
            Belief(
                mean[view, column], deviation(variance), logdet[view], count[view], covariance
            ).put(belief, row)
        return belief

    def _pooled(self, t: int, views: _Views) -> tuple[Weights, IntArray]:
        """Pool all that has arrived, and count it."""
        if views.wide:
            return self._pooled_wide(t, views)
        statistics = self._sums.statistics(
            views.after(t), views.agents, spectrum=bool(views.delta.any())
        )
        weights = Weights.pooled(views.U, views.delta, views.me, statistics, self._policy.ridge)
        return weights, statistics.n.sum(axis=1).astype(np.int64)

    def _pooled_wide(self, t: int, views: _Views) -> tuple[Weights, IntArray]:
        """Pool what has arrived where nearly everyone counts: columns are all V agents in order.

        What an agent has sent is then the same for all who have it, and
        S̃ = Σ_k s_k/(1 + cs_k) q_kq_kᵀ is a product of one small matrix for each agent with the
        views' numbers.
        """
        ridge, m, B = self._policy.ridge, self._sums.m, len(views.whose)
        rows = np.arange(B)
        share = views.delta / ridge
        share[rows, views.me] = 0.0
        lags = np.unique(views.lags[np.isfinite(views.lags)]).astype(np.int64)
        blocks = np.zeros((B, views.pairs.shape[1], m * (m + 1) // 2))
        c, logdet, count = np.zeros((B, views.U.shape[2], m)), np.zeros(B), np.zeros(B)
        for lag in lags:
            if t - lag < 1:
                continue
            here = views.lags == lag
            sums = Statistics.of(self._sums.rows(t - lag), m)
            weight, loading = views.pairs, views.U
            if len(lags) > 1:
                weight, loading = weight * here[:, None, :], loading * here[..., None]
            count += here @ sums.n
            if not share.any():
                blocks += weight @ sums.packed
                c += np.swapaxes(loading, 1, 2) @ sums.b
                continue
            s, Q, projected, outer = self._sums.spread(t - lag)
            grown = 1.0 + share[..., None] * s
            S = np.swapaxes(np.swapaxes(s / grown, 0, 1) @ outer, 0, 1)
            b = np.swapaxes(np.swapaxes(projected / grown, 0, 1) @ np.swapaxes(Q, 1, 2), 0, 1)
            blocks += weight @ S
            c += np.swapaxes(loading, 1, 2) @ b
            logdet += (_log_product(grown) * here).sum(axis=1)
        mine = Statistics.of(self._sums.rows(t - 1)[views.whose], m)
        own = OwnPart(views.U[rows, views.me], views.delta[rows, views.me], mine.S, mine.b)
        return Weights.of(*unpacked(blocks, c), own, logdet, ridge), count.astype(np.int64)

    def _afresh(
        self, t: int, views: _Views, phi: Array
    ) -> tuple[Array, Array, Array, Array, IntArray]:
        """Return what all news say of features (B, K, m).

        Returns:
            The mean (B, K), two arrays (B, K, ·) whose product is the covariance, log det (B,) and
            count (B,).
        """
        weights, count = self._pooled(t, views)
        mean, Z, logdet = weights.ask(phi)
        return mean, self._policy.ridge * Z, Z, logdet, count

    def _stand(
        self, t: int, views: _Views, phi: Array, record: Record
    ) -> tuple[Array, Array, Array, Array, IntArray]:
        """Return the same from beliefs that stand until there is so much more news."""
        standing, ridge, whose = self._standing, self._policy.ridge, views.whose
        after = views.after(t)
        there = after.sum(axis=1)
        due = there >= np.maximum((1 + self._late) * standing.seen[whose], 1)
        if due.any():
            at = np.flatnonzero(due)
            assert self._marginals is not None
            assert views.rotated is not None
            seen = self._marginals.of(after[at], views.agents[at], views.rotated.part(at))
            standing.stand(whose[at], *seen)
        waiting = whose[~due]
        if waiting.size:
            mine = self._sums.newest(np.full(len(waiting), t - 1), waiting)
            standing.learn(waiting, mine, record.rewards[t - 2, waiting], ridge)
        mean = np.einsum("bkm,bm->bk", phi, standing.mean[whose])
        spread = phi @ standing.covariance[whose]
        return mean, spread, phi, standing.logdet[whose], standing.count[whose]

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self.estimates.refreshes

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        if isinstance(self._plan.kernel, JointKernel) and self._plan.learner is None:
            return np.where(np.isfinite(self._plan.lags), self._plan.kernel.K_z, 0.0)
        return self.estimates.similarity()

    def _shape(self) -> tuple[int, int]:
        """How many agents a view has, and how many parts they share, at most."""
        N, r = self.estimates.U.shape[1:]
        return N, N if self._plan.learner is not None else r

    def _cut_down(self) -> list[_Views]:
        """Cut each view down to those it is linked to, and put views of like size together."""
        estimates, m = self.estimates, self._sums.m
        linked = estimates.linked & np.isfinite(estimates.lags)
        used = ((estimates.U != 0) & linked[..., None]).any(axis=1)
        N, r = linked.sum(axis=1), used.sum(axis=1)
        own = ((estimates.delta > 0) & linked).any(axis=1)
        order = np.lexsort([N, own, r])
        cut: list[_Views] = []
        if self._marginals is not None:
            self._marginals.reach(float(estimates.delta.max()))
        start, V = 0, len(N)
        widest = _WIDE * V if m <= _NARROW and not self._late else np.inf
        while start < len(order):
            rank, alike = r[order[start]], (r[order[start]], own[order[start]])
            wide = bool(widest < N[order[start]])
            end, most = start, 0
            while end < len(order) and (r[order[end]], own[order[end]]) == alike:
                if (widest < N[order[end]]) != wide:
                    break
                numbers = (end + 1 - start) * (
                    N[order[end]] * (m + 1) ** 2 + ((rank + 1) * m + 9) ** 2
                )
                if end > start and numbers > (10 * _BATCH if self._late else _BATCH):
                    break
                most = max(most, int(N[order[end]]))
                end += 1
            whose = order[start:end]
            part = self._part(whose, linked, used, most, int(rank))
            cut.append(_widened(part, V) if wide else part)
            start = end
        return cut

    def _part(self, whose: IntArray, linked: BoolArray, used: BoolArray, N: int, r: int) -> _Views:
        estimates = self.estimates
        first = np.argsort(~linked[whose], axis=1, kind="stable")[:, :N]
        columns = np.argsort(~used[whose], axis=1, kind="stable")[:, :r]
        rows = np.arange(len(whose))[:, None]
        real = linked[whose][rows, first]
        U = estimates.U[whose][rows[..., None], first[..., None], columns[:, None, :]]
        views = _Views(
            whose=whose,
            agents=estimates.agents[whose][rows, first],
            lags=np.where(real, estimates.lags[whose][rows, first], np.inf),
            me=(first == estimates.me[whose][:, None]).argmax(axis=1),
            U=U * real[..., None],
            delta=estimates.delta[whose][rows, first] * real,
        )
        if self._marginals is None:
            return views
        return replace(views, rotated=self._marginals.rotated(views.U, views.delta, views.me))


def _widened(views: _Views, V: int) -> _Views:
    """Lay views out with a column for each of V agents."""
    B, _, r = views.U.shape
    row, column = np.nonzero(np.isfinite(views.lags))
    at = row, views.agents[row, column]
    lags, delta, U = np.full((B, V), np.inf), np.zeros((B, V)), np.zeros((B, V, r))
    lags[at], delta[at], U[at] = (
        views.lags[row, column], views.delta[row, column], views.U[row, column]
    )  # fmt: skip
    agents = np.broadcast_to(np.arange(V), (B, V))
    return _Views(views.whose, agents, lags, views.whose, U, delta, wide=True)


def _log_product(values: Array) -> Array:
    """Return Σ log over the last axis, with a logarithm for eight numbers together."""
    total = np.zeros(values.shape[:-1])
    for start in range(0, values.shape[-1], 8):
        total += np.log(values[..., start : start + 8].prod(axis=-1))
    return total
