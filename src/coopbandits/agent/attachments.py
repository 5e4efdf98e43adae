"""What does an agent attach to its observations, for others to estimate K_z from?"""

from dataclasses import dataclass, field, replace

import numpy as np

from coopbandits.arrays import Array, as_floats, frozen
from coopbandits.policy import Plan
from coopbandits.protocol.messages import nothing
from coopbandits.similarity.mean_embedding import EmbeddingLearner


@dataclass(frozen=True, eq=False)
class Attachments:
    """What goes with an agent's contexts.

    Attributes:
        plan: Of the agent's policy.
        newest: (k,) what goes with the newest context.
        sample: The sum of the agent's own samples, where embeddings are frozen.
    """

    plan: Plan
    newest: Array = field(default_factory=nothing)
    sample: Array = field(default_factory=nothing)

    def with_choice(self, chosen: Array, offered: Array, index: int | None) -> "Attachments":
        """Return what goes with a choice, and all that it leaves for later.

        Args:
            chosen: (d,).
            offered: (K, d); what stands for a continuum, where there is one.
            index: Which of them was chosen. None for a point of a continuum, which counts as
                chosen and not as offered.
        """
        estimator = self.plan.estimator
        if estimator is None:
            return self
        owners, rows = np.zeros(len(offered), dtype=np.int64), [index]
        if index is None:  # nobody, agent 1, was offered the point
            owners, rows = np.append(1, owners), [0, 0]
            offered = np.vstack([chosen, offered])
        sampled = estimator.learner.sampled(owners, offered, np.array(rows))[0]
        gained = as_floats(sampled, "what is attached to a context")
        if not self.plan.frozen:
            return replace(self, newest=frozen(gained))
        assert isinstance(estimator.learner, EmbeddingLearner)
        sample = self.sample + gained if self.sample.size else gained
        return replace(self, newest=frozen(estimator.learner.embedded(sample)), sample=sample)

    def by_themselves(self, X: Array) -> Array:
        """Return what goes with k contexts of which each was all that was offered: (k, ·)."""
        estimator = self.plan.estimator
        if estimator is None:
            return np.empty((len(X), 0))
        each = np.arange(len(X))
        sampled = as_floats(
            estimator.learner.sampled(each, X, each), "what is attached to contexts"
        )
        if not self.plan.frozen:
            return frozen(sampled)
        assert isinstance(estimator.learner, EmbeddingLearner)
        return frozen(estimator.learner.embedded(sampled))

    def asked(self, offered: Array) -> Array:
        """Return what the posterior takes beside each context, given all that is offered: (·,)."""
        if not self.plan.frozen:
            return nothing()
        assert self.plan.estimator is not None
        learner = self.plan.estimator.learner
        assert isinstance(learner, EmbeddingLearner)
        own = np.zeros(len(offered), dtype=np.int64)
        return np.asarray(learner.asked(own, offered, self.sample[None, :])[0])
