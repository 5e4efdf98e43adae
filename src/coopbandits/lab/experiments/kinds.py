"""What may an experiment name? Networks, problems, policies and their parts, made from tables.

A table's `kind` is a public name of coopbandits, or `module:name` for one's own; its other keys are
the arguments. Where one word says it all, the word stands for the table: kernel = "Linear". Some
words are answered by what the agents face: ttl = "half diameter", and kernel, similarity, norm or
noise = "truth". A policy's table with `spec` is a policy file (`coopbandits.spec`) as it stands.
"""

import importlib
import inspect
import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any

import coopbandits as cb
from coopbandits import baselines
from coopbandits.arrays import instead, short
from coopbandits.engines import Algorithm
from coopbandits.errors import CoopBanditsError, ExperimentError
from coopbandits.lab.networks import half_diameter, load_network
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.problems.continuum import Continuum
from coopbandits.problems.problem import Problem
from coopbandits.spec import Misplaced, policy_of
from coopbandits.spec.kinds import (
    KINDS,
    known_kinds,
    parameters as spec_parameters,
    room_of as spec_room_of,
    takes_any,
)
from coopbandits.spec.reading import culprit

Table = Mapping[str, Any]
Path = tuple[str, ...]

HALF_DIAMETER, TRUTH = "half diameter", "truth"


class Mistake(ExperimentError):
    """A mistake at one place of an experiment.

    Attributes:
        path: The keys that lead to it.
    """

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path

    def __reduce__(self) -> tuple[type, tuple[Path, str]]:
        return type(self), (self.path, str(self))


@dataclass(frozen=True)
class World:
    """What a cell of an experiment has so far, for words that it answers."""

    network: Network | None = None
    problem: Any = None
    seed: int = 0
    data: str | None = None
    folder: str = ""


@cache
def kinds() -> dict[str, dict[str, Callable[..., Any]]]:
    """Return what each room of an experiment may name."""
    generators = ("erdos_renyi", "path", "star", "grid", "complete", "barabasi_albert")
    return {
        "network": {
            **{name: getattr(Network, name) for name in generators},
            "edges": Network.from_edges,
            "file": load_network,
        },
        "problem": {
            **_public(
                cb.problems,
                "clustered_linear",
                "kernel",
                "fully_cooperative",
                "arms",
                "continuum",
            ),
            "changing": _by_change(cb.problems.changing),
        },
        "policy": {
            **known_kinds("policy"),
            **{name: getattr(baselines, name) for name in baselines.__all__},
        },
        **{room: known_kinds(room) for room in KINDS},
        "noise": _public(cb.problems, "Gaussian", "Uniform", "Bernoulli"),
        "decision_set": _public(cb, "Box", "Polytope"),
    }


def room_of(maker: Callable[..., Any], key: str) -> str:
    """Return which room an argument's value is from, if it is from any: by its type, or name."""
    return spec_room_of(maker, key) or key


def _public(room: Any, *names: str) -> dict[str, Callable[..., Any]]:
    return {name: getattr(room, name) for name in names}


def _by_change(maker: Callable[..., Any]) -> Callable[..., Any]:
    """Call a maker's argument `kind` by the name `change`: a table's `kind` names the maker."""

    @wraps(maker)
    def made(*, change: str, **others: Any) -> Any:
        return maker(kind=change, **others)

    signature = inspect.signature(maker)
    named = [
        parameter.replace(name="change") if parameter.name == "kind" else parameter
        for parameter in signature.parameters.values()
    ]
    made.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    made.__annotations__ = {**maker.__annotations__, "change": maker.__annotations__["kind"]}
    return made


def make_network(table: Table, path: Path, world: World) -> Network:
    """Make the network that a table describes; `fresh` has been taken out of it."""
    made = _made("network", table, path, world)
    if not isinstance(made, Network):
        raise Mistake(path, f"{table['kind']} made {short(made)}; expected a coopbandits.Network")
    return made


def make_problem(table: Table, path: Path, world: World) -> Problem | Continuum:
    """Make the problem that a table describes, on the world's network."""
    made = _made("problem", table, path, world)
    if not isinstance(made, Problem | Continuum):
        raise Mistake(path, f"{table['kind']} made {short(made)}; expected a problem")
    return made


def make_policy(table: Table, path: Path, world: World) -> Policy | Algorithm:
    """Make the policy that a table describes, for the world's problem; named after its table."""
    if "spec" in table:
        try:
            return policy_of(table).named(path[-1])
        except Misplaced as mistake:
            raise Mistake((*path, *mistake.path), mistake.told) from mistake
    made = _made("policy", table, path, world)
    if not isinstance(made, Policy | Algorithm):
        raise Mistake(path, f"{table['kind']} made {short(made)}; expected a coopbandits.Policy")
    return made.named(path[-1])


