"""Which policy suits a log, and can the log tell? Replay and off-policy values, side by side.

Each candidate is judged twice, on the same decisions as the others:

    trained   what agents earn that have learnt a log and act on it: doubly robust estimates, agents
              learning from two thirds of the rounds and being judged by the rest, three times
    learning  what agents earn in their first rounds, from nothing: a rejection replay

The verdict goes by the first, whose differences between candidates are paired, decision by
decision, and whose standard errors are of rounds. It names a candidate that is better than each
other one with 95% confidence. Candidates that are not, beside the best, are as good if they lose
less than 5%: with 95% confidence, or because they choose so much alike that by the beliefs of
either the other loses less. If all that are left are as good, the most cautious is named;
else the log cannot tell, and what is said is how long a log could.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopbandits.agent import Agent
from coopbandits.arrays import Array, IntArray, as_count, as_flag, as_seed, frozen
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab.logs.candidates import Candidate, Suited, candidates, suited
from coopbandits.lab.logs.fit import KERNELS
from coopbandits.lab.logs.intervals import Interval
from coopbandits.lab.logs.log import Log, as_log
from coopbandits.lab.logs.off_policy import (
    clusters_of,
    cross_predicted,
    doubly_robust,
    effective_decisions,
    of_taken,
)
from coopbandits.lab.logs.replay import Replay, replay_policy
from coopbandits.lab.logs.started import among, choices, start_agents, taught
from coopbandits.lab.logs.support import check_support, known_propensities
from coopbandits.network import Network
from coopbandits.policy import Policy

_FOLDS = 3
_SURE, _POWER = 1.96, 0.84  # quantiles of 97.5% and of 80%
# What is surely within this of the best is as good.
NEAR = 0.05


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate, and what a log says of it.

    Attributes:
        candidate: What is judged.
        value: What trained agents earn a decision; NaN if the log does not tell.
        interval: Of 95%, for the value.
        gap: How much less that is than the best candidate's.
        gap_interval: Of 95%, for the gap; (0, 0) for the best itself.
        believed: How much is lost by the one of it and the best that the other believes in less, by
            the other's own expectations; small where both choose alike.
        effective: How many decisions of its own the log's are worth.
        replay: What it earned while learning; None if the log is too short to tell.
        refusals: Why something is not known.
        gains: (N,), read-only: the estimate of each decision's value; empty if it is not known.
    """

    candidate: Candidate
    value: float
    interval: Interval
    gap: float
    gap_interval: Interval
    believed: float
    effective: float
    replay: Replay | None
    refusals: tuple[str, ...]
    gains: Array


@dataclass(frozen=True, eq=False)
class Advice:
    """Which policy, kernel, scaling and γ suit a log.

    Attributes:
        verdict: "better" (than each other), "as good" (as any other, and cautious), "unclear"
            (the log cannot tell), or "nothing" (it tells nothing of any).
        named: The candidate that the log tells to take; None if it cannot tell.
        recommended: What to take: what is named; else, of what may be the best, the most cautious.
        rivals: The others that may be the best, where the log cannot tell.
        more: How many more decisions would tell, if differences are as they look; None where the
            log tells, or where no number of them would that is below a hundred times its own.
        judged: All candidates, the most cautious first.
        suited: Kernel and scaling.
        log: What was looked at.
        network: Who hears whom.
    """

    verdict: str
    named: Candidate | None
    recommended: Candidate
    rivals: tuple[Candidate, ...]
    more: int | None
    judged: tuple[Judged, ...]
    suited: Suited
    log: Log
    network: Network

    @property
    def policy(self) -> Policy:
        """What is recommended, to be given to agents or written by `to_toml()`."""
        return self.recommended.policy

    @property
    def logged(self) -> float:
        """The mean reward of the log itself."""
        return float(self.log.rewards.mean())

    @property
    def words(self) -> list[str]:
        """Kernel, verdict and what the log cannot tell, in words: a paragraph each."""
        from coopbandits.lab.logs.advice_words import words_of  # noqa: PLC0415 (it reads this)

        return words_of(self)

    def __repr__(self) -> str:
        return "\n".join(["Advice:", *self.words])

    def of(self, candidate: Candidate) -> Judged:
        """Return what the log says of a candidate."""
        return next(one for one in self.judged if one.candidate is candidate)

    def over(self, candidate: Candidate) -> tuple[float, Interval]:
        """Return how much more a candidate earns than what was logged, with its interval."""
        difference = self.of(candidate).gains - self.log.rewards
        return mean_of(difference, clusters_of(self.log, "round"))

    def agents(self, *, seed: int = 0) -> list[Agent]:
        """Return agents of the recommended policy that have learnt the whole log."""
        return start_agents(self.log, self.policy, network=self.network, seed=seed)


