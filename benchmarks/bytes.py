"""How much regret does saying less cost? Regret per agent against bytes per agent.

    python benchmarks/bytes.py run       # some minutes of one core
    python benchmarks/bytes.py table     # the table of docs/saying-less.md
    python benchmarks/bytes.py figure    # docs/images/saying-less.png

The setting: 20 agents of an Erdős-Rényi network (p = 0.3), γ = 1, three linear tasks in 5
dimensions, K_z known, 6 actions a round on the unit sphere, noise 0.3, ridge 1, eta 0.3, 150
rounds, seeds 0 … 9. Every seed draws its own network, tasks, contexts and noise; all policies of
a seed share them. Nothing was tuned.
"""

import argparse
import csv
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

import coopbandits as cb
from coopbandits.palette import COLOURS
from coopbandits.problems.problem import Simulated

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "bytes.csv"
FIGURE = HERE.parent / "docs" / "images" / "saying-less.png"
AGENTS, P, TASKS, DIM, ACTIONS, NOISE, ETA = 20, 0.3, 3, 5, 6, 0.3, 0.3
ROUNDS, SEEDS = 150, 10
FIELDS = ["family", "setting", "seed", "regret", "messages", "bytes"]

SAYS: dict[str, dict[str, cb.say.Say]] = {
    "only if σ² > cλ": {f"c = {c:g}": cb.say.WhenUncertain(c) for c in (0.4, 0.2, 0.1, 0.05)},
    "held back until it pays": {f"{g:g} nats": cb.say.WhenItPays(g) for g in (2.0, 1.0, 0.5)},
    "sums, every k": {f"k = {k}": cb.say.Sums(every=k) for k in (50, 15, 5)},
    "sums, when it pays": {f"{g:g} nats": cb.say.Sums(gain=g) for g in (2.0, 1.0, 0.5)},
}
EVERYTHING, DIST, ALONE = "everything", "Dist-KernelUCB", "alone"


def policies(problem: Simulated) -> dict[tuple[str, str], cb.Policy]:
    """Make the policies of one problem, by family and setting."""
    linear, exact = cb.kernels.Linear(), cb.features.Exact()

    def eager(say: cb.say.Say | None) -> cb.Policy:
        return cb.EagerKernelUCB(
            kernel=linear,
            similarity=problem.similarity,
            eta=ETA,
            features=None if say is None else exact,
            say=say,
        )

    made = {(f, s): eager(say) for f, settings in SAYS.items() for s, say in settings.items()}
    made[EVERYTHING, ""] = eager(None)
    made[DIST, ""] = cb.DistKernelUCB(kernel=linear, eta=ETA)
    made[ALONE, ""] = cb.LinUCB(eta=ETA)
    return made


def run() -> None:
    """Play all policies on all seeds, and keep what each cost."""
    rows = []
    for seed in range(SEEDS):
        network = cb.Network.erdos_renyi(AGENTS, P, seed=seed)
        tasks = np.random.default_rng([seed, 1]).integers(TASKS, size=AGENTS)
        problem = cb.problems.clustered_linear(
            network, dim=DIM, actions=ACTIONS, noise=NOISE, clusters=tasks, seed=seed
        )
        for (family, setting), policy in policies(problem).items():
            played = cb.play(problem, policy, rounds=ROUNDS, seed=seed)
            regret = float(played.regret_per_agent[-1])
            sent = played.messages.sum() / AGENTS, played.bytes.sum() / AGENTS
            rows.append([family, setting, seed, f"{regret:.6g}", *(f"{n:g}" for n in sent)])
        print(f"seed {seed} of {SEEDS}", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *rows])


def summary() -> list[tuple[str, str, str, float, float, float, float]]:
    """Summarise each policy.

    Returns:
        Family, setting, regret above that of telling everything (paired by seed), mean regret,
        half of its interval, messages and bytes.
    """
    with RESULTS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    told = np.array([float(row["regret"]) for row in rows if row["family"] == EVERYTHING])
    found = []
    for family, setting in dict.fromkeys((row["family"], row["setting"]) for row in rows):
        mine = [row for row in rows if (row["family"], row["setting"]) == (family, setting)]
        regret, messages, sent = (
            np.array([float(row[name]) for row in mine]) for name in ("regret", "messages", "bytes")
        )
        above = f"{(regret - told).mean():+.2f} ± {interval(regret - told):.2f}"
        facts = regret.mean(), interval(regret), messages.mean(), sent.mean()
        found.append((family, setting, above if family != EVERYTHING else "", *facts))
    return found