def _made(room: str, table: Any, path: Path, world: World) -> Any:
    """Make one value of a room from its table, or from the one word that stands for it."""
    if isinstance(table, str):
        table = {"kind": table}
    if not isinstance(table, Mapping):
        raise Mistake(path, f"{short(table)} is no {room}; expected a table with a kind, or a name")
    if "kind" not in table:
        raise Mistake(path, f"the {room} has no kind; expected one of {_listed(room)}")
    kind = table["kind"]
    maker = _maker(room, kind, (*path, "kind"))
    known = parameters(maker)
    arguments = {key: value for key, value in _supplied(room, world).items() if key in known}
    arguments |= {"name": ""} if maker is Policy else {}  # until it is named after its table
    for key, value in table.items():
        if key == "kind":
            continue
        if key not in known and not takes_any(maker):
            raise Mistake((*path, key), f"{kind} knows no {key!r}{instead(key, list(known))}")
        if room_of(maker, key) != key and isinstance(value, Mapping | str):
            arguments[key] = _made(room_of(maker, key), value, (*path, key), world)
        else:
            arguments[key] = _value(key, value, (*path, key), world)
    missing = [
        name
        for name, parameter in known.items()
        if parameter.default is inspect.Parameter.empty and name not in arguments
    ]
    if missing:
        raise Mistake(path, f"{kind} needs {missing[0]} = …, which is not given")
    try:
        return maker(**arguments)
    except CoopBanditsError as error:
        if isinstance(error, Mistake):
            raise
        raise Mistake(culprit(table, path, str(error)), str(error)) from error
    except (Exception, SystemExit) as error:
        told = f"{kind} fails: {type(error).__name__}: {error}" if ":" in kind else str(error)
        raise Mistake(culprit(table, path, str(error)), told) from error


def _supplied(room: str, world: World) -> dict[str, Any]:
    """Return the arguments that a table need not hold."""
    if room == "network":
        return {"seed": world.seed, "data": world.data}
    if room in ("problem", "policy"):
        return {"network": world.network, "problem": world.problem, "seed": world.seed}
    return {}


def _value(key: str, value: Any, path: Path, world: World) -> Any:
    """Read one argument: a part with a kind, a word that the world answers, or itself."""
    if value == HALF_DIAMETER and key == "ttl":
        if world.network is None:
            raise Mistake(path, f"ttl = {HALF_DIAMETER!r} needs a network")
        return half_diameter(world.network)
    if value == TRUTH and key in ("kernel", "similarity", "norm", "noise"):
        found = getattr(world.problem, key, None)
        found = getattr(found, "scale", found) if key == "noise" else found
        if found is None:
            raise Mistake(path, f"the problem does not know its true {key}; give it here")
        return found
    if path[0] == "networks" and key == "name" and world.folder:
        beside = pathlib.Path(world.folder) / str(value)  # a file of edges beside the experiment
        return beside if beside.is_file() else value
    if key in kinds() and isinstance(value, Mapping | str):
        return _made(key, value, path, world)
    return value


def _maker(room: str, kind: Any, path: Path) -> Callable[..., Any]:
    if not isinstance(kind, str):
        raise Mistake(path, f"kind = {short(kind)} is no name; expected one of {_listed(room)}")
    if kind in kinds()[room]:
        return kinds()[room][kind]
    if ":" in kind:
        return own(kind, path)
    raise Mistake(
        path,
        f"there is no {room} {kind!r}{instead(kind, list(kinds()[room]))}; one's own is written "
        "'module:name'",
    )


def own(kind: str, path: Path) -> Callable[..., Any]:
    """Import what `module:name` names."""
    module_name, _, name = kind.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise Mistake(
            path, f"{kind!r}: {error}; put {module_name}.py beside the experiment, or install it"
        ) from error
    except (Exception, SystemExit) as error:
        raise Mistake(path, f"{kind!r} fails: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not callable(found):
        raise Mistake(path, f"{kind!r}: {module_name} has no function or class {name!r}")
    try:
        inspect.signature(found)
    except ValueError as error:
        raise Mistake(path, f"{kind!r} does not say which arguments it takes") from error
    made: Callable[..., Any] = found
    return made


@cache
def parameters(maker: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments that a kind takes; those that a table cannot hold left out."""
    kept = dict(spec_parameters(maker))
    if maker is load_network:
        del kept["on_bytes"]
    if maker is Policy:
        kept["name"] = kept["name"].replace(default="")
    return kept


def _listed(room: str) -> str:
    return ", ".join(kinds()[room])
