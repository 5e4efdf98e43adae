"""What does a node of the fleet cost, and what does it hold? Ratios, each measured side by side.

    make bench-fleet                                        # all rows, and the table
    python -m benchmarks.fleet run --rows decide,hops       # some; what is there is not run again
    python -m benchmarks.fleet table                        # results/fleet.md

All traffic is on loopback. Raw numbers go to benchmarks/results/fleet.json, row by row. Bars are
printed beside what was measured, and nothing depends on them.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")})

from benchmarks.fleet import growing, hops, results, serving, simulated, starting, storing
from benchmarks.fleet.results import Facts

# What measures a row, and how much of it.
ROWS: dict[str, tuple[Callable[[Facts], Facts], dict[str, Facts]]] = {
    "decide": (serving.decide, serving.DECIDE),
    "paced": (serving.paced, serving.PACED),
    "fastapi": (serving.fastapi, serving.FASTAPI),
    "durable": (storing.durable, storing.DURABLE),
    "clients": (serving.clients, serving.CLIENTS),
    "hops": (hops.hops, hops.HOPS),
    "catch up": (storing.catch_up, storing.CATCH_UP),
    "growing": (growing.growing, growing.GROWING),
    "simulation": (simulated.simulation, simulated.SIMULATION),
    "starting": (starting.starting, starting.STARTING),
}
SEED = 0  # of all contexts and rewards, each row's own by an offset

Line = tuple[str, str, str]  # what, measured, bar


def run(file: Path, rows: list[str], size: str, again: bool) -> None:
    """Measure rows that are not there, or were measured in another way."""
    for row in rows:
        measure, sizes = ROWS[row]
        settings = sizes[size]
        before = results.read(file).get(row, {})
        if not again and before.get("settings") == settings:
            continue
        print(f"{row}: {measure.__doc__}", flush=True)
        machine, since = results.machine(), perf_counter()
        measured = measure(settings)
        if not measured:
            print(f"{row} cannot be measured here", flush=True)
            continue
        machine |= {"load after": os.getloadavg()[0], "seconds": round(perf_counter() - since, 1)}
        facts = {"work": measure.__doc__, "settings": settings, "seed": SEED,
                 "machine": machine, "measured": measured}  # fmt: skip
        results.keep(file, row, facts)


def decide_lines(found: Facts, how: str = "a task follows the other") -> list[Line]:
    """Percentiles of CPU, busy beside off."""
    lines = []
    for case, facts in found.items():
        network, agents = case.split("|")
        busy, off = facts["busy"], facts["off"]
        said = (
            f"{busy['cpu']['p99']:.2f} ms = {busy['cpu']['p99'] / busy['cpu']['p50']:.1f} × its "
            f"p50, {busy['cpu']['p99'] / off['cpu']['p99']:.2f} × the p99 with the learner off "
            f"({off['cpu']['p99']:.2f} ms); of the loop's thread alone "
            f"{busy['thread']['p99'] / busy['thread']['p50']:.1f} and "
            f"{busy['thread']['p99'] / off['thread']['p99']:.2f} ×"
        )
        what = f"CPU p99 of `decide` over HTTP, learner busy ({how}), V = {agents} ({network})"
        lines.append((what, said, "≤ 5; ≤ 1.5"))
    return lines


def paced_lines(found: Facts) -> list[Line]:
    """The same with a task each 0.2 s."""
    return decide_lines(found, "a task each 0.2 s")


def fastapi_lines(found: Facts) -> list[Line]:
    """CPU beside FastAPI."""
    lines = []
    for what, name, bar in (("", "", "≤ 0.8"), (" (HTTP layers alone)", " at once", "–")):
        ours, theirs = (found["mean cpu, µs"][f"{layer}{name}"] for layer in ("coop", "fastapi"))
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        said = f"{middle(ratios)} ({median(ours):.0f} µs beside {median(theirs):.0f})"
        lines.append((f"CPU of `decide` over HTTP beside FastAPI{what}", said, bar))
    return lines


def middle(values: list[float]) -> str:
    """Return the median and the range of some ratios."""
    return f"{median(values):.2f} [{min(values):.2f}, {max(values):.2f}]"


def durable_lines(found: Facts) -> list[Line]:
    """Entries a second beside raw SQLite."""
    lines = []
    for connections, facts in found.items():
        rates = {name: median(each) for name, each in facts["entries a second"].items()}
        said = f"{middle(facts['ratios'])} ({rates['node']:,.0f} beside {rates['raw']:,.0f})"
        what = f"Durable entries/s beside raw SQLite group commits, {connections} connections"
        lines.append((what, said, "≥ 0.5"))
    return lines


def clients_lines(found: Facts) -> list[Line]:
    """Requests a second through a whole node."""
    return [
        (
            f"Durable requests/s through a whole node over HTTP, {connections} connections",
            f"{median(facts['requests a second']):,.0f}",
            "–",
        )
        for connections, facts in found.items()
    ]


def hops_lines(found: Facts) -> list[Line]:
    """Time to be applied some hops away."""
    reward = found["durable reward"]
    return [
        (
            f"Applied {hop} hop{'s' * (hop != '1')} away, p99, beside p99 of one durable reward",
            f"{facts['p99'] / reward['p99']:.1f} ({facts['p99']:.1f} ms beside "
            f"{reward['p99']:.1f}; p50 {facts['p50']:.1f} beside {reward['p50']:.1f})",
            f"≤ {5 * (int(hop) + 1)}",
        )
        for hop, facts in found.items()
        if hop.isdigit()
    ]


def catch_up_lines(found: Facts) -> list[Line]:
    """CPU of a new node that catches up."""
    said = (
        f"{middle(found['ratios'])} ({median(found['node, s']):.2f} s beside "
        f"{median(found['signatures, s']):.2f})"
    )
    what = f"{found['observations']:,} observations to a new node, CPU beside one signature each"
    return [(what, said, "≤ 0.2")]


def growing_lines(found: Facts) -> list[Line]:
    """Memory and log, late beside early."""
    marks = found["marks"]
    first, last = (marks[str(count)] for count in (found["messages"][0], found["messages"][-1]))
    where = f"at {found['messages'][-1]:,} messages beside {found['messages'][0]:,}"
    return [
        (f"{what} {where}", f"{last[key] / first[key]:.3f} ({megabytes(last[key])} beside "
         f"{megabytes(first[key])})", bar)
        for what, key, bar in (("Resident memory", "resident", "≤ 1.05"),
                               ("Log after checkpoint and cut", "log", "≤ 1.2"))
    ]  # fmt: skip


def megabytes(size: int) -> str:
    """Return a size in MB."""
    return f"{size / 1e6:.1f} MB"


def simulation_lines(found: Facts) -> list[Line]:
    """Virtual beside real time."""
    return [("Simulation beside real time", f"{found['times real time']:,.0f} times", "≥ 500")]


def starting_lines(found: Facts) -> list[Line]:
    """Seconds to five nodes."""
    turns = found["turns"]
    if not turns:
        return []
    each = {step: median(turn[step] for turn in turns) for step in turns[0]}
    said = (
        f"{each['whole']:.1f} s (venv {each['venv']:.1f}, pip {each['install']:.1f}, "
        f"`coop up` {each['up']:.1f})"
    )
    return [("Empty environment → five nodes that answer", said, "≤ 45 s")]


LINES: dict[str, Callable[[Facts], list[Line]]] = {
    "decide": decide_lines,
    "paced": paced_lines,
    "fastapi": fastapi_lines,
    "durable": durable_lines,
    "clients": clients_lines,
    "hops": hops_lines,
    "catch up": catch_up_lines,
    "growing": growing_lines,
    "simulation": simulation_lines,
    "starting": starting_lines,
}


def table(file: Path) -> str:
    """Return the table of what has been measured, and write it beside the numbers."""
    done = results.read(file)
    text = ["| measured | result | bar |", "|---|---|---|"]
    notes = []
    for row, lines in LINES.items():
        if row not in done:
            continue
        text += [f"| {' | '.join(line)} |" for line in lines(done[row]["measured"])]
        work = " ".join(done[row]["work"].split())
        machine = done[row]["machine"]
        notes.append(
            f"- **{row}**: {work} {machine['cores']} cores of {machine['cpu']}, Python "
            f"{machine['python']}, revision {machine['revision']}; load average "
            f"{machine['load before']:.1f} before, {machine['load after']:.1f} after, "
            f"{machine['seconds']:.0f} s."
        )
    whole = "\n".join([*text, "", *notes]) + "\n"
    file.with_suffix(".md").write_text(whole, encoding="utf-8")
    return whole


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fleet", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("--rows", default=",".join(ROWS), help="separated by commas")
    parser.add_argument("--size", choices=["full", "small"], default="full")
    parser.add_argument("--again", action="store_true", help="measure also what is there")
    parser.add_argument("--file", type=Path, default=results.RESULTS / "fleet.json")
    options = parser.parse_args()
    rows = options.rows.split(",")
    unknown = [row for row in rows if row not in ROWS]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; the rows are {', '.join(ROWS)}")
    if options.command == "table":
        print(table(options.file))
    else:
        run(options.file, rows, options.size, options.again)


if __name__ == "__main__":
    main()
