"""What may pass the border: array types, and the checks that every public call makes once.

Inner functions trust what these have let in: float64, finite, of the right shape, and of a size
that leaves room for arithmetic (`LARGEST`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from coopbandits.errors import NetworkError, NonFiniteError, ParameterError, ShapeError

Array: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
# What a public call takes as `seed=`: `as_seed` makes a whole number of it.
Seed: TypeAlias = int | np.random.Generator | None

# Squares, sums and products of a few numbers up to here cannot overflow.
LARGEST = 1e50
# An array of more bytes is refused before it is made. Arithmetic takes a few copies of it, which
# together stay within what `play` allows itself.
LARGEST_ARRAY = 2e9
# Marks a dataclass field that says nothing where it has its default: so values keep the
# fingerprints that they had before there was such a field, and stored agents stay readable.
CAME_LATER = {"came later": True}
# What Python and numpy count among the whole numbers, and we do not.
_NO_NUMBERS = (bool, np.bool_, np.timedelta64)


def as_floats(values: object, what: str) -> Array:
    """Turn what a caller gave into a finite float64 array, or say what is wrong with it.

    Lists, arrays, tables of pandas and polars, tensors: whatever numpy makes an array of.
    """
    plain = type(values) is np.ndarray and values.dtype == np.float64  # as most calls have it
    if plain and np.abs(values).max(initial=0.0) <= LARGEST:  # type: ignore[call-overload]
        return values.copy()  # type: ignore[attr-defined]
    raw, names = None if values is None else as_array(values, what), column_names(values)
    array = None if raw is None else _numbers(raw) if names is None else _by_columns(raw)
    if array is None:
        if raw is not None and names is not None and raw.shape[1:] == (len(names),):
            raise ShapeError(f"{what} must hold numbers only, but {_textual(raw, names)}")
        raise ShapeError(
            f"{what} must be an array of numbers, its rows of equal length; got {short(values)}"
        )
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = f"index {where or 0}"
        if names is not None and len(where) == 2:
            place = f"column {names[where[1]]!r}, row {where[0]}"
        raise NonFiniteError(
            f"{what} must be finite, got {float(array[where])} at {place}; "
            "leave such entries out or repair them first"
        )
    if np.abs(array).max(initial=0.0) > LARGEST:
        raise ParameterError(
            f"{what} must lie within ±{LARGEST:g}, got {np.abs(array).max():g}; scale it down"
        )
    return array


def as_array(values: object, what: str) -> npt.NDArray[Any] | None:
    """Let numpy make an array of values; None if rows differ in length, or some are hidden."""
    if isinstance(values, np.ma.MaskedArray) or (
        isinstance(values, range) and not is_listing(values)
    ):
        return None
    try:
        return np.asarray(values)
    except Exception as error:  # an `__array__` of anybody's may raise anything
        refused = _refused(values)
        if refused is None and isinstance(error, TypeError | ValueError | OverflowError):
            return None
        raise ShapeError(
            f"{what} cannot be made an array of numbers ({refused or error}); hand over numbers in "
            "memory, such as tensor.detach().cpu().numpy()"
        ) from error


def _refused(values: object) -> Exception | None:
    """Return the error of the first value whose `__array__` raises one; None if none does."""
    if isinstance(values, list | tuple):
        return next((found for found in map(_refused, values) if found is not None), None)
    if not hasattr(values, "__array__") or isinstance(values, np.ndarray):
        return None
    try:
        np.asarray(values)
    except Exception as error:
        return error
    return None


def _numbers(raw: npt.NDArray[Any]) -> Array | None:
    """Copy numbers into a float64 array; None if they are none."""
    try:
        if raw.dtype.kind == "O" and not all(v is None or is_real(v) for v in raw.flat):
            return None
        with np.errstate(over="ignore"):
            return raw.astype(np.float64) if raw.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def column_names(values: object) -> list[object] | None:
    """Return what a table calls its columns; None for what is no table."""
    if isinstance(values, np.ndarray | type) or not hasattr(values, "__array__"):
        return None
    names = getattr(values, "columns", None)
    return None if names is None else list(names)


def _by_columns(raw: npt.NDArray[Any]) -> Array | None:
    """Copy a table's numbers; a column of True and False counts as 1 and 0."""
    if raw.dtype.kind != "O" or raw.ndim != 2:
        return _numbers(raw)
    columns = [_numbers(_plain_flags(raw[:, j])) for j in range(raw.shape[1])]
    kept = [column for column in columns if column is not None]
    return np.column_stack(kept) if kept and len(kept) == len(columns) else None


