"""What do the options of agents cost and save? An own constant, forgetting, learning apart.

    python benchmarks/agents.py run                   # all rows, about an hour of one core
    python benchmarks/agents.py run constant jump     # some of them; goes on where it stopped
    python benchmarks/agents.py table                 # the tables of the docs

| row | question | docs |
|---|---|---|
| constant | what do +10 on all rewards cost with `intercept=10`, and without? | widths.md |
| jump | what does `forget=` save where tasks change, and cost where nothing does? | forgetting.md |
| decide | does `decide(learn=False)` take longer while a thread learns? | deploy.md |
| hear | what do observations cost in blocks, beside messages one by one? | deploy.md |
| memory | does an agent grow with messages? | deploy.md |

Regret: linear tasks of d = 10 (`clustered_linear`, `changing`) or functions under an RBF kernel of
d = 3 (`kernel`), 8 actions, noise 0.3, ER(20, 0.3), λ = 1, η = 0.3; seed s makes the network, the
problem and the run. Ratios are of sums over seeds, with 95% jackknife intervals. Nothing is tuned
on seeds that are reported. Times are CPU time of one thread, side by side; `serving.py` has
these rows. Results go to benchmarks/results/agents.json.
"""

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")})

import numpy as np
import scipy
from scipy import stats

import coopbandits as cb
from coopbandits.problems.problem import Round

if TYPE_CHECKING:
    from benchmarks import serving
else:  # it is run as a script
    import serving

RESULTS = Path(__file__).resolve().parent / "results" / "agents.json"
AGENTS, DIM, NOISE, ETA = 20, 10, 0.3, 0.3
LINEAR, RBF = cb.kernels.Linear(), cb.kernels.RBF()

CONSTANT, TAU, SHORT = 10.0, 10.0, 120
LONG = 400
# seeds of a policy: as many as it is cheap
SEEDS = {"LinUCB": 100, "Eager, known clusters": 100, "KernelUCB, RBF": 40,
         "KernelUCB, RBF, Fourier(64)": 100, "Eager, Evidence": 20}  # fmt: skip
CASES = {"a": (0.0, None), "b": (0.0, TAU), "c": (CONSTANT, TAU), "d": (CONSTANT, None)}
# how many seeds are reported, and how many others are for tuning
JUMP_SEEDS = {"LinUCB": (40, 10), "Eager": (40, 10), "Evidence": (6, 4)}
HALF_LIVES, WINDOWS = (10, 20, 40, 80, 160), (25, 50, 100, 200)
KINDS = ("jump", "drift", "regroup", "nothing")

Facts = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Shifted:
    """A problem with a constant added to all rewards."""

    problem: cb.problems.Problem
    constant: float

    @property
    def network(self) -> cb.Network:
        """The agents."""
        return self.problem.network

    @property
    def horizon(self) -> int | None:
        """As many rounds as there were."""
        return self.problem.horizon

    def round(self, t: int, seed: int) -> Round:
        """Return a round, its rewards shifted."""
        offer = self.problem.round(t, seed)
        return Round(
            offer.agents,
            offer.contexts,
            offer.expected + self.constant,
            offer.rewards + self.constant,
        )


def ratio(numerator: Iterable[float], denominator: Iterable[float]) -> tuple[float, float]:
    """Return a ratio of sums over paired seeds, and half of its 95% jackknife interval."""
    a, b = np.array([*numerator]), np.array([*denominator])
    n = len(a)
    left_out = (a.sum() - a) / (b.sum() - b)
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    return float(a.sum() / b.sum()), float(stats.t.ppf(0.975, n - 1) * error)


def network_of(seed: int) -> cb.Network:
    """Draw the network of a seed."""
    return cb.Network.erdos_renyi(AGENTS, 0.3, seed=seed)


def regret(problem: cb.problems.Problem, policy: Any, rounds: int, seed: int) -> float:
    """Play, and return regret per agent."""
    return round(float(cb.play(problem, policy, rounds, seed=seed).regret_per_agent[-1]), 4)


def constant_case(name: str, case: str, seed: int) -> float:
    """Return the regret of a policy, with or without a constant in rewards and an own constant."""
    shift, tau = CASES[case]
    network = network_of(seed)
    if name.startswith("KernelUCB"):
        problem = cb.problems.kernel(network, kernel=RBF, dim=3, noise=NOISE, seed=seed)
        features = cb.features.Fourier(64) if "Fourier" in name else None
        policy = cb.KernelUCB(RBF, eta=ETA, features=features, intercept=tau)
    else:
        problem = cb.problems.clustered_linear(network, dim=DIM, noise=NOISE, seed=seed)
        K_z = {"Eager, known clusters": problem.similarity, "Eager, Evidence": None}.get(name)
        policy = (
            cb.LinUCB(eta=ETA, intercept=tau)
            if name == "LinUCB"
            else cb.EagerKernelUCB(LINEAR, similarity=K_z, eta=ETA, intercept=tau)
        )
    return regret(Shifted(problem, shift), policy, SHORT, seed)


