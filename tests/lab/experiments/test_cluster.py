"""A real scheduler and real workers, on loopback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.cluster import on_dask
from coopbandits.lab.experiments.experiment import experiment_of
from coopbandits.lab.experiments.runner import run_experiment
from lab_small import small, waited as waits

pytest.importorskip("distributed", reason="the extra dask is not installed")


def dask(*arguments, **options):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **options}
    # workers must find the functions of these tests
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).resolve().parents[2]), *sys.path]
    )
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def stop(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    file = tmp_path_factory.mktemp("dask") / "scheduler.json"
    process = dask(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(file),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    import json  # noqa: PLC0415

    yield json.loads(file.read_text())["address"]
    stop(process)


@pytest.fixture
def worker(scheduler, tmp_path):
    made = []

    def start(**options):
        made.append(
            dask(
                "dask_worker", scheduler, "--nthreads", "1", "--no-dashboard", "--no-nanny",
                "--local-directory", str(tmp_path), **options,
            )
        )  # fmt: skip
        return made[-1]

    yield start
    for process in made:
        stop(process)


@pytest.mark.slow
def test_a_cluster_gives_the_same_bytes_as_one_machine(scheduler, worker, tmp_path):
    worker()
    worker()
    experiment = experiment_of(small())
    run_experiment(experiment, tmp_path / "here", workers=1)
    run_experiment(experiment, tmp_path / "there", dask=scheduler)
    for name in ("curves.csv", "finals.csv", "figures/regret.svg", "manifest.json"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.slow
def test_a_worker_killed_midway_loses_nothing(scheduler, worker):
    first, _ = worker(), worker()
    done = []
    for item, result in on_dask(scheduler, waits, [0.2] * 3 + [0.21] * 3 + [0.22] * 6):
        done.append((item, result))
        if len(done) == 3:
            os.killpg(first.pid, signal.SIGKILL)
    assert sorted(done) == sorted((s, s) for s in [0.2] * 3 + [0.21] * 3 + [0.22] * 6)


def test_workers_with_more_threads_are_refused(scheduler, worker):
    worker(OPENBLAS_NUM_THREADS="2")
    with pytest.raises(ExperimentError, match="start workers with OPENBLAS_NUM_THREADS=1"):
        list(on_dask(scheduler, waits, [0.0]))


def test_a_scheduler_without_workers_is_said(scheduler):
    time.sleep(0.5)  # the last workers must be gone
    with pytest.raises(ExperimentError, match="has no workers; start some with `dask worker"):
        list(on_dask(scheduler, waits, [0.0], timeout=1.0))


def test_no_scheduler_is_said():
    with pytest.raises(
        ExperimentError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 "
    ):
        list(on_dask("tcp://127.0.0.1:1", waits, [0.0], timeout=1.0))
