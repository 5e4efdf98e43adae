"""What did a run observe, and how much did that tell each group of agents?

A run keeps which actions were chosen, and its problem and seed give the contexts back; of a
continuum it keeps the contexts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coopbandits.arrays import Array, IntArray, as_choice, as_fixed_seed, frozen, short
from coopbandits.decision_sets import DecisionSet
from coopbandits.errors import ParameterError
from coopbandits.gp.compositions import JointKernel
from coopbandits.network import Network
from coopbandits.policy import Policy, plan
from coopbandits.problems.continuum import Continuum
from coopbandits.problems.problem import Problem
from coopbandits.run import Run
from coopbandits.theory.information import running_logdet

# A dense Gram matrix of this many observations takes 3 GB.
MOST_OBSERVATIONS = 20_000


@dataclass(frozen=True, eq=False)
class Observed:
    """The contexts that a run's agents chose, and the kernel that its policy measures them by.

    Attributes:
        contexts: (T, V, d).
        kernel: K.
        ridge: λ.
        largest: κ, the largest K(x̃, x̃) of all that was offered.
        one_set: Whether all agents had the same decision set in all rounds.
    """

    contexts: Array
    kernel: JointKernel
    ridge: float
    largest: float
    one_set: bool

    def gram(self, agents: Sequence[int] | IntArray) -> Array:
        """Return the Gram matrix of some agents' observations, round by round: (nT, nT)."""
        group = np.asarray(agents, dtype=np.int64)
        T, _, d = self.contexts.shape
        if T * len(group) > MOST_OBSERVATIONS:
            raise ParameterError(
                f"{len(group)} agents made {T * len(group)} observations in {T} rounds, too many "
                f"for one Gram matrix; expected at most {MOST_OBSERVATIONS}; take fewer rounds"
            )
        X, who = self.contexts[:, group].reshape(-1, d), np.tile(group, T)
        return self.kernel(who, X, who, X)

    def logdets(self, agents: Sequence[int] | IntArray, *, copies: int = 1) -> Array:
        """Return log det(I + K/λ) of some agents' observations up to round 1 … T: (T,).

        With `copies`, as if each had been made so many times.
        """
        each = running_logdet(copies * self.gram(agents), self.ridge)
        return each[len(agents) - 1 :: len(agents)]


def check_run(problem: Any, policy: Any, run: Any) -> None:
    """Check that a problem, a policy and a run are such, and in this order."""
    expected = {
        "problem": (problem, Problem | Continuum, "a problem, such as coopbandits.problems makes"),
        "policy": (policy, Policy, "a coopbandits.Policy of four answers"),
        "run": (run, Run, "the coopbandits.Run that play(problem, policy, …) returned"),
    }
    for name, (given, kind, what) in expected.items():
        if not isinstance(given, kind) or isinstance(given, type):
            raise ParameterError(f"{name}={short(given)}; expected {what}")


def observed(problem: Problem | Continuum, policy: Policy, run: Run, *, seed: int = 0) -> Observed:
    """Give the contexts of a run back.

    Args:
        problem: What the run played.
        policy: What played it; its K_z must be given, not learnt.
        run: What `play` returned.
        seed: What `play` was given.
    """
    check_run(problem, policy, run)
    worked_out = plan(policy, problem.network)
    if not isinstance(worked_out.kernel, JointKernel) or worked_out.estimator is not None:
        raise ParameterError(
            f"{short(policy.similarity)} learns K_z, so that K changes from round to round; "
            "the theory is for a K_z that is given, such as problem.similarity"
        )
    if policy.forget is not None or policy.scaling is not None or policy.scale != 1:
        raise ParameterError(
            "the theory is for evidence that does not fade, in the units that the policy computes "
            "in; expected a policy without forget=, scale= and scaling="
        )
    T, V = run.actions.shape
    if len(problem.network) != V:
        raise ParameterError(
            f"the run is of {V} agents, the problem of {len(problem.network)}; give the problem "
            "that was played"
        )
    if problem.horizon is not None and problem.horizon < T:
        raise ParameterError(
            f"the run is of {T} rounds, the problem of {problem.horizon}; give the problem that "
            "was played"
        )
    away = run.away if run.contexts is None else np.isnan(run.contexts)
    if away.any():
        raise ParameterError("in some rounds an agent was away; the theory is for agents that stay")
    kernel, seed = worked_out.kernel, as_fixed_seed(seed, "give the seed that play was given")
    if isinstance(problem, Continuum):
        return _on_continuum(problem, kernel, policy.ridge, run, seed)
    chosen, largest, one_set = [], 0.0, True
    first: Array | None = None
    for t in range(1, T + 1):
        offer = problem.round(t, seed)
        rows = offer.starts + run.actions[t - 1]
        if (run.actions[t - 1] >= offer.sizes).any() or not np.array_equal(
            offer.rewards[rows], run.rewards[t - 1]
        ):
            raise ParameterError(
                f"the rewards of round {t} are not the run's; give the problem and the seed that "
                "were played"
            )
        first = offer.contexts[offer.agents == 0] if first is None else first
        one_set = one_set and np.array_equal(offer.contexts, np.tile(first, (V, 1)))
        largest = max(largest, float(kernel.diagonal(offer.agents, offer.contexts).max()))
        chosen.append(offer.contexts[rows])
    return Observed(frozen(np.array(chosen)), kernel, policy.ridge, largest, one_set)


