"""How fast is it? Each row of docs/engines.md: ratios measured side by side, one thread each.

    make bench                                # all rows, a few hours
    python benchmarks/speed.py run coop alone # some of them
    python benchmarks/speed.py table          # the table of docs/engines.md

Seconds are of one process's CPU. Every row also measures the machine's matrix product (dgemm, 2,000
rows) right before and after, since machines are noisy. Results go to benchmarks/results/speed.json.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np

import coopbandits as cb
from coopbandits.features import Leading, reference
from coopbandits.gp.posterior import Factor
from coopbandits.lab import load_network
from coopbandits.lab.experiments.reproduce import paper_experiment
from coopbandits.lab.experiments.trial import run_task
from coopbandits.lab.networks import VARIABLE
from coopbandits.palette import COLOURS
from coopbandits.policy import plan

if TYPE_CHECKING:
    from benchmarks import large, similarity as scenarios
else:  # it is run as a script
    import large

    import similarity as scenarios

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))
from reference import algorithms  # noqa: E402 (the literal twin lives with the tests)

RESULTS = HERE / "results" / "speed.json"
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"
LINEAR, RBF = cb.kernels.Linear(), cb.kernels.RBF()

Row = dict[str, Any]


def dgemm() -> float:
    """Return the machine's rate of matrix products, in 1e9 operations a second."""
    A = np.random.default_rng(0).random((2000, 2000))
    A @ A
    start = process_time()
    for _ in range(2):
        A @ A
    return 2 * 2 * 2000**3 / (process_time() - start) / 1e9


def timed(problem: Any, policy: cb.Policy, rounds: int, seed: int, **options: Any) -> Any:
    """Play, and return the run with its seconds; partitions of the network are made before."""
    plan(policy, problem.network)
    start = process_time()
    run = cb.play(problem, policy, rounds=rounds, seed=seed, memory_limit=16e9, **options)
    return run, process_time() - start


class Careful:
    """The literal agent's inverse, in the fewest passes over memory that NumPy allows."""

    def __init__(self, v: int, kernel: Any, ridge: float) -> None:
        self.v, self.kernel, self.ridge = v, kernel, ridge
        self.agents: list[int] = []
        self.X: list[np.ndarray] = []
        self.y: list[float] = []
        self.inverse = np.empty((0, 0))

    def add(self, origin: int, x: np.ndarray, y: float) -> None:
        """Grow the inverse by a row and a column."""
        own = self.kernel([origin], x[None], [origin], x[None])[0, 0] + self.ridge
        n = len(self.y)
        grown = np.empty((n + 1, n + 1))
        if n:
            k = self.kernel(self.agents, np.array(self.X), [origin], x[None])[:, 0]
            side = self.inverse @ k
            own -= k @ side
            side /= -own
            np.multiply(side[:, None], own * side, out=grown[:-1, :-1])
            grown[:-1, :-1] += self.inverse
            grown[:-1, -1] = grown[-1, :-1] = side
        grown[-1, -1] = 1.0 / own
        self.inverse = grown
        self.agents.append(origin)
        self.X.append(x)
        self.y.append(y)

    def best(self, D: np.ndarray, width: Any) -> int:
        """Choose the highest upper bound, of all candidates together."""
        mine = [self.v] * len(D)
        k = self.kernel(self.agents, np.array(self.X), mine, D)
        solved = self.inverse @ k
        variance = np.diagonal(self.kernel(mine, D, mine, D)) - (k * solved).sum(axis=0)
        bound = solved.T @ np.array(self.y) + width * np.sqrt(np.maximum(variance, 0.0))
        return int(np.argmax(bound >= bound.max() - 1e-9 * max(1.0, abs(bound.max()))))


