"""Every figure takes its colours from one place."""

import re
from pathlib import Path

import pytest

from coopbandits.lab.report.colours import contrast
from coopbandits.palette import COLOURS, GROUPS, QUIET, colour

ROOT = Path(__file__).resolve().parents[1]
DRAWN = [
    file
    for room in ("src/coopbandits", "examples", "benchmarks")
    for file in sorted((ROOT / room).rglob("*.py"))
]
# The palette itself; and the page's grounds, on which its colours must be seen.
HOMES = {"palette.py", "colours.py"}


@pytest.mark.parametrize("file", DRAWN, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_file_has_colours_of_its_own(file):
    if file.name not in HOMES:
        text = file.read_text(encoding="utf-8")
        assert not re.findall(r"""["']#[0-9a-fA-F]{6}["']|get_cmap\(["']tab""", text)


def test_colours_are_different_and_those_of_groups_are_among_them():
    assert len(set(COLOURS)) == len(COLOURS)
    assert set(GROUPS) - set(COLOURS) == {"#f0e442"}  # yellow is for areas, too pale for lines
    assert [colour(place) for place in range(2 * len(COLOURS))] == [*COLOURS, *COLOURS]


@pytest.mark.parametrize("one", [*COLOURS, QUIET])
def test_lines_are_seen_on_paper(one):
    assert contrast(one, "#ffffff") > 2
