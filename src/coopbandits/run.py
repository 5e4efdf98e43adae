"""Let a policy play a problem, and keep the record."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    as_count,
    as_positive,
    as_seed,
    frozen,
    short,
)
from coopbandits.engines import ENGINES, Algorithm, Engine, continuum_engine, engine_for
from coopbandits.errors import ParameterError, ShapeError
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.problems.continuum import Continuum
from coopbandits.problems.problem import Problem, Round


@dataclass(frozen=True, eq=False)
class Run:
    """What happened: T rounds of V agents. All arrays are read-only.

    Attributes:
        regret: (T, V) expected reward lost in each round, against the best offered action.
        actions: (T, V) index of the chosen action in its decision set; −1 on a continuum.
        rewards: (T, V).
        messages: (T,) messages that crossed an edge in each round, copies included.
        bytes: (T,) their size.
        engine: What computed the decisions.
        listens: (V, V) whether v hears of what u does, [v, u].
        estimates: The rounds in which some agent's K_z changed, with what each agent took the
            others' news to be worth from then on, (V, V); `similarity(t)` reads it.
        contexts: (T, V, d) the chosen points, on a continuum; None on finite sets, where `actions`
            says it.
    """

    regret: Array
    actions: IntArray
    rewards: Array
    messages: IntArray
    bytes: IntArray
    engine: str
    listens: BoolArray
    estimates: tuple[tuple[int, Array], ...] = ()
    contexts: Array | None = None

    def __repr__(self) -> str:
        T, V = self.regret.shape
        return (
            f"Run({T} rounds of {V} agents, regret per agent {self.regret_per_agent[-1]:.4g}, "
            f"{self.messages.sum()} messages, engine {self.engine})"
        )

    @property
    def regret_per_agent(self) -> Array:
        """(T,) cumulative regret, averaged over agents: R̂(t) of the paper."""
        return np.cumsum(self.regret.mean(axis=1))

    def similarity(self, t: int) -> Array:
        """Return what agents took each other's news to be worth in round t: (V, V), read-only.

        [v, u] is v's own K_z(v, u), 0 where v does not learn from u. A learnt one is 1 for v itself
        and 0 for all others before v has heard anything; a frozen one is that between the latest
        message of each and v's own.
        """
        round_ = as_count(t, "t", most=len(self.regret))
        found = [K_z for since, K_z in self.estimates if since <= round_]
        return found[-1]


def play(
    problem: Problem | Continuum,
    policy: Policy | Algorithm,
    rounds: int,
    *,
    seed: int = 0,
    engine: str = "auto",
    memory_limit: float = 8e9,
    on_round: Callable[[int], None] | None = None,
) -> Run:
    """Run a policy on a problem.

    Args:
        problem: What the agents face.
        policy: How they decide; a policy, or an algorithm that is no row of four answers.
        rounds: T.
        seed: Of contexts, noise and the agents' own choices. Two policies with one seed face the
            same contexts and noise. The same seed gives the same run, to the bit.
        engine: "exact", "statistics" (linear kernels), "sparse" or "messages"; "auto" takes the one
            of "exact" and "statistics" that needs fewer operations and fits into memory, and
            "sparse" where neither fits, or where the policy has features. A continuum is played by
            "messages"; give the policy features there, if memory is to stay the same.
        memory_limit: Bytes that posteriors may take; a run that needs more is refused before it
            starts.
        on_round: Called after each round t = 1 … T, for a progress display.
    """
    if not isinstance(problem, Problem | Continuum):
        raise ParameterError(f"{short(problem)} is no problem; coopbandits.problems makes some")
    given: object = policy
    if isinstance(given, type) or not isinstance(given, Policy | Algorithm):
        raise ParameterError(f"{short(policy)} is no policy; coopbandits.LinUCB() makes one")
    T, seed = as_count(rounds, "rounds"), as_seed(seed)
    if problem.horizon is not None and problem.horizon < T:
        raise ParameterError(f"rounds={T}, but the problem has only {problem.horizon}")
    if engine not in ("auto", *ENGINES):
        raise ParameterError(
            f"engine={short(engine)} is not known; expected 'auto', {', '.join(map(repr, ENGINES))}"
        )
    if on_round is not None and not callable(on_round):
        raise ParameterError(f"on_round must be a function of the round, got {short(on_round)}")
    limit = _as_limit(memory_limit)
    outcomes: Iterator[_Outcome]
    if isinstance(problem, Continuum):
        player, outcomes = _on_continuum(problem, policy, T, seed, engine)
    else:
        player, outcomes = _on_finite_sets(problem, policy, T, seed, engine, limit)
    shape = (T, len(problem.network))
    regret, rewards = np.empty(shape), np.empty(shape)
    actions = np.empty(shape, dtype=np.int64)
    contexts: list[Array] = []
    traffic = np.empty((T, 2), dtype=np.int64)
    estimates: list[tuple[int, Array]] = []
    refreshes = 0
    for t, outcome in enumerate(outcomes, start=1):
        regret[t - 1] = outcome.best - outcome.expected
        actions[t - 1], rewards[t - 1] = outcome.actions, outcome.rewards
        contexts += [] if outcome.contexts is None else [outcome.contexts]
        traffic[t - 1] = player.traffic(t)
        if t == 1 or player.refreshes > refreshes:
            refreshes = player.refreshes
            estimates.append((t, frozen(player.similarity())))
        if on_round is not None:
            on_round(t)
    messages, sizes = traffic.T.copy()
    return Run(
        regret=frozen(regret),
        actions=frozen(actions),
        rewards=frozen(rewards),
        messages=frozen(messages),
        bytes=frozen(sizes),
        engine=player.name,
        listens=frozen(player.listens),
        estimates=tuple(estimates),
        contexts=frozen(np.array(contexts)) if contexts else None,
    )


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What a round brought: each agent's best, expected and noisy reward and its action, all (V,).

    On a continuum also its context: (V, d).
    """

    best: Array
    expected: Array
    rewards: Array
    actions: IntArray
    contexts: Array | None = None


