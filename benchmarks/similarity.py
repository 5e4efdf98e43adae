"""What is a learnt K_z worth? Final regret per agent, paired by seed, with 95% intervals.

    python benchmarks/similarity.py run er60 path60    # hours; resumes where it stopped
    python benchmarks/similarity.py run facebook --data networks    # a folder with its file
    python benchmarks/similarity.py table              # the tables of docs/evidence-results.md
    python benchmarks/similarity.py rank               # what a low rank costs MeanEmbedding

and side by side with another commit's `Evidence`, here that before chains (`git worktree add`):

    PYTHONPATH=out/before/src python benchmarks/similarity.py run er60 path60 --policies eager \\
        --only evidence --results before.csv
    python benchmarks/similarity.py paired before.csv

The setting: linear rewards, d = 10, 8 actions a round on
the unit sphere, noise 0.3, 120 rounds, ridge 1, eta 0.3. Every trial draws its own network, tasks,
contexts and noise from its seed; all methods of a trial share them. Seeds 40000 … are reported, on
which nothing was chosen, and for the other methods 0 … too; the bandwidth of MeanEmbedding is
chosen on seeds 1000 …, and what `Evidence` has to choose on seeds 0 ….
"""

import argparse
import csv
import os
import platform
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

import coopbandits as cb
from coopbandits.lab import load_network
from coopbandits.lab.networks import VARIABLE
from coopbandits.problems.noise import as_noise
from coopbandits.problems.problem import Simulated, on_sphere, structure_rng

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "similarity.csv"
DIM, ACTIONS, NOISE, ROUNDS, ETA = 10, 8, 0.3, 120, 0.3
BANDWIDTHS = (0.2, 0.35, 0.5, 0.7, 1.0, 1.5)
TRIALS, TUNING, TUNING_TRIALS = 20, 1000, 3
FIRST = 40_000
RANK = 6000
# Of a smooth K_z between many agents, parts smaller than this share of the largest are left out.
SMALLEST = 1e-4
FIELDS = ["setting", "scenario", "policy", "method", "seed", "regret"]

SCENARIOS = {
    "a": "clusters of tasks, one law of contexts",
    "b": "clusters of tasks, a law of contexts each",
    "c": "tasks that vary smoothly",
    "d": "every agent different",
    "e": "all agents the same",
}
ROWS = {
    "alone": "alone",
    "naive": "naive",
    "oracle": "oracle",
    "`MeanEmbedding`, σ_z = 1": "embedding 1.0",
    "`MeanEmbedding`, best σ_z": "embedding",
    "`Coregionalised`": "coregionalised",
    "**`Evidence`**": "evidence",
}


@dataclass(frozen=True)
class Setting:
    """A family of networks."""

    network: Callable[[int], cb.Network]
    ttl: int
    clusters: int
    text: str


