"""Twelve sites tune an SVM, each on data of its own, and hear their neighbours.

    make federated          # installs scikit-learn and Optuna into an environment of this example

Each site has real data that never leave it: splits, rotations and class subsets of scikit-learn's
digits, wine and breast-cancer sets. It chooses (log10 C, log10 γ) in a box, fits an SVM, and sees
the share of its validation rows that are right. What travels is the point and that number.

Compared, evaluation by evaluation: random search, a popular tuner alone at each site (Optuna's
TPE), a Gaussian-process bandit alone at each site, the same with naive sharing, and ours, which
learns whom to trust. Writes a table (CSV) and a figure (PNG) into `--out`.
"""

import argparse
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist

import matplotlib.pyplot as plt
import numpy as np
import optuna
from numpy.typing import NDArray
from scipy.ndimage import rotate
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.svm import SVC

import coopbandits as cb
from coopbandits.palette import COLOURS

Array = NDArray[np.float64]
News = cb.Message | cb.Digest
IntArray = NDArray[np.int64]
Tuner = Callable[["list[Site]", int, int], Array]

BOX = cb.Box([-2.0, -5.0], [4.0, 1.0])
NETWORK = cb.Network.grid(3, 4)
# Chosen by marginal likelihood of random evaluations on other splits (seeds 900-902).
KERNEL = 0.25 * cb.kernels.RBF(lengthscale=1.0)
RIDGE, ETA = 0.01, 0.1
GRID = 21
OURS = "Eager-KernelUCB, Evidence"


@dataclass
class Site:
    """One site's data, and what it has tried."""

    name: str
    train: tuple[Array, IntArray]
    validation: tuple[Array, IntArray]
    tried: dict[tuple[float, float], float] = field(default_factory=dict)

    def accuracy(self, point: Array) -> float:
        """Fit an SVM at (log10 C, log10 γ), and return its accuracy on the validation rows."""
        at = (float(point[0]), float(point[1]))
        if at not in self.tried:
            model = SVC(C=10.0 ** at[0], gamma=10.0 ** at[1]).fit(*self.train)
            self.tried[at] = float(model.score(*self.validation))
        return self.tried[at]

    @property
    def chance(self) -> float:
        """How often the most frequent class of the training rows is right."""
        return float(np.bincount(self.train[1]).max() / len(self.train[1]))

    def reward(self, accuracy: float) -> float:
        """Centre an accuracy: 0 is halfway between always the same class and no mistake."""
        return (accuracy - self.chance) / (1 - self.chance) - 0.5


def sites(seed: int) -> list[Site]:
    """Share real data out to twelve sites; another seed, other splits."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,)))
    digits, labels = load_digits(return_X_y=True)
    images = digits.reshape(-1, 8, 8) / 16.0
    part = np.array_split(rng.permutation(len(labels)), 6)

    def turned(rows: IntArray, angle: float) -> Array:
        out = rotate(images[rows], angle, axes=(1, 2), reshape=False, order=1)
        return out.reshape(len(rows), -1)

    def only(classes: Sequence[int]) -> IntArray:
        rows = rng.permutation(np.flatnonzero(np.isin(labels, classes)))
        return rows[: len(part[0])]

    found = [
        _split("digits", turned(part[0], 0), labels[part[0]], rng),
        _split("digits, other rows", turned(part[1], 0), labels[part[1]], rng),
        _split("digits turned by 45°", turned(part[2], 45), labels[part[2]], rng),
        _split("digits turned by 90°", turned(part[3], 90), labels[part[3]], rng),
        *(
            _split(f"digits {name}", turned(rows, 0), labels[rows], rng)
            for name, rows in (("0-4", only(range(5))), ("5-9", only(range(5, 10))))
        ),
    ]
    for name, load in (("breast cancer", load_breast_cancer), ("wine", load_wine)):
        X, y = load(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        for number, rows in enumerate(np.array_split(rng.permutation(len(y)), 3), start=1):
            found.append(_split(f"{name}, part {number}", X[rows], y[rows], rng))
    return found


def _split(name: str, X: Array, y: IntArray, rng: np.random.Generator) -> Site:
    order = rng.permutation(len(y))
    half = len(y) // 2
    return Site(name, (X[order[:half]], y[order[:half]]), (X[order[half:]], y[order[half:]]))


def together(policy: cb.Policy, places: list[Site], evaluations: int, seed: int) -> Array:
    """Let agents tune, one evaluation a site and round; messages move one edge a round."""
    agents = [policy.agent(v, NETWORK, seed=seed) for v in range(len(places))]
    accuracies = np.empty((evaluations, len(places)))
    flying: list[tuple[int, News]] = []
    for t in range(evaluations):
        held: list[tuple[int, News]] = []
        for v, (agent, site) in enumerate(zip(agents, places, strict=True)):
            decision = agent.decide(BOX)
            accuracies[t, v] = site.accuracy(decision.context)
            news = agent.reward(decision.id, site.reward(accuracies[t, v]))
            flying += [(int(to), message) for message in news for to in agent.recipients]
        for to, message in flying:
            onward = agents[to].receive(message)
            held += [(int(next_), copy) for copy in onward for next_ in agents[to].recipients]
        flying = held
    return accuracies


def by_optuna(places: list[Site], evaluations: int, seed: int) -> Array:
    """Let Optuna's default sampler tune each site by itself."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    accuracies = np.empty((evaluations, len(places)))
    for v, site in enumerate(places):
        sampler = optuna.samplers.TPESampler(seed=1000 * seed + v)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for t in range(evaluations):
            trial = study.ask()
            low, high = BOX.low, BOX.high
            point = [trial.suggest_float(name, low[i], high[i]) for i, name in enumerate("Cg")]
            accuracies[t, v] = site.accuracy(np.array(point))
            study.tell(trial, accuracies[t, v])
    return accuracies


