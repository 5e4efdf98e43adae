"""How does a command show rows? As a table for people, plain where nobody watches."""

import json
import sys
from collections.abc import Sequence
from typing import Any


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns: by rich on a terminal that has it, else as plain text."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console  # noqa: PLC0415 (heavy, and may be missing)
            from rich.table import Table  # noqa: PLC0415
        except ImportError:
            pass
        else:
            table = Table(title=title, title_justify="left")
            for column in columns:
                table.add_column(column, justify="left" if column == columns[0] else "right")
            for row in rows:
                table.add_row(*row)
            Console().print(table)
            return
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if first == 0 else cell.rjust(width)
            for first, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in (columns, *rows)
    ]
    sys.stdout.write("\n".join([title, *lines]) + "\n")


def show_words(lines: Sequence[str]) -> None:
    """Print lines as they are."""
    for line in lines:
        sys.stdout.write(line + "\n")


def show_json(value: Any) -> None:
    """Print a value as JSON; numbers that are none (NaN) are null."""
    sys.stdout.write(json.dumps(_without_nan(value), indent=2, ensure_ascii=False) + "\n")


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return value
