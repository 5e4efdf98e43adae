"""Wheel and sdist are what users install: what they hold, and whether they work far from here."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import coopbandits as cb

ROOT = Path(__file__).resolve().parents[1]
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
# What a clone may have beside what is tracked (.gitignore), and what is of use in a clone only.
LEFT = (
    "__pycache__", "*.egg-info", ".git", ".gitignore", ".ci", ".venv*", ".*_cache", ".hypothesis",
    ".coverage*", "build", "dist", "out", "site",
)  # fmt: skip
# Tests that are quick, and need what lies beside the source: documents, and stored messages.
SOME = ("tests/test_release.py", "tests/protocol/test_messages.py")
ELSEWHERE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the sdist from a copy of the source, and the wheel from the sdist: both files."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT))
    build = [sys.executable, "-m", "build", "--outdir", str(folder), str(source)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL, env=ELSEWHERE)
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def sdist(built):
    return built[0]


@pytest.fixture(scope="module")
def wheel(built):
    return built[1]


@pytest.fixture
def install(tmp_path):
    """Install something into a new environment; `said` by its programs, far from the source."""
    folder = tmp_path / "venv"

    def installed(what):
        venv.create(folder, with_pip=True)
        constraints = ["-c", str(ROOT / "constraints.txt")]
        command = [folder / "bin" / "python", *PIP, "install", "--no-compile", *constraints, what]
        subprocess.run(command, check=True, env=ELSEWHERE)

        def said(program, *words):
            command = [folder / "bin" / program, *words]
            return subprocess.run(
                command, capture_output=True, text=True, check=True, cwd=tmp_path, env=ELSEWHERE
            ).stdout

        return said

    yield installed
    shutil.rmtree(folder)  # half a gigabyte


def plays(said, folder):
    """Check the version, the place it is imported from, and five rounds of a small problem."""
    assert said("coop", "--version").strip() == f"coopbandits {cb.__version__}"
    small = """
import coopbandits as cb
problem = cb.problems.clustered_linear(cb.Network.path(4), dim=3, actions=3, seed=0)
print(cb.__file__, cb.play(problem, cb.LinUCB(eta=0.3), rounds=5).regret.shape)
"""
    place, _, shape = said("python", "-c", small).strip().partition(" ")
    assert Path(place).is_relative_to(folder)
    assert shape == "(5, 4)"


def files_of(folder):
    """Name the files of a folder of the clone that are not left by programs."""
    left = shutil.ignore_patterns(*LEFT)
    found = set()
    for place, folders, files in os.walk(folder):
        out = left(place, [*folders, *files])
        folders[:] = [name for name in folders if name not in out]
        found |= {(Path(place) / name).relative_to(ROOT).as_posix() for name in {*files} - out}
    return found


def test_the_version_is_written_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {
        "attr": "coopbandits.__version__"
    }


@pytest.mark.slow
def test_an_index_would_take_both_files(built):
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count("PASSED") == 2
    names = [
        f"coopbandits-{cb.__version__}.tar.gz",
        f"coopbandits-{cb.__version__}-py3-none-any.whl",
    ]
    assert [file.name for file in built] == names


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel):
    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == {name.removeprefix("src/") for name in files_of(ROOT / "src")}
    assert "coopbandits/py.typed" in held
    report = {Path(name).suffix for name in held if "/lab/report/" in name}
    assert report == {".py", ".html", ".css", ".js"}


@pytest.mark.slow
def test_the_sdist_holds_source_docs_and_all_tests_and_its_tests_run(sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    held = {file.relative_to(unpacked).as_posix() for file in unpacked.rglob("*") if file.is_file()}
    added = {name for name in held if name in {"PKG-INFO", "setup.cfg"} or ".egg-info/" in name}
    assert held - added == files_of(ROOT)
    assert {"LICENSE", "CITATION.cff", "docs/architecture.md", "tests/conftest.py"} <= held
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SOME]
    here = {**ELSEWHERE, "PYTHONPATH": str(unpacked / "src")}
    ran = subprocess.run(tests, capture_output=True, text=True, check=False, cwd=unpacked, env=here)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.slow
def test_the_installed_wheel_works_outside_of_the_source(wheel, install, tmp_path):
    said = install(f"{wheel}[lab]")
    assert "coop demo" in said("coop", "--help")
    assert "all is well" in said("coop", "doctor")
    plays(said, tmp_path)


@pytest.mark.slow
def test_the_installed_sdist_works_outside_of_the_source(sdist, install, tmp_path):
    plays(install(str(sdist)), tmp_path)
