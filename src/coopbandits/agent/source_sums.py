"""Sufficient statistics of each source, as one agent has heard of it, faded as its policy says.

The statistics of a source stand at the newest of its rounds that is known. An older observation
that comes later is added with the weight it has by then. As long as nothing newer comes from a
source, what it told ages in the agent's own rounds; its own observations always do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coopbandits.arrays import Array, IntArray, check_size, frozen, short
from coopbandits.errors import NonFiniteError
from coopbandits.features import Basis
from coopbandits.forget import Window
from coopbandits.gp.intercept import summarised
from coopbandits.gp.statistics import Statistics
from coopbandits.policy import Plan, Policy
from coopbandits.protocol.digests import Digest, unpacked
from coopbandits.protocol.messages import Observation


@dataclass(frozen=True, eq=False)
class Block:
    """Observations of one agent: contexts (k, d), rewards (k,), attached (k, ·), rounds (k,)."""

    origin: int
    X: Array
    y: Array
    attached: Array
    rounds: IntArray

    @property
    def observations(self) -> list[Observation]:
        """The same, one by one."""
        each = zip(self.rounds.tolist(), self.X, self.y.tolist(), self.attached, strict=True)
        return [Observation(self.origin, t, frozen(x), y, frozen(a)) for t, x, y, a in each]

    def part(self, start: int, stop: int) -> "Block":
        """Some of them."""
        at = slice(start, stop)
        return Block(self.origin, self.X[at], self.y[at], self.attached[at], self.rounds[at])


class Summariser:
    """Turns observations into what they add to sums; it has no state.

    Attributes:
        m: How many features there are.
        width: How many numbers a row of statistics has.
        size: How many numbers a summary has, from which K_z is estimated.
    """

    def __init__(self, policy: Policy, plan: Plan, dim: int) -> None:
        assert policy.basis is not None
        self.policy, self.plan = policy, plan
        self.basis: Basis = policy.basis
        self.m = self.basis.size(policy.kernel, dim)
        self.width = Statistics.width(self.m if policy.constants is None else self.m + 1)
        self.size = 0 if plan.estimator is None else plan.estimator.summary_size(dim)

    def __call__(self, X: Array, y: Array, attached: Array) -> tuple[Array, Array]:
        """Lay out what k observations add: (k, d), (k,), (k, ·) -> (k, ·), (k, p)."""
        phi = self.basis.features(self.policy.kernel, X)
        rows = summarised(phi, y, self.policy.constants)
        return rows, self._checked(rows, self._summaries(X, y, attached))

    def total(self, X: Array, y: Array, attached: Array) -> tuple[Array, Array]:
        """Return what k observations add up to: (·,), (p,)."""
        if not len(y):
            return np.zeros(self.width), np.zeros(self.size)
        phi = self.basis.features(self.policy.kernel, X)
        if self.policy.constants is not None:
            phi = self.policy.constants.features(phi)
        total = Statistics.summed(phi, y)
        return total, self._checked(total, self._summaries(X, y, attached)).sum(axis=0)

    def of(self, observations: Sequence[Observation]) -> tuple[Array, Array]:
        """Lay out what observations add: (k, ·), (k, p)."""
        return self(*laid_out(observations))

    def _summaries(self, X: Array, y: Array, attached: Array) -> Array:
        if self.plan.estimator is None:
            return np.empty((len(y), 0))
        return self.plan.estimator.learner.summaries(X, attached, y)

    def _checked(self, rows: Array, summaries: Array) -> Array:
        if np.isnan(rows).any() or np.isnan(summaries).any():
            raise NonFiniteError(
                f"features={short(self.basis)} are NaN at some contexts; expected numbers"
            )
        return summaries


def laid_out(observations: Sequence[Observation]) -> tuple[Array, Array, Array]:
    """Return contexts (k, d), rewards (k,) and what is attached (k, ·)."""
    return (
        np.array([one.context for one in observations]),
        np.array([one.reward for one in observations]),
        np.array([one.attached for one in observations]),
    )


@dataclass(frozen=True, eq=False)
class SourceSums:
    """The sums of N sources; replaced, never changed.

    Attributes:
        summariser: What observations add.
        sums: (N, ·) statistics of each source, at its newest round.
        summaries: (N, p) what K_z is estimated from; (N, 0) where it is given.
        learnt: (N,) how many observations there were, faded or not.
        newest: (N,) the newest round that is known of each source.
        came: (N,) the agent's own round in which it came.
        held: The observations of the window, in order, where there is one; with their places.
    """

    summariser: Summariser
    sums: Array
    summaries: Array
    learnt: IntArray
    newest: IntArray
    came: IntArray
    held: tuple[tuple[int, Observation], ...] = ()

    @classmethod
    def empty(cls, summariser: Summariser, sources: int) -> "SourceSums":
        """Know nothing of N sources."""
        check_size(
            sources,
            summariser.width,
            what=f"the statistics of {summariser.m:,} features",
            advice="take fewer features, such as coopbandits.features.Fourier(64)",
        )
        zeros = np.zeros(sources, dtype=np.int64)
        sums = np.zeros((sources, summariser.width))
        return cls(summariser, sums, np.zeros((sources, summariser.size)), zeros, zeros, zeros)

    def with_observations(
        self, places: IntArray, observations: Sequence[Observation], now: int, me: int
    ) -> "SourceSums":
        """Add observations of some sources, by their places: (k,).

        Args:
            places: Of the sources.
            observations: Theirs.
            now: The agent's own round.
            me: The agent's own place.
        """
        if not len(observations):
            return self
        rounds = np.array([one.round for one in observations], dtype=np.int64)
        if isinstance(self._forget, Window):
            held = (*self.held, *zip(places.tolist(), observations, strict=True))
            return replace(self._dated(places, rounds, now, me), held=held).expired(now, me)
        rows, more = self.summariser.of(observations)
        new = self._dated(places, rounds, now, me)
        sums, summaries = self._aged(new.newest)
        if self._forget is not None:
            weight = self._weight(new.newest[places] - rounds)
            rows, more = _weighted(rows, weight), weight[:, None] * more
        np.add.at(sums, places, rows)
        np.add.at(summaries, places, more)
        return replace(new, sums=sums, summaries=summaries)

    def with_block(self, place: int, block: Block, now: int, me: int) -> "SourceSums":
        """Add k observations of one source together."""
        places = np.full(len(block.y), place)
        if isinstance(self._forget, Window):
            return self.with_observations(places, block.observations, now, me)
        new = self._dated(places, block.rounds, now, me)
        if self._forget is None:
            total, summary = self.summariser.total(block.X, block.y, block.attached)
        else:
            weight = self._weight(new.newest[place] - block.rounds)
            rows, more = self.summariser(block.X, block.y, block.attached)
            total, summary = _weighted(rows, weight).sum(axis=0), weight @ more
        sums, summaries = self._aged(new.newest)
        sums[place] += total
        summaries[place] += summary
        return replace(new, sums=sums, summaries=summaries)

    def with_digest(self, place: int, digest: Digest, now: int) -> "SourceSums":
        """Let a digest take the place of what was known of its origin."""
        sums, summaries = self.sums.copy(), self.summaries.copy()
        learnt, came = self.learnt.copy(), self.came.copy()
        sums[place], summaries[place] = unpacked(digest.sums), digest.summaries
        learnt[place], came[place] = digest.count, now
        if isinstance(self._forget, Window):  # of so many as there were, it holds the last
            sums[place, 0] = min(digest.count, self._forget.rounds)
        return replace(self, sums=sums, summaries=summaries, learnt=learnt, came=came)

    def with_source(self, other: "SourceSums") -> "SourceSums":
        """Add what is known of one source to what is known of the same one: both of one source."""
        newest = np.maximum(self.newest, other.newest)
        pairs = zip(self._aged(newest), other._aged(newest), strict=True)
        (sums, summaries) = (one + another for one, another in pairs)
        both = replace(
            self,
            sums=sums,
            summaries=summaries,
            learnt=self.learnt + other.learnt,
            newest=newest,
            held=(*self.held, *other.held),
        )
        return both.expired(0, 0)

    def with_sources(
        self, places: IntArray, known: "Sequence[SourceSums]", now: int, me: int
    ) -> "SourceSums":
        """Let sums of single sources take the place of what was known of these: (k,), k.

        Args:
            places: Of the sources.
            known: What is known of each, as a single source.
            now: The agent's own round.
            me: The agent's own place.
        """
        sums, summaries, learnt = self.sums.copy(), self.summaries.copy(), self.learnt.copy()
        newest, came = self.newest.copy(), self.came.copy()
        replaced = set(places.tolist())
        held = [pair for pair in self.held if pair[0] not in replaced]
        for place, one in zip(places.tolist(), known, strict=True):
            if one.newest[0] > newest[place] or not learnt[place]:
                came[place] = now
            sums[place], summaries[place] = one.sums[0], one.summaries[0]
            learnt[place], newest[place] = one.learnt[0], one.newest[0]
            held += [(place, observation) for _, observation in one.held]
        new = replace(self, sums=sums, summaries=summaries, learnt=learnt, newest=newest, came=came)
        return replace(new, held=tuple(held)).expired(now, me)

    def expired(self, now: int, me: int) -> "SourceSums":
        """Drop what has left the window, and add up what is in it, source by source."""
        forget = self._forget
        if not isinstance(forget, Window):
            return self
        newest, silence = self.newest.tolist(), self.silence(now, me).tolist()
        held = tuple(
            (place, one)
            for place, one in self.held
            if newest[place] - one.round + silence[place] < forget.rounds
        )
        sums, summaries = self.sums.copy(), self.summaries.copy()
        for place in {place for place, _ in self.held}:  # digests are of a window as they are
            mine = [one for other, one in held if other == place]
            sums[place], summaries[place] = self.summariser.total(*laid_out(mine))
        return replace(self, held=held, sums=sums, summaries=summaries)

    def at(self, now: int, me: int) -> tuple[Array, Array]:
        """Return sums and summaries as they have faded by the agent's own round."""
        if self._forget is None:
            return self.sums, self.summaries
        weight = self._weight(self.silence(now, me))
        return _weighted(self.sums, weight), weight[:, None] * self.summaries

    def silence(self, now: int, me: int) -> IntArray:
        """Return for how many of the agent's rounds each source has been silent: (N,)."""
        came = self.came.copy()
        came[me] = self.newest[me]
        return np.maximum(now - came, 0)

    @property
    def _forget(self) -> Any:
        return self.summariser.policy.forget

    def _weight(self, age: IntArray) -> Array:
        if self._forget is None:
            return np.ones(age.shape)
        return np.asarray(self._forget.weight(np.maximum(age, 0)))

    def _dated(self, places: IntArray, rounds: IntArray, now: int, me: int) -> "SourceSums":
        """Count observations of some sources and rounds: (k,), (k,)."""
        learnt, newest, came = self.learnt.copy(), self.newest.copy(), self.came.copy()
        np.add.at(learnt, places, 1)
        np.maximum.at(newest, places, rounds)
        # what is older than what is known does not end a silence
        came[places[(rounds > self.newest[places]) | (self.learnt[places] == 0)]] = now
        return replace(self, learnt=learnt, newest=newest, came=came)

    def _aged(self, newest: IntArray) -> tuple[Array, Array]:
        """Return copies of sums and summaries, faded up to newer rounds: (N,)."""
        if self._forget is None:
            return self.sums.copy(), self.summaries.copy()
        weight = self._weight(newest - self.newest)
        return _weighted(self.sums, weight), weight[:, None] * self.summaries


def _weighted(rows: Array, weight: Array) -> Array:
    """Weigh rows of statistics; how many observations they are of does not fade: (k, ·), (k,)."""
    weighted = weight[:, None] * rows
    weighted[:, 0] = rows[:, 0]
    return weighted
