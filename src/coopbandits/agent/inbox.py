"""Which sums of others has an agent heard and not learnt yet?

Where a policy tells observations, nothing is kept here.
"""

from dataclasses import dataclass, field

import numpy as np

from coopbandits.agent.summed_model import SummedModel
from coopbandits.errors import RemoteProtocolError
from coopbandits.policy import Plan, Policy
from coopbandits.protocol.digests import Digest, DigestRelay, News, sound


@dataclass(eq=False)
class Inbox:
    """The newest digest of each agent listened to, until the next decision.

    Attributes:
        policy: Of the agent.
        plan: Of the policy.
        agent: Whose inbox it is.
        relay: What is news, and what is handed on.
        digests: By origin; replaced, never changed.
    """

    policy: Policy
    plan: Plan
    agent: int
    relay: DigestRelay
    digests: dict[int, Digest] = field(default_factory=dict)

    def receive(self, digest: Digest, dim: int | None) -> list[News]:
        """Take a peer's digest, and return what to hand on; d is None before it is known."""
        digest = self.relay.check(digest)
        if dim is not None:
            digest = self._sound(digest, dim)
        is_news, onward = self.relay.accept(digest)
        heard = np.isfinite(self.plan.lags[self.agent, digest.origin])
        if is_news and heard and digest.origin != self.agent and self.policy.act.judges:
            self.digests = {**self.digests, digest.origin: digest}
        return [*onward]

    def drop_misfits(self, dim: int) -> None:
        """Drop what came before d was known and does not fit."""
        kept = {}
        for origin, digest in self.digests.items():
            try:
                kept[origin] = self._sound(digest, dim)
            except RemoteProtocolError:  # it would have been refused, had d been known
                continue
        self.digests = kept

    def _sound(self, digest: Digest, dim: int) -> Digest:
        features = self.policy.features
        assert features is not None
        return sound(
            digest,
            m=features.size(self.policy.kernel, dim),
            p=SummedModel.summary_size(self.plan, dim),
            ridge=self.policy.ridge,
            scale=float(self.plan.prior.K_z[digest.origin, digest.origin]),
        )
