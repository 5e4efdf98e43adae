"""What has happened so far, and what has each agent heard of it?"""

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.policy import Plan
from coopbandits.problems.problem import Round
from coopbandits.similarity import Views
from coopbandits.similarity.mean_embedding import EmbeddingLearner


class Record:
    """All observations of a simulation, with sums of their summaries where K_z is learnt.

    Attributes:
        observed: (T, V, ·) the chosen contexts as the posterior takes them; where embeddings are
            frozen that is with what was attached to each.
        rewards: (T, V).
        width: How many numbers a message carries as its context.
        rows: (V,) which row of the last offer each agent chose.
    """

    def __init__(self, plan: Plan, rounds: int) -> None:
        V = len(plan.lags)
        self._plan = plan
        self.observed: Array = np.empty((rounds, V, 0))
        self.width = 0
        self.rewards = np.zeros((rounds, V))
        self.rows = np.full(V, -1)
        self._samples: Array = np.empty((V, 0))
        self._dim = 0
        finite = plan.lags[np.isfinite(plan.lags)]
        # sums after each of the last rounds, as far back as any news is old
        self._depth = int(finite.max()) + 1
        self._sums: Array = np.empty((self._depth, V, 0))

    def asked(self, offer: Round) -> Array:
        """Return a round's contexts as the posterior takes them: (M, ·)."""
        learner = self._plan.learner
        if not self._plan.frozen:
            return offer.contexts
        assert isinstance(learner, EmbeddingLearner)
        mine = learner.asked(offer.agents, offer.contexts, self._samples)
        return np.hstack([offer.contexts, mine[offer.agents]])

    def add(self, t: int, turn: IntArray, offer: Round, rows: IntArray) -> None:
        """Write down what the agents of a turn chose in round t: rows (V,) of the offer."""
        learner = self._plan.learner
        if t == 1 and not self.observed.size:
            self._dim = offer.contexts.shape[1]
            self.width = self._dim + (learner.attached(self._dim) if learner else 0)
            kept = self.width if self._plan.frozen else self._dim
            self.observed = np.zeros((*self.rewards.shape, kept))
        self.rows[turn] = rows[turn]
        self.observed[t - 1, turn, : self._dim] = offer.contexts[rows[turn]]
        self.rewards[t - 1, turn] = offer.rewards[rows[turn]]
        if learner is None:
            return
        sampled = learner.sampled(offer.agents, offer.contexts, rows)
        if self._plan.frozen:
            assert isinstance(learner, EmbeddingLearner)
            self._samples = self._samples + sampled if self._samples.size else sampled
            self.observed[t - 1, :, self._dim :] = learner.embedded(self._samples)
            return
        new = learner.summaries(offer.contexts[rows], sampled, self.rewards[t - 1])
        if t == 1:
            self._sums = np.zeros((self._depth, *new.shape))
        self._sums[t % self._depth] = self._sums[(t - 1) % self._depth] + new

    def views(self, t: int, agents: IntArray, lags: Array, me: IntArray) -> Views:
        """Return what has arrived by the decisions of round t: (B, N), (B, N), (B,).

        A lag of inf pads a row.
        """
        after = np.where(np.isfinite(lags), t - np.minimum(lags, t), 0.0).astype(np.int64)
        depth, V, p = self._sums.shape
        nothing = depth * V
        table = np.vstack([self._sums.reshape(nothing, p), np.zeros((1, p))])
        index = np.where(after > 0, after % depth * V + agents, nothing)
        return Views.of(agents, me, table, index)

    def known(self, t: int, lags: Array) -> IntArray:
        """Count the observations that have arrived by the decisions of round t: (B, N) -> (B,)."""
        return np.asarray(np.maximum(t - lags, 0.0).sum(axis=1).astype(np.int64))
