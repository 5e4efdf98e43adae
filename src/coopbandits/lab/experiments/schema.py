"""What does an editor need to know of an experiment's file? A JSON Schema, made from the kinds."""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from coopbandits.engines import ENGINES
from coopbandits.lab.experiments.experiment import EXTRAS, ROOMS, SETTINGS
from coopbandits.lab.experiments.kinds import HALF_DIAMETER, TRUTH, kinds, parameters, room_of
from coopbandits.spec import VERSION
from coopbandits.spec.kinds import hints

Schema = dict[str, Any]

_ROOM_OF = {"networks": "network", "problems": "problem", "policies": "policy"}
_OWN = {"type": "string", "pattern": "^[^:]+:[^:]+$"}
_TEXTS = {
    "name": "What the report is called.",
    "seed": "Trial i plays with seed + i; networks that are not fresh in every trial are of seed.",
    "trials": "How many trials of each cell.",
    "rounds": "T.",
    "points": "In about how many rounds curves are kept.",
    "baseline": "The policy that the others are compared with; the first, if not given.",
    "data": "Where files of networks are looked for first.",
    "networks": "Networks by name: [networks.NAME].",
    "problems": "Problems by name: [problems.NAME].",
    "policies": "Policies by name: [policies.NAME].",
    "fresh": "Draw the network anew in every trial.",
    "engine": "Who computes the decisions.",
    "dashed": "Draw the curve dashed, as for an oracle.",
}


def experiment_schema() -> Schema:
    """Return the JSON Schema of an experiment's file."""
    settings = {key: _setting(key, default) for key, default in SETTINGS.items()}
    rooms = {
        room: {
            "type": "object",
            "description": _TEXTS[room],
            "minProperties": 1,
            "additionalProperties": {"$ref": f"#/$defs/{_ROOM_OF[room]}"},
        }
        for room in ROOMS
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An experiment of coopbandits",
        "type": "object",
        "properties": {**settings, **rooms},
        "required": list(ROOMS),
        "additionalProperties": False,
        "$defs": {room: _room(room) for room in kinds()},
    }


def _setting(key: str, default: Any) -> Schema:
    if isinstance(default, str):
        return {"type": "string", "description": _TEXTS[key]}
    lowest = 0 if key == "seed" else 1
    return {"type": "integer", "minimum": lowest, "default": default, "description": _TEXTS[key]}


def _room(room: str) -> Schema:
    """Describe what a room may hold: one of its kinds, or one's own with any keys."""
    extras = next((EXTRAS[name] for name, of in _ROOM_OF.items() if of == room), {})
    tables = [_kind(name, maker, extras) for name, maker in kinds()[room].items()]
    own = {"type": "object", "properties": {"kind": _OWN}, "required": ["kind"]}
    if room == "policy":
        tables += [_policy_file(extras, of_file=True), _policy_file(extras, of_file=False)]
    if room in _ROOM_OF.values():
        return {"oneOf": [*tables, own]}
    return {"oneOf": [{"enum": list(kinds()[room])}, _OWN, *tables, own]}


def _kind(name: str, maker: Callable[..., Any], extras: dict[str, Any]) -> Schema:
    types = hints(maker)
    known = {
        key: parameter
        for key, parameter in parameters(maker).items()
        if key not in ("network", "problem")
    }
    properties = {
        key: _argument(key, types.get(key))
        if room_of(maker, key) == key
        else {"$ref": f"#/$defs/{room_of(maker, key)}"}
        for key in known
    }
    required = [
        key
        for key, parameter in known.items()
        if parameter.default is inspect.Parameter.empty and key not in ("data", "seed")
    ]
    return {
        "type": "object",
        "description": (inspect.getdoc(maker) or "").partition("\n")[0],
        "properties": {
            "kind": {"const": name},
            **properties,
            **{key: _extra(key, default) for key, default in extras.items()},
        },
        "required": ["kind", *required],
        "additionalProperties": False,
    }


def _policy_file(extras: dict[str, Any], *, of_file: bool) -> Schema:
    """Describe a policy that is read from a file, or that is written as one."""
    beside = {key: _extra(key, default) for key, default in extras.items()}
    if of_file:
        file = {"type": "string", "description": "The path of a policy file."}
        return {
            "type": "object",
            "properties": {"file": file, **beside},
            "required": ["file"],
            "additionalProperties": False,
        }
    spec = {"const": VERSION, "description": "A policy as a policy file has it."}
    return {"type": "object", "properties": {"spec": spec, **beside}, "required": ["spec"]}


def _extra(key: str, default: Any) -> Schema:
    if key == "engine":
        return {"enum": ["auto", *ENGINES], "description": _TEXTS[key]}
    if isinstance(default, bool):
        return {"type": "boolean", "default": default, "description": _TEXTS[key]}
    return {"type": "array", "items": {"type": "string"}, "description": f"Only with these {key}."}


def _argument(key: str, hint: Any) -> Schema:
    """Describe one argument by its name and type; anything, where its type says nothing."""
    choices: list[Schema] = []
    if key in kinds():
        choices.append({"$ref": f"#/$defs/{key}"})
    if key == "ttl":
        choices.append({"const": HALF_DIAMETER})
    if key in ("kernel", "similarity", "norm", "noise"):
        choices.append({"const": TRUTH})
    plain = _plain(hint)
    choices += [{"type": name} for name in plain]
    if not plain and key not in kinds():
        return {}
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _plain(hint: Any) -> list[str]:
    names = {float: "number", int: "integer", str: "string", bool: "boolean"}
    found = []
    for part in typing.get_args(hint) or (hint,):
        origin = typing.get_origin(part) or part
        if part in names:
            found.append(names[part])
        elif isinstance(origin, type) and issubclass(origin, Sequence | np.ndarray):
            found.append("array")
        elif isinstance(origin, type) and issubclass(origin, Mapping):
            found.append("object")
        elif origin is Iterable:
            found.append("array")
    if "number" in found and "integer" in found:
        found.remove("integer")
    return list(dict.fromkeys(found))
