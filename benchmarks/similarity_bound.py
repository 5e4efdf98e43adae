"""How much of the gap in (a) could be closed, with Eager, by who knew what no agent is told?

    python benchmarks/similarity_bound.py told er200           # about the true groups
    python benchmarks/similarity_bound.py drawn facebook200    # noise and prior; and drew for long

The setting is that of benchmarks/similarity.py. `told` is for the reported seeds, and compares with
what has been measured there; `drawn`, which takes many minutes a trial, for seeds that are not
reported.
"""

import argparse
import os
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import coopbandits as cb
import similarity as scenarios
from coopbandits.act import first_best
from coopbandits.similarity import evidence, partitions
from coopbandits.similarity.evidence import EvidenceLearner
from coopbandits.similarity.groups import Groups

# What `drawn` goes beyond the default: walkers, and a ρ below 1 is as good as impossible.
WALKERS, SHARES = 8, np.array([1.0, 1e-9, 1e-9, 1e-9])
SEED, TRIALS = 7000, 2


def true_groups(setting: str, seed: int) -> np.ndarray:
    """Return the cluster of each agent in (a)."""
    problem = scenarios.problem_of("a", scenarios.SETTINGS[setting], seed)
    assert problem.similarity is not None
    alike = problem.similarity.matrix(problem.network)
    return np.unique(alike, axis=0, return_inverse=True)[1].reshape(-1)


def started_from_the_truth(setting: str, seed: int) -> float:
    """Play (a) with evidence that starts from the true groups, which no agent knows."""
    labels = true_groups(setting, seed)

    def start(learner: EvidenceLearner) -> np.ndarray:
        G = learner.similarity.groups
        return 0.98 * np.eye(G)[labels] + 0.02 / G

    def settle(groups: Groups) -> Groups:  # not annealed: that would melt what it starts from
        return groups._swept([1.0] * 5)

    with patch.object(EvidenceLearner, "_start", start), patch.object(Groups, "anneal", settle):
        return scenarios.trial(setting, "a", "eager", "groups", seed)


def told_the_others(setting: str, seed: int) -> float:
    """Play (a) with evidence that is told everyone's group but the asking agent's own.

    It weighs the groups that it hears of, each as likely beforehand, and being in none of them.
    """
    labels = true_groups(setting, seed)
    clusters = labels.max() + 1

    def start(learner: EvidenceLearner) -> np.ndarray:
        return np.eye(learner.similarity.groups)[labels]

    def as_it_is(groups: Groups) -> Groups:
        return groups

    def judge(groups: Groups, alone: np.ndarray, me: np.ndarray) -> tuple[np.ndarray, ...]:
        views, places = np.arange(len(me)), groups.r.copy()
        there = groups.r.sum(axis=1) > 0
        with np.errstate(divide="ignore"):
            none = alone[views, me] + np.log(clusters - there.sum(axis=1))
        odds = np.hstack([np.where(there, groups._joining(me), -np.inf), none[:, None]])
        odds = np.exp(odds - odds.max(axis=1, keepdims=True))
        places[views, me] = (odds / odds.sum(axis=1, keepdims=True))[:, :-1]
        return places, np.zeros(len(me)), np.zeros(len(me))

    told = {"anneal": as_it_is, "merge": as_it_is, "polish": as_it_is, "judge": judge}
    with patch.object(EvidenceLearner, "_start", start), patch.multiple(Groups, **told):
        return scenarios.trial(setting, "a", "eager", "groups", seed)


