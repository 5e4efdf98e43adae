"""Recursive regression shared by all: one posterior over the weights of all agents.

Where everyone hears everything after one round views do not differ, and one posterior for all is
cheaper than one for each (`views.py`): the weights
θ ~ N(0, K_z ⊗ I) of the V agents' m features, with their covariance C (V·m, V·m), from which a
round's V observations are conditioned on together.
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.by_lags import Record
from coopbandits.engines.recursive import with_ones
from coopbandits.gp.posterior import Belief
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round


def hears_all(policy: Policy, plan: Plan) -> bool:
    """Tell whether all agents that are no strangers know the same, one round old."""
    given = policy.listen.pooled and plan.K_z is not None
    return given and bool((plan.lags.rounds == 1).all())


def shares(plan: Plan) -> list[IntArray]:
    """Put agents that are no strangers to each other together."""
    first = plan.lags.sources.agents[plan.lags.sources.starts[:-1]]
    return [np.flatnonzero(first == part) for part in np.unique(first)]


class _Part:
    """The weights of n agents who are no strangers to each other."""

    def __init__(self, members: IntArray, K_z: Array, m: int, policy: Policy) -> None:
        n = len(members)
        self.members = members
        covariance = np.kron(K_z, np.eye(m)).astype(np.float64)
        if policy.constants is not None:  # a weight more of each agent, its own constant
            whole = np.zeros((n, m + 1, n, m + 1))
            whole[:, :m, :, :m] = covariance.reshape(n, m, n, m)
            whole[np.arange(n), m, np.arange(n), m] = policy.constants.variance
            m += 1
            covariance = whole.reshape(n * m, n * m)
        self.mean = np.zeros((n, m))
        self.covariance = covariance
        self.logdet, self.count = 0.0, 0

    @property
    def own(self) -> Array:
        """The covariance of each agent's own weights: (n, m, m)."""
        n, m = self.mean.shape
        index = np.arange(n)
        return self.covariance.reshape(n, m, n, m)[index, :, index, :]

    def learn(self, phi: Array, y: Array, ridge: float) -> None:
        """Condition on one observation of each agent: (n, m), (n,)."""
        n, m = phi.shape
        towards = np.einsum("kbj,bj->kb", self.covariance.reshape(n * m, n, m), phi)  # CΦᵀ
        S = np.einsum("ai,aib->ab", phi, towards.reshape(n, m, n)) + ridge * np.eye(n)
        factor = np.linalg.cholesky(0.5 * (S + S.T))
        residual = y - np.einsum("ai,ai->a", phi, self.mean)
        solved = np.linalg.solve(factor, np.column_stack([residual, towards.T]))
        W = np.ascontiguousarray(solved[:, 1:])
        self.mean += (solved[:, 0] @ W).reshape(n, m)
        self.covariance -= W.T @ W
        self.logdet += 2 * float(np.log(np.diagonal(factor)).sum()) - n * float(np.log(ridge))
        self.count += n


class SharedRegression:
    """Every agent's posterior from the joint one."""

    refreshes = 0

    def __init__(self, policy: Policy, plan: Plan, m: int) -> None:
        assert plan.K_z is not None
        self._policy, self._plan = policy, plan
        self._parts = [
            _Part(members, plan.K_z.block(members, members), m, policy) for members in shares(plan)
        ]

    def learn(self, t: int, record: Record) -> None:
        """Learn what all agents saw in the last round."""
        phi = with_ones(record.features, self._policy)
        for part in self._parts:
            who = part.members
            part.learn(phi[who], record.rewards[t - 2, who], self._policy.ridge)

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer: (M, m)."""
        asked = with_ones(asked, self._policy)
        V, m = len(self._plan.lags), asked.shape[1]
        mean, own = np.empty((V, m)), np.empty((V, m, m))
        logdet, count = np.empty(V), np.empty(V, dtype=np.int64)
        for part in self._parts:
            who = part.members
            mean[who], own[who] = part.mean, part.own
            logdet[who], count[who] = part.logdet, part.count
        agents, covariance = offer.agents, None
        towards = (asked[:, None, :] @ own[agents])[:, 0]
        if draws(self._policy.act):
            others, real = offer.padded(agents)
            covariance = np.einsum("ri,rki->rk", towards, asked[others]) * real
        return Belief(
            np.einsum("ri,ri->r", asked, mean[agents]),
            np.einsum("ri,ri->r", towards, asked),
            logdet[agents],
            count[agents],
            covariance,
        )

    def similarity(self) -> Array:
        """Return K_z of each pair that listens, 0 between strangers: (n,)."""
        return self._plan.similarity