def ring(agents: int, neighbours: int) -> cb.Network:
    """Join each agent of a circle to its nearest ones."""
    steps = range(1, neighbours // 2 + 1)
    return cb.Network.from_edges([(v, (v + k) % agents) for v in range(agents) for k in steps])


def facebook(seed: int) -> cb.Network:
    """Take a connected sample of ego-facebook."""
    return load_network("ego-facebook", agents=200, seed=seed)


SETTINGS = {
    "er60": Setting(
        lambda seed: cb.Network.erdos_renyi(60, 0.7, seed=seed), 1, 4, "Erdős-Rényi(60, 0.7), γ = 1"
    ),
    "er200": Setting(
        lambda seed: cb.Network.erdos_renyi(200, 0.7, seed=seed),
        1,
        8,
        "Erdős-Rényi(200, 0.7), γ = 1",
    ),
    "er200-4": Setting(
        lambda seed: cb.Network.erdos_renyi(200, 0.7, seed=seed),
        1,
        4,
        "Erdős-Rényi(200, 0.7), 4 clusters, γ = 1",
    ),
    "facebook200": Setting(facebook, 1, 6, "200 agents of ego-facebook, γ = 1"),
    "facebook200-4": Setting(facebook, 1, 4, "200 agents of ego-facebook, 4 clusters, γ = 1"),
    "path60": Setting(lambda seed: cb.Network.path(60), 5, 4, "path of 60, γ = 5"),
    "complete10": Setting(lambda seed: cb.Network.complete(10), 1, 4, "ten agents, γ = 1"),
    "ring60": Setting(lambda seed: ring(60, 12), 1, 4, "circle of 60, 12 neighbours each, γ = 1"),
}


@dataclass(frozen=True)
class OwnLaws:
    """Offer contexts on the unit sphere around a centre for each cluster of agents."""

    centres: np.ndarray
    labels: np.ndarray

    def __call__(self, t: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw the decision sets of a round."""
        agents = np.repeat(np.arange(len(self.labels)), ACTIONS)
        X = 0.8 * on_sphere(rng, len(agents), DIM) + 0.6 * self.centres[self.labels[agents]]
        return agents, X / np.linalg.norm(X, axis=1, keepdims=True)


def problem_of(scenario: str, setting: Setting, seed: int) -> Simulated:
    """Make a scenario's problem, with its true K_z."""
    network = setting.network(seed)
    V = len(network)
    rng = structure_rng(seed + 7_000_000)
    labels = rng.integers(setting.clusters, size=V)
    if scenario == "c":  # the paper's setup 2, with the linear kernel; as large as the other tasks
        z = rng.normal(size=(V, 2))
        K_z = cb.similarity.Known(contexts=z, kernel=cb.kernels.RBF())
        X, agents = on_sphere(rng, 50 * V, DIM), np.repeat(np.arange(V), 50)

        def made(norm: float) -> Simulated:
            return cb.problems.kernel(
                network, kernel=cb.kernels.Linear(), similarity=K_z, dim=DIM, actions=ACTIONS,
                noise=NOISE, norm=norm, seed=seed,
            )  # fmt: skip

        size = float(np.sqrt((made(1.0).expected(agents, X) ** 2).mean() * DIM))
        return made(1.0 / size)
    labels = {"d": np.arange(V), "e": np.zeros(V, dtype=np.int64)}.get(scenario, labels)
    problem = cb.problems.clustered_linear(
        network, dim=DIM, actions=ACTIONS, noise=as_noise(NOISE), seed=seed, clusters=labels
    )
    if scenario == "b":
        centres = on_sphere(rng, setting.clusters, DIM)
        problem = replace(problem, draw=OwnLaws(centres, labels))
    return problem


def truth(problem: Simulated) -> cb.similarity.Similarity:
    """Return the true K_z; between many agents that vary smoothly, without its smallest parts.

    A hundred parts of ten dimensions each, for each of 200 agents, would take too long.
    """
    assert problem.similarity is not None
    if len(problem.network) <= 60 or isinstance(problem.similarity, cb.similarity.Clusters):
        return problem.similarity
    values, vectors = np.linalg.eigh(problem.similarity.matrix(problem.network))
    parts = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, values > SMALLEST * values[-1]]
    return cb.similarity.Known(matrix=parts @ parts.T)


def methods(scenario: str) -> dict[str, Callable[[Simulated], cb.similarity.Similarity]]:
    """Name the ways to get K_z."""
    rank = 8  # as good as full rank, in a fraction of the time: see `rank` below
    ways: dict[str, Callable[[Simulated], cb.similarity.Similarity]] = {
        "oracle": truth,
        "evidence": lambda _: cb.similarity.Evidence(),
        "coregionalised": lambda _: cb.similarity.Coregionalised(),
    }
    for sigma in BANDWIDTHS:
        ways[f"embedding {sigma}"] = lambda _, sigma=sigma: cb.similarity.MeanEmbedding(
            sigma, rank=rank
        )
    return ways


def trial(setting: str, scenario: str, policy: str, method: str, seed: int) -> float:
    """Play once; return the final regret per agent."""
    given = SETTINGS[setting]
    problem = problem_of(scenario, given, seed)
    if method == "alone":
        played = cb.LinUCB(eta=ETA)
    elif method == "naive":
        played = cb.NaiveCooperation(ttl=given.ttl, eta=ETA)
    else:
        make = {"coop": cb.CoopKernelUCB, "eager": cb.EagerKernelUCB}[policy]
        similarity = methods(scenario)[method](problem)
        played = make(kernel=cb.kernels.Linear(), similarity=similarity, ttl=given.ttl, eta=ETA)
    run = cb.play(problem, played, rounds=ROUNDS, seed=seed)
    return float(run.regret_per_agent[-1])


Job = tuple[str, str, str, str, int]


def read(path: Path | None = None) -> dict[Job, float]:
    """Read what has been measured."""
    path = path or RESULTS
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["setting"], row["scenario"], row["policy"], row["method"], int(row["seed"])):
                float(row["regret"])
            for row in csv.DictReader(file)
        }  # fmt: skip


