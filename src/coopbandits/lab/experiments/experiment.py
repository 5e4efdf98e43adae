"""What is to be run? Policies × problems × networks × trials, from a TOML file and a seed."""

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from coopbandits.arrays import IntArray, as_count, as_fixed_seed, instead, short
from coopbandits.engines import ENGINES, Algorithm
from coopbandits.errors import CoopBanditsError, ExperimentError
from coopbandits.lab.experiments.kinds import (
    Mistake,
    World,
    make_network,
    make_policy,
    make_problem,
)
from coopbandits.lab.experiments.toml_text import keys_of, line_of, to_toml
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.problems.continuum import Continuum
from coopbandits.problems.problem import Problem
from coopbandits.spec import policy_of

ROOMS = ("networks", "problems", "policies")
SETTINGS: dict[str, Any] = {
    "name": "experiment",
    "seed": 0,
    "trials": 10,
    "rounds": 200,
    "points": 100,
    "baseline": "",
    "data": "",
}
# What a table may hold beside the arguments of its kind.
EXTRAS: dict[str, dict[str, Any]] = {
    "networks": {"fresh": False},
    "problems": {"networks": [], "engine": "auto"},
    "policies": {"problems": [], "engine": "auto", "dashed": False},
}


@dataclass(frozen=True)
class Cell:
    """One policy on one problem on one network, by their names."""

    problem: str
    network: str
    policy: str


@dataclass(frozen=True)
class Task:
    """One trial of one cell."""

    cell: Cell
    trial: int


