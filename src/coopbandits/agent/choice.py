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
    first_best,
    normals,
    propensity,
    rated,
)
from coopbandits.agent.attachments import Attachments
from coopbandits.agent.beliefs import Beliefs
from coopbandits.agent.continuum import best_point
from coopbandits.agent.decision import Prediction
from coopbandits.arrays import Array, IntArray, check_size
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


@dataclass(frozen=True, eq=False)
class Viewpoint:
    """What an agent rates actions from: its policy's answers and its beliefs."""

    policy: Policy
    plan: Plan
    agent: int
    beliefs: Beliefs
    attachments: Attachments

    def attached(self, offered: Offered) -> Array:
        """Return what the posterior takes beside each context: (·,)."""
        if not self.plan.frozen:
            return np.empty(0)
        spread = offered if isinstance(offered, np.ndarray) else offered.spread
        return self.attachments.asked(spread)

    def rate(self, belief: Belief, deviations: Array | None = None) -> tuple[Array, Array]:
        """Score K actions, and return the width too, given a draw in place of σ: (K,), (K,)."""
        policy = self.policy
        return rated(
            policy.act,
            policy.width,
            belief,
            ridge=policy.ridge,
            union_bound=self.plan.union_bound[np.full(len(belief.mean), self.agent)],
            drawn=deviations,
        )

    def scored(self, X: Array, rng: np.random.Generator) -> tuple[Belief, Array, Array]:
        """Return belief, scores and width at K offered actions: (K, d) -> (K,), or (K, M), (K,)."""
        act = self.policy.act
        if draws(act):
            check_size(
                len(X),
                len(X),
                what=f"one joint draw at {len(X):,} actions",
                advice="offer fewer actions, a continuum, or take a policy that does not draw",
            )
        belief = self.beliefs.predict(X, self.attached(X), joint=draws(act))
        deviations = None
        if belief.count[0] > 0 and draws(act):
            assert belief.covariance is not None
            agents = np.full(len(X), self.agent)
            prior, z = self.plan.prior.diagonal(agents, X), normals(act, len(X), rng)
            deviations = drawn(belief.covariance, prior, agents, z)
        scores, width = self.rate(belief, deviations)
        return belief, defined(scores), width


def judged(view: Viewpoint, offered: Offered, rng: np.random.Generator) -> Choice:
    """Choose what is rated best; at random if nothing is known (Alg. 1, l. 4-7)."""
    act = view.policy.act
    if isinstance(offered, np.ndarray):
        belief, scores, width = view.scored(offered, rng)
        index, chance = _best(scores, rng)
        if belief.count[0] == 0:
            index, chance = int(rng.integers(len(offered))), _uniform(offered)
        elif draws(act) and scores.ndim == 1:  # one draw does not tell
            chance = np.full(len(offered), np.nan)
        choice = _chosen(act, offered, index, chance, rng)
        assert choice.index is not None
        facts, scored = _facts(belief, width, choice.index), Prediction.of(belief, width)
        return replace(choice, facts=facts, scores=scored)
    X, attached = offered.sample(rng, 1), view.attached(offered)
    belief = view.beliefs.predict(X, attached)
    knows = belief.count[0] > 0
    _, width = view.rate(belief)
    if knows:
        X = best_point(offered, view.beliefs, attached, act, float(width[0]), rng)[None, :]
    found = X[0]
    point = _explored(act, offered, found, rng)
    if knows or point is not found:
        belief = view.beliefs.predict(point[None, :], attached)
        _, width = view.rate(belief)
    return Choice(None, point, _facts(belief, width, 0))


def predicted(view: Viewpoint, X: Array) -> Prediction:
    """Return what is believed at m contexts: (m, d)."""
    belief = view.beliefs.predict(X, view.attached(X))
    return Prediction.of(belief, defined(view.rate(belief)[1]))


def ranked(view: Viewpoint, X: Array, k: int, rng: np.random.Generator) -> IntArray:
    """Return the k best rated of K actions, the best first, of ties the lowest: (K, d) -> (k,)."""
    _, scores, _ = view.scored(X, rng)
    left = (scores if scores.ndim == 1 else scores.mean(axis=1))[None, :].copy()
    order = np.empty(k, dtype=np.int64)
    for place in range(k):
        order[place] = first_best(left)[0]
        left[0, order[place]] = -np.inf
    return order


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
