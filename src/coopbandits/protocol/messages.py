r"""What do agents tell each other, and how does it travel? The LOCAL protocol, with no I/O.

A message is ⟨t, v, x̃, y⟩ with the hops it has left: the origin v stands for its network context
z_v, so x̃ = (z_v, x) needs no more than v and x. Where K_z is learnt, x is followed by what its
sender attaches for that: `context` then has d + k numbers.

The rules of a relay (one per agent):

1. Its own news goes to its neighbours with γ hops left.
2. A message that comes in with h hops left is handed on with h − 1 if h > 1, else it ends here.
   So it is heard at distance 1 … γ, with γ − d + 1 hops left at distance d.
3. News counts once. A second copy is never learnt again; one with more hops left than any copy
   before is handed on again, else news would be lost where a long way is faster than a short one.
4. An unknown origin, more than γ hops or fewer than 1, or my own name under news I never sent, is
   a `RemoteProtocolError`. Whether the origin is listened to is not the relay's affair: shortest
   paths may leave the clique.

One round: all agents decide and pull, send, and every message moves one edge. What `receive`
returns in round t is delivered in round t + 1. In a faultless network news of distance d is
therefore known d rounds later, which is the lag matrix of `lags`.
"""

import struct
from dataclasses import dataclass, replace

import numpy as np

from coopbandits.arrays import Array, as_bytes, as_count, as_reward, as_vector, frozen
from coopbandits.errors import InputError, RemoteProtocolError

_MAGIC = b"CBm"
_VERSION = 1
# magic, version, round, origin, hops left, d; then the d numbers of the context and the reward
_HEADER = struct.Struct("<3sBQIII")
LAST_ROUND = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Message:
    """One observation on its way: ⟨t, v, x̃, y⟩ and the hops it has left.

    Nothing is checked here: a peer's message is checked where it is received.
    """

    round: int
    origin: int
    context: Array
    reward: float
    ttl: int

    def to_bytes(self) -> bytes:
        """Encode: a 24-byte header and d + 1 little-endian float64 numbers."""
        sound = checked(self)
        header = _HEADER.pack(
            _MAGIC, _VERSION, sound.round, sound.origin, sound.ttl, len(sound.context)
        )
        return header + np.append(sound.context, sound.reward).astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Message":
        """Decode what `to_bytes` made; other bytes are a `RemoteProtocolError`."""
        data = as_bytes(data)
        if len(data) < _HEADER.size or data[:3] != _MAGIC:
            raise RemoteProtocolError(
                f"{len(data)} bytes that start with {data[:8]!r} are no message of coopbandits"
            )
        _, version, round_, origin, ttl, dim = _HEADER.unpack_from(data)
        if version != _VERSION:
            raise RemoteProtocolError(
                f"the message has version {version}; this release reads version {_VERSION}"
            )
        if len(data) != message_size(dim):
            raise RemoteProtocolError(
                f"the message has {len(data)} bytes; {message_size(dim)} are expected for a "
                f"context of {dim} numbers"
            )
        numbers = np.frombuffer(data, dtype="<f8", offset=_HEADER.size).astype(np.float64)
        return checked(cls(round_, origin, numbers[:-1], float(numbers[-1]), ttl))


def message_size(dim: int) -> int:
    """How many bytes a message with a context of d numbers takes."""
    return _HEADER.size + 8 * (dim + 1)


def checked(message: Message) -> Message:
    """Check what a peer sent, and return it in the library's own types."""
    try:
        round_ = as_count(message.round, "its round", most=LAST_ROUND)
        origin = as_count(message.origin, "its origin", least=0)
        ttl = as_count(message.ttl, "its ttl")
        context = frozen(as_vector(message.context, "its context"))
        reward = as_reward(message.reward, "its reward")
    except InputError as error:
        raise RemoteProtocolError(f"a message was refused: {error}") from error
    return Message(round_, origin, context, reward, ttl)


def check_travel(what: str, origin: int, ttl: int, *, agents: int, most: int) -> None:
    """Refuse news of an unknown origin, or with more hops left than it can have."""
    if origin >= agents:
        raise RemoteProtocolError(
            f"a {what} names agent {origin} as its origin, but the agents are 0 … {agents - 1}"
        )
    if ttl > most:
        raise RemoteProtocolError(
            f"a {what} of agent {origin} has {ttl} hops left, but {what}s start with {most}"
        )


class Relay:
    """One agent's part in the LOCAL protocol: what is news, and what is handed on."""

    def __init__(self, agent: int, *, agents: int, ttl: int) -> None:
        self.agent, self.agents, self.ttl = agent, agents, ttl
        # (origin, round) -> the most hops left of any copy so far
        self.hops: dict[tuple[int, int], int] = {}
        # origin -> all rounds up to this one have been seen with all hops left
        self.settled: dict[int, int] = {}

    def send(self, round_: int, context: Array, reward: float) -> Message:
        """Make the message of my own observation (Alg. 1, l. 17-18)."""
        self._note(self.agent, round_, self.ttl)
        return Message(round_, self.agent, context, reward, self.ttl)

    def check(self, message: Message) -> Message:
        """Refuse what the protocol does not allow; change nothing."""
        message = checked(message)
        check_travel("message", message.origin, message.ttl, agents=self.agents, most=self.ttl)
        if message.origin == self.agent and not self._seen(self.agent, message.round):
            raise RemoteProtocolError(
                f"a message of round {message.round} bears the name of agent {self.agent}, who "
                "never sent it, or was restored from bytes stored before it did"
            )
        return message

    def accept(self, message: Message) -> tuple[bool, list[Message]]:
        """Take a checked message: is it news, and what is to be handed on?"""
        before = self._seen(message.origin, message.round)
        if message.ttl <= before:
            return False, []
        self._note(message.origin, message.round, message.ttl)
        onward = [replace(message, ttl=message.ttl - 1)] if message.ttl > 1 else []
        return before == 0, onward

    def _seen(self, origin: int, round_: int) -> int:
        """Return the most hops left of any copy so far, 0 if there was none."""
        if round_ <= self.settled.get(origin, 0):
            return self.ttl
        return self.hops.get((origin, round_), 0)

    def _note(self, origin: int, round_: int, hops: int) -> None:
        """Remember a copy; rounds without a gap need one number together."""
        self.hops[origin, round_] = hops
        last = self.settled.get(origin, 0)
        while self.hops.get((origin, last + 1)) == self.ttl:
            last += 1
            del self.hops[origin, last]
            self.settled[origin] = last