@dataclass(frozen=True)
class Experiment:
    """Policies × problems × networks × trials.

    Attributes:
        name: What its report is called.
        seed: Trial i plays with seed + i; networks that are not fresh in every trial are of `seed`.
        trials: How many.
        rounds: T.
        points: In about how many rounds curves are kept.
        baseline: The policy that the others are compared with; the first, if empty.
        data: Where files of networks are looked for first.
        networks: The tables of the file, by name; so `problems`, `policies`.
        folder: Where the file lies; one's own modules are looked for there.
    """

    name: str = "experiment"
    seed: int = 0
    trials: int = 10
    rounds: int = 200
    points: int = 100
    baseline: str = ""
    data: str = ""
    networks: Mapping[str, Any] = field(default_factory=dict)
    problems: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""

    @property
    def cells(self) -> list[Cell]:
        """All cells, problem after problem, network after network."""
        return [
            Cell(problem, network, policy)
            for problem, given in self.problems.items()
            for network in self.networks
            if network in (given.get("networks") or self.networks)
            for policy, table in self.policies.items()
            if problem in (table.get("problems") or self.problems)
        ]

    @property
    def tasks(self) -> list[Task]:
        """All trials; the first of every cell first, so that what cannot run shows early."""
        return [Task(cell, trial) for trial in range(self.trials) for cell in self.cells]

    @property
    def recorded(self) -> IntArray:
        """The rounds that curves keep: evenly spread, and evenly on a logarithmic scale."""
        even = np.linspace(1, self.rounds, min(self.points, self.rounds))
        early = np.geomspace(1, self.rounds, max(2, self.points // 4))
        return np.unique(np.round(np.concatenate([even, early])).astype(np.int64))

    def network(self, name: str, trial: int) -> Network:
        """Make a network for a trial."""
        table = dict(self.networks[name])
        fresh = table.pop("fresh", False)
        seed = self.seed + trial if fresh else self.seed
        return _drawn(json.dumps(table), name, seed, self.data or None, self.folder)

    def problem(self, name: str, network: Network, trial: int) -> Problem | Continuum:
        """Make a problem for a trial."""
        table = {k: v for k, v in self.problems[name].items() if k not in EXTRAS["problems"]}
        return make_problem(table, ("problems", name), World(network, seed=self.seed + trial))

    def policy(self, name: str, problem: Problem | Continuum) -> Policy | Algorithm:
        """Make a policy for a problem."""
        table = {k: v for k, v in self.policies[name].items() if k not in EXTRAS["policies"]}
        return make_policy(table, ("policies", name), World(problem.network, problem))

    def find_own_modules(self) -> None:
        """Let one's own modules be imported: they lie beside the experiment."""
        if self.folder and self.folder not in sys.path:
            sys.path.insert(0, self.folder)

    def engine(self, cell: Cell) -> str:
        """Return the engine that a policy names, else its problem, else "auto"."""
        given = [self.policies[cell.policy], self.problems[cell.problem]]
        return next((str(table["engine"]) for table in given if "engine" in table), "auto")

    def to_toml(self) -> str:
        """Write it as a file that gives the same experiment."""
        settings = {key: getattr(self, key) for key in SETTINGS}
        kept = {key: value for key, value in settings.items() if value != ""}
        return to_toml({**kept, **{room: getattr(self, room) for room in ROOMS}})


@lru_cache(maxsize=16)
def _drawn(table: str, name: str, seed: int, data: str | None, folder: str) -> Network:
    """Make a network once for all trials that share it; its partitions are kept with it."""
    world = World(seed=seed, data=data, folder=folder)
    return make_network(json.loads(table), ("networks", name), world)


def read_experiment(
    path: str | Path, *, overrides: Sequence[str] = (), **settings: Any
) -> Experiment:
    """Read an experiment's file.

    Args:
        path: The file.
        overrides: "key=value", such as "trials=3" or "policies.Eager.eta=0.5".
        settings: Settings that win over both, where they are not None.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(
            f"{file} cannot be read ({error}); expected a TOML file of an experiment"
        ) from error
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ExperimentError(f"{file}: {error}; a TOML file is expected") from error
    for override in overrides:
        _override(tables, override)
    tables.update({key: value for key, value in settings.items() if value is not None})
    try:
        return experiment_of(tables, folder=str(file.resolve().parent))
    except Mistake as mistake:
        raise located(mistake, str(file), text) from mistake


def experiment_of(tables: Mapping[str, Any], *, folder: str = "") -> Experiment:
    """Check tables as a file holds them, as far as they can be checked before anything is made."""
    for key in tables:
        if key not in (*ROOMS, *SETTINGS):
            raise Mistake((key,), f"unknown key {key!r}{instead(key, [*SETTINGS, *ROOMS])}")
    settings = _settings(tables)
    rooms = {room: _entries(tables, room) for room in ROOMS}
    rooms["policies"] = {
        name: _from_file(table, ("policies", name), folder)
        for name, table in rooms["policies"].items()
    }
    for room, pointed in (("problems", "networks"), ("policies", "problems")):
        for name, table in rooms[room].items():
            for other in table.get(pointed, []):
                if other not in rooms[pointed]:
                    raise Mistake(
                        (room, name, pointed),
                        f"there is no {other!r} among {pointed}"
                        f"{instead(str(other), list(rooms[pointed]))}",
                    )
    if settings["baseline"] and settings["baseline"] not in rooms["policies"]:
        raise Mistake(
            ("baseline",),
            f"baseline = {settings['baseline']!r} is no policy of this experiment"
            f"{instead(settings['baseline'], list(rooms['policies']))}",
        )
    made = Experiment(**{**settings, **rooms}, folder=folder)
    if not made.cells:
        raise Mistake(("policies",), "no policy is left to play any problem on any network")
    return made


def _settings(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Check what stands at the top of a file."""
    settings = {key: tables.get(key, default) for key, default in SETTINGS.items()}
    for key in ("name", "baseline", "data"):
        if not isinstance(settings[key], str):
            raise Mistake((key,), f"{key} = {short(settings[key])} is no text")
    try:
        settings["seed"] = as_fixed_seed(settings["seed"], "an experiment can be repeated")
        for key in ("trials", "rounds", "points"):
            settings[key] = as_count(settings[key], key)
    except CoopBanditsError as error:
        raise Mistake((str(error).partition(" ")[0],), str(error)) from error
    if settings["seed"] + settings["trials"] > 2**63:
        raise Mistake(("seed",), f"seed = {settings['seed']} is too large; at most 2^63 − trials")
    return settings


def _entries(tables: Mapping[str, Any], room: str) -> dict[str, Any]:
    entries = tables.get(room)
    if not isinstance(entries, Mapping) or not entries:
        raise Mistake(
            (room,), f"there is no table [{room}.NAME]; an experiment needs one or more {room}"
        )
    for name, table in entries.items():
        if not isinstance(table, Mapping):
            raise Mistake(
                (room, name), f"{room}.{name} = {short(table)}; expected a table with a kind"
            )
        for key, default in EXTRAS[room].items():
            if key in table and not _fits(table[key], default):
                raise Mistake(
                    (room, name, key), f"{key} = {short(table[key])}; expected {_EXPECTED[key]}"
                )
        _check_plain(table, (room, name))
        if table.get("engine", "auto") not in ("auto", *ENGINES):
            raise Mistake(
                (room, name, "engine"),
                f"engine = {table['engine']!r} is not known; expected auto, {', '.join(ENGINES)}",
            )
    return {name: dict(table) for name, table in entries.items()}


def _from_file(table: dict[str, Any], path: tuple[str, ...], folder: str) -> dict[str, Any]:
    """Put what a policy's `file` holds in its place, so that a run needs no file but its own."""
    if "file" not in table or "kind" in table:
        return table
    for key in table:
        if key != "file" and key not in EXTRAS["policies"]:
            raise Mistake(
                (*path, key),
                f"a policy that is read from a file takes no {key!r} beside it; change the file, "
                "or write the policy here",
            )
    place = (*path, "file")
    if not isinstance(table["file"], str):
        raise Mistake(place, f"file = {short(table['file'])}; expected the path of a policy file")
    file = Path(folder) / table["file"]
    try:
        read = tomllib.loads(file.read_text(encoding="utf-8"))
        policy_of(read)
    except (OSError, ValueError, RecursionError) as error:
        raise Mistake(place, f"{file}: {error}; expected a policy file") from error
    spec = {key: value for key, value in read.items() if key != "name"}
    return {**spec, **{key: value for key, value in table.items() if key != "file"}}


_EXPECTED = {
    "fresh": "true or false",
    "dashed": "true or false",
    "networks": 'a list of names, such as ["village"]',
    "problems": 'a list of names, such as ["tasks"]',
    "engine": 'a name, such as "exact"',
}


def _fits(value: Any, default: Any) -> bool:
    if isinstance(default, list):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, type(default))


def _check_plain(value: Any, path: tuple[str, ...]) -> None:
    """Refuse dates and times, which no argument is."""
    if isinstance(value, Mapping):
        for key, held in value.items():
            _check_plain(held, (*path, key))
    elif isinstance(value, list):
        for held in value:
            _check_plain(held, path)
    elif not isinstance(value, str | int | float | bool):
        raise Mistake(path, f"{path[-1]} = {value} is a date or a time; no argument is one")


def _override(tables: dict[str, Any], text: str) -> None:
    """Set one key, `a.b.c=value`; a value that is no TOML is a text."""
    key, _, value = text.partition("=")
    path = keys_of(f"{key} = 0")
    if not path or not value.strip():
        raise ExperimentError(
            f"{text!r} is no override; expected key=value, such as trials=3 or "
            'policies."My policy".eta=0.5'
        )
    place = tables
    for name in path[:-1]:
        if not isinstance(place.get(name), dict):
            inside = [key for key, held in place.items() if isinstance(held, dict)]
            raise ExperimentError(
                f"{text!r} overrides nothing: there is no table {name!r}{instead(name, inside)}"
            )
        place = place[name]
    try:
        place[path[-1]] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        place[path[-1]] = value


def located(mistake: Mistake, file: str, text: str) -> ExperimentError:
    """Say where in its file a mistake is."""
    line = line_of(text, mistake.path)
    where = f"{file}, line {line}" if line else file
    return ExperimentError(f"{where}: {'.'.join(mistake.path)}: {mistake}")
