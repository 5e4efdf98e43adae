"""The decisions of all agents in a faultless network, where the protocol is a matrix of lags.

Who has heard what by when is known beforehand (`Plan.lags`), so no message needs to move. What an
agent believes is up to a `Beliefs`: exact posteriors shared between agents (`shared.py`), exact
posteriors under a learnt K_z (`learnt.py`), or sums of fixed size (`pooled.py`, `joint.py`,
`mixed.py`, `late.py`, `lone.py`).
"""

from typing import Protocol

import numpy as np

from coopbandits.act import FollowCentre, agent_rng, draws, first_best
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.record import Record
from coopbandits.engines.shared import SharedPosteriors
from coopbandits.errors import ParameterError
from coopbandits.gp.admission import admits, refusal
from coopbandits.gp.covariances import drawn
from coopbandits.gp.posterior import Belief
from coopbandits.network import Network
from coopbandits.network.lags import transmissions
from coopbandits.policy import Policy, plan
from coopbandits.problems.problem import Round
from coopbandits.protocol.messages import message_size


class Beliefs(Protocol):
    """What the agents of a simulation believe."""

    def bytes_after(self, rounds: int) -> float:
        """How much memory it takes at most, after so many rounds."""
        ...

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly."""
        ...

    def believe(self, t: int, offer: Round, X: Array, judging: BoolArray, record: Record) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: X (M, ·), (V,)."""
        ...

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        ...

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        ...


class ByLags:
    """Takes all decisions from a lag matrix."""

    def __init__(
        self,
        name: str,
        beliefs: Beliefs,
        policy: Policy,
        network: Network,
        *,
        rounds: int,
        seed: int,
        memory_limit: float,
    ) -> None:
        self.name = name
        self.listens: BoolArray = np.isfinite(policy.listen.lags(network, policy.ttl))
        self._policy, self._plan = policy, plan(policy, network)
        self._rngs = [agent_rng(seed, v) for v in range(len(network))]
        self._beliefs = beliefs
        needed = beliefs.bytes_after(rounds) if policy.act.judges else 0.0
        if needed > memory_limit:
            other = "take lag=1, or " if self._plan.in_turn else "take engine='sparse', or "
            raise ParameterError(
                f"{rounds} rounds of {policy.name} need about {needed / 1e9:.1f} GB for the "
                f"{name} engine, above memory_limit={memory_limit:.3g} bytes; raise the limit, "
                + (other if name == "exact" else "or ")
                + "play fewer rounds, a smaller ttl or a sparser network"
            )
        self._record = Record(self._plan, rounds)
        self._messages = transmissions(self._plan.carrier, policy.ttl, rounds)

    def play(self, t: int, offer: Round) -> IntArray:
        """Choose a row of the offer for each agent, and learn its reward: (V,)."""
        if not admits(self._plan.prior, self._policy.ridge, offer.agents, offer.contexts):
            raise refusal(offer.contexts, self._policy.ridge)
        agents = np.arange(len(self._rngs))
        rows = np.empty(len(agents), dtype=np.int64)
        for turn in agents[:, None] if self._plan.in_turn else agents[None, :]:
            rows[turn] = self._choose(t, offer, turn)
            self._record.add(t, turn, offer, rows)
            if self._plan.in_turn and isinstance(self._beliefs, SharedPosteriors):
                self._beliefs.learn_now(turn, t, self._record)
        return rows

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes that crossed all edges in round t."""
        messages = int(self._messages[t - 1])
        return messages, messages * message_size(self._record.width)

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self._beliefs.refreshes

    def similarity(self) -> Array:
        """Return what each agent takes the others' news to be worth: (V, V)."""
        return self._beliefs.similarity()

    def _choose(self, t: int, offer: Round, turn: IntArray) -> IntArray:
        """Choose a row for each agent of this turn."""
        chosen = np.full(len(self._rngs), -1)
        follows = self._plan.leader_lags < t
        if follows[turn].any():
            followers = turn[follows[turn]]
            chosen[followers] = self._follow(t, offer, followers)
        if self._policy.act.judges:
            judging = np.zeros(len(chosen), dtype=np.bool_)
            judging[turn] = ~follows[turn]
            asked = self._record.asked(offer)
            belief = self._beliefs.believe(t, offer, asked, judging, self._record)
            knows = judging & (belief.count[offer.starts] > 0)
            chosen[knows] = self._judge(offer, belief, knows)[knows]
        for v in turn[chosen[turn] < 0]:  # knows nothing, or acts at random
            chosen[v] = offer.starts[v] + self._rngs[v].integers(offer.sizes[v])
        return chosen[turn]

    def _follow(self, t: int, offer: Round, followers: IntArray) -> IntArray:
        """Choose what is nearest to the last arm that each follower has heard of: (F,)."""
        act = self._policy.act
        before = t - 1 - self._plan.leader_lags[followers].astype(np.int64)
        dim = offer.contexts.shape[1]
        arms = self._record.observed[before, self._plan.leaders[followers], :dim]
        starts = offer.starts[followers]
        if not isinstance(act, FollowCentre) or type(act).follow is not FollowCentre.follow:
            ends = starts + offer.sizes[followers]
            offered = [offer.contexts[a:b] for a, b in zip(starts, ends, strict=True)]
            return starts + np.array([act.follow(*p) for p in zip(arms, offered, strict=True)])
        rows, real = offer.padded(followers)
        return starts + act.follow_each(arms, offer.contexts[rows], real)

    def _judge(self, offer: Round, belief: Belief, knows: BoolArray) -> IntArray:
        """Return the row that each agent rates best: (V,), right for those that know something."""
        width = self._policy.width.factor(
            logdet=belief.logdet,
            count=belief.count,
            ridge=self._policy.ridge,
            agents=self._plan.union_bound[offer.agents],
        )
        std = self._drawn(offer, belief, knows) if draws(self._policy.act) else belief.std
        scores = self._policy.act.score(belief.mean, std, width)
        padded = np.full((len(offer.sizes), int(offer.sizes.max())), -np.inf)
        padded[offer.agents, np.arange(len(scores)) - offer.starts[offer.agents]] = scores
        return offer.starts + first_best(padded)

    def _drawn(self, offer: Round, belief: Belief, knows: BoolArray) -> Array:
        """Draw jointly for each agent that knows something, from its own numbers: (M,)."""
        deviations = np.zeros(len(offer.agents))
        rows = np.flatnonzero(knows[offer.agents])
        if rows.size:
            agents = offer.agents[rows]
            assert belief.covariance is not None
            deviations[rows] = drawn(
                belief.covariance[rows],
                self._plan.prior.diagonal(agents, offer.contexts[rows]),
                agents,
                np.concatenate(
                    [self._rngs[v].standard_normal(offer.sizes[v]) for v in np.flatnonzero(knows)]
                ),
            )
        return deviations
