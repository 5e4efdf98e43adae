"""Five gateways choose a language model for each prompt: small, or large at a price.

    make router         # needs RouteLLM's recorded answers to MMLU; says so if they are missing

Each round brings every gateway a prompt. It sends it to Mixtral-8x7B or to GPT-4, and sees whether
that answer was right; its reward is 1 for a right answer, less the price if it was the large model.
Both answers were recorded (RouteLLM), so every reward is known. A gateway's prompts come from its
own field of MMLU's 57 subjects (`FIELDS`) with probability 0.8, otherwise from all 57; every prompt
of a source is as likely, and none comes twice from one source.

Compared, on the same prompts: each gateway alone (LinUCB), one model for all gateways
(Centralised, a round late), and gateways that hear each other and learn whom to trust
(Eager-KernelUCB with `Evidence`, its default). Each plays once for every price, which gives a curve
of accuracy against the share of prompts that the large model gets, all rounds counted. Beside them:
always the small model, always the large one, a coin between both, least squares fitted to both
answers of all prompts, these included (what the features can tell), and an oracle that knows both
answers and takes the large model only where it alone is right.

All three have η = 0.3, ridge 1 and intercept 10, as README.md has them for rewards with a constant,
and ten features for each prompt; nothing was tuned. Trials are the seeds 0, 1, …
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import coopbandits as cb
from coopbandits.comparison import mean_of
from coopbandits.lab.datasets.routellm import contexts, read
from coopbandits.palette import COLOURS, QUIET

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

ETA, INTERCEPT, DIM, OWN = 0.3, 10.0, 10, 0.8
HINDSIGHT = "least squares, hindsight"
PRICES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
FIELDS = {
    "law": "international_law jurisprudence professional_law",
    "medicine": "anatomy clinical_knowledge college_biology college_medicine high_school_biology "
    "human_aging medical_genetics nutrition professional_medicine virology",
    "engineering": "abstract_algebra astronomy college_chemistry college_computer_science "
    "college_mathematics college_physics computer_security conceptual_physics "
    "electrical_engineering elementary_mathematics high_school_chemistry "
    "high_school_computer_science high_school_mathematics high_school_physics "
    "high_school_statistics machine_learning",
    "humanities": "formal_logic high_school_european_history high_school_us_history "
    "high_school_world_history logical_fallacies moral_disputes moral_scenarios philosophy "
    "prehistory world_religions",
    "business": "business_ethics econometrics high_school_macroeconomics "
    "high_school_microeconomics management marketing professional_accounting public_relations",
}
NETWORK = cb.Network.from_edges(
    [(v, u) for u in range(len(FIELDS)) for v in range(u)], names=tuple(FIELDS)
)
WANTED = (
    "download RouteLLM's recorded MMLU responses (GitHub: lm-sys/RouteLLM, the 57 files of "
    "routellm/evals/mmlu/responses) and put them into one mmlu_two_models.csv with the columns "
    "subject, prompt, mixtral_8x7b_correct and gpt_4_1106_correct, the last two 0 or 1"
)


def routers() -> dict[str, cb.Policy]:
    """All that learn, by name."""
    linear = cb.kernels.Linear()
    return {
        "alone": cb.LinUCB(eta=ETA, intercept=INTERCEPT),
        "one model for all": cb.Centralised(linear, lag=1, eta=ETA, intercept=INTERCEPT),
        "cooperating": cb.EagerKernelUCB(linear, eta=ETA, intercept=INTERCEPT),
    }


def traffic(subjects: tuple[str, ...], owner: IntArray, rounds: int, seed: int) -> IntArray:
    """Draw which prompt each gateway gets in each round: (T, V)."""
    rng = np.random.default_rng([seed, 57])
    drawn = []
    for field in FIELDS.values():
        own = np.flatnonzero(np.isin(owner, [subjects.index(name) for name in field.split()]))
        of_field = rng.choice(own, size=rounds, replace=False)
        of_all = rng.choice(len(owner), size=rounds, replace=False)
        drawn.append(np.where(rng.random(rounds) < OWN, of_field, of_all))
    return np.stack(drawn, axis=1)


def routed(policy: cb.Policy, X: Array, right: Array, price: float, seed: int) -> Array:
    """Let a policy route (T, V, 2, d) at a price; return the large model's share, and accuracy."""
    problem = cb.problems.table(NETWORK, X, right - np.array([0.0, price]))
    large = cb.play(problem, policy, rounds=len(X), seed=seed).actions
    accuracy = np.take_along_axis(right, large[..., None], axis=2).mean()
    return np.array([large.mean(), accuracy])