def _plain_flags(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    flags = all(isinstance(value, bool | np.bool_) for value in column)
    return column.astype(np.bool_) if flags else column


def _textual(raw: npt.NDArray[Any], names: list[object]) -> str:
    """Say which columns of a table hold no numbers, and what they hold."""
    found = []
    for name, column in zip(names, raw.T, strict=True):
        if raw.dtype.kind != "O" or _numbers(_plain_flags(column)) is None:
            strange = (v for v in column.tolist() if not is_real(v) and v is not None)
            found.append(f"column {name!r} has {short(next(strange, column[0]))}")
    more = f" and {len(found) - 3} more columns" if len(found) > 3 else ""
    return (
        f"{', '.join(found[:3])}{more}; leave such columns out, or turn them into numbers (a text "
        "into one column of 0 and 1 for each value)"
    )


def as_contexts(values: object, what: str = "a decision set") -> Array:
    """Check one decision set: at least one action, each a context of at least one number.

    Returns:
        A (K, d) array of its own.
    """
    array = as_floats(values, what)
    if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] == 0:
        raise ShapeError(
            f"{what} has shape {array.shape}; expected (K, d) with at least one action (K >= 1) "
            "and one number per context (d >= 1)"
        )
    return array


def as_vector(values: object, what: str) -> Array:
    """Check one context: at least one number."""
    array = as_floats(values, what)
    if array.ndim != 1 or array.size == 0:
        raise ShapeError(f"{what} has shape {array.shape}; expected (d,) with d >= 1")
    return array


def as_number(value: Any, what: str) -> float:
    """Check one finite number."""
    value = _unwrapped(value, what)
    if not is_real(value):
        inside = hasattr(value, "__array__") and np.size(value) == 1
        advice = "; take the number out of it, by .item()" if inside else ""
        raise ParameterError(f"{what} must be a number, got {short(value)}{advice}")
    try:
        number = float(value)
    except OverflowError:
        number = LARGEST * 2
    if not np.isfinite(number):
        raise NonFiniteError(f"{what} must be finite, got {number}")
    if abs(number) > LARGEST:
        raise ParameterError(f"{what} must lie within ±{LARGEST:g}, got {short(value)}")
    return number


def as_reward(value: Any, what: str = "a reward") -> float:
    """Check one reward: a finite number; True and False, as of a click, are 1 and 0."""
    value = _unwrapped(value, what)
    return float(value) if isinstance(value, bool | np.bool_) else as_number(value, what)


def _unwrapped(value: Any, what: str) -> Any:
    """Take the number out of an array or a tensor that has no dimension."""
    hidden = isinstance(value, np.ma.MaskedArray)
    if hidden or isinstance(value, np.generic) or not hasattr(value, "__array__"):
        return value
    try:
        array = np.asarray(value)
    except Exception as error:  # an `__array__` of anybody's may raise anything
        raise ParameterError(
            f"{what} must be a number, got {short(value)}, which numpy cannot read ({error}); take "
            "the number out of it, by .item()"
        ) from error
    return array[()] if array.ndim == 0 else value


def as_positive(value: Any, what: str) -> float:
    """Check one finite number above 0."""
    number = as_number(value, what)
    if number <= 0:
        raise ParameterError(f"{what} must be above 0, got {number}")
    return number


def as_not_negative(value: Any, what: str) -> float:
    """Check one finite number that is at least 0."""
    number = as_number(value, what)
    if number < 0:
        raise ParameterError(f"{what} must be >= 0, got {number}")
    return number


def as_count(value: Any, what: str, *, least: int = 1, most: int = 2**31) -> int:
    """Check one whole number from `least` to `most`."""
    if not is_whole(value) or value < least:
        raise ParameterError(f"{what} must be a whole number >= {least}, got {short(value)}")
    if value > most:
        raise ParameterError(f"{what} must be at most {most}, got {short(value)}")
    return int(value)


def as_choice(value: Any, what: str, choices: Iterable[str], *, otherwise: str = "") -> str:
    """Check an option that is one of a few texts.

    Args:
        value: What was given.
        what: The option's name.
        choices: The texts.
        otherwise: What else the option may be, for the message.
    """
    known = tuple(choices)
    if isinstance(value, str) and value in known:
        return known[known.index(value)]
    named = [*map(repr, known), *([otherwise] if otherwise else [])]
    expected = " or ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    raise ParameterError(f"{what}={short(value)} is not known; expected {expected}")


