"""A folder of agents that have learnt a log: to be opened by whoever lets them decide.

policy.toml       of all agents (docs/policy-files.md)
agents.json       who they are, who hears whom, and what the numbers of a context stand for
agents/000-….bin  each agent, as `agent.to_bytes()` stores it
topology.toml     sites and edges for `coop up`, whose nodes begin without what was learnt
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coopbandits.agent import Agent
from coopbandits.arrays import is_whole, short
from coopbandits.errors import CoopBanditsError, InputError, ParameterError
from coopbandits.lab.logs.columns import Columns
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.spec.toml_text import to_toml

_VERSION = 1
_FACTS = "agents.json"


@dataclass(frozen=True, eq=False)
class StoredAgents:
    """What a folder of agents holds.

    Attributes:
        agents: In the order of their numbers.
        policy: Of all.
        network: Who hears whom.
        columns: What the numbers of a context stand for: `columns.contexts(table)` codes a
            decision set; None where that is not known.
    """

    agents: tuple[Agent, ...]
    policy: Policy
    network: Network
    columns: Columns | None

    def __getitem__(self, agent: int | str) -> Agent:
        return self.agents[self.network.index(agent)]

    def __iter__(self) -> Iterator[Agent]:
        return iter(self.agents)

    def __len__(self) -> int:
        return len(self.agents)

    def __repr__(self) -> str:
        return f"StoredAgents({len(self)} agents, {self.policy.name})"


def write_agents(
    agents: Sequence[Agent], folder: str | Path, *, columns: Columns | None = None
) -> None:
    """Write agents into a folder, which is made if it is not there.

    Args:
        agents: All of a network, in order.
        folder: What it holds of agents is replaced.
        columns: What the numbers of a context stand for, as `log.columns` says.
    """
    listed = tuple(agents)
    whole = bool(listed) and all(isinstance(agent, Agent) for agent in listed)
    if not whole or [agent.agent for agent in listed] != [*range(len(listed[0].network))]:
        raise ParameterError(
            f"expected all agents of a network, in the order 0 … V−1, got {short(agents)}"
        )
    policy, network, path = listed[0].policy, listed[0].network, Path(folder)
    names = list(network.names) if network.is_named else [str(v) for v in range(len(network))]
    files = [f"{v:03d}-{_safe(name)}.bin" for v, name in enumerate(names)]
    (path / "agents").mkdir(parents=True, exist_ok=True)
    for old in (path / "agents").glob("*.bin"):
        old.unlink()
    for agent, file in zip(listed, files, strict=True):
        (path / "agents" / file).write_bytes(agent.to_bytes())
    facts = {
        "version": _VERSION,
        "agents": len(network),
        "names": names if network.is_named else None,
        "edges": network.edges,
        "directed": network.directed,
        "files": files,
        "columns": None if columns is None else columns.to_dict(),
    }
    (path / "policy.toml").write_text(policy.to_toml(), encoding="utf-8")
    edges = [[names[i], names[j]] for i, j in network.edges]
    fleet = {"fleet": "agents", "policy": "policy.toml", "sites": names, "edges": edges}
    (path / "topology.toml").write_text(to_toml(fleet), encoding="utf-8")
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    (path / _FACTS).write_text(text + "\n", encoding="utf-8")


def read_agents(folder: str | Path) -> StoredAgents:
    """Read a folder that `write_agents` or `coop advise --out` made.

    Each agent must be opened by one program only, which stores it again by `to_bytes`.

    Args:
        folder: The folder.
    """
    path = Path(folder)
    try:
        facts = json.loads((path / _FACTS).read_text(encoding="utf-8"))
        if facts["version"] != _VERSION:
            raise InputError(
                f"{path / _FACTS} has version {short(facts['version'])}; this version of "
                f"coopbandits reads {_VERSION}"
            )
        policy = Policy.from_spec((path / "policy.toml").read_text(encoding="utf-8"))
        network = _network(facts)
        agents = [
            Agent.from_bytes((path / "agents" / file).read_bytes(), policy=policy, network=network)
            for file in facts["files"]
        ]
        columns = None if facts["columns"] is None else Columns.from_dict(facts["columns"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, CoopBanditsError):
            raise
        raise InputError(
            f"{path} is no folder of agents, or is damaged ({error}); expected what "
            "coop advise --out or coopbandits.lab.write_agents wrote"
        ) from error
    return StoredAgents(tuple(agents), policy, network, columns)


def _network(facts: dict[str, object]) -> Network:
    edges, names, directed = facts["edges"], facts["names"], bool(facts["directed"])
    agents = facts["agents"]
    pairs = [(int(i), int(j)) for i, j in edges]  # type: ignore[attr-defined]
    if names is None:
        count = int(agents) if is_whole(agents) else 0  # type: ignore[call-overload]
        return Network.from_edges(pairs, agents=count, directed=directed)
    called = [str(name) for name in names]  # type: ignore[attr-defined]
    return Network.from_edges(pairs, names=called, directed=directed)


def _safe(name: str) -> str:
    """Make a part of a file's name of an agent's."""
    return re.sub(r"[^\w.-]+", "-", name)[:40].strip("-.") or "agent"
