"""How sharp are the widths? Each against `SelfNormalised`: its size on one run, and its regret.

    python benchmarks/widths.py    # under a minute of one core; the table of docs/widths.md

The paper's setup 2: RBF kernels, d = 3, 8 actions a round, noise R = 0.3, B = 1, δ = 0.05, 12
agents of an Erdős-Rényi network (p = 0.3), Eager-KernelUCB with γ = 1 and K_z known, 60 rounds, at
ridge λ = 1 and λ = R². Widths are compared at what all agents know in the last round of a run with
`SelfNormalised`; regrets are of runs of their own. Seeds 0 … 9, mean ± 95% interval of the ratio.
"""

import argparse
import os
from dataclasses import replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

import coopbandits as cb

AGENTS, DIM, ACTIONS, NOISE, NORM, DELTA = 12, 3, 8, 0.3, 1.0, 0.05
WIDTHS: dict[str, cb.width.Width] = {
    "SelfNormalised": cb.width.SelfNormalised(NORM, NOISE, DELTA),
    "Mixture": cb.width.Mixture(NORM, NOISE, DELTA),
    "InformationGain": cb.width.InformationGain(NORM, NOISE, DELTA),
    "Srinivas": cb.width.Srinivas(NORM, DELTA),
}


def ratios(ridge: float, seed: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return each width's size and regret, in parts of `SelfNormalised`."""
    network = cb.Network.erdos_renyi(AGENTS, 0.3, seed=seed)
    problem = cb.problems.kernel(
        network, dim=DIM, actions=ACTIONS, noise=NOISE, norm=NORM, seed=seed
    )
    assert problem.kernel is not None
    base = cb.EagerKernelUCB(
        kernel=problem.kernel,
        similarity=problem.similarity,
        ridge=ridge,
        width=WIDTHS["SelfNormalised"],
    )
    runs = {
        name: cb.play(problem, replace(base, width=width), rounds, seed=seed)
        for name, width in WIDTHS.items()
    }
    first = runs["SelfNormalised"]
    # with γ = 1 an agent knows all of its neighbourhood's observations one round later
    gains = cb.theory.run_gains(problem, base, first, seed=seed, of="neighbourhoods").gains[-2]
    heard = np.array([len(network.neighbourhood(v, 1)) for v in range(AGENTS)])
    sizes = {
        name: width.factor(
            logdet=2 * gains,
            count=heard * (rounds - 1),
            ridge=ridge,
            agents=np.full(AGENTS, AGENTS),
        ).mean()
        for name, width in WIDTHS.items()
    }
    return {
        name: (
            float(sizes[name] / sizes["SelfNormalised"]),
            float(runs[name].regret.sum() / first.regret.sum()),
        )
        for name in WIDTHS
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How sharp are the widths?")
    parser.add_argument("--seeds", type=int, default=10, help="default 10")
    parser.add_argument("--rounds", type=int, default=60, help="default 60")
    options = parser.parse_args()
    print("| λ | width | w, in parts of SelfNormalised | regret, in parts of SelfNormalised |")
    print("|---|---|---|---|")
    for ridge, shown in [(1.0, "1"), (NOISE**2, "R²")]:
        found = [ratios(ridge, seed, options.rounds) for seed in range(options.seeds)]
        for name in WIDTHS:
            each = np.array([row[name] for row in found])
            n = len(each)
            half = stats.t.ppf(0.975, n - 1) * each.std(axis=0, ddof=1) / np.sqrt(n)
            cells = [f"{m:.2f} ± {h:.2f}" for m, h in zip(each.mean(axis=0), half, strict=True)]
            print(f"| {shown} | `{name}` | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
