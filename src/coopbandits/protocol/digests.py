r"""How do sums travel? All that an agent has seen, in one message that replaces those before it.

A digest holds n, q = Σy², b = Σφy and S = Σφφᵀ of its origin's own observations, of S the upper
half, row by row; where K_z is learnt, also the sum of what it is learnt from.

The rules of its relay, where they differ from those of `messages.py`:

1. Digests of one origin are ordered by their `round`, which grows with each observation. Only one
   that is newer than all before is learnt, in the place of what its origin told before.
2. A digest with h hops left is handed on if it is newer than all before with h or more hops left:
   whoever is further away may hear of an older one by it, where the newer one ended here.
"""

from dataclasses import dataclass, replace

import numpy as np

from coopbandits.arrays import Array, frozen
from coopbandits.errors import RemoteProtocolError
from coopbandits.gp.compositions import LARGEST_RATIO
from coopbandits.gp.statistics import half
from coopbandits.protocol.codec import Kind
from coopbandits.protocol.messages import Message, check_travel, checked_header

# The numbers of a digest: n, q, b (m), S (m(m + 1)/2), summaries (p).
DIGEST = Kind("digest", b"CBs", lambda m, p: _length(m) + p, "II", "II")
# Rewards go up to 1e50; a sum of their squares must leave room for arithmetic.
LARGEST_SUM = 1e110
# Of one agent; the observations of thousands of such agents can still be counted together.
MOST_COUNTED = 2**50
_MOST_FEATURES = 10_000
# S/λ this large leaves a Cholesky factor of S + λI about two digits, some times as large none.
_LARGEST_TRACE = 1e14
# Rounding may leave an S this far from positive semidefinite, beside its largest eigenvalue.
_ROUNDING = 1e-9
# Smaller squares have lost digits. And a bound on normalised products, which are at most 1.
_SMALLEST, _FAR_ABOVE = 1e-290, 2.0


