r"""What do agents tell each other, and how does it travel? The LOCAL protocol, with no I/O.

An observation is one value all its way: from an agent's reward, over the wire, into a posterior. A
message is an observation ⟨t, v, x̃, y⟩ with the hops it has left: the origin v stands for its
network context z_v, so x̃ = (z_v, x) needs no more than v and x. Where K_z is estimated, what its
sender attaches for that goes with it.

The rules of a relay (one per agent):

1. Its own news goes to its neighbours with γ hops left.
2. A message that comes in with h hops left is handed on with h − 1 if h > 1, else it ends here.
   So it is heard at distance 1 … γ, with γ − d + 1 hops left at distance d.
3. News counts once. A second copy is never learnt again; one with more hops left than any copy
   before is handed on again, else news would be lost where a long way is faster than a short one.
4. An unknown origin, more than γ hops or fewer than 1, or my own name under news I never sent, is
   a `RemoteProtocolError`. Whether the origin is listened to is not the relay's affair: shortest
   paths may leave the clique.
5. Of each origin no more than `WINDOW` runs of rounds without a gap are remembered
   (`protocol/seen_rounds.py`). When there are more, the oldest counts as seen, with all before it:
   memory is bounded, and a message that comes so late is dropped.

One round: all agents decide and pull, send, and every message moves one edge. What `receive`
returns in round t is delivered in round t + 1. In a faultless network news of distance d is
therefore known d rounds later, which is the lag matrix of `network/lags.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from coopbandits.arrays import Array, as_count, as_floats, as_reward, as_vector, frozen
from coopbandits.errors import InputError, RemoteProtocolError, ShapeError
from coopbandits.protocol.codec import Kind
from coopbandits.protocol.seen_rounds import SeenRounds

# The numbers of a message: the context (d), what is attached (k), the reward.
MESSAGE = Kind("message", b"CBm", lambda d, k: d + k + 1, "HH", "I")
LAST_ROUND = 2**63 - 1


def nothing() -> Array:
    """Return what is attached where K_z is given."""
    return frozen(np.empty(0))


@dataclass(frozen=True, eq=False, slots=True)
class Observation:
    """⟨t, v, x, y⟩, with what its maker attached for others to estimate K_z from.

    Attributes:
        origin: v, whose it is.
        round: t, in the origin's own rounds; 0 for history from before its first.
        context: (d,) x.
        reward: y.
        attached: (k,) empty where K_z is given.
    """

    origin: int
    round: int
    context: Array
    reward: float
    attached: Array = field(default_factory=nothing)

    @property
    def augmented(self) -> Array:
        """(d + k,) the context followed by what is attached: x̃, where embeddings are frozen."""
        return np.append(self.context, self.attached)


@dataclass(frozen=True, eq=False)
class Message:
    """One observation on its way: ⟨t, v, x̃, y⟩ and the hops it has left.

    Nothing is checked here: a peer's message is checked where it is received.

    Args:
        round: In which its origin observed it.
        origin: Who did.
        context: (d,) x.
        reward: y.
        ttl: The hops it has left.
        attached: (k,) what a similarity that is learnt sends along; nothing, unless it does.

    Example:
        >>> message = cb.Message(round=1, origin=0, context=np.ones(2), reward=0.5, ttl=1)
        >>> cb.Message.from_bytes(message.to_bytes()).reward
        0.5
    """

    round: int
    origin: int
    context: Array
    reward: float
    ttl: int
    attached: Array = field(default_factory=nothing)

    @property
    def observation(self) -> Observation:
        """What it tells."""
        return Observation(self.origin, self.round, self.context, self.reward, self.attached)

    def to_bytes(self) -> bytes:
        """Encode: a 24-byte header and d + k + 1 little-endian float64 numbers."""
        sound = checked(self)
        return MESSAGE.encode(
            sound.round,
            sound.origin,
            sound.ttl,
            (len(sound.context), len(sound.attached)),
            np.concatenate([sound.context, sound.attached, [sound.reward]]),
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Message":
        """Decode what `to_bytes` made; other bytes are a `RemoteProtocolError`."""
        round_, origin, ttl, (d, _), numbers = MESSAGE.decode(data)
        return checked(
            cls(round_, origin, numbers[:d], float(numbers[-1]), ttl, frozen(numbers[d:-1]))
        )


def message_size(dim: int, attached: int = 0) -> int:
    """How many bytes a message takes with a context of d numbers, and k attached."""
    return MESSAGE.size(dim, attached)


def checked(message: Message) -> Message:
    """Check what a peer sent, and return it in the library's own types."""
    round_, origin, ttl = checked_header("message", message.round, message.origin, message.ttl)
    try:
        context = frozen(as_vector(message.context, "its context"))
        attached = nothing()
        if getattr(message.attached, "shape", None) != (0,):
            attached = frozen(as_floats(message.attached, "what is attached to it"))
        if attached.ndim != 1:
            raise ShapeError(f"what is attached to it has shape {attached.shape}; expected (k,)")
        reward = as_reward(message.reward, "its reward")
    except InputError as error:
        raise RemoteProtocolError(f"a message was refused: {error}") from error
    return Message(round_, origin, context, reward, ttl, attached)


