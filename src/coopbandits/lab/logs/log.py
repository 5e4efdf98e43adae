"""What did a deployed policy see? A log of decisions, each with the chosen action's reward alone.

A file has one decision a line (JSON Lines), in any order; a name that ends in `.gz` is compressed:

    {"round": 1, "agent": 0, "contexts": [[0.1, 0.9], [0.4, 0.2]], "action": 1, "reward": 0.7,
     "propensity": 0.5}

`propensity` is the probability with which the logging policy took that action; `propensities`, in
its place, are those of all offered actions. Either may be missing, but not on some lines only.
`agent` is a number or a name, on all lines the same of both. Other fields are ignored. docs/logs.md
has the whole format.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coopbandits.arrays import (
    Array,
    IntArray,
    as_contexts,
    as_count,
    as_floats,
    as_number,
    as_reward,
    frozen,
    is_whole,
    short,
)
from coopbandits.errors import InputError, NetworkError, ParameterError, ShapeError
from coopbandits.network import Network, as_network
from coopbandits.network.names import as_name, as_names

_NEEDED = ("round", "agent", "contexts", "action", "reward")
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
    """

    round: int
    agent: int | str
    contexts: Array
    action: int
    reward: float
    propensity: float | None = None
    propensities: Array | None = None

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

    def of_agent(self, agent: int) -> "Logged":
        """Return the same decision of the agent of a number."""
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
    lines = []
    for one in log.decisions:
        fields: dict[str, Any] = {
            "round": one.round,
            "agent": one.agent if log.names is None else log.names[int(one.agent)],
            "contexts": one.contexts.tolist(),
            "action": one.action,
            "reward": one.reward,
        }
        if one.propensities is not None:
            fields["propensities"] = one.propensities.tolist()
        elif one.propensity is not None:
            fields["propensity"] = one.propensity
        lines.append(json.dumps(fields) + "\n")
    data = "".join(lines).encode()
    file = Path(path)
    file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)


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
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is no JSON ({error}): {short(line.strip())}") from error
    if not isinstance(fields, dict):
        raise InputError(f"expected a JSON object such as {{'round': 1, …}}, got {short(fields)}")
    missing = [name for name in _NEEDED if name not in fields]
    if missing:
        raise InputError(
            f"{missing[0]!r} is missing; a decision needs {', '.join(_NEEDED)}, and has "
            f"{', '.join(map(str, fields)) or 'nothing'}"
        )
    return Logged(
        **{name: fields[name] for name in _NEEDED},
        propensity=fields.get("propensity"),
        propensities=fields.get("propensities"),
    )


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
