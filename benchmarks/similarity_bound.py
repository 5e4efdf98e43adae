"""How much of the gap in (a) could be closed, with Eager, by exact Bayes that is told more?

    python benchmarks/similarity_bound.py er60 path60

It is told everyone's group but its own, the noise and the prior of tasks, which no agent knows: a
bound, not a player. The setting is that of benchmarks/similarity.py, and so are seeds, and what is
compared with.
"""

import argparse
import os
from typing import TYPE_CHECKING

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from coopbandits.act import first_best
from coopbandits.problems.problem import Round

if TYPE_CHECKING:
    from benchmarks import similarity as scenarios
else:  # it is run as a script
    import similarity as scenarios

# Tasks have length 1, so variance 1/d in each direction: the noise's over that.
PRIOR = scenarios.NOISE**2 * scenarios.DIM


def true_groups(setting: str, seed: int) -> np.ndarray:
    """Return the cluster of each agent in (a)."""
    problem = scenarios.problem_of("a", scenarios.SETTINGS[setting], seed)
    assert problem.similarity is not None
    alike = problem.similarity.matrix(problem.network)
    return np.unique(alike, axis=0, return_inverse=True)[1].reshape(-1)


def bayes_told_the_others(setting: str, seed: int) -> float:
    """Play (a) by exact Bayes, told everyone's group but the own, the true prior and the noise.

    There is no K_z in it: what an agent believes is a mixture with a part for each group that it
    may be in, and it takes the action whose mean and deviation under the mixture add up to most.
    """
    given, labels = scenarios.SETTINGS[setting], true_groups(setting, seed)
    problem = scenarios.problem_of("a", given, seed)
    V, G = len(labels), int(labels.max()) + 1
    prior = PRIOR * np.eye(scenarios.DIM)
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
        rows = chosen(offer, odds, whole, h)
        regret += lost(offer, rows)
        x, y = offer.contexts[rows], offer.rewards[rows]
        S[t] = S[t - 1] + (x[:, :, None] * x[:, None, :]).reshape(V, -1)
        b[t] = b[t - 1] + x * y[:, None]
    return regret


def chosen(offer: Round, odds: np.ndarray, P: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Take the action whose mean and deviation under a mixture add up to most: rows (V,).

    Weights are N(P⁻¹h, σ²P⁻¹) with some odds: (V, k, d, d), (V, k, d), (V, k).
    """
    X = offer.contexts.reshape(len(P), 1, scenarios.ACTIONS, scenarios.DIM)
    means = (X @ np.linalg.solve(P, h[..., None]))[..., 0]  # (V, k, actions)
    variances = scenarios.NOISE**2 * (X @ np.linalg.inv(P) * X).sum(axis=-1)
    mean = (odds[..., None] * means).sum(axis=1)
    square = (odds[..., None] * (variances + means**2)).sum(axis=1)
    bounds = mean + np.sqrt(np.maximum(square - mean**2, 0.0))
    return np.asarray(offer.starts + first_best(bounds))


def lost(offer: Round, rows: np.ndarray) -> float:
    """Return the mean regret of what was chosen."""
    best = np.maximum.reduceat(offer.expected, offer.starts)
    return float((best - offer.expected[rows]).mean())


def log_evidence(P: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return ½hᵀP⁻¹h/σ² − ½ log det P: (…, d, d), (…, d) -> (…)."""
    fit = (h * np.linalg.solve(P, h[..., None])[..., 0]).sum(axis=-1)
    return 0.5 * (fit / scenarios.NOISE**2 - np.linalg.slogdet(P)[1])


def main() -> None:
    """Print how much is closed in some settings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("settings", nargs="+", choices=scenarios.SETTINGS)
    parser.add_argument("--trials", type=int, default=scenarios.TRIALS)
    options = parser.parse_args()
    done = scenarios.read()
    seeds = range(scenarios.FIRST, scenarios.FIRST + options.trials)
    for setting in options.settings:
        alone, oracle = (
            np.array([done[setting, "a", policy, name, seed] for seed in seeds])
            for policy, name in (("any", "alone"), ("eager", "oracle"))
        )
        found = np.array([bayes_told_the_others(setting, seed) for seed in seeds])
        value, error = scenarios.gap_closed(alone, found, oracle)
        print(f"{setting}, (a): {scenarios.interval(found)}, {value:.1f}% ± {error:.1f}%")


if __name__ == "__main__":
    main()