@dataclass(frozen=True, eq=False)
class Digest:
    """What an agent's own observations add up to, with the hops it has left.

    Nothing is checked here: a peer's digest is checked where it is received.

    Attributes:
        round: Grows with each observation of its origin.
        origin: Whose.
        sums: (2 + m + m(m + 1)/2,) n, q, b and half of S.
        summaries: (p,) what K_z is learnt from; empty where it is given.
        ttl: The hops it has left.

    Example:
        >>> policy = cb.NaiveCooperation(say=cb.say.Sums())
        >>> agent = policy.agent(0, cb.Network.path(2))
        >>> [digest] = agent.reward(agent.decide(np.eye(2)).id, 1.0)
        >>> digest.origin, len(digest.sums)  # n, q, two of b, three of S
        (0, 7)
    """

    round: int
    origin: int
    sums: Array
    summaries: Array
    ttl: int

    @property
    def count(self) -> int:
        """How many observations it holds."""
        return int(self.sums[0])

    def to_bytes(self) -> bytes:
        """Encode: a 28-byte header and little-endian float64 numbers."""
        sound = checked(self)
        m, p = _features(len(sound.sums)), len(sound.summaries)
        assert m is not None
        return DIGEST.encode(
            sound.round, sound.origin, sound.ttl, (m, p), np.append(sound.sums, sound.summaries)
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Digest":
        """Decode what `to_bytes` made; other bytes are a `RemoteProtocolError`."""
        round_, origin, ttl, (m, _), numbers = DIGEST.decode(data)
        size = _length(m)
        return checked(cls(round_, origin, numbers[:size], numbers[size:], ttl))


News = Message | Digest
"""What agents send each other: observations, or sums where a policy says so."""


def digest_size(m: int, p: int = 0) -> int:
    """How many bytes a digest of m features takes, with p numbers to learn K_z from."""
    return DIGEST.size(m, p)


def packed(row: Array) -> Array:
    """Keep half of S: a row of statistics (2 + m + m²,) -> (2 + m + m(m + 1)/2,)."""
    m = int(np.sqrt(len(row) - 2 + 0.25))  # m² ≤ m² + m + ¼ < (m + 1)²
    i, j, _ = half(m)
    return np.append(row[: 2 + m], row[2 + m :].reshape(m, m)[i, j])


def unpacked(sums: Array) -> Array:
    """Return a whole row of statistics: (2 + m + m(m + 1)/2,) -> (2 + m + m²,)."""
    m = _features(len(sums))
    assert m is not None
    return np.append(sums[: 2 + m], sums[2 + m :][half(m)[2]])


def checked(digest: Digest) -> Digest:
    """Check what a peer sent, and return it in the library's own types."""
    round_, origin, ttl = checked_header("digest", digest.round, digest.origin, digest.ttl)
    sums, summaries = _numbers(digest.sums), _numbers(digest.summaries)
    for part in (sums, summaries):
        if part.ndim != 1 or not (np.abs(part) <= LARGEST_SUM).all():
            raise RemoteProtocolError(
                f"a digest of agent {origin} was refused: its sums must be finite numbers within "
                f"±{LARGEST_SUM:g}, in one row"
            )
    if _features(len(sums)) is None:
        raise RemoteProtocolError(
            f"a digest of agent {origin} was refused: {len(sums)} numbers are no sums of features"
        )
    n = sums[0]
    # what K_z is learnt from may have faded, how many observations there were does not
    counted = len(summaries) == 0 or 0 <= summaries[0] <= n
    if not 1 <= n <= min(round_, MOST_COUNTED) or n != np.floor(n) or not counted:
        raise RemoteProtocolError(
            f"a digest of agent {origin} was refused: {n:g} is no count of observations up to its "
            f"round {round_}, and up to {MOST_COUNTED}"
        )
    return Digest(round_, origin, frozen(sums), frozen(summaries), ttl)


def sound(
    digest: Digest,
    *,
    m: int,
    p: int,
    ridge: float,
    scale: float,
    largest: float = _LARGEST_TRACE,
) -> Digest:
    """Return a checked digest whose sums observations can have, or refuse it.

    [[S, b], [bᵀ, q]] is a Gram matrix, and |φ|² is at most what contexts are let in for. What
    rounding has left below 0 is set to 0, so that a peer cannot stop an agent.

    Args:
        digest: From a peer.
        m: How many features the agent has.
        p: How many numbers it learns K_z from.
        ridge: λ.
        scale: K_z between the origin and itself.
        largest: What the trace of S may be, in units of λ; what an agent has learnt may be more.
    """
    who = f"a digest of agent {digest.origin}"
    if (len(digest.sums), len(digest.summaries)) != (_length(m), p):
        raise RemoteProtocolError(
            f"{who} holds {len(digest.sums)} sums and {len(digest.summaries)} numbers to learn K_z "
            f"from; {_length(m)} and {p} are expected, for {m} features"
        )
    row = unpacked(digest.sums)
    n, q, b, S = row[0], row[1], row[2 : 2 + m], row[2 + m :].reshape(m, m)
    if np.trace(S) * scale > min(n * LARGEST_RATIO, largest) * ridge:
        raise RemoteProtocolError(f"{who} has sums so large that the kernel leaves no digits there")
    gram = np.empty((m + 1, m + 1))
    gram[:m, :m], gram[m, :m], gram[:m, m], gram[m, m] = S, b, b, q
    # below _SMALLEST squares lose digits, and at last become 0
    size = np.sqrt(np.maximum(np.diagonal(gram), _SMALLEST))
    with np.errstate(over="ignore"):
        gram = gram / size / size[:, None]
    # |⟨a, b⟩| ≤ |a||b|; what is far above may be infinite, and has no eigenvalues then
    if np.abs(gram).max() > _FAR_ABOVE or np.linalg.eigvalsh(gram)[0] < -_ROUNDING * (m + 1):
        raise RemoteProtocolError(f"{who} holds sums that no observations add up to")
    # beside their own sizes, so that large features leave small ones their digits
    values, vectors = np.linalg.eigh(gram[:m, :m])
    if values[0] >= 0:
        return digest
    S = (vectors * np.maximum(values, 0.0)) @ vectors.T * size[:m] * size[:m, None]
    row[2 + m :] = S.reshape(-1)
    return replace(digest, sums=frozen(packed(row)))


class DigestRelay:
    """One agent's part in handing digests on."""

    def __init__(self, agent: int, *, agents: int, ttl: int) -> None:
        self.agent, self.agents, self.ttl = agent, agents, ttl
        # (origin, hops) -> the newest round seen with so many hops left or more
        self.newest: dict[tuple[int, int], int] = {}

    def send(self, round_: int, sums: Array, summaries: Array) -> Digest:
        """Make the digest of my own observations."""
        self.note(self.agent, round_, self.ttl)
        return Digest(round_, self.agent, frozen(sums), frozen(summaries), self.ttl)

    def check(self, digest: Digest) -> Digest:
        """Refuse what the protocol does not allow; change nothing."""
        digest = checked(digest)
        check_travel(
            "digest",
            digest.round,
            digest.origin,
            digest.ttl,
            me=self.agent,
            agents=self.agents,
            most=self.ttl,
            sent=digest.round <= self.newest.get((self.agent, 1), 0),
        )
        return digest

    def accept(self, digest: Digest) -> tuple[bool, list[Digest]]:
        """Take a checked digest: is it news, and what is to be handed on?"""
        if digest.round <= self.newest.get((digest.origin, digest.ttl), 0):
            return False, []
        is_news = digest.round > self.newest.get((digest.origin, 1), 0)
        self.note(digest.origin, digest.round, digest.ttl)
        return is_news, [replace(digest, ttl=digest.ttl - 1)] if digest.ttl > 1 else []

    def note(self, origin: int, round_: int, ttl: int) -> None:
        """Remember a digest."""
        for hops in range(1, ttl + 1):
            self.newest[origin, hops] = max(round_, self.newest.get((origin, hops), 0))


def _numbers(given: object) -> Array:
    try:
        return np.array(given, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        return np.array(np.nan)  # refused as any other that is no row


def _length(m: int) -> int:
    return 2 + m + m * (m + 1) // 2


def _features(length: int) -> int | None:
    """Return the m of so many sums, None if there is none."""
    m = int(np.sqrt(max(2 * length - 4, 0) + 2.25) - 1.5 + 0.5)  # m² + 3m = 2(length − 2)
    return m if 1 <= m <= _MOST_FEATURES and _length(m) == length else None
