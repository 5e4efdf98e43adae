"""Is `Evidence()` safe on rewards as they are? Regret of the quiet agents beside working alone.

    python benchmarks/rewards.py run            # resumes where it stopped
    python benchmarks/rewards.py table          # the table of docs/evidence-results.md

Linear tasks of length 1, d = 8, 8 actions a round on the unit sphere, noise 0.3, 100 rounds,
ridge 1, eta 0.3, Erdős-Rényi(14, 0.6), γ = 1; tasks all different, or four clusters of agents.
Scales and liars: ten agents, or nine. Alone (`LinUCB`) has the same ridge, eta and intercept. Only
agents whose own rewards are as above count. Both policies of a trial share network, tasks, contexts
and noise.
"""

import argparse
import csv
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

import coopbandits as cb
from coopbandits.problems.problem import on_sphere

RESULTS = Path(__file__).resolve().parent / "results" / "rewards.csv"
FIELDS = ["kind", "tasks", "method", "seed", "regret"]
DIM, ACTIONS, NOISE, ROUNDS, ETA = 8, 8, 0.3, 100, 0.3
FIRST, TRIALS = 40_000, 40

Change = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Kind:
    """What rewards are like.

    Attributes:
        text: What it is.
        agents: V.
        odd: How many agents, the first ones, do not count: their rewards are on another scale.
        change: Expected rewards (T, V, A) and noise (T, V, A) -> rewards.
        intercept: Of both policies.
    """

    text: str
    change: Change
    agents: int = 14
    odd: int = 0
    intercept: float | None = None


def _plain(expected: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return expected + noise


def _noisy(expected: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noise = noise.copy()
    noise[:, :7] *= 10.0
    return expected + noise


def _clicks(expected: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(expected.shape) < 0.5 + 0.5 * expected).astype(float)


def _own_constants(expected: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return expected + noise + rng.standard_normal((1, expected.shape[1], 1))


def scaled(odd: int, factor: float = 1.0, shift: float = 0.0) -> Change:
    """Let the first agents' rewards be on another scale."""

    def change(expected: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rewards = expected + noise
        rewards[:, :odd] = factor * rewards[:, :odd] + shift
        return rewards

    return change


def _constant_lie(expected: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    rewards = expected + noise
    rewards[:, :2] = 50.0
    return rewards


KINDS = {
    "plain": Kind("plain", _plain),
    "noisy": Kind("noise ten times larger at half of the agents", _noisy, odd=7),
    "loud": Kind("one agent twenty times louder", scaled(1, 20.0), odd=1),
    "clicks": Kind("rewards of 0 or 1 around a half", _clicks, intercept=10.0),
    "constant": Kind("+1 on all rewards", scaled(14, shift=1.0), intercept=10.0),
    "constants": Kind("own constants, N(0, 1)", _own_constants, intercept=10.0),
    **{
        f"{name} {odd}": Kind(f"{odd} of ten agents: {text}", scaled(odd, *how), 10, odd)
        for odd in (2, 3, 5)
        for name, text, how in (
            ("x10", "rewards × 10", (10.0, 0.0)),
            ("x100", "rewards × 100", (100.0, 0.0)),
            ("+50", "rewards + 50", (1.0, 50.0)),
        )
    },
    "liars": Kind("two of nine agree to send +50", _constant_lie, 9, 2),
}


def trial(kind: str, tasks: str, method: str, seed: int) -> float:
    """Play once; return the final regret per agent of those that count."""
    given, rng = KINDS[kind], np.random.default_rng([seed, 11])
    V = given.agents
    network = cb.Network.erdos_renyi(V, 0.6, seed=seed)
    theta = on_sphere(rng, V if tasks == "different" else 4, DIM)
    labels = np.arange(V) if tasks == "different" else rng.integers(4, size=V)
    contexts = on_sphere(rng, ROUNDS * V * ACTIONS, DIM).reshape(ROUNDS, V, ACTIONS, DIM)
    expected = np.einsum("tvad,vd->tva", contexts, theta[labels])
    noise = NOISE * rng.standard_normal(expected.shape)
    rewards = given.change(expected, noise, rng)
    problem = cb.problems.table(network, contexts, rewards, expected)
    common: dict[str, Any] = {"eta": ETA, "ridge": 1.0, "intercept": given.intercept}
    policy = cb.LinUCB(**common)
    if method == "evidence":
        policy = cb.EagerKernelUCB(
            cb.kernels.Linear(), similarity=cb.similarity.Evidence(), **common
        )
    regret = cb.play(problem, policy, rounds=ROUNDS, seed=seed).regret.sum(axis=0)
    return float(regret[given.odd :].mean())


Job = tuple[str, str, str, int]


def read() -> dict[Job, float]:
    """Read what has been measured."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return {
            (row["kind"], row["tasks"], row["method"], int(row["seed"])): float(row["regret"])
            for row in csv.DictReader(file)
        }


def run(kinds: list[str], first: int, trials: int, workers: int) -> None:
    """Play what has not been played, and write each result down at once."""
    done = read()
    jobs = [
        (kind, tasks, method, seed)
        for seed in range(first, first + trials)
        for kind in kinds
        for tasks in ("different", "clusters")
        for method in ("alone", "evidence")
    ]
    missing = [job for job in jobs if job not in done]
    new = not RESULTS.exists()
    with (
        RESULTS.open("a", newline="", encoding="utf-8") as file,
        ProcessPoolExecutor(workers) as pool,
    ):
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        waiting = {pool.submit(trial, *job): job for job in missing}
        for future in as_completed(waiting):
            writer.writerow([*waiting[future], f"{future.result():.6f}"])
            file.flush()


def ratio(evidence: np.ndarray, alone: np.ndarray) -> str:
    """Return Σ evidence/Σ alone with a 95% interval (jackknife)."""
    n = len(alone)
    left_out = (evidence.sum() - evidence) / (alone.sum() - alone)
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    half = float(stats.t.ppf(0.975, n - 1)) * error
    return f"{evidence.sum() / alone.sum():.2f} ± {half:.2f}"


def table(first: int, trials: int) -> None:
    """Print regret beside alone for each kind."""
    done = read()
    print("| rewards | tasks all different | four clusters | trials |\n|---|---|---|---|")
    for kind, given in KINDS.items():
        cells, counts = [], []
        for tasks in ("different", "clusters"):
            seeds = [
                seed
                for seed in range(first, first + trials)
                if all((kind, tasks, m, seed) in done for m in ("alone", "evidence"))
            ]
            counts.append(len(seeds))
            if len(seeds) < 2:
                cells.append("–")
                continue
            values = {
                m: np.array([done[kind, tasks, m, s] for s in seeds]) for m in ("alone", "evidence")
            }
            cells.append(ratio(values["evidence"], values["alone"]))
        print(f"| {given.text} | {' | '.join(cells)} | {min(counts)} |")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.what == "run":
        run(given.kinds or list(KINDS), given.first, given.trials, given.workers)
    else:
        table(given.first, given.trials)


if __name__ == "__main__":
    main()
