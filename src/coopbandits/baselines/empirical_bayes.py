r"""Empirical Bayes for many linear bandits: a prior N(μ, Σ) of agents' weights, estimated from all.

The hierarchical model: θ_v ~ N(μ, Σ) for each agent, y = xᵀθ_v + N(0, σ²). Given μ and Σ, agent v
believes N(m_v, P_v), from its own S_v = Σxxᵀ and b_v = Σxy alone:

    P_v = (Σ⁻¹ + S_v/σ²)⁻¹ = (I + ΣS_v/σ²)⁻¹Σ      m_v = μ + P_v(b_v − S_vμ)/σ²

μ and Σ maximise the marginal likelihood of all agents' rewards, the θ_v integrated out, by
expectation-maximisation; one step is

    μ ← mean of m_v      Σ ← (n₀τ²I + Σ_v [P_v + (m_v − μ)(m_v − μ)ᵀ]) / (n₀ + V)

with the new μ. n₀ is the weight of an inverse-Wishart prior of Σ around τ²I, as of so many agents
more, which keeps Σ from collapsing while there is little to estimate it from; n₀ = 0 leaves it out.
"""

from typing import Protocol

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray, as_count, as_not_negative, as_positive
from coopbandits.baselines.offers import check_contexts, take
from coopbandits.baselines.settings import as_name
from coopbandits.engines import Simulation
from coopbandits.gp.posterior import deviation
from coopbandits.kernels import Linear
from coopbandits.listen import Everyone
from coopbandits.network.lags import transmissions
from coopbandits.problems.problem import Round
from coopbandits.protocol.messages import message_size


class Hierarchical(Protocol):
    """The settings that ebmUCB and ebmTS share."""

    @property
    def alpha(self) -> float:
        """α."""
        ...

    @property
    def noise(self) -> float:
        """σ."""
        ...

    @property
    def variance(self) -> float:
        """τ²."""
        ...

    @property
    def weight(self) -> float:
        """n₀."""
        ...

    @property
    def steps(self) -> int:
        """Of expectation-maximisation, after each step."""
        ...

    @property
    def lag(self) -> int:
        """0 for turns, 1 for all at once."""
        ...

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        ...


def settle(algorithm: Hierarchical) -> None:
    """Check the settings that ebmUCB and ebmTS share."""
    as_name(algorithm.name)
    settled = {
        "alpha": as_not_negative(algorithm.alpha, "alpha"),
        "noise": as_positive(algorithm.noise, "noise"),
        "variance": as_positive(algorithm.variance, "variance"),
        "weight": as_not_negative(algorithm.weight, "weight"),
        "steps": as_count(algorithm.steps, "steps"),
        "lag": Everyone(lag=algorithm.lag).lag,
    }
    for field, value in settled.items():
        object.__setattr__(algorithm, field, value)


