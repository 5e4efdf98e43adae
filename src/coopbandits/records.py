"""The record of one decision: what was offered, taken and earned, by whom and how likely it was.

A log of decisions is what values of other policies are estimated from, and what an audit asks for.
Here a record is a plain value, checked when it is made; `to_dict` and `from_dict` turn it into
numbers, texts and lists, as JSON has them, and back to the bit. Files are the lab's (docs/logs.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coopbandits.agent import Agent, Decision
from coopbandits.arrays import (
    Array,
    as_contexts,
    as_count,
    as_floats,
    as_number,
    as_reward,
    frozen,
    is_whole,
    short,
)
from coopbandits.errors import InputError, ParameterError, ShapeError
from coopbandits.network.names import as_name
from coopbandits.policy import Policy
from coopbandits.problems.problem import Problem
from coopbandits.run import AWAY, Run

__all__ = ["SCHEMA", "Logged", "of_run"]

# The version of the fields below; what has none is of version 1.
SCHEMA = 1

_NEEDED = ("round", "agent", "contexts", "action", "reward")
_OPTIONAL = ("propensity", "propensities", "policy")
# propensities that were rounded to six digits still sum to 1 within this
_SLACK = 1e-4


@dataclass(frozen=True, eq=False)
class Logged:
    """One decision: what was offered, taken and earned.

    Attributes:
        round: The number of the decision among its agent's, from 1; gaps are allowed.
        agent: Whose decision it was: its number, or its name until it is part of a log.
        contexts: (K, d), what was offered.
        action: Which of them was taken.
        reward: What that brought.
        propensity: The probability with which it was taken; None if that is not known.
        propensities: (K,) those of all offered actions; None if they are not known.
        policy: The fingerprint of the policy that decided (`Policy.fingerprint`), or another text
            that tells it from others; None if that is not known.

    Example:
        >>> agent = cb.LinUCB().exploring(0.1).agent(0, cb.Network.path(2))
        >>> decision = agent.decide(np.eye(2))
        >>> line = Logged.of(agent, decision, np.eye(2), reward=1.0)
        >>> line.propensity, line.policy == agent.policy.fingerprint
        (0.5, True)
        >>> Logged.from_dict(line.to_dict()).action == decision.index
        True
    """

    round: int
    agent: int | str
    contexts: Array
    action: int
    reward: float
    propensity: float | None = None
    propensities: Array | None = None
    policy: str | None = None

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "round", as_count(self.round, "round", most=2**62))
        named = isinstance(self.agent, str)
        agent = as_name(self.agent) if named else as_count(self.agent, "agent", least=0)
        settle(self, "agent", agent)
        settle(self, "contexts", frozen(as_contexts(self.contexts, "contexts")))
        K = len(self.contexts)
        if not is_whole(self.action) or not 0 <= self.action < K:
            raise ParameterError(
                f"action must be the index of an offered action, 0 … {K - 1}, got "
                f"{short(self.action)}"
            )
        settle(self, "action", int(self.action))
        settle(self, "reward", as_reward(self.reward, "reward"))
        if self.propensities is not None:
            self._settle_all(K)
        if self.propensity is not None:
            given = as_number(self.propensity, "propensity")
            if not 0 < given <= 1:
                raise ParameterError(
                    f"propensity must be a probability above 0 and at most 1, got {given}: the "
                    "action was taken, so its probability cannot have been 0"
                )
            settle(self, "propensity", given)
        policy: object = self.policy
        if policy is not None and (not isinstance(policy, str) or not policy):
            raise ParameterError(
                f"policy must be a text, such as policy.fingerprint, got {short(policy)}"
            )

    @classmethod
    def of(cls, agent: Agent, decision: Decision, contexts: object, reward: float) -> "Logged":
        """Make the record of a decision of an agent.

        Args:
            agent: Who took it; by its name, where its network has names.
            decision: What it decided.
            contexts: (K, d) what it was offered.
            reward: What it brought.
        """
        kinds = ((agent, Agent), (decision, Decision))
        if not all(isinstance(given, kind) for given, kind in kinds):
            raise ParameterError(
                f"expected an agent and what its decide returned, got {short(agent)} and "
                f"{short(decision)}"
            )
        if decision.index is None:
            raise ParameterError(
                "the decision is a point of a continuum, which has no propensity; a record is of a "
                "choice among finitely many actions"
            )
        offered = as_contexts(contexts, "contexts")
        if decision.index >= len(offered) or not np.array_equal(
            offered[decision.index], decision.context
        ):
            raise ParameterError(
                f"action {decision.index} of these {len(offered)} contexts is not what decision "
                f"{decision.id} took; expected the contexts that it was offered"
            )
        network = agent.network
        return cls(
            round=decision.id,
            agent=agent.name if network.is_named else agent.agent,
            contexts=offered,
            action=decision.index,
            reward=reward,
            propensity=decision.propensity,
            policy=agent.policy.fingerprint,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as numbers, texts and lists; what is not known is left out."""
        fields: dict[str, Any] = {
            "schema": SCHEMA,
            "round": self.round,
            "agent": self.agent,
            "contexts": self.contexts.tolist(),
            "action": self.action,
            "reward": self.reward,
        }
        if self.propensities is not None:
            fields["propensities"] = self.propensities.tolist()
        elif self.propensity is not None:
            fields["propensity"] = self.propensity
        if self.policy is not None:
            fields["policy"] = self.policy
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Logged":
        """Make a record of what `to_dict` returned, or of fields of one's own; others are ignored.

        Args:
            fields: With at least round, agent, contexts, action and reward.
        """
        if not isinstance(fields, Mapping):
            raise InputError(
                f"expected a JSON object such as {{'round': 1, …}}, got {short(fields)}"
            )
        schema = fields.get("schema", SCHEMA)
        if not is_whole(schema) or schema != SCHEMA:
            raise InputError(
                f"schema {short(schema)} is not known; this version of coopbandits reads {SCHEMA}"
            )
        missing = [name for name in _NEEDED if name not in fields]
        if missing:
            raise InputError(
                f"{missing[0]!r} is missing; a decision needs {', '.join(_NEEDED)}, and has "
                f"{', '.join(map(str, fields)) or 'nothing'}"
            )
        found: dict[str, Any] = {name: fields.get(name) for name in (*_NEEDED, *_OPTIONAL)}
        return cls(**found)

    def of_agent(self, agent: int | str) -> "Logged":
        """Return the same decision of the agent of a number, or a name."""
        known = None if self.propensities is not None else self.propensity
        return replace(self, agent=agent, propensity=known)

    def _settle_all(self, K: int) -> None:
        if self.propensity is not None:
            raise ParameterError(
                "propensity and propensities are both given; give propensities alone, of which "
                "one is the taken action's"
            )
        p = as_floats(self.propensities, "propensities")
        if p.shape != (K,):
            raise ShapeError(
                f"propensities have shape {p.shape}; expected ({K},), one for each offered action"
            )
        if (p < 0).any() or abs(p.sum() - 1) > _SLACK:
            raise ParameterError(
                f"propensities must be probabilities that sum to 1, got {short(p.tolist())}, "
                f"which sum to {p.sum():g}"
            )
        object.__setattr__(self, "propensities", frozen(p))
        object.__setattr__(self, "propensity", float(p[self.action]))


