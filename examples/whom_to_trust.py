"""Whom does an agent come to trust? Four tasks, forty agents, and nobody says who shares a task.

Plays the same problem with K_z learnt from evidence and from mean embeddings; prints how each
comes near the truth, and draws it. One run each, with seed 0.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import coopbandits as cb
from coopbandits.lab import similarity_figure, similarity_table

AGENTS, TASKS, NOISE, ETA = 40, 4, 0.3, 0.3


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description="Whom does an agent come to trust?")
    parser.add_argument("--rounds", type=int, default=60, help="default 60")
    parser.add_argument("--out", type=Path, default=Path("out/trust"), help="default out/trust")
    options = parser.parse_args()
    if options.rounds < 10:
        parser.error("--rounds must be at least 10")
    options.out.mkdir(parents=True, exist_ok=True)
    console = Console()
    network = cb.Network.erdos_renyi(AGENTS, 0.7, seed=0)
    tasks = np.random.default_rng(0).integers(TASKS, size=AGENTS)
    problem = cb.problems.clustered_linear(network, clusters=tasks, noise=NOISE, seed=0)
    ways: dict[str, cb.similarity.Similarity] = {
        "evidence": cb.similarity.Evidence(),
        "mean embedding, σ_z = 0.5": cb.similarity.MeanEmbedding(bandwidth=0.5),
    }
    for name, similarity in ways.items():
        policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=similarity, eta=ETA)
        run = cb.play(problem, policy, rounds=options.rounds, seed=0)
        table = Table(title=f"{name}: regret per agent {run.regret_per_agent[-1]:.2f}")
        for column in ("round", "K_z of pairs alike", "of strangers", "correlation with truth"):
            table.add_column(column, justify="right")
        marks = [t for t in (2, 5, 10, 20, 40) if t < options.rounds]
        for row in similarity_table(run, problem, rounds=[*marks, options.rounds]):
            table.add_row(
                str(row.round),
                f"{row.alike:.2f}",
                f"{row.strangers:.2f}",
                f"{row.correlation:.2f}",
            )
        console.print(table)
        file = options.out / f"{name.split(',')[0].replace(' ', '-')}.png"
        similarity_figure(
            run,
            problem,
            rounds=[3, 6, 15, options.rounds] if options.rounds > 15 else None,
            title=f"{AGENTS} agents, {TASKS} tasks: K_z learnt by {name}",
            file=file,
        )
        console.print(f"Figure: {file}\n")


if __name__ == "__main__":
    main()
