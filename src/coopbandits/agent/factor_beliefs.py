"""Exact beliefs of one agent: all its observations, and a growing Cholesky factor.

They are a function of the observations, in the order in which they came, and of two numbers: in
which batches these were learnt (`blocks`), and how many there were when K_z was last estimated.
With these they can be replayed to the bit.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from coopbandits.agent.beliefs import Arrays
from coopbandits.agent.gradients import FactorSurface
from coopbandits.arrays import Array, IntArray
from coopbandits.forget import Window
from coopbandits.gp.compositions import JointKernel, composition
from coopbandits.gp.mixture import PosteriorMixture
from coopbandits.gp.network_kernel import SubsetKernel
from coopbandits.gp.posterior import Belief, Posterior
from coopbandits.gp.sample_path import SamplePath
from coopbandits.policy import Plan, Policy
from coopbandits.protocol.digests import Digest
from coopbandits.protocol.messages import Observation
from coopbandits.similarity.hypotheses import Hypotheses
from coopbandits.similarity.similarity import Views


class FactorBeliefs:
    """One agent's posterior under each hypothesis of K_z.

    Attributes:
        observations: All that were learnt, in order; those of the window, where there is one.
        blocks: How many were learnt at a time, since K_z was last estimated.
        hypotheses: What K_z may be.
        n_observations: How many were learnt, faded or not.
        clock: Of each origin the newest round that is known, and the own round in which it came,
            where there is a window.
    """

    def __init__(self, policy: Policy, plan: Plan, agent: int) -> None:
        self._policy, self._plan, self._agent = policy, plan, agent
        self._estimates = plan.estimates
        self._window = policy.forget.rounds if isinstance(policy.forget, Window) else None
        self.observations: list[Observation] = []
        self.n_observations = 0
        self.clock: dict[int, tuple[int, int]] = {}
        self.blocks: tuple[int, ...] = ()
        self.hypotheses = Hypotheses.of(plan.lags, np.array([agent]), None)
        self._summaries: Array = np.empty((0, 0))
        self._posteriors = PosteriorMixture.under(plan.kernel, policy.ridge)

    @property
    def recent(self) -> Sequence[Observation]:
        """All observations."""
        return self.observations

    def n_observations_without(self, origins: Collection[int]) -> int:
        """How many observations have been learnt from others than these."""
        faded = self.n_observations - len(self.observations)
        return faded + sum(one.origin not in origins for one in self.observations)

    def learn(
        self, observations: Sequence[Observation], digests: Collection[Digest] = (), now: int = 0
    ) -> None:
        """Learn what has arrived, and estimate K_z again if that is due."""
        self.n_observations += len(observations)
        if self._window is not None:
            self._learn_window(observations, self._window, now)
            return
        if not observations:
            return
        self.observations += observations
        if self._estimates:
            self._summaries = self._summed(observations)
            if self._estimate():
                observations = self.observations
        self._extend(observations)

    def views(self) -> Views:
        """Return what K_z would be estimated from now, in a single view."""
        return self.hypotheses.given(self._views(np.array([0])), np.array([self.n_observations]))

    def newest(self, origin: int) -> int:
        """Return the newest round of an agent that was learnt, 0 for none."""
        if self._window is not None:
            return self.clock.get(origin, (0, 0))[0]
        return max((one.round for one in self.observations if one.origin == origin), default=0)

    def saw(self, observation: Observation) -> None:
        """Do nothing: an observation of the agent's own is learnt as any other."""

    def replay(
        self,
        observations: Sequence[Observation],
        blocks: tuple[int, ...],
        fitted_at: int,
        hypotheses: Hypotheses | None,
    ) -> None:
        """Learn observations as beliefs that were stored did.

        Args:
            observations: All of them.
            blocks: In which batches they were learnt.
            fitted_at: How many there were when K_z was last estimated.
            hypotheses: What it was taken to be; None where it follows from those alone.
        """
        self.observations, self.n_observations = [*observations], len(observations)
        if self._estimates and fitted_at:
            self._summaries = self._summed(observations[:fitted_at])
            if hypotheses is None:
                self._estimate(fitted_at)
            else:
                self.hypotheses = hypotheses
                self._start_posteriors()
            self._summaries = self._summed(observations[fitted_at:])
        start = 0
        for size in blocks:
            self._extend(observations[start : start + size])
            start += size

    def resume(
        self,
        observations: Sequence[Observation],
        learnt: int,
        clock: dict[int, tuple[int, int]],
        hypotheses: Hypotheses,
    ) -> None:
        """Go on with the observations of a window and what K_z was taken to be."""
        self.observations, self.n_observations, self.clock = [*observations], learnt, clock
        self.hypotheses = hypotheses
        if self._estimates:
            self._summaries = self._summed(observations)
        self._start_anew()

    def predict(self, X: Array, attached: Array, *, joint: bool = False) -> Belief:
        """Return the belief at m contexts, with covariances if `joint`: (m, d), (·,)."""
        if attached.size:
            X = np.hstack([X, np.repeat(attached[None, :], len(X), axis=0)])
        agents = np.full(len(X), self._agent)
        return self._posteriors.predict(agents, X, joint=joint)

    def draw(self, dim: int, width: float, rng: np.random.Generator) -> SamplePath:
        """Draw a function from N(mean, w²Σ)."""
        return self._posteriors.draw(self._agent, dim, width, rng)

    def surface(self, attached: Array) -> FactorSurface:
        """Return mean and σ with their gradients, at any point."""
        return FactorSurface(self._posteriors, self._agent, attached)

    def state(self) -> Any:
        """Return what `restore` needs to forget all that is learnt from now on."""
        held = self.blocks, self.hypotheses, self._summaries, self._posteriors
        facts = self.observations, self.n_observations, self.clock
        return held, facts, len(self.observations), self._posteriors.mark

    def restore(self, state: Any) -> None:
        """Go back to a state, to the bit."""
        (self.blocks, self.hypotheses, self._summaries, self._posteriors), facts, n, mark = state
        self.observations, self.n_observations, self.clock = facts
        del self.observations[n:]
        self._posteriors.reset(mark)

    def stored(self) -> Arrays:
        """Return the arrays that it can be made of again, with the observations."""
        arrays: Arrays = {"blocks": np.array(self.blocks, dtype=np.int64)}
        if self._window is not None:
            clock = [[origin, *facts] for origin, facts in self.clock.items()]
            arrays["clock"] = np.array(clock, dtype=np.int64).reshape(-1, 3)
            arrays["known"] = np.array([self.n_observations])
        return arrays | (self.hypotheses.stored() if self._estimates else {})

    def _learn_window(self, observations: Sequence[Observation], window: int, now: int) -> None:
        """Keep the observations of the window alone, and start posteriors anew with them."""
        clock = dict(self.clock)
        for one in observations:
            # what is older than what is known does not end a silence
            if one.origin not in clock or one.round > clock[one.origin][0]:
                clock[one.origin] = one.round, now
        reached = {
            origin: now if origin == self._agent else newest + max(now - came, 0)
            for origin, (newest, came) in clock.items()
        }
        held = [
            one
            for one in (*self.observations, *observations)
            if reached[one.origin] - one.round < window
        ]
        self.clock = clock
        if not observations and len(held) == len(self.observations):
            return
        self.observations = held
        if self._estimates:
            self._summaries = np.zeros_like(self._summaries)
            self._summaries = self._summed(held)
            self._estimate(self.n_observations)
        self._start_anew()

    def _start_anew(self) -> None:
        """Start posteriors anew with all observations that there are."""
        self._start_posteriors()
        if self.observations:
            self._extend(self.observations)

    def _start_posteriors(self) -> None:
        self.blocks = ()
        self._posteriors = (
            posteriors_under(self._policy, self.hypotheses, 0, len(self._plan.lags))
            if self._estimates
            else PosteriorMixture.under(self._plan.kernel, self._policy.ridge)
        )

    def _extend(self, observations: Sequence[Observation]) -> None:
        origins = np.array([one.origin for one in observations])
        X = [one.augmented if self._plan.frozen else one.context for one in observations]
        y = np.array([one.reward for one in observations])
        self._posteriors.extend(origins, np.array(X), y)
        self.blocks = (*self.blocks, len(observations))

    def _summed(self, observations: Sequence[Observation]) -> Array:
        """Add the summaries of observations to the sums of their origins, one by one: (N, p)."""
        assert self._plan.estimator is not None
        learner, sums = self._plan.estimator.learner, self._summaries.copy()
        for one in observations:
            row = learner.summaries(one.context[None], one.attached[None], np.array([one.reward]))
            if not sums.size:
                sums = np.zeros((self.hypotheses.agents.shape[1], row.shape[1]))
            sums[np.searchsorted(self.hypotheses.agents[0], one.origin)] += row[0]
        return sums

    def _estimate(self, count: int | None = None) -> bool:
        """Estimate K_z from the sums if that is due, and start posteriors anew under it."""
        assert self._plan.estimator is not None
        known = np.array([len(self.observations) if count is None else count])
        hypotheses, due = self.hypotheses.refreshed(self._plan.estimator, known, self._views)
        if not due.size:
            return False
        self.hypotheses = hypotheses
        self._start_posteriors()
        return True

    def _views(self, due: IntArray) -> Views:
        return Views.apart(self.hypotheses.agents, self.hypotheses.me, self._summaries[None])


def posteriors_under(
    policy: Policy, hypotheses: Hypotheses, view: int, agents: int
) -> PosteriorMixture:
    """Start a posterior under each hypothesis of one view, among V agents."""
    some = np.flatnonzero(hypotheses.whose == view)
    heard = hypotheses.heard[view]
    sources = hypotheses.agents[view, heard]
    posteriors = []
    for h in some:
        K_z = SubsetKernel(sources, hypotheses.matrix(int(h)), agents)
        constants = 0.0 if policy.constants is None else policy.constants.variance
        kernel = JointKernel(policy.kernel, K_z, composition(policy.compose), constants)
        posteriors.append(Posterior(kernel, policy.ridge))
    related = hypotheses.linked[some][:, heard]
    scale = hypotheses.scale[some][:, heard]
    return PosteriorMixture(tuple(posteriors), hypotheses.weight[some], sources, related, scale)
