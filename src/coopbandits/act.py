"""How do I act? From beliefs at the offered actions, or a centre's arm, to a choice.

An act that also has `slopes(mean, std, width)`, the derivatives of its score by mean and by σ,
chooses from a continuum too. `Explore` goes around any act; what else asks for a policy's act finds
the answers of the act within.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from coopbandits.arrays import (
    CAME_LATER,
    Array,
    BoolArray,
    IntArray,
    as_choice,
    as_count,
    as_not_negative,
    short,
)
from coopbandits.errors import LocalProtocolError, NonFiniteError, ParameterError
from coopbandits.gp.posterior import Belief
from coopbandits.network import Network
from coopbandits.width import Width

# Bounds this close are a tie, relative to the best where that is above 1: different but correct
# arithmetic must not flip a decision.
TIE = 1e-9
# So many functions may be drawn for one decision.
_MOST_SAMPLES = 10_000

Number = TypeVar("Number", float, Array)


@runtime_checkable
class Act(Protocol):
    """An answer to: how do I act?

    Example:
        >>> isinstance(cb.act.UpperBound(), cb.act.Act)
        True
    """

    @property
    def judges(self) -> bool:
        """Whether agents look at a posterior at all; a class variable will do."""
        ...

    def score(self, mean: Array, std: Array, width: Array) -> Array:
        """Rate m offered actions; the best rated is chosen.

        An act with a class variable `draws = True` gets, in place of σ, one joint draw from N(0, Σ)
        for each agent, Σ the posterior covariance of the actions that it is offered.
        """
        ...

    def leaders(self, network: Network, ttl: int) -> IntArray:
        """Tell whom each agent follows, −1 for nobody: (V,)."""
        ...

    def follow(self, arm: Array, offered: Array) -> int:
        """Choose among the offered actions, given a leader's arm: (d,), (K, d) -> index."""
        ...


class _Independent:
    """Agents that follow nobody."""

    def leaders(self, network: Network, ttl: int) -> IntArray:
        """Return −1 for everyone."""
        return np.full(len(network), -1)

    def follow(self, arm: Array, offered: Array) -> int:
        """Refuse: there is no leader."""
        raise LocalProtocolError("this policy's agents follow nobody")


@dataclass(frozen=True, slots=True)
class UpperBound(_Independent):
    """Take the highest upper bound mean + w·σ (Alg. 1, l. 7).

    Example:
        >>> mean, std, width = np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.array([2.0, 2.0])
        >>> cb.act.UpperBound().score(mean, std, width).tolist()
        [7.0, 4.0]
    """

    judges: ClassVar[bool] = True

    def score(self, mean: Array, std: Array, width: Array) -> Array:
        """Return the upper bounds."""
        return mean + width * std

    def slopes(self, mean: Array, std: Array, width: Array) -> tuple[Array, Array]:
        """Differentiate the score by mean and by σ: (m,), (m,)."""
        return np.ones_like(mean), width


@dataclass(frozen=True, slots=True)
class Sample(_Independent):
    """Take the best action of one function drawn from the posterior (Thompson sampling).

    All offered actions are rated by one joint draw from N(mean, w²Σ), Σ their posterior covariance.
    With w = 1 and λ the variance of Gaussian noise that is the Bayesian posterior itself, so an
    action is taken with the probability that it is the best; docs/widths.md has other w.

    One draw does not tell how likely its best action was. With M = `samples` > 1 functions are
    drawn, and the best action of one of them, any with the same probability, is taken. Its law is
    that of one draw, and given the M functions the action has probability (how many of them it is
    the best of)/M: the propensity of the decision. On a continuum one function is drawn whatever M.

    Args:
        samples: M.

    Example:
        >>> network = cb.Network.path(2)
        >>> one, other = (cb.LinTS().agent(0, network, seed=seed) for seed in (3, 3))
        >>> actions = np.eye(5)
        >>> one.decide(actions).index == other.decide(actions).index  # the same seed, the same draw
        True
    """

    samples: int = field(default=1, metadata=CAME_LATER)
    judges: ClassVar[bool] = True
    draws: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", as_count(self.samples, "samples", most=_MOST_SAMPLES))

    def score(self, mean: Array, std: Array, width: Array) -> Array:
        """Return the drawn function's values, given a draw from N(0, Σ) in place of σ."""
        return mean + width * std


