"""Exact posteriors under a learnt K_z: each agent has its own, factored anew as it changes."""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.estimates import Estimates
from coopbandits.engines.record import Record
from coopbandits.model import learnt_kernel
from coopbandits.policy import Plan, Policy
from coopbandits.posterior import Belief, Posterior
from coopbandits.problems.problem import Round
from coopbandits.similarity import Loadings


class LearntPosteriors:
    """One posterior for each agent, under its own estimate of K_z."""

    def __init__(self, policy: Policy, plan: Plan) -> None:
        self._policy, self._plan = policy, plan
        self._estimates = Estimates(policy, plan)
        self._posteriors = [Posterior(plan.kernel, policy.ridge) for _ in plan.lags]

    def bytes_after(self, rounds: int) -> float:
        """How much memory the factors take at most, after so many rounds."""
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
        belief = Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        refreshed = set(self._estimates.refresh(t, record).tolist())
        for v in np.flatnonzero(judging):
            if v in refreshed:
                self._factor_anew(int(v), t, record)
            else:
                self._learn(int(v), t - self._lags(int(v)), record)
            rows = np.flatnonzero(offer.agents == v)
            believed = self._posteriors[v].predict(offer.agents[rows], X[rows], joint=joint)
            believed.put(belief, rows)
        return belief

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self._estimates.refreshes

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        return self._estimates.similarity()

    def _lags(self, v: int) -> IntArray:
        """How old the news of those that v is linked to is, inf as a number beyond all rounds."""
        lags = np.where(self._estimates.linked[v], self._estimates.lags[v], 2.0**40)
        return lags.astype(np.int64)

    def _learn(self, v: int, rounds: IntArray, record: Record) -> None:
        """Learn one round of each agent heard from: rounds (N,), below 1 for none."""
        due = rounds >= 1
        agents = self._estimates.agents[v][due]
        at = rounds[due] - 1, agents
        self._posteriors[v].extend(agents, record.observed[at], record.rewards[at])

    def _factor_anew(self, v: int, t: int, record: Record) -> None:
        estimates = self._estimates
        known = np.isfinite(estimates.lags[v])
        loadings = Loadings(estimates.U[v, known][None], estimates.delta[v, known][None])
        kernel = learnt_kernel(
            self._policy, len(self._plan.lags), estimates.agents[v, known], loadings.matrix[0]
        )
        self._posteriors[v] = Posterior(kernel, self._policy.ridge)
        last = t - self._lags(v)
        pairs = [
            (agent, np.arange(1, n + 1))
            for agent, n in zip(estimates.agents[v], last, strict=True)
            if n >= 1
        ]
        if pairs:
            agents = np.concatenate([np.full(len(rounds), agent) for agent, rounds in pairs])
            at = np.concatenate([rounds for _, rounds in pairs]) - 1, agents
            self._posteriors[v].extend(agents, record.observed[at], record.rewards[at])
