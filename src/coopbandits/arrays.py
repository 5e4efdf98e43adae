"""What may pass the border: array types, and the checks that every public call makes once.

Inner functions trust what these have let in (float64, finite, of the right shape).
"""

from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from coopbandits.errors import NetworkError, NonFiniteError, ParameterError, ShapeError

Array: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def as_floats(values: object, what: str) -> Array:
    """Turn what a caller gave into a finite float64 array, or say what is wrong with it."""
    try:
        raw = np.asarray(values)
        array = raw.astype(np.float64) if raw.dtype.kind in "biufO" else None
    except (TypeError, ValueError):  # rows of unequal length, or what is no number
        array = None
    if array is None:
        raise ShapeError(f"{what} must be an array of numbers, got {short(values)}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NonFiniteError(
            f"{what} must be finite, got {float(array[where])} at index {where or 0}; "
            "leave such entries out or repair them first"
        )
    return array


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
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ParameterError(f"{what} must be a number, got {short(value)}")
    number = float(value)
    if not np.isfinite(number):
        raise NonFiniteError(f"{what} must be finite, got {number}")
    return number


def as_positive(value: object, what: str) -> float:
    """Check one finite number above 0."""
    number = as_number(value, what)
    if number <= 0:
        raise ParameterError(f"{what} must be above 0, got {number}")
    return number


def as_not_negative(value: object, what: str) -> float:
    """Check one finite number that is at least 0."""
    number = as_number(value, what)
    if number < 0:
        raise ParameterError(f"{what} must be >= 0, got {number}")
    return number


def as_count(value: Any, what: str, *, least: int = 1) -> int:
    """Check one whole number that is at least `least`."""
    if not is_whole(value) or value < least:
        raise ParameterError(f"{what} must be a whole number >= {least}, got {short(value)}")
    return int(value)


def is_whole(value: object) -> bool:
    """Tell whether a value is a whole number; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def as_seed(value: object) -> int:
    """Check a seed: a whole number >= 0."""
    return as_count(value, "seed", least=0)


def as_agent(value: Any, agents: int) -> int:
    """Check that an agent is one of 0 … V−1."""
    if not is_whole(value) or not 0 <= value < agents:
        raise NetworkError(
            f"agent {short(value)} is not in this network; its agents are 0 … {agents - 1}"
        )
    return int(value)


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array read-only, so that it can be handed out."""
    array.setflags(write=False)
    return array


def short(value: object) -> str:
    """Spell a value out for an error message, cut to one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "…"
