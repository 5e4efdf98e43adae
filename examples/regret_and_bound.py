"""What is promised, and what happens? Measured regret under its bound, for four algorithms.

Six agents on a grid share one linear function of two numbers and eight fixed actions. Prints regret
and bound at some rounds, and draws both. One run each, with seed 0.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

import coopbandits as cb
from coopbandits.lab import bound_figure

NOISE, DELTA = 0.1, 0.1


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description="What is promised, and what happens?")
    parser.add_argument("--rounds", type=int, default=300, help="default 300")
    parser.add_argument("--out", type=Path, default=Path("out/bound"), help="default out/bound")
    options = parser.parse_args()
    if options.rounds < 10:
        parser.error("--rounds must be at least 10")
    options.out.mkdir(parents=True, exist_ok=True)
    network = cb.Network.grid(2, 3)
    linear = cb.kernels.Linear()
    problem = cb.problems.fully_cooperative(network, kernel=linear, dim=2, noise=NOISE, seed=0)
    assert problem.norm is not None
    width = cb.width.Mixture(norm=problem.norm, noise=NOISE, delta=DELTA)
    # agents alone hold their bounds each; for all of them at once each must be as much surer
    surer = replace(width, delta=DELTA / len(network))
    same = cb.similarity.Same()
    policies = [
        cb.KernelUCB(kernel=linear, width=surer).named("each agent alone"),
        cb.CoopKernelUCB(kernel=linear, similarity=same, width=width).named(
            "Coop-KernelUCB, K_z known"
        ),
        cb.EagerKernelUCB(kernel=linear, similarity=same, width=width).named(
            "Eager-KernelUCB, K_z known"
        ),
        cb.DistKernelUCB(kernel=linear, width=width),
    ]
    found = {}
    marks = [t for t in (10, 30, 100, 300) if t < options.rounds]
    table = Table(title="regret per agent, and its bound")
    for column in ("algorithm", "round", "measured", "bound"):
        table.add_column(column, justify="left" if column == "algorithm" else "right")
    for policy in policies:
        run = cb.play(problem, policy, options.rounds, seed=0)
        found[policy.name] = cb.theory.run_bound(problem, policy, run, seed=0)
        for t in [*marks, options.rounds]:
            both = (found[policy.name].measured[t - 1], found[policy.name].bound[t - 1])
            table.add_row(policy.name, str(t), *(f"{value / len(network):.2f}" for value in both))
    console = Console()
    console.print(table)
    file = options.out / "bound.png"
    bound_figure(found, title="Measured regret under its bound", file=file)
    console.print(f"Figure: {file}")


if __name__ == "__main__":
    main()
