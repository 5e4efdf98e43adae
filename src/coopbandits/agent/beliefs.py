"""What does an agent make of all that it has learnt? One protocol, kept in two forms.

| form | what is kept | for |
|---|---|---|
| `FactorBeliefs` | all observations, and a growing Cholesky factor | any kernel, exactly |
| `StatisticsBeliefs` | sufficient statistics of each agent heard from | policies with `features=` |

Beliefs learn in place. `state` and `restore` make a transaction of it: whatever raises in between,
nothing has changed.
"""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from coopbandits.agent.gradients import Surface
from coopbandits.arrays import Array
from coopbandits.gp.posterior import Belief
from coopbandits.gp.sample_path import SamplePath
from coopbandits.protocol.digests import Digest
from coopbandits.protocol.messages import Observation
from coopbandits.similarity.hypotheses import Hypotheses
from coopbandits.similarity.similarity import Views

Arrays = dict[str, npt.NDArray[Any]]


class Beliefs(Protocol):
    """What one agent believes of its reward function."""

    @property
    def n_observations(self) -> int:
        """How many observations have been learnt."""
        ...

    @property
    def recent(self) -> Sequence[Observation]:
        """Observations that are still at hand, the newest last."""
        ...

    @property
    def hypotheses(self) -> Hypotheses:
        """What K_z may be, in the agent's own view; where it is estimated."""
        ...

    def n_observations_without(self, origins: Collection[int]) -> int:
        """How many observations have been learnt from others than these."""
        ...

    def learn(
        self, observations: Sequence[Observation], digests: Collection[Digest] = (), now: int = 0
    ) -> None:
        """Learn what has arrived, and estimate K_z again if that is due.

        Observations are added to what is known; a digest takes the place of what was known of its
        origin. Where evidence fades, it does so up to the agent's own round, `now`.
        """
        ...

    def views(self) -> Views:
        """Return what K_z would be estimated from now, in a single view."""
        ...

    def newest(self, origin: int) -> int:
        """Return the newest round of an agent that was learnt, 0 for none."""
        ...

    def saw(self, observation: Observation) -> None:
        """Note an observation of the agent's own, which counts before it is learnt if it can."""
        ...

    def predict(self, X: Array, attached: Array, *, joint: bool = False) -> Belief:
        """Return the belief at m contexts, with covariances if `joint`: (m, d), (·,)."""
        ...

    def draw(self, dim: int, width: float, rng: np.random.Generator) -> SamplePath:
        """Draw a function from N(mean, w²Σ)."""
        ...

    def surface(self, attached: Array) -> Surface:
        """Return mean and σ with their gradients, at any point."""
        ...

    def state(self) -> Any:
        """Return what `restore` needs to forget all that is learnt from now on."""
        ...

    def restore(self, state: Any) -> None:
        """Go back to a state, to the bit."""
        ...

    def stored(self) -> Arrays:
        """Return the arrays that it can be made of again."""
        ...
