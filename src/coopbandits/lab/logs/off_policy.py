r"""What is a fixed policy worth, by this log? Inverse-propensity estimates.

The target π does not learn: it is a function of what is offered. With weights w = π(a|x)/p(a|x) of
the logged actions, E[w·r] is what π earns a decision:

    IPS     Σ w·r / N                                   unbiased
    SNIPS   Σ w·r / Σ w                                 bias of order 1/N, often far less variance
    DR      Σ (Σ_a π(a|x)·q(x, a) + w·(r − q(x, a))) / N   unbiased, less variance where q is good

q is the posterior mean of a fitted kernel, learnt for each half of the rounds from the other half,
so that no decision is predicted by itself (Dudík, Langford & Li 2011).
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray, as_choice, as_number, as_seed, short
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab.logs.fit import Fit
from coopbandits.lab.logs.intervals import Interval, as_level, by_bernstein, by_bootstrap
from coopbandits.lab.logs.log import Log, as_log
from coopbandits.lab.logs.support import (
    LEAST,
    Target,
    floor_of,
    known_propensities,
    probabilities,
)

_LEAST_CLUSTERS = 20
# a mean weight this many standard errors from 1 is no accident
_FAR = 5.0


@dataclass(frozen=True)
class Value:
    """What a fixed policy earns a decision, as far as a log tells.

    Attributes:
        estimator: "ips", "snips" or "dr".
        mean: The estimate.
        interval: For what the target earns a decision.
        level: Of the interval.
        method: "bootstrap" or "bernstein".
        decisions: N.
        effective: (Σw)²/Σw², how many decisions of the target's own these are worth.
        largest_weight: Of all w.
        logged: The mean reward of the log itself: what the logging policy earned.
    """

    estimator: str
    mean: float
    interval: Interval
    level: float
    method: str
    decisions: int
    effective: float
    largest_weight: float
    logged: float


def importance_weights(log: Log, target: Target, *, uniform: bool = False) -> Array:
    """Return w = π(a|x)/p(a|x) of each logged action: (N,)."""
    p = known_propensities(as_log(log), uniform=uniform)
    return of_taken(log, probabilities(log, target, uniform=uniform)) / p


def evaluate_policy(
    log: Log,
    target: Target,
    *,
    estimator: str = "snips",
    method: str = "bootstrap",
    cluster: str = "round",
    level: float = 0.95,
    uniform: bool = False,
    floor: float | None = None,
    reward_range: tuple[float, float] | None = None,
    model: Fit | None = None,
    seed: int = 0,
) -> Value:
    """Estimate what a policy that does not learn earns a decision.

    Refused: logs without propensities, targets that take what logging never takes, weights worth
    fewer than 30 decisions, weights whose mean is not near 1, and fewer than 20 clusters.

    Args:
        log: With propensities, or uniform. Agents must not have learnt from the same decisions;
            `log.before(t)` and `log.since(t)` part them.
        target: (contexts (K, d), agent) -> probabilities (K,); or one trained agent for each of
            the log's, which then act as they would now and learn no more.
        estimator: "ips", "snips" or "dr".
        method: "bootstrap" (BCa, approximate); or, for "ips", "bernstein", which holds for any
            number of clusters and is wider.
        cluster: What is taken as independent: "round" (agents of a round may share its luck),
            "agent" or "decision".
        level: Of the interval.
        uniform: Vouches that logging took every offered action with the same probability.
        floor: For "bernstein", a number that no propensity is below; the log's least, if not given.
        reward_range: For "bernstein", between which numbers rewards must lie; IPS is then taken of
            rewards less the middle of it, which is added again: unbiased too, as E[w] = 1.
        model: For "dr", what to predict rewards with, of `fit_kernel`.
        seed: Of the bootstrap.
    """
    as_log(log)
    estimator = as_choice(estimator, "estimator", ("ips", "snips", "dr"))
    method = as_choice(method, "method", ("bootstrap", "bernstein"))
    if (estimator == "dr") != isinstance(model, Fit):
        raise ParameterError("estimator='dr', and no other, needs model=, a Fit of fit_kernel")
    if method == "bernstein" and estimator != "ips":
        raise ParameterError("method='bernstein' is for estimator='ips' only")
    level, rng = as_level(level), np.random.default_rng(as_seed(seed))
    labels = clusters_of(log, cluster)
    p = known_propensities(log, uniform=uniform)
    pi = probabilities(log, target, uniform=uniform)
    w = of_taken(log, pi) / p
    effective = effective_decisions(w, labels)
    base, spread = 0.0, 0.0
    if method == "bernstein":
        base, spread = _range(log, reward_range)
    if model is None:
        gains = w * (log.rewards - base) + base
    else:
        gains = doubly_robust(log, pi, w, cross_predicted(log, model))
    top = np.bincount(labels, weights=gains).astype(np.float64)
    bottom = np.bincount(labels, weights=w if estimator == "snips" else None).astype(np.float64)
    mean = float(top.sum() / bottom.sum())
    if method == "bootstrap":
        interval = by_bootstrap(top, bottom, level, rng)
    else:
        # w·(r − middle) has a range of length at most spread/floor, a cluster's sum size times it
        share = len(bottom) / len(log)
        length = spread * float(bottom.max()) * share / floor_of(log, floor, uniform=uniform)
        low, high = by_bernstein((top - base * bottom) * share, length, level)
        interval = (low + base, high + base)
    return Value(
        estimator=estimator,
        mean=mean,
        interval=interval,
        level=level,
        method=method,
        decisions=len(log),
        effective=effective,
        largest_weight=float(w.max()),
        logged=float(log.rewards.mean()),
    )


def of_taken(log: Log, pi: list[Array]) -> Array:
    """Take a target's probabilities of what was logged: (N,)."""
    return np.array([p[one.action] for p, one in zip(pi, log.decisions, strict=True)])


