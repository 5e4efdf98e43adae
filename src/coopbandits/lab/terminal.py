"""How does a command show what it found? Tables and JSON, plain where nobody watches."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from coopbandits.plain_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# How wide a line is where there is no terminal to ask.
_WIDTH = 100


def console(*, stderr: bool = False) -> "Console":
    """Return where to write: as wide as the terminal, without colours where there is none."""
    from rich.console import Console  # noqa: PLC0415 (heavy)

    made = Console(stderr=stderr, highlight=False)
    if made.is_terminal:
        return made
    return Console(stderr=stderr, highlight=False, width=_WIDTH, color_system=None)


def new_table(title: "str | Text") -> "Table":
    """Return an empty table in the house's style."""
    from rich import box  # noqa: PLC0415 (heavy)
    from rich.table import Table  # noqa: PLC0415 (heavy)

    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns; all but the first stand right."""
    from rich.text import Text  # noqa: PLC0415 (heavy; names may look like markup)

    table = new_table(Text(visible(title)))
    for column in columns:
        justify: Literal["left", "right"] = "left" if column == columns[0] else "right"
        table.add_column(Text(visible(column)), justify=justify)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    console().print(table)


def show_words(lines: Sequence[str]) -> None:
    """Print lines, each as it is."""
    for line in lines:
        sys.stdout.write(visible(line) + "\n")


def show_json(value: Any) -> None:
    """Print a value as JSON; numbers that are none (NaN, infinity) are null."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False)
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
