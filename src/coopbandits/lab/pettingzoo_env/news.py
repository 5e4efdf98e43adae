"""What has just arrived at whom? The lag rule, as messages that an environment hands out."""

from collections import deque
from typing import Any

import numpy as np

from coopbandits.arrays import Array
from coopbandits.network import Network
from coopbandits.network.lags import lags


class News:
    """What agents within γ edges of each other hear, each thing once, in a faultless network.

    At its decision of round t agent v knows the observation of v' of round t' exactly if
    t' + lag(v, v') ≤ t. So what arrives between its decisions of rounds t and t + 1 is of round
    t + 1 − lag(v, v').
    """

    def __init__(self, network: Network, ttl: int) -> None:
        self._ttl = ttl
        lag = lags(network, ttl)
        np.fill_diagonal(lag, np.inf)  # what an agent saw itself is no news to it
        # whom each agent hears after how many rounds; what is longest on its way comes first
        self._sources = [
            sorted((-int(row[u]), int(u)) for u in np.flatnonzero(np.isfinite(row))) for row in lag
        ]
        longest = int(lag.max(where=np.isfinite(lag), initial=0.0))
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