def literal_agent(
    problem: Any, policy: cb.Policy, run: cb.Run, v: int, seed: int, most: int, careful: bool
) -> tuple[float, int, bool]:
    """Let one agent follow Algorithm 1 literally: an inverse, grown by a row for each observation.

    It is told what the others did in a run. It stops once it knows `most` observations.

    Returns:
        Seconds, the rounds it took, and whether it decided as the run did.
    """
    worked_out = plan(policy, problem.network)
    eta = policy.width.eta / np.sqrt(policy.ridge)  # type: ignore[attr-defined]

    def kernel(u: Any, X: np.ndarray, w: Any, Y: np.ndarray) -> np.ndarray:
        return np.asarray(worked_out.kernel(np.asarray(u), X, np.asarray(w), Y))

    agent: Any
    width: Any
    if careful:
        agent, width = Careful(v, kernel, policy.ridge), eta
    else:
        agent, width = algorithms.Model(v, kernel, policy.ridge), algorithms.fixed(eta)
    heard, lags = worked_out.lags.row(v)
    seconds, alike, known, offers = 0.0, True, 0, []
    for t in range(1, len(run.actions) + 1):
        offer = problem.round(t, seed)
        offers.append(offer)
        due = [(int(u), int(lag)) for u, lag in zip(heard, lags, strict=True) if t - lag >= 1]
        if known + len(due) > most:
            return seconds, t - 1, alike
        start = process_time()
        for u, lag in due:
            before = t - 1 - lag
            row = offers[before].starts[u] + run.actions[before, u]
            agent.add(u, offers[before].contexts[row], offers[before].rewards[row])
        known += len(due)
        if known:
            choice = agent.best(offer.contexts[offer.agents == v], width)
            alike &= bool(choice == run.actions[t - 1, v])
        seconds += process_time() - start
    return seconds, len(run.actions), alike


