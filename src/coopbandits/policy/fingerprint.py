"""A fingerprint of answers: text that equal values, and only these, spell alike in any process."""

from dataclasses import fields, is_dataclass
from hashlib import sha256
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.arms import ActiveDimensions
from coopbandits.arrays import (
    CAME_LATER,
    short,
)
from coopbandits.errors import StateError
from coopbandits.kernels import Product, Sum
from coopbandits.similarity import Coregionalised

if TYPE_CHECKING:
    pass


# What fingerprints call these classes: the names under which agents with them were first stored.
_STORED_AS = {
    ActiveDimensions: "On",
    Product: "Multiplied",
    Sum: "Added",
    Coregionalised: "Learned",
}


def canonical(value: Any) -> str:
    """Spell a value out so that equal answers, and only these, give equal text in any process."""
    kind = _STORED_AS.get(type(value), type(value).__qualname__)
    if isinstance(value, np.ndarray):
        digest = sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array({value.dtype.str},{value.shape},{digest})"
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, tuple | list):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}={canonical(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, FunctionType | BuiltinFunctionType):
        if "<" in value.__qualname__:  # <lambda>, <locals>: two of them may bear one name
            raise StateError(
                f"{value.__qualname__} cannot be told from other functions of that name, so an "
                "agent with it cannot be stored; use a named function of a module"
            )
        return f"{value.__module__}.{value.__qualname__}"
    if is_dataclass(value):
        facts = {
            one.name: getattr(value, one.name)
            for one in fields(value)
            if one.metadata != CAME_LATER or getattr(value, one.name) != one.default
        }
    elif repr(value) == object.__repr__(value):
        if not hasattr(value, "__dict__"):
            raise StateError(
                f"{short(value)} cannot be told from other values of its class, so an agent with "
                "it cannot be stored; give its class a __repr__ that says what is in it"
            )
        facts = vars(value)
    else:
        return f"{kind}:{value!r}"
    return f"{kind}{canonical(facts)}"
