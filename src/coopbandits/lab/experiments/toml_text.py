"""Where in a TOML file does a key stand, and how is a table written as one?"""

import tomllib
from collections.abc import Mapping
from typing import Any

from coopbandits.spec.toml_text import written_key, written_value


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
    lines = _assignments(plain)
    for room, entries in table.items():
        if not isinstance(entries, Mapping):
            continue
        for name, entry in entries.items():
            lines += ["", f"[{written_key(room)}.{written_key(name)}]"]
            lines += _assignments(entry)
    return "\n".join(lines) + "\n"


def _assignments(table: Mapping[str, Any]) -> list[str]:
    return [f"{written_key(key)} = {written_value(value)}" for key, value in table.items()]