def constant(known: Facts, keep: Callable[[], None], workers: int) -> None:
    """+10 on all rewards, with and without an own constant of each agent (τ = 10), T = 120."""
    jobs = {
        f"{name}|{case}|{seed}": partial(constant_case, name, case, seed)
        for name, seeds in SEEDS.items()
        for seed in range(seeds)
        for case in CASES
    }
    run_all(jobs, known, keep, workers)


def changing_problem(kind: str, seed: int) -> Any:
    """Make a problem that changes half way through, or all the time, or never."""
    network = network_of(seed)
    if kind == "nothing":
        return cb.problems.clustered_linear(network, dim=DIM, noise=NOISE, seed=seed)
    at = None if kind == "drift" else LONG // 2 + 1
    return cb.problems.changing(network, kind=kind, at=at, dim=DIM, noise=NOISE, seed=seed)


def forgetting(base: str, rule: str, setting: float, problem: Any) -> Any:
    """Make a policy that forgets, or not.

    Args:
        base: "LinUCB"; "Eager", which knows the clusters (of the first round, if they change); or
            "Evidence", Eager that learns K_z.
        rule: What forgets.
        setting: A half life, or a window, in rounds.
        problem: Of which clusters are told.
    """
    if rule == "SW-LinUCB":
        return cb.SlidingWindowLinUCB(window=int(setting), eta=ETA)
    if rule == "D-LinUCB":
        return cb.DiscountedLinUCB(discount=2 ** (-1 / setting), eta=ETA)
    forget: Any = None
    if rule == "Exponential":
        forget = cb.forget.Exponential(half_life=setting)
    elif rule == "Window":
        forget = cb.forget.Window(rounds=int(setting))
    if base == "LinUCB":
        return cb.LinUCB(eta=ETA, forget=forget)
    known = None if base == "Evidence" else problem.similarity or problem.at(1).similarity
    return cb.EagerKernelUCB(LINEAR, similarity=known, eta=ETA, forget=forget)


RULES = {
    "LinUCB": ("Exponential", "Window", "SW-LinUCB", "D-LinUCB"),
    "Eager": ("Exponential", "Window"),
    "Evidence": ("Exponential",),
}
NAMES = {"LinUCB": "LinUCB", "Eager": "Eager, known clusters", "Evidence": "Eager, Evidence"}


def grid(rule: str) -> tuple[int, ...]:
    """Return what is tried."""
    return HALF_LIVES if rule in ("Exponential", "D-LinUCB") else WINDOWS


def tuning(base: str) -> range:
    """Return the seeds for tuning, none of which is reported."""
    return range(1000, 1000 + JUMP_SEEDS[base][1])


def jump_case(kind: str, base: str, rule: str, setting: float, seed: int) -> float:
    """Return the regret of a policy that forgets."""
    problem = changing_problem(kind, seed)
    return regret(problem, forgetting(base, rule, setting, problem), LONG, seed)


def jump(known: Facts, keep: Callable[[], None], workers: int) -> None:
    """Tasks that change, T = 400: half lives and windows chosen on other seeds."""
    for base, rules in RULES.items():
        tried = {
            f"{kind}|{base}|{rule}|{setting}|{seed}": partial(
                jump_case, kind, base, rule, setting, seed
            )
            for kind in KINDS[:-1]
            for rule in rules
            for setting in grid(rule)
            for seed in tuning(base)
        }
        run_all(tried, known, keep, workers)
        jobs = {}
        for kind in KINDS:
            for rule in ("never", *rules):
                for setting, seed in product(
                    settings(known, kind, base, rule), range(JUMP_SEEDS[base][0])
                ):
                    key = f"{kind}|{base}|{rule}|{setting}|{seed}"
                    jobs[key] = partial(jump_case, kind, base, rule, setting, seed)
        run_all(jobs, known, keep, workers)


