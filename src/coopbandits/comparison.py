"""Which of several policies is better, and how sure is that? Runs paired by seed.

Policies that play with one seed face the same contexts and noise, so what one loses more than
another differs less from seed to seed than what either loses. Intervals are Student's, over seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from coopbandits.arrays import (
    Array,
    as_choice,
    as_count,
    as_number,
    as_seed,
    frozen,
    is_listing,
    is_whole,
    short,
)
from coopbandits.engines import Algorithm
from coopbandits.errors import ParameterError
from coopbandits.frames import frame
from coopbandits.plots import draw_curve, finish, regret_axes
from coopbandits.policy import Policy
from coopbandits.problems.continuum import Continuum
from coopbandits.problems.problem import Problem
from coopbandits.protocol.links import Links
from coopbandits.run import play

if TYPE_CHECKING:
    from coopbandits.frames import DataFrame
    from coopbandits.plots import Axes

MEASURES = ("regret", "reward", "messages", "bytes")


@dataclass(frozen=True)
class Mean:
    """A mean and half of its interval (Student's t over trials; NaN for one trial)."""

    value: float
    half: float

    def __str__(self) -> str:
        # a mean has as many decimals as its interval has meaning
        digits = 1 if abs(self.value) >= 100 else 2
        if np.isnan(self.half):
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} ± {self.half:.{digits}f}"

    @property
    def low(self) -> float:
        """Where the interval begins."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """Where the interval ends."""
        return self.value + self.half


def mean_of(values: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Return means over the first axis, and halves of their intervals: t·s/√n, NaN for n = 1."""
    from scipy.special import stdtrit  # noqa: PLC0415 (heavy)

    count = len(values)
    mean = values.mean(axis=0)
    if count < 2:
        return mean, np.full_like(mean, np.nan)
    half = stdtrit(count - 1, (1 + level) / 2) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return mean, half


