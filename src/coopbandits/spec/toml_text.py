"""How are plain values written as TOML?"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

_COLUMNS = 88


def to_toml(tables: Mapping[str, Any]) -> str:
    """Write nested tables, each under a head of its own, and long lists line by line."""
    return "\n".join(_lines(tables, ())) + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    for key, value in table.items():
        if not isinstance(value, Mapping):
            yield f"{written_key(key)} = {_broken(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield ""
            yield f"[{'.'.join(map(written_key, (*path, key)))}]"
            yield from _lines(value, (*path, key))


def _broken(value: Any) -> str:
    """Write a value; a list that is too long for a line has one of its entries in each."""
    text = written_value(value)
    if not isinstance(value, list | tuple) or (
        len(text) <= _COLUMNS and not any(isinstance(held, list | tuple) for held in value)
    ):
        return text
    if value and not any(isinstance(held, list | tuple | Mapping) for held in value):
        return f"[\n{_filled(value)}\n]"
    return "[\n" + "".join(f"  {written_value(held)},\n" for held in value) + "]"


def _filled(values: list[Any] | tuple[Any, ...]) -> str:
    lines = [" "]
    for text in map(written_value, values):
        if len(lines[-1]) + len(text) + 2 > _COLUMNS and lines[-1].strip():
            lines.append(" ")
        lines[-1] += f" {text},"
    return "\n".join(lines)


def written_key(key: str) -> str:
    """Write a key, quoted where it must be."""
    bare = key and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in key)
    return key if bare else _quoted(key)


def written_value(value: Any) -> str:
    """Write a value in one line."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{written_key(key)} = {written_value(v)}" for key, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written_value, value))}]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)


def _quoted(text: str) -> str:
    """Quote a text; JSON's escapes are TOML's, which also wants DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
