r"""Lazy updates: posteriors from statistics that stand until there is so much more news.

An agent's own observations count at once, by recursive regression. Those of others count when there
is a share `laziness` more of them than when all that had arrived was last looked at
(`gp/marginals.py`), so a belief rests on at least 1/(1 + laziness) of all that arrived. σ is then
larger than it need be, never smaller, under a K_z; hypotheses may come to agree as news is looked
at, or not. At 0 all that has arrived counts, and nothing is approximated.
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray
from coopbandits.engines.by_lags import Record, last_rounds, rolling
from coopbandits.engines.recursive import RecursiveRegression, with_ones
from coopbandits.engines.views import AllViews
from coopbandits.gp.marginals import Marginals, Rotated
from coopbandits.gp.mixture import Moments
from coopbandits.gp.posterior import Belief
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round
from coopbandits.similarity.hypotheses import Batch, batches

# By how much others' news may be late, unless a run says otherwise.
LAZINESS = 0.1
# A given K_z of more parts keeps so many.
PARTS = 6
# Views that are worked on together differ by this share of their agents at most.
_ALIKE = 0.2


class LazyStatistics:
    """Every agent's posterior from all but the newest of others' news."""

    def __init__(self, policy: Policy, plan: Plan, m: int, laziness: float) -> None:
        # what fades is no longer what recursive regression has learnt
        laziness = laziness if policy.forget is None else 0.0
        self._policy, self._laziness = policy, laziness
        V = len(plan.lags)
        self._sums = rolling(policy, plan, m)
        self._marginals = Marginals(self._sums, V, policy.ridge, rounded=laziness > 0)
        self._views = AllViews(plan, most=PARTS if laziness else None)
        self._batches: list[tuple[Batch, Array, Rotated]] = []
        self._linked: list[BoolArray] = []
        size = m if policy.constants is None else m + 1  # (θ, c) of each agent
        self._regression = RecursiveRegression(np.zeros((V, size, size)), policy.ridge)

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self._views.refreshes

    @property
    def views(self) -> AllViews:
        """What K_z may be in all views."""
        return self._views

    def learn(self, t: int, record: Record) -> None:
        """Learn what each agent saw itself, or all that there is where it is so much more."""
        changed = self._views.refresh(t, record)
        self._sums.add(t - 1, record.features, record.rewards[t - 2])
        if changed.size or not self._batches:
            self._cut_down()
            self._regression.seen[changed] = 0
        there = self._arrived(t)
        due = there >= np.maximum((1 + self._laziness) * self._regression.seen, 1)
        phi = with_ones(record.features, self._policy)
        self._regression.learn(~due, phi, record.rewards[t - 2])
        if not due.any():
            return
        moments = Moments(len(due), self._sums.m)
        for batch, lags, rotated in self._batches:
            at = np.flatnonzero(due[batch.viewers])
            if at.size:
                after = last_rounds(t, lags[at])
                seen = self._marginals.of(after, batch.agents[at], rotated.part(at))
                moments.add(batch.viewers[at], batch.weight[at], *seen)
        agents, mean, covariance, logdet, count = moments.whole()
        if (own := self._sums.constants) is not None:
            mean, covariance = own.take(agents).joint(mean, covariance)
        self._regression.reset(agents, mean, covariance, logdet, count)
        self._regression.seen[due] = there[due]

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer: (M, m)."""
        phi = with_ones(asked, self._policy)
        return self._regression.predict(offer, phi, joint=draws(self._policy.act))

    def similarity(self) -> Array:
        """Return what agents take others' news to be worth, for each pair that listens: (n,)."""
        return self._views.similarity()

    def _cut_down(self) -> None:
        def fits(views: int, fewest: int, most: int, r: int) -> bool:
            return most <= (1 + _ALIKE) * fewest

        parts = self._views.parts
        self._marginals.reach(max(float(part.hypotheses.delta.max()) for part in parts))
        self._batches = [
            (
                batch,
                part.lags_of(batch),
                self._marginals.rotated(batch.U, batch.delta, batch.me, batch.scale),
            )
            for part in parts
            for batch in batches(part.hypotheses, fits)
        ]
        self._linked = []
        for part in parts:
            linked = np.zeros(part.lags.shape, dtype=np.bool_)
            np.logical_or.at(linked, part.hypotheses.whose, part.hypotheses.linked)
            self._linked.append(linked)

    def _arrived(self, t: int) -> Array:
        """Count what has arrived of those who are no strangers under some hypothesis: (V,)."""
        there = np.zeros(len(self._regression.seen))
        for part, linked in zip(self._views.parts, self._linked, strict=True):
            there[part.who] = np.maximum(t - np.where(linked, part.lags, np.inf), 0.0).sum(axis=1)
        return there
