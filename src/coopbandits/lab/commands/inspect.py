"""`coop inspect NETWORK`: what each γ costs and promises, as tables, JSON and a picture."""

import argparse
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coopbandits.errors import ParameterError
from coopbandits.lab.letters import printed
from coopbandits.lab.terminal import console, show_json, show_table
from coopbandits.plain_text import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from coopbandits.lab.planning.planner import Inspection, Outlook, TtlRow


_COSTS_LEGEND = {
    "γ": "time to live (ttl): the hops after which a message is dropped; * the paper's choice, "
    "half of the diameter",
    "reach": "how many agents' news an agent can hear, its own included: mean, and the most",
    "cliques": "groups in which everyone hears everyone, as few as were found; Coop learns within "
    "them. (≥ n) where fewer may exist: at least n are needed",
    "apart": "the most agents of whom no two hear each other, α; n–m where it is only known to lie "
    "between n and m",
    "centres": "agents that decide for the others under Dist",
    "messages": "that cross an edge in each round once news has spread, copies included; agents "
    "that work alone send none",
    "bytes": "of these messages, {size} each: contexts of {dim} numbers, a similarity K_z that is "
    "given. To learn K_z by Evidence, each carries {dim} numbers of 8 bytes more under a linear "
    "kernel, 64 under others",
}
_PROMISES_LEGEND = {
    "factor": "the paper's bound on regret per agent, relative to the bound for an agent that "
    "works alone: Coop √(cliques/V), Dist √(α/V), Eager √((γ+α)/V), for V agents. Those of Coop "
    "and Dist are theorems, Eager's is a conjecture. Dist needs agents with one and the same task",
    "heard": "how many others' news an agent uses, on average",
    "delay": "after how many rounds it has that news, on average",
}
_CAVEAT = (
    "The factors are of the leading term, for agents that are alike; constants and logarithms are "
    "dropped, and so is what delay adds: an agent's first γ rounds count in full. Tasks that "
    "differ multiply the factors by Υ_z, the rank of K_z. They rank values of γ; they do not "
    "predict regret (docs/planner.md)."
)


def main(options: argparse.Namespace) -> int:
    """Print what each γ costs and promises on a network; draw it, if asked to.

    Args:
        options: `network` (a known name or a file of edges), `ttl` (values of γ or None), `dim`,
            `agents` (how many to sample, or None), `seed`, `data` (a folder or None), `out` (a
            picture's file or None), `json`.
    """
    # heavy, and `coop --help` must be quick
    from coopbandits.lab.networks import load_network  # noqa: PLC0415
    from coopbandits.lab.planning.drawing import check_picture, planner_figure  # noqa: PLC0415
    from coopbandits.lab.planning.planner import inspect_network  # noqa: PLC0415

    if options.out is not None:
        check_picture(options.out)
    network = load_network(
        options.network, agents=options.agents, seed=options.seed, data=options.data
    )
    inspection = inspect_network(network, ttls=options.ttl, dim=options.dim)
    name = Path(str(options.network)).name
    if options.out is not None:
        try:
            Path(options.out).parent.mkdir(parents=True, exist_ok=True)
            planner_figure(inspection, title=name, file=options.out)
        except OSError as error:
            raise ParameterError(f"the picture {options.out} cannot be written: {error}") from error
    if options.json:
        report = {"network": str(options.network), **as_record(inspection)}
        show_json(report)
    else:
        _show(inspection, name, options.dim, options.out)
    return 0


def as_record(inspection: "Inspection") -> dict[str, Any]:
    """Return everything that an inspection says, for JSON."""
    facts: dict[str, Any] = {
        field.name: getattr(inspection, field.name)
        for field in fields(inspection)
        if field.name not in ("network", "rows")
    }
    for name in ("paper_ttl", "near_ttl", "least_factor"):
        facts[name] = getattr(inspection, name)
    facts["directed"] = inspection.network.directed
    facts["rows"] = [asdict(row) for row in inspection.rows]
    return facts


