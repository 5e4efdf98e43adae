"""Regret over rounds as a picture. matplotlib, which an extra brings, is imported to draw one."""

from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.arrays import Array, IntArray, short
from coopbandits.errors import MissingExtraError, ParameterError
from coopbandits.palette import QUIET, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # noqa: PLC0414 (exported)


def regret_axes(ax: object = None) -> "Axes":
    """Return axes for curves of regret: those given, or new ones of a new pyplot figure."""
    try:
        from matplotlib.axes import Axes  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "matplotlib is not installed, and plot() draws with it; try: "
            "pip install 'coopbandits[lab]'"
        ) from error
    if ax is None:
        from matplotlib import pyplot  # noqa: PLC0415 (heavy; notebooks show its figures)

        _, ax = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    if not isinstance(ax, Axes):
        raise ParameterError(f"ax={short(ax)}; expected matplotlib axes, or None for new ones")
    return ax


def draw_curve(
    axes: "Axes",
    curve: Array,
    low: Array,
    high: Array,
    label: str = "",
    *,
    rounds: IntArray | None = None,
) -> None:
    """Draw a curve with its band, in the next colour of the palette.

    Args:
        axes: From `regret_axes`.
        curve: (P,).
        low: (P,) where the band begins; NaN for none.
        high: (P,) where it ends.
        label: In the legend.
        rounds: (P,) of the points; 1 … P, if not given.
    """
    rounds = np.arange(1, len(curve) + 1) if rounds is None else rounds
    look: dict[str, Any] = {"color": colour(len(axes.lines))}
    axes.plot(rounds, curve, lw=1.8, label=label.replace("$", r"\$") or "_", **look)
    axes.fill_between(rounds, low, high, alpha=0.15, lw=0, **look)


def finish(axes: "Axes", *, note: str) -> None:
    """Name the axes, and say what the bands are."""
    axes.set_xlabel("round")
    axes.set_ylabel("cumulative regret per agent")
    axes.set_title(note, fontsize="small", loc="left", color=QUIET)
    last = max(float(np.max(line.get_xdata())) for line in axes.lines)
    axes.set_xlim(0, last)
    axes.locator_params(axis="x", integer=True)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False)
