r"""K_z from what the data say, rewards included: who is in whose group, and how alike are they?

Ours, not the paper's. A mean embedding sees contexts only; agents with one law of contexts and
different tasks differ in it only by what they choose. `Evidence` compares marginal likelihoods of
the agents' rewards. `groups.py` has the model, `search.py` how groups are sought, `partitions.py`
how groupings are drawn among a few agents, `crowds.py` among many, `laws.py` what contexts say,
`levels.py` how the noise level is learnt, `found.py` how K_z follows.
"""

from dataclasses import dataclass, replace
from math import isqrt

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray, as_count, as_flag
from coopbandits.features import Basis, Fourier, exact_or
from coopbandits.gp.intercept import Intercept, as_statistics, summarised
from coopbandits.gp.statistics import BATCH, Statistics
from coopbandits.kernels import Kernel
from coopbandits.network import Network
from coopbandits.similarity.found import HYPOTHESES, PARTS, Found
from coopbandits.similarity.groups import CLOSE, Groups
from coopbandits.similarity.laws import Contexts
from coopbandits.similarity.levels import levels, outlandish
from coopbandits.similarity.loadings import Loadings
from coopbandits.similarity.search import best
from coopbandits.similarity.similarity import EARLY, Views, settle

# Up to so many features groups are sought thoroughly, and partitions drawn as far as is asked; with
# more features partitions of no more than a handful of agents are drawn.
_FEATURES, _HANDFUL = 16, 24
# Unless groups are to be found quickly, it is early up to so many observations from each agent, and
# in all: draws among a few agents, who know little for long, are cheap, and worth repeating.
_EARLY = (20, 360)
_MOST_GROUPS = 1_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """Learn K_z from rewards and contexts, by the evidence of groups of agents.

    Every agent may be on its own, and where all differ all are: that is what makes it safe as a
    default. The number of groups need not be known.

    Args:
        noise: σ of the rewards, where it is known; learnt otherwise.
        groups: The most groups to look for; more cost time, not truth.
        contexts: Also use which contexts are offered to whom. Each message then carries the mean
            features of the sender's decision set (m more numbers).
        features: The basis that stands for K_x; exact for linear kernels, Fourier(64) otherwise.
        refresh: "growing" (early on each time, then at each `growth`-fold number of observations)
            or "every round". Early is up to 20 observations from each agent heard from, on average,
            and up to 360 in all; with `partitions=0` up to 12 from each.
        growth: See `refresh`.
        partitions: Where no more than so many agents are known, the asking one included, ways to
            group them are drawn agent by agent: better among a few, and slower. Where more are,
            from the best groups on, everyone at once. K_z is one of several; beliefs are a mixture.
            With 0 there is one K_z, of groups that are found quickly. With more than 16 features
            only up to 24 agents are drawn, and the groups of many are found quickly.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.complete(4), clusters=[0, 0, 1, 1])
        >>> policy = cb.EagerKernelUCB(cb.kernels.Linear(), similarity=cb.similarity.Evidence())
        >>> worth = cb.play(problem, policy, rounds=30).similarity(30)
        >>> bool(worth[0, 1] > worth[0, 2])  # 0 and 1 have one task, 2 another
        True
    """

    noise: float | None = None
    groups: int = 12
    contexts: bool = True
    features: Basis | None = None
    refresh: str = "growing"
    growth: float = 1.1
    partitions: int = 16

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_count(self.groups, "groups", most=_MOST_GROUPS))
        as_flag(self.contexts, "contexts")
        settle(self)
        partitions = as_count(self.partitions, "partitions", least=0)
        object.__setattr__(self, "partitions", partitions)

    @property
    def early(self) -> tuple[int, int]:
        """Up to how many observations from each, and in all, K_z is estimated at every decision."""
        return _EARLY if self.partitions else EARLY

    def learner(self, kernel: Kernel, network: Network) -> "EvidenceLearner":
        """Make what learns K_z."""
        return EvidenceLearner(
            self, kernel, exact_or(kernel, self.features, Fourier(64)), len(network)
        )


