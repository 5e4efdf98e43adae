"""For whom was an agent stored? Its policy and its network, and what differs from those given.

A stored agent goes on under the policy it was made with, and in the network it was in or one that
grew out of that (`Network.with_agents` and others), where all numbers mean the same.
"""

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.arrays import short
from coopbandits.errors import NetworkError, StateError
from coopbandits.network import Network
from coopbandits.policy import Policy

if TYPE_CHECKING:
    from coopbandits.agent.agent import Agent

# Of so many neighbours the numbers are stored, to name those that differ.
_NAMED = 32


def identity(agent: "Agent") -> dict[str, Any]:
    """Return what a stored agent's header says of its policy and its network."""
    network = agent.network
    return {
        "agent": agent.agent,
        "policy": agent.policy.fingerprint,
        "answers": {name: [short(value), mark] for name, (value, mark) in _answers(agent.policy)},
        "network": network.fingerprint,
        "network_facts": _facts(network, agent.agent),
    }


def check_identity(header: dict[str, Any], version: int, policy: Policy, network: Network) -> None:
    """Refuse an agent of another policy or network, and name what differs."""
    if header.get("policy") != policy.fingerprint:
        raise StateError(
            f"the agent was stored under another policy: {_other_answers(header, policy)}; restore "
            "it with the policy that it was made with"
        )
    known = {network.fingerprint, *network.ancestors}
    stored = header.get("network")
    if stored not in (known if version > 2 else {first_fingerprint(network)}):
        raise StateError(
            f"the agent was stored in another network: {_other_facts(header, network)}; restore it "
            "with that network, or with one that grew out of it by with_agents, without, "
            "with_edges or without_edges"
        )
    check_present(header.get("agent"), network)


def check_move(agent: "Agent", network: Network) -> None:
    """Refuse a network that an agent cannot go on in."""
    if agent.network.fingerprint not in (network.fingerprint, *network.ancestors):
        own = {"agent": agent.agent, "network_facts": _facts(agent.network, agent.agent)}
        differs = _other_facts(own, network)
        raise NetworkError(
            f"agent {agent.network.called(agent.agent)} cannot move to a network that did not grow "
            f"out of its own: {differs}; make it by with_agents, without, with_edges or "
            "without_edges of agent.network"
        )
    check_present(agent.agent, network, pending=len(agent.awaiting))


def check_present(agent: Any, network: Network, *, pending: int = 0) -> None:
    """Refuse an agent that has left."""
    if agent in network.left:
        waits = f", and has {pending} decisions without a reward" if pending else ""
        raise NetworkError(
            f"agent {network.called(agent)} has left this network{waits}; it can go on in a "
            "network that it is in only"
        )


def first_fingerprint(network: Network) -> str:
    """Return the hash that versions 1 and 2 of stored agents have: of the (V, V) matrix's bits."""
    kind = "arcs" if network.directed else "edges"
    digest = sha256(f"{len(network)},{kind},".encode())
    V, arcs = len(network), network.arcs
    for first in range(0, V, 8):  # of eight rows the bits fill whole bytes
        rows = np.zeros((min(8, V - first), V), dtype=np.bool_)
        for row in range(len(rows)):
            rows[row, arcs[first + row]] = True
        digest.update(np.packbits(rows).tobytes())
    return digest.hexdigest()


def _answers(policy: Policy) -> list[tuple[str, tuple[Any, str]]]:
    """Return each answer of a policy with a hash of it."""
    return [
        (name, (getattr(policy, name), sha256(text.encode()).hexdigest()[:16]))
        for name, text in policy.answers.items()
    ]


def _other_answers(header: dict[str, Any], policy: Policy) -> str:
    stored, given = header.get("answers"), dict(_answers(policy))
    if not isinstance(stored, dict):
        return "it was stored by an earlier release, which does not say what differs"
    differs = []
    for name in sorted({*stored, *given}):
        was, mark = stored.get(name, ["the default", ""])
        value, now = given.get(name, (None, ""))
        if mark != now:
            differs.append(f"{name} was {was}, now {short(value) if now else 'the default'}")
    return "; ".join(differs) or "an answer of it has changed"


def _facts(network: Network, agent: int) -> dict[str, Any]:
    neighbours = network.neighbours(agent)
    return {
        "agents": len(network),
        "arcs" if network.directed else "edges": len(network.arcs.agents)
        // (1 if network.directed else 2),
        "agents that left": len(network.left),
        "name": network.called(agent),
        "neighbours": neighbours[:_NAMED].tolist(),
    }


def _other_facts(header: dict[str, Any], network: Network) -> str:
    stored, agent = header.get("network_facts"), header.get("agent")
    if not isinstance(stored, dict):
        return f"not in {network!r}"
    here = isinstance(agent, int) and 0 <= agent < len(network)
    given = _facts(network, agent if here else 0)  # type: ignore[arg-type]
    if not here:
        given |= {"name": "not there", "neighbours": []}
    differs = [
        f"{name} {stored.get(name, 'none')}, here {given.get(name, 'none')}"
        for name in dict.fromkeys([*stored, *given])
        if stored.get(name) != given.get(name)
    ]
    return "; ".join(differs) or "as many agents and edges, but not the same, or other names"
