r"""Which function might it be? One drawn from a posterior, to be asked anywhere, again and again.

A draw at K offered actions needs their joint covariance; a draw that is to be maximised over a
continuum needs a function. With features φ of K_x and a prior sample f₀(u, x) = φ(x)ᵀθ_u, θ_u drawn
with covariance K_z between agents,

    f(x) = f₀(v, x) + κ(x)ᵀ(K + λI)⁻¹(y − f₀(X) − ε),      ε ~ N(0, λI)

is a draw from agent v's posterior (Matheron's rule; Wilson et al. 2020): features stand for the
prior alone, and what the data say is exact. Widened by w: f₀ and ε are w times as large.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray, as_not_negative, short
from coopbandits.errors import ParameterError
from coopbandits.features import Basis, Exact, Fourier, Nystrom, has_waves, is_finite, jacobian_of
from coopbandits.gp.compositions import Composition, Hadamard, JointKernel, Sum
from coopbandits.gp.posterior import Posterior

# How many waves a prior sample is made of, unless a basis is given.
_WAVES = 512
# Eigenvalues of K_z below this, relative to the largest, are rounding.
_RANK_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class SamplePath:
    """One function of contexts, for one agent.

    $$f(x) = φ(x)^⊤θ + b + Σ_i c_i K((v, x), (u_i, x_i))$$

    Attributes:
        kernel: K.
        agent: v.
        basis: Of φ.
        theta: (m,).
        constant: b.
        agents: (n,) u.
        contexts: (n, d).
        coefficients: (n,) c.
    """

    kernel: JointKernel
    agent: int
    basis: Basis
    theta: Array
    constant: float
    agents: IntArray
    contexts: Array
    coefficients: Array

    def __call__(self, X: Array) -> Array:
        """Return the function's values at m contexts: (m, d) -> (m,)."""
        values = self.basis.features(self.kernel.kernel, X) @ self.theta + self.constant
        if len(self.agents):
            mine = np.full(len(X), self.agent)
            values += self.kernel(mine, X, self.agents, self.contexts) @ self.coefficients
        return values

    def slopes(self, X: Array) -> tuple[Array, Array]:
        """Return values and gradients at m contexts: (m, d) -> (m,), (m, d)."""
        by_x = self.theta @ jacobian_of(self.basis, self.kernel.kernel, X)
        if len(self.agents):
            mine = np.full(len(X), self.agent)
            by_x = by_x + self.coefficients @ self.kernel.gradient(
                mine, X, self.agents, self.contexts
            )
        return self(X), by_x


def path_from_posterior(
    known: Posterior,
    agent: int,
    dim: int,
    rng: np.random.Generator,
    *,
    width: float = 1.0,
    basis: Basis | None = None,
) -> SamplePath:
    """Draw a function from N(mean, w²Σ) of an agent's exact posterior.

    Args:
        known: What the agent knows.
        agent: v.
        dim: d.
        rng: The agent's own random numbers.
        width: w.
        basis: Features for the prior; if not given the exact ones, where K_x has finitely many,
            else 512 waves with frequencies that are drawn anew, so that over many draws the prior's
            covariance is K itself.
    """
    kernel = known.kernel
    if not isinstance(kernel, JointKernel):
        raise ParameterError(
            f"functions are drawn for a K_z between agents, not for {short(kernel)}; take "
            "embeddings that are not frozen"
        )
    w = as_not_negative(width, "width")
    if basis is None:
        finite = is_finite(kernel.kernel)
        basis = Exact() if finite else Fourier(_WAVES, seed=int(rng.integers(2**32)))
    agents, X = known.agents, known.contexts
    of_agents = np.unique(np.append(agents, agent))
    m = basis.size(kernel.kernel, dim)
    thetas, constants = _prior(
        kernel.composition, _root(kernel.K_z.block(of_agents, of_agents)), m, rng
    )
    if kernel.intercept:
        constants = constants + np.sqrt(kernel.intercept) * rng.standard_normal(len(of_agents))
    at, mine = np.searchsorted(of_agents, agents), int(np.searchsorted(of_agents, agent))
    seen = np.zeros(0)
    if len(agents):
        phi = basis.features(kernel.kernel, X)
        seen = np.einsum("nm,nm->n", phi, thetas[at]) + constants[at]
    noise = np.sqrt(known.ridge) * rng.standard_normal(len(agents))
    return SamplePath(
        kernel=kernel,
        agent=agent,
        basis=basis,
        theta=w * thetas[mine],
        constant=w * float(constants[mine]),
        agents=agents,
        contexts=X,
        coefficients=known.coefficients(w * (seen + noise)),
    )


