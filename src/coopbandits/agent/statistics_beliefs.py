"""Beliefs of one agent with finite features: sufficient statistics, and nothing more.

Where a policy has `features=`, all that counts of an agent's observations are its sums
(`agent/source_sums.py`), so memory and time per decision do not grow with them. What is believed
is a mean and a covariance of the weights (`gp/linear_posterior.py`). They are as of the last task
that was adopted (`agent/learning.py`); own observations since then are folded in one by one.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from coopbandits.agent.beliefs import Arrays
from coopbandits.agent.gradients import WeightsSurface
from coopbandits.agent.learning import LearningResult, LearningTask, believed
from coopbandits.agent.source_sums import Block, SourceSums, Summariser
from coopbandits.arrays import Array, IntArray
from coopbandits.gp.linear_posterior import LinearPosterior
from coopbandits.gp.posterior import Belief
from coopbandits.gp.sample_path import SamplePath, path_from_weights
from coopbandits.policy import Plan, Policy
from coopbandits.protocol.digests import Digest
from coopbandits.protocol.messages import Observation
from coopbandits.similarity.hypotheses import Hypotheses
from coopbandits.similarity.similarity import Views

# Of a task that is not adopted, so many own observations are remembered; then it is void.
_MOST_SINCE = 1024


class StatisticsBeliefs:
    """One agent's statistics of each agent listened to, and what follows from them.

    Attributes:
        sources: What is known of each agent listened to.
        features: m.
        hypotheses: What K_z may be.
        posterior: What is believed, but for what is `unfolded`.
        recent: What was learnt last.
        task: The number of the last task; only its result is adopted.
        taken: The sums that it was given.
        since: Own observations that the last task does not know of.
        unfolded: Own observations that are in no sums that the posterior rests on.
        stale: Whether there is more in the sums than what is believed rests on.
        as_of: The agent's own round up to which evidence has faded in what is believed.
    """

    def __init__(self, policy: Policy, plan: Plan, agent: int, dim: int) -> None:
        self._policy, self._plan, self._agent = policy, plan, agent
        summariser = Summariser(policy, plan, dim)
        self._basis, self.features = summariser.basis, summariser.m
        self.hypotheses = Hypotheses.of(plan.lags, np.array([agent]), plan.K_z)
        self.me = int(self.hypotheses.me[0])
        self.sources = SourceSums.empty(summariser, self.hypotheses.agents.shape[1])
        self.posterior = self._prior()
        self.recent: Sequence[Observation] = ()
        self.task, self.stale, self.as_of = 0, False, 0
        self.taken: SourceSums | None = None
        self.since: tuple[Observation, ...] = ()
        self.unfolded: tuple[Observation, ...] = ()

    @property
    def n_observations(self) -> int:
        """How many observations have been learnt."""
        return int(self.sources.learnt.sum())

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another own observation before some are folded in."""
        return len(self.unfolded) >= _MOST_SINCE

    def n_observations_without(self, origins: Collection[int]) -> int:
        """How many observations have been learnt from others than these."""
        others = ~np.isin(self.hypotheses.agents[0], list(origins))
        return int(self.sources.learnt[others].sum())

    def learn(
        self, observations: Sequence[Observation], digests: Collection[Digest] = (), now: int = 0
    ) -> None:
        """Learn what has arrived, and estimate K_z again if that is due."""
        self.absorb(observations, digests, now)
        task = self.learning_task(now)
        if task is not None:
            self.adopt(task.run())

    def absorb(
        self, observations: Sequence[Observation], digests: Collection[Digest], now: int
    ) -> None:
        """Add up what has arrived; what is believed stays as it is."""
        if not observations and not digests:
            return
        places = self._places([one.origin for one in observations])
        sources = self.sources.with_observations(places, observations, now, self.me)
        for digest in digests:
            sources = sources.with_digest(int(self._places([digest.origin])[0]), digest, now)
        self.sources, self.stale, self.recent = sources, True, observations or self.recent

    def absorb_block(self, block: Block, now: int) -> None:
        """Add up k observations of one agent."""
        place = int(self._places([block.origin])[0])
        self.sources = self.sources.with_block(place, block, now, self.me)
        self.stale = True
        if block.origin == self._agent:
            for one in block.observations:
                self.saw(one)

    def take_sums(self, known: Mapping[int, SourceSums], now: int) -> None:
        """Let sums take the place of what was known of their origins; beliefs stay as they are."""
        places = self._places([*known])
        self.sources = self.sources.with_sources(places, [*known.values()], now, self.me)
        self.stale = True

    def place(self, origin: int) -> int:
        """Return where an agent that is listened to stands among the sources."""
        return int(self._places([origin])[0])

    def views(self) -> Views:
        """Return what K_z would be estimated from now, in a single view."""
        _, summaries = self.sources.at(self.as_of, self.me)
        views = Views.apart(self.hypotheses.agents, self.hypotheses.me, summaries[None])
        return self.hypotheses.given(views, np.array([self.n_observations]))

    def newest(self, origin: int) -> int:
        """Return the newest round of an agent that is known, 0 for none."""
        return int(self.sources.newest[self._places([origin])[0]])

    def saw(self, observation: Observation) -> None:
        """Note an observation of the agent's own, to be folded in before it is learnt."""
        if len(self.since) >= _MOST_SINCE:
            self.task, self.since = self.task + 1, ()
        if self.is_full:
            self.fold()
        self.since, self.unfolded = (*self.since, observation), (*self.unfolded, observation)

    def learning_task(self, now: int, owner: int = 0) -> LearningTask | None:
        """Take a snapshot of what was added up; None if nothing is new."""
        fades = self._policy.forget is not None and now > self.as_of and self.n_observations > 0
        if not self.stale and not fades:
            return None
        self.sources = self.sources.expired(now, self.me)
        sums, summaries = self.sources.at(now, self.me)
        self.task, self.taken, self.since = self.task + 1, self.sources, ()
        return LearningTask(
            agent=self._agent,
            number=self.task,
            owner=owner,
            known=self.n_observations,
            now=now,
            sums=sums,
            summaries=summaries,
            hypotheses=self.hypotheses,
            estimator=self._plan.estimator,
            m=self.features,
            ridge=self._policy.ridge,
            constants=self._policy.constants,
        )

    def adopt(self, result: LearningResult) -> None:
        """Believe what the last task found, and what was seen since: decisions need not fold it."""
        self.hypotheses, self.posterior = result.hypotheses, result.posterior
        self.unfolded, self.since = self.since, ()
        self.stale, self.as_of = self.sources is not self.taken, result.now
        self.task += 1  # no result is adopted twice
        self.fold()

    def fold(self) -> None:
        """Fold in own observations that came since."""
        if not self.unfolded:
            return
        asked = self._asked(np.array([one.context for one in self.unfolded]))
        for phi, one in zip(asked, self.unfolded, strict=True):
            self.posterior = self.posterior.conditioned(phi, one.reward, self._policy.ridge)
        self.unfolded = ()

    def predict(self, X: Array, attached: Array, *, joint: bool = False) -> Belief:
        """Return the belief at m contexts, with covariances if `joint`: (m, d), (·,)."""
        assert self._plan.basis is not None
        self.fold()
        phi = self._plan.basis.features(self._policy.kernel, X)
        asked, known = self._with_ones(phi), self.posterior
        mean, variance, covariance = known.ask(asked, joint=joint)
        belief = Belief(
            mean,
            variance,
            np.full(len(phi), known.logdet),
            np.full(len(phi), known.count),
            covariance,
        )
        agents = np.full(len(X), self._agent)
        return belief.with_residual(self._plan.prior, agents, X, phi)

    def draw(self, dim: int, width: float, rng: np.random.Generator) -> SamplePath:
        """Draw a function from N(mean, w²Σ)."""
        self.fold()
        mean, root, prior = self.posterior.mean, self.posterior.root, self._plan.prior
        return path_from_weights(prior, self._basis, self._agent, mean, root, rng, width=width)

    def surface(self, attached: Array) -> WeightsSurface:
        """Return mean and σ with their gradients, at any point."""
        self.fold()
        mean, root, prior = self.posterior.mean, self.posterior.root, self._plan.prior
        return WeightsSurface(prior, self._agent, self._basis, mean, root)

    def rows(self, observations: Sequence[Observation]) -> tuple[Array, Array]:
        """Return what k observations add to sums and summaries: (k, ·), (k, p)."""
        return self.sources.summariser.of(observations)

    def state(self) -> Any:
        """Return what `restore` needs to forget all that is learnt from now on."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: Any) -> None:
        """Go back to a state, to the bit."""
        for name in _STATE:
            setattr(self, name, state[name])

    def stored(self) -> Arrays:
        """Return the arrays that it can be made of again."""
        sources, known = self.sources, self.posterior
        return {
            **self.hypotheses.stored(),
            "sums": sources.sums,
            "summaries": sources.summaries,
            "learnt": np.stack([sources.learnt, sources.newest, sources.came]),
            "posterior_mean": known.mean,
            "posterior_covariance": known.covariance,
            "posterior_facts": np.array([known.logdet, known.count, self.stale, self.as_of]),
        }

    def refreshed(self) -> LinearPosterior:
        """Return what the sums say under the present hypotheses."""
        sums, _ = self.sources.at(self.as_of, self.me)
        policy = self._policy
        return believed(self.hypotheses, sums, self.features, policy.ridge, policy.constants)

    def _prior(self) -> LinearPosterior:
        own = float(self._plan.prior.K_z.own(np.array([self._agent]))[0])
        variances = np.full(self.features, own)
        if self._policy.constants is not None:
            variances = np.append(variances, self._policy.constants.variance)
        return LinearPosterior(np.zeros(len(variances)), np.diag(variances), 0.0, 0)

    def _asked(self, X: Array) -> Array:
        return self._with_ones(self._basis.features(self._policy.kernel, X))

    def _with_ones(self, phi: Array) -> Array:
        constants = self._policy.constants
        return phi if constants is None else constants.features(phi)

    def _places(self, origins: Sequence[int]) -> IntArray:
        return np.searchsorted(self.hypotheses.agents[0], origins)


# What changes as an agent learns.
_STATE = (
    "sources", "hypotheses", "posterior", "recent", "task", "taken", "since", "unfolded", "stale",
    "as_of",
)  # fmt: skip
