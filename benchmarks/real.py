"""What is it worth to listen, on real people and real prompts? Rewards, regret, bytes and the tail.

    python benchmarks/real.py run --data FOLDER    # hours of CPU; resumes where it stopped
    python benchmarks/real.py table                # the tables of docs/real-people.md

Last.fm (HetRec 2011): 60 friends, 60 rounds, 25 artists of which one is right, γ = 2, d = 10 and
25; five circles of friends, 40000 … 40004, each offered artists by four seeds. RouteLLM-MMLU: 57
subjects, 100 prompts each, two models, price 0.1, γ = 1, d = 10, seeds 40000 … 40019. Every method
has ridge 1, and its η (α) is the one of 0.03, 0.1 and 0.3 with the highest mean reward on other
circles of friends (60000, 60001) or other orders of prompts; CLUB's α₂ and SCLUB's α_θ are chosen
beside it of 0.3 and 1, σ_z of MeanEmbedding of 0.3 and 1. Nothing else was tuned.

Data are read from the folder that --data or COOPBANDITS_DATA names, which holds the folders
hetrec2011-lastfm-2k and routellm-mmlu.
"""

import argparse
import csv
import json
import os
import platform
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

import coopbandits as cb
from coopbandits import lab
from coopbandits.lab.networks import VARIABLE

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "real.csv"
FIELDS = ["data", "method", "setting", "seed", "reward", "bytes", "regrets"]
FIRST, TRIALS, CIRCLES, TUNING = 40_000, 20, 5, (60_000, 60_001)
ETAS, APART, BANDWIDTHS = (0.03, 0.1, 0.3), (0.3, 1.0), (0.3, 1.0)

# data set and d -> rounds, γ
SETS = {"lastfm 10": (60, 2), "lastfm 25": (60, 2), "routellm 10": (100, 1)}
FOLDERS = {"lastfm": "hetrec2011-lastfm-2k", "routellm": "routellm-mmlu"}
Job = tuple[str, str, str, int]
Result = tuple[float, float, list[float]]


def folder_of(name: str) -> Path:
    """Return where the files of a data set are; or end with what is missing."""
    given = os.environ.get(VARIABLE)
    if not given:
        raise SystemExit(
            f"no folder of data is named: give --data or {VARIABLE}, a folder that holds "
            f"{' and '.join(FOLDERS.values())} (docs/real-people.md says where they come from)"
        )
    folder = Path(given).expanduser() / FOLDERS[name]
    if not folder.is_dir():
        raise SystemExit(f"{folder} is no folder; expected the files of {name} there")
    return folder


def problem_of(data: str, seed: int) -> cb.problems.Problem:
    """Make the problem of a data set; of Last.fm's, several seeds have one circle of friends."""
    name, dim = data.split()
    if name == "routellm":
        return lab.routellm(folder_of(name), dim=int(dim), rounds=100, seed=seed)
    users = seed if seed in TUNING else FIRST + (seed - FIRST) % CIRCLES
    return lab.lastfm(folder_of(name), dim=int(dim), rounds=60, seed=seed, users=users)


def _eager(similarity: Any) -> Callable[[float, int], cb.Policy]:
    return lambda eta, ttl: cb.EagerKernelUCB(
        cb.kernels.Linear(), similarity=similarity, ttl=ttl, eta=eta
    )


def methods() -> dict[str, Callable[[float, int], Any]]:
    """Return how each method is made of its η and γ."""
    linear, similarity = cb.kernels.Linear(), cb.similarity
    made: dict[str, Callable[[float, int], Any]] = {
        "alone": lambda eta, ttl: cb.LinUCB(eta=eta),
        "naive": lambda eta, ttl: cb.NaiveCooperation(linear, ttl=ttl, eta=eta),
        "one model for all": lambda eta, ttl: cb.Centralised(linear, lag=1, eta=eta),
        "GoB.Lin": lambda eta, ttl: cb.GoBLin(alpha=eta, lag=1),
        "Laplacian": _eager(similarity.Laplacian.by_evidence()),
        "population": _eager(similarity.Population.by_evidence()),
        "Evidence": _eager(similarity.Evidence()),
    }
    for apart in APART:
        made[f"CLUB {apart:g}"] = lambda eta, ttl, a=apart: cb.CLUB(alpha=eta, alpha_2=a, lag=1)
        made[f"SCLUB {apart:g}"] = lambda eta, ttl, a=apart: cb.SCLUB(
            alpha=eta, alpha_theta=a, lag=1
        )
    for sigma in BANDWIDTHS:
        made[f"MeanEmbedding {sigma:g}"] = _eager(similarity.MeanEmbedding(sigma, rank=8))
    return made


# what tables call a method, and whether it hears everyone rather than those within γ hops
ROWS = {
    "alone": False,
    "naive": False,
    "one model for all": True,
    "GoB.Lin": True,
    "CLUB": True,
    "SCLUB": True,
    "Laplacian": False,
    "population": False,
    "MeanEmbedding": False,
    "Evidence": False,
}


def trial(data: str, method: str, eta: str, seed: int) -> Result:
    """Play once; return mean reward, bytes per agent, and each agent's regret."""
    rounds, ttl = SETS[data]
    policy = methods()[method](float(eta), ttl)
    # sufficient statistics take the same decisions as the exact engine, and less time here
    engine = "statistics" if isinstance(policy, cb.Policy) and ttl_heard(policy) else "auto"
    run = cb.play(problem_of(data, seed), policy, rounds=rounds, seed=seed, engine=engine)
    regrets = run.regret.sum(axis=0)
    sent = float(run.bytes.sum()) / len(regrets)
    return float(run.rewards.mean()), sent, [round(float(x), 4) for x in regrets]


