"""Which numbers do a table's columns become? A context, coded the same way wherever it is needed.

Numbers stay as they are, in their own units (a policy's `scaling=` is for these); True and False
are 1 and 0; a column of texts becomes a number of 0 or 1 for each of its values (one-hot). What
was learnt from the log, such as those values, is kept here, so that a decision of tomorrow is coded
as those of the log were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coopbandits.arrays import Array, BoolArray, short
from coopbandits.errors import InputError
from coopbandits.lab.logs.frame import Column, Frame, as_frame

# A column of more different texts names things one by one, and cannot be learnt from.
_MOST_VALUES = 200
_MISSING = "(missing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One column of a table, as contexts have it.

    Attributes:
        name: Of the column.
        kind: "number", "flag", or "category".
        belongs: To "decision", whatever is chosen; to "action"; or to each "row" of what is
            offered.
        values: What a category may be, in order: a number of 0 or 1 for each.
        low: The least value of a number.
        high: The largest.
        missing: How many rows have no value.
        filled: What stands for a missing number, beside another number that is 1 where it is
            missing; None where none is.
    """

    name: str
    kind: str
    belongs: str
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    missing: int = 0
    filled: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What its numbers are called."""
        if self.kind == "category":
            return tuple(f"{self.name}={value}" for value in self.values)
        return (self.name,) if self.filled is None else (self.name, f"{self.name}=missing")

    @property
    def span(self) -> str:
        """Between which numbers it lies, or which values it has."""
        if self.kind == "flag":
            return "no, yes"
        if self.kind == "number":
            alone = f"always {self.low:.6g}"
            return f"{self.low:.6g} … {self.high:.6g}" if self.low < self.high else alone
        shown = ", ".join(self.values[:4])
        return shown if len(self.values) <= 4 else f"{shown} and {len(self.values) - 4} more"

    def coded(self, column: Column) -> Array:
        """Code a column: (n, k)."""
        if self.kind != "category":
            numbers = column.numbers(f"numbers, as column {self.name!r} of the log")
            missing = np.isnan(numbers)
            if self.filled is None:
                if missing.any():
                    raise InputError(_unseen(column, "no value", "the log had one everywhere"))
                return numbers[:, None]
            return np.column_stack([np.where(missing, self.filled, numbers), missing])
        places = {value: place for place, value in enumerate(self.values)}
        coded = np.zeros((len(column), len(self.values)))
        for row, value in enumerate(_texts(column)):
            if value not in places:
                said = "no value" if value == _MISSING else short(value)
                known = f"the log had {short(list(self.values))}"
                raise InputError(_unseen(column, said, known))
            coded[row, places[value]] = 1.0
        return coded


@dataclass(frozen=True, slots=True)
class Columns:
    """What the d numbers of a log's contexts stand for.

    Attributes:
        features: The columns, in the order of their numbers.
        action: What the table calls the action; None if it does not.
        actions: The labels of all actions of the log, in order, where they are known.
    """

    features: tuple[Feature, ...]
    action: str | None = None
    actions: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """(d,) what each number of a context is called."""
        return tuple(name for feature in self.features for name in feature.names)

    def __repr__(self) -> str:
        return f"Columns({'; '.join(f'{one.name}: {one.span}' for one in self.features)})"

    def contexts(self, table: Any) -> Array:
        """Code the offered actions of a decision, or any rows: (n, d).

        Args:
            table: With the log's columns of features, and that of actions where contexts tell them
                apart; in memory, as `Log.from_frame` takes it, or a dict of lists.
        """
        return self.of(as_frame(table, list(dict.fromkeys(f.name for f in self.features))))

    def of(self, frame: Frame) -> Array:
        """Code the rows of a frame: (n, d)."""
        return np.hstack([feature.coded(frame[feature.name]) for feature in self.features])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON has them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Columns":
        """Make columns of what `to_dict` returned."""
        try:
            features = tuple(
                Feature(**{**each, "values": tuple(each["values"])}) for each in fields["features"]
            )
            return cls(features, fields["action"], tuple(fields["actions"]))
        except (KeyError, TypeError) as error:
            raise InputError(
                f"these are no columns of a log ({error}); expected what columns.to_dict() returned"
            ) from error


def feature_of(
    column: Column,
    belongs: str,
    *,
    categorical: bool,
    among: BoolArray,
    instead: str = "Leave it out of features",
) -> Feature:
    """Decide how a column is coded.

    Args:
        column: Of the table.
        belongs: See `Feature`.
        categorical: Whether numbers are labels too.
        among: (n,) the rows that count.
        instead: What to do about too many values, for the message.
    """
    name, gaps = column.name, int((column.missing & among).sum())
    if categorical or column.kind == "text":
        if not categorical:
            _check_texts(column, among)
        values = [str(label) for label in column.distinct(among)]
        if len(values) > _MOST_VALUES:
            raise InputError(
                f"column {name!r} has {len(values):,} different values, such as "
                f"{short(values[0])}; as a feature it would become as many numbers. {instead}, or "
                f"put its values into groups, at most {_MOST_VALUES}"
            )
        if gaps:
            values.append(_MISSING)
        return Feature(
            name=name, kind="category", belongs=belongs, values=tuple(values), missing=gaps
        )
    if column.kind == "time":
        raise InputError(
            f"column {name!r} holds times, which are no features; name it as time=, or make "
            "numbers of it first, such as the hour or the weekday"
        )
    numbers = column.numbers("numbers, texts, or True and False, as a feature")
    known = numbers[among & ~column.missing]
    if not known.size:
        raise InputError(f"column {name!r} has no value at all; leave it out of features")
    return Feature(
        name=name,
        kind=column.kind,
        belongs=belongs,
        low=float(known.min()),
        high=float(known.max()),
        missing=gaps,
        filled=float(np.median(known)) if gaps else None,
    )


def _texts(column: Column) -> list[str]:
    return [
        _MISSING if gone else str(label)
        for label, gone in zip(column.labels, column.missing, strict=True)
    ]


def _check_texts(column: Column, among: BoolArray) -> None:
    """Refuse a column of numbers that became one of texts because of a few that are none."""
    kept = column.values[among & ~column.missing].tolist()
    is_number = [_is_number(text) for text in kept]
    numbers = sum(is_number)
    if numbers * 2 > len(kept):
        strange = sorted({t for t, known in zip(kept, is_number, strict=True) if not known})
        held = (
            f"numbers and, in {len(kept) - numbers} rows, texts such as {short(strange[0])}; "
            "repair these, or leave them empty"
            if strange
            else f"numbers written as texts, such as {short(kept[0])}; make numbers of them"
        )
        raise InputError(
            f"column {column.name!r} holds {held}. If they are labels, name the column as "
            "categorical"
        )


def _is_number(text: str) -> bool:
    """Tell whether a text is a number, with a decimal point or comma."""
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _unseen(column: Column, value: str, known: str) -> str:
    return f"column {column.name!r} has {value}, but {known}; a context can only hold what it had"


def spans(columns: Columns) -> list[Sequence[str]]:
    """Return a row for each column: its name, kind, span, whose it is, and what is missing."""
    whose = {"decision": "the decision", "action": "the action", "row": "each offered action"}
    return [
        (
            one.name,
            one.kind if one.kind != "category" else f"{len(one.values)} categories",
            one.span,
            whose[one.belongs],
            "–" if not one.missing else f"{one.missing} rows",
        )
        for one in columns.features
    ]
