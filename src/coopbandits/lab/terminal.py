"""How does a command show what it found? Tables and JSON, plain where nobody watches."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from coopbandits.lab.letters import is_narrow, printed
from coopbandits.plain_text import visible, visible_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# How wide a line is where there is no terminal to ask, unless COLUMNS says it.
_WIDTH = 100
# Between two columns of a table; and at both of its sides.
_GAP, _EDGES = 3, 2


def console(*, stderr: bool = False) -> "Console":
    """Return where to write: as wide as the terminal, without colours where there is none."""
    from rich.console import Console  # noqa: PLC0415 (heavy)

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # `coop … | head`; the command ends as it should

    made = Piped(stderr=stderr, highlight=False)
    if made.is_terminal:
        return made
    asked = os.environ.get("COLUMNS", "")
    width = int(asked) if asked.isdecimal() and int(asked) > 0 else _WIDTH
    return Piped(stderr=stderr, highlight=False, width=width, color_system=None)


def patience(text: str) -> AbstractContextManager[object]:
    """Say what takes a while, as long as it does, where somebody watches."""
    shown = console(stderr=True)
    return shown.status(text) if shown.is_terminal else nullcontext()


def new_table(title: "str | Text") -> "Table":
    """Return an empty table in the house's style."""
    from rich import box  # noqa: PLC0415 (heavy)
    from rich.table import Table  # noqa: PLC0415 (heavy)

    lines = str(box.SIMPLE_HEAD)
    plain = printed(lines)  # with hyphens, where there are no lines
    style = box.SIMPLE_HEAD if plain == lines else box.Box(plain, ascii=True)
    return Table(title=title, title_justify="left", box=style, pad_edge=False)


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: int = 1,
) -> None:
    """Print rows under their columns; in a narrow terminal each row as lines of its own.

    Args:
        title: Above it.
        columns: Their names, of one or more lines.
        rows: Cells of each.
        left: How many columns stand left; the others, numbers, stand right and are not broken.
    """
    from rich.text import Text  # noqa: PLC0415 (heavy; names may look like markup)

    title = printed(visible(title))
    columns = [printed(visible_lines(column)) for column in columns]
    rows = [[printed(visible(cell)) for cell in row] for row in rows]
    screen = console()
    widths = _widths(columns, rows, left, screen.width)
    if widths is None:
        screen.print(Text(_as_lines(title, columns, rows, left), overflow="fold"))
        return
    table = new_table(Text(title))
    for place, (column, width) in enumerate(zip(columns, widths, strict=True)):
        table.add_column(Text(column), justify="left" if place < left else "right", width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    screen.print(table)


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: int, room: int
) -> list[int] | None:
    """Return how wide columns are; None if there is no room for them.

    Words are not broken, and numbers with their intervals neither; names, then headings, are broken
    between words where there is no room for them.
    """
    from rich.cells import cell_len  # noqa: PLC0415 (heavy)

    least, wished = [], []
    for place, column in enumerate(columns):
        cells = [row[place] for row in rows]
        texts = [column, *cells] if place < left else [column]
        unbroken = [word for text in texts for word in text.split()]
        unbroken += [] if place < left else cells
        least.append(max(map(cell_len, unbroken), default=0))
        wished.append(max(map(cell_len, [*column.split("\n"), *cells]), default=0))
    spare = room - sum(least) - _GAP * (len(columns) - 1) - _EDGES
    if spare < 0:
        return None
    for place, (width, more) in enumerate(zip(least, wished, strict=True)):
        least[place] = width + min(spare, more - width)
        spare -= least[place] - width
    return least


def _as_lines(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Lay a table out for a narrow terminal: what a row is about, and its cells below."""
    names: list[str] = []
    group = ""
    for column in columns[1:]:  # a heading of two lines may be that of the columns after it, too
        above, two, below = column.partition("\n")
        group = above if two and above else group
        names.append(" ".join([group, below] if two else above.split()))
    lines = [title]
    for first, *others in rows:
        lines += ["", first.strip() if left else f"{columns[0]} {first.strip()}"]
        cells = zip(names, map(str.strip, others), strict=True)
        lines += [f"  {name}: {cell}" for name, cell in cells if cell]
    return "\n".join([*lines, ""])


def show_words(lines: Sequence[str]) -> None:
    """Print lines, each as it is."""
    for line in lines:
        sys.stdout.write(visible(line) + "\n")


def show_json(value: Any) -> None:
    """Print a value as JSON; numbers that are none (NaN, infinity) are null.

    Names stay what they are: letters that cannot be written, or that a terminal would obey, are
    escaped, not spelt otherwise.
    """
    text = json.dumps(_finite(value), indent=2, ensure_ascii=is_narrow(sys.stdout))
    sys.stdout.write("\n".join(_escaped(line) for line in text.split("\n")) + "\n")


def _escaped(line: str) -> str:
    r"""Spell out what JSON leaves as it is, and a terminal would obey, as \u009b."""
    return "".join(c if visible(c) == c else json.dumps(c)[1:-1] for c in line)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
