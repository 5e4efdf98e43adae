"""How does an agent choose, once it has made something of what it has heard?

From a finite set the row that its act rates best, from a continuum the best point that is found
(`continuum.py`); at random, or after its leader, where its act says so.
"""

from dataclasses import dataclass, replace

import numpy as np

from coopbandits.act import Act, best_rows, defined, draws, rated
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

    `scores` is what was believed of all that was offered; None where no posterior was asked or a
    continuum was offered.
    """

    index: int | None
    context: Array
    facts: tuple[float | None, float | None, float | None] = (None, None, None)
    scores: Prediction | None = None


def dimension(offered: Offered) -> int:
    """Return d."""
    return int(offered.shape[1]) if isinstance(offered, np.ndarray) else offered.dim


def at_random(offered: Offered, rng: np.random.Generator) -> Choice:
    """Choose any action, each with the same probability."""
    if isinstance(offered, np.ndarray):
        index = int(rng.integers(len(offered)))
        return Choice(index, offered[index])
    return Choice(None, offered.sample(rng, 1)[0])


def followed(act: Act, arm: Array, offered: Offered) -> Choice:
    """Choose after a leader's arm: (d,)."""
    if isinstance(offered, np.ndarray):
        index = act.follow(arm, offered)
        return Choice(index, offered[index])
    nearest = offered.nearest(arm)
    act.follow(arm, nearest[None, :])  # an act that refuses what is not the arm raises here
    return Choice(None, nearest)


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
            prior, normals = plan.prior.diagonal(agents, X), rng.standard_normal(len(X))
            deviations = drawn(belief.covariance, prior, agents, normals)
        scores, width = rate(belief, deviations)
        index = int(best_rows(defined(scores), np.zeros(1, dtype=np.int64), np.array([len(X)]))[0])
        if not knows:
            index = int(rng.integers(len(X)))
        choice = _choice(index, X[index], belief, width, index)
        return replace(choice, scores=Prediction.of(belief, width))
    _, width = rate(belief)
    if knows:
        X = best_point(offered, beliefs, attached, policy.act, float(width[0]), rng)[None, :]
        belief = beliefs.predict(X, attached)
        _, width = rate(belief)
    return _choice(None, X[0], belief, width, 0)


def _choice(index: int | None, context: Array, belief: Belief, width: Array, at: int) -> Choice:
    mean, std, w = defined(np.array([belief.mean[at], belief.std[at], width[at]])).tolist()
    return Choice(index, context, (mean, std, w))
