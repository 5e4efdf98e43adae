"""What is kept, and who shares it? The table of computations, with their memory and their work.

| kept | shared by | engine |
|---|---|---|
| a Cholesky factor | agents that learn from the same agents | exact, K_z given |
| a Cholesky factor | nobody | exact, K_z estimated |
| recursive regression | nobody: agents hear only themselves | sparse |
| sufficient statistics | agents alike but for a factor | statistics, sparse |
| recursive regression | everyone, all hearing everything | statistics |
| sufficient statistics | nobody | statistics |
| sufficient statistics and recursive regression, updated lazily | nobody | sparse |

Of an engine's rows the first that applies is taken. Memory is in bytes, at most; work in
operations, roughly, of which 1e6 a round are Python's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coopbandits.arrays import Array
from coopbandits.engines.by_lags import SimulatedBeliefs, depth
from coopbandits.engines.factors import OwnPosteriors, SharedPosteriors
from coopbandits.engines.joint import SharedRegression, hears_all, shares
from coopbandits.engines.lazy import LAZINESS, PARTS, LazyStatistics
from coopbandits.engines.pooled import PooledStatistics, factors
from coopbandits.engines.recursive import IndependentAgents, RecursiveRegression, hears_nobody
from coopbandits.engines.views import BATCH, OwnStatistics, alike_in_width
from coopbandits.features import Basis, Exact, is_finite
from coopbandits.forget import Exponential, Window
from coopbandits.gp.compositions import ArmJointKernel, Hadamard
from coopbandits.gp.marginals import Marginals
from coopbandits.gp.network_kernel import LowRankKernel
from coopbandits.gp.statistics import Statistics
from coopbandits.policy import Plan, Policy
from coopbandits.similarity.hypotheses import Hypotheses


@dataclass(frozen=True, eq=False)
class Case:
    """A policy on a network, as the table sees it: with contexts of d numbers, for T rounds."""

    policy: Policy
    plan: Plan
    dim: int
    rounds: int
    laziness: float = LAZINESS

    def applies(self, engine: str) -> bool:
        """Tell whether an engine can play the policy."""
        if engine == "exact":
            return self.policy.features is None and not isinstance(self.policy.forget, Exponential)
        statistics = (
            isinstance(self.policy.compose, Hadamard)
            and not self.plan.in_turn
            and not self.plan.frozen
            and not isinstance(self.plan.kernel, ArmJointKernel)
        )
        if engine == "statistics":
            return statistics and is_finite(self.policy.kernel) and self.policy.features is None
        return statistics

    @property
    def basis(self) -> Basis:
        """What φ is."""
        return Exact() if self.plan.basis is None else self.plan.basis

    @cached_property
    def m(self) -> int:
        """How many features there are."""
        return self.basis.size(self.policy.kernel, self.dim)

    @property
    def V(self) -> int:
        """How many agents there are."""
        return len(self.plan.lags)

    @cached_property
    def sources(self) -> Array:
        """(V,) from how many agents each learns."""
        return self.plan.lags.sources.counts.astype(np.float64)

    @cached_property
    def decided(self) -> Array:
        """(V,) for how many rounds each agent needs a posterior, until it follows a leader."""
        return np.minimum(self.rounds, self.plan.leader_lags)

    @cached_property
    def rank(self) -> int:
        """How many parts the agents of a view share, at most."""
        widest = int(self.sources.max())
        if self.plan.K_z is None:
            return widest
        if isinstance(self.plan.K_z, LowRankKernel):
            return self.plan.K_z.U.shape[1]
        return max(
            Hypotheses.of(self.plan.lags, who, self.plan.K_z).U.shape[2]
            for who in alike_in_width(self.plan.lags.sources.counts)
        )

    @cached_property
    def kinds(self) -> int:
        """How many different rows of lags there are."""
        return int(self.plan.lags.kinds.max()) + 1

    def view_numbers(self, rank: int) -> float:
        """How many numbers all agents' views take at most."""
        widths, estimator = self.plan.lags.sources.counts, self.plan.estimator
        N = int(widths.max())
        cells = sum(len(who) * int(widths[who].max()) for who in alike_in_width(widths))
        learner = None if estimator is None else estimator.learner
        several = getattr(learner, "hypotheses", 1)
        parts = min(N, getattr(learner, "parts", N))
        return self.compared + float(cells * max(rank + 4, several * (parts + 4) * (several > 1)))

    @property
    def factored(self) -> float:
        """How many hypotheses of K_z an agent keeps a factor under, on average; 5 is a guess."""
        learner = None if self.plan.estimator is None else self.plan.estimator.learner
        return min(5.0, getattr(learner, "hypotheses", 1))

    @property
    def estimating(self) -> float:
        """How many operations all agents' estimates of K_z take, in all rounds."""
        return 4e6 * float(self.decided.sum()) if self.plan.estimates else 0.0

    @property
    def compared(self) -> float:
        """How many numbers a learner takes that compares all agents that were heard from."""
        estimator = self.plan.estimator
        arrays = 0 if estimator is None else getattr(estimator.learner, "compared", 0)
        return arrays * float(self.V) ** 2

    @property
    def held(self) -> Array:
        """(V,) of how many rounds each agent keeps observations, at most."""
        forget = self.policy.forget
        most = forget.rounds if isinstance(forget, Window) else np.inf
        return np.minimum(self.decided, most)

    @property
    def sums_bytes(self) -> float:
        """How much memory statistics of features take."""
        forget, m = self.policy.forget, self.m + 1
        held = forget.rounds * m if isinstance(forget, Window) else 0
        return 8.0 * self.V * (depth(self.plan) * (Statistics.width(self.m) + m) + held)