def bayes_told_the_others(setting: str, seed: int) -> float:
    """Play (a) by exact Bayes, told everyone's group but the own, the true prior and the noise.

    There is no K_z in it: what an agent believes is a mixture with a part for each group that it
    may be in, and it takes the action whose mean and deviation under the mixture add up to most.
    """
    given, labels = scenarios.SETTINGS[setting], true_groups(setting, seed)
    problem = scenarios.problem_of("a", given, seed)
    V, G = len(labels), int(labels.max()) + 1
    prior = (
        scenarios.NOISE**2 * scenarios.DIM * np.eye(scenarios.DIM)
    )  # tasks have length 1: variance 1/d in each direction
    # after so many rounds, of whom in each group does each agent hear? (V, G, V)
    hears = {
        hops: (problem.network.distances == hops)[:, None, :] * np.eye(G)[labels].T
        for hops in range(1, given.ttl + 1)
    }
    S, b = (
        np.zeros((scenarios.ROUNDS + 1, V, scenarios.DIM * scenarios.DIM)),
        np.zeros((scenarios.ROUNDS + 1, V, scenarios.DIM)),
    )
    regret = 0.0
    for t in range(1, scenarios.ROUNDS + 1):
        P, c = (sum(who @ sums[max(t - hops, 0)] for hops, who in hears.items()) for sums in (S, b))
        P = P.reshape(V, G, scenarios.DIM, scenarios.DIM) + prior
        whole, h = P + S[t - 1].reshape(V, 1, scenarios.DIM, scenarios.DIM), c + b[t - 1][:, None]
        odds = log_evidence(whole, h) - log_evidence(P, c)
        odds = np.exp(odds - odds.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        offer = problem.round(t, seed)
        X = offer.contexts.reshape(V, 1, scenarios.ACTIONS, scenarios.DIM)
        means = (X @ np.linalg.solve(whole, h[..., None]))[..., 0]  # (V, G, actions)
        variances = scenarios.NOISE**2 * (X @ np.linalg.inv(whole) * X).sum(axis=-1)
        mean = (odds[..., None] * means).sum(axis=1)
        square = (odds[..., None] * (variances + means**2)).sum(axis=1)
        bounds = mean + np.sqrt(np.maximum(square - mean**2, 0.0))
        rows = offer.starts + first_best(bounds)
        best = np.maximum.reduceat(offer.expected, offer.starts)
        regret += float((best - offer.expected[rows]).mean())
        x, y = offer.contexts[rows], offer.rewards[rows]
        S[t] = S[t - 1] + (x[:, :, None] * x[:, None, :]).reshape(V, -1)
        b[t] = b[t - 1] + x * y[:, None]
    return regret


def log_evidence(P: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return ½hᵀP⁻¹h/σ² − ½ log det P: (…, d, d), (…, d) -> (…)."""
    fit = (h * np.linalg.solve(P, h[..., None])[..., 0]).sum(axis=-1)
    return 0.5 * (fit / scenarios.NOISE**2 - np.linalg.slogdet(P)[1])


def drawn_for_long(setting: str, seed: int) -> float:
    """Play (a) with twice the walkers at every decision, told noise, prior, and that ρ is 1."""

    def known(_: object, index: np.ndarray, *__: object) -> tuple[np.ndarray, np.ndarray]:
        noise = np.full(len(index), scenarios.NOISE**2)
        return noise, scenarios.DIM * noise  # tasks have length 1: variance 1/d in each direction

    given = scenarios.SETTINGS[setting]
    problem = scenarios.problem_of("a", given, seed)
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(),
        similarity=cb.similarity.Evidence(refresh="every round"),
        ttl=given.ttl,
        eta=scenarios.ETA,
    )
    with (
        patch.object(evidence, "levels", known),
        patch.multiple(partitions, _WALKERS=WALKERS, SHARES=SHARES),
    ):
        run = cb.play(problem, policy, rounds=scenarios.ROUNDS, seed=seed)
    return float(run.regret_per_agent[-1])


def told(settings: list[str]) -> None:
    """Print how much is closed by who is told about the true groups."""
    done = scenarios.read()
    for setting in settings:
        alone, oracle = (
            np.array([done[setting, "a", policy, name, seed] for seed in range(scenarios.TRIALS)])
            for policy, name in (("any", "alone"), ("eager", "oracle"))
        )
        for play in (started_from_the_truth, told_the_others, bayes_told_the_others):
            found = np.array([play(setting, seed) for seed in range(scenarios.TRIALS)])
            value, half = scenarios.gap_closed(alone, found, oracle)
            name = play.__name__.replace("_", " ")
            print(f"{setting}, (a), {name}: {scenarios.interval(found)}, "
                  f"{value:.0f}% ± {half:.0f}%", flush=True)  # fmt: skip


def drawn(settings: list[str], trials: int) -> None:
    """Print how much is closed by default, and by who draws for long and knows noise and prior."""
    seeds = range(SEED, SEED + trials)
    for setting in settings:
        alone, oracle, ours = (
            np.array([scenarios.trial(setting, "a", "eager", name, seed) for seed in seeds])
            for name in ("alone", "oracle", "evidence")
        )
        best = np.array([drawn_for_long(setting, seed) for seed in seeds])
        for name, found in (("as it is", ours), ("drawn for long", best)):
            value = 100 * (alone - found).sum() / (alone - oracle).sum()
            print(f"{setting}, (a), seeds {seeds[0]} to {seeds[-1]}, {name}: {value:.1f}%",
                  flush=True)  # fmt: skip


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("told", "who is told of the true groups"), ("drawn", "who draws for long")):
        command = commands.add_parser(name, help=text)
        command.add_argument("settings", nargs="+", choices=scenarios.SETTINGS)
        if name == "drawn":
            command.add_argument("--trials", type=int, default=TRIALS)
    options = parser.parse_args()
    if options.command == "told":
        told(options.settings)
    else:
        drawn(options.settings, options.trials)


if __name__ == "__main__":
    main()