def measure(jobs: list[Job], workers: int) -> None:
    """Play what has not been played, and write each result down at once."""
    done = read()
    missing = [job for job in jobs if job not in done]
    RESULTS.parent.mkdir(exist_ok=True)
    new = not RESULTS.exists()
    with (
        RESULTS.open("a", newline="", encoding="utf-8") as file,
        ProcessPoolExecutor(workers) as pool,
    ):
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        waiting = {pool.submit(trial, *job): job for job in missing}
        for count, future in enumerate(as_completed(waiting), start=1):
            writer.writerow([*waiting[future], f"{future.result():.6f}"])
            file.flush()
            if count % 20 == 0 or count == len(missing):
                print(f"{count} of {len(missing)} trials", flush=True)


def best_bandwidth(done: dict[Job, float], setting: str, scenario: str) -> float | None:
    """Return the bandwidth with the least mean regret on the tuning seeds, under Eager."""
    jobs = {
        sigma: [
            (setting, scenario, "eager", f"embedding {sigma}", TUNING + i)
            for i in range(TUNING_TRIALS)
        ]
        for sigma in BANDWIDTHS
    }
    if any(job not in done for some in jobs.values() for job in some):
        return None
    return min(jobs, key=lambda sigma: np.mean([done[job] for job in jobs[sigma]]))


def run(settings: list[str], scenarios: str, policies: list[str], trials: int, workers: int,
        only: list[str]) -> None:  # fmt: skip
    """Measure some settings: first the tuning seeds, then those reported."""
    cells = [(s, c, p) for s in settings for c in scenarios for p in policies]
    if not only or "embedding" in only:
        measure(
            [
                (setting, scenario, "eager", f"embedding {sigma}", TUNING + i)
                for setting in settings
                for scenario in scenarios
                for sigma in BANDWIDTHS
                for i in range(TUNING_TRIALS)
            ],
            workers,
        )
    done = read()
    jobs: list[Job] = []
    for setting, scenario, policy in cells:
        names = ["oracle", "evidence", "coregionalised"]
        if not only or "embedding" in only:
            best = best_bandwidth(done, setting, scenario)
            names += sorted({"embedding 1.0", f"embedding {best}"})
        if only:
            names = [name for name in names if name.split()[0] in only]
        seeds = range(FIRST, FIRST + trials)
        jobs += [(setting, scenario, policy, name, seed) for seed in seeds for name in names]
        # alone and naive are the same under both policies
        jobs += [
            (setting, scenario, "any", name, seed)
            for name in ("alone", "naive")
            for seed in seeds
            if not only or name in only
        ]
    measure(list(dict.fromkeys(jobs)), workers)