@dataclass(frozen=True, eq=False)
class Computation:
    """A row of the table."""

    name: str
    engines: tuple[str, ...]
    applies: Callable[[Case], bool]
    memory: Callable[[Case], float]
    work: Callable[[Case], float]
    make: Callable[[Case], SimulatedBeliefs]


def computation_of(engine: str, case: Case) -> Computation:
    """Return the first row of an engine that applies."""
    return next(row for row in COMPUTATIONS if engine in row.engines and row.applies(case))


def _groups(case: Case) -> list[tuple[int, int, float]]:
    """Members, sources and rounds of each group that shares a factor."""
    return [
        (len(members), len(sources), float(case.decided[members].max()))
        for members, sources in case.plan.lags.groups
    ]


def _own_factors_work(case: Case) -> float:
    if case.policy.forget is not None:  # factored anew in each round
        each = (case.sources * case.held) ** 3 / 3
        return case.estimating + float((case.decided * (1e6 + each)).sum())
    # as with shared factors; factoring anew at a growing number of observations doubles it
    whitened = 2 * (case.sources + 8) * case.sources**2 * case.decided**3 / 3
    return case.estimating + case.factored * float((case.decided * 1e6 + whitened).sum())


def _own_views_work(case: Case) -> float:
    N, m = float(case.sources.max()), case.m
    # how many parts are shared where K_z is estimated is known to the data only: 12 is a guess
    r = case.rank if case.plan.K_z is not None else min(case.rank, 12)
    D = (r + 1) * m + 9
    each = 1e5 + N * (r * m) ** 2 / 2 + 2 * N * m**3 + D**3 / 2
    return case.estimating + case.rounds * (1e6 + case.V * each)


def _lazy_memory(case: Case) -> float:
    m, V = case.m, case.V
    # without laziness nothing is cut or rounded
    rank = min(case.rank, PARTS) if case.laziness else case.rank
    numbers = 2 * case.view_numbers(rank) + 3 * ((rank + 1) * m + 1) ** 2 + 2 * V * m * m
    sums = case.sums_bytes + Marginals.bytes(depth(case.plan), V, m, rounded=case.laziness > 0)
    return sums + RecursiveRegression.bytes(V, m) + 8.0 * (numbers + 3 * BATCH)


