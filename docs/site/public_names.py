"""The reference: a page for each public module, with all its public names.

What is public is what the package says by `__all__`; a module that says nothing has its classes.
"""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import coopbandits as cb


@dataclass(frozen=True, slots=True)
class Group:
    """A page of the reference, or a part of one: a heading and public names."""

    title: str
    names: tuple[str, ...]


# The names of `coopbandits` itself, by what they are for. What is in no group comes last.
_TOP = (
    Group("Simulate", ("play", "Run", "compare", "Comparison", "Network", "Links")),
    Group(
        "Policies of the paper",
        (
            "CoopKernelUCB",
            "EagerKernelUCB",
            "DistKernelUCB",
            "CoopKernelTS",
            "EagerKernelTS",
            "NaiveCooperation",
            "Centralised",
        ),
    ),
    Group(
        "Agents alone",
        ("LinUCB", "KernelUCB", "OFUL", "GPUCB", "IGPUCB", "LinTS", "KernelTS", "Uniform"),
    ),
    Group("A policy of one's own", ("Policy", "Scaling")),
    Group("One agent", ("Agent", "Decision", "Message", "Digest")),
    Group("Continuum decision sets", ("Box", "Polytope")),
)
# Other modules, in the order of the menu.
MODULES = (
    "act",
    "arms",
    "errors",
    "features",
    "forget",
    "kernels",
    "listen",
    "problems",
    "protocol.links",
    "records",
    "say",
    "similarity",
    "testing",
    "theory",
    "width",
    "engines",
    "lab",
    "fleet.client",
)


def public_names(module: ModuleType) -> list[str]:
    """Say what is public in a module: `__all__`, or the classes that it defines."""
    stated = getattr(module, "__all__", None)
    if stated is not None:
        return list(stated)
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and value.__name__ == name
        and not name.startswith("_")
    ]


def groups() -> list[Group]:
    """Put the public names of `coopbandits` into groups."""
    names = [name for name in cb.__all__ if not isinstance(getattr(cb, name), ModuleType)]
    placed = {name for group in _TOP for name in group.names}
    rest = tuple(name for name in names if name not in placed)
    return [*_TOP, Group("Algorithms of other papers", rest)]


def write_reference(folder: Path) -> list[str]:
    """Write the pages of the reference.

    Args:
        folder: Where the pages go.

    Returns:
        The pages, by their place in the site.
    """
    folder = folder / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    first = [
        "# coopbandits",
        "Everything here is used as `cb.NAME`, after `import coopbandits as cb`.",
    ]
    for group in groups():
        first += [f"## {group.title}", *(_entry(f"coopbandits.{name}", 3) for name in group.names)]
    pages = {"coopbandits.md": first}
    for module in MODULES:
        path = f"coopbandits.{module}"
        names = public_names(import_module(path))
        pages[f"{module}.md"] = [
            f"# {path}",
            _module(path),
            *(_entry(where(path, name), 2) for name in sorted(names, key=str.lower)),
        ]
    for name, lines in pages.items():
        (folder / name).write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return [f"reference/{name}" for name in pages]


def where(module: str, name: str) -> str:
    """Say where a public name is read: where it is exported, or, beside a module so named, made.

    Args:
        module: The module that exports it.
        name: The name.
    """
    value = getattr(import_module(module), name)
    try:
        beside = find_spec(f"{module}.{name}")
    except ModuleNotFoundError:  # the exporting module is no package
        beside = None
    clash = beside is not None and not isinstance(value, ModuleType)
    return f"{value.__module__ if clash else module}.{name}"


def _module(path: str) -> str:
    """Show what a module says of itself, without its members."""
    hidden = ("show_root_heading", "show_root_toc_entry", "members")
    options = "".join(f"      {name}: false\n" for name in hidden)
    return f"::: {path}\n    options:\n{options}".rstrip()


def _entry(path: str, level: int) -> str:
    return f"::: {path}\n    options:\n      heading_level: {level}"
