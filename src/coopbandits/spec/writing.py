"""How is a policy written as plain values? Each answer a table: its kind, and its arguments."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from coopbandits.arrays import short
from coopbandits.errors import ParameterError
from coopbandits.gp.compositions import Hadamard, Sum
from coopbandits.policy import Policy
from coopbandits.similarity import ArmNetwork, Clusters, Known, LowRank
from coopbandits.spec.kinds import KINDS, room_of

VERSION = 1

# The arguments of values that keep them under other names than they take them.
_ARGUMENTS: dict[type, Callable[[Any], Mapping[str, Any]]] = {
    Known: lambda value: {"matrix": value.K_z},
    LowRank: lambda value: {"loadings": value.U, "own": value.delta},
    Clusters: lambda value: {"labels": dict(value.by_name) if value.by_name else value.labels},
    ArmNetwork: lambda value: {
        "matrix": value.pairs, "arms": value.arms, "column": value.column,
    },
}  # fmt: skip


def spec_of(policy: Policy) -> dict[str, Any]:
    """Return a policy as nested dicts and lists of texts, numbers and truth values.

    Every answer is written, with all its arguments; what is None is left out.
    """
    plain: dict[str, Any] = {"spec": VERSION}
    tables: dict[str, Any] = {}
    for one in fields(policy):
        value = getattr(policy, one.name)
        if value is None:
            continue
        if one.name in KINDS:
            tables[one.name] = _written(value, one.name, (one.name,))
        elif one.name == "compose":
            plain["compose"] = _composition(value)
        else:
            plain[one.name] = value
    return {**plain, **tables}


def _written(value: Any, room: str, path: tuple[str, ...]) -> dict[str, Any]:
    """Write one answer, or a part of it."""
    kind = type(value).__name__
    if KINDS[room].get(kind) is not type(value):
        raise ParameterError(
            f"{'.'.join(path)}: a policy file knows no {room} {short(value)}; expected one of "
            f"{', '.join(KINDS[room])}; keep a policy with an answer of your own in Python, or "
            "name it in an experiment's file as kind = 'module:name'"
        )
    facts = (
        _ARGUMENTS[type(value)](value)
        if type(value) in _ARGUMENTS
        else {one.name: getattr(value, one.name) for one in fields(value)}
    )
    written: dict[str, Any] = {"kind": kind}
    for key, held in facts.items():
        if held is None:
            continue
        inner = room_of(type(value), key)
        place = (*path, key)
        written[key] = _plain(held, place) if inner is None else _written(held, inner, place)
    return written


def _plain(value: Any, path: tuple[str, ...]) -> Any:
    """Write an argument: a text, a number, a truth value, or lists and tables of them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(held, path) for held in value]
    if isinstance(value, Mapping):
        return {key: _plain(held, path) for key, held in value.items()}
    if not isinstance(value, str | int | float):
        raise ParameterError(
            f"{'.'.join(path)}: {short(value)} cannot be written to a policy file; expected "
            "numbers, texts or arrays; keep this policy in Python, or leave the argument out"
        )
    return value


def _composition(value: object) -> str:
    for kind, name in ((Hadamard, "hadamard"), (Sum, "sum")):
        if type(value) is kind:
            return name
    raise ParameterError(
        f"compose: {short(value)} cannot be written to a policy file; expected 'hadamard' or "
        "'sum'; keep a policy with a composition of your own in Python"
    )
