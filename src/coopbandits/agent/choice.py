"""How does an agent choose, once it has made something of what it has heard?

From a finite set the row that its act rates best, from a continuum the best point that is found
(`continuum.py`); at random, or after its leader, where its act says so. An act that explores may
then take any other. A choice from a finite set knows its probability, where the act can tell.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from coopbandits.act import (
    Act,
    chosen_rows,
    defined,
    draws,
    explores,
    normals,
    propensity,
    rated,
)
from coopbandits.agent.attachments import Attachments
from coopbandits.agent.beliefs import Beliefs
from coopbandits.agent.continuum import best_point
from coopbandits.agent.prediction import Prediction
from coopbandits.arrays import Array, check_size
from coopbandits.decision_sets import DecisionSet
from coopbandits.gp.covariances import drawn
from coopbandits.gp.posterior import Belief
from coopbandits.policy import Plan, Policy

# What is offered: (K, d) contexts, or a continuum.
Offered = Array | DecisionSet


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen: a row of what was offered, or a point; its context; mean, std and width.

    `propensity` is its probability, None where that is not known; `scores` what was believed of all
    that was offered, None where no posterior was asked or a continuum was offered.
    """

    index: int | None
    context: Array
    facts: tuple[float | None, float | None, float | None] = (None, None, None)
    propensity: float | None = None
    scores: Prediction | None = None


def dimension(offered: Offered) -> int:
    """Return d."""
    return int(offered.shape[1]) if isinstance(offered, np.ndarray) else offered.dim


def at_random(act: Act, offered: Offered, rng: np.random.Generator) -> Choice:
    """Choose any action, each with the same probability."""
    if isinstance(offered, np.ndarray):
        index = int(rng.integers(len(offered)))
        return _chosen(act, offered, index, _uniform(offered), rng)
    return Choice(None, _explored(act, offered, offered.sample(rng, 1)[0], rng))


def followed(act: Act, arm: Array, offered: Offered, rng: np.random.Generator) -> Choice:
    """Choose after a leader's arm: (d,)."""
    if isinstance(offered, np.ndarray):
        index = act.follow(arm, offered)
        return _chosen(act, offered, index, _certain(offered, index), rng)
    nearest = offered.nearest(arm)
    act.follow(arm, nearest[None, :])  # an act that refuses what is not the arm raises here
    return Choice(None, _explored(act, offered, nearest, rng))


def judged(
    policy: Policy,
    plan: Plan,
    agent: int,
    beliefs: Beliefs,
    attachments: Attachments,
    offered: Offered,
    rng: np.random.Generator,
) -> Choice:
    """Choose what is rated best; at random if nothing is known (Alg. 1, l. 4-7)."""
    if isinstance(offered, np.ndarray):
        X, spread = offered, offered
    else:
        X, spread = offered.sample(rng, 1), offered.spread
    attached = attachments.asked(spread) if plan.frozen else np.empty(0)
    agents = np.full(len(X), agent)

    def rate(belief: Belief, deviations: Array | None = None) -> tuple[Array, Array]:
        union_bound = plan.union_bound[np.full(len(belief.mean), agent)]
        return rated(
            policy.act,
            policy.width,
            belief,
            ridge=policy.ridge,
            union_bound=union_bound,
            drawn=deviations,
        )

    if draws(policy.act):
        check_size(
            len(X),
            len(X),
            what=f"one joint draw at {len(X):,} actions",
            advice="offer fewer actions, a continuum, or take a policy that does not draw",
        )
    belief = beliefs.predict(X, attached)
    knows = belief.count[0] > 0
    if isinstance(offered, np.ndarray):
        deviations = None
        if knows and draws(policy.act):
            assert belief.covariance is not None
            prior, z = plan.prior.diagonal(agents, X), normals(policy.act, len(X), rng)
            deviations = drawn(belief.covariance, prior, agents, z)
        scores, width = rate(belief, deviations)
        index, chance = _best(defined(scores), rng)
        if not knows:
            index, chance = int(rng.integers(len(X))), _uniform(X)
        elif draws(policy.act) and scores.ndim == 1:  # one draw does not tell
            chance = np.full(len(X), np.nan)
        choice = _chosen(policy.act, X, index, chance, rng)
        assert choice.index is not None
        facts, scored = _facts(belief, width, choice.index), Prediction.of(belief, width)
        return replace(choice, facts=facts, scores=scored)
    _, width = rate(belief)
    if knows:
        X = best_point(offered, beliefs, attached, policy.act, float(width[0]), rng)[None, :]
    found = X[0]
    point = _explored(policy.act, offered, found, rng)
    if knows or point is not found:
        belief = beliefs.predict(point[None, :], attached)
        _, width = rate(belief)
    return Choice(None, point, _facts(belief, width, 0))


def _best(scores: Array, rng: np.random.Generator) -> tuple[int, Array]:
    """Return the best rated of K actions, and how likely each was: (K,) or (K, M) -> (K,)."""
    drawn_by = [rng.integers(scores.shape[1]) if scores.ndim == 2 else 0]
    first, sizes = np.zeros(1, dtype=np.int64), np.array([len(scores)])
    rows, chance = chosen_rows(scores, first, sizes, np.array(drawn_by))
    return int(rows[0]), chance


def _uniform(offered: Array) -> Array:
    return np.full(len(offered), 1.0 / len(offered))


def _certain(offered: Array, index: int) -> Array:
    chance = np.zeros(len(offered))
    chance[index] = 1.0
    return chance


def _chosen(
    act: Act, offered: Array, index: int, chance: Array, rng: np.random.Generator
) -> Choice:
    """Take what was chosen with known chances, (K,), or any action where the act explores."""
    if explores(act, rng):
        index = int(rng.integers(len(offered)))
    taken = propensity(act, float(chance[index]), len(offered))
    return Choice(index, offered[index], propensity=None if math.isnan(taken) else taken)


def _explored(act: Act, offered: DecisionSet, point: Array, rng: np.random.Generator) -> Array:
    """Take a point, or any of its set where the act explores: (d,)."""
    return offered.sample(rng, 1)[0] if explores(act, rng) else point


def _facts(belief: Belief, width: Array, at: int) -> tuple[float, float, float]:
    mean, std, w = defined(np.array([belief.mean[at], belief.std[at], width[at]])).tolist()
    return mean, std, w
