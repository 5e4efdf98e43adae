"""Beliefs of one agent with finite features: sufficient statistics, and nothing more.

Where a policy has `features=`, all that counts of an agent's observations are its sums
(`gp/statistics.py`), so memory and time per decision do not grow with them.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from coopbandits.act import draws
from coopbandits.agent.beliefs import Arrays
from coopbandits.agent.gradients import WeightsSurface
from coopbandits.arrays import Array, IntArray, check_size, short
from coopbandits.errors import NonFiniteError
from coopbandits.gp.mixture import mixture_root
from coopbandits.gp.posterior import Belief
from coopbandits.gp.sample_path import SamplePath, path_from_weights
from coopbandits.gp.statistics import Statistics
from coopbandits.gp.weights import Weights
from coopbandits.policy import Plan, Policy
from coopbandits.protocol.digests import Digest, unpacked
from coopbandits.protocol.messages import Observation
from coopbandits.similarity.hypotheses import Hypotheses
from coopbandits.similarity.similarity import Views


class StatisticsBeliefs:
    """One agent's statistics of each agent listened to, and what follows from them.

    Attributes:
        sums: (N, 2 + m + m²) the statistics of each agent listened to.
        summaries: (N, p) what K_z is estimated from; (N, 0) where it is given.
        features: m.
        hypotheses: What K_z may be.
        recent: What was learnt last.
    """

    def __init__(self, policy: Policy, plan: Plan, agent: int, dim: int) -> None:
        assert policy.features is not None
        self._policy, self._plan, self._agent = policy, plan, agent
        self._basis, self.features = policy.features, policy.features.size(policy.kernel, dim)
        self.hypotheses = Hypotheses.of(plan.lags, np.array([agent]), plan.K_z)
        self._sources = self.hypotheses.agents[0]
        check_size(
            len(self._sources),
            Statistics.width(self.features),
            what=f"the statistics of {self.features:,} features",
            advice="take fewer features, such as coopbandits.features.Fourier(64)",
        )
        size = 0 if plan.estimator is None else plan.estimator.summary_size(dim)
        self.sums: Array = np.zeros((len(self._sources), Statistics.width(self.features)))
        self.summaries: Array = np.zeros((len(self._sources), size))
        self.recent: Sequence[Observation] = ()

    @property
    def n_observations(self) -> int:
        """How many observations have been learnt."""
        return int(self.sums[:, 0].sum())

    def n_observations_without(self, origins: Collection[int]) -> int:
        """How many observations have been learnt from others than these."""
        return int(self.sums[~np.isin(self._sources, list(origins)), 0].sum())

    def learn(self, observations: Sequence[Observation], digests: Collection[Digest] = ()) -> None:
        """Learn what has arrived, and estimate K_z again if that is due."""
        self.recent = observations
        if not observations and not digests:
            return
        sums, summaries = self.sums.copy(), self.summaries.copy()
        if observations:
            at = np.searchsorted(self._sources, [one.origin for one in observations])
            rows, more = self.rows(observations)
            np.add.at(sums, at, rows)
            np.add.at(summaries, at, more)
        for digest in digests:
            place = np.searchsorted(self._sources, digest.origin)
            sums[place], summaries[place] = unpacked(digest.sums), digest.summaries
        self.sums, self.summaries = sums, summaries
        if self._plan.estimator is not None:
            known = np.array([self.n_observations])
            self.hypotheses, _ = self.hypotheses.refreshed(self._plan.estimator, known, self._views)

    def rows(self, observations: Sequence[Observation]) -> tuple[Array, Array]:
        """Return what k observations add to sums and summaries: (k, ·), (k, p)."""
        X = np.array([one.context for one in observations])
        y = np.array([one.reward for one in observations])
        rows = Statistics.rows(self._basis.features(self._policy.kernel, X), y)
        summaries = np.empty((len(y), 0))
        if self._plan.estimator is not None:
            attached = np.array([one.attached for one in observations])
            summaries = self._plan.estimator.learner.summaries(X, attached, y)
        if np.isnan(rows).any() or np.isnan(summaries).any():
            raise NonFiniteError(
                f"features={short(self._basis)} are NaN at some contexts; expected numbers"
            )
        return rows, summaries

    def predict(self, X: Array, attached: Array) -> Belief:
        """Return the belief at m contexts, with covariances if the act draws: (m, d), (·,)."""
        assert self._plan.basis is not None
        phi = self._plan.basis.features(self._policy.kernel, X)
        mean, G, logdet, count = self.ask(phi)
        belief = Belief(
            mean,
            np.einsum("kd,kd->k", G, G),
            np.full(len(phi), logdet),
            np.full(len(phi), count),
            G @ G.T if draws(self._policy.act) else None,
        )
        agents = np.full(len(X), self._agent)
        return belief.with_residual(self._plan.prior, agents, X, phi)

    def ask(self, phi: Array) -> tuple[Array, Array, float, int]:
        """Return what is believed at K rows of features: (K, m).

        Returns:
            Means (K,), G (K, ·) in which covariances are GGᵀ, log det(I + K/λ), and from how many
            observations.
        """
        K, H = len(phi), len(self.hypotheses.whose)
        means, logdets, counts = np.empty((H, K)), np.empty(H), np.empty(H)
        roots: list[Array] = [np.empty((K, 0))] * H
        for batch in self.hypotheses.together:
            rows = self.sums[batch.columns] * batch.real[..., None]
            statistics = Statistics.of(rows, self.features)
            weights = Weights.pooled(batch.U, batch.delta, batch.me, statistics, self._policy.ridge)
            mean, Z, logdet = weights.ask(np.broadcast_to(phi, (len(batch.me), *phi.shape)))
            means[batch.index], logdets[batch.index] = mean, logdet
            counts[batch.index] = statistics.n.sum(axis=1)
            for h, root in zip(batch.index, np.sqrt(self._policy.ridge) * Z, strict=True):
                roots[h] = root
        weight = self.hypotheses.weight
        mean, G = mixture_root(means, roots, weight)
        return mean, G, float(weight @ logdets), int(counts.max())

    def draw(self, dim: int, width: float, rng: np.random.Generator) -> SamplePath:
        """Draw a function from N(mean, w²Σ)."""
        theta, G = self.ask(np.eye(self.features))[:2]
        prior = self._plan.prior
        return path_from_weights(prior, self._basis, self._agent, theta, G, rng, width=width)

    def surface(self, attached: Array) -> WeightsSurface:
        """Return mean and σ with their gradients, at any point."""
        theta, G = self.ask(np.eye(self.features))[:2]
        return WeightsSurface(self._plan.prior, self._agent, self._basis, theta, G)

    def state(self) -> Any:
        """Return what `restore` needs to forget all that is learnt from now on."""
        return self.sums, self.summaries, self.hypotheses, self.recent

    def restore(self, state: Any) -> None:
        """Go back to a state, to the bit."""
        self.sums, self.summaries, self.hypotheses, self.recent = state

    def stored(self) -> Arrays:
        """Return the arrays that it can be made of again."""
        return {
            "sources": self._sources,
            "sums": self.sums,
            "summaries": self.summaries,
            "U": self.hypotheses.U,
            "delta": self.hypotheses.delta,
            "weight": self.hypotheses.weight,
        }

    def _views(self, due: IntArray) -> Views:
        return Views.apart(self.hypotheses.agents, self.hypotheses.me, self.summaries[None])