def clusters_of(log: Log, cluster: str) -> IntArray:
    """Number the clusters 0 … G−1: (N,)."""
    columns = {"round": log.rounds, "agent": log.owners, "decision": np.arange(len(log))}
    labels = np.unique(columns[as_choice(cluster, "cluster", columns)], return_inverse=True)[1]
    if labels.max() + 1 < _LEAST_CLUSTERS:
        raise InputError(
            f"the log has {labels.max() + 1} clusters by {cluster}; an interval needs at least "
            f"{_LEAST_CLUSTERS} that are independent. Take a longer log, or another cluster= if "
            "its parts are independent of each other"
        )
    return labels


def effective_decisions(w: Array, labels: IntArray) -> float:
    """Return what the weights are worth, or refuse them."""
    total = float(w.sum())
    effective = total**2 / float((w**2).sum()) if total > 0 else 0.0
    if effective < LEAST:
        raise InputError(
            f"the target's choices are so rare in this log that its {len(w)} decisions are worth "
            f"{effective:.1f} of the target's own; at least {LEAST} are needed. Take a longer log, "
            "or a target nearer to what was logged"
        )
    # Σ(w − 1) of each cluster: its expectation is 0, whatever the target
    off = np.bincount(labels, weights=w - 1)
    mean, error = total / len(w), float(np.sqrt(len(off) * off.var(ddof=1))) / len(w)
    if abs(mean - 1) > max(_FAR * error, 1e-3):
        raise InputError(
            f"the weights π/p have mean {mean:.3g}, too far from 1 to be an accident: the "
            "propensities are not those of the logging policy, or the log is too short to hold "
            "what the target does"
        )
    return effective


def _range(log: Log, given: tuple[float, float] | None) -> tuple[float, float]:
    """Check the range of rewards; return its middle and its length."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ParameterError(
            "method='bernstein' needs reward_range=(low, high), between which every reward must "
            f"lie, whatever the log holds; got {short(given)}"
        )
    low, high = (as_number(end, "each end of reward_range") for end in given)
    y = log.rewards
    if not low < high or y.min() < low or y.max() > high:
        raise ParameterError(
            f"rewards lie between {y.min():g} and {y.max():g}, which does not fit "
            f"reward_range=({low:g}, {high:g})"
        )
    return (low + high) / 2, high - low


def cross_predicted(log: Log, model: Fit) -> list[Array]:
    """Predict the rewards of all that was offered, each half of the rounds from the other: (K,)."""
    halves = np.unique(log.rounds, return_inverse=True)[1] % 2
    owners, taken, rewards = log.owners, log.taken, log.rewards
    found: list[Array] = [np.empty(0)] * len(log)
    for agent in np.unique(owners):
        for half in (0, 1):
            mine = np.flatnonzero((owners == agent) & (halves == half))
            other = np.flatnonzero((owners == agent) & (halves != half))
            if not len(mine):
                continue
            sets = [log.decisions[i].contexts for i in mine]
            q = model.predict(taken[other], rewards[other], np.concatenate(sets))
            for i, values in zip(mine, np.split(q, np.cumsum(list(map(len, sets)))), strict=False):
                found[i] = values
    return found


def doubly_robust(log: Log, pi: list[Array], w: Array, q: list[Array]) -> Array:
    """Return Σ_a π(a|x)·q(x, a) + w·(r − q(x, a)) of each decision: (N,)."""
    return np.array(
        [
            p @ values + weight * (one.reward - values[one.action])
            for one, p, weight, values in zip(log.decisions, pi, w, q, strict=True)
        ]
    )
