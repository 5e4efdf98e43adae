r"""Posteriors from sums of fixed size: exact for kernels with finitely many features, at any T.

Agent v's weights are θ_v = Σ_k U_vk g_k + √δ_v h_v, and so are those of everyone it has heard from.
The others' own parts are integrated out of their statistics (`Statistics.shared`), what they say
about g is pooled, and that is v's prior for θ_v:

    A = λI + Σ_{u≠v} U_uU_uᵀ ⊗ S̃_u        E = U_v ⊗ I_m
    θ_v ~ N(EᵀA⁻¹c, λEᵀA⁻¹E + δ_v I),      c = Σ_{u≠v} U_u ⊗ b̃_u

which v's own statistics turn into its posterior, a matrix of size m. One Cholesky factor of A
bordered by E and c gives all of it. log det(I + K/λ) is the sum of the three determinants.
"""

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.compositions import Hadamard, JointKernel, Kronecker
from coopbandits.engines.estimates import Estimates
from coopbandits.engines.record import Record
from coopbandits.features import Exact, is_finite
from coopbandits.policy import Plan, Policy
from coopbandits.posterior import Belief, deviation
from coopbandits.problems.problem import Round
from coopbandits.statistics import Spectrum, Statistics, coupled

# Agents are worked on in batches of about this many numbers.
_BATCH = 1_500_000


def applies(policy: Policy, plan: Plan) -> bool:
    """Tell whether sums of fixed size can stand for the posterior, exactly."""
    return (
        is_finite(policy.kernel)
        and isinstance(policy.compose, Hadamard | Kronecker)
        and not plan.in_turn
        and not plan.frozen
    )


