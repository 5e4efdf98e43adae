"""What has an agent seen and not told yet, and what does it tell now?

For policies that say less than everything.
"""

from dataclasses import dataclass, field

import numpy as np

from coopbandits.agent.statistics_beliefs import StatisticsBeliefs
from coopbandits.arrays import LARGEST, Array
from coopbandits.policy import Policy
from coopbandits.protocol.digests import DigestRelay, News, packed
from coopbandits.protocol.messages import Observation, Relay, nothing


@dataclass(eq=False)
class Outbox:
    """One agent's own observations, from the decision until they are told.

    Attributes:
        policy: Whose `say` is asked.
        relay: Makes messages of observations.
        digest_relay: Makes digests of sums.
        variance_ratio: σ²/λ of each decision that has no reward yet, by its id.
        waiting: σ²/λ of each observation that was not told.
        held: These observations, where they are told one by one.
        sums: What all own observations add up to, where sums are told; so `summaries`.
        before: The agent's round when it began to add up.
    """

    policy: Policy
    relay: Relay
    digest_relay: DigestRelay
    variance_ratio: dict[int, float] = field(default_factory=dict)
    waiting: list[float] = field(default_factory=list)
    held: list[Observation] = field(default_factory=list)
    sums: Array = field(default_factory=nothing)
    summaries: Array = field(default_factory=nothing)
    before: int = 0

    def decided(self, decision: int, std: float | None) -> None:
        """Note how much a decision's reward can teach.

        An agent that asks no posterior cannot tell, and takes it to be as much as can be.
        """
        ratio = LARGEST if std is None else std**2 / self.policy.ridge
        self.variance_ratio[decision] = min(ratio, LARGEST)

    def rewarded(self, observation: Observation, beliefs: StatisticsBeliefs | None) -> list[News]:
        """Return what to tell of an own observation; `beliefs` where sums are told."""
        say = self.policy.say
        waiting = [*self.waiting, self.variance_ratio[observation.round]]
        # a user's own say and features may raise: nothing is changed before
        speaks = bool(say.speaks(np.array(waiting)))
        sums, summaries = self._added(observation, beliefs)
        del self.variance_ratio[observation.round]
        self.waiting, self.sums, self.summaries = waiting, sums, summaries
        if beliefs is None:
            self.held.append(observation)
        news: list[News] = []
        if speaks and beliefs is not None:
            round_ = self.before + int(self.sums[0])
            news = [self.digest_relay.send(round_, packed(self.sums), self.summaries.copy())]
        elif speaks:
            news = [self.relay.send(one) for one in self.held]
        if speaks or not say.holds:
            self.waiting, self.held = [], []
        return news

    def _added(
        self, observation: Observation, beliefs: StatisticsBeliefs | None
    ) -> tuple[Array, Array]:
        """Return sums and summaries with one more observation, where sums are told."""
        if beliefs is None:
            return self.sums, self.summaries
        rows, summaries = beliefs.rows([observation])
        if not self.sums.size:
            return 0.0 + rows[0], 0.0 + summaries[0]
        return self.sums + rows[0], self.summaries + summaries[0]
