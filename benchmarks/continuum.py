"""What does a decision on a continuum cost, and how much does it miss?

    python benchmarks/continuum.py run                # a few minutes; all rows, or those named
    python benchmarks/continuum.py table              # the tables of docs/continuum.md

An agent has n observations of an RKHS function of norm 1 on the unit cube (RBF, ℓ = 0.3√d, noise
0.1): half of them uniform, half near its highest point, as a bandit's are. It decides by the upper
bound, λ = 0.1 and η = 0.3. A gap is what its choice lacks to the best bound known, in parts of the
bound's range over the set: by brute force on a grid (in 1 and 2 dimensions, the grid's best then
climbed from), else by 100 times the effort. Times are CPU time, after one decision to warm up.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy

import coopbandits as cb
from coopbandits.agent.beliefs import Beliefs
from coopbandits.agent.continuum import best_point
from coopbandits.agent.gradients import Surface
from coopbandits.decision_sets import DecisionSet
from coopbandits.decision_sets.maximise import climb
from coopbandits.problems.rkhs import Part

RESULTS = Path(__file__).resolve().parent / "results" / "continuum.json"
RIDGE, ETA, NOISE, TRIALS = 0.1, 0.3, 0.1, 5
WIDTH = ETA / np.sqrt(RIDGE)


def unit(dim: int, effort: float = 1.0) -> cb.Box:
    """Return the unit cube."""
    return cb.Box(np.zeros(dim), np.ones(dim), effort=effort)


def simplex(dim: int, effort: float = 1.0) -> cb.Polytope:
    """Return {x ≥ 0, Σx ≤ 1}."""
    return cb.Polytope(np.ones((1, dim)), [1.0], np.zeros(dim), effort=effort)


def drawn(kernel: cb.kernels.Kernel, dim: int, seed: int, support: int = 100) -> Part:
    """Draw a function of norm 1."""
    rng = np.random.default_rng([seed, dim])
    X, weights = rng.random((support, dim)), rng.standard_normal(support)
    return Part(kernel, 0.0, weights / np.sqrt(weights @ kernel(X, X) @ weights), X)


def beliefs_of(
    n: int, own: DecisionSet, seed: int, features: Any = None, length: float = 0.3
) -> Beliefs:
    """Return what an agent with n observations believes."""
    d = own.dim
    kernel = cb.kernels.RBF(length * np.sqrt(d))
    f, rng = drawn(kernel, d, seed), np.random.default_rng([seed, n])
    X = own.sample(rng, n)
    best = X[int(np.argmax(f(X)[0]))]
    near = best + 0.05 * rng.standard_normal((n - n // 2, d))
    X[n // 2 :] = np.array([own.nearest(x) for x in near])
    y = f(X)[0] + NOISE * rng.standard_normal(n)
    policy = cb.KernelUCB(kernel=kernel, ridge=RIDGE, eta=ETA)
    if features is not None:
        policy = cb.Policy(**{**vars(policy), "features": features})
    agent = policy.agent(0, cb.Network.path(1))
    for x, r in zip(X, y, strict=True):
        agent.observe(x, float(r))
    agent.preview(own)  # learns them
    assert agent._beliefs is not None
    return agent._beliefs


def bound(surface: Surface, X: np.ndarray) -> np.ndarray:
    """Return upper bounds."""
    mean, std = surface.believe(X)
    return mean + WIDTH * std


def decided(beliefs: Beliefs, own: DecisionSet, seed: int) -> np.ndarray:
    """Choose as an agent does."""
    act, rng = cb.act.UpperBound(), np.random.default_rng(seed)
    return best_point(own, beliefs, np.empty(0), act, WIDTH, rng)


def brute(surface: Surface, own: DecisionSet) -> float:
    """Return the best bound of a fine grid, climbed from."""
    count = {1: 20_001, 2: 301}[own.dim]
    axes = [np.linspace(low, high, count) for low, high in zip(own.low, own.high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, own.dim)
    grid = grid[own.contains(grid)]
    heights = np.concatenate([bound(surface, part) for part in np.array_split(grid, 40)])

    def rated(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = surface.slopes(X)
        return at.mean + WIDTH * at.std, at.mean_by_x + WIDTH * at.std_by_x

    start = grid[int(np.argmax(heights))][None]
    return max(float(heights.max()), float(bound(surface, climb(own, rated, start))[0]))


def measured(
    n: int,
    make: Callable[..., DecisionSet],
    dim: int,
    *,
    gap: bool = True,
    features: Any = None,
    length: float = 0.3,
) -> dict[str, float]:
    """Time decisions, and tell what they miss."""
    own, seconds, gaps = make(dim), [], []
    for seed in range(TRIALS):
        beliefs = beliefs_of(n, own, seed, features, length)
        surface = beliefs.surface(np.empty(0))
        decided(beliefs, own, seed)
        start = time.process_time()
        chosen = decided(beliefs, own, seed)
        seconds.append(time.process_time() - start)
        if not gap:
            continue
        reached = float(bound(surface, chosen[None])[0])
        if dim <= 2:
            best = brute(surface, own)
        else:
            hard = decided(beliefs, make(dim, effort=100.0), seed + 1000)
            best = float(bound(surface, hard[None])[0])
        spread = bound(surface, own.sample(np.random.default_rng(0), 512))
        gaps.append(max(best - reached, 0.0) / float(max(best, spread.max()) - spread.min()))
    row = {"ms": 1e3 * float(np.median(seconds))}
    return {**row, "gap": float(np.max(gaps)), "median gap": float(np.median(gaps))} if gap else row


def boxes() -> dict[str, Any]:
    """Decisions on the unit cube: milliseconds, and the largest and median gap of 5 trials."""
    shapes = [(50, 1), (200, 1), (50, 2), (200, 2), (200, 3), (200, 5), (200, 10), (200, 20)]
    smooth = {f"n = {n}, d = {d}": measured(n, unit, d) for n, d in shapes}
    rough = {
        f"ℓ = 0.1√d, n = 200, d = {d}": measured(200, unit, d, length=0.1) for d in (1, 2, 3, 5)
    }
    return {**smooth, **rough}


def growth() -> dict[str, Any]:
    """Decisions on the unit cube of 3 dimensions: milliseconds as observations grow."""
    exact = {f"n = {n}": measured(n, unit, 3, gap=False) for n in (50, 200, 500, 1000, 2000)}
    sums = measured(2000, unit, 3, gap=False, features=cb.features.Fourier(64))
    return {**exact, "n = 2000, features=Fourier(64)": sums}


def polytopes() -> dict[str, Any]:
    """Decisions on {x ≥ 0, Σx ≤ 1}: milliseconds, and the largest and median gap of 5 trials."""
    return {f"n = {n}, d = {d}": measured(n, simplex, d) for n, d in [(50, 2), (200, 3), (200, 5)]}


def certificates() -> dict[str, Any]:
    """Certified maxima on the unit cube, 100 contexts, tolerance 1e-6: median of 5 functions."""
    kernels: dict[str, cb.kernels.Kernel] = {
        "RBF(0.3)": cb.kernels.RBF(0.3),
        "Matern(2.5, 0.3)": cb.kernels.Matern(2.5, 0.3),
        "Matern(0.5, 0.3)": cb.kernels.Matern(0.5, 0.3),
    }
    found: dict[str, Any] = {}
    for name, kernel in kernels.items():
        for dim in (1, 2, 3, 4):
            rows = []
            for seed in range(TRIALS):
                f, start = drawn(kernel, dim, seed), time.process_time()
                parts = f.optimum(unit(dim), 1e-6).parts
                rows.append((time.process_time() - start, parts))
            seconds, parts = np.median(rows, axis=0)
            found[f"{name}, d = {dim}"] = {"seconds": float(seconds), "parts": int(parts)}
    return found


ROWS: dict[str, Callable[[], dict[str, Any]]] = {
    "boxes": boxes,
    "growth": growth,
    "polytopes": polytopes,
    "certificates": certificates,
}


def run(names: list[str]) -> None:
    """Measure some rows and write them down."""
    done = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in names or ROWS:
        print(name, flush=True)
        done[name] = {"work": ROWS[name].__doc__, "measured": ROWS[name]()}
        done["machine"] = (
            f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
            f"numpy {np.__version__}, scipy {scipy.__version__}"
        )
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def table() -> None:
    """Print what has been measured."""
    done = json.loads(RESULTS.read_text(encoding="utf-8"))
    for name in ROWS:
        if name in done:
            rows = done[name]["measured"]
            columns = list(next(iter(rows.values())))
            print(f"{done[name]['work']}\n\n| | {' | '.join(columns)} |")
            print("|---" * (len(columns) + 1) + "|")
            for work, facts in rows.items():
                print(f"| {work} | {' | '.join(f'{facts[key]:.3g}' for key in columns)} |")
            print()
    print(done["machine"])


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []])
    options = parser.parse_args()
    if options.command == "table":
        table()
    else:
        run(options.rows)


if __name__ == "__main__":
    main()
