"""What does one agent make of all that it has heard, and what does it attach to what it says?

Its K_z, if it learns one, and its posterior; where K_z may be one of several, one under each.

A model is a function of its observations, in the order in which they came, and of two numbers: in
which batches they were learnt (`blocks`), and how many there were when K_z was last estimated
(`estimated`). With these it can be replayed to the bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.compositions import JointKernel, composition
from coopbandits.gp.mixture import Mixture
from coopbandits.gp.posterior import Belief, Newest, ObservationKernel, Posterior
from coopbandits.policy import Plan, Policy
from coopbandits.similarity import Learnt, Loadings, Views
from coopbandits.similarity.loadings import linked
from coopbandits.similarity.mean_embedding import EmbeddingLearner
from coopbandits.similarity.similarity import estimated, is_due

# An observation: whose, x̃ = (x, what was attached), y.
Observation = tuple[int, Array, float]


@dataclass(eq=False)
class Mind:
    """What an agent thinks if K_z is this: its posterior, of whom (V,), and how likely it is."""

    posterior: Posterior
    related: BoolArray
    weight: float = 1.0

    def stacked(
        self, observations: Sequence[Observation], width: int | None
    ) -> tuple[IntArray, Array, Array]:
        """Lay those that count under each other: (k,), (k, width), (k,)."""
        kept = [(o, x[:width], y) for o, x, y in observations if self.related[o]]
        if not kept:
            return np.empty(0, dtype=np.int64), np.empty((0, width or 0)), np.empty(0)
        origins, contexts, rewards = zip(*kept, strict=True)
        return np.array(origins), np.array(contexts), np.array(rewards)

    def look_ahead(self, observations: Sequence[Observation], width: int | None) -> Newest | None:
        """Look ahead to observations, if any of them counts."""
        stacked = self.stacked(observations, width)
        return self.posterior.look_ahead(*stacked) if len(stacked[0]) else None


@dataclass(eq=False)
class Model:
    """One agent's beliefs after so many observations; `ahead` makes the next, changing nothing."""

    policy: Policy
    plan: Plan
    agent: int
    dim: int
    minds: list[Mind] = field(init=False)
    blocks: list[int] = field(default_factory=list)
    estimated: int = 0
    sums: Array = field(default_factory=lambda: np.empty((0, 0)))
    loadings: Loadings | None = None

    def __post_init__(self) -> None:
        everyone = np.ones(len(self.plan.lags), dtype=np.bool_)
        self.minds = [Mind(Posterior(self.plan.kernel, self.policy.ridge), everyone)]

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
            return Ahead(self, self)
        if not self._learns:
            return Ahead(self, self, self._looked_ahead(observations[-new:]), new)
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
            return Ahead(self, fresh)
        return Ahead(self, self, self._looked_ahead(observations[-new:]), new, sums)

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

    @property
    def _width(self) -> int | None:
        """How much of x̃ the posterior takes."""
        return None if self.plan.frozen else self.dim

    def _looked_ahead(self, observations: Sequence[Observation]) -> list[Newest | None]:
        return [mind.look_ahead(observations, self._width) for mind in self.minds]

    def _extend(self, observations: Sequence[Observation]) -> None:
        for mind in self.minds:
            mind.posterior.extend(*mind.stacked(observations, self._width))
        self.blocks.append(len(observations))

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
            sources[None, :],
            np.searchsorted(sources, [self.agent]),
            self.sums[None, sources],
        )
        loadings = estimated(learner, views)
        self.loadings, self.estimated = loadings, count
        me = np.repeat(views.me, len(loadings.U))
        inside = linked(loadings, me, composition(self.policy.compose))
        self.minds = []
        for K_z, mine, weight in zip(loadings.matrix, inside, loadings.weight, strict=True):
            related = np.zeros(len(self.plan.lags), dtype=np.bool_)
            related[sources] = mine
            kernel = learnt_kernel(self.policy, len(related), sources, K_z)
            self.minds.append(Mind(Posterior(kernel, self.policy.ridge), related, float(weight)))


@dataclass(frozen=True, eq=False)
class Ahead:
    """A model, and what it will be: ask it, then `commit`.

    `newest` is what each mind of `next` has not learnt yet, None where that is nothing.
    """

    model: Model
    next: Model
    newest: list[Newest | None] = field(default_factory=list)
    size: int = 0
    sums: Array | None = None

    @property
    def minds(self) -> list[tuple[Mind, Newest | None]]:
        """Each mind, with what it has not learnt yet."""
        newest = self.newest or [None] * len(self.next.minds)
        return list(zip(self.next.minds, newest, strict=True))

    def predict(self, contexts: Array) -> Belief:
        """Return the belief of the model's agent at m contexts, all observations learnt."""
        m, joint = len(contexts), draws(self.model.policy.act)
        mixture = Mixture(m, m if joint else 0)
        agents = np.full(m, self.model.agent)
        for mind, newest in self.minds:
            if newest is None:
                belief = mind.posterior.predict(agents, contexts, joint=joint)
            else:
                known = np.ones((len(mind.related), len(newest.agents)), dtype=np.bool_)
                belief = newest.predict(agents, contexts, known, joint=joint)
            mixture.add_one(belief, np.arange(m), mind.weight)
        return mixture.belief()

    def commit(self) -> Model:
        """Learn what was looked ahead to; nothing raises."""
        for mind, newest in self.minds:
            if newest is not None:
                mind.posterior.absorb(newest)
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
        sampled = learner.sampled(own, offered, np.array([index]))[:1]
        return self._gained(sampled[0])

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
        sampled = learner.sampled(owners, np.vstack([point, offered]), rows)[:1]
        return self._gained(sampled[0])

    def _gained(self, new: Array) -> "Attachments":
        learner = self.plan.learner
        assert learner is not None
        if not self.plan.frozen:
            return replace(self, newest=new)
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
