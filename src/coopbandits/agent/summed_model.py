"""What does one agent with finite features make of all that it has heard? Sums, and nothing more.

Where a policy has `features=`, all that counts of an agent's observations are its sums
(`gp/statistics.py`), so memory and time per decision do not grow with them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coopbandits.act import draws
from coopbandits.agent.model import Observation, views_of
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.compositions import JointKernel, composition
from coopbandits.gp.posterior import Belief, deviation
from coopbandits.gp.residual import residual_covariance, residual_variance
from coopbandits.gp.statistics import Statistics
from coopbandits.gp.weights import Weights
from coopbandits.policy import Plan, Policy
from coopbandits.protocol.digests import Digest, unpacked
from coopbandits.similarity import Learnt, Loadings
from coopbandits.similarity.loadings import linked
from coopbandits.similarity.similarity import estimated, is_due


@dataclass(frozen=True, eq=False)
class SummedModel:
    """One agent's beliefs after so many observations; `learnt` makes the next.

    Attributes:
        policy: With features.
        plan: Of the policy.
        agent: Whose.
        dim: d.
        loadings: K_z between the agents listened to, as it was given or last estimated; or those
            that it may be.
        sums: (N, 2 + m + m²) the statistics of each agent listened to.
        summaries: (N, p) what K_z is learnt from; (N, 0) where it is given.
        estimated: From how many observations K_z was last estimated.
    """

    policy: Policy
    plan: Plan
    agent: int
    dim: int
    loadings: Loadings
    sums: Array
    summaries: Array
    estimated: int = 0
    sources: IntArray = field(init=False)

    def __post_init__(self) -> None:
        heard = np.flatnonzero(np.isfinite(self.plan.lags[self.agent]))
        object.__setattr__(self, "sources", heard)

    @classmethod
    def empty(cls, policy: Policy, plan: Plan, agent: int, dim: int) -> "SummedModel":
        """Make the model of an agent that has heard nothing."""
        sources = np.flatnonzero(np.isfinite(plan.lags[agent]))
        assert policy.features is not None
        width = Statistics.width(policy.features.size(policy.kernel, dim))
        if plan.learner is None:
            assert isinstance(plan.kernel, JointKernel)
            loadings = Loadings.of(plan.kernel.K_z[np.ix_(sources, sources)][None]).leading()
            summaries = np.zeros((len(sources), 0))
        else:
            loadings = Loadings(np.zeros((1, len(sources), 1)), np.ones((1, len(sources))))
            summaries = np.zeros((len(sources), cls.summary_size(plan, dim)))
        return cls(policy, plan, agent, dim, loadings, np.zeros((len(sources), width)), summaries)

    @staticmethod
    def summary_size(plan: Plan, dim: int) -> int:
        """How many numbers K_z is learnt from, for each agent: p; 0 where it is given."""
        if plan.learner is None:
            return 0
        attached = np.zeros((1, plan.learner.attached(dim)))
        return plan.learner.summaries(np.zeros((1, dim)), attached, np.zeros(1)).shape[1]

    @property
    def known(self) -> int:
        """How many observations have been learnt."""
        return int(self.sums[:, 0].sum())

    def known_without(self, origins: Collection[int]) -> int:
        """How many observations have been learnt from others than these."""
        return int(self.sums[~np.isin(self.sources, list(origins)), 0].sum())

    def learnt(
        self, observations: Sequence[Observation], digests: Collection[Digest] = ()
    ) -> "SummedModel":
        """Return the model that has learnt more, this one unchanged.

        Observations are added to what is known; a digest takes the place of what was known of its
        origin.
        """
        if not observations and not digests:
            return self
        sums, summaries = self.sums.copy(), self.summaries.copy()
        if observations:
            origins, contexts, rewards = zip(*observations, strict=True)
            at = np.searchsorted(self.sources, origins)
            rows, more = self.rows(np.array(contexts), np.array(rewards))
            np.add.at(sums, at, rows)
            np.add.at(summaries, at, more)
        for digest in digests:
            place = np.searchsorted(self.sources, digest.origin)
            sums[place], summaries[place] = unpacked(digest.sums), digest.summaries
        learner, new = self.plan.learner, replace(self, sums=sums, summaries=summaries)
        if learner is None:
            return new
        similarity = self.policy.similarity
        assert isinstance(similarity, Learnt)
        counts = (np.array([n]) for n in (new.known, self.estimated, len(self.sources)))
        if not is_due(similarity, *counts)[0]:
            return new
        views = views_of(self.sources[None], self._me, summaries[None])
        return replace(new, loadings=estimated(learner, views), estimated=new.known)

    def rows(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return what k observations add to sums and summaries: (k, d + ·), (k,)."""
        assert self.policy.features is not None
        contexts, attached = x[:, : self.dim], x[:, self.dim :]
        phi = self.policy.features.features(self.policy.kernel, contexts)
        if self.plan.learner is None:
            return Statistics.rows(phi, y), np.empty((len(y), 0))
        return Statistics.rows(phi, y), self.plan.learner.summaries(contexts, attached, y)

    def predict(self, contexts: Array) -> Belief:
        """Return the belief at K contexts."""
        assert self.policy.features is not None
        phi = self.policy.features.features(self.policy.kernel, contexts)
        mean, G, logdet, count = self.ask(phi)
        agents = np.full(len(contexts), self.agent)
        beyond = residual_variance(self.plan.prior, agents, contexts, phi)
        variance, covariance = np.einsum("kd,kd->k", G, G) + beyond, None
        if draws(self.policy.act):
            covariance = G @ G.T + residual_covariance(
                self.plan.prior, agents, contexts, phi, beyond
            )
        logdets, counts = np.full(len(phi), logdet), np.full(len(phi), count)
        return Belief(mean, deviation(variance), logdets, counts, covariance)

    def ask(self, phi: Array) -> tuple[Array, Array, float, int]:
        """Return what is believed at K rows of features: (K, m).

        Returns:
            Means (K,), G (K, D) in which covariances are GGᵀ, log det(I + K/λ), and from how many
            observations.
        """
        parts = [self._asked(phi, h) for h in range(len(self.loadings.U))]
        if len(parts) == 1:
            return parts[0]
        # a mixture's covariance: beside each part's own, how far off its mean is
        weight = self.loadings.weight
        mean = weight @ np.array([means for means, _, _, _ in parts])
        G = [
            np.sqrt(w) * np.column_stack([own, means - mean])
            for w, (means, own, _, _) in zip(weight, parts, strict=True)
        ]
        logdet = weight @ np.array([logdet for _, _, logdet, _ in parts])
        return mean, np.hstack(G), float(logdet), max(count for _, _, _, count in parts)

    def _asked(self, phi: Array, h: int) -> tuple[Array, Array, float, int]:
        """Return the same under one K_z, between those who count and with the parts they share."""
        inside = self._linked[h]
        U, delta = self.loadings.U[h][inside], self.loadings.delta[h][inside]
        used = (U != 0).any(axis=0)
        statistics = Statistics.of(self.sums[None, inside], phi.shape[1])
        me = np.searchsorted(self.sources[inside], [self.agent])
        weights = Weights.pooled(U[None][..., used], delta[None], me, statistics, self.policy.ridge)
        mean, Z, logdet = weights.ask(phi[None])
        root = np.sqrt(self.policy.ridge)
        return mean[0], root * Z[0], float(logdet[0]), int(statistics.n.sum())

    @property
    def _me(self) -> IntArray:
        return np.searchsorted(self.sources, [self.agent])

    @property
    def _linked(self) -> BoolArray:
        if self.plan.learner is None:  # the plan has dropped strangers
            return np.ones((1, len(self.sources)), dtype=np.bool_)
        me = np.repeat(self._me, len(self.loadings.U))
        return linked(self.loadings, me, composition(self.policy.compose))
