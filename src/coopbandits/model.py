"""What does one agent make of all that it has heard, and what does it attach to what it says?

Its K_z, if it learns one, and its posterior.

A model is a function of its observations, in the order in which they came, and of two numbers: in
which batches they were learnt (`blocks`), and how many there were when K_z was last estimated
(`estimated`). With these it can be replayed to the bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.compositions import JointKernel, composition
from coopbandits.policy import Plan, Policy
from coopbandits.posterior import Belief, Newest, ObservationKernel, Posterior
from coopbandits.similarity import Learnt, Loadings, Views
from coopbandits.similarity.mean_embedding import EmbeddingLearner
from coopbandits.similarity.similarity import estimated, is_due, linked

# An observation: whose, x̃ = (x, what was attached), y.
Observation = tuple[int, Array, float]


@dataclass(eq=False)
class Model:
    """One agent's beliefs after so many observations; `ahead` makes the next, changing nothing."""

    policy: Policy
    plan: Plan
    agent: int
    dim: int
    posterior: Posterior = field(init=False)
    blocks: list[int] = field(default_factory=list)
    estimated: int = 0
    sums: Array = field(default_factory=lambda: np.empty((0, 0)))
    loadings: Loadings | None = None
    related: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.posterior = Posterior(self.plan.kernel, self.policy.ridge)
        self.related = np.ones(len(self.plan.lags), dtype=np.bool_)

    @property
    def known(self) -> int:
        """How many observations have been learnt."""
        return sum(self.blocks)

    @property
    def sources(self) -> IntArray:
        """From whom the agent learns."""
        return np.flatnonzero(np.isfinite(self.plan.lags[self.agent]))

    def ahead(self, observations: Sequence[Observation]) -> "Ahead":
        """Look ahead to all observations, of which this model has learnt the first."""
        new = len(observations) - self.known
        if new == 0:
            return Ahead(self, self, None)
        newest: Newest | None
        if not self._learns:
            newest = self.posterior.look_ahead(*self._stacked(observations[-new:]))
            return Ahead(self, self, newest, new)
        sums = self._summed(observations[-new:])
        similarity = self.policy.similarity
        assert isinstance(similarity, Learnt)
        if is_due(
            similarity,
            np.array([len(observations)]),
            np.array([self.estimated]),
            np.array([len(self.sources)]),
        )[0]:
            fresh = Model(self.policy, self.plan, self.agent, self.dim)
            fresh.sums = sums
            fresh._estimate(len(observations))
            fresh._extend(observations)
            return Ahead(self, fresh, None)
        stacked = self._stacked(observations[-new:])
        newest = self.posterior.look_ahead(*stacked) if len(stacked[0]) else None
        return Ahead(self, self, newest, new, sums)

    def replay(
        self, observations: Sequence[Observation], blocks: list[int], estimated: int
    ) -> None:
        """Learn observations again, as a model that was stored did."""
        if self._learns and estimated:
            self.sums = self._summed(observations[:estimated])
            self._estimate(estimated)
            learnt = blocks[0]
            self._extend(observations[:learnt])
            self.sums = self._summed(observations[learnt : sum(blocks)])
            blocks = blocks[1:]
        for size in blocks:
            self._extend(observations[self.known : self.known + size])

    @property
    def _learns(self) -> bool:
        return self.plan.learner is not None and not self.plan.frozen

    def _extend(self, observations: Sequence[Observation]) -> None:
        self.posterior.extend(*self._stacked(observations))
        self.blocks.append(len(observations))

    def _stacked(self, observations: Sequence[Observation]) -> tuple[IntArray, Array, Array]:
        """Lay those that count under each other: (k,), (k, d), (k,)."""
        width = None if self.plan.frozen else self.dim
        kept = [(o, x[:width], y) for o, x, y in observations if self.related[o]]
        if not kept:
            return np.empty(0, dtype=np.int64), np.empty((0, self.dim)), np.empty(0)
        origins, contexts, rewards = zip(*kept, strict=True)
        return np.array(origins), np.array(contexts), np.array(rewards)

    def _summed(self, observations: Sequence[Observation]) -> Array:
        """Add the summaries of observations to the sums, one by one: (V, p)."""
        learner = self.plan.learner
        assert learner is not None
        sums = self.sums
        for origin, x, y in observations:
            row = learner.summaries(x[None, : self.dim], x[None, self.dim :], np.array([y]))
            if not sums.size:
                sums = np.zeros((len(self.plan.lags), row.shape[1]))
            elif sums is self.sums:
                sums = sums.copy()
            sums[origin] += row[0]
        return sums

    def _estimate(self, count: int) -> None:
        """Learn K_z from the sums."""
        learner, sources = self.plan.learner, self.sources
        assert learner is not None
        views = views_of(
            sources[None, :], np.searchsorted(sources, [self.agent]), self.sums[None, sources]
        )
        self.loadings, self.estimated = estimated(learner, views), count
        self.related[:] = False
        self.related[sources] = linked(self.loadings, views.me, composition(self.policy.compose))[0]
        kernel = learnt_kernel(self.policy, len(self.related), sources, self.loadings.matrix[0])
        self.posterior = Posterior(kernel, self.policy.ridge)


