"""What may a policy file name? Kernels, similarities and the other answers, by their public names.

A room holds the kinds of one question. What an argument may be is read from its type: where that
is a kernel, a basis of features or another answer, the argument is a table with a kind of its own.
"""

import inspect
import typing
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from types import ModuleType
from typing import Any

from coopbandits import act, arms, features, forget, kernels, listen, policies, say, width
from coopbandits.policy import Policy
from coopbandits.scaling import Scaling
from coopbandits.similarity import (
    Alone,
    ArmNetwork,
    Clusters,
    Coregionalised,
    Evidence,
    Given,
    Known,
    Laplacian,
    Learnt,
    LearntLaplacian,
    LearntPopulation,
    LowRank,
    MeanEmbedding,
    Population,
    Same,
)

Maker = Callable[..., Any]


def _answers(module: ModuleType, method: str) -> dict[str, Maker]:
    """Return the public dataclasses that a module defines and that have a method."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and is_dataclass(value)
        and value.__module__ == module.__name__
        and value.__name__ == name
        and not name.startswith("_")
        and hasattr(value, method)
    }


_SIMILARITIES = (
    Alone,
    Same,
    Known,
    LowRank,
    Clusters,
    Laplacian,
    LearntLaplacian,
    Population,
    LearntPopulation,
    MeanEmbedding,
    Evidence,
    Coregionalised,
    ArmNetwork,
)
KINDS: dict[str, dict[str, Maker]] = {
    "kernel": {**_answers(kernels, "diagonal"), **_answers(arms, "diagonal")},
    "listen": _answers(listen, "lags"),
    "similarity": {kind.__name__: kind for kind in _SIMILARITIES},
    "width": _answers(width, "factor"),
    "act": _answers(act, "score"),
    "say": _answers(say, "speaks"),
    "features": _answers(features, "features"),
    "scaling": {"Scaling": Scaling},
    "forget": _answers(forget, "weight"),
}
# Other words for some of these, which are read and never written.
WORDS: dict[str, dict[str, Maker]] = {
    "kernel": {"On": arms.ActiveDimensions, "arms": arms.kernel},
    "similarity": {"Learned": Coregionalised},
    "policy": {
        "Policy": Policy,
        **{name: getattr(policies, name) for name in policies.__all__},
    },
}
_PROTOCOLS: dict[Any, str] = {
    kernels.Kernel: "kernel",
    listen.Listen: "listen",
    Given: "similarity",
    Learnt: "similarity",
    width.Width: "width",
    act.Act: "act",
    say.Say: "say",
    features.Basis: "features",
    **{kind: room for room, kinds in KINDS.items() for kind in kinds.values()},
}


def known_kinds(room: str) -> dict[str, Maker]:
    """Return what a table of a room may name."""
    return {**KINDS.get(room, {}), **WORDS.get(room, {})}


@cache
def parameters(maker: Maker) -> dict[str, inspect.Parameter]:
    """Return the arguments that a kind takes by name; those of `**options` that are listed, too."""
    found: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(maker).parameters.items():
        options = _listed(parameter)
        if options is not None:
            found |= {
                key: inspect.Parameter(
                    key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint
                )
                for key, hint in typing.get_type_hints(options).items()
            }
        elif parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            found[name] = parameter
    return found


def takes_any(maker: Maker) -> bool:
    """Tell whether a kind takes arguments by any name."""
    return any(
        parameter.kind is parameter.VAR_KEYWORD and _listed(parameter) is None
        for parameter in inspect.signature(maker).parameters.values()
    )


def _listed(parameter: inspect.Parameter) -> Any:
    """Return the TypedDict that lists what `**options` may be; None where none does."""
    if typing.get_origin(parameter.annotation) is not typing.Unpack:
        return None
    return typing.get_args(parameter.annotation)[0]


@cache
def hints(maker: Maker) -> dict[str, Any]:
    """Return the types of a kind's arguments, as far as they can be told."""
    target = maker.__init__ if isinstance(maker, type) else getattr(maker, "__func__", maker)  # type: ignore[misc]
    try:
        found = typing.get_type_hints(target)
    except (NameError, TypeError, AttributeError, SyntaxError):  # names for type checkers only
        return {}
    options = {key: p.annotation for key, p in parameters(maker).items() if key not in found}
    return {**found, **options}


def room_of(maker: Maker, key: str) -> str | None:
    """Return which room an argument's value is from, by its type; None for plain values."""
    hint = hints(maker).get(key)
    return next(
        (_PROTOCOLS[part] for part in (hint, *typing.get_args(hint)) if _is_room(part)), None
    )


def _is_room(part: Any) -> bool:
    return isinstance(part, type) and part in _PROTOCOLS
