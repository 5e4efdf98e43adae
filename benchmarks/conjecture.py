"""Is Eager-KernelUCB's regret per agent of the order √((γ + α(G_γ))·T/V), as the paper conjectures?

    python benchmarks/conjecture.py run      # a few minutes of one core; resumes
    python benchmarks/conjecture.py report   # slopes (results/conjecture.json) and the figure

Fully cooperative linear problems: one θ for all, six fixed actions on the unit sphere in four
dimensions, noise R = 0.3, K_z = Same, ridge 1, eta 0.3. A rate is a statement about the worst
problem, and which one is worst depends on T, V, γ and α: large gaps are found at once, small ones
cost little. So every cell is played at several norms of θ, multiples of R·√(α/(VT)), and the norm
with the largest mean regret counts. The first round, in which all choose at random, is left out.
Seeds 0 … 9, each with its own θ, actions and noise.

One quantity varies at a time. `chains` are α separate chains of cliques, each γ steps long, so that
γ, α(G_γ) and V can be chosen freely; on a ring γ sets α(G_γ) = ⌊V/(γ+1)⌋.
"""

import argparse
import csv
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

import coopbandits as cb
from coopbandits.palette import COLOURS, QUIET

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
FIGURE = HERE.parent / "docs" / "images" / "conjecture.png"
DIM, ACTIONS, NOISE, ETA, SEEDS, ROUNDS, LONGEST = 4, 6, 0.3, 0.3, 10, 100, 800
MULTIPLES = (2, 4, 8, 16)
FIELDS = ["sweep", "T", "V", "gamma", "alpha", "norm", "seed", "regret"]


def chains(agents: int, gamma: int, alpha: int) -> cb.Network:
    """Make α chains of γ + 1 cliques each: agents of one clique, or of two in a row, are joined."""
    size = agents // alpha
    if size * alpha != agents or size < gamma + 1:
        raise ValueError(f"{agents} agents make no {alpha} chains of {gamma + 1} cliques")
    link = np.arange(size) * (gamma + 1) // size
    joined = [(i, j) for i in range(size) for j in range(i) if link[i] - link[j] <= 1]
    return cb.Network.from_edges(
        [(c * size + i, c * size + j) for c in range(alpha) for i, j in joined], agents=agents
    )


def ring(agents: int) -> cb.Network:
    """Make a ring."""
    return cb.Network.from_edges([(v, (v + 1) % agents) for v in range(agents)])


@dataclass(frozen=True)
class Cell:
    """One network and γ, played for T rounds and looked at in some of them."""

    sweep: str
    V: int
    gamma: int
    alpha: int
    rounds: tuple[int, ...]
    norms: tuple[float, ...]

    @property
    def network(self) -> cb.Network:
        """The agents; α(G_γ) is what the cell says, or the cell is wrong."""
        on_ring = self.sweep in ("T", "ring")
        network = ring(self.V) if on_ring else chains(self.V, self.gamma, self.alpha)
        found = cb.theory.independence_number(network, self.gamma)
        if not found.known or found.least != self.alpha:
            raise ValueError(f"{self} has α between {found.least} and {found.most}")
        return network


