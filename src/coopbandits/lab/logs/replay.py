r"""What would another policy have earned, had it learnt on this log? Rejection replay.

A learning policy meets the logged decisions in their order. Where it would take the logged action,
its reward is known: the decision is accepted, with probability M/p (Li et al. 2011 for p = 1/K).
Else it is discarded and leaves no trace. Here p is the logged action's propensity and M a number
that no propensity is below, so that each decision is accepted with probability p·M/p = M whatever
was offered and whatever the policy does: accepted decisions are a fair sample of all.

Rounds: in each round of the replay every agent goes on in its own part of the log until it has
accepted one decision; then messages move one edge, as in `play`. The replay ends with the first
agent whose part is used up. Where a log's rounds are independent draws of one law, and agents'
decision sets are independent of each other, a replay is a run of `play` in law.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coopbandits.agent import Agent
from coopbandits.arrays import Array, as_count, as_number, as_seed, frozen, short
from coopbandits.errors import InputError, NetworkError, ParameterError
from coopbandits.lab.logs.intervals import Interval, as_level, by_student
from coopbandits.lab.logs.log import Log, Logged, as_log
from coopbandits.lab.logs.support import (
    LEAST,
    distribution,
    floor_of,
    known_propensities,
    refuse_action,
)
from coopbandits.network import Network, as_network
from coopbandits.policy import Policy, plan
from coopbandits.protocol.digests import News

_LEAST_ROUNDS = 5


@dataclass(frozen=True, eq=False)
class Replay:
    """What a learning policy earned on a log.

    Attributes:
        policy: Its name.
        rewards: (T, V), read-only: of the accepted decisions, round by round.
        mean: Of the rewards: the estimate of what the policy earns a decision, in its first T
            rounds.
        interval: For the mean, from the means of the T rounds by Student's t.
        level: Of the interval.
        floor: M, with which each decision was accepted.
        used: How many logged decisions were looked at.
        logged: The mean reward of the log itself: what the logging policy earned.
    """

    policy: str
    rewards: Array
    mean: float
    interval: Interval
    level: float
    floor: float
    used: int
    logged: float

    @property
    def accepted(self) -> int:
        """How many decisions were accepted: T·V."""
        return self.rewards.size

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Replay({self.policy}: {self.mean:.4g}, {self.level:.0%} interval {low:.4g} … "
            f"{high:.4g}, {len(self.rewards)} rounds of {self.rewards.shape[1]} agents)"
        )


def replay_policy(
    log: Log,
    policy: Policy,
    *,
    network: Network | None = None,
    rounds: int | None = None,
    uniform: bool = False,
    floor: float | None = None,
    centre: float = 0.0,
    level: float = 0.95,
    seed: int = 0,
) -> Replay:
    """Estimate what a policy would have earned while it learns.

    Refused: logs without propensities, a policy that takes what logging never takes, and logs that
    leave fewer than 30 decisions or 5 rounds.

    Args:
        log: With propensities, or uniform.
        policy: What is to be tried.
        network: Who hears whom; nobody hears anybody, if not given.
        rounds: T; as many as the log gives, if not given.
        uniform: Vouches that logging took every offered action with the same probability.
        floor: M, a number that no propensity of the logging policy is below; the least of the log
            if not given, which is as good but for very short logs.
        centre: Agents are told rewards less this number, as `Fit.centre`; estimates are not.
        level: Of the interval.
        seed: Of the agents, as in `play`, and of what is accepted.
    """
    if not isinstance(policy, Policy):
        raise ParameterError(f"{short(policy)} is no policy; coopbandits.LinUCB() makes one")
    as_log(log)
    alone = Network.from_edges([], agents=log.agents, names=log.names)
    among = alone if network is None else as_network(network)
    if log.names is not None and among.is_named and log.names != among.names:
        raise NetworkError(
            f"the log's agents are {short(list(log.names))}, the network's "
            f"{short(list(among.names))}; expected the same names in the same order: "
            "read_log(path, network=) puts them so"
        )
    owners = np.bincount(log.owners, minlength=len(among))
    if len(owners) != len(among) or owners.min() == 0:
        raise NetworkError(
            f"the log has decisions of agents {short(np.flatnonzero(owners).tolist())}, but the "
            f"network has agents 0 … {len(among) - 1}; each of them needs decisions to replay"
        )
    wanted = None if rounds is None else as_count(rounds, "rounds")
    level, zero, seed = as_level(level), as_number(centre, "centre"), as_seed(seed)
    streams = _Streams(log, uniform=uniform, floor=floor, seed=seed)
    rewards = np.array(_played(policy, among, streams, wanted, zero, seed))
    T = len(rewards)
    if wanted is not None and len(rewards) < wanted:
        raise InputError(
            f"rounds={wanted}, but the log gives only {T}: {owners.min()} decisions of the agent "
            f"with the fewest, of which each is accepted with probability {streams.floor:.3g}"
        )
    if T < _LEAST_ROUNDS or rewards.size < LEAST:
        raise InputError(
            f"only {T} rounds of {len(among)} agents could be replayed; at least {_LEAST_ROUNDS} "
            f"rounds and {LEAST} decisions are needed. {owners.min()} decisions of the agent with "
            f"the fewest, each accepted with probability {streams.floor:.3g}, are too few; a "
            "longer log, or one with larger propensities, gives more"
        )
    return Replay(
        policy=policy.name,
        rewards=frozen(rewards),
        mean=float(rewards.mean()),
        interval=by_student(rewards.mean(axis=1), level),
        level=level,
        floor=streams.floor,
        used=streams.used,
        logged=float(log.rewards.mean()),
    )


class _Streams:
    """Each agent's part of a log, and which of its decisions are accepted if they match."""

    def __init__(self, log: Log, *, uniform: bool, floor: object, seed: int) -> None:
        p = known_propensities(log, uniform=uniform)
        self.floor, self.used = floor_of(log, floor, uniform=uniform), 0
        self._log, self._uniform = log, uniform
        # apart from the streams of agents and problems; drawn for all decisions before any is met
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 3)))
        passes = rng.random(len(log)) * p < self.floor * (1 + 1e-12)
        parts: list[list[tuple[Logged, bool]]] = [[] for _ in range(log.agents)]
        for one, passed in zip(log.decisions, passes.tolist(), strict=True):
            parts[int(one.agent)].append((one, passed))
        self._parts: list[Iterator[tuple[Logged, bool]]] = [iter(part) for part in parts]

    def accepted(self, agent: Agent) -> Logged | None:
        """Return the next decision that the agent takes as logged, None if there is none left."""
        for one, passed in self._parts[agent.agent]:
            self.used += 1
            choice = agent.preview(one.contexts)
            logging = distribution(one, uniform=self._uniform)
            if logging is not None and logging[choice] == 0:
                refuse_action(self._log, one, choice)
            if passed and choice == one.action:
                return one
        return None


def _played(
    policy: Policy,
    network: Network,
    streams: _Streams,
    rounds: int | None,
    centre: float,
    seed: int,
) -> list[list[float]]:
    """Let real agents exchange messages over accepted decisions: T rows of V rewards."""
    agents = [policy.agent(v, network, seed=seed) for v in range(len(network))]
    in_turn = plan(policy, network).in_turn
    held: list[tuple[int, News]] = []
    played: list[list[float]] = []
    while rounds is None or len(played) < rounds:
        flying, held = held, []
        row = []
        for agent in agents:
            one = streams.accepted(agent)
            if one is None:  # what others did in this round is left out
                return played
            row.append(one.reward)
            decision = agent.decide(one.contexts)
            news = agent.reward(decision.id, one.reward - centre)
            flying += [(int(to), message) for message in news for to in agent.recipients]
            if in_turn or agent is agents[-1]:
                for to, message in flying:
                    onward = agents[to].receive(message)
                    held += [(int(n), m) for m in onward for n in agents[to].recipients]
                flying = []
        played.append(row)
    return played
