"""How does a command show what it found? Tables and JSON, plain where nobody watches."""

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

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


def patience(text: str) -> AbstractContextManager[object]:
    """Say what takes a while, as long as it does, where somebody watches."""
    shown = console(stderr=True)
    return shown.status(text) if shown.is_terminal else nullcontext()


def new_table(title: "str | Text") -> "Table":
    """Return an empty table in the house's style."""
    from rich import box  # noqa: PLC0415 (heavy)
    from rich.table import Table  # noqa: PLC0415 (heavy)

    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns; all but the first stand right."""
    from rich.text import Text  # noqa: PLC0415 (heavy; names may look like markup)

    table = new_table(Text(title))
    for column in columns:
        table.add_column(Text(column), justify="left" if column == columns[0] else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    console().print(table)


def show_words(lines: Sequence[str]) -> None:
    """Print lines as they are."""
    for line in lines:
        sys.stdout.write(line + "\n")


def show_json(value: Any) -> None:
    """Print a value as JSON; numbers that are none (NaN, infinity) are null."""
    sys.stdout.write(json.dumps(_finite(value), indent=2, ensure_ascii=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