@dataclass(frozen=True, eq=False)
class EvidenceLearner:
    """Learns K_z by evidence; holds no state."""

    similarity: Evidence
    kernel: Kernel
    basis: Basis
    agents: int
    intercept: Intercept | None = None

    def with_intercept(self, intercept: Intercept) -> "EvidenceLearner":
        """Return a learner that integrates agents' own constants out of their rewards."""
        return replace(self, intercept=intercept)

    @property
    def hypotheses(self) -> int:
        """How many K_z are returned for a view, at most."""
        most = max(HYPOTHESES, self.similarity.groups)
        return most + 1 if self.similarity.partitions else 1

    @property
    def parts(self) -> int:
        """How many parts each of several K_z has, at most."""
        return PARTS

    def attached(self, dim: int) -> int:
        """How many numbers go with a context of d numbers in a message."""
        return self.basis.size(self.kernel, dim) if self.similarity.contexts else 0

    def sampled(self, agents: IntArray, contexts: Array, rows: IntArray) -> Array:
        """Return the mean features of each agent's decision set: (V, m)."""
        V = len(rows)
        if not self.similarity.contexts:
            return np.empty((V, 0))
        phi = self.basis.features(self.kernel, contexts)
        sums = np.zeros((V, phi.shape[1]))
        np.add.at(sums, agents, phi)
        return np.asarray(sums / np.bincount(agents, minlength=V)[:, None])

    def summaries(self, X: Array, attached: Array, y: Array) -> Array:
        """Summarise n observations: (n, p)."""
        rows = summarised(self.basis.features(self.kernel, X), y, self.intercept)
        if not self.similarity.contexts:
            return rows
        return np.hstack([rows, attached, (attached**2).sum(axis=1, keepdims=True)])

    def estimate(self, views: Views) -> Loadings:
        """Learn K_z from what was heard, in each view by itself."""
        p = views.table.shape[1]
        m = self._features(p)
        size = Statistics.width(m if self.intercept is None else m + 1)
        table = as_statistics(views.table[:, :size], m, self.intercept)
        sane = views.heard & ~outlandish(table, views.index, views.heard)
        noise, ratio = levels(table, views.index, sane, self.similarity.noise)
        return Loadings.gathered(
            views.index.shape,
            (
                (rows, self._estimate(some, table, sane[rows], noise[rows], ratio[rows]))
                for rows, some in views.batches(BATCH // p)
            ),
        )

    def _estimate(
        self, views: Views, table: Statistics, sane: BoolArray, noise: Array, ratio: Array
    ) -> Loadings:
        sane = sane[:, : views.index.shape[1]]
        statistics = table.take(views.index)
        law = Contexts.of(views, statistics) if self.similarity.contexts else None
        alone = statistics.log_evidence(noise[:, None], ratio[:, None])
        B = len(views.me)
        G = self.similarity.groups
        others = views.others & sane
        groups = Groups(
            shared=statistics,
            base=-0.5 * statistics.n * np.log(2 * np.pi * noise)[:, None],
            noise=noise,
            ratio=ratio,
            others=others,
            contexts=None,
            r=self._start()[views.agents] * others[..., None],
            share=np.full((B, G), 1.0 / G),
        )
        mine = np.arange(B), views.me
        silent = ~sane
        silent[mine] &= views.heard[mine]
        members = others.copy()
        members[mine] = ~silent[mine]
        # with many features evidence takes long: draws are for a handful of agents then
        quick = self.similarity.partitions == 0 or statistics.b.shape[-1] > _FEATURES
        drawn = self.similarity.partitions
        if quick:
            drawn = min(drawn, _HANDFUL)
        many = members.sum(axis=1) > drawn
        few = ~many & members[mine]
        telling = np.zeros(B, dtype=np.bool_) if law is None else law.telling(sane)
        places, rho, score = np.zeros((B, views.index.shape[1], G)), np.ones(B), np.zeros(B)
        # where partitions are drawn, groups only say whether to look at contexts
        sought = np.flatnonzero(~few | telling)
        if sought.size:
            places[sought], rho[sought], score[sought] = best(
                groups.take(sought), alone[sought], views.me[sought], many[sought] & (not quick)
            )
        by_contexts = np.zeros(B, dtype=np.bool_)
        told = np.flatnonzero(telling)
        if law is not None and told.size:
            its_places, its_rho, its_score = best(
                replace(groups.take(told), contexts=law.take(told)),
                alone[told],
                views.me[told],
                many[told] & (not quick),
            )
            better = its_score > score[told] + CLOSE * np.abs(score[told])
            kept = told[better]
            places[kept], rho[kept] = its_places[better], its_rho[better]
            by_contexts[kept] = True
        places = np.where(silent[..., None], 0.0, places)
        if law is not None:
            law = Contexts(law.mean, law.n * by_contexts[:, None])
        known = np.clip((statistics.n * views.heard).sum(axis=1), 0.0, 2.0**53)
        found = Found(
            groups=replace(groups, contexts=law),
            places=places,
            rho=rho,
            members=members,
            me=views.me,
            seeds=np.stack([views.agents[mine], known.astype(np.int64)], axis=1),
        )
        # where laws of contexts say who is with whom, the best groups are sure enough
        crowd = many & members[mine] & ~by_contexts & (not quick)
        return found.loadings(few, crowd, separate=not quick)

    def _start(self) -> Array:
        """Return an uneven start that depends on each agent alone, not on the view: (V, G)."""
        return np.random.default_rng(0).dirichlet(np.ones(self.similarity.groups), size=self.agents)

    def _features(self, p: int) -> int:
        """How many features m make summaries of p numbers?"""
        one = int(self.intercept is not None)
        if self.similarity.contexts:  # p = 2 + m + m² + m + 1, or 2 + (m + 1) + (m + 1)² + m + 1
            return isqrt(p - 2 + one) - 1 - one
        return (isqrt(4 * p - 7) - 1) // 2 - one  # p = 2 + m + m², or of m + 1
