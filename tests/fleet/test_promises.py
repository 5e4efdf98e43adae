"""Each promise of docs/fleet.md names functions that are there and show it."""

import ast
import re
from pathlib import Path

import pytest

from coopbandits.fleet.traffic import DIM

TESTS = Path(__file__).resolve().parents[1]
TEXT = (TESTS.parent / "docs" / "fleet.md").read_text("utf-8")
ROWS = [
    row.strip("| ").split(" | ")
    for row in TEXT.partition("| promise | shown by |")[2].partition("\n\n")[0].splitlines()[2:]
]


@pytest.mark.parametrize(("promise", "shown"), ROWS, ids=[promise[:40] for promise, _ in ROWS])
def test_a_promise_names_what_shows_it(promise, shown):
    found = re.findall(r"`([\w/.]+\.py)::(\w+)`", shown)
    assert found
    assert not re.sub(r"`[^`]*`|\([^)]*\)|[,; ]", "", shown)  # nothing but names, and notes
    for file, function in found:
        tree = ast.parse((TESTS / file).read_text("utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert function in names, f"{file} has no {function}"


def test_there_are_promises():
    assert len(ROWS) > 10


@pytest.mark.parametrize("file", ["README.md", "docs/fleet.md"])
def test_the_client_that_is_shown_asks_in_as_many_numbers_as_the_demo(file):
    """A fleet of the demo refuses contexts of another size."""
    text = (TESTS.parent / file).read_text("utf-8")
    [actions] = re.findall(r"node\.decide\((\{.*?\})\)", text)
    assert {len(context) for context in ast.literal_eval(actions).values()} == {DIM}
