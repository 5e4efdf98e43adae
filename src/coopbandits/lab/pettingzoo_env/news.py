"""What has just arrived at whom? The lag rule, as messages that an environment hands out."""

from collections import deque
from typing import Any

from coopbandits.arrays import Array
from coopbandits.network import Network


class News:
    """What agents within γ edges of each other hear, each thing once, in a faultless network.

    At its decision of round t agent v knows the observation of v' of round t' exactly if
    t' + lag(v, v') ≤ t. So what arrives between its decisions of rounds t and t + 1 is of round
    t + 1 − lag(v, v').
    """

    def __init__(self, network: Network, ttl: int) -> None:
        self._ttl = ttl
        # whom each agent hears after how many rounds; what is longest on its way comes first, and
        # what an agent saw itself is no news to it
        self._sources = [
            sorted((-lag, u) for u, lag in zip(*(a.tolist() for a in row), strict=True) if u != v)
            for v, row in enumerate(network.lags(ttl))
        ]
        longest = max((-first for row in self._sources for first, _ in row), default=0)
        self._said: deque[tuple[list[Array], list[float]]] = deque(maxlen=longest)
        self._round = 0

    def clear(self) -> None:
        """Forget all that is on its way."""
        self._said.clear()
        self._round = 0

    def tell(self, contexts: Array, rewards: Array) -> list[list[dict[str, Any]]]:
        """Send what all agents did in a round; return what each then hears.

        Args:
            contexts: (V, d) the chosen contexts, read-only, as many will hold them.
            rewards: (V,) what they brought.

        Returns:
            For each agent the messages that have just arrived, as the fields of a `Message`.
        """
        self._round += 1
        self._said.append((list(contexts), rewards.tolist()))
        return [
            [self._message(-minus, u) for minus, u in sources if -minus <= self._round]
            for sources in self._sources
        ]

    def _message(self, lag: int, origin: int) -> dict[str, Any]:
        contexts, rewards = self._said[-lag]
        return {
            "round": self._round + 1 - lag,
            "origin": origin,
            "context": contexts[origin],
            "reward": rewards[origin],
            "ttl": self._ttl - lag + 1,
        }
