import os
import subprocess
import sys
import time

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.lab import trials


def play_one(seed):
    network = cb.Network.erdos_renyi(8, 0.5, seed=seed)
    problem = cb.problems.clustered_linear(network, dim=3, seed=seed)
    run = cb.play(problem, cb.LinUCB(), rounds=5, seed=seed)
    return run.regret.tobytes(), os.environ["OPENBLAS_NUM_THREADS"]


def fail(seed):
    raise ValueError(f"seed {seed} is unlucky")


@pytest.mark.slow
def test_one_worker_and_many_give_the_same_bytes_in_the_seeds_order(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    one, two = (trials(play_one, range(4), workers=workers) for workers in (1, 2))
    assert one == two
    assert one[2][0] == play_one_here(2, monkeypatch)
    assert {threads for _, threads in one} == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "7"


def play_one_here(seed, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "x")
    found = play_one(seed)[0]
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    return found


def test_what_a_trial_raises_is_raised():
    with pytest.raises(ValueError, match="seed 3 is unlucky"):
        trials(fail, [3], workers=1)
    with pytest.raises(ParameterError, match="trial must be a function"):
        trials("play", [1])
    with pytest.raises(ParameterError, match="workers must be a whole number >= 1"):
        trials(play_one, [1], workers=0)
    assert trials(np.sqrt, []) == []


def test_workers_end_with_a_parent_that_is_killed():
    code = (
        "import os, time\n"
        "from coopbandits.lab.experiments.processes import as_they_come\n"
        "from lab_small import own_number\n"
        "if __name__ == '__main__':\n"
        "    for _, pid in as_they_come(own_number, [0.0, 60.0], workers=1):\n"
        "        print(pid, flush=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{worker}")
