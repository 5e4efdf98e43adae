"""How does an agent choose from a continuum? The point that its act rates highest.

The rating is a function of mean and σ, whose gradients a `Surface` knows, or a function drawn from
the posterior (`gp/sample_path.py`); `maximise` looks for its highest point. Contexts that were
tried before, the newest and the most rewarding of them, are looked at too, so that what is known to
be good is never missed.
"""

from collections.abc import Sequence

import numpy as np

from coopbandits.act import Act, defined, draws
from coopbandits.agent.beliefs import Beliefs
from coopbandits.arrays import Array, short
from coopbandits.decision_sets import DecisionSet
from coopbandits.decision_sets.maximise import maximise
from coopbandits.errors import ParameterError
from coopbandits.protocol.messages import Observation

# Of the contexts tried before, so many of the newest and of the most rewarding are looked at.
_TRIED = 32


def best_point(
    decision_set: DecisionSet,
    beliefs: Beliefs,
    attached: Array,
    act: Act,
    width: float,
    rng: np.random.Generator,
) -> Array:
    """Return the point of a set that an act rates highest, as far as it is found: (d,).

    An act that draws takes the highest point of a function drawn from N(mean, w²Σ).

    Args:
        decision_set: The set.
        beliefs: The agent's.
        attached: (·,) what the posterior takes beside each context.
        act: How the agent acts; it must draw, or tell the slopes of its score.
        width: w.
        rng: The agent's own.
    """
    tried = _tried(decision_set, beliefs.recent)
    if draws(act):
        path = beliefs.draw(decision_set.dim, width, rng)
        return maximise(decision_set, path.slopes, rng, values=path, known=tried)
    slopes = getattr(act, "slopes", None)
    if slopes is None:
        raise ParameterError(
            f"act={short(act)} cannot choose from a continuum; expected one with "
            "slopes(mean, std, width), the derivatives of its score by mean and by std, or offer a "
            "finite decision set"
        )

    surface = beliefs.surface(attached)

    def rated(X: Array) -> tuple[Array, Array]:
        at = surface.slopes(X)
        w = np.full(len(X), width)
        by_mean, by_std = slopes(at.mean, at.std, w)
        by_x = by_mean[:, None] * at.mean_by_x + by_std[:, None] * at.std_by_x
        return defined(act.score(at.mean, at.std, w)), by_x

    def values(X: Array) -> Array:
        return defined(act.score(*surface.believe(X), np.full(len(X), width)))

    return maximise(decision_set, rated, rng, values=values, known=tried)


def _tried(decision_set: DecisionSet, observations: Sequence[Observation]) -> Array:
    """Return some of the contexts tried before that lie in the set: (k, d)."""
    rewards = np.array([one.reward for one in observations])
    newest = np.arange(len(rewards))[-_TRIED:]
    picked = np.union1d(newest, np.argsort(-rewards, kind="stable")[:_TRIED])
    d = decision_set.dim
    X = np.array([observations[int(i)].context for i in picked]).reshape(-1, d)
    return X[decision_set.contains(X)]