def settings(known: Facts, kind: str, base: str, rule: str) -> tuple[int, ...]:
    """Return what is reported: the best on the seeds for tuning.

    Where nothing changes that is 10·T, and what was best for a jump.
    """
    if rule == "never":
        return (0,)
    if kind == "nothing":
        return (10 * LONG, *settings(known, "jump", base, rule))
    costs = {
        setting: sum(known[f"{kind}|{base}|{rule}|{setting}|{seed}"] for seed in tuning(base))
        for setting in grid(rule)
    }
    return (min(costs, key=lambda setting: costs[setting]),)


def run_all(
    jobs: Mapping[str, Callable[[], float]], known: Facts, keep: Callable[[], None], workers: int
) -> None:
    """Compute what is not known yet, and keep it as it comes."""
    todo = {key: job for key, job in jobs.items() if key not in known}
    if workers == 1:
        for count, (key, job) in enumerate(todo.items()):
            known[key] = job()
            if count % 10 == 9:
                keep()
    else:
        with ProcessPoolExecutor(workers) as pool:
            futures = {key: pool.submit(job) for key, job in todo.items()}
            for count, (key, future) in enumerate(futures.items()):
                known[key] = future.result()
                if count % 10 == 9:
                    keep()
    keep()


def constant_table(known: Facts) -> None:
    """Print regret with a constant, and its ratios."""
    print("| | seeds | (a) | (b) | (c) | (d) | c/b | c/a | b/a |\n" + "|---" * 9 + "|")
    for name, seeds in SEEDS.items():
        each = {c: [known[f"{name}|{c}|{s}"] for s in range(seeds)] for c in CASES}
        cells = [f"{np.mean(values):.2f}" for values in each.values()]
        cells += [shown(ratio(each[x], each[y])) for x, y in ("cb", "ca", "ba")]
        print(f"| {name} | {seeds} | {' | '.join(cells)} |")


def jump_table(known: Facts) -> None:
    """Print regret of each rule, beside never forgetting."""
    for kind in KINDS:
        print(f"\n{kind}\n\n| | half life or window | regret | of never forgetting |")
        print("|---" * 4 + "|")
        for base, rules in RULES.items():
            seeds = range(JUMP_SEEDS[base][0])
            never = [known[f"{kind}|{base}|never|0|{s}"] for s in seeds]
            print(f"| {NAMES[base]} | – | {np.mean(never):.1f} | 1 |")
            reported = [(r, one) for r in rules for one in settings(known, kind, base, r)]
            for rule, setting in reported:
                each = [known[f"{kind}|{base}|{rule}|{setting}|{s}"] for s in seeds]
                name = rule if "LinUCB" in rule else f"{NAMES[base]}, `{rule}`"
                cells = f"{setting} | {np.mean(each):.1f} | {shown(ratio(each, never))}"
                print(f"| {name} | {cells} |")


def shown(value: tuple[float, float]) -> str:
    """Return a ratio with its interval."""
    return f"{value[0]:.2f} ± {value[1]:.2f}"


ROWS: dict[str, Any] = {
    "constant": constant,
    "jump": jump,
    "decide": serving.decide,
    "hear": serving.hear,
    "memory": serving.memory,
}
TABLES: dict[str, Any] = {
    "constant": constant_table,
    "jump": jump_table,
    "decide": serving.decide_table,
    "hear": serving.hear_table,
    "memory": serving.memory_table,
}


def read() -> Facts:
    """Return what has been measured."""
    done: Facts = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return done


def run(names: list[str], workers: int) -> None:
    """Measure some rows; what is known already is not measured again."""
    for name in names or ROWS:
        print(name, flush=True)
        measured: Facts = read().get(name, {}).get("measured", {})

        def keep(name: str = name, measured: Facts = measured) -> None:
            machine = (
                f"{platform.machine()}, {os.cpu_count()} cores, Python "
                f"{platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
            )
            done = read()
            done[name] = {"work": ROWS[name].__doc__, "machine": machine, "measured": measured}
            RESULTS.parent.mkdir(exist_ok=True)
            text = json.dumps(done, indent=0, ensure_ascii=False) + "\n"
            part = RESULTS.with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            part.replace(RESULTS)

        ROWS[name](measured, keep, workers)


def table() -> None:
    """Print what has been measured."""
    done = read()
    for name in ROWS:
        if name in done:
            print(f"{name}: {done[name]['work']}\n")
            try:
                TABLES[name](done[name]["measured"])
            except KeyError as error:
                print(f"\nnot finished: there is no {error}; run agents.py run {name}")
            print(f"\n{done[name]['machine']}\n")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []])
    parser.add_argument("--workers", type=int, default=1, help="processes; default 1")
    options = parser.parse_args()
    if options.command == "table":
        table()
    else:
        run(options.rows, options.workers)


if __name__ == "__main__":
    main()
