"""Tables fit the terminal, whatever its width."""

import pytest

from coopbandits.lab.terminal import show_table

COLUMNS = ["policy", "regret per agent", "minus alone"]
ROWS = [["alone", "4.66 ± 0.35", ""], ["Eager-KernelUCB, Evidence", "3.65 ± 0.30", "−1.01 ± 0.20"]]


@pytest.fixture
def shown(capsys, monkeypatch):
    def show(width, rows=ROWS, columns=COLUMNS, **options):
        monkeypatch.setenv("COLUMNS", str(width))
        show_table("a table", columns, rows, **options)
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize("width", range(20, 110, 5))
def test_a_table_is_never_wider_than_the_terminal_and_loses_nothing(shown, width):
    text = shown(width)
    assert max(map(len, text.splitlines())) <= width
    flat = " ".join(text.split())
    for row in ROWS:
        for cell in row[1:]:
            assert cell in flat  # numbers are never broken by a line
        for word in row[0].split():
            assert word in flat


def test_a_wide_terminal_has_one_line_for_each_row(shown):
    lines = shown(100).splitlines()
    assert sum("±" in line for line in lines) == 2
    assert sum("Evidence" in line and "−1.01 ± 0.20" in line for line in lines) == 1


def test_in_a_narrow_one_rows_are_lines_and_empty_cells_are_left_out(shown):
    assert shown(32).rstrip().split("\n") == [
        "a table", "", "alone", "  regret per agent: 4.66 ± 0.35", "",
        "Eager-KernelUCB, Evidence", "  regret per agent: 3.65 ± 0.30",
        "  minus alone: −1.01 ± 0.20",
    ]  # fmt: skip


def test_rows_that_have_no_name_are_called_by_their_first_column(shown):
    text = shown(12, [["1*", "123,456,789"]], ["γ", "messages"], left=0)
    assert text.split("\n")[2] == "γ 1*"


def test_a_heading_above_several_columns_is_said_of_each(shown):
    columns = ["γ", "factor\nCoop", "\nDist", "delay\nCoop", "\nDist"]
    text = shown(24, [["1", "0.5", "0.6", "1.0", "2.0"]], columns, left=0)
    assert text.split("\n")[2:7] == [
        "γ 1", "  factor Coop: 0.5", "  factor Dist: 0.6", "  delay Coop: 1.0", "  delay Dist: 2.0",
    ]  # fmt: skip


def test_names_that_look_like_markup_are_names(shown):
    assert "a [/b] c" in shown(60, [["a [/b] c", "1", "2"]])
