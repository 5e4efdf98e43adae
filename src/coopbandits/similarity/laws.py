r"""Who is offered what? Laws of contexts, of agents and of groups of them.

Where agents attach the mean features of the contexts offered to them, these say something about who
is alike: groups may have a context law each, N(c_g, v·I), with v what contexts vary by within
agents.

Leading axes: B views; N agents; G groups; m features.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.statistics import Statistics
from coopbandits.similarity.similarity import Views

# By how many deviations agents' context means must differ more than chance, to be looked at.
_SIGNIFICANT = 4.0


@dataclass(frozen=True, eq=False)
class Contexts:
    """Each agent's mean offered context, in units of its deviation: mean (B, N, m), n (B, N)."""

    mean: Array
    n: Array

    @classmethod
    def of(cls, views: Views, statistics: Statistics) -> "Contexts":
        """Take each agent's mean from the ends of the views' summaries."""
        n, m = statistics.n, statistics.b.shape[-1]
        total, heard = views.table[:, -m - 1 : -1][views.index], views.heard
        mean = total / np.maximum(n, 1.0)[..., None]
        within = views.table[:, -1][views.index] - (total * mean).sum(axis=-1)
        freedom = m * (np.maximum(n - 1, 0.0) * heard).sum(axis=1)
        variance = (within * heard).sum(axis=1) / np.maximum(freedom, 1.0)
        weight = n * heard
        overall = (weight[..., None] * mean).sum(axis=1) / np.maximum(weight.sum(axis=1), 1.0)[
            :, None
        ]
        # agents whose contexts never vary, or seen once only, say nothing that can be measured
        known = (freedom > 0) & (variance > 1e-12 * np.maximum((mean**2).mean(axis=(1, 2)), 1e-300))
        deviation = np.sqrt(np.where(known, variance, 1.0))[:, None, None]
        centred = (mean - overall[:, None, :]) / deviation * (heard & known[:, None])[..., None]
        return cls(centred, weight * known[:, None])

    def telling(self, heard: BoolArray) -> BoolArray:
        """Tell in which views the agents' contexts differ by more than chance: (B,).

        Σ n|mean|² has a χ² law if all contexts follow one.
        """
        freedom = self.mean.shape[-1] * np.maximum(heard.sum(axis=1) - 1.0, 0.0)
        spread = (self.n * (self.mean**2).sum(axis=-1)).sum(axis=1)
        return np.asarray(spread > freedom + _SIGNIFICANT * np.sqrt(2 * freedom))

    def loglik(self, r: Array) -> Array:
        """Return how likely each agent's mean is under each group's law, up to a constant."""
        weight = np.swapaxes(r, 1, 2)
        size = (weight @ self.n[..., None])[..., 0] + 1.0  # a group's centre is N(0, I) beforehand
        centre = (weight @ (self.n[..., None] * self.mean)) / size[..., None]
        distance = (
            (self.mean**2).sum(axis=-1)[..., None]
            - 2 * self.mean @ np.swapaxes(centre, 1, 2)
            + (centre**2).sum(axis=-1)[:, None, :]
        )
        variance = 1.0 / np.maximum(self.n, 1.0)[..., None] + 1.0 / size[:, None, :]
        m = self.mean.shape[-1]
        return -0.5 * (distance / variance + m * np.log(variance))

    def evidence(self, n: Array, total: Array) -> Array:
        """Return the log evidence of pooled samples, up to a constant: (…), (…, m) -> (…)."""
        m = total.shape[-1]
        return 0.5 * ((total**2).sum(axis=-1) / (n + 1.0) - m * np.log1p(n))

    def take(self, index: IntArray | slice) -> "Contexts":
        """Take some views, in order."""
        return Contexts(self.mean[index], self.n[index])