def _on_continuum(
    problem: Continuum, kernel: JointKernel, ridge: float, run: Run, seed: int
) -> Observed:
    """Check the contexts that a run on continua kept, and bound K(x̃, x̃) on the sets."""
    if run.contexts is None:
        raise ParameterError("the run is of finite decision sets; give the problem that was played")
    largest, sets = 0.0, set[DecisionSet]()
    for t, points in enumerate(run.contexts, start=1):
        offer = problem.offer(t, seed)
        pulled = [offer.pull(v, x)[1] for v, x in enumerate(points)]
        if not np.array_equal(pulled, run.rewards[t - 1]):
            raise ParameterError(
                f"the rewards of round {t} are not the run's; give the problem and the seed that "
                "were played"
            )
        # no built-in kernel is larger on a set than at the point furthest from 0 of its box
        furthest = np.array([np.maximum(np.abs(s.low), np.abs(s.high)) for s in offer.sets])
        largest = max(largest, float(kernel.diagonal(np.arange(len(points)), furthest).max()))
        sets |= set(offer.sets)
    return Observed(run.contexts, kernel, ridge, largest, len(sets) == 1)


@dataclass(frozen=True, eq=False)
class RunGains:
    """How much a run told each group of agents.

    Attributes:
        groups: The agents of each group.
        gains: (T, G) the information gain ½ log det(I + K/λ) of each group's observations up to
            each round.

    Example:
        >>> problem, policy = cb.problems.clustered_linear(cb.Network.path(4)), cb.OFUL()
        >>> run = cb.play(problem, policy, rounds=5)
        >>> cb.theory.run_gains(problem, policy, run).groups
        ((0, 1), (2, 3))
    """

    groups: tuple[tuple[int, ...], ...]
    gains: Array


def run_gains(
    problem: Problem | Continuum,
    policy: Policy,
    run: Run,
    *,
    seed: int = 0,
    of: str = "cliques",
) -> RunGains:
    """Return the information gain of a run, group by group.

    Args:
        problem: What the run played.
        policy: What played it: its kernel, K_z, λ and γ are used.
        run: What `play` returned.
        seed: What `play` was given.
        of: "agents", "cliques" of the clique cover of G_γ, "neighbourhoods" N_γ(v), or "all".

    Example:
        >>> problem, policy = cb.problems.clustered_linear(cb.Network.path(4)), cb.OFUL()
        >>> run = cb.play(problem, policy, rounds=5)
        >>> gains = cb.theory.run_gains(problem, policy, run, of="agents").gains
        >>> gains.shape, bool((np.diff(gains, axis=0) >= 0).all())
        ((5, 4), True)
    """
    of = as_choice(of, "of", ("agents", "cliques", "neighbourhoods", "all"))
    found = observed(problem, policy, run, seed=seed)
    groups = _groups(of, problem.network, policy.ttl)
    gains = np.column_stack([0.5 * found.logdets(group) for group in groups])
    return RunGains(groups, frozen(gains))


def _groups(of: str, network: Network, ttl: int) -> tuple[tuple[int, ...], ...]:
    everyone = range(len(network))
    if of == "agents":
        return tuple((v,) for v in everyone)
    if of == "cliques":
        return network.clique_cover(ttl).cliques
    if of == "neighbourhoods":
        return tuple(tuple(network.neighbourhood(v, ttl).tolist()) for v in everyone)
    return (tuple(everyone),)
