"""Play many seeds, look for planted mutants, and write a report.

PYTHONPATH=tests .venv/bin/python -m fleet.simulation --first 17 --seeds 1
"""

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fleet.simulation.mutants import MUTANTS
from fleet.simulation.world import simulated

# Within so many seeds each mutant has to be found.
MOST_SEEDS = 500
# Virtual seconds per CPU second.
LEAST_SPEED = 500


def played(seed: int, mutant: str | None) -> tuple[object, float]:
    """Play a seed, and return the report and the CPU seconds that it took."""
    began = time.process_time()
    report = simulated(seed, mutant)
    return report, time.process_time() - began


def search(mutant: str) -> tuple[str, int | None, str]:
    """Return the first seed that finds a mutant, and what it finds."""
    for seed in range(MOST_SEEDS):
        report = simulated(seed, mutant)
        if report.failure is not None:
            return mutant, seed, report.failure
    return mutant, None, f"not found within {MOST_SEEDS} seeds"


def main() -> int:
    parser = argparse.ArgumentParser(prog="fleet.simulation", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="plant this one")
    parser.add_argument("--search", action="store_true", help="look for all mutants")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--report", type=Path, help="a folder for the report")
    given = parser.parse_args()
    counts, seconds, cpu, failures = Counter(), 0.0, 0.0, []
    seeds = range(given.first, given.first + given.seeds)
    with ProcessPoolExecutor(given.processes) as pool:
        each = pool.map(played, seeds, [given.mutant] * len(seeds), chunksize=20)
        for report, took in each:
            counts.update(report.counts)  # type: ignore[attr-defined]
            seconds, cpu = seconds + report.seconds, cpu + took  # type: ignore[attr-defined]
            if report.failure is not None:  # type: ignore[attr-defined]
                failures.append(report.failure)  # type: ignore[attr-defined]
                sys.stderr.write(report.failure + "\n")  # type: ignore[attr-defined]
        searched = [*pool.map(search, MUTANTS)] if given.search else []
    found = {
        "first": given.first,
        "seeds": given.seeds,
        "failures": failures,
        "virtual_seconds": round(seconds),
        "cpu_seconds": round(cpu, 1),
        "times_real_time": round(seconds / cpu),
        "counts": dict(sorted(counts.items())),
        "mutants": {mutant: [seed, what] for mutant, seed, what in searched},
    }
    if given.report is not None:
        given.report.mkdir(parents=True, exist_ok=True)
        text = json.dumps(found, indent=2) + "\n"
        (given.report / "simulation.json").write_text(text, encoding="utf-8")
    sys.stdout.write(json.dumps({**found, "failures": len(failures)}, indent=2) + "\n")
    slow = len(seeds) >= 100 and found["times_real_time"] < LEAST_SPEED
    return bool(failures) or slow or any(seed is None for _, seed, _ in searched)


if __name__ == "__main__":
    sys.exit(main())
