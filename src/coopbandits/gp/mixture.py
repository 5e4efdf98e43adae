r"""What does an agent believe that does not know which K_z holds? A mixture.

Under hypothesis h, of probability w_h, an agent's function has mean μ_h and covariance Σ_h at what
it is asked. Whatever acts on beliefs takes the mean and the covariance of the mixture,

    μ = Σ_h w_h μ_h        Σ = Σ_h w_h (Σ_h + (μ_h − μ)(μ_h − μ)ᵀ)

so where hypotheses disagree the agent is unsure, and nowhere else. How much is known, log det
(I + K/λ), is the mean of it too; what is counted are the observations of the hypothesis under which
there are the most.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.posterior import Belief, ObservationKernel, Posterior
from coopbandits.gp.sample_path import SamplePath, path_from_posterior


@dataclass(frozen=True, eq=False)
class _Part:
    """A belief at some rows, under hypotheses: rows, view, column and weight (k,)."""

    rows: IntArray
    view: IntArray
    column: IntArray
    weight: Array
    belief: Belief


class Mixture:
    """Beliefs at m queries, put together from those under each hypothesis."""

    def __init__(self, m: int, joint: int = 0) -> None:
        """Make room for m queries, with `joint` covariances each."""
        self._m, self._joint = m, joint
        self._parts: list[_Part] = []

    def add(
        self, belief: Belief, rows: IntArray, *, view: IntArray, column: IntArray, weight: Array
    ) -> None:
        """Add what is believed at k rows.

        Args:
            belief: (k,).
            rows: (k,) at which queries.
            view: (k,) under which hypothesis, numbered from 0 in this call.
            column: (k,) which of its agent's queries each is.
            weight: (k,) how likely the hypothesis is.
        """
        self._parts.append(_Part(rows, view, column, weight, belief))

    def add_one(self, belief: Belief, rows: IntArray, weight: float) -> None:
        """Add what is believed at all k rows of one agent, under one hypothesis."""
        k = len(rows)
        self.add(
            belief,
            rows,
            view=np.zeros(k, dtype=np.int64),
            column=np.arange(k),
            weight=np.full(k, weight),
        )

    def belief(self) -> Belief:
        """Return what is believed, nothing where nothing was added."""
        whole = Belief.nothing(self._m, self._joint)
        if all((part.weight == 1).all() for part in self._parts):
            for part in self._parts:
                part.belief.put(whole, part.rows)
            return whole
        for part in self._parts:
            np.add.at(whole.mean, part.rows, part.weight * part.belief.mean)
            np.add.at(whole.logdet, part.rows, part.weight * part.belief.logdet)
            np.maximum.at(whole.count, part.rows, part.belief.count)
        for part in self._parts:
            off = part.belief.mean - whole.mean[part.rows]
            np.add.at(whole.variance, part.rows, part.weight * (part.belief.variance + off**2))
            if part.belief.covariance is not None and whole.covariance is not None:
                K = part.belief.covariance.shape[1]
                together = np.zeros((int(part.view.max(initial=-1)) + 1, K))
                together[part.view, part.column] = off
                spread = part.belief.covariance + off[:, None] * together[part.view]
                np.add.at(whole.covariance[:, :K], part.rows, part.weight[:, None] * spread)
        return whole


class Moments:
    """Means (V, m) and covariances (V, m, m) of V agents' weights, added up over hypotheses.

    Sums are taken around the first mean that each agent has, so that one hypothesis stays as it is
    and several lose no digits.
    """

    def __init__(self, V: int, m: int) -> None:
        self._there = np.zeros(V, dtype=np.bool_)
        self._first, self._off = np.zeros((V, m)), np.zeros((V, m))
        self._spread = np.zeros((V, m, m))
        self._logdet, self._count = np.zeros(V), np.zeros(V, dtype=np.int64)

    def add(
        self,
        agents: IntArray,
        weight: Array,
        mean: Array,
        covariance: Array,
        logdet: Array,
        count: IntArray,
    ) -> None:
        """Add what agents believe, each under a hypothesis: (B,), (B,), (B, m), (B, m, m), …"""
        new, at = np.unique(agents, return_index=True)
        fresh = ~self._there[new]
        self._first[new[fresh]] = mean[at[fresh]]
        self._there[new] = True
        off = mean - self._first[agents]
        np.add.at(self._off, agents, weight[:, None] * off)
        for agent, w, o, own in zip(agents, weight, off, covariance, strict=True):
            self._spread[agent] += w * (own + np.outer(o, o))
        np.add.at(self._logdet, agents, weight * logdet)
        np.maximum.at(self._count, agents, count)

    def whole(self) -> tuple[IntArray, Array, Array, Array, IntArray]:
        """Return whose, and the mixture's mean, covariance, log det and count."""
        agents = np.flatnonzero(self._there)
        off = self._off[agents]
        spread = self._spread[agents] - off[:, :, None] * off[:, None, :]
        mean = self._first[agents] + off
        return agents, mean, spread, self._logdet[agents], self._count[agents]


