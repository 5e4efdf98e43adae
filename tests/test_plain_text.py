import string

import pytest

from coopbandits.plain_text import visible, visible_cell, visible_lines


def test_what_is_printed_anyway_stays_as_it_is():
    for text in (string.printable[:95], "Erdős-Rényi(40, 0.3)", "連", "γ = 2 → 3", "\U0001f6a2"):
        assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"), ("\x9b7m", r"\x9b7m"), ("a\nb", r"a\nb"), ("\x00", r"\x00"),
        ("\u2028", r"\u2028"), ("\u202e", r"\u202e"), ("\ud800", r"\ud800"), ("\x7f", r"\x7f"),
    ],
)  # fmt: skip
def test_what_a_terminal_obeys_is_spelt_out(text, shown):
    assert visible(text) == shown
    shown.encode()
    assert visible_lines(f"first\n\x1b{shown}") == f"first\n\\x1b{shown}"


def test_cells_that_begin_as_formulas_do_are_quoted():
    for sign in "=+-@":
        for text in (f"{sign}1", f" {sign}1", f"\u00a0{sign}1"):
            assert visible_cell(text) == f"'{text}"
    assert [visible_cell(text) for text in ("a=1", "", "'=1", "5-1")] == ["a=1", "", "'=1", "5-1"]