def _lazy_work(case: Case) -> float:
    m, T = case.m, case.rounds
    # how many parts are shared where K_z is estimated is known to the data only: 3 is a guess
    rank = min(case.rank, PARTS if case.plan.K_z is not None else 3)
    # each round at first, then whenever there is so large a share more
    soon = min(float(T), 1 / max(case.laziness, 1e-3))
    looks = soon + np.log(T / soon) / np.log1p(max(case.laziness, 1e-3))
    each = float(case.sources.max()) * (rank * m) ** 2 / 2 + ((rank + 1.0) * m) ** 3 / 3
    return case.estimating + float(T * (1e6 + case.V * 20.0 * m**2) + looks * case.V * each)


COMPUTATIONS = (
    Computation(
        "shared factors",
        ("exact",),
        applies=lambda case: not case.plan.estimates and case.policy.forget is None,
        # the factor, and eight whitened candidates a member
        memory=lambda case: sum(
            4.0 * (N * T) ** 2 + 3 * 8.0 * N * T * 8 * members for members, N, T in _groups(case)
        ),
        # each round whitens what is new, and eight candidates an agent
        work=lambda case: sum(
            T * 1e6 + (N + 8 * members) * N**2 * T**3 / 3 for members, N, T in _groups(case)
        ),
        make=lambda case: SharedPosteriors(case.policy, case.plan),
    ),
    Computation(
        "own factors",
        ("exact",),
        applies=lambda case: True,
        # of several hypotheses all but a few are ruled out by the time that factors are large
        memory=lambda case: (
            float(4.0 * ((case.sources * case.held) ** 2).sum()) + 8.0 * case.compared
        ),
        work=_own_factors_work,
        make=lambda case: OwnPosteriors(case.policy, case.plan),
    ),
    Computation(
        "independent agents",
        ("sparse",),
        applies=lambda case: hears_nobody(case.plan) and case.policy.forget is None,
        memory=lambda case: RecursiveRegression.bytes(case.V, case.m),
        work=lambda case: case.rounds * (1e6 + case.V * (3e4 + 20.0 * case.m**2)),
        make=lambda case: IndependentAgents(case.policy, case.plan, case.m),
    ),
    Computation(
        "pooled statistics",
        ("statistics", "sparse"),
        applies=lambda case: factors(case.plan) is not None,
        memory=lambda case: (
            case.sums_bytes
            + 8.0 * (case.V + case.kinds) * (case.m * (case.m + 1) / 2 + case.m + 1)
            + 8.0 * (3 * BATCH + 3 * (case.m + 64) ** 2)
        ),
        work=lambda case: (
            case.rounds
            * (
                1e6
                + float(case.sources.sum()) * case.m**2
                + case.V * (3e4 + 8 * case.m**2)
                + case.kinds * (case.m + 8.0) ** 3
            )
        ),
        make=lambda case: PooledStatistics(case.policy, case.plan, case.m),
    ),
    Computation(
        "shared regression",
        ("statistics",),
        applies=lambda case: hears_all(case.policy, case.plan) and case.policy.forget is None,
        memory=lambda case: (
            8.0 * sum(3 * (len(one) * case.m) ** 2 + 1e4 for one in shares(case.plan))
        ),
        work=lambda case: (
            case.rounds
            * (
                1e6
                + sum(
                    2e5 + (n + 8.0) * (n * case.m) ** 2
                    for n in (len(one) for one in shares(case.plan))
                )
            )
        ),
        make=lambda case: SharedRegression(case.policy, case.plan, case.m),
    ),
    Computation(
        "own statistics",
        ("statistics",),
        applies=lambda case: True,
        memory=lambda case: (
            case.sums_bytes
            + 8.0 * depth(case.plan) * case.V * (case.m**2 + 2 * case.m)
            + 8.0
            * (
                2 * case.view_numbers(case.rank)
                + 3 * BATCH
                + 3 * ((case.rank + 1) * case.m + 64) ** 2
            )
        ),
        work=_own_views_work,
        make=lambda case: OwnStatistics(case.policy, case.plan, case.m),
    ),
    Computation(
        "lazy statistics",
        ("sparse",),
        applies=lambda case: True,
        memory=_lazy_memory,
        work=_lazy_work,
        make=lambda case: LazyStatistics(case.policy, case.plan, case.m, case.laziness),
    ),
)