@dataclass(frozen=True, slots=True)
class AtRandom(_Independent):
    """Take any action, each with the same probability.

    Example:
        >>> cb.act.AtRandom().score(np.array([1.0, 2.0]), np.ones(2), np.ones(2)).tolist()
        [0.0, 0.0]
    """

    judges: ClassVar[bool] = False

    def score(self, mean: Array, std: Array, width: Array) -> Array:
        """Rate all alike."""
        return np.zeros_like(mean)


@dataclass(frozen=True, slots=True)
class FollowCentre:
    """A centre takes the highest upper bound; any other agent pulls its centre's last arm (Alg. 3).

    Deviation from the paper: the last arm must be offered again, which one fixed decision set
    grants and changing sets do not. `follow="nearest"` takes the offered action nearest to it
    (Euclidean), which is the arm itself where it is offered, and refuses where no distance makes
    sense: the arm is not offered, and it and all offered actions are equally far from each other,
    as one-hot contexts are. `follow="same"` refuses whenever the arm is not offered. On a continuum
    the nearest point of it counts as offered.

    A centre may be away, or its messages lost. An agent that has not heard of its centre for more
    than `patience` decisions decides for itself, on all that it has seen, until it hears again;
    with None it goes on with the last arm it has heard of, as the paper's does. In a faultless
    network that makes no difference.

    Args:
        follow_rule: "nearest" or "same", what to do where the last arm is not offered.
        patience: After how many decisions without news an agent decides for itself; never, if None.

    Example:
        >>> cb.act.FollowCentre().follow(np.array([0.9]), np.array([[0.0], [1.0]]))
        1
    """

    follow_rule: str = "nearest"
    patience: int | None = field(default=None, metadata=CAME_LATER)
    judges: ClassVar[bool] = True

    def __post_init__(self) -> None:
        rule = as_choice(self.follow_rule, "follow", ("nearest", "same"))
        object.__setattr__(self, "follow_rule", rule)
        if self.patience is not None:
            object.__setattr__(self, "patience", as_count(self.patience, "patience"))

    def score(self, mean: Array, std: Array, width: Array) -> Array:
        """Return the upper bounds, for centres and for agents that have not heard of theirs."""
        return mean + width * std

    def slopes(self, mean: Array, std: Array, width: Array) -> tuple[Array, Array]:
        """Differentiate the score by mean and by σ: (m,), (m,)."""
        return np.ones_like(mean), width

    def leaders(self, network: Network, ttl: int) -> IntArray:
        """Return each agent's centre, −1 for the centres."""
        of = network.centres(ttl).of
        return np.where(of == np.arange(len(network)), -1, of)

    def follow_each(self, arms: Array, offered: Array, real: BoolArray) -> IntArray:
        """Do as `follow` does for F agents at once: (F, d), (F, K, d), (F, K) -> (F,)."""
        distances = np.linalg.norm(offered - arms[:, None, :], axis=2)
        least = np.where(real, distances, np.inf).min(axis=1)
        furthest = np.where(real, distances, 0.0).max(axis=1)
        nearest = np.argmax(real & (distances <= least[:, None] * (1 + TIE)), axis=1)
        alike = furthest - least <= 2 * TIE * furthest
        for f in np.flatnonzero((least > 0) & (alike | (self.follow_rule == "same"))):
            self.follow(arms[f], offered[f][real[f]])  # which refuses where it must
        return nearest

    def follow(self, arm: Array, offered: Array) -> int:
        """Return the offered action that is the arm, or nearest to it."""
        distances = np.linalg.norm(offered - arm, axis=1)
        # distances know no unit, so their ties are relative: (1 + 1e-9) times the least
        nearest = int(np.argmax(distances <= distances.min() * (1 + TIE)))
        if distances[nearest] == 0:
            return nearest
        if self.follow_rule == "same":
            raise LocalProtocolError(
                "the centre's last arm is not among the offered actions; follow='same' needs one "
                "fixed decision set, follow='nearest' takes the nearest offered action"
            )
        # no two actions are further apart than twice the furthest from the arm
        furthest = distances.max()
        alike = furthest - distances.min() <= 2 * TIE * furthest
        if len(offered) > 1 and alike and _all_apart_alike(np.vstack([arm, offered])):
            raise LocalProtocolError(
                "the centre's last arm is not among the offered actions, and it and they are all "
                f"equally far from each other ({distances[nearest]:.6g}), as labels are; "
                "DistKernelUCB needs one fixed decision set, or contexts with a distance"
            )
        return nearest


