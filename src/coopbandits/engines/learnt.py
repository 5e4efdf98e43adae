"""Exact posteriors under a learnt K_z: each agent has its own, factored anew as it changes.

Where K_z may be one of several, an agent has a posterior under each.
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.agent.model import learnt_kernel
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.estimates import Estimates
from coopbandits.engines.record import Record
from coopbandits.gp.mixture import Mixture
from coopbandits.gp.posterior import Belief, Posterior
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round
from coopbandits.similarity import Loadings


class LearntPosteriors:
    """Posteriors for each agent, under what it takes K_z to be."""

    def __init__(self, policy: Policy, plan: Plan) -> None:
        self._policy, self._plan = policy, plan
        self._estimates = Estimates(policy, plan)
        self._posteriors = [[Posterior(plan.kernel, policy.ridge)] for _ in plan.lags]

    def bytes_after(self, rounds: int) -> float:
        """How much memory the factors take at most, after so many rounds.

        Of several K_z that it may be, all but a few have been ruled out by the time that factors
        are large, and most are about some of the agents only: no more is counted for them.
        """
        last = np.minimum(rounds, self._plan.leader_lags)
        sources = np.isfinite(self._plan.lags).sum(axis=1)
        return float(4.0 * ((sources * last) ** 2).sum())

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly."""
        last = np.minimum(rounds, self._plan.leader_lags)
        sources = np.isfinite(self._plan.lags).sum(axis=1)
        # as in `SharedPosteriors`; factoring anew at a growing number of observations doubles it
        return float((last * 1e6 + 2 * (sources + 8) * sources**2 * last**3 / 3).sum())

    def believe(self, t: int, offer: Round, X: Array, judging: BoolArray, record: Record) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: X (M, ·), (V,)."""
        joint = draws(self._policy.act)
        mixture = Mixture(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        refreshed = set(self._estimates.refresh(t, record).tolist())
        for v in np.flatnonzero(judging):
            hypotheses = np.flatnonzero(self._estimates.whose == v)
            if v in refreshed:
                self._posteriors[v] = [self._factored_anew(int(h), t, record) for h in hypotheses]
            else:
                for h, posterior in zip(hypotheses, self._posteriors[v], strict=True):
                    self._learn(posterior, int(h), t - self._lags(int(h)), record)
            rows = np.flatnonzero(offer.agents == v)
            for h, posterior in zip(hypotheses, self._posteriors[v], strict=True):
                believed = posterior.predict(offer.agents[rows], X[rows], joint=joint)
                mixture.add_one(believed, rows, self._estimates.weight[h])
        return mixture.belief()

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self._estimates.refreshes

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        return self._estimates.similarity()

    def _lags(self, h: int) -> IntArray:
        """How old the news of those that count is, inf as a number beyond all rounds: (N,)."""
        lags = self._estimates.lags[self._estimates.whose[h]]
        return np.where(self._estimates.linked[h], lags, 2.0**40).astype(np.int64)

    def _learn(self, posterior: Posterior, h: int, rounds: IntArray, record: Record) -> None:
        """Learn one round of each agent heard from: rounds (N,), below 1 for none."""
        due = rounds >= 1
        agents = self._estimates.agents[self._estimates.whose[h]][due]
        at = rounds[due] - 1, agents
        posterior.extend(agents, record.observed[at], record.rewards[at])

    def _factored_anew(self, h: int, t: int, record: Record) -> Posterior:
        estimates = self._estimates
        v = int(estimates.whose[h])
        known = np.isfinite(estimates.lags[v])
        loadings = Loadings(estimates.U[h, known][None], estimates.delta[h, known][None])
        kernel = learnt_kernel(
            self._policy, len(self._plan.lags), estimates.agents[v, known], loadings.matrix[0]
        )
        posterior = Posterior(kernel, self._policy.ridge)
        pairs = [
            (agent, np.arange(1, n + 1))
            for agent, n in zip(estimates.agents[v], t - self._lags(h), strict=True)
            if n >= 1
        ]
        if pairs:
            agents = np.concatenate([np.full(len(rounds), agent) for agent, rounds in pairs])
            at = np.concatenate([rounds for _, rounds in pairs]) - 1, agents
            posterior.extend(agents, record.observed[at], record.rewards[at])
        return posterior
