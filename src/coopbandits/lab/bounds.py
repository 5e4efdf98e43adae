"""How far below its bound is a run's regret? A figure, of any runs that have one."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coopbandits.arrays import short
from coopbandits.errors import ParameterError
from coopbandits.palette import COLOURS
from coopbandits.theory import RunBound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 6  # panels side by side


def bound_figure(
    found: RunBound | Mapping[str, RunBound],
    *,
    title: str = "",
    file: str | Path | None = None,
) -> "Figure":
    """Draw measured regret under its bound, round by round, one panel for each run.

    Both are regrets per agent, on logarithmic axes: bounds are far above what is measured, and what
    they tell is how the two grow. Needs matplotlib.

    Args:
        found: What `theory.run_bound` returned, or several by name (up to six).
        title: Above the figure.
        file: Where to save it, if anywhere.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 (core and CLI start without it)

    given: object = {"": found} if isinstance(found, RunBound) else found
    runs = dict(given) if isinstance(given, Mapping) else {}
    if not 1 <= len(runs) <= _MOST or not all(isinstance(run, RunBound) for run in runs.values()):
        raise ParameterError(
            f"expected what theory.run_bound returns, or 1 to {_MOST} of them by name; got "
            f"{short(found)}"
        )
    figure = Figure(figsize=(3.3 * len(runs) + 0.6, 3.6), dpi=150, layout="constrained")
    axes = figure.subplots(1, len(runs), sharey=True, squeeze=False)[0]
    for axis, colour, (name, run) in zip(axes, COLOURS, runs.items(), strict=False):
        V, t = run.agent_bound.shape[1], np.arange(1, len(run.bound) + 1)
        measured = np.where(run.measured > 0, run.measured, np.nan) / V
        axis.fill_between(t, measured, run.bound / V, color=colour, alpha=0.12, lw=0)
        promise = f"bound, with probability ≥ {1 - run.delta:.2g}"
        axis.plot(t, run.bound / V, "--", color=colour, lw=1.8, label=promise)
        axis.plot(t, measured, color=colour, lw=2.2, label="measured")
        axis.set(xscale="log", yscale="log", xlabel="round", title=name)
        axis.set_xlim(1, max(len(t), 2))
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
        axis.legend(frameon=False, loc="upper left", fontsize=8)
    # room for the legend above the curves
    low, high = axes[0].get_ylim()
    axes[0].set_ylim(low, high * 6)
    axes[0].set_ylabel("regret per agent")
    if title:
        figure.suptitle(title)
    if file is not None:
        figure.savefig(file, metadata={"Software": None})
    return figure
