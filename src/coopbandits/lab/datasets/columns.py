"""Columns of a data set's file: tab- or comma-separated, plain or gzip, with a line of names."""

import csv
import gzip
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coopbandits.arrays import LARGEST, Array, IntArray, short
from coopbandits.errors import InputError


def find(folder: str | Path, name: str, *, expected: str = "the data set's folder") -> Path:
    """Find a data set's file in a folder, as published or compressed."""
    for path in (Path(folder).expanduser() / name, Path(folder).expanduser() / f"{name}.gz"):
        if path.is_file():
            return path
    raise InputError(f"no {name} or {name}.gz in {str(folder)!r}; expected {expected}")


def read(path: Path, names: Sequence[str], *, delimiter: str) -> list[list[str]]:
    """Read columns by name: a list of texts for each."""
    opened = gzip.open if path.suffix == ".gz" else open
    found = []
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            rows = csv.reader(
                file,
                delimiter=delimiter,
                quoting=csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL,
            )
            header = next(rows, [])
            missing = [name for name in names if name not in header]
            if missing:
                raise InputError(
                    f"{path.name} has no column {missing[0]!r}; its first line names "
                    f"{', '.join(header[:8]) or 'nothing'}"
                )
            places = [header.index(name) for name in names]
            for row in rows:
                if row and len(row) <= max(places):
                    raise InputError(
                        f"{path.name}, line {rows.line_num}: {len(row)} columns; expected "
                        f"{len(header)}, as its first line names"
                    )
                if row:
                    found.append([row[place] for place in places])
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path.name} is damaged, or no table of columns ({error}); fetch it anew"
        ) from error
    if not found:
        raise InputError(f"{path.name} has no rows; expected some below the line of names")
    return [list(column) for column in zip(*found, strict=True)]


def whole_numbers(path: Path, names: Sequence[str], *, delimiter: str) -> list[IntArray]:
    """Read columns of whole numbers by name."""
    texts = read(path, names, delimiter=delimiter)
    return [as_whole_numbers(path, *column) for column in zip(names, texts, strict=True)]


def numbers(path: Path, names: Sequence[str], *, delimiter: str) -> list[Array]:
    """Read columns of finite numbers by name."""
    texts = read(path, names, delimiter=delimiter)
    return [as_numbers(path, *column) for column in zip(names, texts, strict=True)]


def as_whole_numbers(path: Path, name: str, texts: Sequence[str]) -> IntArray:
    """Turn the texts of a column into whole numbers: (n,)."""
    return np.array(_parsed(path, name, texts, np.int64, "a whole number"), dtype=np.int64)


def as_numbers(path: Path, name: str, texts: Sequence[str]) -> Array:
    """Turn the texts of a column into finite numbers: (n,)."""
    expected = f"a number within ±{LARGEST:g}"
    return np.array(_parsed(path, name, texts, np.float64, expected))


def _parsed(
    path: Path, name: str, texts: Sequence[str], kind: Callable[[str], Any], expected: str
) -> list[Any]:
    found = []
    for row, text in enumerate(texts, start=1):
        try:
            value = kind(text)
        except (ValueError, OverflowError):
            value = np.nan
        if not abs(value) <= LARGEST:
            raise InputError(
                f"{path.name}, row {row}: {name!r} is {short(text)}; expected {expected}"
            )
        found.append(value)
    return found