def advise(
    log: Log,
    *,
    network: Network | None = None,
    ttls: Sequence[int] = (1, 2),
    kernels: Sequence[str] = KERNELS,
    uniform: bool = False,
    replays: bool = True,
    most: int = 1_000,
    seed: int = 0,
) -> Advice:
    """Say which policy, kernel, scaling and γ suit a log, or that it cannot tell.

    Refused: logs that other policies cannot be judged from, as by `evaluate_policy`.

    Args:
        log: With propensities, or uniform; contexts and rewards as they are.
        network: Who could hear whom; nobody hears anybody, if not given.
        ttls: γ, each that is to be tried; more than the network's diameter are left out.
        kernels: Which to try.
        uniform: Vouches that logging took every offered action with the same probability.
        replays: Whether to replay candidates from nothing too.
        most: Of an agent's decisions at most so many are used, the latest.
        seed: Of agents and replays.
    """
    as_log(log), as_flag(uniform, "uniform"), as_flag(replays, "replays")
    seed, used = as_seed(seed), latest(log, as_count(most, "most"))
    p = known_propensities(used, uniform=uniform)
    labels, hears = clusters_of(used, "round"), among(used, network)
    gammas = sorted({as_count(ttl, "each of ttls") for ttl in ttls})
    if not gammas:
        raise ParameterError("ttls is empty; expected some numbers of hops, such as (1, 2)")
    gammas = [ttl for ttl in gammas if ttl == gammas[0] or ttl <= hears.diameter]
    best = suited(used, kernels)
    units = used if best.scaling is None else used.scaled(best.scaling)
    q = cross_predicted(units, best.fit)
    found = []
    for one in candidates(used, hears, gammas, best):
        pi, means = _decided_by(used, one, hears, labels, seed)
        w, gains, effective, refusals = of_taken(used, pi) / p, np.empty(0), 0.0, []
        try:
            check_support(used, pi, uniform=uniform)
            effective = effective_decisions(w, labels)
            gains = doubly_robust(used, pi, w, q)
        except InputError as error:
            refusals.append(f"{one.name}: {error}")
        replay = None
        if replays:
            try:
                replay = replay_policy(used, one.policy, network=hears, uniform=uniform, seed=seed)
            except InputError as error:
                refusals.append(f"{one.name}, learning: {error}")
        found.append(_Tried(one, pi, means, gains, effective, replay, tuple(refusals)))
    judged = _judged(found, labels)
    verdict, named, recommended, rivals, more = decided(judged, len(used))
    return Advice(verdict, named, recommended, rivals, more, judged, best, used, hears)


def latest(log: Log, most: int) -> Log:
    """Keep each agent's latest decisions, at most so many."""
    owners = log.owners
    kept = [np.flatnonzero(owners == v)[-most:] for v in range(log.agents)]
    rows = np.sort(np.concatenate(kept))
    if len(rows) == len(log):
        return log
    return log.only(rows)


def _decided_by(
    log: Log, one: Candidate, network: Network, labels: IntArray, seed: int
) -> tuple[list[Array], list[Array]]:
    """Return what agents take, and expect, that have learnt from other rounds: (K,) of each."""
    pi: list[Array] = [np.empty(0)] * len(log)
    means: list[Array] = [np.empty(0)] * len(log)
    for fold in range(_FOLDS):
        judged = labels % _FOLDS == fold
        agents = [one.policy.agent(v, network, seed=seed) for v in range(len(network))]
        taught(agents, log, np.flatnonzero(~judged))
        rows = np.flatnonzero(judged)
        for row, taken, expected in zip(rows, *choices(agents, log, rows), strict=True):
            pi[row], means[row] = taken, expected
    return pi, means


