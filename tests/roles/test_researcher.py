"""A researcher: an algorithm of one's own, and a run that is stopped, changed and reported."""

import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import coopbandits as cb
from fleet.processes import children, eventually, is_alive
from lab_small import contents

EXPERIMENT = """\
name = "Does patience pay?"
seed = 11
trials = 6
rounds = 40
baseline = "alone"

[networks.village]
kind = "erdos_renyi"
agents = 8
p = 0.4

[problems.tasks]
kind = "clustered_linear"
dim = 3
actions = 4
noise = 0.3

[policies.alone]
kind = "LinUCB"
eta = 0.3

[policies.patient]
kind = "patience:patient"
ttl = 2
eta = 0.3
"""

PATIENCE = """\
import coopbandits as cb


def patient(problem, eta, ttl=1):
    return cb.Policy(
        name="patient", kernel=cb.kernels.Linear(), listen=cb.listen.Neighbourhood(),
        similarity=cb.similarity.Laplacian(rho=1.0), width=cb.width.Fixed(eta),
        act=cb.act.UpperBound(), ttl=ttl,
    )
"""

SOURCE = Path(__file__).resolve().parents[2] / "src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


class Desk:
    """A folder with an experiment and a module beside it, and a shell in it."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "experiment.toml").write_text(EXPERIMENT)
        (folder / "patience.py").write_text(PATIENCE)

    def started(self, line):
        """Type a line, and do not wait for it."""
        words = line.split()
        assert words[0] == "coop"
        return subprocess.Popen(
            [sys.executable, "-m", "coopbandits.cli", *words[1:]], cwd=self.folder,
            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def typed(self, line):
        """Type a line that works, and return what it says."""
        process = self.started(line)
        said, complaints = process.communicate(timeout=120)
        assert (process.returncode, complaints) == (0, ""), complaints
        return said

    def trials(self, run):
        """When each trial of a run was written, by the name of its file."""
        files = (self.folder / run / "trials").glob("*.npz")
        return {file.name: file.stat().st_mtime_ns for file in files}

    def edit(self, name, old, new):
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


@pytest.mark.slow
def test_a_run_is_stopped_goes_on_and_keeps_what_a_change_does_not_touch(desk):
    said = desk.typed("coop run experiment.toml --out whole --workers 2")
    assert "patient" in said
    assert "coop report whole" in said

    stopped = desk.started("coop run experiment.toml --out out --workers 1")
    assert eventually(lambda: desk.trials("out") or stopped.poll() is not None, seconds=60.0)
    workers = children(stopped.pid)
    stopped.terminate()
    complaints = stopped.communicate(timeout=60)[1]
    assert (stopped.returncode, complaints) == (
        130, "coop run: interrupted; what was done is kept\n"
    )  # fmt: skip
    assert eventually(lambda: not any(map(is_alive, workers)))
    before = desk.trials("out")
    assert 0 < len(before) < 12

    desk.typed("coop run experiment.toml --out out --workers 1")
    assert contents(desk.folder / "out") == contents(desk.folder / "whole")
    assert desk.trials("out").items() >= before.items()

    kept = desk.trials("out")
    desk.edit("patience.py", "def patient", "# The Laplacian smooths over neighbours.\ndef patient")
    assert "played again" not in desk.typed("coop run experiment.toml --out out")
    assert desk.trials("out") == kept

    desk.edit("experiment.toml", "ttl = 2\neta = 0.3", "ttl = 2\neta = 0.6")
    said = desk.typed("coop run experiment.toml --out out")
    assert "patient on tasks, village has changed since: 6 trials played again" in said
    now = desk.trials("out")
    assert {name for name in now if now[name] == kept[name]} == {
        name for name in now if "_alone-" in name
    }
    desk.typed("coop run experiment.toml --out afresh")
    assert contents(desk.folder / "out") == contents(desk.folder / "afresh")

    said = desk.typed("coop report out")
    assert "out/report.html" in said
    page = (desk.folder / "out" / "report.html").read_text()
    assert "Does patience pay?" in page
    assert "patience:patient" in page


@pytest.mark.slow
def test_what_a_run_found_is_what_the_same_calls_in_python_find(desk, monkeypatch):
    desk.typed("coop run experiment.toml trials=2 --out out")
    monkeypatch.syspath_prepend(str(desk.folder))
    patient = import_module("patience").patient  # beside the experiment

    network = cb.Network.erdos_renyi(8, 0.4, seed=11)
    comparison = cb.compare(
        lambda seed: cb.problems.clustered_linear(
            network, dim=3, actions=4, noise=0.3, seed=seed
        ),
        {"alone": cb.LinUCB(eta=0.3), "patient": patient(None, eta=0.3, ttl=2)},
        rounds=40,
        seeds=[11, 12],
    )  # fmt: skip
    rows = (desk.folder / "out" / "finals.csv").read_text().splitlines()
    columns = rows[0].split(",")
    found = {
        (row["policy"], int(row["seed"])): float(row["regret"])
        for row in (dict(zip(columns, line.split(","), strict=True)) for line in rows[1:])
    }
    expected = {(one.policy, one.seed): one.regret for one in comparison.records}
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[key] for key in expected], [*expected.values()], rtol=1e-9)
    assert set(comparison.differences) == {"patient"}


def test_a_mistake_is_named_with_its_line_and_how_to_mend_it(desk):
    began = time.monotonic()
    desk.edit("experiment.toml", 'kind = "patience:patient"', 'kind = "patience:patent"')
    process = desk.started("coop run experiment.toml")
    said, complaints = process.communicate(timeout=60)
    assert (process.returncode, said) == (2, "")
    line = EXPERIMENT.splitlines().index('kind = "patience:patient"') + 1
    assert f"experiment.toml, line {line}: policies.patient.kind" in complaints
    assert "has no function or class 'patent'" in complaints
    assert not (desk.folder / "out").exists()
    assert time.monotonic() - began < 60