def tuners() -> dict[str, Tuner]:
    """All that is compared, by name."""
    policies = {
        "random search": cb.Uniform(),
        "alone": cb.KernelUCB(kernel=KERNEL, ridge=RIDGE, eta=ETA),
        "naive sharing": cb.NaiveCooperation(kernel=KERNEL, ridge=RIDGE, eta=ETA, ttl=2),
        OURS: cb.EagerKernelUCB(
            kernel=KERNEL,
            ridge=RIDGE,
            eta=ETA,
            ttl=2,
            similarity=cb.similarity.Evidence(),
        ),
    }

    def playing(policy: cb.Policy) -> Tuner:
        return lambda places, evaluations, seed: together(policy, places, evaluations, seed)

    return {"Optuna": by_optuna, **{name: playing(policy) for name, policy in policies.items()}}


def shortfalls(evaluations: int, seeds: Sequence[int]) -> dict[str, Array]:
    """Return how far the best so far is from the best of all: (seeds, evaluations, sites) each.

    The best of all is the best that anyone found, or that a grid of 21 × 21 points has.
    """
    found: dict[str, list[Array]] = {name: [] for name in tuners()}
    for seed in seeds:
        places = sites(seed)
        best = np.array([_best_on_a_grid(site) for site in places])
        ways = {name: tune(places, evaluations, seed) for name, tune in tuners().items()}
        best = np.maximum(best, [max(site.tried.values()) for site in places])
        for name, accuracies in ways.items():
            found[name].append(best - np.maximum.accumulate(accuracies, axis=0))
        print(f"seed {seed} done", flush=True)
    return {name: np.array(values) for name, values in found.items()}


def _best_on_a_grid(site: Site) -> float:
    axes = [np.linspace(low, high, GRID) for low, high in zip(BOX.low, BOX.high, strict=True)]
    return max(site.accuracy(np.array([c, gamma])) for c in axes[0] for gamma in axes[1])


def interval(values: Array) -> tuple[float, float]:
    """Return mean and half of its 95% interval, over seeds: (n,)."""
    quantile = NormalDist().inv_cdf(0.975)
    return float(values.mean()), float(quantile * values.std(ddof=1) / np.sqrt(len(values)))


def write(found: dict[str, Array], out: Path) -> None:
    """Write a table of all curves, and a figure."""
    out.mkdir(parents=True, exist_ok=True)
    per_seed = {name: 100 * values.mean(axis=2) for name, values in found.items()}
    with (out / "federated_tuning.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["tuner", "evaluation", "shortfall_percent", "half_interval_95"])
        for name, values in per_seed.items():
            for t in range(values.shape[1]):
                rows.writerow([name, t + 1, *(f"{x:.4f}" for x in interval(values[:, t]))])
    draw({name: [interval(at) for at in values.T] for name, values in per_seed.items()}, out)


def draw(curves: dict[str, list[tuple[float, float]]], out: Path) -> None:
    """Draw mean and half of its interval after each evaluation, for each tuner."""
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    styles = ("--", ":", "-", "-.", "-")
    for (name, means), style, colour in zip(curves.items(), styles, COLOURS, strict=False):
        curve = np.array(means)
        at = np.arange(1, len(curve) + 1)
        axes.plot(at, curve[:, 0], style, color=colour, label=name, lw=2.6 if name == OURS else 1.6)
        low, high = curve[:, 0] - curve[:, 1], curve[:, 0] + curve[:, 1]
        axes.fill_between(at, low, high, color=colour, alpha=0.15)
    axes.set(
        xlabel="evaluations at each site",
        ylabel="accuracy short of the best known, percentage points",
        yscale="log",
        title="Twelve sites tune an SVM, each on its own data",
    )
    axes.legend(frameon=False)
    figure.savefig(out / "federated_tuning.png", dpi=150)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description="Twelve sites tune an SVM together.")
    parser.add_argument("--evaluations", type=int, default=30, help="of each site, default 30")
    parser.add_argument("--seeds", type=int, default=10, help="how many, default 10")
    parser.add_argument("--first-seed", type=int, default=0, help="default 0")
    parser.add_argument("--out", type=Path, default=Path("out/federated"))
    options = parser.parse_args()
    if options.evaluations < 2 or options.seeds < 2:
        parser.error("--evaluations and --seeds must be at least 2")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    found = shortfalls(options.evaluations, seeds)
    write(found, options.out)
    marks = [t for t in (5, 10, 20, 30) if t <= options.evaluations]
    print("percentage points short of the best known accuracy, mean ± half of a 95% interval")
    width = max(len(name) for name in found)
    print("".join([f"{'after evaluation':<{width}}", *(f"{t:>16}" for t in marks)]))
    for name, values in found.items():
        cells = [interval(100 * values[:, t - 1].mean(axis=1)) for t in marks]
        print("".join([f"{name:<{width}}", *(f"{m:>9.2f} ± {h:.2f}" for m, h in cells)]))
    print(f"table and figure are in {options.out}")


if __name__ == "__main__":
    main()
