"""How does an agent choose, once it has made something of what it has heard?

From a finite set the row that its act rates best, from a continuum the best point that is found
(`continuum.py`); at random, or after its leader, where its act says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopbandits.act import Act, draws, first_best
from coopbandits.agent.continuum import best_drawn_point, best_point
from coopbandits.agent.model import Ahead, Attachments, Observation
from coopbandits.agent.summed_model import SummedModel
from coopbandits.agent.surface import ExactSurface, SummedSurface, Surface
from coopbandits.arrays import Array
from coopbandits.decision_sets import DecisionSet
from coopbandits.gp.covariances import drawn
from coopbandits.gp.posterior import Belief
from coopbandits.policy import Plan, Policy

# What is offered: (K, d) contexts, or a continuum.
Offered = Array | DecisionSet


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen: a row of what was offered, or −1; its context; mean, std and width."""

    index: int
    context: Array
    facts: tuple[float | None, float | None, float | None] = (None, None, None)


def dimension(offered: Offered) -> int:
    """Return d."""
    return int(offered.shape[1]) if isinstance(offered, np.ndarray) else offered.dim


def first(offered: Offered) -> Choice:
    """Choose the first that there is."""
    return Choice(0, offered[0] if isinstance(offered, np.ndarray) else offered.low)


def at_random(offered: Offered, rng: np.random.Generator) -> Choice:
    """Choose any action, each with the same probability."""
    if isinstance(offered, np.ndarray):
        index = int(rng.integers(len(offered)))
        return Choice(index, offered[index])
    return Choice(-1, offered.sample(rng, 1)[0])


def followed(act: Act, arm: Array, offered: Offered) -> Choice:
    """Choose after a leader's arm: (d,)."""
    if isinstance(offered, np.ndarray):
        index = act.follow(arm, offered)
        return Choice(index, offered[index])
    nearest = offered.nearest(arm)
    act.follow(arm, nearest[None, :])  # an act that refuses what is not the arm raises here
    return Choice(-1, nearest)


@dataclass(frozen=True, eq=False)
class Judge:
    """One agent at a decision.

    Attributes:
        policy: Its policy.
        plan: Of the policy.
        agent: Who it is.
        attachments: What goes with its contexts.
        rng: Its random numbers.
        thought: What it makes of all that it has heard.
        observations: What it has kept of its past.
    """

    policy: Policy
    plan: Plan
    agent: int
    attachments: Attachments
    rng: np.random.Generator
    thought: Ahead | SummedModel
    observations: Sequence[Observation]

    def choose(self, offered: Offered) -> Choice:
        """Choose what the posterior rates best; at random if nothing is known (Alg. 1, l. 4-7)."""
        if not isinstance(offered, np.ndarray):
            point = self._sought(offered)
            belief, width = self._believe(point, offered.spread)
            return Choice(-1, point[0], _facts(belief, width, 0))
        belief, width = self._believe(offered, offered)
        knows = belief.count[0] > 0
        std = self._drawn(offered, belief) if knows and draws(self.policy.act) else belief.std
        scores = self.policy.act.score(belief.mean, std, width)
        index = int(first_best(scores[None, :])[0])
        if not knows:
            index = int(self.rng.integers(len(offered)))
        return Choice(index, offered[index], _facts(belief, width, index))

    def _sought(self, offered: DecisionSet) -> Array:
        """Look for the best point of a continuum; any, if nothing is known: (1, d)."""
        any_point = offered.sample(self.rng, 1)
        belief, width = self._believe(any_point, offered.spread)
        if belief.count[0] == 0:
            return any_point
        act, w = self.policy.act, float(width[0])
        if draws(act):
            return best_drawn_point(offered, self.thought, w, self.rng, self.observations)[None, :]
        surface: Surface
        if isinstance(self.thought, SummedModel):
            surface = SummedSurface(self.thought)
        else:
            surface = ExactSurface(self.thought, self.attachments, offered.spread)
        return best_point(offered, surface, act, w, self.rng, self.observations)[None, :]

    def _believe(self, X: Array, offered: Array) -> tuple[Belief, Array]:
        """Return belief and width at m contexts, given all that is offered."""
        if isinstance(self.thought, SummedModel):
            belief = self.thought.predict(X)
        else:
            belief = self.thought.predict(self.attachments.asked(X, offered))
        width = self.policy.width.factor(
            logdet=belief.logdet,
            count=belief.count,
            ridge=self.policy.ridge,
            agents=np.full(len(X), self.plan.union_bound[self.agent]),
        )
        return belief, width

    def _drawn(self, offered: Array, belief: Belief) -> Array:
        """Draw jointly at K offered actions: (K,)."""
        agents = np.full(len(offered), self.agent)
        assert belief.covariance is not None
        prior = self.plan.prior.diagonal(agents, offered)
        return drawn(belief.covariance, prior, agents, self.rng.standard_normal(len(offered)))


def _facts(belief: Belief, width: Array, index: int) -> tuple[float, float, float]:
    return float(belief.mean[index]), float(belief.std[index]), float(width[index])
