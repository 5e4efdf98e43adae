"""Read a file of settings: TOML text into typed values, with every mistake named by its place."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.inspect import DictType, StructType, UnionType, type_info

from coopbandits.arrays import short
from coopbandits.errors import ParameterError

T = TypeVar("T", bound=msgspec.Struct)

_ENVIRONMENT = "COOP_"


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file into plain tables."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"cannot read {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} is no TOML: {error}") from error
    except RecursionError as error:
        raise ParameterError(
            f"{path}: its tables or lists are nested too deeply; settings have two levels"
        ) from error


def converted(kind: type[T], table: Mapping[str, Any], place: str) -> T:
    """Turn a table into a value of a type; unknown keys and wrong values are refused.

    Args:
        kind: A Struct, whose fields may be Structs.
        table: What was read. A text may stand for a number or a flag, as in an environment.
        place: Where it stands, for errors.
    """
    info = type_info(kind)
    assert isinstance(info, StructType)
    _refuse_unknown(info, table, place, ())
    try:
        return msgspec.convert(table, kind, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        key = where.strip("`.") or "the file"
        raise ParameterError(f"{place}: {key}: {what[0].lower()}{what[1:]}") from error


def keys_of(kind: type[msgspec.Struct], before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all plain values of a type, tables within tables included."""
    info = type_info(kind)
    assert isinstance(info, StructType)
    found: list[tuple[str, ...]] = []
    for field in info.fields:
        path = (*before, field.encode_name)
        if isinstance(field.type, StructType):
            found += keys_of(field.type.cls, path)
        else:
            found.append(path)
    return found


def with_environment(
    kind: type[msgspec.Struct], table: dict[str, Any], environment: Mapping[str, str]
) -> None:
    """Put what variables `COOP_…` say in the place of what a file says: COOP_HTTP_PORT=8081."""
    names = {_ENVIRONMENT + "_".join(path).upper(): path for path in keys_of(kind)}
    for name, value in environment.items():
        if not name.startswith(_ENVIRONMENT):
            continue
        if name not in names:
            raise ParameterError(
                f"the environment sets {name}, which is no setting of a node{_instead(name, names)}"
            )
        _put(table, names[name], value)


def with_assignments(
    kind: type[msgspec.Struct], table: dict[str, Any], assignments: Iterable[str]
) -> None:
    """Put what `--set KEY=VALUE` says in the place of what a file says."""
    names = {".".join(path): path for path in keys_of(kind)}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or key not in names:
            raise ParameterError(
                f"--set {text}: expected KEY=VALUE with the key of a setting{_instead(key, names)}"
            )
        _put(table, names[key], value)


def _put(table: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    for key in path[:-1]:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            return  # it is refused when the table is converted
        table = inner
    table[path[-1]] = value


def _refuse_unknown(
    kind: StructType, table: Mapping[str, Any], place: str, before: tuple[str, ...]
) -> None:
    fields = {field.encode_name: field.type for field in kind.fields}
    for key, value in table.items():
        path = (*before, key)
        if key not in fields:
            raise ParameterError(
                f"{place}: {_shown(path)} is no setting{_instead(key, fields)}; the settings here "
                f"are {', '.join(fields)}"
            )
        inner = fields[key]
        for form in inner.types if isinstance(inner, UnionType) else (inner,):
            if isinstance(form, StructType) and isinstance(value, Mapping):
                _refuse_unknown(form, value, place, path)
            elif isinstance(form, DictType) and isinstance(value, Mapping):
                _refuse_unknown_in_each(form.value_type, value, place, path)


def _refuse_unknown_in_each(
    kind: object, tables: Mapping[str, Any], place: str, before: tuple[str, ...]
) -> None:
    """Look into tables that stand under names of the user's own."""
    assert isinstance(kind, StructType)
    for name, table in tables.items():
        path = (*before, name)
        if not isinstance(table, Mapping):
            raise ParameterError(
                f"{place}: {_shown(path)}: expected a table with {', '.join(_names(kind))}, got "
                f"{short(table)}"
            )
        _refuse_unknown(kind, table, place, path)


def _names(kind: StructType) -> list[str]:
    return [field.encode_name for field in kind.fields]


def _shown(path: tuple[str, ...]) -> str:
    """Return the path of a key; one that no terminal should be sent as it is, escaped."""
    return ".".join(key if key.isprintable() else repr(key) for key in path)


def _instead(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, [*known], 1)
    return f"; did you mean {close[0]}?" if close else ""


def durable_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(f".{path.name}.partial")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
