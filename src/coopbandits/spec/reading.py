"""How is a policy made from plain values? Table by table; a mistake is named with its place."""

import inspect
import tomllib
from collections.abc import Mapping
from typing import Any

from coopbandits.arrays import instead, is_whole, short
from coopbandits.errors import CoopBanditsError, ParameterError
from coopbandits.policy import Policy
from coopbandits.spec.kinds import known_kinds, parameters, room_of
from coopbandits.spec.writing import VERSION

Path = tuple[str, ...]


class Misplaced(ParameterError):
    """A mistake at one place of a policy file.

    Attributes:
        path: The keys that lead to it.
        told: What is wrong there.
    """

    def __init__(self, path: Path, told: str) -> None:
        super().__init__(f"{'.'.join(path)}: {told}" if path else told)
        self.path, self.told = path, told

    def __reduce__(self) -> tuple[type, tuple[Path, str]]:
        return type(self), (self.path, self.told)


def policy_of(spec: Mapping[str, Any] | str) -> Policy:
    """Make the policy that a spec describes, given as tables or as TOML text."""
    tables = _tables(spec)
    version: Any = tables.get("spec")
    if not is_whole(version) or version < 1:
        given = "is missing" if version is None else f"= {short(version)} is no version"
        raise Misplaced(("spec",), f"spec {given}; expected spec = {VERSION} in a policy file")
    if version > VERSION:
        raise Misplaced(
            ("spec",),
            f"the policy file is of version {version}, and this coopbandits reads {VERSION}; "
            "install a newer one",
        )
    answers = {key: value for key, value in tables.items() if key not in ("spec", "name")}
    name = tables.get("name")
    if name is not None and not isinstance(name, str):
        raise Misplaced(("name",), f"name must be a text, got {short(name)}")
    made = _made("policy", {"kind": "Policy", **answers}, ())
    assert isinstance(made, Policy)
    return made if name is None else made.named(name)


def _tables(spec: object) -> Mapping[str, Any]:
    if isinstance(spec, Mapping):
        return spec
    if not isinstance(spec, str):
        raise ParameterError(
            f"{short(spec)} is no spec of a policy; expected what policy.spec() returns, or the "
            "text of a policy file (from_spec opens no file: hand over its text)"
        )
    try:
        return tomllib.loads(spec)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = " (from_spec opens no file: hand over its text)" if spec.endswith(".toml") else ""
        raise ParameterError(
            f"the spec is no TOML: {error}; expected the text of a policy file{hint}"
        ) from error


def _made(room: str, table: Any, path: Path) -> Any:
    """Make one value of a room from its table, or from the one word that stands for it."""
    known = known_kinds(room)
    if isinstance(table, str):
        table = {"kind": table}
    if not isinstance(table, Mapping):
        raise Misplaced(path, f"{short(table)} is no {room}; expected a table with a kind")
    if "kind" not in table:
        raise Misplaced(path, f"the {room} has no kind; expected one of {', '.join(known)}")
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in known:
        wanted = instead(kind, list(known)) if isinstance(kind, str) else "; expected a name"
        raise Misplaced((*path, "kind"), f"there is no {room} {short(kind)}{wanted}")
    maker = known[kind]
    taken = {key: one for key, one in parameters(maker).items() if key != "name"}
    arguments: dict[str, Any] = {"name": "policy"} if maker is Policy else {}
    for key, value in table.items():
        if key == "kind":
            continue
        if key not in taken:
            raise Misplaced(
                (*path, str(key)), f"{kind} knows no {key!r}{instead(str(key), list(taken))}"
            )
        inner = room_of(maker, key)
        arguments[key] = value if inner is None else _made(inner, value, (*path, key))
    for key, parameter in taken.items():
        if parameter.default is inspect.Parameter.empty and key not in arguments:
            raise Misplaced((*path, key), f"{kind} needs {key} = …, which is not given")
    try:
        return maker(**arguments)
    except CoopBanditsError as error:
        raise Misplaced(culprit(table, path, str(error)), str(error)) from error


def culprit(table: Mapping[str, Any], path: Path, message: str) -> Path:
    """Point at the key that a message names, else at the table."""
    words = set(message.replace("=", " ").replace(":", " ").replace(",", " ").split())
    named = [key for key in table if key in words and key != "kind"]
    return (*path, named[0]) if named else path
