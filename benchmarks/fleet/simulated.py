"""How much faster than real time is the simulation of a fleet?"""

import sys
from time import process_time
from typing import Any

from benchmarks.fleet.running import ROOT

Facts = dict[str, Any]
SIMULATION = {"full": {"seeds": 60}, "small": {"seeds": 1}}
TESTS = ROOT / "tests"


def simulation(settings: Facts) -> Facts:
    """Virtual seconds of the simulator of the tests, beside seconds of CPU, over some seeds."""
    if not (TESTS / "fleet" / "simulation" / "world.py").exists():
        return {}
    sys.path.insert(0, str(TESTS))
    from fleet.simulation.world import simulated  # noqa: PLC0415 (lives with the tests)

    simulated(0)  # what is compiled and loaded once
    times, since = [], process_time()
    for seed in range(settings["seeds"]):
        times.append(round(simulated(seed).seconds, 1))
    cpu = process_time() - since
    return {"virtual s": times, "cpu s": round(cpu, 2), "times real time": sum(times) / cpu}