def interval(values: np.ndarray) -> float:
    """Return half of the 95% interval of a mean."""
    return stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))


def table() -> None:
    """Print the table, fewest bytes first."""
    print(
        "| what is told | | kB per agent | messages per agent | regret per agent | more, paired |"
    )
    print("|---|---|---|---|---|---|")
    for family, setting, above, mean, half, messages, sent in sorted(
        summary(), key=lambda row: row[-1]
    ):
        print(
            f"| {family} | {setting} | {sent / 1000:.1f} | {messages:.0f} "
            f"| {mean:.2f} ± {half:.2f} | {above} |"
        )


def figure() -> None:
    """Draw regret against bytes."""
    import matplotlib as mpl  # noqa: PLC0415 (only to draw)

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    found = summary()
    canvas, (axis, costs) = plt.subplots(1, 2, figsize=(13, 5), width_ratios=[3, 2])
    marks = dict(zip([*SAYS, EVERYTHING, DIST], "o^sDP*", strict=True))
    colours = dict(zip(marks, COLOURS, strict=False))
    for family, mark in marks.items():
        mine = sorted((row for row in found if row[0] == family), key=lambda row: row[-1])
        if family == DIST:
            continue
        kilobytes = [row[-1] / 1000 for row in mine]
        axis.errorbar(
            kilobytes,
            [row[3] for row in mine],
            yerr=[row[4] for row in mine],
            marker=mark,
            markersize=8,
            capsize=3,
            color=colours[family],
            label=family,
        )
        for x, row in zip(kilobytes, mine, strict=True):
            axis.annotate(
                row[1],
                (x, row[3]),
                xytext=(-8, -26) if mark == "o" else (6, 6),  # two families lie close together
                textcoords="offset points",
                fontsize=7.5,
                color=colours[family],
            )
    [alone] = [row for row in found if row[0] == ALONE]
    axis.axhline(alone[3], color="black", linestyle="--", linewidth=1, label="alone, 0 bytes")
    axis.axhspan(alone[3] - alone[4], alone[3] + alone[4], color="black", alpha=0.08)
    axis.set_xscale("log")
    axis.set_xlabel("kB sent per agent in 150 rounds (logarithmic)")
    axis.set_ylabel("regret per agent")
    axis.set_ylim(bottom=0)
    axis.set_title("Regret against bytes, mean and 95% interval of 10 seeds", fontsize=10)
    axis.legend(fontsize=8)
    axis.minorticks_off()
    axis.set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    ordered = sorted(found, key=lambda row: row[3])
    places = np.arange(len(ordered))
    costs.barh(
        places,
        [row[-1] / 1000 for row in ordered],
        color=[colours.get(row[0], "black") for row in ordered],
    )
    for place, (*_, mean, half, _, sent) in zip(places, ordered, strict=True):
        text = f" regret {mean:.2f} ± {half:.2f}"
        costs.text(sent / 1000, place, text, va="center", fontsize=8)
    names = [f"{family}{', ' * bool(setting)}{setting}" for family, setting, *_ in ordered]
    costs.set_yticks(places, names, fontsize=8)
    costs.invert_yaxis()
    costs.set_xlim(right=1.45 * max(row[-1] for row in found) / 1000)
    costs.set_xlabel("kB sent per agent")
    costs.set_title("The same in numbers, least regret first", fontsize=10)
    canvas.tight_layout()
    FIGURE.parent.mkdir(exist_ok=True)
    canvas.savefig(FIGURE, dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How much regret does saying less cost?")
    parser.add_argument("what", choices=["run", "table", "figure"])
    {"run": run, "table": table, "figure": figure}[parser.parse_args().what]()