def of_run(
    run: Run, problem: Problem, *, policy: Policy | None = None, seed: int = 0
) -> tuple[Logged, ...]:
    """Make the records of all decisions of a run, round by round.

    Agents that were away took none. Where some propensity is not known, as that of a single
    posterior draw, no record has one: a log has them of all its decisions, or of none.

    Args:
        run: What `play` returned.
        problem: What was played, of finite decision sets.
        policy: Who decided, for its fingerprint.
        seed: Of the run.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.path(3), actions=4)
        >>> policy = cb.LinUCB().exploring(0.2)
        >>> run = cb.play(problem, policy, rounds=5, seed=1)
        >>> lines = of_run(run, problem, policy=policy, seed=1)
        >>> len(lines), min(line.propensity for line in lines) >= 0.2 / 4
        (15, True)
    """
    kinds = ((run, Run), (problem, Problem), (policy, Policy | None))
    if not all(isinstance(given, kind) for given, kind in kinds):
        raise ParameterError(
            "expected a run of finite decision sets, its problem and its policy or None, got "
            f"{short(run)}, {short(problem)} and {short(policy)}"
        )
    network, T = problem.network, len(run.actions)
    known = bool(np.isfinite(run.propensities[run.actions != AWAY]).all())
    fingerprint = None if policy is None else policy.fingerprint
    records = []
    for t in range(1, T + 1):
        offer = problem.round(t, seed)
        for v in np.flatnonzero(run.actions[t - 1] != AWAY).tolist():
            start, size = int(offer.starts[v]), int(offer.sizes[v])
            action, reward = int(run.actions[t - 1, v]), float(run.rewards[t - 1, v])
            if not 0 <= action < size or offer.rewards[start + action] != reward:
                raise ParameterError(
                    f"the run took action {action} of agent {v} in round {t} for {reward:g}, which "
                    "this problem does not have; expected the problem and the seed that were played"
                )
            records.append(
                Logged(
                    round=t,
                    agent=network.names[v] if network.is_named else v,
                    contexts=offer.contexts[start : start + size],
                    action=action,
                    reward=reward,
                    propensity=float(run.propensities[t - 1, v]) if known else None,
                    policy=fingerprint,
                )
            )
    return tuple(records)
