"""How does an agent choose from a continuum? The point that its act rates highest.

The rating is a function of mean and σ, whose gradients a `Surface` knows, or a function drawn from
the posterior (`gp/sample_path.py`); `maximise` looks for its highest point. Contexts that were
tried before, the newest and the most rewarding of them, are looked at too, so that what is known to
be good is never missed.
"""

from collections.abc import Sequence

import numpy as np

from coopbandits.act import Act
from coopbandits.agent.model import Ahead, Observation
from coopbandits.agent.summed_model import SummedModel
from coopbandits.agent.surface import Surface
from coopbandits.arrays import Array, short
from coopbandits.decision_sets import DecisionSet
from coopbandits.decision_sets.maximise import maximise
from coopbandits.errors import ParameterError
from coopbandits.gp.posterior import Posterior
from coopbandits.gp.sample_path import Part, SamplePath, path_from_posterior, path_from_weights

# Of the contexts tried before, so many of the newest and of the most rewarding are looked at.
_TRIED = 32


def best_point(
    decision_set: DecisionSet,
    surface: Surface,
    act: Act,
    width: float,
    rng: np.random.Generator,
    observations: Sequence[Observation] = (),
) -> Array:
    """Return the point of a set that an act rates highest, as far as it is found: (d,).

    Args:
        decision_set: The set.
        surface: The agent's beliefs.
        act: How it acts; it must tell the slopes of its score.
        width: w.
        rng: The agent's own.
        observations: What the agent has kept of its past.
    """
    slopes = getattr(act, "slopes", None)
    if slopes is None:
        raise ParameterError(
            f"act={short(act)} cannot choose from a continuum; expected one with "
            "slopes(mean, std, width), the derivatives of its score by mean and by std, or offer a "
            "finite decision set"
        )

    def rated(X: Array) -> tuple[Array, Array]:
        at = surface.slopes(X)
        w = np.full(len(X), width)
        by_mean, by_std = slopes(at.mean, at.std, w)
        by_x = by_mean[:, None] * at.mean_by_x + by_std[:, None] * at.std_by_x
        return act.score(at.mean, at.std, w), by_x

    def values(X: Array) -> Array:
        return act.score(*surface.believe(X), np.full(len(X), width))

    tried = _tried(decision_set, observations)
    return maximise(decision_set, rated, rng, values=values, known=tried)


def best_drawn_point(
    decision_set: DecisionSet,
    thought: Ahead | SummedModel,
    width: float,
    rng: np.random.Generator,
    observations: Sequence[Observation] = (),
) -> Array:
    """Return the highest point, as far as it is found, of a function drawn from N(mean, w²Σ): (d,).

    Args:
        decision_set: The set.
        thought: What the agent makes of all that it has heard.
        width: w.
        rng: The agent's own.
        observations: What the agent has kept of its past.
    """
    path = _drawn_path(thought, decision_set.dim, width, rng)
    tried = _tried(decision_set, observations)
    return maximise(decision_set, path.slopes, rng, values=path, known=tried)


def _drawn_path(
    thought: Ahead | SummedModel, dim: int, width: float, rng: np.random.Generator
) -> SamplePath:
    if isinstance(thought, SummedModel):
        basis = thought.policy.features
        assert basis is not None
        m = basis.size(thought.policy.kernel, dim)
        mean, root = thought.ask(np.eye(m))[:2]
        prior = thought.plan.prior
        return path_from_weights(prior, basis, thought.agent, mean, root, rng, width=width)
    minds = thought.minds
    which = 0
    if len(minds) > 1:  # a function drawn from a mixture is one of a part that is drawn
        which = int(rng.choice(len(minds), p=[mind.weight for mind, _ in minds]))
    mind, newest = minds[which]
    known: Posterior | Part = mind.posterior
    if newest is not None:
        known = Part(newest, np.ones(len(newest.agents), dtype=np.bool_))
    return path_from_posterior(known, thought.model.agent, dim, rng, width=width)


def _tried(decision_set: DecisionSet, observations: Sequence[Observation]) -> Array:
    """Return some of the contexts tried before that lie in the set: (k, d)."""
    rewards = np.array([y for _, _, y in observations])
    newest = np.arange(len(rewards))[-_TRIED:]
    picked = np.union1d(newest, np.argsort(-rewards, kind="stable")[:_TRIED])
    d = decision_set.dim
    X = np.array([observations[int(i)][1][:d] for i in picked]).reshape(-1, d)
    return X[decision_set.contains(X)]
