"""Posteriors from features, where agents hear nobody but themselves: nothing needs to be summed."""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray
from coopbandits.engines.late import believed
from coopbandits.engines.record import Record
from coopbandits.engines.standing import Standing
from coopbandits.features import Basis
from coopbandits.gp.compositions import JointKernel
from coopbandits.gp.posterior import Belief
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round


def hears_nobody(plan: Plan) -> bool:
    """Tell whether every agent learns from itself alone, by a K_z that is given."""
    alone = (np.isfinite(plan.lags).sum(axis=1) == 1).all() and (np.diagonal(plan.lags) == 1).all()
    return bool(alone and plan.learner is None and isinstance(plan.kernel, JointKernel))


class LoneFeatures:
    """Every agent's posterior from its own observations, one at a time."""

    refreshes = 0

    def __init__(self, policy: Policy, plan: Plan, basis: Basis, dim: int) -> None:
        self._policy, self._plan, self._basis = policy, plan, basis
        assert isinstance(plan.kernel, JointKernel)
        self._K_z = plan.kernel.K_z
        self._m = basis.size(policy.kernel, dim)
        self._standing: Standing | None = None

    def bytes_after(self, rounds: int) -> float:
        """How much memory the covariances take; T does not matter."""
        return Standing.bytes(len(self._K_z), self._m)

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly."""
        return rounds * (1e6 + len(self._K_z) * (3e4 + 20.0 * self._m**2))

    def believe(self, t: int, offer: Round, X: Array, judging: BoolArray, record: Record) -> Belief:
        """Return beliefs at all rows of a round's offer: X (M, ·)."""
        if t == 1:
            joint = draws(self._policy.act)
            return Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        if self._standing is None:
            prior = np.diagonal(self._K_z)[:, None, None] * np.eye(self._m)
            self._standing = Standing(prior, self._policy.ridge)
        mine = self._basis.features(self._policy.kernel, record.observed[t - 2])
        everyone = np.ones(len(mine), dtype=np.bool_)
        self._standing.learn(everyone, mine, record.rewards[t - 2])
        phi = self._basis.features(self._policy.kernel, X)
        return believed(self._standing, self._policy, self._plan, offer, X, phi)

    def similarity(self) -> Array:
        """Return K_z of each agent with itself, 0 elsewhere: (V, V)."""
        return np.diag(np.diagonal(self._K_z))