@dataclass(frozen=True, eq=False)
class _Tried:
    """What a candidate did on a log."""

    candidate: Candidate
    pi: list[Array]
    means: list[Array]
    gains: Array
    effective: float
    replay: Replay | None
    refusals: tuple[str, ...]

    def believes_lost(self, other: "_Tried") -> float:
        """Return how much less the other earns a decision, by this one's expectations."""
        pairs = zip(self.means, self.pi, other.pi, strict=True)
        return float(np.mean([means @ (mine - its) for means, mine, its in pairs]))


def _judged(tried: Sequence[_Tried], labels: IntArray) -> tuple[Judged, ...]:
    """Compare candidates with the best of them, decision by decision."""
    values = [one.gains.mean() if len(one.gains) else -np.inf for one in tried]
    top, nothing = tried[int(np.argmax(values))], (np.nan, np.nan)
    judged = []
    for one in tried:
        value, interval, gap, gap_interval, believed = np.nan, nothing, np.nan, nothing, np.nan
        if len(one.gains):
            value, interval = mean_of(one.gains, labels)
            gap, gap_interval = mean_of(top.gains - one.gains, labels)
            believed = max(top.believes_lost(one), one.believes_lost(top))
        judged.append(
            Judged(
                candidate=one.candidate,
                value=value,
                interval=interval,
                gap=gap,
                gap_interval=gap_interval,
                believed=believed,
                effective=one.effective,
                replay=one.replay,
                refusals=one.refusals,
                gains=frozen(one.gains),
            )
        )
    return tuple(judged)


def decided(
    judged: Sequence[Judged], decisions: int
) -> tuple[str, Candidate | None, Candidate, tuple[Candidate, ...], int | None]:
    """Return the verdict, what is named and recommended, what else may be the best, and more.

    Args:
        judged: All candidates, the most cautious first.
        decisions: N, how many they were judged by.
    """
    known = [one for one in judged if len(one.gains)]
    if not known:
        return "nothing", None, judged[0].candidate, (), None
    best = max(known, key=lambda one: one.value)
    rivals = [one for one in known if one is not best and one.gap_interval[0] <= 0]
    if not rivals:
        return "better", best.candidate, best.candidate, (), None
    margin = NEAR * abs(best.value)
    alike = [one for one in known if one is best or one in rivals]
    least = min(alike, key=lambda one: one.candidate.risk).candidate
    open_ = [one for one in rivals if min(one.gap_interval[1], one.believed) >= margin]
    if not open_:
        return "as good", least, least, (), None
    factors = []
    for one in open_:
        error = (one.gap_interval[1] - one.gap) / _SURE
        shown = ((_SURE + _POWER) * error / one.gap) ** 2 if one.gap > 0 else np.inf
        # else the gap may be shown to be small: its upper bound must come below the margin
        room = margin - one.gap
        small = ((_SURE + _POWER) * error / room) ** 2 if room > 0 else np.inf
        factors.append(min(shown, small))
    factor = max(factors)
    more = int(np.ceil((factor - 1) * decisions)) if 1 < factor < 100 else None
    others = tuple(one.candidate for one in alike if one.candidate is not least)
    return "unclear", None, least, others, more


def mean_of(values: Array, labels: IntArray) -> tuple[float, Interval]:
    """Return a mean and its interval of 95%, clusters taken as independent: (N,), (N,)."""
    mean = float(values.mean())
    sums = np.bincount(np.unique(labels, return_inverse=True)[1], weights=values - mean)
    if len(sums) < 2:
        return mean, (-np.inf, np.inf)
    error = float(np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1))) / len(values)
    return mean, (mean - _SURE * error, mean + _SURE * error)