@dataclass(frozen=True)
class Played:
    """What one policy did with one seed.

    Attributes:
        policy: Its name.
        seed: Of the run.
        regret: Of all rounds, averaged over agents.
        reward: The same of what was earned.
        messages: Sent over an edge in all rounds, copies included.
        bytes: Their size.
        engine: What computed the decisions.
    """

    policy: str
    seed: int
    regret: float
    reward: float
    messages: int
    bytes: int
    engine: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison:
    """Several policies on one problem, with the same seeds.

    Attributes:
        records: One of each policy and seed, seed after seed; `to_frame()` is a table of them.
        curves: (P, S, T) cumulative regret per agent, of each policy and seed; read-only.
        against: With which policy the others are compared, unless said otherwise.
        level: With what probability an interval covers.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.grid(3, 3), noise=0.3)
        >>> policies = {"alone": cb.LinUCB(eta=0.3), "at random": cb.Uniform()}
        >>> comparison = cb.compare(problem, policies, rounds=20, seeds=3)
        >>> comparison.policies, comparison.seeds, comparison.curves.shape
        (('alone', 'at random'), (0, 1, 2), (2, 3, 20))
        >>> more = comparison.differences["at random"]  # regret per agent, paired by seed
        >>> 0 < more.low < more.value < more.high
        True
    """

    records: tuple[Played, ...]
    curves: Array
    against: str
    level: float = 0.95

    @property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies, in order."""
        return tuple(dict.fromkeys(record.policy for record in self.records))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, in order."""
        return tuple(dict.fromkeys(record.seed for record in self.records))

    def values(self, policy: str, of: str = "regret") -> Array:
        """Return a measure of one policy for each seed: (S,).

        Args:
            policy: Its name.
            of: "regret" or "reward" (of all rounds, per agent), "messages" or "bytes".
        """
        as_choice(policy, "policy", self.policies)
        as_choice(of, "of", MEASURES)
        return np.array([float(getattr(r, of)) for r in self.records if r.policy == policy])

    def mean(self, policy: str, of: str = "regret") -> Mean:
        """Return the mean of a measure over seeds, with its interval."""
        value, half = mean_of(self.values(policy, of), self.level)
        return Mean(float(value), float(half))

    def difference(self, policy: str, against: str | None = None, of: str = "regret") -> Mean:
        """Return by how much more one policy has than another, paired by seed, with its interval.

        Of regret, below 0 is better. With one seed there is no interval (`half` is NaN).

        Args:
            policy: The one.
            against: The other; the comparison's own, if not given.
            of: As in `values`.
        """
        other = self.against if against is None else against
        value, half = mean_of(self.values(policy, of) - self.values(other, of), self.level)
        return Mean(float(value), float(half))

    @property
    def differences(self) -> dict[str, Mean]:
        """By how much more regret per agent each of the other policies has than `against`."""
        return {name: self.difference(name) for name in self.policies if name != self.against}

    def to_frame(self) -> "DataFrame":
        """Return the records as a pandas dataframe, one of each policy and seed a row.

        Example:
            >>> problem = cb.problems.clustered_linear(cb.Network.path(4))
            >>> found = cb.compare(problem, [cb.LinUCB(), cb.Uniform()], rounds=5, seeds=3)
            >>> found.to_frame().groupby("policy").regret.count().to_dict()
            {'LinUCB': 3, 'Uniform': 3}
        """
        names = [field.name for field in fields(Played)]
        return frame({name: [getattr(record, name) for record in self.records] for name in names})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw cumulative regret per agent: means over seeds, and their intervals as bands.

        Args:
            ax: matplotlib axes to draw on; new ones of a new figure, if not given.

        Example:
            >>> problem = cb.problems.clustered_linear(cb.Network.path(4))
            >>> found = cb.compare(problem, [cb.LinUCB(), cb.Uniform()], rounds=5, seeds=3)
            >>> [text.get_text() for text in found.plot().get_legend().get_texts()]
            ['LinUCB', 'Uniform']
        """
        axes = regret_axes(ax)
        for name, curves in zip(self.policies, self.curves, strict=True):
            mean, half = mean_of(curves, self.level)
            draw_curve(axes, mean, mean - half, mean + half, name)
        S = len(self.seeds)
        bands = "1 seed" if S == 1 else f"bands: {100 * self.level:g}% intervals over {S} seeds"
        finish(axes, note=bands)
        return axes

    def table(self) -> str:
        """Lay the comparison out as a text."""
        heads = ("policy", "regret per agent", f"more than {self.against}", "messages")
        rows = [
            (
                name,
                str(self.mean(name)),
                "" if name == self.against else str(self.difference(name)),
                f"{self.mean(name, 'messages').value:,.0f}",
            )
            for name in self.policies
        ]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in (heads, *rows)
        ]
        S, T = len(self.seeds), self.curves.shape[2]
        seeds = "1 seed, so without intervals" if S == 1 else f"{S} seeds"
        paired = "" if S == 1 else f"; ± half of {100 * self.level:g}% intervals, paired by seed"
        return "\n".join([*lines, f"{T} rounds, {seeds}{paired}"])

    def __repr__(self) -> str:
        return self.table()


def compare(
    problem: Problem | Continuum | Callable[[int], Problem | Continuum],
    policies: Sequence[Policy | Algorithm] | Mapping[str, Policy | Algorithm],
    *,
    rounds: int,
    seeds: int | Sequence[int],
    against: str | None = None,
    level: float = 0.95,
    engine: str = "auto",
    memory_limit: float = 8e9,
    links: Links | None = None,
) -> Comparison:
    """Let several policies play one problem with the same seeds.

    Runs follow each other in one process; `coop run` plays many side by side and keeps them.

    Args:
        problem: What the agents face; or a function of the seed that makes it, so that its tasks
            differ from seed to seed too.
        policies: Each with a name of its own (`policy.named("…")`), or by name.
        rounds: T.
        seeds: n for 0 … n − 1, or the seeds themselves.
        against: The name of the policy with which the others are compared; the first, if not given.
        level: With what probability an interval covers.
        engine: As in `play`, for all of them.
        memory_limit: As in `play`.
        links: As in `play`.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.path(4), dim=3)
        >>> policies = [cb.LinUCB(eta=0.3), cb.LinUCB(eta=0.3, ridge=0.1).named("less ridge")]
        >>> comparison = cb.compare(problem, policies, rounds=10, seeds=[7, 8])
        >>> [(played.policy, played.seed) for played in comparison.records]
        [('LinUCB', 7), ('less ridge', 7), ('LinUCB', 8), ('less ridge', 8)]
    """
    by_name = _by_name(policies)
    names = list(by_name)
    first = names[0] if against is None else as_choice(against, "against", names)
    settled, T = _seeds(seeds), as_count(rounds, "rounds")
    confidence = as_number(level, "level")
    if not 0 < confidence < 1:
        raise ParameterError(f"level must be a probability between 0 and 1, got {confidence}")
    fixed = isinstance(problem, Problem | Continuum)
    if isinstance(problem, type) or not (fixed or callable(problem)):
        raise ParameterError(
            f"{short(problem)} is no problem; coopbandits.problems makes some, and a function of "
            "the seed may make one for each"
        )
    records = []
    curves = np.empty((len(names), len(settled), T))
    for s, seed in enumerate(settled):
        faced = problem if isinstance(problem, Problem | Continuum) else problem(seed)
        for p, (name, policy) in enumerate(by_name.items()):
            run = play(
                faced,
                policy,
                rounds=T,
                seed=seed,
                engine=engine,
                memory_limit=memory_limit,
                links=links,
            )
            curves[p, s] = run.regret_per_agent
            records.append(
                Played(
                    policy=name,
                    seed=seed,
                    regret=float(curves[p, s, -1]),
                    reward=float(run.rewards.sum(axis=0).mean()),
                    messages=int(run.messages.sum()),
                    bytes=int(run.bytes.sum()),
                    engine=run.engine,
                )
            )
    return Comparison(
        records=tuple(records), curves=frozen(curves), against=first, level=confidence
    )


def _by_name(policies: object) -> dict[str, Policy | Algorithm]:
    """Check what is to be compared: policies, no two of one name."""
    if not isinstance(policies, Mapping) and not is_listing(policies):
        raise ParameterError(
            f"policies={short(policies)}; expected a list of policies, or a mapping from names to "
            "policies"
        )
    named = isinstance(policies, Mapping)
    values = list(policies.values() if isinstance(policies, Mapping) else policies)  # type: ignore[call-overload]
    if not values:
        raise ParameterError("there is nothing to compare: policies is empty")
    for policy in values:
        if isinstance(policy, type) or not isinstance(policy, Policy | Algorithm):
            raise ParameterError(f"{short(policy)} is no policy; coopbandits.LinUCB() makes one")
    names = list(policies) if isinstance(policies, Mapping) else [p.name for p in values]
    for name in names:
        if not isinstance(name, str):
            raise ParameterError(f"policies has {short(name)} for a name; expected a text")
        if not named and names.count(name) > 1:
            raise ParameterError(
                f"{names.count(name)} policies are called {name!r}; give each a name of its own, "
                "such as policy.named('mine'), or a mapping from names to policies"
            )
    return dict(zip(names, values, strict=True))


def _seeds(seeds: object) -> tuple[int, ...]:
    """Check seeds: a number of them, or different ones."""
    if is_whole(seeds):
        return tuple(range(as_count(seeds, "seeds")))
    if not is_listing(seeds):
        raise ParameterError(
            f"seeds={short(seeds)}; expected how many, or a list of different seeds"
        )
    given = tuple(as_seed(seed) for seed in seeds)  # type: ignore[attr-defined]
    if not given or len(set(given)) < len(given):
        raise ParameterError(
            f"seeds={short(seeds)}; expected at least one, and all different: a seed twice is one "
            "run twice, and no second trial"
        )
    return given