@dataclass(frozen=True, slots=True)
class Explore:
    """Do what another act does, and now and then anything: ε-greedy around any act.

    With probability `share` any offered action is taken, each with the same probability, else what
    `act` chooses. So every one of K actions has a propensity of at least share/K, which a log needs
    if the value of other policies is to be estimated from it:

        p(a) = (1 − share)·p_act(a) + share/K.

    On a continuum a point of the set is drawn uniformly, and there is no propensity.

    Args:
        act: What is done otherwise; no `Explore` itself.
        share: In [0, 1).

    Example:
        >>> policy = cb.LinUCB().exploring(0.2)  # short for replacing its act
        >>> policy.act
        Explore(act=UpperBound(), share=0.2)
        >>> agent = policy.agent(0, cb.Network.path(2))
        >>> agent.observe([1.0, 0.0], -1.0)
        >>> decision = agent.decide(np.eye(2))  # two actions, the second has the higher bound
        >>> round(decision.propensity, 12) == (0.9 if decision.index == 1 else 0.1)
        True
    """

    act: Act = UpperBound()
    share: float = 0.05

    def __post_init__(self) -> None:
        if isinstance(self.act, type | Explore) or not isinstance(self.act, Act):
            raise ParameterError(
                f"act={short(self.act)}; expected the act to explore around, such as "
                "coopbandits.act.UpperBound(), which explores not yet"
            )
        share = as_not_negative(self.share, "share")
        if share >= 1:
            raise ParameterError(
                f"share={share:g}; expected a number in [0, 1): with 1 nothing but chance would "
                "decide, for which there is coopbandits.act.AtRandom()"
            )
        object.__setattr__(self, "share", share)

    @property
    def judges(self) -> bool:
        """Whether the act within looks at a posterior."""
        return self.act.judges

    @property
    def draws(self) -> bool:
        """Whether the act within rates actions by a joint draw."""
        return draws(self.act)

    @property
    def slopes(self) -> Any:
        """The slopes of the act within; None if it has none."""
        return getattr(self.act, "slopes", None)

    def score(self, mean: Array, std: Array, width: Array) -> Array:
        """Rate as the act within does."""
        return self.act.score(mean, std, width)

    def leaders(self, network: Network, ttl: int) -> IntArray:
        """Tell whom each agent follows, as the act within does."""
        return self.act.leaders(network, ttl)

    def follow(self, arm: Array, offered: Array) -> int:
        """Follow as the act within does."""
        return self.act.follow(arm, offered)


def within(act: Act) -> Act:
    """Return the act that is explored around; the act itself where nothing is explored."""
    return act.act if isinstance(act, Explore) else act


def draws(act: Act) -> bool:
    """Tell whether an act rates actions by a joint draw in place of σ."""
    return bool(getattr(act, "draws", False))


def normals(act: Act, actions: int, rng: np.random.Generator) -> Array:
    """Draw what a joint draw at K actions is made of: (K,), or (K, M) for M functions."""
    inner = within(act)
    if isinstance(inner, Sample) and inner.samples > 1:
        return rng.standard_normal((inner.samples, actions)).T
    return rng.standard_normal(actions)