def measured(
    data: tuple[tuple[str, ...], IntArray, Array, Array], rounds: int, seeds: range
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return share and accuracy of routers, (S, prices, 2) each, and of references, (S, 2) each."""
    subjects, owner, features, right = data
    gain = fitted_gain(features, right)
    learnt: dict[str, list[list[Array]]] = {name: [] for name in (*routers(), HINDSIGHT)}
    fixed: dict[str, list[list[float]]] = {
        n: [] for n in ("always small", "always large", "oracle")
    }
    for seed in seeds:
        rows = traffic(subjects, owner, rounds, seed)
        X, y = contexts(features[rows]), right[rows]
        small, large = y[..., 0], y[..., 1]
        fixed["always small"].append([0.0, small.mean()])
        fixed["always large"].append([1.0, large.mean()])
        fixed["oracle"].append([(large > small).mean(), np.maximum(small, large).mean()])
        for name, policy in routers().items():
            learnt[name].append([routed(policy, X, y, price, seed) for price in PRICES])
        chosen = [gain[rows] > price for price in PRICES]
        learnt[HINDSIGHT].append(
            [np.array([c.mean(), np.where(c, large, small).mean()]) for c in chosen]
        )
    return (
        {name: np.array(values) for name, values in learnt.items()},
        {name: np.array(values) for name, values in fixed.items()},
    )


def fitted_gain(features: Array, right: Array) -> Array:
    """Fit by how much the large model is better to all answers, by least squares: (n,)."""
    phi = np.column_stack([features, np.ones(len(features))])
    return phi @ np.linalg.lstsq(phi, right[:, 1] - right[:, 0], rcond=None)[0]


def above_the_coin(points: Array, fixed: dict[str, Array]) -> Array:
    """Return by how much points (S, 2) are more accurate than a coin of the same share: (S,)."""
    small, large = fixed["always small"][:, 1], fixed["always large"][:, 1]
    return points[:, 1] - (small + points[:, 0] * (large - small))


def rewards(values: Array) -> Array:
    """Return what was earned a prompt at each price, of share and accuracy: (S, prices)."""
    return values[..., 1] - np.array(PRICES) * values[..., 0]


def tabled(learnt: dict[str, Array], fixed: dict[str, Array]) -> Table:
    """Make a table of all points, in percent of prompts."""
    trials = len(fixed["oracle"])
    table = Table(title=f"Percent of prompts: mean of {trials} trials ± half of a 95% interval")
    for column in ("price", "router", "to large", "right", "above a coin", "reward − alone's"):
        table.add_column(column, justify="left" if column == "router" else "right")
    for place, price in enumerate(PRICES):
        for name, values in learnt.items():
            points = values[:, place]
            difference = (rewards(values) - rewards(learnt["alone"]))[:, place]
            more = "" if name == "alone" else shown(difference, "+")
            above = shown(above_the_coin(points, fixed), "+")
            cells = (shown(points[:, 0]), shown(points[:, 1]), above, more)
            table.add_row(f"{price:.2f}", name, *cells, end_section=name == HINDSIGHT)
    for name, points in fixed.items():
        above = shown(above_the_coin(points, fixed), "+") if name == "oracle" else ""
        table.add_row("", name, shown(points[:, 0]), shown(points[:, 1]), above, "")
    return table


def shown(values: Array, sign: str = "") -> str:
    """Write a mean over trials in percent, with its interval unless all are equal."""
    mean, half = mean_of(100 * values)
    interval = "" if np.ptp(values) == 0 else f" ± {half:.1f}"
    return f"{mean:{sign}.1f}{interval}"


def draw(learnt: dict[str, Array], fixed: dict[str, Array], title: str, file: Path) -> None:
    """Draw accuracy against the large model's share, and what is earned more than alone."""
    figure = Figure(figsize=(10, 4.8), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    at = {name: 100 * points.mean(axis=0) for name, points in fixed.items()}
    small, large = at["always small"], at["always large"]
    left.plot(*np.stack([small, large]).T, "--", color=QUIET, lw=1.2, label="a coin")
    for place, (name, values) in enumerate(learnt.items()):
        line, marker = (":", "") if name == HINDSIGHT else ("-", "os^"[place])
        look = {"color": QUIET if name == HINDSIGHT else COLOURS[place], "ls": line}
        left.plot(*100 * values.mean(axis=0).T, marker=marker, ms=5.5, lw=1.8, label=name, **look)
        if name != "alone":
            mean, half = mean_of(100 * (rewards(values) - rewards(learnt["alone"])))
            shift = 0.003 * (place - 2)  # so that intervals stand beside each other
            right.errorbar(np.array(PRICES) + shift, mean, half, marker=marker, capsize=3, **look)
    left.plot(*at["oracle"], "*", color="black", ms=12, ls="none", label="oracle")
    left.plot(*np.stack([small, large]).T, "D", color=QUIET, ms=6)
    beside = {"textcoords": "offset points", "color": QUIET}
    left.annotate("always small", small, (9, -9), ha="left", **beside)
    left.annotate("always large", large, (-4, 9), ha="right", **beside)
    left.set(xlabel="prompts sent to the large model, %", ylabel="right answers, % of prompts")
    left.set(xlim=(-3, 103), ylim=(small[1] - 1.5, None))
    right.axhline(0, color=COLOURS[0], lw=1.8)
    right.set(xlabel="price of the large model, in right answers")
    right.set(ylabel="reward more than alone, per 100 prompts")
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.2)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(title)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Software": None})


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description="Five gateways choose a model for each prompt.")
    parser.add_argument("data", type=Path, nargs="?", help="folder with the answers")
    parser.add_argument("--rounds", type=int, default=200, help="prompts a gateway, default 200")
    parser.add_argument("--trials", type=int, default=5, help="default 5")
    parser.add_argument("--out", type=Path, default=Path("out/router"), help="default out/router")
    options = parser.parse_args()
    if not 2 <= options.rounds <= 1500 or options.trials < 2:
        parser.error("--rounds must be from 2 to 1500, and --trials at least 2")
    if options.data is None:
        parser.error(f"no folder with the answers is named; {WANTED}")
    try:
        data = read(str(options.data), DIM)
    except cb.errors.InputError as error:
        parser.error(f"{error}; {WANTED}")
    learnt, fixed = measured(data, options.rounds, range(options.trials))
    console = Console(width=100)
    console.print(tabled(learnt, fixed))
    file = options.out / "llm-router.png"
    title = f"Five gateways, {options.rounds} prompts each, {options.trials} trials"
    draw(learnt, fixed, title, file)
    console.print(f"Figure: {file}")


if __name__ == "__main__":
    main()