def _on_finite_sets(
    problem: Problem,
    policy: Policy | Algorithm,
    rounds: int,
    seed: int,
    engine: str,
    memory_limit: float,
) -> tuple[Engine, Iterator[_Outcome]]:
    """Make what takes the decisions, and what it does round by round."""
    first = problem.round(1, seed)
    agents, dim = len(problem.network), first.contexts.shape[1]
    player = _player(problem.network, policy, first, rounds, seed, engine, memory_limit)

    def outcomes() -> Iterator[_Outcome]:
        for t in range(1, rounds + 1):
            offer = first if t == 1 else problem.round(t, seed)
            if (len(offer.sizes), offer.contexts.shape[1]) != (agents, dim):
                raise ShapeError(
                    f"round {t} has contexts of {offer.contexts.shape[1]} numbers for "
                    f"{len(offer.sizes)} agents; expected {dim} numbers for {agents} agents"
                )
            rows = player.play(t, offer)
            best = np.maximum.reduceat(offer.expected, offer.starts)
            yield _Outcome(best, offer.expected[rows], offer.rewards[rows], rows - offer.starts)

    return player, outcomes()


def _on_continuum(
    problem: Continuum, policy: Policy | Algorithm, rounds: int, seed: int, engine: str
) -> tuple[Engine, Iterator[_Outcome]]:
    """Make the same for a problem on continua."""
    player = continuum_engine(engine, policy, problem.network, seed=seed)

    def outcomes() -> Iterator[_Outcome]:
        for t in range(1, rounds + 1):
            offer = problem.offer(t, seed)
            taken = player.play_continuum(t, offer)
            none = np.full(len(offer.sets), -1)
            yield _Outcome(offer.best, taken.expected, taken.rewards, none, taken.contexts)

    return player, outcomes()


def _player(
    network: Network,
    policy: Policy | Algorithm,
    first: Round,
    rounds: int,
    seed: int,
    engine: str,
    memory_limit: float,
) -> Engine:
    """Make what takes the decisions."""
    if not isinstance(policy, Policy):
        if engine != "auto":
            raise ParameterError(
                f"engine={engine!r}, but {policy.name} computes its decisions itself; take "
                "engine='auto'"
            )
        return policy.player(
            network, contexts=first.contexts, rounds=rounds, seed=seed, memory_limit=memory_limit
        )
    return engine_for(
        engine,
        policy,
        network,
        contexts=first.contexts,
        rounds=rounds,
        seed=seed,
        memory_limit=memory_limit,
    )


def _as_limit(memory_limit: object) -> float:
    return math.inf if memory_limit == math.inf else as_positive(memory_limit, "memory_limit")