def regret_by_rank(sigma: float, given: int | None) -> np.ndarray:
    """Return final regrets of MeanEmbedding: er60, (a), on seeds that chose nothing."""
    regrets = []
    for seed in range(RANK, RANK + 6):
        problem = problem_of("a", SETTINGS["er60"], seed)
        similarity = cb.similarity.MeanEmbedding(sigma, rank=given)
        policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=similarity, eta=ETA)
        run = cb.play(problem, policy, rounds=ROUNDS, seed=seed, engine="statistics")
        regrets.append(run.regret_per_agent[-1])
    return np.array(regrets)


def rank() -> None:
    """Print what a low rank costs MeanEmbedding."""
    for sigma in (0.5, 1.0):
        for given in (6, 8, None):
            print(f"σ_z = {sigma}, rank {given}: {interval(regret_by_rank(sigma, given))}",
                  flush=True)  # fmt: skip


def interval(values: np.ndarray) -> str:
    """Mean ± half of the 95% t-interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.2f} ± {half:.2f}"


def gap_closed(alone: np.ndarray, method: np.ndarray, oracle: np.ndarray) -> tuple[float, float]:
    """Return 100·Σ(alone − method)/Σ(alone − oracle), and half of its 95% interval."""
    return ratio_and_half(alone - method, alone - oracle)


def ratio_and_half(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """Return 100 times the ratio of two sums, and half of its 95% interval (jackknife)."""
    n = len(above)
    whole = above.sum() / below.sum()
    left_out = (above.sum() - above) / (below.sum() - below)
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    return 100 * whole, 100 * float(stats.t.ppf(0.975, n - 1)) * error


def table() -> None:
    """Print the tables of docs/similarity.md."""
    done = read()
    print_views(done)
    for setting, given in SETTINGS.items():
        for policy in ("eager", "coop"):
            rows = {
                text: [cell(done, setting, scenario, policy, method) for scenario in SCENARIOS]
                for text, method in ROWS.items()
            }
            if any(text for row, cells in rows.items() if "`Evidence" in row for text in cells):
                print(f"\n### {given.text}, {policy.capitalize()}-KernelUCB\n")
                print_rows("method", rows)
    print(f"\n{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"numpy {np.__version__}")  # fmt: skip


def print_views(done: dict[Job, float]) -> None:
    """Print what Evidence is worth on each network."""
    for policy in ("eager", "coop"):
        print(f"\n### Evidence, {policy.capitalize()}-KernelUCB\n")
        rows = {
            given.text: [worth(done, setting, one, policy, "evidence") for one in SCENARIOS]
            for setting, given in SETTINGS.items()
        }
        print_rows("network", rows)


def print_rows(corner: str, rows: dict[str, list[str]]) -> None:
    """Print a table with a column for each scenario, and the rows that have anything."""
    print(f"| {corner} | " + " | ".join(f"({scenario})" for scenario in SCENARIOS) + " |")
    print("|---" * (1 + len(SCENARIOS)) + "|")
    for text, cells in rows.items():
        if any(cells):
            print(f"| {text} | " + " | ".join(cells) + " |")


def cell(done: dict[Job, float], setting: str, scenario: str, policy: str, method: str) -> str:
    """Return a method's regret, and what it is worth."""
    tuned = ""
    if method == "embedding":
        sigma = best_bandwidth(done, setting, scenario)
        if sigma is None:
            return ""
        method, tuned = f"embedding {sigma}", f"<br>σ_z = {sigma:g}"
    where = "any" if method in ("alone", "naive") else policy
    found = regrets(done, setting, scenario, where, method)
    if len(found) < 2:
        return ""
    regret = interval(np.array(list(found.values())))
    value = "" if method in ("alone", "oracle") else worth(done, setting, scenario, policy, method)
    return "<br>".join(filter(None, [regret, value and value + tuned]))


