r"""Posteriors from sums of features that stand until there is so much more news.

An agent's own observations count at once. Those of others count when there is a share `late` more
of them than when all that had arrived was last looked at (`marginals.py`): σ is then larger than
it need be, never smaller, under a K_z; hypotheses may come to agree as news is looked at, or not.
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.estimates import Estimates
from coopbandits.engines.marginals import Marginals, Rotated
from coopbandits.engines.record import Record
from coopbandits.engines.standing import Standing
from coopbandits.engines.sums import Sums
from coopbandits.engines.views import CutViews, cut_down
from coopbandits.features import Basis
from coopbandits.gp.mixture import Moments
from coopbandits.gp.posterior import Belief, deviation
from coopbandits.gp.residual import residual_covariance, residual_variance
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round

# Offers are worked on in batches of about this many numbers.
_BATCH = 300_000
# A given K_z of more parts keeps so many.
_PARTS = 6
# Views that are worked on together differ by this share of their agents at most.
_ALIKE = 0.2


class LateSums:
    """Every agent's posterior from all but the newest of others' news."""

    def __init__(self, policy: Policy, plan: Plan, basis: Basis, dim: int, late: float) -> None:
        self._policy, self._plan, self._late = policy, plan, late
        V = len(plan.lags)
        self._sums = Sums(plan, policy.kernel, basis, dim)
        self._marginals = Marginals(self._sums, V, policy.ridge)
        self.estimates = Estimates.of(policy, plan, most=_PARTS)
        self._views: list[tuple[CutViews, Rotated]] = []
        self._lags = np.full((V, 0), np.inf)
        self._standing: Standing | None = None

    def bytes_after(self, rounds: int) -> float:
        """How much memory the sums take, with a batch of agents; T does not matter."""
        V, m = len(self._plan.lags), self._sums.m
        _, r = self.estimates.shape
        views = 2 * self.estimates.numbers
        factor = 3 * ((r + 1) * m + 1) ** 2
        batches = views + factor + 2 * V * m * m + 3 * _BATCH
        sums = self._sums.bytes + self._marginals.bytes
        return sums + Standing.bytes(V, m) + 8.0 * batches

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly."""
        V, m = len(self._plan.lags), self._sums.m
        N, r = self.estimates.shape
        looks = rounds * min(1.0, np.log1p(rounds) / (self._late * rounds))
        return rounds * (1e6 + V * 20.0 * m**2) + looks * V * (
            N * (r * m) ** 2 / 2 + ((r + 1.0) * m) ** 3 / 3
        )

    def believe(self, t: int, offer: Round, X: Array, judging: BoolArray, record: Record) -> Belief:
        """Return beliefs at all rows of a round's offer: X (M, ·)."""
        changed = self.estimates.refresh(t, record)
        if t == 1:
            joint = draws(self._policy.act)
            return Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        self._sums.add(t - 1, record)
        if self._standing is None:
            V, m = len(self._plan.lags), self._sums.m
            self._standing = Standing(np.zeros((V, m, m)), self._policy.ridge)
        if changed.size or not self._views:
            self._cut_down()
            self._standing.seen[changed] = 0
        self._look(t, record, self._standing)
        phi = self._sums.features(X)
        return believed(self._standing, self._policy, self._plan, offer, X, phi)

    def _look(self, t: int, record: Record, standing: Standing) -> None:
        """Learn what each agent saw itself, or all that there is where it is so much more."""
        there = np.maximum(t - self._lags, 0.0).sum(axis=1)
        due = there >= np.maximum((1 + self._late) * standing.seen, 1)
        standing.learn(~due, self._sums.newest, record.rewards[t - 2])
        if not due.any():
            return
        moments = Moments(len(due), self._sums.m)
        for views, rotated in self._views:
            at = np.flatnonzero(due[views.whose])
            if at.size:
                seen = self._marginals.of(views.after(t)[at], views.agents[at], rotated.part(at))
                moments.add(views.whose[at], views.weight[at], *seen)
        standing.stand(*moments.whole())
        standing.seen[due] = there[due]

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self.estimates.refreshes

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        return self.estimates.similarity()

    def _cut_down(self) -> None:
        def fits(views: int, fewest: int, most: int, r: int) -> bool:
            return most <= (1 + _ALIKE) * fewest

        self._marginals.reach(float(self.estimates.delta.max()))
        self._views = [
            (views, self._marginals.rotated(views.U, views.delta, views.me))
            for views in cut_down(self.estimates, fits)
        ]
        linked = np.zeros(self.estimates.lags.shape, dtype=np.bool_)
        np.logical_or.at(linked, self.estimates.whose, self.estimates.linked)
        self._lags = np.where(linked, self.estimates.lags, np.inf)


def believed(
    standing: Standing, policy: Policy, plan: Plan, offer: Round, X: Array, phi: Array
) -> Belief:
    """Ask every agent about its own rows of an offer: X (M, ·), φ (M, m)."""
    joint = draws(policy.act)
    belief = Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
    beyond = residual_variance(plan.prior, offer.agents, X, phi)
    for agents in _batches(offer.sizes, phi.shape[1], joint=joint):
        rows, real = offer.padded(agents)
        mean, variance, covariance = standing.ask(phi[rows], agents, joint=joint)
        row = rows[real]
        whose = offer.agents[row]
        if covariance is not None:
            covariance = (covariance * real[:, None, :])[real]
            covariance += residual_covariance(plan.prior, whose, X[row], phi[row], beyond[row])
        Belief(
            mean[real],
            deviation(variance[real] + beyond[row]),
            standing.logdet[whose],
            standing.count[whose],
            covariance,
        ).put(belief, row)
    return belief


def _batches(sizes: IntArray, m: int, *, joint: bool) -> list[IntArray | slice]:
    """Put agents with like numbers of actions together, as many as are worked on at once."""

    def numbers(agents: int, K: int) -> int:
        return agents * K * (m + (K if joint else 0))

    if numbers(len(sizes), int(sizes.max())) <= _BATCH:
        return [slice(None)]  # all of them, as they are
    batches: list[IntArray | slice] = []
    order, first = np.argsort(sizes, kind="stable"), 0
    for last, K in enumerate(sizes[order]):
        if last > first and numbers(last + 1 - first, int(K)) > _BATCH:
            batches.append(order[first:last])
            first = last
    return [*batches, order[first:]]
