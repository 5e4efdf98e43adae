"""What does each γ cost and promise, at a glance? The picture of an `Inspection`.

Left the network, its agents coloured by the cliques that Coop-KernelUCB would play with; above 100
agents the cliques alone. Right the factors of the bounds and the messages per round against γ.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from coopbandits.arrays import as_count
from coopbandits.errors import ParameterError
from coopbandits.lab.planning.network_picture import MOST_DRAWN, draw_network
from coopbandits.lab.planning.planner import Inspection, counted
from coopbandits.lab.planning.quotient_picture import draw_quotient
from coopbandits.palette import COLOURS, FAINT, QUIET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
# Coop is a wide line and Dist a narrow one with open squares, so that both show where they agree
LINES: dict[str, dict[str, Any]] = {
    "coop": {"label": "Coop", "color": COLOURS[0], "marker": "o", "lw": 3.5, "ms": 6},
    "dist": {
        "label": "Dist (one task for all)",
        "color": COLOURS[1],
        "marker": "s",
        "lw": 1.3,
        "ms": 9,
        "markerfacecolor": "none",
    },
    "eager": {
        "label": "Eager (conjecture)",
        "color": COLOURS[2],
        "marker": "^",
        "lw": 1.8,
        "ms": 5,
        "ls": "--",
    },
}

# So many values of γ have their number below an axis.
_NAMED = 20


def planner_figure(
    inspection: Inspection,
    *,
    ttl: int | None = None,
    title: str = "",
    file: str | Path | None = None,
) -> "Figure":
    """Draw a network with its cliques at one γ, and what each γ costs and promises.

    Needs matplotlib.

    Args:
        inspection: What `inspect_network` returned.
        ttl: The γ whose cliques are drawn; if not given, the paper's choice where it is listed,
            else the smallest one near the best.
        title: What the network is called.
        file: Where to save the figure, if anywhere: a .png, .svg or .pdf.
    """
    import matplotlib as mpl  # noqa: PLC0415 (core and CLI start without it)
    from matplotlib.figure import Figure  # noqa: PLC0415 (the same)

    if file is not None:
        check_picture(file)
    listed = [row.ttl for row in inspection.rows]
    if ttl is None:
        ttl = inspection.paper_ttl if inspection.paper_ttl in listed else inspection.near_ttl
    gamma = as_count(ttl, "ttl")
    cover = inspection.network.clique_cover(gamma)
    figure = Figure(figsize=(11.5, 6.2), dpi=150, layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=[1.25, 1.0], wspace=0.06, hspace=0.08)
    left = figure.add_subplot(grid[:, 0])
    draw = draw_network if len(inspection.network) <= MOST_DRAWN else draw_quotient
    notes = draw(left, inspection.network, cover.labels)
    heading = f"At γ = {gamma} the agents form {counted(len(cover.cliques), 'clique')}"
    left.set_title(heading, fontsize=10, pad=8 + 11 * len(notes))
    left.annotate(
        "\n".join(notes),
        (0.5, 1.0),
        xycoords="axes fraction",
        xytext=(0, 4),
        fontsize=8,
        textcoords="offset points",
        ha="center",
        va="bottom",
        color=QUIET,
    )
    above = figure.add_subplot(grid[0, 1])
    _draw_factors(above, inspection)
    _draw_messages(figure.add_subplot(grid[1, 1], sharex=above), inspection)
    figure.suptitle(
        f"{title or 'A network'}: what each time to live γ costs and promises\n"
        f"{inspection.counts}, diameter {inspection.diameter:,}",
        fontsize=12,
    )
    if file is not None:
        # without dates and random names the same network gives the same bytes
        plain = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        with mpl.rc_context({"svg.hashsalt": "coopbandits"}):
            figure.savefig(file, metadata=plain[Path(file).suffix.lower()])
    return figure


def check_picture(file: str | Path) -> None:
    """Refuse a picture's file of another kind than those that can be drawn."""
    if Path(file).suffix.lower() not in FORMATS:
        raise ParameterError(f"{file} is no picture; its name must end in {', '.join(FORMATS)}")


