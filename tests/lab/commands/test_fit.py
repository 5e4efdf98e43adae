import argparse
import json

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab import fit_kernel, logged, read_log, write_log
from coopbandits.lab.commands import fit


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    problem = cb.problems.kernel(cb.Network.path(2), dim=2, actions=3, norm=2.0, seed=1)
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    write_log(logged(problem, 40, seed=1), path)
    return path


def options(path, **changes):
    return argparse.Namespace(
        **{"log": path, "kernels": None, "ard": False, "json": False, **changes}
    )


def test_json_is_what_python_finds(path, capsys):
    assert fit.main(options(path, kernels=["rbf"], json=True)) == 0
    [shown] = json.loads(capsys.readouterr().out)
    found = fit_kernel(read_log(path))
    for name in ("noise", "ridge", "scale", "lengthscale", "centre", "evidence", "errors"):
        assert shown[name] == getattr(found, name)


def test_the_table_has_a_row_for_each_kernel_and_a_line_to_use(path, capsys):
    fit.main(options(path))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("80 rewards of 2 agents")
    named = {line.split()[0] for line in lines if line.split()}
    assert {"linear", "rbf", "matern"} <= named
    assert any(line.startswith("likeliest: kernel=") for line in lines)


def test_every_dimension_gets_its_lengthscale(path, capsys):
    fit.main(options(path, kernels=["rbf"], ard=True, json=True))
    [shown] = json.loads(capsys.readouterr().out)
    assert np.shape(shown["lengthscale"]) == (2,)


def test_bad_input_is_an_error_of_the_tree(path, tmp_path):
    with pytest.raises(InputError, match="cannot be read as a log"):
        fit.main(options(tmp_path / "none.jsonl"))
    with pytest.raises(ParameterError, match="kernel='cubic' is not known"):
        fit.main(options(path, kernels=["cubic"]))