@dataclass(frozen=True, eq=False)
class Ahead:
    """A model, and what it will be: ask it, then `commit`."""

    model: Model
    next: Model
    newest: Newest | None
    size: int = 0
    sums: Array | None = None

    def predict(self, contexts: Array) -> Belief:
        """Return the belief of the model's agent at m contexts, all observations learnt."""
        agents, joint = np.full(len(contexts), self.model.agent), draws(self.model.policy.act)
        if self.newest is None:
            return self.next.posterior.predict(agents, contexts, joint=joint)
        known = np.ones((len(self.model.related), len(self.newest.agents)), dtype=np.bool_)
        return self.newest.predict(agents, contexts, known, joint=joint)

    def commit(self) -> Model:
        """Learn what was looked ahead to; nothing raises."""
        if self.newest is not None:
            self.model.posterior.absorb(self.newest)
        if self.size:
            self.model.blocks.append(self.size)
        if self.sums is not None:
            self.model.sums = self.sums
        return self.next


@dataclass(frozen=True, eq=False)
class Attachments:
    """What goes with an agent's contexts, for others to learn K_z from.

    Attributes:
        plan: Of the agent's policy.
        newest: (k,) what goes with the newest context.
        sample: The sum of the agent's own samples, where embeddings are frozen.
    """

    plan: Plan
    newest: Array = field(default_factory=lambda: np.empty(0))
    sample: Array = field(default_factory=lambda: np.empty(0))

    def width(self, dim: int) -> int:
        """How many numbers a message carries for contexts of d numbers."""
        return dim + (self.plan.learner.attached(dim) if self.plan.learner else 0)

    def with_choice(self, offered: Array, index: int) -> "Attachments":
        """Return what goes with a choice, and all that it leaves for later: (K, d)."""
        learner = self.plan.learner
        if learner is None:
            return self
        own = np.zeros(len(offered), dtype=np.int64)
        return self._gained(learner.sampled(own, offered, np.array([index]))[0])

    def with_point(self, point: Array, offered: Array) -> "Attachments":
        """Return what goes with a point of a continuum: (d,), and (K, d) that stand for all of it.

        The point itself counts as chosen, not as offered.
        """
        learner = self.plan.learner
        if learner is None:
            return self
        # nobody, agent 1, was offered the point
        owners = np.append(1, np.zeros(len(offered), dtype=np.int64))
        rows = np.zeros(2, dtype=np.int64)
        return self._gained(learner.sampled(owners, np.vstack([point, offered]), rows)[0])

    def _gained(self, new: Array) -> "Attachments":
        if not self.plan.frozen:
            return replace(self, newest=new)
        learner = self.plan.learner
        assert isinstance(learner, EmbeddingLearner)
        sample = self.sample + new if self.sample.size else new
        return replace(self, newest=learner.embedded(sample), sample=sample)

    def asked(self, X: Array, offered: Array) -> Array:
        """Return contexts as the posterior takes them, given all that is offered: (m, ·)."""
        if not self.plan.frozen:
            return X
        return np.hstack([X, np.repeat(self.attached(offered)[None, :], len(X), axis=0)])

    def attached(self, offered: Array) -> Array:
        """Return what the posterior takes beside each context, given all that is offered: (·,)."""
        learner = self.plan.learner
        if not self.plan.frozen:
            return np.empty(0)
        assert isinstance(learner, EmbeddingLearner)
        own = np.zeros(len(offered), dtype=np.int64)
        return np.asarray(learner.asked(own, offered, self.sample[None, :])[0])


def views_of(agents: IntArray, me: IntArray, sums: Array) -> Views:
    """Make views of sums that nobody shares: (B, N, p)."""
    index = np.arange(agents.size).reshape(agents.shape)
    return Views.of(agents, me, sums.reshape(-1, sums.shape[-1]), index)


def learnt_kernel(policy: Policy, V: int, sources: IntArray, K_z: Array) -> ObservationKernel:
    """Make the joint kernel of a learnt K_z between some agents: (N, N)."""
    whole = np.zeros((V, V))
    whole[np.ix_(sources, sources)] = K_z
    return JointKernel(policy.kernel, whole, composition(policy.compose))