def _show(inspection: "Inspection", name: str, dim: int, picture: str | None) -> None:
    from rich.text import Text  # noqa: PLC0415 (heavy)

    say = console().print
    say(Text(visible(f"{name}: {_facts(inspection)}")))
    say()
    _show_costs(inspection)
    say(_legend(_COSTS_LEGEND, dim=dim, size=inspection.message_bytes))
    say()
    _show_promises(inspection)
    say(_legend(_PROMISES_LEGEND))
    say()
    say(Text(_CAVEAT))
    if len(inspection.rows) > 1:
        say()
        say(
            Text(
                f"γ = {inspection.near_ttl} is the smallest listed whose factor under Coop is "
                "within 10% of the best listed. That knows neither what messages cost nor how "
                "alike the agents are."
            )
        )
    if picture is not None:
        say()
        say(Text(visible(f"Picture: {picture}")))


def _legend(meanings: dict[str, str], **numbers: int) -> Any:
    """Lay out what each column means, wrapped beside its name."""
    from rich.table import Table  # noqa: PLC0415 (heavy)

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, meaning in meanings.items():
        table.add_row(printed(name), printed(meaning.format(**numbers)))
    return table


def _facts(inspection: "Inspection") -> str:
    text = inspection.counts
    if inspection.components > 1:
        text += (
            f" in {inspection.components:,} parts, the largest of diameter {inspection.diameter}"
        )
    else:
        text += f", diameter {inspection.diameter}"
    text += f"; neighbours: mean {inspection.mean_degree:.1f}, most {inspection.max_degree:,}"
    if not math.isnan(inspection.mean_distance):
        text += f"; mean distance {inspection.mean_distance:.2f}"
    return text


def _show_costs(inspection: "Inspection") -> None:
    show_table(
        "What each γ costs",
        ["γ", "reach", "most", "cliques", "apart", "centres", "messages", "bytes"],
        [
            [
                _ttl(row, inspection),
                f"{row.mean_neighbourhood:,.1f}",
                f"{row.largest_neighbourhood:,}",
                f"{row.cliques:,}"
                + (f" (≥ {row.fewest_cliques:,})" if row.fewest_cliques < row.cliques else ""),
                f"{row.independent:,}"
                + (f"–{row.most_independent:,}" if row.most_independent > row.independent else ""),
                f"{row.centres:,}",
                _of_all(row, lambda outlook: f"{outlook.messages:,}"),
                _of_all(row, lambda outlook: _size(outlook.bytes)),
            ]
            for row in inspection.rows
        ],
        left=0,
    )


def _show_promises(inspection: "Inspection") -> None:
    algorithms = ("coop", "dist", "eager")
    columns = [
        f"{what if name == 'coop' else ''}\n{name.title()}"
        for what in _PROMISES_LEGEND
        for name in algorithms
    ]
    rows = [["alone", *["1.00"] * 3, *["0.0"] * 3, *["–"] * 3]]
    for row in inspection.rows:
        outlooks = [getattr(row, name) for name in algorithms]
        rows.append(
            [
                _ttl(row, inspection),
                *(f"{outlook.factor:.2f}" for outlook in outlooks),
                *(f"{outlook.heard:,.1f}" for outlook in outlooks),
                *(
                    "–" if math.isnan(outlook.delay) else f"{outlook.delay:.1f}"
                    for outlook in outlooks
                ),
            ]
        )
    title = "What each γ promises, and how old its news is"
    show_table(title, ["γ", *columns], rows, left=0)


def _ttl(row: "TtlRow", inspection: "Inspection") -> str:
    return f"{row.ttl}{'*' if row.ttl == inspection.paper_ttl else ' '}"


def _of_all(row: "TtlRow", shown: "Callable[[Outlook], str]") -> str:
    """Show a number of all three algorithms: once if it is the same."""
    cells = [shown(outlook) for outlook in (row.coop, row.dist, row.eager)]
    return cells[0] if len(set(cells)) == 1 else " / ".join(cells)


def _size(count: int) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
