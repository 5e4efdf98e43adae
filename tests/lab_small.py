"""A small experiment, for the tests of the lab."""

import copy
import os
import time
from pathlib import Path

SMALL = {
    "name": "small",
    "seed": 3,
    "trials": 2,
    "rounds": 6,
    "networks": {"path": {"kind": "path", "agents": 4}},
    "problems": {
        "linear": {"kind": "clustered_linear", "dim": 3, "actions": 3, "noise": 0.3},
    },
    "policies": {
        "alone": {"kind": "LinUCB", "eta": 0.3},
        "eager": {"kind": "EagerKernelUCB", "kernel": "Linear", "similarity": "truth", "ttl": 2},
    },
}


def small(**changes):
    """The small experiment's tables, with some changed."""
    return {**copy.deepcopy(SMALL), **changes}


def contents(folder):
    """All files of a run but what it took."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(Path(folder).rglob("*"))
        if file.is_file() and not str(file.relative_to(folder)).startswith("timings")
    }


def waited(seconds):
    """Take some time; a function that other processes find by its name."""
    time.sleep(seconds)
    return seconds


def own_number(seconds):
    """Take some time, and say which process did."""
    time.sleep(seconds)
    return os.getpid()