def worth(done: dict[Job, float], setting: str, scenario: str, policy: str, method: str) -> str:
    """Return how much of the gap a method closes; in (d), how much worse it is than alone.

    With the number of trials, in brackets.
    """
    alone = regrets(done, setting, scenario, "any", "alone")
    oracle = alone if scenario == "d" else regrets(done, setting, scenario, policy, "oracle")
    where = "any" if method == "naive" else policy
    found = regrets(done, setting, scenario, where, method)
    seeds = sorted(set(alone) & set(oracle) & set(found))
    if len(seeds) < 2:
        return ""
    mine, alone_, oracle_ = (
        np.array([values[seed] for seed in seeds]) for values in (found, alone, oracle)
    )
    if scenario == "d":
        value, half = gap_closed(alone_, 2 * alone_ - mine, np.zeros(len(seeds)))
        return f"{value:+.1f}% ± {half:.1f}% ({len(seeds)})"
    value, half = gap_closed(alone_, mine, oracle_)
    return f"{value:.1f}% ± {half:.1f}% ({len(seeds)})"


def regrets(
    done: dict[Job, float], setting: str, scenario: str, policy: str, method: str
) -> dict[int, float]:
    """Return the regret of each reported seed."""
    wanted = (setting, scenario, policy, method)
    tuning = range(TUNING, TUNING + TUNING_TRIALS)
    return {
        job[4]: value for job, value in done.items() if job[:4] == wanted and job[4] not in tuning
    }


def paired(before: Path) -> None:
    """Print how much of the gap both commits' `Evidence` close, and the difference in points."""
    now, then = read(), read(before)
    for setting, scenario in product(SETTINGS, SCENARIOS):
        alone, oracle, ours = (
            regrets(now, setting, scenario, policy, method)
            for policy, method in (("any", "alone"), ("eager", "oracle"), ("eager", "evidence"))
        )
        theirs = regrets(then, setting, scenario, "eager", "evidence")
        seeds = sorted(alone.keys() & oracle.keys() & ours.keys() & theirs.keys())
        if len(seeds) < 2:
            continue
        a, o, x, y = (
            np.array([values[seed] for seed in seeds]) for values in (alone, oracle, ours, theirs)
        )
        if scenario == "d":  # nothing to close: regret more than alone, in percent of it
            shares = [100 * (method.mean() / a.mean() - 1) for method in (x, y)]
            difference, half = ratio_and_half(x - y, a)
        else:
            shares = [gap_closed(a, method, o)[0] for method in (x, y)]
            difference, half = ratio_and_half(y - x, a - o)
        print(f"{setting} ({scenario}), {len(seeds)} seeds: {shares[0]:.1f}% now, "
              f"{shares[1]:.1f}% before, {difference:+.1f} ± {half:.1f} points")  # fmt: skip


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="measure; resumes where it stopped")
    runner.add_argument("settings", nargs="+", choices=SETTINGS)
    runner.add_argument("--scenarios", default="abcde")
    runner.add_argument("--policies", nargs="+", default=["eager", "coop"])
    runner.add_argument("--trials", type=int, default=TRIALS)
    runner.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    runner.add_argument(
        "--only", nargs="*", default=[], help="oracle evidence coregionalised embedding alone naive"
    )
    runner.add_argument("--results", type=Path, help="where to keep it, in place of RESULTS")
    runner.add_argument("--data", help=f"folder with ego-facebook's file, in place of {VARIABLE}")
    beside = commands.add_parser("paired", help="beside another commit's Evidence")
    beside.add_argument("before", type=Path, help="its results")
    commands.add_parser("table", help="print what has been measured")
    commands.add_parser("rank", help="what does a low rank cost MeanEmbedding?")
    options = parser.parse_args()
    if options.command == "table":
        table()
    elif options.command == "paired":
        paired(options.before)
    elif options.command == "rank":
        rank()
    else:
        if options.data is not None:
            os.environ[VARIABLE] = options.data  # workers have it too
        if options.results is not None:
            global RESULTS  # noqa: PLW0603 (the parent alone reads and writes)
            RESULTS = options.results
        run(options.settings, options.scenarios, options.policies, options.trials,
            options.workers, options.only)  # fmt: skip


if __name__ == "__main__":
    main()