def _draw_factors(axis: Any, inspection: Inspection) -> None:
    ttls = [row.ttl for row in inspection.rows]
    for name, style in LINES.items():
        outlooks = [getattr(row, name) for row in inspection.rows]
        factors = [outlook.factor for outlook in outlooks]
        best = [outlook.best_factor for outlook in outlooks]
        axis.fill_between(ttls, best, factors, color=style["color"], alpha=0.2, lw=0)
        axis.plot(ttls, factors, **style)
    axis.axhline(1.0, color="black", lw=1)
    _label(axis, 1.0, "working alone", ha="right", va="bottom", x=1.0)
    least = inspection.least_factor
    axis.axhline(least, color=QUIET, lw=1, ls=":")
    side = "top" if least > 0.12 else "bottom"
    _label(axis, least, "1/√V, the least possible", ha="left", va=side, x=0.0)
    axis.set_title(
        "Bound on regret per agent, relative to working alone", fontsize=10, loc="left", pad=22
    )
    axis.set_ylabel("factor of the leading term")
    axis.set_ylim(bottom=0, top=max(1.1, axis.get_ylim()[1]))
    axis.tick_params(labelbottom=False)
    # between title and panel, where no line can run through it
    above = {"loc": "lower left", "bbox_to_anchor": (-0.02, 0.98), "ncols": 3}
    axis.legend(frameon=False, fontsize=8, handlelength=3, **above)
    _finish(axis, inspection)


def _draw_messages(axis: Any, inspection: Inspection) -> None:
    from matplotlib.ticker import (  # noqa: PLC0415 (core starts without it)
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullFormatter,
    )

    ttls = [row.ttl for row in inspection.rows]
    sent = {name: [getattr(row, name).messages for row in inspection.rows] for name in LINES}
    together = len({tuple(counts) for counts in sent.values()}) == 1
    if together:
        axis.plot(ttls, sent["coop"], color=QUIET, marker="o", lw=1.8, ms=5)
    else:
        for name, style in LINES.items():
            axis.plot(ttls, sent[name], **style)
        axis.legend(frameon=False, fontsize=8)
    counts = [count for counts in sent.values() for count in counts]
    if min(counts) > 0 and max(counts) > 30 * min(counts):
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axis.yaxis.set_minor_formatter(NullFormatter())
    else:
        axis.set_ylim(0, max(1.0, 1.08 * max(counts)))
        axis.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _compact(value)))
    whose = ", the same for all three" if together else ""
    axis.set_title(f"Messages per round over all edges{whose}", fontsize=10, loc="left")
    axis.set_ylabel("messages per round")
    axis.set_xlabel("time to live γ")
    _finish(axis, inspection)
    if inspection.paper_ttl in ttls:
        axis.annotate(
            "paper's choice",
            (inspection.paper_ttl, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(5, 0),
            textcoords="offset points",
            fontsize=8,
            color=QUIET,
        )


def _finish(axis: Any, inspection: Inspection) -> None:
    ttls = [row.ttl for row in inspection.rows]
    # each γ has a tick; of many that lie close, only some are named
    least = max(1.0, (ttls[-1] - ttls[0]) / _NAMED)
    names: list[int] = []
    for ttl in reversed(ttls):
        if not names or names[-1] - ttl >= least:
            names.append(ttl)
    axis.set_xticks(ttls, labels=[str(ttl) if ttl in names else "" for ttl in ttls])
    room = max(0.05 * (ttls[-1] - ttls[0]), 0.1)
    axis.set_xlim(ttls[0] - room, ttls[-1] + room)
    if inspection.paper_ttl in ttls:
        axis.axvline(inspection.paper_ttl, color=FAINT, lw=6, alpha=0.25, zorder=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.25)


def _label(axis: Any, height: float, text: str, *, ha: str, va: str, x: float) -> None:
    """Write beside a level line, inside of the panel."""
    away = (3 if ha == "left" else -3, 2 if va == "bottom" else -2)
    axis.annotate(
        text,
        (x, height),
        xycoords=("axes fraction", "data"),
        xytext=away,
        textcoords="offset points",
        ha=ha,
        va=va,
        fontsize=8,
        color=QUIET,
    )


def _compact(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {letter}"
    return f"{value:,.0f}"
