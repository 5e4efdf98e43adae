"""Simulated fleets: whatever happens to them, they keep what they promise."""

import os
import subprocess
import sys

import pytest

from fleet.simulation.plan import drawn
from fleet.simulation.world import replay, simulated

CHUNK = 20


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_fleets_keep_their_promises(first):
    failures = [simulated(seed).failure for seed in range(first, first + CHUNK)]
    assert not any(failures), "\n".join(filter(None, failures))


@pytest.mark.parametrize("seed", [20533, 24230, 25730, 26025, 26831, 29391, 32376, 50158, 82117])
def test_seeds_that_found_something_once_find_nothing(seed):
    assert simulated(seed).failure is None


def test_a_seed_gives_the_same_trace_in_every_process():
    seeds = [3, 17]
    code = "from fleet.simulation.world import simulated as s\n"
    code += f"print(*[s(seed).trace for seed in {seeds}])"
    here = os.pathsep.join(filter(None, sys.path))
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": here, "PYTHONHASHSEED": "1"},
    ).stdout.split()  # fmt: skip
    for _ in range(2):
        assert [simulated(seed).trace for seed in seeds] == printed


def test_worlds_differ_in_kind():
    plans = [drawn(seed) for seed in range(200)]
    assert {len(plan.sites) for plan in plans} == {2, 3, 4, 5, 6}
    assert {plan.policy.ttl for plan in plans} >= {1, 2, 3}
    assert {settings["mode"] for plan in plans for settings in plan.settings.values()} == {
        "online", "apprentice", "off",
    }  # fmt: skip
    assert {settings["rewards"].rule for plan in plans for settings in plan.settings.values()} == {
        "first", "last", "sum",
    }  # fmt: skip
    kinds = {kind for plan in plans for kind, times in plan.faults.items() if times}
    assert len(kinds) == 12
    assert any(plan.newcomer for plan in plans)
    assert any(plan.burst for plan in plans)


def test_a_failure_says_how_to_replay_it():
    failure = simulated(0, "acknowledge before sync").failure
    assert failure is not None
    assert failure.startswith("seed 0: ")
    assert failure.endswith(replay(0, "acknowledge before sync"))
    assert "-m fleet.simulation --first 0 --seeds 1 --mutant 'acknowledge before sync'" in failure
