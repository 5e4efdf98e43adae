r"""DisKernelUCB (Li et al. 2022): one function for all; tell a server when it is worth it.

Li, Wang, Wang & Wang, "Communication Efficient Distributed Learning for Kernelized Contextual
Bandits", NeurIPS 2022. Every agent plays KernelUCB on what all knew at the last synchronisation and
on what it has seen itself since. The log-determinant trigger (`server.py`) says when all upload
what they have seen and download what the others have.

Given the common past, with z(x) = L⁻¹κ(x) whitened by it, an agent's own news is a posterior under

    k(x, x') − z(x)ᵀz(x'),

of the residuals y − z(x)ᵀw, and its log det(I + K/λ) is the logarithm in the trigger. So there is
one factor for the past, and a small one for each agent.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from coopbandits.act import UpperBound, rated
from coopbandits.arrays import Array, BoolArray, IntArray, as_positive, short
from coopbandits.baselines.offers import check_contexts, take
from coopbandits.baselines.server import Server, as_threshold
from coopbandits.baselines.settings import Named, as_name, check_memory, settled_width
from coopbandits.engines import Simulation
from coopbandits.errors import ParameterError
from coopbandits.gp.posterior import Belief, Posterior
from coopbandits.kernels import Kernel, as_kernel
from coopbandits.problems.problem import Round
from coopbandits.width import Width


@dataclass(frozen=True, kw_only=True)
class DisKernelUCB(Named):
    r"""DisKernelUCB: KernelUCB on everyone's data, shared when the log-determinant says so.

    With `threshold=0` all share after every round; with `threshold=inf` nobody ever does. Their
    regret bound has D = T/(V·Υ), Υ the largest information gain of V·T observations.

    Deviation from the paper: synchronisations come after a round (`server.py`). The default width
    is `SelfNormalised`, for all agents at once; theirs has the same form and larger constants. An
    agent that knows nothing chooses at random. Their Nyström version is not here.

    Args:
        kernel: K_x.
        ridge: λ.
        eta: η, for the width η/√λ.
        width: How sure am I? `SelfNormalised()`, if neither is given.
        threshold: D; T/(V·gain), if not given.
        gain: Υ; if not given (d/2)·ln(1 + VT/(dλ)), the bound for the linear kernel and contexts
            of norm 1, and for other kernels a rule of thumb.
        name: What tables and figures call it.

    Example:
        >>> problem = cb.problems.fully_cooperative(cb.Network.path(4))
        >>> cb.play(problem, cb.DisKernelUCB(cb.kernels.RBF(), eta=1.0), rounds=5).regret.shape
        (5, 4)
    """

    kernel: Kernel = field(kw_only=False)
    ridge: float = 1.0
    eta: float | None = None
    width: Width | None = None
    threshold: float | None = None
    gain: float | None = None
    name: str = "DisKernelUCB"

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        as_name(self.name)
        settled_width(self.eta, self.width)
        object.__setattr__(self, "ridge", as_positive(self.ridge, "ridge"))
        if self.threshold is not None and self.gain is not None:
            raise ParameterError(
                f"threshold={short(self.threshold)} and gain={short(self.gain)} are both given; "
                "gain= is for the threshold T/(V·gain): give one of them"
            )
        if self.threshold is not None:
            object.__setattr__(self, "threshold", as_threshold(self.threshold))
        if self.gain is not None:
            object.__setattr__(self, "gain", as_positive(self.gain, "gain"))

    def trigger(self, *, agents: int, rounds: int, dim: int) -> float:
        """Return D for a network of V agents, T rounds and contexts of d numbers."""
        if self.threshold is not None:
            return self.threshold
        linear = 0.5 * dim * math.log1p(agents * rounds / (dim * self.ridge))
        return rounds / (agents * (linear if self.gain is None else self.gain))

    def player(self, simulation: Simulation) -> "DisKernelPlayer":
        """Make what takes the decisions of a simulation's agents."""
        return DisKernelPlayer(self, simulation)


@dataclass(frozen=True, eq=False)
class GivenPast:
    """The kernel between contexts given a common past: rows are x beside z(x), (n, d + p)."""

    kernel: Kernel
    dim: int

    def __call__(self, u: IntArray, X: Array, w: IntArray, Y: Array) -> Array:
        """Evaluate every pair: (n,), (n, d + p), (m,), (m, d + p) -> (n, m)."""
        d = self.dim
        K = self.kernel(X[:, :d], Y[:, :d])
        return K - X[:, d:] @ Y[:, d:].T if X.shape[1] > d else K

    def diagonal(self, u: IntArray, X: Array) -> Array:
        """Evaluate each with itself: (n,), (n, d + p) -> (n,)."""
        Z = X[:, self.dim :]
        return self.kernel.diagonal(X[:, : self.dim]) - np.einsum("ij,ij->i", Z, Z)