def mixture_root(means: Array, roots: list[Array], weight: Array) -> tuple[Array, Array]:
    """Return μ (K,) and G (K, ·) with Σ = GGᵀ, from those under each hypothesis.

    Beside each hypothesis' own part of Σ stands how far off its mean is.

    Args:
        means: (H, K) μ_h.
        roots: H arrays (K, ·), Σ_h = G_hG_hᵀ.
        weight: (H,).
    """
    if len(roots) == 1:
        return means[0], roots[0]
    mean = weight @ means
    parts = [
        np.sqrt(w) * np.column_stack([root, one - mean])
        for w, root, one in zip(weight, roots, means, strict=True)
    ]
    return mean, np.hstack(parts)


@dataclass(frozen=True, eq=False)
class PosteriorMixture:
    """One agent's posterior under each of H hypotheses.

    Attributes:
        posteriors: One for each.
        weight: (H,) how likely each is.
        sources: (n,) whom the agent hears, ascending; nobody where there are no strangers.
        related: (H, n) who of them is no stranger under each.
        scale: (H, n) what their rewards are multiplied by under each.
    """

    posteriors: tuple[Posterior, ...]
    weight: Array
    sources: IntArray
    related: BoolArray
    scale: Array

    @classmethod
    def under(cls, kernel: ObservationKernel, ridge: float) -> "PosteriorMixture":
        """Start with one kernel, under which nobody is a stranger."""
        nobody = np.empty(0, dtype=np.int64)
        none = np.ones((1, 0))
        return cls((Posterior(kernel, ridge),), np.ones(1), nobody, none > 0, none)

    def extend(self, origins: IntArray, X: Array, y: Array) -> None:
        """Learn k observations, under each hypothesis those of no stranger: (k,), (k, d), (k,)."""
        at = np.searchsorted(self.sources, origins) if len(self.sources) else origins[:0]
        for posterior, related, scale in zip(
            self.posteriors, self.related, self.scale, strict=True
        ):
            kept = related[at]
            scaled = y * scale[at] if len(at) else y
            if kept.all():
                posterior.extend(origins, X, scaled)
            else:
                posterior.extend(origins[kept], X[kept], scaled[kept])

    def predict(self, agents: IntArray, X: Array, *, joint: bool = False) -> Belief:
        """Return the belief at m queries of one agent: (m,), (m, d)."""
        if len(self.posteriors) == 1:
            return self.posteriors[0].predict(agents, X, joint=joint)
        m = len(X)
        mixture = Mixture(m, m if joint else 0)
        for posterior, weight in zip(self.posteriors, self.weight, strict=True):
            belief = posterior.predict(agents, X, joint=joint)
            mixture.add_one(belief, np.arange(m), float(weight))
        return mixture.belief()

    def draw(self, agent: int, dim: int, width: float, rng: np.random.Generator) -> SamplePath:
        """Draw a function from N(mean, w²Σ): of a mixture one of a hypothesis that is drawn."""
        h = 0
        if len(self.posteriors) > 1:
            h = int(rng.choice(len(self.posteriors), p=self.weight))
        return path_from_posterior(self.posteriors[h], agent, dim, rng, width=width)

    @property
    def mark(self) -> list[tuple[int, float]]:
        """How far each posterior has come, for `reset`."""
        return [posterior.mark for posterior in self.posteriors]

    def reset(self, mark: list[tuple[int, float]]) -> None:
        """Forget all that was learnt since a mark, to the bit."""
        for posterior, one in zip(self.posteriors, mark, strict=True):
            posterior.reset(one)
