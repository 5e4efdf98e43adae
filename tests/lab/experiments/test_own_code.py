"""The hash of one's own code: what it says counts, with what it imports from beside it."""

import importlib
import sys

import pytest

from coopbandits.lab.experiments.own_code import code_digest

ROUTER = '''"""A package of one's own."""
from .parts.rates import rate
import own_beside
import json

def made(problem):
    """Make it."""
    return rate, own_beside.SIZE, json
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a part in a folder of its own, and a module beside it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    place = tmp_path / "own_router"
    (place / "parts").mkdir(parents=True)
    (place / "__init__.py").write_text(ROUTER)
    (place / "parts" / "rates.py").write_text("from . import base\n\nrate = 2.0\n")
    (place / "parts" / "base.py").write_text("base = 1\n")
    (place / "unused.py").write_text("x = 1\n")
    (tmp_path / "own_beside.py").write_text("SIZE = 1\n")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def test_only_statements_of_what_is_imported_count(package):
    first = code_digest("own_router:made")
    files = {file.stem: file for file in package.rglob("*.py")}
    for name in ("unused", "__init__", "base", "own_beside"):
        text = files[name].read_text()
        files[name].write_text(f"# a comment\n\n{text}\n# another\n")
    files["__init__"].write_text(files["__init__"].read_text().replace("Make it.", "Made."))
    files["unused"].write_text("x = 2\n")
    assert code_digest("own_router:made") == first
    seen = {first}
    for name, text in (
        ("base", "base = 2\n"), ("rates", "from . import base\n\nrate = 3.0\n"),
        ("own_beside", "SIZE = 2\n"), ("__init__", ROUTER.replace("json\n", "rate\n")),
    ):  # fmt: skip
        files[name].write_text(text)
        seen.add(code_digest("own_router:made"))
    assert len(seen) == 5


def test_what_a_module_s_package_says_counts(package):
    (package / "own_router" / "parts" / "__init__.py").write_text("")
    rates = package / "own_router" / "parts" / "rates.py"
    rates.write_text("def rate():\n    return 1\n")
    first = code_digest("own_router.parts.rates:rate")
    (package / "own_router" / "parts" / "__init__.py").write_text("SCALE = 2\n")
    assert code_digest("own_router.parts.rates:rate") != first


def test_the_same_code_elsewhere_has_the_same_hash(package, tmp_path_factory, monkeypatch):
    first = code_digest("own_router:made")
    other = tmp_path_factory.mktemp("other")
    for file in package.rglob("*.py"):
        copy = other / file.relative_to(package)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text())
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]
    monkeypatch.syspath_prepend(str(other))
    importlib.invalidate_caches()
    assert code_digest("own_router:made") == first
    assert sys.modules["own_router"].__file__.startswith(str(other))


def test_a_module_that_is_installed_or_built_in_has_a_hash_too():
    assert len({code_digest(kind) for kind in ("json:dumps", "string:capwords")}) == 2
    assert code_digest("json:dumps") == code_digest("json:loads")
    assert code_digest("math:sqrt") == "?"
