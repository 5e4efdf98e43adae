"""Real agents that exchange real messages: shows that the others are right, and plays continua.

A `Wire` carries the messages: sent, lost, late, delivered, as `protocol/links.py` says.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from coopbandits.agent import Agent
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.engine import AskChains
from coopbandits.network import Network
from coopbandits.policy import Policy, plan
from coopbandits.problems.continuum import ContinuumRound
from coopbandits.problems.problem import Round
from coopbandits.protocol.digests import Digest, News
from coopbandits.protocol.links import Links
from coopbandits.protocol.messages import Message
from coopbandits.protocol.wire import Count, Wire
from coopbandits.similarity.chain_diagnostics import ChainDiagnostics
from coopbandits.similarity.similarity import SamplesChains


class Exchange:
    """Real agents that exchange real messages, one edge a round.

    An agent that is away decides nothing and hears nothing; what it was about to hand on waits for
    it.

    Attributes:
        propensities: (V,) with which probability each agent took its last action; NaN if unknown,
            and for the away.
    """

    name = "messages"

    def __init__(
        self, policy: Policy, network: Network, *, seed: int, links: Links | None = None
    ) -> None:
        self._agents: list[Agent] = [
            policy.agent(v, network, seed=seed) for v in range(len(network))
        ]
        self.listens = plan(policy, network).listens.sources
        estimator = plan(policy, network).estimator
        self._samples = estimator is not None and isinstance(estimator.learner, SamplesChains)
        self._read = Digest.from_bytes if policy.say.sums else Message.from_bytes
        self._in_turn = plan(policy, network).in_turn
        self._wire = Wire(links, network, seed=seed)
        self._forgets = links is not None and links.forgets
        self._there: BoolArray = np.ones(len(network), dtype=np.bool_)
        self._onward: list[tuple[int, News]] = []  # what agents hand on in the next round
        self._forgotten = 0
        self.propensities: Array = np.full(len(network), np.nan)

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,), −1 for the away."""
        rows = np.full(len(self._agents), -1)

        def pull(v: int) -> list[News]:
            agent = self._agents[v]
            start = int(offer.starts[v])
            decision = agent.decide(offer.contexts[start : start + offer.sizes[v]])
            assert decision.index is not None
            if decision.propensity is not None:
                self.propensities[v] = decision.propensity
            rows[v] = start + decision.index
            return agent.reward(decision.id, float(offer.rewards[rows[v]]))

        self._exchange(t, pull)
        return rows

    def play_continuum(self, t: int, offer: ContinuumRound) -> tuple[Array, Array, Array]:
        """Let each agent choose a point of its set; NaN for the away.

        Returns:
            Points (V, d), their expected rewards (V,) and their rewards (V,).
        """
        V = len(self._agents)
        contexts = np.full((V, offer.dim), np.nan)
        expected, rewards = np.full(V, np.nan), np.full(V, np.nan)

        def pull(v: int) -> list[News]:
            agent = self._agents[v]
            decision = agent.decide(offer.sets[v])
            contexts[v] = decision.context
            expected[v], rewards[v] = offer.pull(v, decision.context)
            return agent.reward(decision.id, float(rewards[v]))

        self._exchange(t, pull)
        return contexts, expected, rewards

    def _exchange(self, t: int, pull: Callable[[int], list[News]]) -> None:
        """Let all agents that are there pull, and all messages in the air cross one edge."""
        before, self._there = self._there, self._wire.begin(t)
        self.propensities = np.full(len(self._agents), np.nan)
        if self._forgets:
            for back in np.flatnonzero(self._there & ~before):
                self._forget(int(back))
        onward, self._onward = self._onward, []
        for v, message in onward:
            self._tell(v, [message])
        for v in range(len(self._agents)):
            if self._there[v]:
                self._tell(v, pull(v))
            if self._in_turn or v == len(self._agents) - 1:
                self._deliver(v if self._in_turn else None)

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes that crossed all edges in round t."""
        count = self._wire.counts[t - 1]
        return count.sent, count.bytes

    def fate(self, t: int) -> Count:
        """Return what became of messages in round t."""
        return self._wire.counts[t - 1]

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self._forgotten + sum(agent.estimated for agent in self._agents)

    def similarity(self) -> Array:
        """Return what agents take others' news to be worth, for each pair of `listens`: (n,)."""
        return np.concatenate([agent.worth for agent in self._agents])

    def chains(self) -> AskChains | None:
        """Return what answers for the agents' Gibbs chains from now on, None without any."""
        return partial(_diagnosed, self._agents) if self._samples else None

    def _tell(self, v: int, news: list[News]) -> None:
        """Send an agent's news to all who hear it; those of one who is away wait."""
        if not self._there[v]:
            self._onward += [(v, message) for message in news]
            return
        for message in news:
            data = message.to_bytes()
            for to in self._agents[v].recipients:
                self._wire.post((v, int(to), data))

    def _deliver(self, sender: int | None) -> None:
        for _, to, data in self._wire.arrivals(sender):
            self._onward += [(to, m) for m in self._agents[to].receive(self._read(data))]

    def _forget(self, v: int) -> None:
        self._forgotten += self._agents[v].estimated + 1
        self._agents[v] = self._agents[v].restarted()
        self._onward = [(u, message) for u, message in self._onward if u != v]


def _diagnosed(agents: Sequence[Agent], agent: int, sweeps: int) -> ChainDiagnostics:
    return agents[agent].diagnostics(sweeps)
