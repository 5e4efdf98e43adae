"""Functions of known norm: members of the RKHS of a joint kernel."""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.compositions import JointKernel
from coopbandits.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Function:
    """A member of an RKHS: F = Σ a_i K(·, x̃_i)."""

    kernel: JointKernel
    agents: IntArray
    contexts: Array
    weights: Array

    @classmethod
    def draw(
        cls,
        kernel: JointKernel,
        agents: IntArray,
        contexts: Array,
        norm: float,
        rng: np.random.Generator,
    ) -> "Function":
        """Draw normal weights and scale them so that F has the given norm."""
        raw = cls(kernel, agents, contexts, rng.standard_normal(len(agents)))
        if not raw.norm > 0:
            raise ParameterError("the kernel is 0 at the drawn contexts, so F has no norm to scale")
        return cls(kernel, agents, contexts, raw.weights * (norm / raw.norm))

    def __call__(self, agents: IntArray, contexts: Array) -> Array:
        """Evaluate F: (N,), (N, d) -> (N,)."""
        K = self.kernel(agents, contexts, self.agents, self.contexts)
        return np.sum(K * self.weights, axis=1)  # row by row: equal contexts, equal bits

    @property
    def norm(self) -> float:
        """√(aᵀKa)."""
        K = self.kernel(self.agents, self.contexts, self.agents, self.contexts)
        return float(np.sqrt(self.weights @ K @ self.weights))