def cells() -> list[Cell]:
    """List all cells, the cheap ones first."""
    return [
        *(made("gamma", 40, g, 2) for g in (1, 3, 9, 19)),
        *(made("ring", 40, g, 40 // (g + 1)) for g in (1, 3, 9, 19)),
        *(made("alpha", 64, 1, a) for a in (1, 4, 16, 32)),
        *(made("V", v, 2, 2) for v in (10, 20, 40, 80, 160)),
        # one run for all T, so at norms for the shortest and for the longest
        made("T", 24, 2, 8, [LONGEST // 2**k for k in (4, 3, 2, 1, 0)], (1, *MULTIPLES)),
    ]


def made(
    sweep: str,
    V: int,
    gamma: int,
    alpha: int,
    rounds: Sequence[int] = (ROUNDS,),
    multiples: Sequence[int] = MULTIPLES,
) -> Cell:
    """Make a cell at multiples of R·√(α/(VT)), T in the middle of its rounds."""
    base = NOISE * np.sqrt(alpha / (V * np.sqrt(min(rounds) * max(rounds))))
    return Cell(
        sweep, V, gamma, alpha, tuple(rounds), tuple(float(f"{m * base:.3g}") for m in multiples)
    )


def play(cell: Cell, network: cb.Network, norm: float, seed: int) -> cb.Run:
    """Play one cell at one norm."""
    problem = cb.problems.fully_cooperative(
        network, kernel=cb.kernels.Linear(), dim=DIM, actions=ACTIONS, noise=NOISE, norm=norm,
        support=DIM, seed=seed,
    )  # fmt: skip
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(), similarity=cb.similarity.Same(), ttl=cell.gamma, eta=ETA
    )
    return cb.play(problem, policy, rounds=max(cell.rounds), seed=seed, engine="statistics")


def run(file: Path) -> None:
    """Play what is not in the file yet."""
    done = (
        {tuple(row[key] for key in FIELDS[:-1]) for row in read(file)} if file.exists() else set()
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        if new:
            writer.writerow(FIELDS)
        for cell in cells():
            network = cell.network
            for norm in cell.norms:
                for seed in range(SEEDS):
                    facts = (cell.V, cell.gamma, cell.alpha, norm, seed)
                    if (cell.sweep, max(cell.rounds), *facts) in done:
                        continue
                    each = play(cell, network, norm, seed).regret.mean(axis=1)
                    for T in cell.rounds:
                        writer.writerow([cell.sweep, T, *facts, f"{each[1:T].sum():.6g}"])
                    out.flush()
            print(cell, flush=True)


def read(file: Path) -> list[dict[str, Any]]:
    """Read all rows, numbers as numbers."""
    kinds: list[Callable[[str], Any]] = [str, int, int, int, int, float, int, float]
    with file.open(newline="", encoding="utf-8") as source:
        return [
            {key: kind(row[key]) for key, kind in zip(FIELDS, kinds, strict=True)}
            for row in csv.DictReader(source)
        ]


def worst(rows: list[dict[str, Any]], sweep: str) -> list[dict[str, Any]]:
    """Return for each point of a sweep its regrets, (seeds,), at the norm that is worst there."""
    points: dict[tuple[int, ...], dict[float, dict[int, float]]] = {}
    for row in rows:
        if row["sweep"] == sweep:
            at = (row["T"], row["V"], row["gamma"], row["alpha"])
            points.setdefault(at, {}).setdefault(row["norm"], {})[row["seed"]] = row["regret"]
    found = []
    for (T, V, gamma, alpha), by_norm in sorted(points.items()):
        norm = max(by_norm, key=lambda n: np.mean(list(by_norm[n].values())))
        regrets = np.array([by_norm[norm][seed] for seed in sorted(by_norm[norm])])
        found.append(
            {
                "T": T, "V": V, "gamma": gamma, "alpha": alpha, "norm": norm, "regrets": regrets,
                "rate": float(np.sqrt((gamma + alpha) * T / V)),
                "without γ": float(np.sqrt(alpha * T / V)),
                "inside": min(by_norm) < norm < max(by_norm),
            }
        )  # fmt: skip
    return found


def slope(x: np.ndarray, regrets: np.ndarray) -> tuple[float, float]:
    """Fit log mean regret = a + slope·log x; with half of its 95% interval, by the jackknife.

    x: (points,); regrets: (points, seeds). A seed may well have no regret at all, so means are
    taken before logarithms.
    """
    n = regrets.shape[1]
    others = (regrets.sum(axis=1, keepdims=True) - regrets) / (n - 1)
    without = np.array([exponent(x, mean) for mean in others.T])
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    return exponent(x, regrets.mean(axis=1)), float(stats.t.ppf(0.975, n - 1) * error)


def exponent(x: np.ndarray, y: np.ndarray) -> float:
    """Fit log y = a + exponent·log x: (points,), (points,)."""
    centred = np.log(x) - np.log(x).mean()
    return float(centred @ np.log(y) / (centred @ centred))


SWEEPS = {
    "T": ("T", "rounds T (ring of 24, γ = 2)"),
    "V": ("V", "agents V (two chains, γ = 2)"),
    "gamma": ("gamma", "γ (two chains, V = 40)"),
    "alpha": ("alpha", "α, cliques (V = 64, γ = 1)"),
    "ring": ("gamma", "γ (ring of 40, α = ⌊40/(γ+1)⌋)"),
}


NAMES = {"T": "T", "V": "V", "gamma": "γ", "alpha": "α", "ring": "γ on a ring"}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare each sweep's slope with that of the conjectured rate."""
    found: dict[str, Any] = {}
    for sweep, (key, _) in SWEEPS.items():
        points = worst(rows, sweep)
        x = np.array([float(point[key]) for point in points])
        regrets = np.array([point["regrets"] for point in points])
        measured, half = slope(x, regrets)
        rate = np.array([point["rate"] for point in points])
        without = np.array([point["without γ"] for point in points])
        ratio = regrets.mean(axis=1) / rate
        found[sweep] = {
            key: x.tolist(),
            "regret per agent": regrets.mean(axis=1).round(4).tolist(),
            "worst norm": [point["norm"] for point in points],
            "worst norm inside the grid": [point["inside"] for point in points],
            "slope": round(measured, 3),
            "slope, half of 95% interval": round(half, 3),
            "slope of the conjecture": round(exponent(x, rate), 3),
            "slope without γ": round(exponent(x, without), 3) + 0.0,
            "regret / rate": ratio.round(3).tolist(),
            "regret / rate without γ": (regrets.mean(axis=1) / without).round(3).tolist(),
        }
    return found


def draw(rows: list[dict[str, Any]], found: dict[str, Any], file: Path) -> None:
    """Draw each sweep with the conjectured rate, and all points against it."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (not needed to run)

    figure = Figure(figsize=(11, 6.4), dpi=150, layout="constrained")
    *panels, last = figure.subplots(2, 3).ravel()
    for axis, colour, (sweep, (key, label)) in zip(panels, COLOURS, SWEEPS.items(), strict=False):
        points = worst(rows, sweep)
        x = np.array([float(point[key]) for point in points])
        regrets = np.array([point["regrets"] for point in points])
        mean, n = regrets.mean(axis=1), regrets.shape[1]
        half = stats.t.ppf(0.975, n - 1) * regrets.std(axis=1, ddof=1) / np.sqrt(n)
        rate = np.array([point["rate"] for point in points])
        scale = np.exp(np.mean(np.log(mean / rate)))
        without = np.array([point["without γ"] for point in points])
        plain = np.exp(np.mean(np.log(mean / without)))
        axis.plot(x, scale * rate, "--", color=QUIET, lw=1.5, label="√((γ+α)T/V), scaled")
        axis.plot(x, plain * without, ":", color=QUIET, lw=1.5, label="√(αT/V), scaled")
        # an interval that reaches 0 has no place on a logarithmic axis
        bars = np.array([np.minimum(half, 0.9 * mean), half])
        axis.errorbar(x, mean, bars, color=colour, marker="o", lw=2, capsize=3, label="measured")
        row = found[sweep]
        axis.set(xscale="log", yscale="log", xlabel=label)
        axis.set_title(
            f"slope {row['slope']:.2f} ± {row['slope, half of 95% interval']:.2f}, "
            f"conjecture {row['slope of the conjecture']:.2f}",
            fontsize=10,
        )
        axis.set_xticks(x, [f"{value:g}" for value in x])
        last.scatter(rate, mean, color=colour, label=NAMES[sweep], zorder=3)
    rates = np.concatenate([[p["rate"] for p in worst(rows, sweep)] for sweep in SWEEPS])
    ends = np.array([rates.min(), rates.max()])
    largest = max(max(row["regret / rate"]) for row in found.values())
    last.plot(ends, largest * ends, "--", color=QUIET, lw=1.5, label=f"{largest:.2g}·√((γ+α)T/V)")
    last.set(xscale="log", yscale="log", xlabel="√((γ+α)T/V)")
    last.set_title("all points", fontsize=10)
    last.set_xticks([2, 5, 10, 20], ["2", "5", "10", "20"])
    for axis in (*panels, last):
        axis.set_xticks([], minor=True)
        low, high = axis.get_ylim()
        marks = [v for v in (0.1, 0.2, 0.5, 1, 2, 5, 10) if low <= v <= high]
        axis.set_yticks(marks, [f"{v:g}" for v in marks])
        axis.set_yticks([], minor=True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
        axis.legend(frameon=False, fontsize=8)
    for axis in (panels[0], panels[3]):
        axis.set_ylabel("regret per agent, worst norm")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Software": None})


def main() -> None:
    """Run or report."""
    parser = argparse.ArgumentParser(description="Eager-KernelUCB's conjectured rate, measured.")
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("--results", type=Path, default=RESULTS, help="default benchmarks/results")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="default docs/images/…")
    options = parser.parse_args()
    file = options.results / "conjecture.csv"
    if options.what == "run":
        run(file)
        return
    rows = read(file)
    found = summary(rows)
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (options.results / "conjecture.json").write_text(text + "\n", encoding="utf-8")
    draw(rows, found, options.figure)
    print("| varied | from … to | slope | of √((γ+α)T/V) | of √(αT/V) | regret / √((γ+α)T/V) |")
    print("|---|---|---|---|---|---|")
    for sweep, row in found.items():
        x, ratio = row[SWEEPS[sweep][0]], row["regret / rate"]
        print(
            f"| {NAMES[sweep]} | {min(x):g} … {max(x):g} | {row['slope']:.2f} ± "
            f"{row['slope, half of 95% interval']:.2f} | {row['slope of the conjecture']:.2f} | "
            f"{row['slope without γ']:.2f} | {min(ratio):.2f} … {max(ratio):.2f} |"
        )


if __name__ == "__main__":
    main()
