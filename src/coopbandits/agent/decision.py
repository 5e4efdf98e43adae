"""A decision: what an agent chose, what it believed of it and of all else that was offered."""

from dataclasses import dataclass, replace

from coopbandits.arrays import Array, frozen
from coopbandits.gp.posterior import Belief


@dataclass(frozen=True, eq=False, slots=True)
class Prediction:
    """What is believed of K actions: all of shape (K,), read-only.

    Attributes:
        mean: The posterior mean of their rewards.
        std: Its σ.
        upper: mean + w·σ, w the policy's width, however its agents act.
    """

    mean: Array
    std: Array
    upper: Array

    @classmethod
    def of(cls, belief: Belief, width: Array) -> "Prediction":
        """Make it of a belief at K actions and the width there, (K,)."""
        mean, std = belief.mean.copy(), belief.std
        return cls(frozen(mean), frozen(std), frozen(mean + width * std))

    def times(self, scale: float) -> "Prediction":
        """Return it in other units."""
        if scale == 1:
            return self
        return Prediction(*(frozen(scale * part) for part in (self.mean, self.std, self.upper)))


@dataclass(frozen=True, eq=False)
class Decision:
    """A choice, and what the agent believed of it.

    `mean`, `std` and `width` are those of the chosen action; None where the policy asks no
    posterior (an agent that follows its centre, or acts at random by design), and where somebody
    else decided (`agent.took`). `index` is None where `context` is a point of a continuum.

    `propensity` is the probability with which this action was taken, given all that the agent knew:
    1 where nothing was left to chance, else what `act.Explore`, `act.Sample(samples=…)` or a choice
    at random make of it. None on a continuum, and for a single posterior draw, which does not tell
    its own probability. `scores` holds mean, σ and upper bound of every offered action; None where
    no posterior is asked, and on a continuum.

    All of it is in the units of rewards and contexts as they are given, whatever a policy's
    `scale=` and `scaling=`.

    Attributes:
        id: What its reward is told with.
        index: Of the chosen action.
        context: (d,) the chosen action.
        mean: What reward is expected of it.
        std: σ, how uncertain that is.
        width: w, by which σ was multiplied.
        propensity: With which probability it was taken.
        scores: Of every offered action.

    Example:
        >>> agent = cb.LinUCB().agent(0, cb.Network.path(2))
        >>> agent.observe([1.0, 0.0], 1.0)
        >>> decision = agent.decide([[1.0, 0.0], [0.0, 2.0]])
        >>> decision.index, decision.mean, decision.std  # nothing is known of the second yet
        (1, 0.0, 2.0)
    """

    id: int
    index: int | None
    context: Array
    mean: float | None
    std: float | None
    width: float | None
    propensity: float | None = None
    scores: Prediction | None = None

    def in_units_of(self, scale: float) -> "Decision":
        """Return it with beliefs in units of rewards, of which they have been divided by."""
        if scale == 1 or self.mean is None or self.std is None:
            return self
        scores = None if self.scores is None else self.scores.times(scale)
        return replace(self, mean=scale * self.mean, std=scale * self.std, scores=scores)
