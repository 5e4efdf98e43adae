"""A table's columns by name, from pandas, polars, Arrow, a dict of lists, CSV or Parquet.

Whatever has `__arrow_c_stream__` or the dataframe interchange protocol is a table. pyarrow reads
it, of the extra `lab`; pandas and polars are needed for tables of theirs only.
"""

import csv
import gzip
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from coopbandits.arrays import LARGEST, Array, BoolArray, instead, short
from coopbandits.errors import InputError, MissingExtraError, ParameterError
from coopbandits.network.names import in_order

# How much of a text file is looked at to tell decimal points from commas.
_SNIFFED = 1 << 16
_FRACTIONS = {".": re.compile(r"-?\d+\.\d+"), ",": re.compile(r"-?\d+,\d+")}
_TABLES = (".csv", ".tsv", ".parquet", ".pq", ".csv.gz", ".tsv.gz")


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Attributes:
        name: What the table calls it.
        kind: "number", "flag", "text", "time"; else what Arrow calls its type.
        values: (n,) numbers, times as numbers, or texts; whatever where a value is missing.
        missing: (n,) where there is no value: null or NaN.
    """

    name: str
    kind: str
    values: npt.NDArray[Any]
    missing: BoolArray

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def labels(self) -> list[Any]:
        """(n,) what the column calls agents, actions or groups: texts, or whole numbers."""
        if self.kind in ("text", "flag"):
            return [str(value) for value in self.values.tolist()]
        numbers = self.values[~self.missing]
        if self.kind != "number" or not (numbers == np.round(numbers)).all():
            raise InputError(
                f"column {self.name!r} holds {_spoken(self)}; expected texts or whole numbers, as "
                "labels"
            )
        return [int(value) for value in np.where(self.missing, 0, self.values).tolist()]

    def distinct(self, among: BoolArray | None = None) -> list[Any]:
        """Return the different labels, in order: numbers by size, texts by the alphabet."""
        kept = ~self.missing if among is None else among & ~self.missing
        return in_order(label for label, used in zip(self.labels, kept, strict=True) if used)

    def numbers(self, expected: str) -> Array:
        """Return (n,) finite numbers, NaN where they are missing; flags are 0 and 1.

        Args:
            expected: What the column should hold, for the message.
        """
        if self.kind not in ("number", "flag"):
            raise InputError(f"column {self.name!r} holds {_spoken(self)}; expected {expected}")
        numbers = np.where(self.missing, np.nan, self.values.astype(np.float64))
        wrong = np.flatnonzero(~self.missing & ~(np.abs(numbers) <= LARGEST))
        if wrong.size:
            raise InputError(
                f"column {self.name!r} has {numbers[wrong[0]]} in row {wrong[0] + 1}; expected "
                f"{expected}, finite and within ±{LARGEST:g}"
            )
        return numbers


@dataclass(frozen=True, eq=False)
class Frame:
    """Some columns of a table, of n rows."""

    columns: dict[str, Column]
    rows: int

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]


def as_frame(table: Any, wanted: Sequence[str]) -> Frame:
    """Take columns out of a table in memory.

    Args:
        table: Of pandas, polars, Arrow or another library with the dataframe interchange, or a
            dict of lists.
        wanted: Names of columns.
    """
    pa = _arrow()
    if hasattr(table, "collect") and not hasattr(table, "__arrow_c_stream__"):
        raise ParameterError(
            f"got a table that is not in memory yet, {type(table).__name__}; hand over "
            "table.collect()"
        )
    is_table = hasattr(table, "__arrow_c_stream__") or hasattr(table, "__dataframe__")
    if not is_table and not isinstance(table, Mapping):
        raise ParameterError(
            f"expected a table of pandas, polars or Arrow, or a dict of lists, got {short(table)}; "
            "coopbandits.lab.read_table reads CSV and Parquet files"
        )
    listed = getattr(table, "column_names", None)  # Arrow's, whose `columns` are the columns
    columns: Any = table if isinstance(table, Mapping) else getattr(table, "columns", None)
    held = list(listed if listed is not None else [] if columns is None else columns)
    if held:
        _check_names(held, wanted, "the table")
    try:
        if isinstance(table, Mapping):
            return _framed(pa.table({name: _listed(table[name]) for name in wanted}), wanted)
        part = table
        if held:
            part = table.select(list(wanted)) if listed is not None else table[list(wanted)]
        if hasattr(part, "__arrow_c_stream__"):
            return _framed(pa.table(part), wanted)
        from pyarrow.interchange import from_dataframe  # noqa: PLC0415 (heavy)

        return _framed(from_dataframe(part), wanted)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        if isinstance(error, InputError):
            raise
        said = " ".join(str(part) for part in error.args)
        raise InputError(
            f"the table cannot be read ({said}); expected each column to hold values of one kind: "
            "numbers, texts, True and False, or times"
        ) from error


def is_table(path: str | Path) -> bool:
    """Tell whether a file is a table by its name: CSV, TSV or Parquet."""
    return str(path).lower().endswith(_TABLES)


def read_frame(path: str | Path, wanted: Sequence[str]) -> Frame:
    """Read columns of a CSV or Parquet file.

    In a text file the first line names the columns; they are parted by commas, semicolons or
    tabs, whichever the first line has most of. Where no commas part them, numbers may have a
    decimal comma. Empty fields, NA, NaN and null are missing values.

    Args:
        path: A file whose name ends in .csv, .tsv (or these with .gz), .parquet or .pq.
        wanted: Names of columns.
    """
    pa, file = _arrow(), Path(path)
    held = names_in(file)
    _check_names(held, wanted, str(file))
    try:
        if file.suffix.lower() in (".parquet", ".pq"):
            from pyarrow import parquet  # noqa: PLC0415 (heavy)

            return _framed(parquet.read_table(file, columns=list(wanted)), wanted)
        from pyarrow import csv as texts  # noqa: PLC0415 (heavy)

        mark = _mark(_first_line(file))
        found = texts.read_csv(
            file,
            parse_options=texts.ParseOptions(delimiter=mark),
            convert_options=texts.ConvertOptions(
                include_columns=list(wanted),
                strings_can_be_null=True,
                decimal_point=_decimal_point(file, mark),
            ),
        )
        other = [name for name in wanted if pa.types.is_binary(found[name].type)]
        if other:
            raise InputError(
                f"column {other[0]!r} of {file} is not in UTF-8, as spreadsheets may write it; "
                "save the table as CSV in UTF-8"
            )
        return _framed(found, wanted)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{file} cannot be read as a table ({' '.join(str(error).split())}); expected a line "
            "of names, then rows of as many values; or a Parquet file"
        ) from error


def names_in(path: str | Path) -> list[str]:
    """Return what a CSV or Parquet file calls its columns."""
    pa, file = _arrow(), Path(path)
    try:
        if file.suffix.lower() in (".parquet", ".pq"):
            from pyarrow import parquet  # noqa: PLC0415 (heavy)

            return list(parquet.read_schema(file).names)
        line = _first_line(file)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file} cannot be read as a table ({error}); expected a text file in UTF-8 whose "
            "first line names its columns, or a Parquet file"
        ) from error
    held = next(csv.reader([line], delimiter=_mark(line)), [])
    if not any(name.strip() for name in held):
        raise InputError(f"{file} names no columns; expected a first line with their names")
    return held


def _first_line(file: Path) -> str:
    with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as opened:
        return opened.readline().decode("utf-8-sig")


def _decimal_point(file: Path, mark: str) -> str:
    """Tell whether numbers have a point or, as spreadsheets of some countries write, a comma."""
    if mark == ",":
        return "."
    with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as opened:
        fields = opened.read(_SNIFFED).decode("utf-8", "replace").replace("\n", mark).split(mark)
    counts = {
        point: sum(pattern.fullmatch(one.strip()) is not None for one in fields)
        for point, pattern in _FRACTIONS.items()
    }
    return max(counts, key=counts.__getitem__)


def _mark(line: str) -> str:
    return max((",", ";", "\t"), key=line.count)


def _arrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415 (heavy)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "pyarrow is not installed, which reads tables; try: pip install 'coopbandits[lab]'"
        ) from error
    return pyarrow


def _check_names(held: list[Any], wanted: Sequence[str], where: str) -> None:
    for name in wanted:
        if name not in held:
            known = [str(each) for each in held]
            raise InputError(f"{where} has no column {name!r}{instead(str(name), known)}")
        if held.count(name) > 1:
            raise InputError(
                f"{where} has {held.count(name)} columns called {name!r}; expected different names"
            )


def _listed(values: Any) -> Any:
    return values if isinstance(values, np.ndarray) and values.ndim == 1 else list(values)


def _framed(table: Any, wanted: Sequence[str]) -> Frame:
    _check_names(list(table.column_names), wanted, "the table")
    if not table.num_rows:
        raise InputError("the table has no rows; expected a decision a row, or an offered action")
    columns = {name: _column(name, table.column(name)) for name in wanted}
    return Frame(columns, int(table.num_rows))


def _column(name: str, held: Any) -> Column:
    """Make numpy's of an Arrow column."""
    pa, n = _arrow(), len(held)
    types = pa.types
    if types.is_dictionary(held.type):
        held = held.cast(held.type.value_type)
    kind, missing = held.type, np.asarray(held.is_null().to_numpy(), dtype=np.bool_)
    if types.is_null(kind):
        return Column(name, "number", np.full(n, np.nan), missing)
    if types.is_boolean(kind):
        filled = held.fill_null(False).to_numpy()
        return Column(name, "flag", np.asarray(filled, dtype=np.bool_), missing)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = np.asarray(held.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        return Column(name, "number", numbers, missing | np.isnan(numbers))
    if types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind):
        return Column(name, "time", _times(held), missing)
    if any(is_text(kind) for is_text in (types.is_string, types.is_large_string, _is_view)):
        texts = np.array([text or "" for text in held.to_pylist()], dtype=object)
        return Column(name, "text", texts, missing | (texts == ""))
    return Column(name, str(kind), np.empty(n, dtype=object), missing)


def _is_view(kind: Any) -> bool:
    return str(kind) == "string_view"


def _times(held: Any) -> npt.NDArray[np.int64]:
    """Return times as whole numbers that have their order."""
    pa = _arrow()
    wide = pa.types.is_timestamp(held.type)
    if pa.types.is_date(held.type):
        held, wide = held.cast(pa.timestamp("ms")), True
    if not wide:  # a time of day
        held = held.cast(pa.time64("ns"))
    return np.asarray(held.cast(pa.int64()).fill_null(0).to_numpy(), dtype=np.int64)


def _spoken(column: Column) -> str:
    """Say what a column holds, with its first value."""
    first = next((v for v, m in zip(column.values, column.missing, strict=True) if not m), None)
    kinds = {"number": "numbers", "flag": "True and False", "text": "texts", "time": "times"}
    held = kinds.get(column.kind, f"values of type {column.kind}")
    if column.kind in ("time", "flag") or column.kind not in kinds or first is None:
        return held
    return f"{held}, such as {first if column.kind == 'number' else repr(first)}"
