"""Who computes the decisions of a simulation? Two engines that always take the same ones.

`Exact` uses the lag matrix: agents that learn from the same agents share one Cholesky factor of
what all of them know, and look at the newest rounds through its Schur complement. `Exchange` makes
real agents and hands their messages around, byte for byte; it is slower and shows that the first
is right.
"""

from typing import Protocol

import numpy as np

from coopbandits.act import first_best
from coopbandits.agent import agent_rng
from coopbandits.arrays import Array, IntArray
from coopbandits.errors import ParameterError
from coopbandits.messages import Message, message_size, transmissions
from coopbandits.network import Network
from coopbandits.policy import Plan, Policy, plan
from coopbandits.posterior import Belief, Posterior, admits, refusal
from coopbandits.problems.problem import Round


class Engine(Protocol):
    """Takes the decisions of all agents, round after round."""

    name: str

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        ...

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes that crossed all edges in round t."""
        ...


class Exact:
    """Exact posteriors, shared where agents share their past."""

    name = "exact"

    def __init__(
        self, policy: Policy, network: Network, *, rounds: int, seed: int, memory_limit: float
    ) -> None:
        self._policy, self._plan = policy, plan(policy, network)
        self._rngs = [agent_rng(seed, v) for v in range(len(network))]
        self._groups = _groups(policy, self._plan) if policy.act.judges else []
        needed = sum(group.bytes_after(rounds) for group in self._groups)
        if needed > memory_limit:
            raise ParameterError(
                f"{rounds} rounds of {policy.name} need about {needed / 1e9:.1f} GB for exact "
                f"posteriors, above memory_limit={memory_limit:.3g} bytes; raise the limit, or "
                "play fewer rounds, a smaller ttl or a sparser network"
            )
        self._in_turn = self._plan.in_turn
        self._contexts: Array = np.empty((0, 0, 0))
        self._rewards = np.zeros((rounds, len(network)))
        self._messages = transmissions(self._plan.carrier, policy.ttl, rounds)

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        if t == 1:
            self._contexts = np.zeros((*self._rewards.shape, offer.contexts.shape[1]))
        if not admits(self._plan.kernel, self._policy.ridge, offer.agents, offer.contexts):
            raise refusal(offer.contexts, self._policy.ridge)
        agents = np.arange(len(self._rngs))
        rows = np.empty(len(agents), dtype=np.int64)
        for turn in agents[:, None] if self._in_turn else agents[None, :]:
            rows[turn] = self._choose(t, offer, turn)
            self._contexts[t - 1, turn] = offer.contexts[rows[turn]]
            self._rewards[t - 1, turn] = offer.rewards[rows[turn]]
            if self._in_turn:
                for group in self._groups:
                    group.learn_now(turn, self._contexts[t - 1], self._rewards[t - 1])
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes that crossed all edges in round t."""
        messages = int(self._messages[t - 1])
        return messages, messages * message_size(self._contexts.shape[2])

    def _choose(self, t: int, offer: Round, turn: IntArray) -> IntArray:
        """Choose a row for each agent of this turn."""
        chosen = np.full(len(self._rngs), -1)
        follows = self._plan.leader_lags < t
        for v in turn[follows[turn]]:
            arm = self._contexts[t - 1 - int(self._plan.leader_lags[v]), self._plan.leaders[v]]
            rows = offer.starts[v] + np.arange(offer.sizes[v])
            chosen[v] = rows[self._policy.act.follow(arm, offer.contexts[rows])]
        self._groups = [group for group in self._groups if not follows[group.members].all()]
        judging = np.zeros(len(chosen), dtype=np.bool_)
        judging[turn] = ~follows[turn]
        belief = Belief.nothing(len(offer.agents))
        for group in self._groups:
            if not self._in_turn:
                group.learn_due(t, self._contexts, self._rewards)
            rows = np.flatnonzero((judging & group.is_member)[offer.agents])
            if rows.size:
                group.believe(t, offer, rows, self._contexts, self._rewards).put(belief, rows)
        knows = judging & (belief.count[offer.starts] > 0)
        chosen[knows] = self._judge(offer, belief)[knows]
        for v in turn[chosen[turn] < 0]:  # knows nothing, or acts at random
            chosen[v] = offer.starts[v] + self._rngs[v].integers(offer.sizes[v])
        return chosen[turn]

    def _judge(self, offer: Round, belief: Belief) -> IntArray:
        """Return the row that each agent rates best: (V,)."""
        width = self._policy.width.factor(
            logdet=belief.logdet,
            count=belief.count,
            ridge=self._policy.ridge,
            agents=self._plan.union[offer.agents],
        )
        scores = self._policy.act.score(belief.mean, belief.std, width)
        padded = np.full((len(offer.sizes), int(offer.sizes.max())), -np.inf)
        padded[offer.agents, np.arange(len(scores)) - offer.starts[offer.agents]] = scores
        return offer.starts + first_best(padded)


