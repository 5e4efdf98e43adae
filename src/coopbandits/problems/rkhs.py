"""Functions of known norm: members of the RKHS of a joint kernel, and one agent's part of them."""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.decision_sets import DecisionSet
from coopbandits.errors import ParameterError
from coopbandits.gp.compositions import JointKernel
from coopbandits.kernels import Kernel, gradient_of
from coopbandits.problems.enclosures import enclosed, finest, fourth_moment
from coopbandits.problems.optimum import Optimum, certified


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

    def of_agent(self, agent: int) -> "Part":
        """Return f_v, as a function of x alone."""
        K_z = self.kernel.K_z.block(np.array([agent]), self.agents)[0]
        combine = self.kernel.composition.combine
        none, half, one = (combine(K_z, np.full(len(K_z), k)) for k in (0.0, 0.5, 1.0))
        if not np.allclose(none + one, 2 * half, rtol=1e-12, atol=1e-12):
            raise ParameterError(
                f"{self.kernel.composition!r} is not linear in K_x, so that nothing can be "
                "certified; take compose='hadamard' or 'sum'"
            )
        weights = self.weights * (one - none)
        kept = weights != 0
        constant = float(self.weights @ none)
        return Part(self.kernel.kernel, constant, weights[kept], self.contexts[kept])


@dataclass(frozen=True, eq=False)
class Part:
    """f(x) = constant + Σ w_i k(x, x_i), and what is certain of it over boxes."""

    kernel: Kernel
    constant: float
    weights: Array
    contexts: Array

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """Evaluate f and its gradient: (m, d) -> (m,), (m, d)."""
        values = self.constant + self.kernel(X, self.contexts) @ self.weights
        return values, self.weights @ gradient_of(self.kernel, X, self.contexts)

    @property
    def norm(self) -> float:
        """The norm of f without its constant, in the RKHS of K_x; rounding makes it no smaller."""
        K = self.kernel(self.contexts, self.contexts)
        squared = float(self.weights @ K @ self.weights)
        rounding = float(1e-14 * np.abs(self.weights) @ np.abs(K) @ np.abs(self.weights))
        return float(np.sqrt(max(squared, 0.0) + rounding))

    def bounds(self, C: Array, H: Array, norm: float) -> tuple[Array, Array, Array]:
        """Bound f over boxes by its tangents, as `certified` asks for: (m, d), (m, d).

        What a tangent leaves out is bounded term by term: by its curvature, or, at a kink, by its
        range. And for all terms together, which may cancel each other, by the norm of f.
        """
        values, slopes = self(C)
        own = self.kernel(C, self.contexts)
        by_x = gradient_of(self.kernel, C, self.contexts)
        rise = (np.abs(by_x) * H[:, None, :]).sum(axis=2)
        k, w = enclosed(self.kernel, C, H, self.contexts), self.weights
        above = np.minimum(0.5 * k.rise, k.high - own + rise)
        below = np.minimum(0.5 * k.fall, own - k.low + rise)
        rest = np.where(w > 0, w * above, -w * below).sum(axis=1)
        together = 0.5 * norm * np.sqrt(fourth_moment(self.kernel, H))
        return values, slopes, np.minimum(rest, together)

    def optimum(self, decision_set: DecisionSet, tolerance: float) -> Optimum:
        """Find the maximum on a set, certified up to the tolerance."""
        norm = self.norm
        inside = self.contexts[decision_set.contains(self.contexts)]
        return certified(
            decision_set,
            self,
            lambda C, H: self.bounds(C, H, norm),
            tolerance=tolerance,
            known=inside,
            scale=finest(self.kernel, decision_set.dim),
        )
