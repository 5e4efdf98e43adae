r"""How much regret can there be? Theorems 1 and 2 and Corollary 1, with constants that hold.

Where |F − mean| ≤ w·σ, an agent that takes the highest upper bound loses r ≤ 2wσ in a round, and
never more than 2B√κ. So a group's regret is at most 2w·√(pulls·Σσ²) over its quiet rounds, 2B√κ a
pull over its surprising ones (`variance.py` bounds both), and 2B√κ a pull in the first round, in
which actions are taken at random. With L̂ ≥ log det(I + K_C/λ) of each of χ̄ cliques, this is for
every c > 1

$$R_G(T) \le 2w\sqrt{VT\,\bar\chi\,\frac{c\kappa\hat L}{\ln(1 + \kappa/\lambda)}}
  + 2B\sqrt\kappa\,V\,\gamma\lfloor \hat L/\ln c \rfloor + 2B\sqrt\kappa\,V,$$

$$w = B + \tfrac{R}{\sqrt\lambda}\sqrt{\hat L + 2\ln(V/\delta)},$$

or 2w·√(VT·Σσ²) with the block bound of Σσ², where that is less. All of it holds at once with
probability 1 − δ for agents that play with `width.SelfNormalised(B, R, δ)`, under the conditions of
docs/widths.md. docs/theory.md says where the paper's proofs fail.
"""

from dataclasses import dataclass, replace
from typing import Required, TypedDict, Unpack

import numpy as np

from coopbandits.arrays import Array, as_count, as_not_negative, as_positive
from coopbandits.errors import ParameterError
from coopbandits.theory.variance import (
    RATIOS,
    block_variance,
    quiet_variance,
    surprising_rounds,
)
from coopbandits.width import SelfNormalised


@dataclass(frozen=True, slots=True)
class RegretBound:
    """A bound on the sum of all agents' regrets, and what it is made of.

    Attributes:
        agents: V.
        width: w, the most that any agent's width is.
        learning: 2wΣσ over rounds in which what is known grows steadily.
        surprising: What rounds may cost in which it grows by leaps.
        first: What rounds may cost before anything is known (or a centre is heard).

    Example:
        >>> bound = cb.theory.theorem_1(logdet=2.0, cliques=1, agents=4, rounds=100)
        >>> bound.total == bound.learning + bound.surprising + bound.first == 4 * bound.per_agent
        True
    """

    agents: int
    width: float
    learning: float
    surprising: float
    first: float

    @property
    def total(self) -> float:
        """The bound on R_G(T)."""
        return self.learning + self.surprising + self.first

    @property
    def per_agent(self) -> float:
        """The bound on R̂(T) = R_G(T)/V."""
        return self.total / self.agents


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """Who plays, for how long and under which assumptions: what every bound takes by keyword.

    Attributes:
        agents: V, for all of whom the widths hold at once.
        rounds: T.
        ttl: γ.
        norm: B.
        noise: R.
        delta: δ.
        ridge: λ.
        largest: κ, the most that K(x̃, x̃) may be; the paper's is 1.
    """

    agents: int
    rounds: int
    ttl: int = 1
    norm: float = 1.0
    noise: float = 1.0
    delta: float = 0.05
    ridge: float = 1.0
    largest: float = 1.0

    def __post_init__(self) -> None:
        for name in ("agents", "rounds", "ttl"):
            object.__setattr__(self, name, as_count(getattr(self, name), name))
        for name in ("ridge", "largest"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))
        for name in ("norm", "noise", "delta"):
            object.__setattr__(self, name, getattr(self.width, name))

    @property
    def width(self) -> SelfNormalised:
        """The width that agents play with."""
        return SelfNormalised(self.norm, self.noise, self.delta)

    @property
    def cost(self) -> float:
        """2B√κ, the most that one pull can lose."""
        return 2 * self.norm * float(np.sqrt(self.largest))

    def bound(self, logdet: float, *, agents: int, groups: int, delay: int) -> RegretBound:
        """Bound the regret of n of the agents, in g groups, their first round included.

        Args:
            logdet: L̂, at least that of each group.
            agents: n.
            groups: g.
            delay: D, the most rounds after which a group's members know of each other's pulls.
        """
        L = np.array([as_not_negative(logdet, "logdet")])
        w = self.width.factor(
            logdet=L,
            count=np.zeros(1, dtype=np.int64),
            ridge=self.ridge,
            agents=np.array([self.agents]),
        )
        learning, surprising = group_regret(
            L,
            width=w,
            rounds=np.array([self.rounds - 1.0]),
            agents=agents,
            groups=groups,
            delay=delay,
            ridge=self.ridge,
            largest=self.largest,
            cost=self.cost,
        )
        return RegretBound(
            agents, float(w[0]), float(learning[0]), float(surprising[0]), agents * self.cost
        )


