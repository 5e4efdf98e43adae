"""Learning apart from deciding: what an agent is to work out, as a value without any state.

`agent.learning_task()` takes a snapshot of what has arrived; `task.run()` is a pure function of it
and may run in any thread or process; `agent.adopt(result)` puts the result in the place of what was
believed. `agent.decide()` is these three and a decision in a row.
"""

from dataclasses import dataclass, field

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.gp.intercept import Intercept, as_statistics
from coopbandits.gp.linear_posterior import LinearPosterior
from coopbandits.gp.mixture import mixture_root
from coopbandits.gp.weights import Weights
from coopbandits.similarity.hypotheses import Estimator, Hypotheses
from coopbandits.similarity.similarity import Views


@dataclass(frozen=True, eq=False)
class LearningTask:
    """What has arrived, and what K_z was last: all that learning needs.

    Attributes:
        agent: Whose task it is.
        number: Which of its tasks.
        owner: Which agent of this process.
        known: How many observations there are, faded or not.
        now: The agent's own round up to which they have faded.
    """

    agent: int
    number: int
    owner: int
    known: int
    now: int
    sums: Array = field(repr=False)
    summaries: Array = field(repr=False)
    hypotheses: Hypotheses = field(repr=False)
    estimator: Estimator | None = field(repr=False)
    m: int
    ridge: float
    constants: Intercept | None

    def run(self) -> "LearningResult":
        """Estimate K_z, if that is due, and what is believed under it. Changes nothing."""
        hypotheses = self.hypotheses
        if self.estimator is not None:
            known = np.array([self.known])
            hypotheses, _ = hypotheses.refreshed(self.estimator, known, self._views)
        posterior = believed(hypotheses, self.sums, self.m, self.ridge, self.constants)
        return LearningResult(
            self.agent, self.number, self.owner, self.known, self.now, hypotheses, posterior
        )

    def _views(self, due: IntArray) -> Views:
        return Views.apart(self.hypotheses.agents, self.hypotheses.me, self.summaries[None])


@dataclass(frozen=True, eq=False)
class LearningResult:
    """What a task found: hypotheses of K_z, and what is believed under them.

    Attributes:
        agent: Whose task it was.
        number: Which of its tasks.
        owner: Which agent of this process.
        known: From how many observations, faded or not.
        now: The agent's own round up to which they have faded.
    """

    agent: int
    number: int
    owner: int
    known: int
    now: int
    hypotheses: Hypotheses = field(repr=False)
    posterior: LinearPosterior = field(repr=False)


def believed(
    hypotheses: Hypotheses, sums: Array, m: int, ridge: float, constants: Intercept | None
) -> LinearPosterior:
    """Return what a single view's sums say about the agent's own weights.

    Args:
        hypotheses: Of one view.
        sums: (N, ·) the statistics of each agent that it hears, of (φ, 1) with an intercept.
        m: How many features there are.
        ridge: λ.
        constants: Of agents' own constants, which are integrated out.
    """
    H = len(hypotheses.whose)
    means, logdets, counts = np.empty((H, m)), np.empty(H), np.empty(H)
    roots: list[Array] = [np.empty((m, 0))] * H
    units = np.eye(m)
    for batch in hypotheses.together:
        rows = sums[batch.columns] * batch.real[..., None]
        statistics = as_statistics(rows, m, constants)
        weights = Weights.pooled(batch.U, batch.delta, batch.me, statistics, ridge, batch.scale)
        mean, Z, logdet = weights.ask(np.broadcast_to(units, (len(batch.me), m, m)))
        means[batch.index], logdets[batch.index] = mean, logdet
        counts[batch.index] = statistics.n.sum(axis=1)
        for h, root in zip(batch.index, np.sqrt(ridge) * Z, strict=True):
            roots[h] = root
    mean, G = mixture_root(means, roots, hypotheses.weight)
    covariance = G @ G.T
    if constants is not None:
        own = constants.own(sums[hypotheses.me], m)
        both, spread = own.joint(mean[None], covariance[None])
        mean, covariance = both[0], spread[0]
    expected = float(hypotheses.weight @ logdets)
    return LinearPosterior(mean, covariance, expected, int(counts.max()))
