r"""Recursive regression: agents that learn their own observations one at a time.

Of an observation (φ, y), with C the covariance of the weights and σ² = φᵀCφ,

    mean ← mean + Cφ (y − φᵀmean)/(λ + σ²)      C ← C − Cφ(Cφ)ᵀ/(λ + σ²)

To write all of C each time takes longer than to ask it. So the last few columns Cφ/√(λ + σ²) are
kept beside it, C = C₀ − GᵀG, and folded into it together.
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.by_lags import Record
from coopbandits.engines.views import BATCH
from coopbandits.gp.posterior import Belief
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round

# So many observations are kept beside the covariance.
_COLUMNS = 16
# Covariances are folded in batches of about this many numbers, which stay in a core's cache.
_CACHE = 100_000


class RecursiveRegression:
    """The beliefs of V agents about m weights each.

    Attributes:
        mean: (V, m).
        logdet: (V,) log det(I + K/λ) of what each has learnt.
        count: (V,) how much that is.
        seen: (V,) how many observations there were when an agent's belief was last made afresh.
    """

    def __init__(self, covariance: Array, ridge: float) -> None:
        """Start with what is believed beforehand: (V, m, m)."""
        V, m = covariance.shape[:2]
        self._ridge = ridge
        self._covariance = covariance
        self._columns = np.zeros((V, _COLUMNS, m))
        self._used = 0
        self.mean = np.zeros((V, m))
        self.logdet = np.zeros(V)
        self.count = np.zeros(V, dtype=np.int64)
        self.seen = np.zeros(V, dtype=np.int64)

    @staticmethod
    def bytes(V: int, m: int) -> float:
        """How much memory it takes."""
        return 8.0 * V * (m * m + (_COLUMNS + 1) * m + 3) + 8.0 * 2 * _CACHE

    def reset(
        self, agents: IntArray, mean: Array, covariance: Array, logdet: Array, count: IntArray
    ) -> None:
        """Let some agents start anew from a belief: (B, m), …, (B,)."""
        self.mean[agents], self._covariance[agents] = mean, covariance
        self._columns[agents] = 0.0
        self.logdet[agents], self.count[agents] = logdet, count
        self.seen[agents] = count

    def learn(self, who: BoolArray, phi: Array, y: Array) -> None:
        """Let some agents learn one observation of their own: (V,), (V, m), (V,)."""
        gain = (phi[:, None, :] @ self._covariance)[:, 0]
        if self._used:
            kept = self._columns[:, : self._used]
            along = np.swapaxes(kept @ phi[..., None], 1, 2)
            gain -= (along @ kept)[:, 0]
        variance = np.maximum(np.einsum("vm,vm->v", gain, phi), 0.0)
        residual = y - np.einsum("vm,vm->v", self.mean, phi)
        weight = who / (self._ridge + variance)
        self.mean += gain * (weight * residual)[:, None]
        self._columns[:, self._used] = gain * np.sqrt(weight)[:, None]
        self._used += 1
        self.logdet += who * np.log1p(variance / self._ridge)
        self.count += who
        if self._used == _COLUMNS:
            self._fold()

    def ask(
        self, phi: Array, agents: IntArray | slice = slice(None), *, joint: bool
    ) -> tuple[Array, Array, Array | None]:
        """Return mean, variance (B, K) and, if asked for, covariance (B, K, K) at (B, K, m)."""
        mean = (phi @ self.mean[agents][..., None])[..., 0]
        spread = phi @ self._covariance[agents]
        along = phi @ np.swapaxes(self._columns[agents, : self._used], 1, 2)
        if joint:
            covariance = spread @ np.swapaxes(phi, 1, 2) - along @ np.swapaxes(along, 1, 2)
            return mean, np.diagonal(covariance, axis1=1, axis2=2), covariance
        spread *= phi
        along *= along
        return mean, spread.sum(axis=2) - along.sum(axis=2), None

    def _fold(self) -> None:
        V, _, m = self._columns.shape
        size = max(1, _CACHE // m**2)
        for start in range(0, V, size):
            some = self._columns[start : start + size]
            self._covariance[start : start + size] -= np.swapaxes(some, 1, 2) @ some
        self._columns[:] = 0.0
        self._used = 0

    def predict(self, offer: Round, phi: Array, *, joint: bool) -> Belief:
        """Ask every agent about its own rows of an offer: (M, m)."""
        belief = Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        for agents in _batches(offer.sizes, phi.shape[1], joint=joint):
            rows, real = offer.padded(agents)
            mean, variance, covariance = self.ask(phi[rows], agents, joint=joint)
            row = rows[real]
            whose = offer.agents[row]
            if covariance is not None:
                covariance = (covariance * real[:, None, :])[real]
            own = Belief(
                mean[real], variance[real], self.logdet[whose], self.count[whose], covariance
            )
            own.put(belief, row)
        return belief


def _batches(sizes: IntArray, m: int, *, joint: bool) -> list[IntArray | slice]:
    """Put agents with like numbers of actions together, as many as are worked on at once."""

    def numbers(agents: int, K: int) -> int:
        return agents * K * (m + (K if joint else 0))

    if numbers(len(sizes), int(sizes.max())) <= BATCH:
        return [slice(None)]  # all of them, as they are
    batches: list[IntArray | slice] = []
    order, first = np.argsort(sizes, kind="stable"), 0
    for last, K in enumerate(sizes[order]):
        if last > first and numbers(last + 1 - first, int(K)) > BATCH:
            batches.append(order[first:last])
            first = last
    return [*batches, order[first:]]


def with_ones(phi: Array, policy: Policy) -> Array:
    """Return (φ, 1) where agents have own constants, which are weights like any other then."""
    return phi if policy.constants is None else policy.constants.features(phi)


def with_prior_constants(prior: Array, policy: Policy) -> Array:
    """Add agents' own constants to a prior covariance of their weights: (V, m, m)."""
    if policy.constants is None:
        return prior
    V, m, _ = prior.shape
    both = np.zeros((V, m + 1, m + 1))
    both[:, :m, :m], both[:, m, m] = prior, policy.constants.variance
    return both


def hears_nobody(plan: Plan) -> bool:
    """Tell whether every agent learns from itself alone, by a K_z that is given."""
    sources, rounds = plan.lags.sources, plan.lags.rounds
    alone = np.array_equal(sources.agents, np.arange(len(sources))) and (rounds == 1).all()
    return bool(alone and plan.K_z is not None)


class IndependentAgents:
    """Every agent's posterior from its own observations, one at a time."""

    refreshes = 0

    def __init__(self, policy: Policy, plan: Plan, m: int) -> None:
        assert plan.K_z is not None
        self._policy, self._plan = policy, plan
        scale = plan.K_z.own(np.arange(len(plan.lags)))
        prior = with_prior_constants(scale[:, None, None] * np.eye(m), policy)
        self._regression = RecursiveRegression(prior, policy.ridge)

    def learn(self, t: int, record: Record) -> None:
        """Learn what each agent saw in the last round."""
        everyone = np.ones(len(self._plan.lags), dtype=np.bool_)
        phi = with_ones(record.features, self._policy)
        self._regression.learn(everyone, phi, record.rewards[t - 2])

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer: (M, m)."""
        phi = with_ones(asked, self._policy)
        return self._regression.predict(offer, phi, joint=draws(self._policy.act))

    def similarity(self) -> Array:
        """Return K_z of each pair that listens, 0 between strangers: (n,)."""
        return self._plan.similarity
