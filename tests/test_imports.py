"""The layers: lab and fleet import core, never the reverse, never each other.

Core knows numpy, scipy, numba, networkx, itself and the pure parts of the standard library: no
clock, file, socket, logging or global random state. What shows results to people is in three files.
"""

import ast
import io
import pkgutil
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "coopbandits"
OUTER = ("lab", "fleet", "cli.py", "__init__.py")
ALLOWED = {
    "coopbandits",
    "networkx",
    "numba",
    "numpy",
    "scipy",
    "threadpoolctl",
    # pure parts of the standard library
    "bisect",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "difflib",
    "functools",
    "hashlib",
    "heapq",
    "importlib",
    "inspect",
    "itertools",
    "json",
    "math",
    "numbers",
    "struct",
    "tomllib",
    "types",
    "typing",
    "unicodedata",
    "zlib",
}
# The files of core that show results to people, each by one package of an extra; one of them looks
# at a screen and a clock.
EXTRAS = {"progress.py": {"tqdm"}, "frames.py": {"pandas"}, "plots.py": {"matplotlib"}}
ALSO = {**EXTRAS, "progress.py": {"sys", "time", "tqdm"}}
CORE = sorted(
    file for file in SOURCE.rglob("*.py") if file.relative_to(SOURCE).parts[0] not in OUTER
)


def imported(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name} imports relatively"
            yield str(node.module)


def imported_at_once(file):
    """Yield what importing a file imports: all but what is in functions, or for type checkers."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def prose(file):
    """Yield the docstrings and comments of a file."""
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node, clean=False) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def test_there_is_a_core_to_check():
    assert {"agent.py", "network.py", "posterior.py"} <= {file.name for file in CORE}


@pytest.mark.parametrize("file", CORE, ids=lambda file: str(file.relative_to(SOURCE)))
def test_core_imports_only_what_it_may(file):
    for name in imported(file):
        allowed = ALLOWED | ALSO.get(file.name, set())
        assert name.split(".")[0] in allowed, f"{file.name} imports {name}"
        assert not name.startswith(("coopbandits.lab", "coopbandits.fleet", "coopbandits.cli"))


@pytest.mark.parametrize("name", EXTRAS)
def test_a_package_of_an_extra_is_imported_when_it_is_used_and_not_before(name):
    assert EXTRAS[name] <= {found.split(".")[0] for found in imported(SOURCE / name)}
    assert not EXTRAS[name] & {found.split(".")[0] for found in imported_at_once(SOURCE / name)}


def test_the_root_says_where_names_are_and_imports_nothing_but_for_type_checkers():
    body = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8")).body
    kinds = ast.Import | ast.ImportFrom
    found = {str(getattr(node, "module", None)) for node in body if isinstance(node, kinds)}
    assert found == {"importlib", "typing"}
    code = (
        "import sys, coopbandits; print([m for m in sys.modules if m.startswith('coopbandits.')])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "[]"


@pytest.mark.parametrize(("layer", "other"), [("lab", "fleet"), ("fleet", "lab")])
def test_lab_and_fleet_import_neither_each_other_nor_the_command(layer, other):
    for file in sorted((SOURCE / layer).rglob("*.py")):
        for name in imported(file):
            assert not name.startswith((f"coopbandits.{other}", "coopbandits.cli")), file


def test_the_command_imports_nothing_heavy_before_it_knows_what_is_asked():
    assert {name.split(".")[0] for name in imported(SOURCE / "cli.py")} <= {
        "argparse", "collections", "coopbandits", "importlib", "os", "signal", "sys", "threading",
    }  # fmt: skip


def test_a_file_imports_only_from_above_it_in_the_architectures_list():
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    listing = text.partition("src/coopbandits/")[2].partition("```")[0]
    order = [room.removesuffix(".py") for room in re.findall(r"^  (\w+)(?:\.py|/)", listing, re.M)]
    rooms = {file.relative_to(SOURCE).parts[0].removesuffix(".py") for file in CORE}
    assert set(order) == rooms
    for file in CORE:
        room = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body:  # what is imported at once
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("coopbandits."):
                above = str(node.module).split(".")[1]
                if room != above:
                    assert order.index(above) < order.index(room), f"{room} imports {above}"


@pytest.mark.parametrize("file", CORE, ids=lambda file: str(file.relative_to(SOURCE)))
def test_core_opens_nothing_prints_nothing_and_has_no_global_randomness(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print", "input", "exec", "eval"}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            chain = ast.unparse(node)
            if chain.startswith(("np.random.", "numpy.random.")):
                assert node.attr in {"Generator", "SeedSequence", "default_rng"}, chain


def test_importing_the_package_leaves_heavy_modules_alone():
    heavy = [
        "matplotlib",
        "numpy",
        "networkx",
        "scipy",
        "scipy.optimize",
        "scipy.spatial",
        "scipy.special",
        "rich",
    ]
    code = f"import sys, coopbandits; print([m for m in {heavy!r} if m in sys.modules])"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "[]"


def test_every_public_name_is_found_and_no_other():
    import coopbandits  # noqa: PLC0415

    for name in coopbandits.__all__:
        assert getattr(coopbandits, name) is not None
    assert set(coopbandits.__all__) <= set(dir(coopbandits))
    with pytest.raises(AttributeError, match="no attribute 'LinUCBB'"):
        coopbandits.LinUCBB  # type: ignore[attr-defined]  # noqa: B018


def test_the_labs_public_names_are_listed_without_loading_them():
    code = (
        "import sys, coopbandits.lab as lab\n"
        "assert set(lab.__all__) <= set(dir(lab))\n"
        "print([m for m in ('numpy', 'matplotlib', 'pandas') if m in sys.modules])\n"
        "assert all(getattr(lab, name) is not None for name in lab.__all__)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "[]"


def test_importing_a_room_does_not_hide_a_public_function():
    code = "import coopbandits.run, coopbandits as cb; print(callable(cb.play))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "True"


@pytest.mark.parametrize(
    "file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE))
)
def test_every_module_that_a_docstring_or_comment_names_exists(file):
    text = "\n".join(prose(file))
    for name in set(re.findall(r"`((?:\w+/)*\w+\.py)`", text)):
        places = (file.parent, SOURCE, SOURCE.parents[1])
        assert any((place / name).exists() for place in places), name
    for name in set(re.findall(r"`(coopbandits(?:\.\w+)+)", text)):
        assert pkgutil.resolve_name(name) is not None


def test_modules_are_named_in_docstrings_and_in_comments(tmp_path):
    file = tmp_path / "one.py"
    file.write_text('"""See `two.py`."""\n# and `three.py`\nx = "`four.py`"\n', encoding="utf-8")
    assert re.findall(r"`(\w+\.py)`", "\n".join(prose(file))) == ["two.py", "three.py"]