class Keywords(TypedDict, total=False):
    """The fields of `Setting`, for type checkers."""

    agents: Required[int]
    rounds: Required[int]
    ttl: int
    norm: float
    noise: float
    delta: float
    ridge: float
    largest: float


def theorem_1(*, logdet: float, cliques: int, **setting: Unpack[Keywords]) -> RegretBound:
    """Bound Coop-KernelUCB's regret (Theorem 1).

    Eager-KernelUCB has the same bound if `logdet` is that of the largest γ-neighbourhood: its
    agents know all that Coop's know, so that σ is no larger, and only w must hold for more data.

    Args:
        logdet: L̂, at least log det(I + K_C/λ) of each clique's observations; Υ̂_T in the paper.
        cliques: χ̄(G_γ), or the size of the cover in use.
        **setting: agents, rounds, ttl=1, norm=1, noise=1, delta=0.05, ridge=1, largest=1, as
            `Setting` has them.

    Example:
        >>> few, many = (
        ...     cb.theory.theorem_1(logdet=2.0, cliques=n, agents=10, rounds=100) for n in (1, 5)
        ... )
        >>> few.total < many.total
        True
    """
    given, chi = Setting(**setting), as_count(cliques, "cliques")
    V = given.agents
    if chi > V:
        raise ParameterError(f"{V} agents cannot fall into {chi} cliques; expected 1 … {V}")
    return given.bound(logdet, agents=V, groups=chi, delay=given.ttl)


def corollary_1(
    *, action_logdet: float, heterogeneity: int, cliques: int, **setting: Unpack[Keywords]
) -> RegretBound:
    """Bound Coop-KernelUCB's regret under K = K_z ⊙ K_x by K_x and the rank of K_z (Corollary 1).

    Theorem 1 with L̂ = Υ_z·log det(I + K_x/λ), for K_z(v, v) ≤ 1.

    Args:
        action_logdet: At least log det(I + K_x/λ) of each clique's contexts; that of V·T contexts,
            as the paper has it, is more than enough.
        heterogeneity: Υ_z, at least the rank of K_z within each clique.
        cliques: As in `theorem_1`.
        **setting: As in `theorem_1`.

    Example:
        >>> setting = dict(cliques=2, agents=10, rounds=100)
        >>> one = cb.theory.corollary_1(action_logdet=2.0, heterogeneity=3, **setting)
        >>> one == cb.theory.theorem_1(logdet=6.0, **setting)
        True
    """
    L = as_not_negative(action_logdet, "action_logdet")
    rank = as_count(heterogeneity, "heterogeneity")
    return theorem_1(logdet=rank * L, cliques=cliques, **setting)


