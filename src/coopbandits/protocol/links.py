"""What becomes of a message on its way, and who is there to hear it?

`play(…, links=Links(…))` lets messages get lost or come late, links fail and agents be away. What
happens to a message depends on the seed, the round, its link and how many messages crossed that
link before it in the round, and on nothing else: two policies with one seed face the same links.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    as_count,
    as_not_negative,
    as_number,
    frozen,
    is_whole,
    short,
)
from coopbandits.errors import NetworkError, ParameterError
from coopbandits.network import Network
from coopbandits.network.sparse_rows import check_dense

Span = tuple[int, int | None]
"""Rounds from the first to the last, both included; None for ever after."""

# Beyond this a message does not come.
_LONGEST = 2**31


@runtime_checkable
class Delay(Protocol):
    """By how many rounds are messages late?

    Example:
        >>> isinstance(cb.links.Constant(2), cb.links.Delay)
        True
    """

    def rounds(self, uniform: Array) -> IntArray:
        """Return the rounds for each link, [from, to], given numbers from [0, 1): (V, V)."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Always by the same number of rounds.

    Args:
        count: Rounds, at least 0.

    Example:
        >>> cb.links.Constant(2).rounds(np.zeros((2, 2))).tolist()
        [[2, 2], [2, 2]]
    """

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", as_count(self.count, "delay", least=0))

    def rounds(self, uniform: Array) -> IntArray:
        """Return the rounds for each link: (V, V)."""
        return np.full(uniform.shape, self.count)


@dataclass(frozen=True, slots=True)
class Between:
    """By `low` to `high` rounds, each with the same probability.

    Args:
        low: Rounds, at least 0.
        high: Rounds, at least `low`.

    Example:
        >>> cb.links.Between(1, 3).rounds(np.array([[0.0, 0.5, 0.99]])).tolist()
        [[1, 2, 3]]
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", as_count(self.low, "low", least=0))
        object.__setattr__(self, "high", as_count(self.high, "high", least=self.low))

    def rounds(self, uniform: Array) -> IntArray:
        """Return the rounds for each link: (V, V)."""
        return self.low + np.floor(uniform * (self.high - self.low + 1)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Geometric:
    """By 0, 1, 2, … rounds; in each round a message that waits gets through with probability p.

    p = 1/(1 + mean): most come soon, a few very late.

    Args:
        mean: Of the rounds; at least 0.

    Example:
        >>> bool((cb.links.Geometric(mean=2.0).rounds(np.array([[0.0, 0.9]])) >= 0).all())
        True
    """

    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", as_not_negative(self.mean, "mean"))

    def rounds(self, uniform: Array) -> IntArray:
        """Return the rounds for each link: (V, V)."""
        if self.mean == 0:
            return np.zeros(uniform.shape, dtype=np.int64)
        # −ln(1 − p) = ln(1 + 1/mean), where 1/mean must neither vanish nor overflow
        waits = (
            np.log1p(self.mean) - np.log(self.mean) if self.mean < 1 else np.log1p(1 / self.mean)
        )
        return np.minimum(-np.log1p(-uniform) / waits, _LONGEST).astype(np.int64)


@dataclass(frozen=True, eq=False, init=False)
class PerLink:
    """By a fixed number of rounds for each link: [from, to] of a (V, V) table.

    Args:
        table: (V, V) rounds.

    Example:
        >>> cb.links.PerLink([[0, 3], [1, 0]]).rounds(np.zeros((2, 2))).tolist()
        [[0, 3], [1, 0]]
    """

    table: IntArray

    def __init__(self, table: object) -> None:
        try:
            given = np.asarray(table)
        except (MemoryError, ValueError):  # rows of different length, or far too many
            given = np.empty(0)
        whole = given.dtype.kind in "iu" and given.ndim == 2 and len(given) == given.shape[1]
        if not whole or (given < 0).any() or (given > _LONGEST).any():
            raise ParameterError(
                f"a table of delays must be a (V, V) array of whole numbers >= 0, got "
                f"{short(table)}"
            )
        object.__setattr__(self, "table", frozen(given.astype(np.int64)))

    def rounds(self, uniform: Array) -> IntArray:
        """Return the table."""
        return self.table


@dataclass(frozen=True, eq=False, kw_only=True)
class Links:
    """How messages fare, and which links and agents there are in each round.

    Policies plan with the whole network that they are given (cliques, centres, whom to expect news
    from); links and agents that come later are links that are down and agents that are away at
    first.

    Args:
        loss: The probability that a message is lost on a link.
        delay: By how many rounds it is late: a number, `Between(low, high)`, `Geometric(mean)` or
            `PerLink(table)`, or any value with the method of `Delay`.
        down: Links that fail, with the rounds: {(0, 1): (5, 8)} from round 5 to 8,
            {(0, 1): [(1, 4), (20, None)]} until round 4 and from 20 on. Both ways, unless the
            network is directed. An edge that comes in round 9 is down from 1 to 8.
        away: Agents that are away, by number or name, with the rounds in the same form. One that
            joins in round 9 is away from 1 to 8, one that leaves after round 20 from (21, None).
        forgets: Whether agents that were away come back with an empty memory; else with what they
            knew.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.path(3))
        >>> links = cb.Links(down={(0, 1): (1, 2)})  # in rounds 1 and 2
        >>> cb.play(problem, cb.NaiveCooperation(), rounds=3, links=links).lost.tolist()
        [2, 2, 0]
    """

    loss: float = 0.0
    delay: int | Delay = 0
    down: Mapping[tuple[int | str, int | str], Span | Iterable[Span]] = field(default_factory=dict)
    away: Mapping[int | str, Span | Iterable[Span]] = field(default_factory=dict)
    forgets: bool = False

    def __post_init__(self) -> None:
        loss = as_number(self.loss, "loss")
        if not 0 <= loss <= 1:
            raise ParameterError(f"loss must be a probability from 0 to 1, got {loss}")
        delay: Any = self.delay
        if is_whole(delay):
            delay = Constant(delay)
        if not isinstance(delay, Delay) or isinstance(delay, type):
            raise ParameterError(
                f"delay={short(delay)} is no delay; expected a whole number of rounds >= 0, or a "
                "value such as coopbandits.protocol.links.Geometric(2.0)"
            )
        if not isinstance(self.forgets, bool):
            raise ParameterError(f"forgets must be True or False, got {short(self.forgets)}")
        for name, value in [
            ("loss", loss),
            ("delay", delay),
            ("down", _spans(self.down, "down")),
            ("away", _spans(self.away, "away")),
        ]:
            object.__setattr__(self, name, value)

    def check(self, network: Network) -> None:
        """Refuse agents and links that a network does not have."""
        for agent in self.away:
            try:
                network.index(agent)
            except NetworkError as error:
                raise NetworkError(f"away names {short(agent)}: {error}") from error
        links: Iterable[Any] = self.down
        for link in links:
            try:
                u, v = (network.index(end) for end in link if isinstance(link, tuple))
            except (NetworkError, TypeError, ValueError):
                u = v = -1
            if u < 0 or not network.arcs.has(u, v):
                raise NetworkError(
                    f"down names {short(link)}, which is no link of this network; expected a pair "
                    "(u, v) such that u sends to v"
                )
        V = len(network)
        if isinstance(self.delay, PerLink) and len(self.delay.table) != V:
            raise ParameterError(
                f"the table of delays is for {len(self.delay.table)} agents; the network has {V}"
            )
        if self.by_chance:
            check_dense(V, "what becomes of messages on all links", "take loss=0 and no delay")

    @property
    def by_chance(self) -> bool:
        """Whether messages may get lost or be late, so that their fates are drawn."""
        return self.loss > 0 or self.delay != Constant(0)

    def present(self, t: int, network: Network) -> BoolArray:
        """Tell who is there in round t: (V,)."""
        there = np.ones(len(network), dtype=np.bool_)
        away = [network.index(v) for v, spans in self.away.items() if _covers(spans, t)]
        there[away] = False
        return there

    def closed(self, t: int, network: Network) -> frozenset[tuple[int, int]]:
        """Return the links that do not work in round t: (from, to)."""
        down = [link for link, spans in self.down.items() if _covers(spans, t)]
        pairs = [(network.index(u), network.index(v)) for u, v in down]
        return frozenset(pairs if network.directed else pairs + [(v, u) for u, v in pairs])

    def fates(self, t: int, nth: int, *, agents: int, seed: int) -> tuple[BoolArray, IntArray]:
        """Draw what becomes of the nth message of round t on each link, [from, to].

        Returns:
            Whether it is lost, and by how many rounds it is late: (V, V), (V, V).
        """
        # a problem's rounds draw from the spawn keys (t, 0) and (t, 1) of the same seed
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t, 2, nth)))
        chance = rng.random((2, agents, agents))
        assert isinstance(self.delay, Delay)
        late: Any = self.delay.rounds(chance[1])  # perhaps by a user's own
        whole = isinstance(late, np.ndarray) and late.dtype.kind in "iu"
        if not whole or late.shape != (agents, agents) or (late < 0).any():
            raise ParameterError(
                f"delay={short(self.delay)} made {short(late)}; expected a ({agents}, {agents}) "
                "array of whole numbers >= 0"
            )
        return chance[0] < self.loss, late


def _spans(given: Any, what: str) -> dict[Any, tuple[Span, ...]]:
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"{what}={short(given)} is no schedule; expected rounds by name, such as "
            f"{'{(0, 1): (5, 8)}' if what == 'down' else '{3: (5, 8)}'}"
        )
    return {key: _as_spans(value, f"{what}[{short(key)}]") for key, value in given.items()}


def _as_spans(given: Any, what: str) -> tuple[Span, ...]:
    try:
        listed = list(given)
        if len(listed) == 2 and all(end is None or is_whole(end) for end in listed):
            listed = [listed]
        return tuple(_as_span(*span) for span in listed)
    except (TypeError, ParameterError) as error:
        raise ParameterError(
            f"{what}={short(given)} is no span of rounds; expected (first, last) with "
            "1 <= first <= last, None as the last for ever after, or a list of such"
        ) from error


def _as_span(first: Any, last: Any) -> Span:
    start = as_count(first, "first")
    return start, None if last is None else as_count(last, "last", least=start)


def _covers(spans: Any, t: int) -> bool:
    return any(first <= t and (last is None or t <= last) for first, last in spans)
