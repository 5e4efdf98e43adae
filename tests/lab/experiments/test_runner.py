import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet
import pytest

from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments import store as stores
from coopbandits.lab.experiments.experiment import experiment_of
from coopbandits.lab.experiments.processes import as_they_come
from coopbandits.lab.experiments.runner import run_experiment
from coopbandits.lab.experiments.store import Store, read_store
from coopbandits.lab.experiments.summary import summaries
from coopbandits.lab.experiments.toml_text import to_toml
from lab_small import contents, small


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    run_experiment(experiment_of(small()), folder, workers=1)
    return folder


def test_a_run_is_one_folder_with_all_that_is_promised(finished):
    assert set(contents(finished)) >= {
        "experiment.toml", "manifest.json", "curves.parquet", "curves.csv", "finals.parquet",
        "finals.csv", "figures/regret.svg", "figures/regret.png", "figures/regret.csv",
    }  # fmt: skip
    facts = json.loads(read_store(finished).network_file("path").read_text())
    assert facts["edges"] == [[0, 1], [1, 2], [2, 3]]
    assert len(list((finished / "trials").iterdir())) == 4
    manifest = json.loads((finished / "manifest.json").read_text())
    assert manifest["seed"] == 3
    assert set(manifest["versions"]) == {"coopbandits", "python", "numpy", "scipy"}
    assert set(manifest["networks"]) == {"path"}


def test_parquet_and_csv_say_the_same(finished):
    for name in ("curves", "finals"):
        table = pyarrow.parquet.read_table(finished / f"{name}.parquet").to_pylist()
        rows = (finished / f"{name}.csv").read_text().splitlines()
        assert rows[0].split(",") == list(table[0])
        assert len(rows) == len(table) + 1
        for row, held in zip(rows[1:], table, strict=True):
            values = zip(held.values(), row.split(","), strict=True)
            assert [type(value)(text) for value, text in values] == list(held.values())


@pytest.mark.slow
def test_two_workers_give_the_same_bytes_as_one(finished, tmp_path):
    run_experiment(experiment_of(small()), tmp_path / "run", workers=2)
    assert contents(tmp_path / "run") == contents(finished)


def test_what_is_done_is_not_done_again_and_trials_can_be_added(finished, tmp_path):
    run_experiment(experiment_of(small(trials=1)), tmp_path / "run", workers=1)
    first = {f.name: f.stat().st_mtime_ns for f in (tmp_path / "run" / "trials").iterdir()}
    seen = []
    run_experiment(
        experiment_of(small()),
        tmp_path / "run",
        workers=1,
        on_trial=lambda done, total, task, record: seen.append((done, total)),
    )
    assert seen == [(2, 4), (3, 4), (4, 4)]
    for file, changed in first.items():
        assert (tmp_path / "run" / "trials" / file).stat().st_mtime_ns == changed
    assert contents(tmp_path / "run") == contents(finished)