class HierarchicalAgents:
    """Takes all decisions of ebmUCB, or of ebmTS.

    Attributes:
        mu: (d,) and
        Sigma: (d, d), the estimated prior.
        S: (V, d, d) and
        b: (V, d), the sums of each agent.
    """

    name = "empirical Bayes"

    def __init__(self, algorithm: Hierarchical, simulation: Simulation, *, draws: bool) -> None:
        V, d = simulation.agents, simulation.dim
        self.listens: BoolArray = np.ones((V, V), dtype=np.bool_)
        self.mu: Array = np.zeros(d)
        self.Sigma: Array = algorithm.variance * np.eye(d)
        self.S: Array = np.zeros((V, d, d))
        self.b: Array = np.zeros((V, d))
        self._algorithm, self._draws = algorithm, draws
        self._noise = algorithm.noise**2
        self._served = 0
        self._rngs = simulation.rngs()
        carrier = Everyone(lag=algorithm.lag).carrier(simulation.network)
        self._messages = transmissions(carrier, 1, simulation.rounds)

    @property
    def refreshes(self) -> int:
        """How often the number of decisions has doubled: then K_z is noted."""
        return self._served.bit_length()

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        check_contexts(Linear(), self._noise / self._algorithm.variance, offer)
        agents = np.arange(len(self.b))
        rows = np.empty(len(agents), dtype=np.int64)
        for turn in agents[:, None] if self._algorithm.lag == 0 else agents[None, :]:
            rows[turn] = self._choose(offer, turn)
            X, y = offer.contexts[rows[turn]], offer.rewards[rows[turn]]
            self.S[turn] += X[:, :, None] * X[:, None, :]
            self.b[turn] += X * y[:, None]
            self._served += len(turn)
            for _ in range(self._algorithm.steps):
                self._maximise()
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes of round t: everyone tells everyone what it saw."""
        messages = int(self._messages[t - 1])
        return messages, messages * message_size(self.b.shape[1])

    def similarity(self) -> Array:
        """Return E[θ_uᵀθ_v]/E[θ_vᵀθ_v] under the prior, μᵀμ/(μᵀμ + tr Σ) for two agents: (V, V)."""
        common = self.mu @ self.mu
        rho = common / (common + np.trace(self.Sigma))
        V = len(self.b)
        return np.asarray(rho * np.ones((V, V)) + (1.0 - rho) * np.eye(V))

    def _posterior(self, agents: IntArray) -> tuple[Array, Array]:
        """Return m_v and P_v of some agents: (n,) -> (n, d), (n, d, d)."""
        S, b = self.S[agents], self.b[agents]
        solved = np.linalg.solve(np.eye(len(self.mu)) + self.Sigma @ S / self._noise, self.Sigma)
        P: Array = np.asarray(0.5 * (solved + np.swapaxes(solved, 1, 2)), dtype=np.float64)
        news = (b - S @ self.mu) / self._noise
        return self.mu + (P @ news[..., None])[..., 0], P

    def _maximise(self) -> None:
        """Take one step of expectation-maximisation."""
        m, P = self._posterior(np.arange(len(self.b)))
        n, d = self._algorithm.weight, len(self.mu)
        self.mu = m.mean(axis=0)
        gaps = m - self.mu
        Sigma = n * self._algorithm.variance * np.eye(d) + P.sum(axis=0) + gaps.T @ gaps
        self.Sigma = Sigma / (n + len(m))

    def _choose(self, offer: Round, turn: IntArray) -> IntArray:
        """Choose a row for each agent of a turn: (n,)."""
        asked, offered = offer.padded(turn)
        X = offer.contexts[asked[offered]]
        who = np.repeat(np.arange(len(turn)), offered.sum(axis=1))
        rngs = [self._rngs[v] for v in turn]
        knows = np.full(len(turn), self._served > 0)
        if self._draws and self._served > 0:
            theta = self._drawn(turn, np.array([rng.standard_normal(len(self.mu)) for rng in rngs]))
            scores = np.einsum("md,md->m", X, theta[who])
        else:
            m, P = self._posterior(turn)
            spread = deviation(np.einsum("md,mde,me->m", X, P[who], X))
            scores = np.einsum("md,md->m", X, m[who]) + self._algorithm.alpha * spread
        return take(offer, scores, knows, rngs, turn)

    def _drawn(self, agents: IntArray, z: Array) -> Array:
        r"""Draw weights from N(m_v, α²P_v), by standard normal numbers: (n,), (n, d) -> (n, d).

        P = R(I + RSR/σ²)⁻¹R for the symmetric root R of Σ, so θ = m + α·R·C⁻ᵀz with
        CCᵀ = I + RSR/σ²: a factor that always exists, whatever the rank of Σ.
        """
        m, _ = self._posterior(agents)
        values, vectors = np.linalg.eigh(self.Sigma)
        R = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        C = np.linalg.cholesky(np.eye(len(R)) + R @ self.S[agents] @ R / self._noise)
        white = np.linalg.solve(np.swapaxes(C, 1, 2), z[..., None])
        return np.asarray(m + self._algorithm.alpha * (R @ white)[..., 0])