def against_the_twin(problem: Any, policy: cb.Policy, rounds: int, most: int) -> Row:
    """Compare the exact engine with the literal algorithm, timed on three agents and scaled."""
    solving = []
    whiten = Factor.whiten

    def clocked(self: Factor, B: np.ndarray, done: np.ndarray | None = None) -> np.ndarray:
        start = process_time()
        found = whiten(self, B, done)
        solving.append(process_time() - start)
        return found

    Factor.whiten = clocked  # type: ignore[method-assign]
    run, seconds = timed(problem, policy, rounds, 0, engine="exact")
    Factor.whiten = whiten  # type: ignore[method-assign]
    heard = plan(policy, problem.network).lags.sources.counts
    order = np.argsort(heard, kind="stable")
    sample = order[[len(order) // 10, len(order) // 2, -1 - len(order) // 10]]
    row: Row = {"seconds": seconds}
    for name, careful in (("twin", False), ("careful twin", True)):
        estimates, alike = [], True
        for v in sample:
            took, played, same = literal_agent(problem, policy, run, int(v), 0, most, careful)
            alike &= same
            estimates.append(took / (heard[v] * played) ** 3)  # seconds over n³
        scaled = float(np.median(estimates) * ((heard * float(rounds)) ** 3).sum())
        row |= {f"{name}: seconds": scaled, f"times faster than the {name}": scaled / seconds,
                f"{name}: same decisions": alike}  # fmt: skip
    groups = plan(policy, problem.network).lags.groups
    sizes = np.array([len(sources) for _, sources in groups])
    members = np.array([len(members) for members, _ in groups])
    flops = float(8 / 3 * (members * sizes**2 * float(rounds) ** 3).sum())
    return {
        **row,
        "groups": len(sizes),
        "scoring flops": flops,
        "of dgemm, scoring": flops / sum(solving) / 1e9,
        "of dgemm, whole run": flops / seconds / 1e9,
    }


def coop() -> Row:
    """Coop, RBF, known K_z, ER(200, 0.7), γ = 1, T = 100."""
    network = cb.Network.erdos_renyi(200, 0.7, seed=0)
    problem = cb.problems.kernel(network, kernel=RBF, dim=10, actions=8, noise=0.1, seed=0)
    policy = cb.CoopKernelUCB(kernel=RBF, similarity=problem.similarity, ttl=1, eta=1.0)
    return against_the_twin(problem, policy, 100, most=1200)


def facebook() -> Row:
    """Coop, RBF, known K_z, 200 agents of ego-facebook, γ = 3, T = 100, exact."""
    network = scenarios.facebook(0)
    problem = cb.problems.kernel(network, kernel=RBF, dim=10, actions=8, noise=0.1, seed=0)
    policy = cb.CoopKernelUCB(kernel=RBF, similarity=problem.similarity, ttl=3, eta=1.0)
    return against_the_twin(problem, policy, 100, most=1500)


def eager(similarity: Any, rounds: int = 500) -> tuple[Any, float]:
    """Eager, linear, ER(200, 0.7), 8 clusters of tasks."""
    problem = scenarios.problem_of("a", scenarios.SETTINGS["er200"], 0)
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=similarity, eta=0.3)
    return timed(problem, policy, rounds, 0)


def evidence() -> Row:
    """Eager, linear, Evidence as it is by default, ER(200, 0.7), T = 500."""
    run, seconds = eager(cb.similarity.Evidence())
    return {
        "seconds": seconds,
        "estimates": len(run.estimates) - 1,
        "regret": run.regret_per_agent[-1],
    }


def embedding() -> Row:
    """The same with MeanEmbedding of rank 6; and what that costs in regret at V = 60."""
    run, seconds = eager(cb.similarity.MeanEmbedding(0.5, rank=6))
    low, full = (scenarios.regret_by_rank(0.5, rank) for rank in (6, None))
    return {
        "seconds": seconds,
        "regret": run.regret_per_agent[-1],
        "regret to full rank, V = 60": low.sum() / full.sum(),
        "trials": len(full),
    }


def rbf_problem(agents: int, seed: int) -> Any:
    """Clusters of RBF tasks on ER(V, 0.7)."""
    network = cb.Network.erdos_renyi(agents, 0.7, seed=seed)
    clusters = 4 if agents < 100 else 8
    labels = np.random.default_rng(seed).integers(clusters, size=agents)
    return cb.problems.kernel(
        network, kernel=RBF, similarity=cb.similarity.Clusters(labels), dim=10, actions=8,
        noise=0.1, norm=2.0 * np.sqrt(clusters), seed=seed,
    )  # fmt: skip


def sparse() -> Row:
    """Eager, RBF, Evidence, ER(200, 0.7), T = 500, sparse."""
    similarity = cb.similarity.Evidence()
    policy = cb.EagerKernelUCB(kernel=RBF, similarity=similarity, eta=0.3)
    run, seconds = timed(rbf_problem(200, 0), policy, 500, 0, engine="sparse")
    return {"seconds": seconds, "regret": run.regret_per_agent[-1]}


def sparse_regret(trials: int = 10) -> Row:
    """Eager, RBF, Evidence, V = 40, T = 150: regret of sparse over that of exact, paired."""
    regrets, times = [], []
    for seed in range(trials):
        problem = rbf_problem(40, seed)
        # both learn K_z from the same few features, so that the posterior is all that differs
        basis = reference(RBF, problem.round(1, seed).contexts)
        learnt = cb.similarity.Evidence(features=Leading(basis))
        policy = cb.EagerKernelUCB(kernel=RBF, similarity=learnt, eta=0.3)
        pair = [timed(problem, policy, 150, seed, engine=name) for name in ("sparse", "exact")]
        regrets.append([run.regret_per_agent[-1] for run, _ in pair])
        times.append([seconds for _, seconds in pair])
        print(f"  trial {seed}: regret {np.round(regrets[-1], 3)}, seconds {times[-1]}", flush=True)
    low, full = np.array(regrets).T
    return {
        "regret to exact": low.sum() / full.sum(),
        "each": (low / full).tolist(),
        "trials": trials,
        "times faster": float(np.divide(*np.sum(times, axis=0)[::-1])),
    }


def alone() -> Row:
    """LinUCB and KernelUCB alone, V = 200, T = 500: a decision, beside MABWiser's and River's."""
    network = cb.Network.erdos_renyi(200, 0.7, seed=0)
    problem = cb.problems.clustered_linear(network, dim=10, actions=8, noise=0.3, seed=0)
    start = process_time()
    for t in range(1, 501):
        problem.round(t, 0)
    drawing = process_time() - start  # contexts and rewards: not the policy's work
    row: Row = {}
    for label, policy in (
        ("LinUCB", cb.LinUCB()),
        ("KernelUCB, RBF, sparse", cb.KernelUCB(kernel=RBF)),
        ("KernelUCB, RBF, exact", cb.KernelUCB(kernel=RBF)),
    ):
        engine = label.rpartition(", ")[2] if "RBF" in label else "auto"
        _, seconds = timed(problem, policy, 500, 0, engine=engine)
        row[f"{label}: ms a decision"] = 1e3 * (seconds - drawing) / (200 * 500)
    peers = peer_times()
    for peer in ("mabwiser_linucb", "river_linucb"):
        row[f"{peer}: ms a decision"] = 1e3 * peers[peer]
        for label in ("LinUCB", "KernelUCB, RBF, sparse", "KernelUCB, RBF, exact"):
            row[f"{label}: times faster than {peer}"] = (
                1e3 * peers[peer] / row[f"{label}: ms a decision"]
            )
    return row


def one_agent() -> Row:
    """One agent, exact, n = 5,000: observe one, score 8; beside scikit-learn and BoTorch."""
    rng = np.random.default_rng(0)
    agent = cb.KernelUCB(kernel=RBF).agent(0, cb.Network.complete(1))
    X = rng.normal(size=(5000, 10))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for x in X:
        agent.observe(x, float(np.sin(3 * x[0]) + rng.normal()))
    agent.decide(X[:8])
    times = []
    for _ in range(7):
        start = process_time()
        agent.observe(X[0], 0.5)
        agent.decide(X[:8])
        times.append(process_time() - start)
    seconds, peers = float(np.median(times)), peer_times()
    row: Row = {"seconds": seconds}
    for peer in ("sklearn_refit", "botorch_refit", "botorch_condition",
                 "botorch_condition, fast_pred_var on"):  # fmt: skip
        row[f"{peer}: seconds"] = peers[peer]
        row[f"times faster than {peer}"] = peers[peer] / seconds
    return row


def lasting() -> Row:
    """One agent, sparse, after 10⁶ observations, half of them repeats."""
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(2000, 10))
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)
    basis = reference(RBF, pool, most=96)
    agent = cb.KernelUCB(kernel=RBF, features=basis).agent(0, cb.Network.complete(1))
    m = basis.size(RBF, 10)
    S, b = np.zeros((m, m)), np.zeros(m)
    row: Row = {"features": m}
    for step in range(1, 1_000_001):
        x = pool[step % 2000]
        if step % 2:
            x = rng.normal(size=10)
            x /= np.linalg.norm(x)
        y = float(np.sin(3 * x[0]) + 0.3 * rng.normal())
        agent.observe(x, y)
        phi = basis.features(RBF, x[None])[0]
        S += np.outer(phi, phi)
        b += y * phi
        if step in (10_000, 1_000_000):
            times = []
            for _ in range(200):
                start = process_time()
                decision = agent.decide(pool[:8])
                times.append(process_time() - start)
                del agent._open[decision.id]  # a decision whose reward never comes is kept
            row[f"ms a decision after {step}"] = 1e3 * float(np.median(times))
            row[f"MB after {step}"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            row[f"bytes stored after {step}"] = len(agent.to_bytes())
            phi = basis.features(RBF, pool[:8])
            inverse = np.linalg.inv(S + np.eye(m))
            mean = phi @ inverse @ b
            left = 1.0 - (phi**2).sum(axis=1)
            std = np.sqrt(left + np.einsum("ij,jk,ik->i", phi, inverse, phi))
            assert decision.index is not None
            gap = max(abs(decision.mean - mean[decision.index]),
                      abs(decision.std - std[decision.index]))  # fmt: skip
            row[f"difference from a fresh fit after {step}"] = gap
    late, early = row["ms a decision after 1000000"], row["ms a decision after 10000"]
    return {**row, "time, late over early": late / early}


def whole_facebook() -> Row:
    """All 4,039 agents of ego-facebook, Eager, γ = 1, linear, clusters known, T = 100."""
    network = load_network("ego-facebook")
    labels = np.random.default_rng(0).integers(8, size=len(network))
    problem = cb.problems.clustered_linear(network, dim=10, actions=8, noise=0.3, clusters=labels)
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=problem.similarity, eta=0.3)
    start = process_time()
    plan(policy, network)
    planned = process_time() - start
    run, seconds = timed(problem, policy, 100, 0)
    _, by_itself = timed(problem, cb.LinUCB(eta=0.3), 100, 0)
    return {"agents": len(network), "seconds": seconds, "planning seconds": planned,
            "engine": run.engine, "regret": run.regret_per_agent[-1],
            "LinUCB alone seconds": by_itself,
            "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}  # fmt: skip


def ring(agents: int, degree: int = 20) -> cb.Network:
    """Agents on a circle, each linked to its nearest."""
    near = [(v, (v + k) % agents) for v in range(agents) for k in range(1, degree // 2 + 1)]
    return cb.Network.from_edges(near, agents=agents)


def scaling() -> Row:
    """Milliseconds a round against V (mean degree 20) and against T; slopes in log-log."""
    row: Row = {"against V": {}, "against T": {}}
    sizes = [50, 100, 200, 500, 1000, 2000, 4000]
    for label, kernel, engine in (("statistics", LINEAR, "statistics"), ("sparse", RBF, "sparse"),
                                  ("exact", RBF, "exact")):  # fmt: skip
        times = []
        for V in sizes if engine != "exact" else sizes[:5]:
            network = ring(V)
            problem = cb.problems.clustered_linear(network, dim=10, clusters=np.arange(V) // 5 % 4)
            policy = cb.EagerKernelUCB(kernel=kernel, similarity=problem.similarity, eta=0.3)
            _, seconds = timed(problem, policy, 20, 0, engine=engine)
            times.append((V, 1e3 * seconds / 20))
        x, y = np.log(np.array(times)).T
        row["against V"][label] = {"points": times, "slope": float(np.polyfit(x[2:], y[2:], 1)[0])}
    network = ring(40)
    problem = cb.problems.clustered_linear(network, dim=10, clusters=np.arange(40) % 4)
    for label, kernel, engine, last in (
        ("statistics", LINEAR, "statistics", 3000), ("sparse", RBF, "sparse", 3000),
        ("exact", RBF, "exact", 400),
    ):  # fmt: skip
        policy = cb.EagerKernelUCB(kernel=kernel, similarity=problem.similarity, eta=0.3)
        marks: list[float] = []
        cb.play(problem, policy, rounds=last, engine=engine, memory_limit=16e9,
                on_round=lambda t, marks=marks: marks.append(process_time()))  # fmt: skip
        step = last // 10
        points = [(t, 1e3 * (marks[t - 1] - marks[t - step - 1]) / step)
                  for t in range(2 * step, last + 1, step)]  # fmt: skip
        x, y = np.log(np.array(points)).T
        row["against T"][label] = {"points": points, "slope": float(np.polyfit(x, y, 1)[0])}
    figure(row)
    return row


def figure(row: Row) -> None:
    """Draw the scaling."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    drawing, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, key, label in zip(
        axes, ("against V", "against T"), ("agents V", "round t"), strict=True
    ):
        for place, (name, found) in enumerate(row[key].items()):
            axis.loglog(*np.array(found["points"]).T, marker="osD"[place], markersize=4,
                        color=COLOURS[place],
                        label=f"{name}, slope {found['slope']:.2f}")  # fmt: skip
        axis.set(xlabel=label, ylabel="milliseconds a round")
        axis.legend(frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_title("Eager-KernelUCB, K_z known, mean degree 20, 20 rounds", fontsize=10)
    axes[1].set_title("40 agents, mean degree 20", fontsize=10)
    drawing.savefig(HERE.parent / "docs" / "images" / "scaling.png", dpi=130)


def paper() -> Row:
    """Every algorithm of the paper's figure once, in both setups on four networks."""
    experiment = paper_experiment(
        profile="paper", networks=("er", "facebook", "twitch", "caida"), trials=1
    )
    seconds: dict[str, float] = {}
    for task in experiment.tasks:
        start = process_time()
        run_task(experiment, task)
        cell = f"{task.cell.problem}, {task.cell.network}, {task.cell.policy}"
        seconds[cell] = process_time() - start
        print(f"  {cell}: {seconds[cell]:.1f} s", flush=True)
    hours = 100 * sum(seconds.values()) / 2 / 3600
    return {"seconds": seconds, "hours on two cores, 100 trials": hours}


ROWS: dict[str, Callable[[], Row]] = {
    "coop": coop, "facebook": facebook, "evidence": evidence,
    "embedding": embedding, "sparse": sparse, "sparse_regret": sparse_regret, "alone": alone,
    "one_agent": one_agent, "lasting": lasting, "whole_facebook": whole_facebook,
    "scaling": scaling, "paper": paper, **large.ROWS,
}  # fmt: skip


def peer_times() -> dict[str, float]:
    """Time the peers in their own environment, once a run."""
    if not PEERS.exists():
        raise SystemExit("the peers are not installed: run `make bench`, which does it")
    kept = HERE.parent / "out" / "peers.json"
    if not kept.exists():
        answer = subprocess.run(
            [PEERS, HERE / "peers.py"], check=True, capture_output=True, text=True
        )
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(answer.stdout, encoding="utf-8")
    return dict(json.loads(kept.read_text(encoding="utf-8"))["seconds"])


def run(names: list[str]) -> None:
    """Measure some rows, each in a process of its own, and write them down at once."""
    for name in names or ROWS:
        print(name, flush=True)
        subprocess.run([sys.executable, __file__, "one", name], check=True)


def one(name: str) -> None:
    """Measure a row in this process."""
    before = dgemm()
    found = ROWS[name]()
    after = dgemm()
    found["dgemm, GF/s"] = [round(before, 1), round(after, 1)]
    for key in ("of dgemm", "of dgemm, scoring", "of dgemm, whole run"):
        if key in found:
            found[key] /= (before + after) / 2
    done = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    done[name] = {"work": ROWS[name].__doc__, **found}
    done["machine"] = (f"{platform.machine()}, {os.cpu_count()} cores, "
                       f"Python {platform.python_version()}, numpy {np.__version__}")  # fmt: skip
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def table() -> None:
    """Print what has been measured."""
    done = json.loads(RESULTS.read_text(encoding="utf-8"))
    print("| work | measured |\n|---|---|")
    for name in ROWS:
        if name in done:
            facts = "; ".join(f"{key}: {_short(value)}" for key, value in done[name].items()
                              if key != "work")  # fmt: skip
            print(f"| {done[name]['work']} | {facts} |")
    print(f"\n{done['machine']}")


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_short(each)}" for key, each in value.items() if key != "points")
    return str(value)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["run", "one", "table"])
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []])
    parser.add_argument("--data", help=f"folder with files of networks, in place of {VARIABLE}")
    options = parser.parse_args()
    if options.data is not None:
        os.environ[VARIABLE] = options.data  # each row is measured in a process of its own
    if options.command == "table":
        table()
    elif options.command == "one":
        one(options.rows[0])
    else:
        run(options.rows)


if __name__ == "__main__":
    main()