def test_another_experiment_is_refused_and_changes_nothing(finished):
    before = contents(finished)
    with pytest.raises(ExperimentError, match="holds another experiment: rounds differs"):
        run_experiment(experiment_of(small(rounds=7)), finished)
    assert contents(finished) == before


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ExperimentError, match="is not empty and holds no experiment"):
        run_experiment(experiment_of(small()), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_results_of_other_versions_are_not_mixed(finished, tmp_path, monkeypatch):
    run_experiment(experiment_of(small(trials=1)), tmp_path / "run", workers=1)
    monkeypatch.setattr(stores.coopbandits, "__version__", "99.0")  # type: ignore[attr-defined]
    with pytest.raises(ExperimentError, match="begun with other versions"):
        run_experiment(experiment_of(small()), tmp_path / "run", workers=1)


def test_a_damaged_trial_is_named(finished, tmp_path):
    run_experiment(experiment_of(small(trials=1)), tmp_path / "run", workers=1)
    file = next((tmp_path / "run" / "trials").iterdir())
    whole = file.read_bytes()
    for damaged in (whole[:100], b"", whole[:200] + bytes(40) + whole[240:], b"text"):
        file.write_bytes(damaged)
        with pytest.raises(ExperimentError, match=f"{file.name} is damaged"):
            summaries(read_store(tmp_path / "run"))
    file.write_bytes(whole)
    timing = next((tmp_path / "run" / "timings").iterdir())
    timing.write_text("[]")
    with pytest.raises(ExperimentError, match=f"{timing.name} is damaged"):
        summaries(read_store(tmp_path / "run"))


def test_no_run_is_told_apart_from_one(tmp_path):
    with pytest.raises(ExperimentError, match="holds no run"):
        read_store(tmp_path)
    (tmp_path / "experiment.toml").write_text("")
    with pytest.raises(ExperimentError, match=r"holds no run \(experiment.toml: there is no table"):
        read_store(tmp_path)
    (tmp_path / "experiment.toml").write_text(to_toml(small()))
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(ExperimentError, match=r"manifest\.json is damaged or of another version"):
        read_store(tmp_path)


def test_a_run_can_be_copied_and_read_elsewhere(finished, tmp_path):
    (tmp_path / "copy").symlink_to(finished)
    store = read_store(tmp_path / "copy")
    assert store.experiment.cells == experiment_of(small()).cells
    assert len(store.done()) == 4


@pytest.mark.parametrize("left", [[], ["manifest.json"], ["experiment.toml"], [".abc.part"]])
def test_a_kill_while_it_begins_does_not_lock_the_folder(finished, tmp_path, left):
    (tmp_path / "run").mkdir()
    for name in left:
        (tmp_path / "run" / name).write_bytes(b"" if "part" in name else b"{}")
    run_experiment(experiment_of(small(trials=1)), tmp_path / "run", workers=1)
    assert len(read_store(tmp_path / "run").done()) == 2
    assert not list(tmp_path.rglob("*.part"))


def test_two_runs_cannot_write_to_one_folder(tmp_path):
    experiment = experiment_of(small(trials=1))
    with (
        Store.begun(tmp_path / "run", experiment),
        pytest.raises(ExperimentError, match="another run is writing to"),
    ):
        run_experiment(experiment, tmp_path / "run", workers=1)


@pytest.mark.slow
def test_policies_can_be_added_and_those_that_failed_mended(finished, tmp_path):
    tables = small(trials=1, rounds=8)
    tables["policies"]["dist"] = {"kind": "DistKernelUCB", "kernel": "Linear", "follow": "same"}
    with pytest.raises(ExperimentError, match="dist cannot play linear on path"):
        run_experiment(experiment_of(tables), tmp_path / "run", workers=1)
    tables["policies"]["dist"]["follow"] = "nearest"
    store = run_experiment(experiment_of(tables), tmp_path / "run", workers=1)
    assert len(store.done()) == 3


def test_trials_may_only_grow(finished):
    with pytest.raises(ExperimentError, match="they may only grow"):
        run_experiment(experiment_of(small(trials=1)), finished)


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_and_ends_with_the_same_bytes(tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text(to_toml(small(trials=8)))
    command = [sys.executable, "-m", "coopbandits.cli", "run", str(file), "--workers", "2"]
    whole = subprocess.run(
        [*command, "--out", str(tmp_path / "whole")], capture_output=True, check=False
    )
    assert whole.returncode == 0, whole.stderr
    for pause in (0.2, 0.6):
        process = subprocess.Popen(
            [*command, "--out", str(tmp_path / "cut")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        held = set(tmp_path.glob("cut/trials/*.npz"))
        while set(tmp_path.glob("cut/trials/*.npz")) == held and time.monotonic() < deadline:
            if process.poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(pause * 0.1)
        with suppress(ProcessLookupError):  # it may have been faster
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    last = subprocess.run(
        [*command, "--out", str(tmp_path / "cut")], capture_output=True, check=False
    )
    assert last.returncode == 0, last.stderr
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_a_full_disk_is_said_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    experiment = experiment_of(small(trials=1))
    real, written = os.fsync, []

    def full(handle):
        written.append(handle)
        if len(written) > 3:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExperimentError, match=r"No space left on device.*what was done is kept"):
        run_experiment(experiment, tmp_path / "run", workers=1)
    assert not list(tmp_path.rglob("*.part"))
    monkeypatch.setattr(os, "fsync", real)
    store = run_experiment(experiment, tmp_path / "run", workers=1)
    assert store.done() == set(experiment.tasks)


def _die(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_worker_that_dies_is_said():
    with pytest.raises(ExperimentError, match=r"a worker process died.*run the same command again"):
        list(as_they_come(_die, range(3), workers=1))


def test_stopping_early_ends_the_processes(tmp_path):
    work = as_they_come(_slow, [0.0, 60.0], workers=2)
    assert next(work) == (0.0, 0.0)
    start = time.monotonic()
    work.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 30


def _slow(seconds):
    time.sleep(seconds)
    return seconds


def test_two_cells_never_share_a_file():
    tables = small()
    tables["policies"] = {name: {"kind": "LinUCB"} for name in ("a b", "a-b", "a.b", "ä-b")}
    experiment = experiment_of(tables)
    store = Store("somewhere", experiment)
    for name in ("../../etc", "a/b", "", "."):  # no name leads out of the folder
        assert store.network_file(name).parent == Path("somewhere/networks")
    assert len({store._file(task) for task in experiment.tasks}) == len(experiment.tasks)


def test_what_cannot_be_planned_is_named_before_anything_is_begun(tmp_path):
    (tmp_path / "own_unplanned.py").write_text(
        "import coopbandits as cb\n"
        "class Broken:\n"
        "    def matrix(self, network):\n        return 1 / 0\n"
        "    def between(self, network):\n        return 1 / 0\n"
        "def mine(problem):\n"
        "    return cb.EagerKernelUCB(cb.kernels.Linear(), similarity=Broken())\n"
    )
    tables = small(policies={"mine": {"kind": "own_unplanned:mine"}})
    with pytest.raises(ExperimentError, match=r"mine(.* cannot play linear on path|: .*fails)"):
        run_experiment(experiment_of(tables, folder=str(tmp_path)), tmp_path / "run", workers=1)
    assert not (tmp_path / "run").exists()
