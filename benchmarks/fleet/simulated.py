"""How much faster than real time is the simulation of a fleet?"""

from typing import Any

from benchmarks.fleet.running import ROOT

Facts = dict[str, Any]
SIMULATION = {"full": {"seeds": 30}, "small": {"seeds": 1}}


def simulation(settings: Facts) -> Facts:
    """Virtual seconds of the simulator of the tests, beside CPU seconds, over some seeds."""
    if not (ROOT / "tests" / "fleet" / "simulation").exists():
        return {}
    return {}