def instead(given: str, known: Iterable[str]) -> str:
    """Say what may have been meant by a name that is not known; the end of a message."""
    names = list(known)
    near = get_close_matches(given, names, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; expected one of {', '.join(names)}"


def check_size(*shape: float, what: str, advice: str) -> None:
    """Refuse an array of numbers that is too large for memory, before it is made.

    Args:
        shape: Of the array.
        what: What needs it.
        advice: How it gets smaller.
    """
    needed = 8.0 * math.prod(map(float, shape))
    if needed > LARGEST_ARRAY:
        sides = " × ".join(f"{side:,.0f}" for side in shape)
        raise ParameterError(
            f"{what} would take {needed / 1e9:,.3g} GB for {sides} numbers; expected at most "
            f"{LARGEST_ARRAY / 1e9:g} GB; {advice}"
        )


def as_flag(value: Any, what: str) -> bool:
    """Check an option that is True or False."""
    if not isinstance(value, bool):
        raise ParameterError(f"{what} must be True or False, got {short(value)}")
    return value


def as_bytes(value: Any) -> bytes:
    """Check that a value is bytes, or something like them."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise ParameterError(f"expected bytes, got {short(value)}")
    return bytes(value)


def as_seed(value: Any) -> int:
    """Settle a seed: a whole number >= 0, a Generator that one is drawn from, or None for any."""
    if value is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**63))
    if not is_whole(value) or value < 0:
        raise ParameterError(
            f"seed must be a whole number >= 0, got {short(value)}; a numpy.random.Generator, or "
            "None for a fresh one, will do too"
        )
    return as_fixed_seed(value, "")


def as_fixed_seed(value: Any, why: str) -> int:
    """Check a seed that must be said: a whole number >= 0.

    Args:
        value: The seed.
        why: Why no other will do, for the message.
    """
    if value is None or isinstance(value, np.random.Generator):
        raise ParameterError(f"seed must be a whole number >= 0, got {short(value)}; {why}")
    return as_count(value, "seed", least=0, most=2**128)


def as_agent(value: Any, agents: int) -> int:
    """Check that an agent is one of 0 … V−1."""
    if not is_whole(value) or not 0 <= value < agents:
        raise NetworkError(
            f"agent {short(value)} is not in this network; its agents are 0 … {agents - 1}"
        )
    return int(value)


def is_whole(value: object) -> bool:
    """Tell whether a value is a whole number; True, False and spans of time are not."""
    return isinstance(value, Integral) and not isinstance(value, _NO_NUMBERS)


def is_real(value: object) -> bool:
    """Tell whether a value is a number; True, False and spans of time are not."""
    return isinstance(value, Real) and not isinstance(value, _NO_NUMBERS)


def is_listing(value: object) -> bool:
    """Tell whether a value is a list of things: a sequence, or an array with a first axis.

    A range that would not fit into memory is none.
    """
    if isinstance(value, range):
        return not value[int(LARGEST_ARRAY) // 8 :]
    if isinstance(value, Sequence):
        return not isinstance(value, str | bytes | bytearray | memoryview)
    if isinstance(value, type) or not hasattr(value, "__array__"):
        return False
    dimensions = getattr(value, "ndim", None)
    if dimensions is None:  # a table of polars has none
        dimensions = len(getattr(value, "shape", ()))
    return is_whole(dimensions) and dimensions > 0


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array read-only, so that it can be handed out."""
    array.setflags(write=False)
    return array


class ByContent:
    """Equality and hash of a frozen dataclass with arrays, by what is in its fields.

    Arrays are equal if their bytes are, as in fingerprints of policies.
    """

    @cached_property
    def _content(self) -> tuple[object, ...]:
        values = (getattr(self, one.name) for one in fields(self))  # type: ignore[arg-type]
        return tuple(
            (value.dtype.str, value.shape, sha256(value.tobytes()).digest())
            if isinstance(value, np.ndarray)
            else value
            for value in values
        )

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not type(self):
            return self is other
        return self._content == other._content

    def __hash__(self) -> int:
        return hash((type(self), self._content))


def short(value: object) -> str:
    """Spell a value out for an error message, cut to one line."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an int of 5,000 digits, or a user's own __repr__: name its kind instead
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "…"
