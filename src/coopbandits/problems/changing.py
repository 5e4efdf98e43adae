r"""Non-stationary problems: linear rewards, one task per cluster, that change in time.

| `kind` | from the round `at` on | K_z |
|---|---|---|
| "jump" | every θ_c is drawn anew | stays |
| "drift" | every θ_c turns by `rate` radians a round | stays |
| "regroup" | who has which task is drawn anew | that of the new clusters |

Up to the change all are `clustered_linear` with the same arguments. Regret is against the best
action of its own round.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np

from coopbandits.arrays import (
    Array,
    IntArray,
    as_choice,
    as_count,
    as_positive,
    as_seed,
    is_listing,
    short,
)
from coopbandits.errors import ParameterError
from coopbandits.kernels import Kernel
from coopbandits.network import Network
from coopbandits.problems.clustered_linear import Tasks, clustered_linear
from coopbandits.problems.noise import Noise
from coopbandits.problems.problem import Round, Simulated, on_sphere
from coopbandits.similarity import Clusters, Given

KINDS = ("jump", "drift", "regroup")
RATE = 0.01


def changing(
    network: Network,
    *,
    kind: str,
    at: int | Sequence[int] | None = None,
    rate: float | None = None,
    ttl: int = 1,
    dim: int = 10,
    actions: int = 8,
    noise: float | Noise = 0.1,
    seed: int = 0,
    clusters: str | Sequence[int] | IntArray | Mapping[str, object] = "centres",
) -> "Changing":
    r"""f_{v,t}(x) = θ_{c,t}ᵀx for v in cluster c of round t, θ and contexts on the unit sphere.

    Args:
        network: The agents.
        kind: "jump", "drift" or "regroup", as above. A drift goes along a great circle through θ_c,
            in a direction of its own for each cluster, so that |θ_c| = 1 stays true. Clusters that
            form anew keep their sizes and tasks, and are never as they were just before.
        at: The first round that is different, at least 2. For a jump or a regrouping it must be
            given, and may be several rounds, a change at each; for a drift it is 2 if not given.
        rate: Of a drift, in radians a round; 0.01 if not given.
        ttl: γ, of which the clusters are made.
        dim: d; at least 2 for a drift.
        actions: How many contexts are offered to each agent in each round.
        noise: A number for Gaussian noise, or a law.
        seed: Of the tasks and of what they change to. (Contexts and noise come from the seed of
            `play`.)
        clusters: As in `clustered_linear`: those of the first round.

    Example:
        >>> problem = cb.problems.changing(cb.Network.path(4), kind="jump", at=6, dim=3)
        >>> cb.play(problem, cb.LinUCB(forget=cb.forget.Window(rounds=4)), rounds=10).regret.shape
        (10, 4)
    """
    as_choice(kind, "kind", KINDS)
    start = clustered_linear(
        network, ttl=ttl, dim=dim, actions=actions, noise=noise, seed=seed, clusters=clusters
    )
    start = replace(start, name=f"clustered linear, {kind}")
    tasks = cast(Tasks, start.expected)
    course: Callable[[int], Simulated]
    if kind == "drift":
        course = _rotation(start, tasks, at, rate, seed)
    else:
        if rate is not None:
            raise ParameterError(f"rate={short(rate)} is of a drift; leave it out of a {kind}")
        since = _rounds(at, kind)
        later = _jumps if kind == "jump" else _regroupings
        course = Stages(since, (start, *later(start, tasks, len(since), seed)))
    return Changing(start=start, course=course, regroups=kind == "regroup")


@dataclass(frozen=True, eq=False, kw_only=True)
class Changing:
    """A problem whose reward functions change in time, all of them known.

    Attributes:
        start: The problem as it is in the first round.
        course: The problem as it is in round t.
        regroups: Whether K_z changes too.

    Example:
        >>> network, clusters = cb.Network.path(4), [0, 0, 1, 1]
        >>> problem = cb.problems.changing(network, kind="regroup", at=6, clusters=clusters)
        >>> problem.at(5).similarity == cb.similarity.Clusters(clusters)
        True
        >>> problem.at(6).similarity == cb.similarity.Clusters(clusters)
        False
    """

    start: Simulated
    course: Callable[[int], Simulated]
    regroups: bool

    def __repr__(self) -> str:
        return f"Changing({self.name}, {len(self.network)} agents, {self.noise})"

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        return self.start.name

    @property
    def network(self) -> Network:
        """The agents."""
        return self.start.network

    @property
    def horizon(self) -> None:
        """None: rounds are drawn as they are needed."""

    @property
    def noise(self) -> Noise:
        """The law of rewards."""
        return self.start.noise

    @property
    def kernel(self) -> Kernel | None:
        """The true K_x."""
        return self.start.kernel

    @property
    def similarity(self) -> Given | None:
        """The true K_z; None where it changes: `at(t).similarity` is that of round t."""
        return None if self.regroups else self.start.similarity

    @property
    def norm(self) -> float | None:
        """The norm B of F, the same in all rounds."""
        return self.start.norm

    def at(self, t: int) -> Simulated:
        """Return the problem that stays as this one is in round t."""
        return self.course(as_count(t, "t"))

    def round(self, t: int, seed: int) -> Round:
        """Draw round t from the seed, whatever was drawn before."""
        return self.at(t).round(t, seed)


@dataclass(frozen=True, eq=False)
class Stages:
    """One problem after the other: the first up to round since[0] − 1, the next from there on."""

    since: tuple[int, ...]
    problems: tuple[Simulated, ...]

    def __call__(self, t: int) -> Simulated:
        """Return the problem of round t."""
        return self.problems[sum(first <= t for first in self.since)]


@dataclass(frozen=True, eq=False)
class Rotation:
    r"""θ_{c,t} = cos(φ)·θ_c + sin(φ)·u_c, φ = rate·(t + 1 − since)⁺, u_c ⊥ θ_c of norm 1.

    Attributes:
        start: The problem with its tasks θ_c.
        tasks: These, and who has which.
        towards: (C, d) the u_c.
        rate: In radians a round.
        since: The first round that is turned.
    """

    start: Simulated
    tasks: Tasks
    towards: Array
    rate: float
    since: int

    def __call__(self, t: int) -> Simulated:
        """Return the problem of round t."""
        turned = self.rate * (t + 1 - self.since)
        if turned <= 0:
            return self.start
        theta = np.cos(turned) * self.tasks.theta + np.sin(turned) * self.towards
        return replace(self.start, expected=replace(self.tasks, theta=theta))


def _rotation(start: Simulated, tasks: Tasks, at: object, rate: object, seed: int) -> Rotation:
    C, d = tasks.theta.shape
    if d == 1:
        raise ParameterError("dim=1 leaves a drift no direction; expected dim of at least 2")
    if is_listing(at):
        raise ParameterError(
            f"at={short(at)}; expected one round, from which on tasks drift, or None for 2"
        )
    since = 2 if at is None else as_count(at, "at", least=2)
    drawn = on_sphere(_change_rng(seed, 1), C, d)
    across = drawn - np.einsum("cd,cd->c", drawn, tasks.theta)[:, None] * tasks.theta
    towards = across / np.linalg.norm(across, axis=1, keepdims=True)
    return Rotation(
        start, tasks, towards, as_positive(RATE if rate is None else rate, "rate"), since
    )


def _jumps(start: Simulated, tasks: Tasks, changes: int, seed: int) -> list[Simulated]:
    """Draw all tasks anew, so many times."""
    return [
        replace(
            start,
            expected=replace(tasks, theta=on_sphere(_change_rng(seed, change), *tasks.theta.shape)),
        )
        for change in range(1, changes + 1)
    ]


def _regroupings(start: Simulated, tasks: Tasks, changes: int, seed: int) -> list[Simulated]:
    """Deal the tasks out anew, so many times; each has as many agents as before."""
    labels = tasks.labels
    if (labels == labels[0]).all():
        raise ParameterError(
            f"all {len(labels)} agents have one task, so that no regrouping changes anything; give "
            "clusters= with at least two labels, or take kind='jump'"
        )
    stages = []
    for change in range(1, changes + 1):
        rng, before = _change_rng(seed, change), labels
        while np.array_equal(labels, before):
            labels = rng.permutation(before)
        similarity = Clusters(labels)
        stages.append(replace(start, expected=replace(tasks, labels=labels), similarity=similarity))
    return stages


def _change_rng(seed: int, change: int) -> np.random.Generator:
    """The random numbers of one change; apart from those of the first tasks and of rounds."""
    return np.random.default_rng(np.random.SeedSequence(as_seed(seed), spawn_key=(0, change)))


def _rounds(at: object, kind: str) -> tuple[int, ...]:
    """Check the rounds of changes: at least one, each after the one before."""
    if at is None:
        raise ParameterError(
            f"kind={kind!r} needs at=, the first round that is different, such as at=51 of 100"
        )
    given = list(at) if is_listing(at) else [at]  # type: ignore[call-overload]
    rounds = tuple(as_count(first, "at", least=2) for first in given)
    if not rounds or any(b <= a for a, b in pairwise(rounds)):
        raise ParameterError(f"at={short(at)}; expected a round, or several in increasing order")
    return rounds
