"""One posterior over the weights of all agents, where everyone hears everything after one round.

Then views do not differ, and one for all is cheaper than one for each (`mixed.py`): the weights
θ ~ N(0, K_z ⊗ I) of the V agents' m features, with their covariance C (V·m, V·m), from which a
round's V observations are conditioned on together.
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.record import Record
from coopbandits.features import Basis
from coopbandits.gp.compositions import JointKernel
from coopbandits.gp.posterior import Belief, deviation
from coopbandits.gp.residual import residual_covariance, residual_variance
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round


def hears_all(policy: Policy, plan: Plan) -> bool:
    """Tell whether all agents that are no strangers know the same, one round old."""
    heard = np.isfinite(plan.lags)
    return (
        policy.listen.pooled
        and plan.learner is None
        and isinstance(plan.kernel, JointKernel)
        and bool((plan.lags[heard] == 1).all())
    )


class _Part:
    """The weights of n agents who are no strangers to each other."""

    def __init__(self, members: IntArray, K_z: Array, m: int) -> None:
        n = len(members)
        self.members = members
        self.mean = np.zeros((n, m))
        self.covariance = np.kron(K_z, np.eye(m)).astype(np.float64)
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
        surprise = y - np.einsum("ai,ai->a", phi, self.mean)
        solved = np.linalg.solve(factor, np.column_stack([surprise, towards.T]))
        W = np.ascontiguousarray(solved[:, 1:])
        self.mean += (solved[:, 0] @ W).reshape(n, m)
        self.covariance -= W.T @ W
        self.logdet += 2 * float(np.log(np.diagonal(factor)).sum()) - n * float(np.log(ridge))
        self.count += n


class JointWeights:
    """Every agent's posterior from the joint one."""

    refreshes = 0

    def __init__(self, policy: Policy, plan: Plan, basis: Basis, dim: int) -> None:
        assert isinstance(plan.kernel, JointKernel)
        self._policy, self._plan, self._basis = policy, plan, basis
        self._K_z = plan.kernel.K_z
        self._m = basis.size(policy.kernel, dim)
        first = np.isfinite(plan.lags).argmax(axis=1)
        self._members = [np.flatnonzero(first == part) for part in np.unique(first)]
        self._parts: list[_Part] = []
        self._after = 0

    def bytes_after(self, rounds: int) -> float:
        """How much memory the covariances take, with what an update needs; T does not matter."""
        return 8.0 * sum(3 * (len(one) * self._m) ** 2 + 1e4 for one in self._members)

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly."""
        sizes = [len(one) for one in self._members]
        return rounds * (1e6 + sum(2e5 + (n + 8.0) * (n * self._m) ** 2 for n in sizes))

    def believe(self, t: int, offer: Round, X: Array, judging: BoolArray, record: Record) -> Belief:
        """Return beliefs at all rows of a round's offer: X (M, ·)."""
        joint = draws(self._policy.act)
        if t == 1:
            return Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        if not self._parts:
            self._parts = [
                _Part(members, self._K_z[np.ix_(members, members)], self._m)
                for members in self._members
            ]
        V, m, kernel, ridge = len(self._K_z), self._m, self._policy.kernel, self._policy.ridge
        mean, own = np.empty((V, m)), np.empty((V, m, m))
        logdet, count = np.empty(V), np.empty(V, dtype=np.int64)
        for part in self._parts:
            who = part.members
            for past in range(self._after, t - 1):
                phi = self._basis.features(kernel, record.observed[past, who])
                part.learn(phi, record.rewards[past, who], ridge)
            mean[who], own[who] = part.mean, part.own
            logdet[who], count[who] = part.logdet, part.count
        self._after = t - 1
        agents, phi = offer.agents, self._basis.features(kernel, X)
        towards = (phi[:, None, :] @ own[agents])[:, 0]
        beyond = residual_variance(self._plan.prior, agents, X, phi)
        variance, covariance = np.einsum("ri,ri->r", towards, phi) + beyond, None
        if joint:
            others, real = offer.padded(agents)
            covariance = np.einsum("ri,rki->rk", towards, phi[others]) * real
            covariance += residual_covariance(self._plan.prior, agents, X, phi, beyond)
        return Belief(
            np.einsum("ri,ri->r", phi, mean[agents]),
            deviation(variance),
            logdet[agents],
            count[agents],
            covariance,
        )

    def similarity(self) -> Array:
        """Return K_z where agents learn from each other, 0 elsewhere: (V, V)."""
        return np.where(np.isfinite(self._plan.lags), self._K_z, 0.0)
