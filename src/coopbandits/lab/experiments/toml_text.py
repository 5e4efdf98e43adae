"""Where in a TOML file does a key stand, and how is a table written as one?"""

import json
import math
import tomllib
from collections.abc import Mapping
from typing import Any


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """Return the line in which a path of keys stands, or the nearest table that leads to it."""
    table: tuple[str, ...] = ()
    best, line = 0, None
    for number, row in enumerate(text.splitlines(), start=1):
        stripped = row.strip()
        if stripped.startswith("["):
            table = here = keys_of(stripped) or table
        elif "=" in stripped and not stripped.startswith("#"):
            here = (*table, *keys_of(f"{stripped.partition('=')[0]} = 0"))
        else:
            continue
        if len(here) > best and path[: len(here)] == here:
            best, line = len(here), number
    return line


def keys_of(piece: str) -> tuple[str, ...]:
    """Read the keys of a table's head or of an assignment."""
    try:
        found: Any = tomllib.loads(piece)
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while isinstance(found, list | dict) and found:
        if isinstance(found, list):
            found = found[0]
            continue
        key, found = next(iter(found.items()))
        keys.append(key)
    return tuple(keys)


def to_toml(table: Mapping[str, Any]) -> str:
    """Write a table: plain values first, then tables of tables under heads of their own."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_written(value)}" for key, value in plain.items()]
    for room, entries in table.items():
        if not isinstance(entries, Mapping):
            continue
        for name, entry in entries.items():
            lines += ["", f"[{_key(room)}.{_key(name)}]"]
            lines += [f"{_key(key)} = {_written(value)}" for key, value in entry.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    bare = key and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in key)
    return key if bare else _quoted(key)


def _quoted(text: str) -> str:
    """Quote a text; JSON's escapes are TOML's, which also wants DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_written(held)}" for key, held in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)