def ttl_heard(policy: cb.Policy) -> bool:
    """Tell whether a policy hears its γ-neighbourhood."""
    return isinstance(policy.listen, cb.listen.Neighbourhood)


def read() -> dict[Job, Result]:
    """Read what has been measured."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return {
            (row["data"], row["method"], row["setting"], int(row["seed"])): (
                float(row["reward"]),
                float(row["bytes"]),
                json.loads(row["regrets"]),
            )
            for row in csv.DictReader(file)
        }


def measure(jobs: Iterable[Job], workers: int) -> None:
    """Play what has not been played, and write each result down at once."""
    done = read()
    new = not RESULTS.exists()
    with (
        RESULTS.open("a", newline="", encoding="utf-8") as file,
        ProcessPoolExecutor(workers) as pool,
    ):
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        waiting = {pool.submit(trial, *job): job for job in jobs if job not in done}
        for future in as_completed(waiting):
            reward, sent, regrets = future.result()
            kept = "[]" if waiting[future][3] in TUNING else json.dumps(regrets)
            writer.writerow([*waiting[future], f"{reward:.6f}", f"{sent:.1f}", kept])
            file.flush()


def chosen(done: dict[Job, Result], data: str, row: str) -> tuple[str, str] | None:
    """Return a row's method and η of highest reward on the tuning seeds; None if not measured."""
    found = {
        (method, f"{eta:g}"): np.mean([done[data, method, f"{eta:g}", s][0] for s in TUNING])
        for method in methods()
        for eta in ETAS
        if _is_of(method, row) and all((data, method, f"{eta:g}", s) in done for s in TUNING)
    }
    return max(found, key=lambda key: found[key]) if found else None


def _is_of(method: str, row: str) -> bool:
    return method == row or (method in methods() and method.rpartition(" ")[0] == row)


def run(data: list[str], rows: list[str], trials: int, workers: int) -> None:
    """Choose settings on the tuning seeds, then play the reported ones."""
    measure(
        [
            (name, method, f"{eta:g}", seed)
            for name in data
            for method in methods()
            for eta in ETAS
            for seed in TUNING
            if any(_is_of(method, row) for row in rows)
        ],
        workers,
    )
    done = read()
    measure(
        [
            (name, *best, seed)
            for seed in range(FIRST, FIRST + trials)
            for name in data
            for row in rows
            if (best := chosen(done, name, row))
        ],
        workers,
    )


def mean(values: np.ndarray, digits: int) -> str:
    """Return a mean with its 95% interval."""
    half = float(stats.t.ppf(0.975, len(values) - 1)) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {half:.{digits}f}"


def tail(data: str, mine: dict[int, list[float]], alone: dict[int, list[float]]) -> str:
    """Return the 90th percentile over agents of regret beside working alone.

    Each agent's regret is averaged over the seeds in which it plays first.
    """
    circles = CIRCLES if data.startswith("lastfm") else 1
    ratios = []
    for circle in range(circles):
        seeds = [seed for seed in mine if seed in alone and seed % circles == circle]
        if seeds:
            total = [np.sum([kept[seed] for seed in seeds], axis=0) for kept in (mine, alone)]
            ratios.extend(total[0] / total[1])
    return f"{np.percentile(ratios, 90):.2f}"


def table() -> None:
    """Print the tables of docs/real-people.md."""
    done = read()
    for data in SETS:
        best = {row: chosen(done, data, row) for row in ROWS}
        seen = {
            row: {
                job[3]: result
                for job, result in done.items()
                if job[0] == data and job[1:3] == best[row] and job[3] not in TUNING
            }
            for row in ROWS
        }
        if not seen["alone"]:
            continue
        name, dim = data.split()
        chance = 1 / 25 if name == "lastfm" else None
        over = "reward over chance" if chance else "reward"
        print(f"\n### {'Last.fm' if chance else 'RouteLLM-MMLU'}, d = {dim}\n")
        print(f"| method | setting | {over} | less Evidence's | regret per agent | tail | "
              "bytes per agent | trials |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
        for row, everyone in ROWS.items():
            if len(seen[row]) < 2:
                continue
            method, eta = best[row] or ("", "")
            extra = f", {method.split()[-1]}" if method != row else ""
            rewards = np.array([result[0] for result in seen[row].values()])
            both = [seed for seed in seen[row] if seed in seen["Evidence"]]
            less = np.array([seen[row][s][0] - seen["Evidence"][s][0] for s in both])
            regret = np.array([np.mean(result[2]) for result in seen[row].values()])
            sent = np.mean([result[1] for result in seen[row].values()])
            regrets = [{s: r[2] for s, r in seen[one].items()} for one in (row, "alone")]
            cells = [
                f"**`{row}`**" if row == "Evidence" else row + (" (everyone)" if everyone else ""),
                f"{eta}{extra}",
                mean(rewards - (chance or 0.0), 3),
                "" if row == "Evidence" or len(both) < 2 else mean(less, 3),
                mean(regret, 2),
                "" if row == "alone" else tail(data, *regrets),
                f"{sent:,.0f}",
                str(len(rewards)),
            ]
            print(f"| {' | '.join(cells)} |")
    print(f"\nPython {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", help=f"folder of the data sets' folders, in place of {VARIABLE}")
    given = parser.parse_args()
    if given.data is not None:
        os.environ[VARIABLE] = given.data  # workers have it too
    if given.what == "run":
        for data in given.sets:
            folder_of(data.split()[0])  # before any work is done
        run(given.sets, given.rows, given.trials, given.workers)
    else:
        table()


if __name__ == "__main__":
    main()
