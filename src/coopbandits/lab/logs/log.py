"""What did a deployed policy see? A log of decisions, each with the chosen action's reward alone.

A file has one decision a line (JSON Lines), in any order; a name that ends in `.gz` is compressed:

    {"round": 1, "agent": 0, "contexts": [[0.1, 0.9], [0.4, 0.2]], "action": 1, "reward": 0.7,
     "propensity": 0.5}

`propensity` is the probability with which the logging policy took that action; `propensities`, in
its place, are those of all offered actions. Either may be missing, but not on some lines only.
`agent` is a number or a name, on all lines the same of both. `policy` is the fingerprint of the
policy that decided, and `schema` the version of these fields; both may be missing. Other fields are
ignored. A line is a `coopbandits.records.Logged`; docs/logs.md has the whole format.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coopbandits import records
from coopbandits.arrays import Array, IntArray, as_count, short
from coopbandits.errors import InputError, NetworkError, ParameterError, ShapeError
from coopbandits.network import Network, as_network
from coopbandits.network.names import as_names
from coopbandits.policy import Policy
from coopbandits.problems.problem import Problem
from coopbandits.records import Logged
from coopbandits.run import Run

__all__ = ["Log", "Logged", "append_log", "as_log", "read_log", "write_log"]


@dataclass(frozen=True, eq=False)
class Log:
    """Decisions of V agents, ordered by round and then agent. Made by `read_log` and `logged`.

    Attributes:
        decisions: Each with the number of its agent.
        agents: V.
        names: What agents 0 … V−1 are called; None where they have numbers only.
    """

    decisions: tuple[Logged, ...]
    agents: int
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.decisions or not all(isinstance(one, Logged) for one in self.decisions):
            raise ParameterError(
                f"a log needs at least one decision, each a Logged, got {short(self.decisions)}"
            )
        ordered = tuple(sorted(self.decisions, key=lambda one: (one.round, one.agent)))
        object.__setattr__(self, "decisions", ordered)
        for index, one in enumerate(ordered):
            _check_against(one, ordered[0], self.agents)
            before = ordered[index - 1]
            if index and (one.round, one.agent) == (before.round, before.agent):
                raise InputError(_twice(one))

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
        return Log(tuple(decisions), self.agents, self.names)

    def called(self, agent: int) -> str:
        """Return what messages to people call an agent: its name, or its number."""
        return str(agent) if self.names is None else repr(self.names[agent])


def read_log(path: str | Path, *, network: Network | None = None) -> Log:
    """Read a log; what is wrong with it is said with the line where it is.

    Args:
        path: A file of JSON Lines; one whose name ends in `.gz` is decompressed.
        network: The agents, so that a decision of an agent that is not among them is found, and
            that agents have the numbers that they have there.
    """
    decisions: list[Logged] = []
    seen: dict[tuple[int, int | str], int] = {}
    for number, line in enumerate(_lines(Path(path)), start=1):
        if not line.strip():
            continue
        try:
            one = _decision(line)
            if network is not None:
                one = one.of_agent(as_network(network).index(one.agent))
            _check_against(one, decisions[0] if decisions else one, None)
            if (one.round, one.agent) in seen:
                raise InputError(f"{_twice(one)} (also on line {seen[one.round, one.agent]})")
        except InputError as error:
            raise type(error)(f"{path}, line {number}: {error}") from error
        seen[one.round, one.agent] = number
        decisions.append(one)
    if not decisions:
        raise InputError(f"{path} holds no decision; expected one JSON object a line")
    if network is None:
        return Log.of(decisions)
    return Log.of(decisions, agents=len(network), names=network.names if network.is_named else None)


def write_log(log: Log, path: str | Path) -> None:
    """Write a log; the same log gives the same bytes, and reads back to the bit."""
    as_log(log)
    lines = [
        _line(one.of_agent(log.names[int(one.agent)]) if log.names is not None else one)
        for one in log.decisions
    ]
    Path(path).write_bytes(_packed("".join(lines), Path(path)))


def append_log(decisions: Iterable[Logged], path: str | Path) -> None:
    """Add decisions to the end of a file, which is made if it is not there.

    Each is checked on its own; `read_log` says what does not fit together.

    Args:
        decisions: Such as `Logged.of(agent, decision, contexts, reward)` makes.
        path: A file of JSON Lines; one whose name ends in `.gz` is compressed.
    """
    listed = tuple(decisions)
    if not all(isinstance(one, Logged) for one in listed):
        raise ParameterError(f"expected decisions, each a Logged, got {short(listed)}")
    with Path(path).open("ab") as file:
        file.write(_packed("".join(map(_line, listed)), Path(path)))


def _line(one: Logged) -> str:
    return json.dumps(one.to_dict()) + "\n"


def _packed(text: str, path: Path) -> bytes:
    return gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode()


def _lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().split("\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(
            f"{path} cannot be read as a log ({error}); expected a text file of JSON Lines, "
            "compressed by gzip if its name ends in .gz"
        ) from error


def _decision(line: str) -> Logged:
    """Read one line."""
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is no JSON ({error}): {short(line.strip())}") from error
    return Logged.from_dict(fields)


def _check_against(one: Logged, first: Logged, agents: int | None) -> None:
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


def _twice(one: Logged) -> str:
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
