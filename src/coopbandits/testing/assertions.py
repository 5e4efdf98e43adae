"""Assertions that say in a sentence what is broken, and where."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from coopbandits.arrays import Array, short

Numbers = npt.NDArray[Any]


def require(holds: bool | np.bool_, sentence: str) -> None:
    """Raise an `AssertionError` with a sentence, unless something holds."""
    if not holds:
        raise AssertionError(sentence)


def numbers(found: object, shape: tuple[int, ...], what: str) -> Array:
    """Return finite float64 numbers of a shape, or say what is wrong with them."""
    require(
        isinstance(found, np.ndarray) and found.dtype == np.float64,
        f"{what} must be a numpy array of float64, got {short(found)}",
    )
    array: Array = np.asarray(found)
    require(array.shape == shape, f"{what} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        where = _spelt(tuple(np.argwhere(~np.isfinite(array))[0]))
        raise AssertionError(f"{what} must be finite, got NaN or infinity at {where}")
    return array


def require_same(
    found: Array, expected: Array, sentence: str, *, rtol: float = 0.0, atol: float = 0.0
) -> None:
    """Require equal numbers, up to a tolerance; the sentence ends with where they differ most."""
    gap = np.abs(found - expected)
    excess = gap - (atol + rtol * np.abs(expected))
    if excess.size and excess.max() > 0:
        where = np.unravel_index(int(excess.argmax()), excess.shape)
        raise AssertionError(
            f"{sentence}: {found[where]:.10g} and {expected[where]:.10g} at {_spelt(where)}"
        )


def require_positive_semidefinite(K: Array, what: str, *, rtol: float) -> None:
    """Require that no eigenvalue of a symmetric matrix is below 0, but for rounding."""
    eigenvalues = np.linalg.eigvalsh(K)
    require(
        eigenvalues[0] >= -rtol * max(eigenvalues[-1], np.finfo(np.float64).tiny),
        f"{what} must be positive semidefinite, but has eigenvalues from {eigenvalues[0]:.6g} to "
        f"{eigenvalues[-1]:.6g}",
    )


def untouched(call: Callable[..., Any], *arrays: Numbers, what: str, **named: Numbers) -> Any:
    """Call something twice on copies: it must answer the same, and leave its inputs alone."""
    answers = []
    for _ in range(2):
        given = [array.copy() for array in arrays]
        given_named = {name: array.copy() for name, array in named.items()}
        answers.append(call(*given, **given_named))
        unchanged = all(map(np.array_equal, given, arrays)) and all(
            np.array_equal(given_named[name], array) for name, array in named.items()
        )
        require(unchanged, f"{what} changes an array that it is given; expected it left alone")
    one, two = answers
    parts = zip(one, two, strict=True) if isinstance(one, tuple) else [(one, two)]
    for part, again in parts:
        require(
            np.array_equal(np.asarray(part), np.asarray(again), equal_nan=_is_real(part)),
            f"{what} answers differently when it is asked the same again; expected one answer, "
            "without random numbers or state of its own",
        )
    return one


def _is_real(value: object) -> bool:
    return np.asarray(value).dtype.kind == "f"


def _spelt(where: tuple[Any, ...]) -> str:
    return "(" + ", ".join(str(int(place)) for place in where) + ")"
