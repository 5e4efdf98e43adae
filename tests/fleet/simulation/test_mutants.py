"""Planted faults are found; the seeds are those that found them first (`make nightly` searches)."""

import pytest

from fleet.simulation.mutants import MUTANTS
from fleet.simulation.world import simulated

# The seed, and what the simulation says of it.
FOUND = {
    "acknowledge before sync": (0, "before it was durable"),
    "show before sync": (0, "unsynced"),
    "take a block twice": (0, "is already kept"),
    "count a key twice": (2, "forgot the key"),
    "decide again": (0, "was answered in two ways"),
    "reach one hop further": (0, "beyond γ"),
    "cursor outside the transaction": (1, "holds ["),
    "apply before sync": (0, "applied, 0 synced"),
    "reuse a sequence": (9, "do not run in the end"),
    "learn from unsynced data": (0, "synced"),
    "go on after a full disk": (0, "holds ["),
    "offer once": (2, "holds ["),
    "forget no event": (103, "known has"),
    "replay all at once": (10, "the log takes task"),
    "cut what is needed": (148, "cannot be recalled"),
    "overlook forks": (300, "does not know that"),
    "forget a task": (4, "holds what it never learns"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_fault_is_found(mutant):
    seed, said = FOUND[mutant]
    failure = simulated(seed, mutant).failure
    assert failure is not None, f"{mutant} was found by seed {seed}; search for another"
    assert said in failure