class DisKernelPlayer:
    """All agents: the posterior of what all know, and beside it each agent's own news.

    Attributes:
        synchronised: The rounds after which all have told the server.
    """

    name, refreshes = "server", 0

    def __init__(self, algorithm: DisKernelUCB, simulation: Simulation) -> None:
        V, T = simulation.agents, simulation.rounds
        threshold = algorithm.trigger(agents=V, rounds=T, dim=simulation.dim)
        self._shares = threshold < math.inf
        check_memory(algorithm.name, 4.0 * ((V * T) ** 2 if self._shares else V * T**2), simulation)
        self._algorithm = algorithm
        self._width = settled_width(algorithm.eta, algorithm.width)
        self._server = Server(agents=V, rounds=T, threshold=threshold)
        self._rngs = simulation.rngs()
        self._past: Posterior | None = None  # once d is known
        self._own: list[Posterior] = []
        # since the last synchronisation, round after round: x beside z(x) (V, d + p), y (V,)
        self._news: list[tuple[Array, Array]] = []
        self.synchronised: list[int] = []
        self.listens: BoolArray = np.eye(V, dtype=np.bool_) | self._shares

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        check_contexts(self._algorithm.kernel, self._algorithm.ridge, offer)
        dim = offer.contexts.shape[1]
        if self._past is None:
            self._past = Posterior(GivenPast(self._algorithm.kernel, dim), self._algorithm.ridge)
            self._forget_news(dim)
        asked = self._past.project(np.zeros_like(offer.agents), offer.contexts)
        known = self._past.believe(asked)
        X = np.hstack([offer.contexts, asked.Z.T])
        belief = self._with_news(offer, X, known)
        scores, _ = rated(
            UpperBound(),
            self._width,
            belief,
            ridge=self._algorithm.ridge,
            union_bound=np.full(len(X), len(self._rngs) if self._shares else 1),
        )
        rows = take(offer, scores, belief.count[offer.starts] > 0, self._rngs)
        residuals = offer.rewards[rows] - known.mean[rows]
        for v, own in enumerate(self._own):
            own.extend(np.zeros(1, dtype=np.int64), X[rows[v], None], residuals[v : v + 1])
        self._news.append((X[rows], offer.rewards[rows]))
        if self._server.is_due(t, np.array([own.logdet for own in self._own])):
            self._synchronise(t, dim)
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes between the agents and the server in round t."""
        return self._server.traffic(t)

    def similarity(self) -> Array:
        """Return all ones, for one function; the identity, where nobody ever shares: (V, V)."""
        return self.listens.astype(np.float64)

    def _with_news(self, offer: Round, X: Array, known: Belief) -> Belief:
        """Add each agent's own news to what all know of its offer."""
        if not self._news:
            return known
        own = Belief.nothing(len(X))
        for v, (start, size) in enumerate(zip(offer.starts, offer.sizes, strict=True)):
            rows = np.arange(start, start + size)
            self._own[v].predict(np.zeros(size, dtype=np.int64), X[rows]).put(own, rows)
        return Belief(
            known.mean + own.mean, own.variance, known.logdet + own.logdet, known.count + own.count
        )

    def _synchronise(self, t: int, dim: int) -> None:
        """Let everyone tell everyone what is new, through the server."""
        assert self._past is not None
        X = np.vstack([rows for rows, _ in self._news])
        y = np.concatenate([rewards for _, rewards in self._news])
        nobody = np.zeros(len(y), dtype=np.int64)
        # what is new was whitened by the past when it was offered
        done = np.ascontiguousarray(X[:, dim:].T)
        self._past.absorb(self._past.look_ahead(nobody, X[:, :dim], y, done))
        # each of them goes up once, and down to all agents but its own
        self._server.synchronise(t, messages=len(y) * len(self._rngs), numbers=dim + 1)
        self.synchronised.append(t)
        self._forget_news(dim)

    def _forget_news(self, dim: int) -> None:
        given = GivenPast(self._algorithm.kernel, dim)
        self._own = [Posterior(given, self._algorithm.ridge) for _ in self._rngs]
        self._news = []
