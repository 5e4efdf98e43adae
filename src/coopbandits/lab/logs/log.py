"""What did a deployed policy see? Decisions, each with the reward of what was chosen alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coopbandits import records
from coopbandits.arrays import Array, IntArray, as_count, short
from coopbandits.errors import InputError, NetworkError, ParameterError, ShapeError
from coopbandits.lab.logs.columns import Columns
from coopbandits.lab.logs.frame import Frame, as_frame
from coopbandits.lab.logs.from_table import decisions_of
from coopbandits.lab.logs.naming import naming_of
from coopbandits.network.names import as_names
from coopbandits.policy import Policy
from coopbandits.problems.problem import Problem
from coopbandits.records import Logged
from coopbandits.run import Run
from coopbandits.scaling import Scaling

__all__ = ["Log", "Logged", "as_log"]


@dataclass(frozen=True, eq=False)
class Log:
    """Decisions of V agents, ordered by round and then agent.

    Made of a table by `Log.from_frame`, of decisions by `Log.of`, of a file by
    `coopbandits.lab.read_log` and `coopbandits.lab.read_table`.

    Attributes:
        decisions: Each with the number of its agent.
        agents: V.
        names: What agents 0 … V−1 are called; None where they have numbers only.
        columns: What the numbers of contexts stand for; None where that is not known.

    Example:
        >>> table = {
        ...     "shop": ["Bern", "Oslo", "Bern", "Oslo"],
        ...     "product": ["tea", "tea", "coffee", "tea"],
        ...     "hour": [9, 11, 15, 16],
        ...     "sold": [1, 0, 0, 1],
        ... }
        >>> cb.Log.from_frame(
        ...     table, agent="shop", action="product", features=["hour"], reward="sold"
        ... )
        Log(4 decisions of 2 agents, 3 numbers, no propensities)
    """

    decisions: tuple[Logged, ...]
    agents: int
    names: tuple[str, ...] | None = None
    columns: Columns | None = None

    def __post_init__(self) -> None:
        if not self.decisions or not all(isinstance(one, Logged) for one in self.decisions):
            raise ParameterError(
                f"a log needs at least one decision, each a Logged, got {short(self.decisions)}"
            )
        ordered = tuple(sorted(self.decisions, key=lambda one: (one.round, one.agent)))
        object.__setattr__(self, "decisions", ordered)
        for index, one in enumerate(ordered):
            check_against(one, ordered[0], self.agents)
            before = ordered[index - 1]
            if index and (one.round, one.agent) == (before.round, before.agent):
                raise InputError(twice(one))

    @classmethod
    def of(
        cls,
        decisions: Iterable[Logged],
        *,
        agents: int | None = None,
        names: Sequence[str] | None = None,
    ) -> "Log":
        """Make a log of decisions in any order.

        Args:
            decisions: At least one; a round of an agent at most once.
            agents: V; the highest number of an agent plus 1, if not given.
            names: What agents 0 … V−1 are called. If not given, agents that decisions call by name
                are numbered in the order of their names.
        """
        listed = tuple(decisions)
        named = [isinstance(getattr(one, "agent", 0), str) for one in listed]
        if any(named):
            return cls._named(listed, all(named), names)
        called = None if names is None else as_names(names)
        if called is not None and agents is None:
            agents = len(called)
        most = max((getattr(one, "agent", 0) for one in listed), default=0)
        return cls(listed, most + 1 if agents is None else as_count(agents, "agents"), called)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        agent: str,
        reward: str,
        features: Sequence[str] = (),
        action: str | None = None,
        chosen: str | None = None,
        decision: str | None = None,
        propensity: str | None = None,
        time: str | None = None,
        action_features: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
        missing: str = "refuse",
        catalogue: str = "all",
        code_action: bool = True,
    ) -> "Log":
        """Make a log of a table of pandas, polars, Arrow, or of a dict of lists.

        A row is a decision, and any action of the table could have been taken; or, with `chosen=`,
        a row is an offered action. docs/logs.md says what can be asked of each.

        Args:
            frame: The table; `coopbandits.lab.read_table` reads CSV and Parquet files.
            agent: The column that says whose decision it was, by name or number.
            reward: What the action that was taken brought: numbers, or True and False.
            features: What a context holds: numbers, True and False, or texts, which become a
                number of 0 or 1 for each value.
            action: What was taken, by its label; beside `features` a context then has a number of
                0 or 1 for each label.
            chosen: In a table with a row for each offered action, whether it was the one taken.
            decision: In such a table, which rows are one decision; agent and time, if not given.
            propensity: With which probability the action was taken; in a table of offered actions
                either those of all, or those that were taken.
            time: What orders an agent's decisions: times, numbers, or texts such as
                "2026-01-31 10:22"; the order of rows, if not given.
            action_features: Of a table with a row for each decision: which features belong to the
                action. Those with one value for each action, if not given.
            categorical: Features that are labels though they are numbers, such as a region's.
            missing: What becomes of missing values: "refuse", "drop" (their decisions are left
                out), or "indicate" (for features: the median, and a number that is 1 where it was
                missing; a category of its own for texts).
            catalogue: Of a table with a row for each decision: "all" actions of the table could be
                taken, or those that the same "agent" took at some time.
            code_action: Whether contexts tell actions apart by their labels; without it only by
                features that belong to the action.
        """
        naming = naming_of(
            agent=agent,
            reward=reward,
            features=features,
            action=action,
            chosen=chosen,
            decision=decision,
            propensity=propensity,
            time=time,
            action_features=action_features,
            categorical=categorical,
            missing=missing,
            catalogue=catalogue,
            code_action=code_action,
        )
        table = frame if isinstance(frame, Frame) else as_frame(frame, naming.columns)
        decisions, columns, labels = decisions_of(table, naming)
        names = None if labels == list(range(len(labels))) else as_names(labels)
        return cls(tuple(decisions), len(labels), names, columns)

    @classmethod
    def of_run(
        cls, run: Run, problem: Problem, *, policy: Policy | None = None, seed: int = 0
    ) -> "Log":
        """Make the log of a run: its decisions as `coopbandits.records.of_run` has them."""
        decisions = records.of_run(run, problem, policy=policy, seed=seed)
        network = problem.network
        if network.is_named:
            return cls.of(decisions, names=network.names)
        return cls.of(decisions, agents=len(network))

    @classmethod
    def _named(
        cls, decisions: Sequence[Logged], all_named: bool, names: Sequence[str] | None
    ) -> "Log":
        """Number agents that are given by name: as `names` has them, else in order."""
        if not all_named:
            raise InputError(
                "some decisions name their agent by text and some by number; expected one of both "
                "for all decisions"
            )
        called = as_names(sorted({str(one.agent) for one in decisions}) if names is None else names)
        places = {name: number for number, name in enumerate(called)}
        stranger = next((one.agent for one in decisions if one.agent not in places), None)
        if stranger is not None:
            raise NetworkError(
                f"agent {stranger!r} is not among the names {short(list(called))}; expected a "
                "decision's agent to be one of them"
            )
        numbered = [one.of_agent(places[str(one.agent)]) for one in decisions]
        return cls(tuple(numbered), len(called), called)

    def __len__(self) -> int:
        return len(self.decisions)

    def __repr__(self) -> str:
        known = "no propensities"
        if self.decisions[0].propensities is not None:
            known = "all propensities"
        elif self.decisions[0].propensity is not None:
            known = "propensities of what was taken"
        return f"Log({len(self)} decisions of {self.agents} agents, {self.dim} numbers, {known})"

    @property
    def dim(self) -> int:
        """d."""
        return self.decisions[0].contexts.shape[1]

    @property
    def owners(self) -> IntArray:
        """(N,) whose decision each is."""
        return np.array([one.agent for one in self.decisions], dtype=np.int64)

    @property
    def rounds(self) -> IntArray:
        """(N,) the round of each decision."""
        return np.array([one.round for one in self.decisions])

    @property
    def rewards(self) -> Array:
        """(N,) what each decision brought."""
        return np.array([one.reward for one in self.decisions])

    @property
    def taken(self) -> Array:
        """(N, d) the context of each action that was taken."""
        return np.array([one.contexts[one.action] for one in self.decisions])

    @property
    def sizes(self) -> IntArray:
        """(N,) how many actions were offered."""
        return np.array([len(one.contexts) for one in self.decisions])

    @property
    def propensities(self) -> Array | None:
        """(N,) the probability of each action that was taken; None if they are not known."""
        known = [one.propensity for one in self.decisions if one.propensity is not None]
        return np.array(known) if known else None

    @property
    def policies(self) -> tuple[str, ...]:
        """The fingerprints of the policies that decided, each once, as far as they are known."""
        return tuple(dict.fromkeys(one.policy for one in self.decisions if one.policy is not None))

    def only(self, rows: IntArray) -> "Log":
        """Return some decisions of the log, by their places in it."""
        return replace(self, decisions=tuple(self.decisions[row] for row in rows.tolist()))

    def before(self, round_: int) -> "Log":
        """Return the part of the log before a round: to learn from."""
        return self._part([one for one in self.decisions if one.round < round_], round_)

    def since(self, round_: int) -> "Log":
        """Return the part of the log from a round on: to judge by what was learnt before it."""
        return self._part([one for one in self.decisions if one.round >= round_], round_)

    def _part(self, decisions: Sequence[Logged], round_: int) -> "Log":
        if not decisions:
            raise ParameterError(
                f"no decision is left on that side of round {short(round_)}; the log has rounds "
                f"{self.decisions[0].round} … {self.decisions[-1].round}"
            )
        return replace(self, decisions=tuple(decisions))

    def scaled(self, scaling: Scaling) -> "Log":
        """Return the log with contexts in the units that a policy with this scaling computes in."""
        moved = [
            replace(
                one,
                contexts=scaling.scaled(one.contexts),
                propensity=None if one.propensities is not None else one.propensity,
            )
            for one in self.decisions
        ]
        return replace(self, decisions=tuple(moved), columns=None)

    def called(self, agent: int) -> str:
        """Return what messages to people call an agent: its name, or its number."""
        return str(agent) if self.names is None else repr(self.names[agent])


def check_against(one: Logged, first: Logged, agents: int | None) -> None:
    """Check that a decision fits the network and the log's first decision."""
    if isinstance(one.agent, str) != isinstance(first.agent, str):
        raise InputError(
            f"agent {short(one.agent)} and, in the first decision, {short(first.agent)}: expected "
            "numbers for all decisions, or names for all"
        )
    if agents is not None and isinstance(one.agent, int) and one.agent >= agents:
        raise NetworkError(
            f"agent {one.agent} is not in this network; its agents are 0 … {agents - 1}"
        )
    if one.contexts.shape[1] != first.contexts.shape[1]:
        raise ShapeError(
            f"contexts have {one.contexts.shape[1]} numbers here and {first.contexts.shape[1]} in "
            "the first decision; expected one dimension for all"
        )
    for name in ("propensity", "propensities"):
        if (getattr(one, name) is None) != (getattr(first, name) is None):
            raise InputError(
                f"the decision of agent {one.agent} in round {one.round} "
                f"{'lacks' if getattr(one, name) is None else 'has'} {name!r}, unlike the first; "
                "give the same of 'propensity' and 'propensities' for all decisions, or for none"
            )


def twice(one: Logged) -> str:
    return (
        f"agent {one.agent} has two decisions in round {one.round}; number each agent's decisions "
        "1, 2, … in their order"
    )


def as_log(value: Any) -> Log:
    """Check that a value is a log."""
    if not isinstance(value, Log):
        raise ParameterError(
            f"expected a log, got {short(value)}; coopbandits.lab.read_log reads one"
        )
    return value