def checked_header(what: str, round_: object, origin: object, ttl: object) -> tuple[int, int, int]:
    """Check the whole numbers that a peer sent, and return them in the library's own types."""
    try:
        return (
            as_count(round_, "its round", most=LAST_ROUND),
            as_count(origin, "its origin", least=0),
            as_count(ttl, "its ttl"),
        )
    except InputError as error:
        raise RemoteProtocolError(f"a {what} was refused: {error}") from error


def check_travel(
    what: str, round_: int, origin: int, ttl: int, *, me: int, agents: int, most: int, sent: bool
) -> None:
    """Refuse what cannot have come this way.

    Args:
        what: A message or a digest.
        round_: Its round.
        origin: Whose it is.
        ttl: The hops it has left.
        me: Who got it.
        agents: V.
        most: γ.
        sent: Whether it may be one that I sent.
    """
    if origin >= agents:
        raise RemoteProtocolError(
            f"a {what} names agent {origin} as its origin, but the agents are 0 … {agents - 1}"
        )
    if ttl > most:
        raise RemoteProtocolError(
            f"a {what} of agent {origin} has {ttl} hops left, but {what}s start with {most}"
        )
    if origin == me and not sent:
        raise RemoteProtocolError(
            f"a {what} of round {round_} bears the name of agent {me}, who never sent it, or was "
            "restored from bytes stored before it did"
        )


class Relay:
    """One agent's part in the LOCAL protocol: what is news, and what is handed on.

    Attributes:
        rounds: By origin, which of its rounds have been seen.
    """

    def __init__(
        self, agent: int, *, agents: int, ttl: int, most: Mapping[int, int] | None = None
    ) -> None:
        """Start with nothing seen.

        Args:
            agent: Whose relay it is.
            agents: V.
            ttl: γ.
            most: How many hops can be left of what comes from an origin, γ − d + 1 at distance d; γ
                where it is not given.
        """
        self.agent, self.agents, self.ttl = agent, agents, ttl
        self._most = {} if most is None else most
        self.rounds: dict[int, SeenRounds] = {}

    def send(self, observation: Observation) -> Message:
        """Make the message of my own observation (Alg. 1, l. 17-18)."""
        self.note(self.agent, observation.round, self.ttl)
        return Message(
            observation.round,
            self.agent,
            observation.context,
            observation.reward,
            self.ttl,
            observation.attached,
        )

    def check(self, message: Message) -> Message:
        """Refuse what the protocol does not allow; change nothing."""
        message = checked(message)
        check_travel(
            "message",
            message.round,
            message.origin,
            message.ttl,
            me=self.agent,
            agents=self.agents,
            most=self.ttl,
            sent=self.seen(message) > 0,
        )
        return message

    def accept(self, message: Message) -> tuple[bool, list[Message]]:
        """Take a checked message: is it news, and what is to be handed on?"""
        before = self.seen(message)
        if message.ttl <= before:
            return False, []
        self.note(message.origin, message.round, message.ttl)
        onward = [replace(message, ttl=message.ttl - 1)] if message.ttl > 1 else []
        return before == 0, onward

    def seen(self, message: Message) -> int:
        """Return the most hops left of any copy so far, 0 if there was none."""
        rounds = self.rounds.get(message.origin)
        if rounds is None:
            return 0
        return rounds.most_hops(message.round, self._most_of(message.origin), self.ttl)

    def settle(self, origin: int, round_: int) -> None:
        """Let all rounds of an origin up to one count as seen, with all hops left."""
        self.rounds.setdefault(origin, SeenRounds()).settle(round_)

    def note(self, origin: int, round_: int, hops: int) -> None:
        """Remember a copy."""
        rounds = self.rounds.setdefault(origin, SeenRounds())
        rounds.note(round_, hops, self._most_of(origin))

    def _most_of(self, origin: int) -> int:
        return self._most.get(origin, self.ttl)
