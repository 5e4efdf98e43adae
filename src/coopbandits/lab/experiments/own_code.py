"""One's own code as results depend on it: a hash of what it says, not of how it is commented."""

import ast
import inspect
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from coopbandits.lab.experiments.kinds import own

# Where packages are installed: a module there depends on the rest of its own package alone.
_INSTALLED = {Path(path).resolve() for path in sysconfig.get_paths().values()}


def code_digest(kind: str) -> str:
    """Hash the module that `module:name` names, and those that it imports from beside it.

    Comments, docstrings and layout are left out. Data that the code reads are not looked at.
    """
    made = inspect.unwrap(own(kind, ("kind",)))
    name = kind.partition(":")[0]
    found = [_source(sys.modules[name]), _source(made)]
    start = [file for file in dict.fromkeys(found) if file is not None]
    if not start:
        return "?"
    marks = "\0".join(f"{place}\0{_statements(file)}" for place, file in _reached(name, start))
    return sha256(marks.encode()).hexdigest()


def _source(thing: object) -> Path | None:
    try:
        file = inspect.getsourcefile(thing)  # type: ignore[arg-type]
    except TypeError:  # built in
        return None
    return None if file is None else Path(file).resolve()


def _reached(name: str, start: list[Path]) -> list[tuple[str, Path]]:
    """Follow imports as far as they lie beside the module; each file with its place there."""
    first = start[0]
    depth = name.count(".") + (first.stem == "__init__")
    root = first.parents[min(depth, len(first.parents) - 1)]
    package = name.partition(".")[0] if root in _INSTALLED else None
    found: dict[Path, str] = {}
    waiting = [*start, *_files(root, name.split("."), None)]
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found[file] = file.relative_to(root).as_posix() if root in file.parents else file.name
        waiting += _imported(file, root, package)
    return sorted((place, file) for file, place in found.items())


def _imported(file: Path, root: Path, package: str | None) -> Iterator[Path]:
    """Find the files that a file imports, under a folder, perhaps of one package alone."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(root, alias.name.split("."), package)
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            folder = file.parents[min(node.level, len(file.parents)) - 1] if node.level else root
            for alias in node.names:
                yield from _files(folder, [*parts, alias.name], None if node.level else package)


def _files(folder: Path, parts: list[str], package: str | None) -> Iterable[Path]:
    """Return the files of a dotted name and of all that lead to it."""
    if package is not None and parts[0] != package:
        return
    for count in range(1, len(parts) + 1):
        place = folder.joinpath(*parts[:count])
        yield place.with_name(f"{place.name}.py")
        yield place / "__init__.py"


def _statements(file: Path) -> str:
    """Spell out a file's statements; its bytes, where it is no Python."""
    content = file.read_bytes()
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return sha256(content).hexdigest()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    return ast.dump(tree)
