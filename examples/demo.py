"""Fifty agents, a few tasks: what does cooperation bring?

Each agent of a random network faces one of a few linear tasks and hears its neighbours. Four ways
to use what they say: not at all, as if it were one's own, within cliques (Coop-KernelUCB), or from
everyone within reach (Eager-KernelUCB). The last two know which agents share a task.

    python examples/demo.py [--trials 8] [--rounds 80] [--out out/demo]
"""

import argparse
import csv
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from scipy import stats

import coopbandits as cb

mpl.use("Agg")
import matplotlib.pyplot as plt

AGENTS, TTL, NOISE, ETA = 50, 1, 0.3, 0.3
COLOURS = {
    "alone (LinUCB)": "#7f7f7f",
    "naive cooperation": "#d1495b",
    "Coop-KernelUCB": "#2e86ab",
    "Eager-KernelUCB": "#1b998b",
}


@lru_cache
def setting() -> tuple[cb.problems.Simulated, dict[str, cb.Policy]]:
    """Make the problem and the four ways to play it."""
    network = cb.Network.erdos_renyi(AGENTS, 0.15, seed=0)
    problem = cb.problems.clustered_linear(network, ttl=TTL, dim=10, actions=8, noise=NOISE, seed=0)
    kernel, similarity = cb.kernels.Linear(), problem.similarity
    assert similarity is not None
    policies = [
        cb.LinUCB(eta=ETA),
        cb.NaiveCooperation(ttl=TTL, eta=ETA),
        cb.CoopKernelUCB(kernel=kernel, similarity=similarity, ttl=TTL, eta=ETA),
        cb.EagerKernelUCB(kernel=kernel, similarity=similarity, ttl=TTL, eta=ETA),
    ]
    return problem, dict(zip(COLOURS, policies, strict=True))


def trial(name: str, rounds: int, seed: int) -> npt.NDArray[np.float64]:
    """Play one way once; return the cumulative regret per agent: (T,)."""
    problem, policies = setting()
    return cb.play(problem, policies[name], rounds=rounds, seed=seed).regret_per_agent


def half_width(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Half of the 95% t-interval of the mean over trials: (trials, …) -> (…)."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.asarray(stats.t.ppf(0.975, len(values) - 1) * error)


def run_all(console: Console, trials: int, rounds: int) -> dict[str, npt.NDArray[np.float64]]:
    """Play every way in every trial, two at a time: (trials, T) for each."""
    curves = {name: np.empty((trials, rounds)) for name in COLOURS}
    columns = [
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("mean regret {task.fields[regret]:>5}"),
        TimeElapsedColumn(),
    ]
    with ProcessPoolExecutor(2) as pool, Progress(*columns, console=console) as progress:
        bars = {name: progress.add_task(name, total=trials, regret="–") for name in COLOURS}
        finals: dict[str, list[float]] = {name: [] for name in COLOURS}
        # the slow ones first, so that both processes stay busy to the end
        waiting = {
            pool.submit(trial, name, rounds, seed): (name, seed)
            for name in reversed(COLOURS)
            for seed in range(trials)
        }
        for done in as_completed(waiting):
            name, seed = waiting[done]
            curves[name][seed] = done.result()
            finals[name].append(curves[name][seed, -1])
            progress.update(bars[name], advance=1, regret=f"{np.mean(finals[name]):.2f}")
    return curves


def show_table(console: Console, curves: dict[str, npt.NDArray[np.float64]]) -> None:
    """Print final regret per agent, and the difference to working alone, paired by trial."""
    alone = curves["alone (LinUCB)"][:, -1]
    table = Table(title=f"Final regret per agent, mean ± 95% interval of {len(alone)} trials")
    table.add_column("policy")
    table.add_column("regret", justify="right")
    table.add_column("difference to alone, paired", justify="right")
    for name, curve in curves.items():
        final = curve[:, -1]
        gap = final - alone
        table.add_row(
            name,
            f"{final.mean():.2f} ± {half_width(final):.2f}",
            "" if name == "alone (LinUCB)" else f"{gap.mean():+.2f} ± {half_width(gap):.2f}",
        )
    console.print(table)


def draw(curves: dict[str, npt.NDArray[np.float64]], title: str, file: Path) -> None:
    """Draw the regret curves with their 95% bands."""
    figure, axes = plt.subplots(figsize=(7.6, 4.2), dpi=150, layout="constrained")
    for name, curve in curves.items():
        t, mean, half = np.arange(1, curve.shape[1] + 1), curve.mean(axis=0), half_width(curve)
        axes.plot(t, mean, color=COLOURS[name], lw=2)
        axes.fill_between(t, mean - half, mean + half, color=COLOURS[name], alpha=0.2, lw=0)
        axes.annotate(
            name,
            (t[-1], mean[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[name],
            weight="bold",
        )
    axes.set(xlabel="round", ylabel="cumulative regret per agent", title=title)
    axes.set_xlim(0, curve.shape[1])
    axes.set_ylim(0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description="What does cooperation bring to fifty agents?")
    parser.add_argument("--trials", type=int, default=8, help="at least 2 (default 8)")
    parser.add_argument("--rounds", type=int, default=80, help="default 80")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="default out/demo")
    options = parser.parse_args()
    if options.trials < 2 or options.rounds < 1:
        parser.error("an interval needs --trials of at least 2, and --rounds of at least 1")
    console = Console()
    problem, _ = setting()
    tasks = len(set(problem.similarity.labels.tolist()))  # type: ignore[union-attr]
    console.print(
        f"{AGENTS} agents, {len(problem.network.edges)} edges, {tasks} tasks, "
        f"{options.rounds} rounds, {options.trials} trials (seeds 0 … {options.trials - 1})"
    )
    curves = run_all(console, options.trials, options.rounds)
    show_table(console, curves)
    figure = options.out / "regret.png"
    draw(
        curves,
        f"{AGENTS} agents, {tasks} tasks: mean of {options.trials} trials, 95% bands",
        figure,
    )
    with (options.out / "regret.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["policy", "seed", "round", "cumulative regret per agent"])
        writer.writerows(
            [name, seed, t, f"{value:.6f}"]
            for name, curve in curves.items()
            for seed, values in enumerate(curve)
            for t, value in enumerate(values, start=1)
        )
    console.print(f"Figure: {figure}\nNumbers: {options.out / 'regret.csv'}")


if __name__ == "__main__":
    main()
