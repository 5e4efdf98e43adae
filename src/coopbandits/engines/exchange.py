"""Real agents that exchange real messages: shows that the others are right, and plays continua."""

from collections.abc import Callable

import numpy as np

from coopbandits.agent import Agent
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.digests import Digest, News
from coopbandits.messages import Message
from coopbandits.network import Network
from coopbandits.policy import Policy, plan
from coopbandits.problems.continuum import ContinuumRound
from coopbandits.problems.problem import Round


class Exchange:
    """Real agents that exchange real messages, one edge a round."""

    name = "messages"

    def __init__(self, policy: Policy, network: Network, *, seed: int) -> None:
        self._agents: list[Agent] = [
            policy.agent(v, network, seed=seed) for v in range(len(network))
        ]
        self.listens: BoolArray = np.isfinite(policy.listen.lags(network, policy.ttl))
        self._read = Digest.from_bytes if policy.say.sums else Message.from_bytes
        self._in_turn = plan(policy, network).in_turn
        self._held: list[tuple[int, bytes]] = []
        self._traffic: list[tuple[int, int]] = []

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        rows = np.empty(len(self._agents), dtype=np.int64)

        def pull(v: int) -> list[News]:
            agent = self._agents[v]
            decision = agent.decide(offer.contexts[offer.agents == v])
            rows[v] = int(offer.starts[v]) + decision.index
            return agent.reward(decision.id, float(offer.rewards[rows[v]]))

        self._exchange(pull)
        return rows

    def play_continuum(self, t: int, offer: ContinuumRound) -> Round:
        """Let each agent choose a point of its set; return what was chosen, one row each."""
        V = len(self._agents)
        contexts, expected, rewards = np.empty((V, offer.dim)), np.empty(V), np.empty(V)

        def pull(v: int) -> list[News]:
            agent = self._agents[v]
            decision = agent.decide(offer.sets[v])
            contexts[v] = decision.context
            expected[v], rewards[v] = offer.pull(v, decision.context)
            return agent.reward(decision.id, float(rewards[v]))

        self._exchange(pull)
        return Round(np.arange(V), contexts, expected, rewards)

    def _exchange(self, pull: Callable[[int], list[News]]) -> None:
        """Let all agents pull, and let their messages and those in the air cross one edge."""
        flying, self._held = self._held, []
        count = size = 0
        for v, agent in enumerate(self._agents):
            flying += [(int(to), m.to_bytes()) for m in pull(v) for to in agent.recipients]
            if self._in_turn or v == len(self._agents) - 1:
                count, size = count + len(flying), size + sum(len(data) for _, data in flying)
                self._deliver(flying)
                flying = []
        self._traffic.append((count, size))

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes that crossed all edges in round t."""
        return self._traffic[t - 1]

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return sum(agent.estimated for agent in self._agents)

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        return np.array([agent.similarity for agent in self._agents])

    def _deliver(self, flying: list[tuple[int, bytes]]) -> None:
        for to, data in flying:
            onward = self._agents[to].receive(self._read(data))
            self._held += [
                (int(next_), message.to_bytes())
                for message in onward
                for next_ in self._agents[to].recipients
            ]
