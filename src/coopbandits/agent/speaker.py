"""What has an agent not told yet, and what does it tell now?

Where a policy says everything, nothing is kept here.
"""

from dataclasses import dataclass, field

import numpy as np

from coopbandits.agent.summed_model import SummedModel
from coopbandits.arrays import LARGEST, Array
from coopbandits.policy import Policy
from coopbandits.protocol.digests import DigestRelay, News, packed
from coopbandits.protocol.messages import Relay
from coopbandits.say import Everything


@dataclass(eq=False)
class Speaker:
    """One agent's own news, from the decision until it is told.

    Attributes:
        policy: Whose `say` is asked.
        relay: Makes messages of observations.
        digest_relay: Makes digests of sums.
        surprise: σ²/λ of each decision that has no reward yet, by its id.
        waiting: σ²/λ of each observation that was not told.
        held: These observations, where they are told one by one: id, context, reward.
        sums: What all own observations add up to, where sums are told; so `summaries`.
        before: The agent's round when it began to add up.
    """

    policy: Policy
    relay: Relay
    digest_relay: DigestRelay
    surprise: dict[int, float] = field(default_factory=dict)
    waiting: list[float] = field(default_factory=list)
    held: list[tuple[int, Array, float]] = field(default_factory=list)
    sums: Array = field(default_factory=lambda: np.empty(0))
    summaries: Array = field(default_factory=lambda: np.empty(0))
    before: int = 0

    def decided(self, decision: int, std: float | None) -> None:
        """Note how surprising a decision's reward can be.

        An agent that asks no posterior cannot tell, and takes it to be as surprising as can be.
        """
        if not isinstance(self.policy.say, Everything):
            s = LARGEST if std is None else std**2 / self.policy.ridge
            self.surprise[decision] = min(s, LARGEST)

    def rewarded(
        self, decision: int, context: Array, y: float, model: SummedModel | None
    ) -> list[News]:
        """Return what to tell now that a decision has its reward; `model` where sums are told."""
        say = self.policy.say
        if isinstance(say, Everything):
            return [self.relay.send(decision, context, y)]
        waiting = [*self.waiting, self.surprise[decision]]
        speaks = say.speaks(np.array(waiting))  # a user's own, which may raise
        del self.surprise[decision]
        self.waiting = waiting
        if model is not None:
            self._add(context, y, model)
        else:
            self.held.append((decision, context, y))
        news: list[News] = []
        if speaks and model is not None:
            round_ = self.before + int(self.sums[0])
            news = [self.digest_relay.send(round_, packed(self.sums), self.summaries.copy())]
        elif speaks:
            news = [self.relay.send(*one) for one in self.held]
        if speaks or not say.holds:
            self.waiting, self.held = [], []
        return news

    def _add(self, context: Array, y: float, model: SummedModel) -> None:
        rows, summaries = model.rows(context[None, :], np.array([y]))
        if not self.sums.size:
            self.sums, self.summaries = np.zeros(rows.shape[1]), np.zeros(summaries.shape[1])
        self.sums = self.sums + rows[0]
        self.summaries = self.summaries + summaries[0]