class _Group:
    """Agents that learn from the same sources, and the posterior of what all of them know."""

    def __init__(self, policy: Policy, plan: Plan, members: IntArray, sources: IntArray) -> None:
        self.members, self.sources = members, sources
        self.is_member = np.isin(np.arange(len(plan.lags)), members)
        self.lags = plan.lags[:, sources].copy()
        # a source's news is common once the member it reaches last has it
        self.common_lag = plan.lags[np.ix_(members, sources)].max(axis=0).astype(np.int64)
        self.posterior = Posterior(plan.kernel, policy.ridge)
        # a member needs no posterior once it follows its leader
        self.last_round = float(plan.leader_lags[members].max())

    def bytes_after(self, rounds: int) -> float:
        """How much memory the factor takes at most, after so many rounds."""
        return 4.0 * (len(self.sources) * min(rounds, self.last_round)) ** 2

    def learn_now(self, turn: IntArray, contexts: Array, rewards: Array) -> None:
        """Learn the pulls of this turn: (V, d), (V,)."""
        heard = np.intersect1d(turn, self.sources)
        self.posterior.extend(heard, contexts[heard], rewards[heard])

    def learn_due(self, t: int, contexts: Array, rewards: Array) -> None:
        """Learn what has become common by the decisions of round t: (T, V, d), (T, V)."""
        round_ = t - self.common_lag
        due = round_ >= 1
        at = round_[due] - 1, self.sources[due]
        self.posterior.extend(self.sources[due], contexts[at], rewards[at])

    def believe(
        self, t: int, offer: Round, rows: IntArray, contexts: Array, rewards: Array
    ) -> Belief:
        """Return what the agents of some rows believe of them, the newest rounds included."""
        agents, X = offer.agents[rows], offer.contexts[rows]
        pairs = [
            (round_, column)
            for column, lag in enumerate(self.common_lag)
            for round_ in range(max(1, t - int(lag) + 1), t)
        ]
        if pairs:
            round_, column = np.array(pairs).T
            known = round_ + self.lags[:, column] <= t
            heard = known[self.members].any(axis=0)
            if heard.any():
                round_, column, known = round_[heard], column[heard], known[:, heard]
                at = round_ - 1, self.sources[column]
                newest = self.posterior.look_ahead(at[1], contexts[at], rewards[at])
                return newest.predict(agents, X, known)
        return self.posterior.predict(agents, X)


def _groups(policy: Policy, plan: Plan) -> list[_Group]:
    """Put agents that learn from the same agents together."""
    members: dict[bytes, list[int]] = {}
    for v, row in enumerate(np.isfinite(plan.lags)):
        members.setdefault(row.tobytes(), []).append(v)
    return [
        _Group(policy, plan, np.array(group), np.flatnonzero(np.isfinite(plan.lags[group[0]])))
        for group in members.values()
    ]


class Exchange:
    """Real agents that exchange real messages, one edge a round."""

    name = "messages"

    def __init__(
        self, policy: Policy, network: Network, *, rounds: int, seed: int, memory_limit: float
    ) -> None:
        self._agents = [policy.agent(v, network, seed=seed) for v in range(len(network))]
        self._in_turn = plan(policy, network).in_turn
        self._held: list[tuple[int, bytes]] = []
        self._traffic: list[tuple[int, int]] = []

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        flying, self._held = self._held, []
        count = size = 0
        rows = []
        for v, agent in enumerate(self._agents):
            decision = agent.decide(offer.contexts[offer.agents == v])
            rows.append(int(offer.starts[v]) + decision.index)
            news = agent.reward(decision.id, float(offer.rewards[rows[-1]]))
            flying += [(int(to), m.to_bytes()) for m in news for to in agent.recipients]
            if self._in_turn or v == len(self._agents) - 1:
                count, size = count + len(flying), size + sum(len(data) for _, data in flying)
                self._deliver(flying)
                flying = []
        self._traffic.append((count, size))
        return np.array(rows)

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes that crossed all edges in round t."""
        return self._traffic[t - 1]

    def _deliver(self, flying: list[tuple[int, bytes]]) -> None:
        for to, data in flying:
            onward = self._agents[to].receive(Message.from_bytes(data))
            self._held += [
                (int(next_), message.to_bytes())
                for message in onward
                for next_ in self._agents[to].recipients
            ]


ENGINES: dict[str, type[Exact] | type[Exchange]] = {"exact": Exact, "messages": Exchange}
