"""When do agents tell a server everything, and what does that cost? The log-determinant trigger.

All agents synchronise after a round t in which some agent v has

    (t − t_last)·log(det(I + K_now/λ) / det(I + K_last/λ)) > D,

with t_last the round of the last synchronisation, K_now the Gram matrix of all that v knows and
K_last that of what all knew then (Wang et al. 2020, DisLinUCB; Li et al. 2022, DisKernelUCB).

Deviation from both papers: there agents decide one after the other and a synchronisation may fall
between two of them; here all decide at the same time, and it comes after the round.
"""

import math

import numpy as np

from coopbandits.arrays import Array, as_not_negative, is_real
from coopbandits.protocol.messages import message_size


class Server:
    """Tells when to synchronise, and counts what crosses; the network's edges are not used.

    What carries no data, the call to synchronise, is not counted, as in the papers.
    """

    def __init__(self, *, agents: int, rounds: int, threshold: float) -> None:
        self.threshold = threshold
        self._agents, self._last = agents, 0
        self._traffic = np.zeros((rounds, 2), dtype=np.int64)

    def is_due(self, t: int, gained: Array) -> bool:
        """Tell whether round t ends with a synchronisation; gained (V,) is the log of the ratio."""
        if self._agents == 1:  # there is nobody to tell
            return False
        return bool(((t - self._last) * gained > self.threshold).any())

    def synchronise(self, t: int, *, messages: int, numbers: int) -> None:
        """Write down that so many messages, of so many numbers each, crossed in round t."""
        self._last = t
        self._traffic[t - 1] = messages, messages * message_size(numbers - 1)

    def traffic(self, t: int) -> tuple[int, int]:
        """Return the messages and the bytes of round t."""
        messages, size = self._traffic[t - 1]
        return int(messages), int(size)


def as_threshold(value: object) -> float:
    """Check D: at least 0; infinity for never."""
    endless = is_real(value) and value == math.inf
    return math.inf if endless else as_not_negative(value, "threshold")
