"""Can a log answer the question? What it must hold, and a refusal for each thing missing."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coopbandits.act import Explore
from coopbandits.agent import Agent
from coopbandits.arrays import Array, as_flag, as_floats, as_number, short
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab.logs.log import Log, Logged

Target = Callable[[Array, int], Any] | Sequence[Agent]

# Below this many decisions' worth of data no interval means anything.
LEAST = 30


def known_propensities(log: Log, *, uniform: bool) -> Array:
    """Return the probability of each action that was taken: (N,).

    Args:
        log: Any log.
        uniform: Whether the user vouches that every offered action was as likely: 1/K.
    """
    as_flag(uniform, "uniform")
    if log.sizes.max() == 1:
        raise InputError(
            "each decision of the log offers one action only, so that every policy does the same; "
            "log all that was offered, or name the column of actions as action= (--action)"
        )
    given = log.propensities
    if uniform:
        even = 1.0 / log.sizes
        if given is not None and np.abs(given - even).max() > 1e-4:
            where = int(np.argmax(np.abs(given - even)))
            raise ParameterError(
                f"uniform=True, but the log has propensity {given[where]:g} where "
                f"{log.sizes[where]} actions were offered ({place(log, log.decisions[where])}); "
                "leave uniform=True out, and the log's own propensities are used"
            )
        return even
    if given is None:
        raise InputError(
            "the log does not say with which probability its actions were taken: no line has "
            "'propensity' or 'propensities'. Without them nothing can be said about another "
            "policy. Log them; or, if every offered action was as likely, pass uniform=True "
            "(--uniform)"
        )
    return given


def distribution(one: Logged, *, uniform: bool) -> Array | None:
    """Return the probabilities of all offered actions, (K,), None if they are not known."""
    K = len(one.contexts)
    return np.full(K, 1.0 / K) if uniform else one.propensities


def floor_of(log: Log, given: object, *, uniform: bool) -> float:
    """Return a number above 0 that no propensity of an action that logging takes is below.

    Args:
        log: A log that has passed `known_propensities`.
        given: What the user knows it to be; None for the least of the log.
        uniform: As there.
    """
    p = known_propensities(log, uniform=uniform)
    least = float(p.min())
    if not uniform:
        for one in log.decisions:
            if one.propensities is not None:
                least = min(least, float(one.propensities[one.propensities > 0].min()))
    if given is None:
        return least
    floor = as_number(given, "floor")
    if not 0 < floor <= least * (1 + 1e-9):
        raise ParameterError(
            f"floor must be above 0 and at most the log's least propensity {least:g}, got {floor}"
        )
    return floor


def probabilities(log: Log, target: Target, *, uniform: bool) -> list[Array]:
    """Return what the target would do at each decision: N arrays of (K,), each summing to 1.

    An agent that is given as a target does as it would now, and learns nothing on the way.
    """
    choose = target if callable(target) else _as_agents(target, log)
    found = []
    for one in log.decisions:
        p = as_floats(
            choose(one.contexts, int(one.agent)), f"the target's answer {place(log, one)}"
        )
        if p.shape != (len(one.contexts),) or (p < 0).any() or abs(p.sum() - 1) > 1e-6:
            raise ParameterError(
                f"the target must answer {len(one.contexts)} probabilities that sum to 1 "
                f"({place(log, one)}), got {short(p.tolist())}"
            )
        found.append(p / p.sum())
    check_support(log, found, uniform=uniform)
    return found


def check_support(log: Log, pi: Sequence[Array], *, uniform: bool) -> None:
    """Refuse what a target would do where logging never does it: (K,) of each decision."""
    for one, p in zip(log.decisions, pi, strict=True):
        logging = distribution(one, uniform=uniform)
        if logging is not None and ((logging == 0) & (p > 0)).any():
            refuse_action(log, one, int(np.argmax((logging == 0) & (p > 0))))


def refuse_action(log: Log, one: Logged, action: int) -> None:
    """Refuse a policy that takes an action that logging never takes."""
    raise InputError(
        f"the policy would take action {action} where the log gives it probability 0 "
        f"({place(log, one)}), so the log cannot tell what it is worth; log with a probability "
        "above 0 for every action, or ask about a policy that leaves it alone"
    )


def place(log: Log, one: Logged) -> str:
    """Say where a decision stands in a log."""
    return f"agent {log.called(int(one.agent))}, round {one.round}"


def _as_agents(target: Any, log: Log) -> Callable[[Array, int], Array]:
    agents = list(target) if isinstance(target, Sequence) else []
    if len(agents) != log.agents or not all(isinstance(agent, Agent) for agent in agents):
        raise ParameterError(
            "the target must be a function (contexts, agent) -> probabilities, or one trained "
            f"agent for each of the log's {log.agents}, got {short(target)}"
        )
    for v, agent in enumerate(agents):
        if agent.agent != v:
            raise ParameterError(
                f"the target's agents must be in order 0 … {log.agents - 1}, got agent "
                f"{agent.agent} at {v}"
            )
        if isinstance(agent.policy.act, Explore):
            raise ParameterError(
                f"agent {v} explores, act={short(agent.policy.act)}, so what it would do is left "
                "to chance; give agents of the policy without it, or a function (contexts, agent) "
                "-> probabilities, (1 - share)·[it is the choice] + share/K"
            )
        if agent.known == 0:
            raise ParameterError(
                f"agent {v} has learnt nothing, so it would choose at random; let it `observe` "
                "history first, or give a function (contexts, agent) -> probabilities"
            )

    def one_hot(contexts: Array, v: int) -> Array:
        p = np.zeros(len(contexts))
        p[agents[v].preview(contexts)] = 1.0
        return p

    return one_hot
