"""What does an agent expect of the actions that it is offered? Mean, σ and upper bound of each."""

from dataclasses import dataclass

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