def path_from_weights(
    kernel: JointKernel,
    basis: Basis,
    agent: int,
    mean: Array,
    root: Array,
    rng: np.random.Generator,
    *,
    width: float = 1.0,
) -> SamplePath:
    """Draw a function φᵀθ + c, (θ, c) ~ N(mean, w²RRᵀ), where features stand for K_x.

    Where there is no intercept, mean and R are of θ alone.

    What `Nystrom` features do not hold is drawn too, f₀(x) − k_R(x)ᵀK_RR⁻¹f₀(R) of a prior sample
    f₀ of waves, so that a draw is as unsure as a bound is; of other features nothing is left.

    Args:
        kernel: K, of which only K_x and K_z(v, v) are asked.
        basis: Of φ.
        agent: v.
        mean: (m,) of θ; (m + 1,) with an own constant's.
        root: R (m, D), or (m + 1, D).
        rng: The agent's own random numbers.
        width: w.
    """
    w = as_not_negative(width, "width")
    theta = mean + w * (root @ rng.standard_normal(root.shape[1]))
    constant = 0.0
    if kernel.intercept:
        theta, constant = theta[:-1], float(theta[-1])
    if isinstance(basis, Nystrom) and has_waves(kernel.kernel):
        return _with_rest(kernel.without_constants, basis, agent, theta, constant, rng, w)
    nobody = np.empty(0, dtype=np.int64)
    return SamplePath(kernel, agent, basis, theta, constant, nobody, np.empty((0, 0)), np.empty(0))


def _with_rest(
    kernel: JointKernel,
    basis: Nystrom,
    agent: int,
    theta: Array,
    constant: float,
    rng: np.random.Generator,
    width: float,
) -> SamplePath:
    """Add a draw of what a reference sample R does not tell to φᵀθ, all as one sum over R."""
    own, K_x, R = float(kernel.K_z.own(np.array([agent]))[0]), kernel.kernel, basis.reference
    waves = Fourier(_WAVES, seed=int(rng.integers(2**32)))
    prior = width * np.sqrt(own) * rng.standard_normal(waves.size(K_x, R.shape[1]))
    whitening = basis.whitening(K_x)  # φ(x) = Wᵀk_R(x), WWᵀ = K_RR⁻¹
    told = whitening.T @ (waves.features(K_x, R) @ prior)
    return SamplePath(
        kernel=kernel,
        agent=agent,
        basis=waves,
        theta=prior,
        constant=constant,
        agents=np.full(len(R), agent),
        contexts=R,
        coefficients=whitening @ (theta - told) / own,
    )


def _prior(
    composition: Composition, U: Array, m: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw weights and constants of functions with K_z = UUᵀ between agents: (N, m), (N,)."""
    if isinstance(composition, Hadamard):
        return U @ rng.standard_normal((U.shape[1], m)), np.zeros(len(U))
    if isinstance(composition, Sum):
        shared = np.broadcast_to(rng.standard_normal(m), (len(U), m))
        return np.sqrt(0.5) * shared, np.sqrt(0.5) * (U @ rng.standard_normal(U.shape[1]))
    raise ParameterError(
        f"compose={short(composition)} has no prior sample; expected 'hadamard', 'kronecker' or "
        "'sum'"
    )


def _root(K_z: Array) -> Array:
    """Return U with UUᵀ = K_z: (N, N) -> (N, r)."""
    values, vectors = np.linalg.eigh(K_z)
    kept = values > _RANK_TOLERANCE * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