class SumsOfFeatures:
    """Every agent's posterior from the statistics of those it has heard from."""

    def __init__(self, policy: Policy, plan: Plan, dim: int) -> None:
        self._policy, self._plan = policy, plan
        self._basis = Exact()
        self._features = self._basis.size(policy.kernel, dim)
        self.estimates = Estimates(policy, plan)
        if plan.learner is None:
            assert isinstance(plan.kernel, JointKernel)
            self.estimates.give(plan.kernel.K_z)
        self._depth = int(plan.lags[np.isfinite(plan.lags)].max()) + 1
        self._after = 0
        self._sums: Array = np.empty(0)
        self._spectra: Spectrum = (np.empty(0), np.empty(0), np.empty(0))

    def bytes_after(self, rounds: int) -> float:
        """How much memory the sums take, with a batch of agents; T does not matter."""
        V, m = len(self._plan.lags), self._features
        kept = self._depth * V * (Statistics.width(m) + m * m + 2 * m)
        largest = (
            self.estimates.agents.shape[1] * m
            if self._plan.learner is not None
            else (self.estimates.U.shape[2] * m)
        )
        return 8.0 * (kept + 3 * _BATCH + 3 * (largest + m) ** 2)

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly."""
        V, m = len(self._plan.lags), self._features
        N, r = self.estimates.U.shape[1:]
        if self._plan.learner is not None:
            r = min(N, 12)  # a guess: how many parts are shared is known to the data only
        D = (r + 1) * m + 1
        return rounds * (1e6 + V * (1e5 + N * (r * m) ** 2 / 2 + 2 * N * m**3 + D**3))

    def believe(self, t: int, offer: Round, X: Array, judging: BoolArray, record: Record) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: X (M, ·), (V,)."""
        belief = Belief.nothing(len(offer.agents))
        if self._plan.learner is not None:
            self.estimates.refresh(t, record)
        if t == 1:
            return belief
        self._count(t - 1, record)
        phi = self._basis.features(self._policy.kernel, X)
        m = phi.shape[1]
        N, r = self.estimates.U.shape[1:]
        size = max(1, int(_BATCH // (3 * N * m * m + 2 * ((r + 1) * m + 1) ** 2)))
        asking = np.flatnonzero(judging)
        for start in range(0, len(asking), size):
            agents = asking[start : start + size]
            mean, C, logdet, count = self._weights(t, agents)
            at = np.searchsorted(agents, offer.agents)
            rows = np.flatnonzero(np.isin(offer.agents, agents))
            which = at[rows]
            spread = np.einsum("ri,rij,rj->r", phi[rows], C[which], phi[rows])
            Belief(
                np.einsum("ri,ri->r", phi[rows], mean[which]),
                deviation(spread),
                logdet[which],
                count[which],
            ).put(belief, rows)
        return belief

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self.estimates.refreshes

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        if isinstance(self._plan.kernel, JointKernel) and self._plan.learner is None:
            return np.where(np.isfinite(self._plan.lags), self._plan.kernel.K_z, 0.0)
        return self.estimates.similarity()

    def _count(self, t: int, record: Record) -> None:
        """Add the observations of round t to the sums of their agents."""
        phi = self._basis.features(self._policy.kernel, record.observed[t - 1])
        rows = Statistics.rows(phi, record.rewards[t - 1])
        V, m = phi.shape
        if t == 1:
            self._sums = np.zeros((self._depth, *rows.shape))
            self._spectra = (
                np.zeros((self._depth, V, m)),
                np.zeros((self._depth, V, m, m)),
                np.zeros((self._depth, V, m)),
            )
        new = self._sums[(t - 1) % self._depth] + rows
        self._sums[t % self._depth] = new
        for kept, part in zip(self._spectra, Statistics.of(new, m).spectrum, strict=True):
            kept[t % self._depth] = part

    def _weights(self, t: int, views: IntArray) -> tuple[Array, Array, Array, IntArray]:
        """Return the posterior of θ_v for some agents: mean, covariance, log-determinant, count."""
        ridge, estimates = self._policy.ridge, self.estimates
        B, rows = len(views), np.arange(len(views))
        agents, lags, me = estimates.agents[views], estimates.lags[views], estimates.me[views]
        after = np.where(estimates.linked[views], t - np.minimum(lags, t), 0.0).astype(np.int64)
        at = after % self._depth, agents
        m = self._spectra[0].shape[-1]
        known = after > 0
        sums = self._sums[at] * known[..., None]
        s, Q, projected = (part[at] for part in self._spectra)
        spectrum = s * known[..., None], Q, projected * known[..., None]
        statistics = Statistics.of(sums, m, spectrum)
        delta, U = estimates.delta[views], estimates.U[views]
        own_U, own_delta = U[rows, me], delta[rows, me]
        others = U * known[..., None]
        others[rows, me] = 0.0
        shared, logdets = statistics.shared(delta / ridge)
        logdets[rows, me] = 0.0
        A, c = coupled(others, shared)
        D = A.shape[1]
        # A bordered by E and c; the corner is so large that it changes nothing
        bordered = np.zeros((B, D + m + 1, D + m + 1))
        bordered[:, :D, :D] = A
        index = np.arange(D)
        bordered[:, index, index] += ridge
        E = (own_U[:, None, :, None] * np.eye(m)[:, None, :]).reshape(B, m, D)
        bordered[:, D : D + m, :D] = E
        bordered[:, D + m, :D] = c
        corner = np.arange(D, D + m + 1)
        bordered[:, corner, corner] = 1e200
        L = np.linalg.cholesky(bordered)
        logdet = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)[:, :D]).sum(axis=1)
        logdet += logdets.sum(axis=1) - D * np.log(ridge)
        half = L[:, D:, :D]  # rows E and c, whitened
        products = half @ np.swapaxes(half, 1, 2)
        prior_mean, prior = products[:, :m, m], ridge * products[:, :m, :m]
        prior = prior + own_delta[:, None, None] * np.eye(m)
        own_S, own_b = statistics.S[rows, me], statistics.b[rows, me]
        M = np.eye(m) + prior @ own_S / ridge
        right = np.concatenate(
            [prior, (prior_mean + (prior @ own_b[..., None])[..., 0] / ridge)[..., None]], axis=2
        )
        solved = np.linalg.solve(M, right)
        logdet += np.linalg.slogdet(M)[1]
        count = sums[..., 0].sum(axis=1).astype(np.int64)
        return solved[..., m], solved[..., :m], np.maximum(logdet, 0.0), count
