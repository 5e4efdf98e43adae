"""Everything public says what it takes, and shows how it is used; what it shows is run.

Examples are written as in numpy's documents: `import numpy as np` and `import coopbandits as cb`
go without saying, and so do the names of an example's own module; `...` stands for any text.
"""

import doctest
import importlib
import inspect
import re
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pytest

import coopbandits as cb

SOURCE = Path(cb.__file__).parent
MODULES = (
    "act",
    "arms",
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
)
# What is used by its methods: each of them says what it takes, and shows it.
HOMES = (cb.Agent, cb.Policy)


def names_of(module):
    """What a module says is public; else the classes that it defines."""
    return getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and value.__name__ == name
        and not name.startswith("_")
    ]


def public():
    found = {}
    for name in cb.__all__:
        value = getattr(cb, name)
        if not isinstance(value, ModuleType):
            found[value] = f"coopbandits.{name}"
    for room in MODULES:
        module = importlib.import_module(f"coopbandits.{room}")
        for name in names_of(module):
            value = getattr(module, name)
            if callable(value) and inspect.getmodule(value) is not None:
                found.setdefault(value, f"{room}.{name}")
    methods = {f"{home.__name__}.{name}": value for home in HOMES for name, value in verbs(home)}
    return {name: value for value, name in found.items()} | methods


def verbs(home):
    """The public methods of a class, by name."""
    for name, value in vars(home).items():
        method = isinstance(value, FunctionType | classmethod | staticmethod)
        if method and not name.startswith("_"):
            yield name, getattr(home, name)


PUBLIC = public()


def taken(value):
    """The arguments that a caller names."""
    if getattr(value, "_is_protocol", False):
        return []
    return [
        parameter.name
        for parameter in inspect.signature(value).parameters.values()
        if parameter.kind is not parameter.VAR_POSITIONAL
        and parameter.name != "self"
        and not parameter.name.startswith("_")
    ]


def test_there_is_something_public():
    assert len(PUBLIC) > 100
    assert {"coopbandits.LinUCB", "kernels.RBF", "theory.theorem_1", "problems.table"} <= {*PUBLIC}
    assert {"records.of_run", "testing.check_kernel", "forget.Window"} <= {*PUBLIC}
    assert {"Agent.decide", "Agent.from_bytes", "Policy.from_spec"} <= {*PUBLIC}


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_has_an_example_and_says_what_it_takes(name):
    text = inspect.getdoc(PUBLIC[name]) or ""
    assert doctest.DocTestParser().get_examples(text), "there is no example"
    section = "Args:\n" if "Args:\n" in text else "Attributes:\n"
    described = text.partition(section)[2]
    for argument in taken(PUBLIC[name]):
        assert re.search(rf"^    \*{{0,2}}{argument}: ", described, re.M), f"{argument} is missing"


def modules():
    """All modules of the core, and the one that the root names beside them."""
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        is_core = parts[0] not in ("lab", "fleet") or parts == ("lab", "logs", "log")  # `cb.Log`
        if is_core and ">>>" in file.read_text(encoding="utf-8"):
            yield ".".join(("coopbandits", *parts)).removesuffix(".__init__")


@pytest.mark.parametrize("name", list(modules()))
def test_examples_show_what_comes(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    told = []
    for test in finder.find(module, extraglobs={"cb": cb, "np": np}):
        runner.run(test, out=told.append)
    assert not told, "".join(told)