def theorem_2(*, logdet: float, centres: int, **setting: Unpack[Keywords]) -> RegretBound:
    """Bound Dist-KernelUCB's regret (Theorem 2): one reward function, one fixed decision set.

    Args:
        logdet: L̂, at least log det(I + K/λ) of all that a centre hears, and of its T arms taken
            once for itself and once for each follower; Υ̂_T^D in the paper.
        centres: How many there are; at most α(G_γ).
        **setting: As in `theorem_1`.

    Example:
        >>> few, many = (
        ...     cb.theory.theorem_2(logdet=2.0, centres=n, agents=10, rounds=100) for n in (1, 5)
        ... )
        >>> few.total < many.total
        True
    """
    given, alpha = Setting(**setting), as_count(centres, "centres")
    V = given.agents
    if alpha > V:
        raise ParameterError(f"{V} agents cannot have {alpha} centres; expected 1 … {V}")
    leading = given.bound(logdet, agents=V, groups=alpha, delay=2 * given.ttl)
    # the first random action, taken by all in their turn, and the rounds until a centre is heard
    alone = given.cost * min(given.ttl, given.rounds - 1) * (V - alpha)
    return replace(leading, first=leading.first + alone)


def individual_regret(
    *, logdet: float, followers: int, distance: int, **setting: Unpack[Keywords]
) -> RegretBound:
    """Bound one agent's regret under Dist-KernelUCB: that of its centre, and of its d first rounds.

    R_v(T) ≤ 2B√κ·d(v, cent(v)) + R_cent(v)(T), where the centre's bound falls like
    1/√(1 + followers). The paper has Õ(√γ) for the first term; it is 2B√κ·γ at most, whatever T.

    Args:
        logdet: As in `theorem_2`, for this centre.
        followers: How many follow the centre.
        distance: From the agent to its centre; 0 for the centre itself.
        **setting: As in `theorem_1`.

    Example:
        >>> near, far = (
        ...     cb.theory.individual_regret(
        ...         logdet=2.0, followers=3, distance=d, agents=10, rounds=100, ttl=2
        ...     )
        ...     for d in (1, 2)
        ... )
        >>> near.total < far.total
        True
    """
    given, n = Setting(**setting), 1 + as_count(followers, "followers", least=0)
    d, gamma = as_count(distance, "distance", least=0), given.ttl
    if d > gamma or (d > 0 and n == 1):
        raise ParameterError(
            f"distance={d} of an agent that follows one of {n - 1} followers within ttl={gamma}; "
            "expected at most ttl, and 0 where nobody follows"
        )
    together = given.bound(logdet, agents=n, groups=1, delay=1 if n == 1 else 2 * gamma)
    return RegretBound(
        1,
        together.width,
        together.learning / n,
        together.surprising / n,
        given.cost * min(d + 1, given.rounds),
    )


def group_regret(
    logdet: Array,
    *,
    width: Array,
    rounds: Array,
    agents: int,
    groups: int,
    delay: int,
    ridge: float,
    largest: float,
    cost: float,
) -> tuple[Array, Array]:
    """Bound the regret of n agents in g groups after their first round: (T,) -> (T,), (T,).

    Args:
        logdet: (T,) L, at least that of each group.
        width: (T,) w.
        rounds: (T,) how many rounds are counted.
        agents: n.
        groups: g.
        delay: D; 0 if each pull knows of all before it.
        ridge: λ.
        largest: κ.
        cost: The most that one pull can lose.

    Returns:
        What is lost in rounds of steady learning, and in surprising ones.
    """
    pulls = agents * rounds
    if delay == 0:
        variances = [quiet_variance(logdet, ratio=1.0, ridge=ridge, largest=largest)]
        leaps = [np.zeros_like(pulls)]
    else:
        # n/ln(1 + n) is concave, so equal groups are the worst that g of them can be
        size = agents / groups
        variances = [block_variance(logdet, agents=size, delay=delay, ridge=ridge, largest=largest)]
        leaps = [np.zeros_like(pulls)]
        for ratio in RATIOS:
            variances.append(quiet_variance(logdet, ratio=ratio, ridge=ridge, largest=largest))
            leaps.append(np.minimum(rounds, surprising_rounds(logdet, ratio=ratio, delay=delay)))
    # last, the bound that needs no theory: every round may be the worst
    learning = 2 * width * np.sqrt(pulls * groups * np.array([*variances, np.zeros_like(pulls)]))
    surprising = agents * cost * np.array([*leaps, rounds])
    best = np.argmin(learning + surprising, axis=0), np.arange(len(pulls))
    return learning[best], surprising[best]
