"""The wheel is what users install: what it holds, and whether it works far from its source."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[1]
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from a copy of the source: what earlier builds left is not in it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    left = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=left)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(build, check=True)
    [file] = folder.glob("*.whl")
    return file


@pytest.fixture
def installed(wheel, tmp_path):
    """Install the wheel with its lab into a new environment; return the folder of its programs."""
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    subprocess.run(
        [programs / "python", *PIP, "install", "--no-compile", "-c", ROOT / "constraints.txt",
         f"{wheel}[lab]"], check=True,
    )  # fmt: skip
    yield programs
    shutil.rmtree(tmp_path / "venv")  # half a gigabyte


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel):
    source = ROOT / "src"
    wanted = {
        file.relative_to(source).as_posix()
        for file in (source / "coopbandits").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == wanted
    assert "coopbandits/py.typed" in held
    report = {Path(name).suffix for name in held if "/lab/report/" in name}
    assert report == {".py", ".html", ".css", ".js"}


def test_the_installed_wheel_works_outside_of_the_source(installed, tmp_path):
    elsewhere = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def said(program, *words):
        command = [installed / program, *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=tmp_path, env=elsewhere
        ).stdout

    assert "coop demo" in said("coop", "--help")
    assert "all is well" in said("coop", "doctor")
    small = """
import coopbandits as cb
problem = cb.problems.clustered_linear(cb.Network.path(4), dim=3, actions=3, seed=0)
print(cb.__file__, cb.play(problem, cb.LinUCB(eta=0.3), rounds=5).regret.shape)
"""
    place, _, shape = said("python", "-c", small).strip().partition(" ")
    assert Path(place).is_relative_to(tmp_path)
    assert shape == "(5, 4)"