def explores(act: Act, rng: np.random.Generator) -> bool:
    """Tell whether an agent takes any action, now that it has chosen one."""
    return isinstance(act, Explore) and bool(rng.random() < act.share)


def propensity(act: Act, chance: Number, actions: Any) -> Number:
    """Return with which probability an action is taken.

    Args:
        act: How the agent acts.
        chance: With which probability the act within takes this action; NaN if that is not known.
        actions: K, how many were offered; as `chance`, a number or (n,).
    """
    share = act.share if isinstance(act, Explore) else 0.0
    return (1.0 - share) * chance + share / actions


def _all_apart_alike(points: Array) -> bool:
    """Tell whether all pairs of points have the same distance."""
    gaps = np.linalg.norm(points[:, None, :] - points[None, :, :], axis=2)
    apart = gaps[np.triu_indices(len(points), k=1)]
    return bool(np.ptp(apart) <= TIE * apart.max())


def first_best(scores: Array) -> IntArray:
    """Return the column of each row's highest score, the lowest of those that tie: (V, K) -> (V,).

    −inf marks a column that is not offered.
    """
    best = scores.max(axis=1, keepdims=True)
    return np.argmax(scores >= best - TIE * np.maximum(1.0, np.abs(best)), axis=1)


def best_rows(scores: Array, starts: IntArray, sizes: IntArray) -> IntArray:
    """Return the row that each agent rates best, the lowest of those that tie: (M,) -> (V,).

    Args:
        scores: (M,) of the agents' rows, one agent after the other.
        starts: (V,) each agent's first row.
        sizes: (V,) how many it has.
    """
    column = np.arange(int(sizes.max()))
    offered = column < sizes[:, None]
    padded = np.full(offered.shape, -np.inf)
    padded[offered] = scores
    return starts + first_best(padded)


def chosen_rows(
    scores: Array, starts: IntArray, sizes: IntArray, which: IntArray
) -> tuple[IntArray, Array]:
    """Return the row that each agent takes, and how likely each row was: (V,), (M,).

    Args:
        scores: (M,) of the agents' rows, one agent after the other; (M, S) by S drawn functions.
        starts: (V,) each agent's first row.
        sizes: (V,) how many it has.
        which: (V,) by which of the S functions it decides.
    """
    columns = scores if scores.ndim == 2 else scores[:, None]
    best = np.array([best_rows(column, starts, sizes) for column in columns.T])
    chance = np.bincount(best.ravel(), minlength=len(scores)) / len(best)
    return best[which, np.arange(len(starts))], chance


def rated(
    act: Act,
    width: Width,
    belief: Belief,
    *,
    ridge: float,
    union_bound: IntArray,
    drawn: Array | None = None,
) -> tuple[Array, Array]:
    """Score m queries under a width, and return the width too: (m,), (m,) (Alg. 1, l. 7).

    Args:
        act: How the agents act.
        width: How sure they are.
        belief: At the queries.
        ridge: λ.
        union_bound: (m,) for how many agents the width must hold at once.
        drawn: (m,) a joint draw from N(0, Σ), in place of σ, where the act draws; of S draws,
            (m, S), each is scored.
    """
    w = width.factor(logdet=belief.logdet, count=belief.count, ridge=ridge, agents=union_bound)
    if drawn is None or drawn.ndim == 1:
        return act.score(belief.mean, belief.std if drawn is None else drawn, w), w
    return act.score(belief.mean[:, None], drawn, w[:, None]), w


def defined(numbers: Array) -> Array:
    """Return scores, or what they are made of, unless one of them is NaN."""
    if np.isnan(numbers).any():
        raise NonFiniteError(
            "the mean, σ, width or score of an action is NaN; expected numbers: look at what the "
            "policy's own kernel, features, width and act return"
        )
    return numbers


def agent_rng(seed: int, agent: int) -> np.random.Generator:
    """The random numbers of one agent, in a simulation and outside of one."""
    return np.random.default_rng(np.random.SeedSequence([seed, agent]))
