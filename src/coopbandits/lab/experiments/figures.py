"""What does a run look like? Regret over time; rows are problems, columns are networks."""

import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.summary import Summary, summaries
from coopbandits.lab.experiments.tables import csv_text
from coopbandits.lab.experiments.whole_files import write_whole
from coopbandits.palette import QUIET, colour
from coopbandits.plain_text import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

# Points that an axis of rounds has at least, a letter of its labels, and the space between two.
_AXIS, _DIGIT, _BETWEEN = 165.0, 6.2, 10.0
# Inches that a legend takes for a line with the space around it, and for a letter of a name.
_HANDLE, _LETTER = 0.72, 0.08


def write_figures(store: Store) -> None:
    """Write the figure of regret as SVG and PNG, with the data behind it."""
    found = summaries(store)
    if not found:
        return
    folder = store.folder / "figures"
    figure = regret_figure(store, found)
    for suffix, content in drawn(figure).items():
        write_whole(folder / f"regret.{suffix}", content)
    write_whole(folder / "regret.csv", csv_text(_data(found)).encode())


def drawn(figure: "Figure") -> dict[str, bytes]:
    """Draw a figure as SVG and PNG; the same figure gives the same bytes."""
    import matplotlib  # noqa: PLC0415 (heavy)

    made = {}
    with matplotlib.rc_context({"svg.hashsalt": "coopbandits"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names in other scripts
        for suffix, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            packed = BytesIO()
            figure.savefig(packed, format=suffix, metadata=metadata)
            made[suffix] = packed.getvalue()
    return made


def style_of(store: Store) -> dict[str, dict[str, Any]]:
    """Return how each policy is drawn, in all figures of a run."""
    policies = store.experiment.policies
    solid = [name for name, table in policies.items() if not table.get("dashed")]
    colours = {name: colour(place) for place, name in enumerate(solid)}
    return {
        name: {
            "color": colours.get(name, QUIET),
            "linestyle": "--" if table.get("dashed") else "-",
        }
        for name, table in policies.items()
    }


def regret_figure(
    store: Store, found: list[Summary], new: "Callable[..., Figure] | None" = None
) -> "Figure":
    """Draw cumulative regret per agent, mean and 95% band over trials.

    Args:
        store: The run.
        found: Its summaries.
        new: What makes the figure: `pyplot.figure` for one that notebooks show.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 (heavy)
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (heavy)

    experiment = store.experiment
    rows, columns = list(experiment.problems), list(experiment.networks)
    style = style_of(store)
    names = [_plain(name) for name in experiment.policies]
    wide = max(4.2, 3.3 * len(columns), _inches(names, min(len(names), 2)))
    size = (wide, 3.0 * len(rows) + 1.1)
    figure = (new or Figure)(figsize=size, dpi=150, layout="constrained")
    logarithmic = _is_wide(found)
    axes = figure.subplots(
        len(rows), len(columns), squeeze=False, sharey="row" if logarithmic else False
    )
    handles: dict[str, Any] = {}
    for row, problem in enumerate(rows):
        for column, network in enumerate(columns):
            axis = axes[row, column]
            here = [s for s in found if (s.cell.problem, s.cell.network) == (problem, network)]
            for summary in here:
                look = style[summary.cell.policy]
                (line,) = axis.plot(summary.rounds, summary.regret, lw=1.6, **look)
                low, high = summary.regret - summary.half, summary.regret + summary.half
                axis.fill_between(summary.rounds, low, high, color=look["color"], alpha=0.15, lw=0)
                handles.setdefault(summary.cell.policy, line)
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(alpha=0.2)
            if logarithmic:
                axis.set_yscale("log")
                axis.yaxis.set_major_formatter("{x:g}")
                axis.set_ylim(bottom=_least(found, problem))
            else:
                axis.set_ylim(bottom=0)
            axis.set_xlim(0, experiment.rounds)
            parts = _most_ticks(experiment.rounds)
            axis.xaxis.set_major_locator(MaxNLocator(parts, steps=[1, 2, 5, 10], integer=True))
            axis.xaxis.set_major_formatter("{x:,.0f}")
            if row == 0:
                axis.set_title(_plain(network))
            if row == len(rows) - 1:
                axis.set_xlabel("round")
            if column == 0:
                scale = ", log scale" if logarithmic else ""
                axis.set_ylabel(f"{_plain(problem)}\nregret per agent{scale}")
    ordered = [name for name in experiment.policies if name in handles]
    figure.legend(
        [handles[name] for name in ordered],
        [_plain(name) for name in ordered],
        loc="outside lower center",
        ncols=_legend_columns([_plain(name) for name in ordered], wide, int(1.6 * len(columns))),
        frameon=False,
    )
    return figure


def _most_ticks(rounds: int) -> int:
    """Return into how many parts ticks may cut an axis of rounds, so that no labels touch."""
    return max(1, min(6, int(_AXIS / (_DIGIT * len(f"{rounds:,}") + _BETWEEN))))


def _plain(name: str) -> str:
    """Keep a name from being read as a formula, and from holding what no SVG may."""
    return visible(name).replace("$", r"\$")


def _legend_columns(names: list[str], wide: float, most: int) -> int:
    """Return how many columns a legend may have, at most, in a figure so many inches wide."""
    counts = range(min(len(names), max(2, most)), 1, -1)
    return next((count for count in counts if _inches(names, count) <= wide), 1)


def _inches(names: list[str], count: int) -> float:
    """Return about how wide a legend of so many columns is; it is filled column by column."""
    columns = np.array_split([len(name) for name in names], count)
    return float(sum(_HANDLE + _LETTER * column.max() for column in columns))


def _is_wide(found: list[Summary]) -> bool:
    """Tell whether some policies would be flat lines beside others in one panel."""
    panels: dict[tuple[str, str], list[float]] = {}
    for s in found:
        panels.setdefault((s.cell.problem, s.cell.network), []).append(s.final.value)
    return any(min(finals) > 0 and max(finals) > 20 * min(finals) for finals in panels.values())


def _least(found: list[Summary], problem: str) -> float:
    """Return where a logarithmic axis begins: the first rounds may run out of the frame."""
    least = [
        float(s.regret[s.rounds >= s.rounds[-1] / 20].min())
        for s in found
        if s.cell.problem == problem
    ]
    return 0.7 * min((value for value in least if value > 0), default=1.0)


def _data(found: list[Summary]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for summary in found:
        count = len(summary.rounds)
        for name, column in {
            "problem": [summary.cell.problem] * count,
            "network": [summary.cell.network] * count,
            "policy": [summary.cell.policy] * count,
            "trials": [summary.trials] * count,
            "round": summary.rounds,
            "regret": summary.regret,
            "half_interval": summary.half,
        }.items():
            table.setdefault(name, []).extend(np.asarray(column).tolist())
    return table
