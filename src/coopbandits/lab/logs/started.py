"""Agents that have learnt a log before their first decision, and what they would choose.

Each learns its own decisions and, within γ hops, those of the agents that it listens to, as if all
had arrived. Where K_z is estimated, the log comes in growing parts, so that chains go on from
estimate to estimate as they would have done while it was made.
"""

from collections.abc import Sequence

import numpy as np

from coopbandits.agent import Agent
from coopbandits.arrays import Array, IntArray
from coopbandits.errors import NetworkError
from coopbandits.lab.logs.log import Log, as_log
from coopbandits.network import Network, as_network
from coopbandits.policy import Policy
from coopbandits.similarity import Learnt

# Each part of a log is so many times as long as all before it.
_GROWTH = 0.7
_FIRST = 4


def start_agents(
    log: Log, policy: Policy, *, network: Network | None = None, seed: int = 0
) -> list[Agent]:
    """Return one agent for each of a log's, which has learnt from the log.

    Args:
        log: What was decided before; contexts and rewards as they are.
        policy: Of all agents; with `intercept=` where rewards have a constant.
        network: Who hears whom; nobody hears anybody, if not given.
        seed: Of the agents, as in `play`.
    """
    as_log(log)
    hears = among(log, network)
    agents = [policy.agent(v, hears, seed=seed) for v in range(len(hears))]
    taught(agents, log, np.arange(len(log)))
    return agents


def taught(agents: Sequence[Agent], log: Log, rows: IntArray) -> None:
    """Let agents learn some decisions of a log, and what they hear of others'."""
    owners, taken, rewards = log.owners[rows], log.taken[rows], log.rewards[rows]
    sources = [set(agent.sources.tolist()) | {v} for v, agent in enumerate(agents)]
    estimated = any(isinstance(agent.policy.similarity, Learnt) for agent in agents)
    for part in _parts(len(rows)) if estimated else [np.arange(len(rows))]:
        for whose in np.unique(owners[part]).tolist():
            own = part[owners[part] == whose]
            for v, agent in enumerate(agents):
                if whose in sources[v]:
                    history = np.zeros(len(own), dtype=np.int64)
                    agent.hear(whose, taken[own], rewards[own], rounds=history)
        for agent in agents:
            agent.predict(taken[:1])  # estimates K_z, where that is due


def choices(agents: Sequence[Agent], log: Log, rows: IntArray) -> tuple[list[Array], list[Array]]:
    """Return what agents would take in some decisions, and what they expect of each action.

    Returns:
        For each decision a 1 for what is taken and 0 else, (K,), and posterior means, (K,).
    """
    taken: list[Array] = [np.empty(0)] * len(rows)
    means: list[Array] = [np.empty(0)] * len(rows)
    for v, agent in enumerate(agents):
        mine = [i for i, row in enumerate(rows) if log.decisions[row].agent == v]
        if not mine:
            continue
        sets = [log.decisions[rows[i]].contexts for i in mine]
        found = agent.predict(np.concatenate(sets), learn=False)
        ends = np.cumsum([len(one) for one in sets])
        for i, start, end in zip(mine, [0, *ends], ends, strict=False):
            taken[i] = np.eye(end - start)[_first_best(found.upper[start:end])]
            means[i] = found.mean[start:end]
    return taken, means


def _first_best(upper: Array) -> int:
    """Return the first of the best, as ties are broken in `act.py`."""
    best = upper.max()
    return int(np.argmax(upper >= best - 1e-9 * max(1.0, abs(best))))


def among(log: Log, network: Network | None) -> Network:
    """Check that a network is of a log's agents; without one nobody hears anybody."""
    if network is None:
        return Network.from_edges([], agents=log.agents, names=log.names)
    given = as_network(network)
    if len(given) != log.agents or (log.names and given.is_named and given.names != log.names):
        raise NetworkError(
            f"the log has {log.agents} agents and the network {len(given)}, or their names differ; "
            "expected the same agents in the same order"
        )
    return given


def _parts(count: int) -> list[IntArray]:
    """Part a log into growing pieces."""
    ends = [min(_FIRST, count)]
    while ends[-1] < count:
        ends.append(min(count, ends[-1] + max(_FIRST, int(_GROWTH * ends[-1]))))
    return [np.arange(a, b) for a, b in zip([0, *ends], ends, strict=False)]
