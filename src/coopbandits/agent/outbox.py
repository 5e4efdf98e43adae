"""What has an agent seen and not told yet, and what does it tell now?

For policies that say less than everything.
"""

from dataclasses import dataclass, field

import numpy as np

from coopbandits.agent.source_sums import SourceSums
from coopbandits.agent.statistics_beliefs import StatisticsBeliefs
from coopbandits.arrays import LARGEST
from coopbandits.policy import Policy
from coopbandits.protocol.digests import DigestRelay, News, packed
from coopbandits.protocol.messages import Observation, Relay


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
        told: What all own observations add up to, where sums are told.
        before: The agent's round when it began to add up.
    """

    policy: Policy
    relay: Relay
    digest_relay: DigestRelay
    variance_ratio: dict[int, float] = field(default_factory=dict)
    waiting: list[float] = field(default_factory=list)
    held: list[Observation] = field(default_factory=list)
    told: SourceSums | None = None
    before: int = 0

    def decided(self, decision: int, std: float | None) -> None:
        """Note how much a decision's reward can teach.

        An agent that asks no posterior cannot tell, and takes it to be as much as can be.
        """
        ratio = LARGEST if std is None else std**2 / self.policy.ridge
        self.variance_ratio[decision] = min(ratio, LARGEST)

    def expired(self, decision: int) -> None:
        """Forget a decision that gets no reward any more."""
        del self.variance_ratio[decision]

    def rewarded(self, observation: Observation, beliefs: StatisticsBeliefs | None) -> list[News]:
        """Return what to tell of an own observation; `beliefs` where sums are told."""
        say = self.policy.say
        waiting = [*self.waiting, self.variance_ratio[observation.round]]
        # a user's own say and features may raise: nothing is changed before
        speaks = bool(say.speaks(np.array(waiting)))
        told = self._added(observation, beliefs)
        del self.variance_ratio[observation.round]
        self.waiting, self.told = waiting, told
        if beliefs is None:
            self.held.append(observation)
        news: list[News] = []
        if speaks and told is not None:
            round_ = self.before + int(told.learnt[0])
            sums, summaries = packed(told.sums[0]), told.summaries[0].copy()
            sums[0] = told.learnt[0]  # faded or not
            news = [self.digest_relay.send(round_, sums, summaries)]
        elif speaks:
            news = [self.relay.send(one) for one in self.held]
        if speaks or not say.holds:
            self.waiting, self.held = [], []
        return news

    def _added(
        self, observation: Observation, beliefs: StatisticsBeliefs | None
    ) -> SourceSums | None:
        """Return what own observations add up to with one more, where sums are told."""
        if beliefs is None:
            return None
        told = self.told or SourceSums.empty(beliefs.sources.summariser, 1)
        only = np.zeros(1, dtype=np.int64)
        return told.with_observations(only, [observation], observation.round, 0)
