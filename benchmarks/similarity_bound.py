"""How much of the gap in (a) could be closed, with Eager, by who knew what no agent is told?

    python benchmarks/similarity_bound.py er60 path60
    python benchmarks/similarity_bound.py facebook200 --only bayes_told_how_many

The setting is that of benchmarks/similarity.py, and so are seeds, and what is compared with.
"""

import argparse
import os
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import similarity as scenarios
from coopbandits.act import first_best
from coopbandits.gp.statistics import half
from coopbandits.problems.problem import Round
from coopbandits.similarity.evidence import EvidenceLearner
from coopbandits.similarity.groups import Groups, log_normaliser

# Tasks have length 1, so variance 1/d in each direction: the noise's over that.
PRIOR = scenarios.NOISE**2 * scenarios.DIM
WALKERS = 4


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


def bayes_told_how_many(setting: str, seed: int) -> float:
    """Play (a) by Bayes, told how many clusters there are, the prior of tasks and the noise.

    Nobody is told who is in which cluster: labels are drawn by Gibbs sampling, as likely beforehand
    as the benchmark makes them. Walkers go on from round to round, as data come in one by one.
    """
    given = scenarios.SETTINGS[setting]
    problem = scenarios.problem_of("a", given, seed)
    views = Views(problem.network.distances, given.ttl)
    V, G, N = len(views.agents), given.clusters, views.agents.shape[1]
    rng, every = np.random.default_rng(seed), np.arange(V)
    labels = rng.integers(G, size=(V, WALKERS, N))
    i, j, cell = half(scenarios.DIM)
    m, h = scenarios.DIM, len(i)
    heard = np.zeros((scenarios.ROUNDS + 1, V, h + m + 1))  # what each agent saw, in sums
    regret = 0.0
    for t in range(1, scenarios.ROUNDS + 1):
        rows = heard[np.maximum(t - views.lags, 0), views.agents] * views.there[..., None]
        for _ in range(sweeps_in(t)):
            sweep(views, rows, labels, G, rng)
        mine = rows[every, views.size - 1]
        others = pooled(labels, rows, G) - in_place(labels, views, G) * mine[:, None, None]
        whole = others + mine[:, None, None]
        odds = log_evidence_of(whole) - log_evidence_of(others)
        odds = np.exp(odds - odds.max(axis=2, keepdims=True))
        odds = (odds / odds.sum(axis=2, keepdims=True) / WALKERS).reshape(V, -1)
        whole = whole.reshape(V, -1, h + m + 1)
        offer = problem.round(t, seed)
        P = whole[..., cell] + PRIOR * np.eye(m)
        taken = chosen(offer, odds, P, whole[..., h : h + m])
        regret += lost(offer, taken)
        x, y = offer.contexts[taken], offer.rewards[taken][:, None]
        heard[t] = heard[t - 1] + np.hstack([x[:, i] * x[:, j], x * y, y**2])
    return regret


class Views:
    """Of whom does each agent hear, and how late? Itself last; (V, N), padded."""

    def __init__(self, distances: np.ndarray, ttl: int) -> None:
        near = distances <= ttl
        self.size = near.sum(axis=1)
        # by distance from behind: the agent itself, at 0, comes last
        order = np.argsort(np.where(near, -distances, 1.0), axis=1, kind="stable")
        self.agents = order[:, : self.size.max()]
        self.there = np.arange(self.agents.shape[1]) < self.size[:, None]
        lags = np.maximum(np.take_along_axis(distances, self.agents, axis=1), 1)
        self.lags = np.where(self.there, lags, 1).astype(np.int64)


def sweeps_in(t: int) -> int:
    """How often does everyone choose again in a round? Most is open early on."""
    if t <= 20:
        return 3 * (t > 1)
    return int(t <= 40 or t % 4 == 0)


def pooled(labels: np.ndarray, rows: np.ndarray, G: int) -> np.ndarray:
    """Sum rows (V, N, p) over the agents of each cluster: (V, walkers, G, p)."""
    V, C, N = labels.shape
    inside = (labels[:, :, None] == np.arange(G)[:, None]).astype(np.float64)
    return (inside.reshape(V, C * G, N) @ rows).reshape(V, C, G, -1)


def in_place(labels: np.ndarray, views: Views, G: int) -> np.ndarray:
    """Return 1 where the asking agent is: (V, walkers, G, 1)."""
    own = labels[np.arange(len(labels)), :, views.size - 1]
    return (own[..., None] == np.arange(G))[..., None].astype(np.float64)


def log_evidence_of(sums: np.ndarray) -> np.ndarray:
    """Return the log evidence of clusters with some sums, but for what all share: (…, p) -> (…)."""
    columns = sums.reshape(-1, sums.shape[-1]).T.copy(order="C")
    noise, ratio = np.full((2, columns.shape[1]), [[scenarios.NOISE**2], [PRIOR]])
    return log_normaliser(columns, scenarios.DIM, noise, ratio).reshape(sums.shape[:-1])


def sweep(
    views: Views, rows: np.ndarray, labels: np.ndarray, G: int, rng: np.random.Generator
) -> None:
    """Let every agent of every walker choose its cluster again, one after the other."""
    sums = pooled(labels, rows, G)
    value = log_evidence_of(sums)
    for a in range(labels.shape[2]):
        v, w = (at.reshape(-1) for at in np.indices(labels.shape[:2])[:, views.size > a])
        row, old = rows[v, a], labels[v, w, a]
        back = value[v, w, old]
        sums[v, w, old] -= row
        joined = sums[v, w] + row[:, None]
        k = np.arange(len(v))
        joined[k, old] = sums[v, w, old]  # what it leaves, in the place of what is known
        worth = log_evidence_of(joined)
        value[v, w, old] = worth[k, old]
        worth[k, old] = back
        gain = worth - value[v, w]
        below = np.exp(gain - gain.max(axis=1, keepdims=True)).cumsum(axis=1)
        new = (below < below[:, -1:] * (1.0 - rng.random(len(v)))[:, None]).sum(axis=1)
        labels[v, w, a] = new
        sums[v, w, new] += row
        value[v, w, new] = worth[k, new]


PLAYERS = {
    play.__name__: play
    for play in (
        started_from_the_truth,
        told_the_others,
        bayes_told_the_others,
        bayes_told_how_many,
    )
}


def main() -> None:
    """Print how much is closed, by whom, in some settings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("settings", nargs="+", choices=scenarios.SETTINGS)
    parser.add_argument("--only", nargs="+", choices=PLAYERS, default=list(PLAYERS))
    options = parser.parse_args()
    done = scenarios.read()
    for setting in options.settings:
        alone, oracle = (
            np.array([done[setting, "a", policy, name, seed] for seed in range(scenarios.TRIALS)])
            for policy, name in (("any", "alone"), ("eager", "oracle"))
        )
        for name in options.only:
            found = np.array([PLAYERS[name](setting, seed) for seed in range(scenarios.TRIALS)])
            value, error = scenarios.gap_closed(alone, found, oracle)
            print(f"{setting}, (a), {name.replace('_', ' ')}: {scenarios.interval(found)}, "
                  f"{value:.1f}% ± {error:.1f}%", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
