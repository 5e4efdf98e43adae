"""What does the record of a cell depend on? On its three tables, its network and own code alone."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

from coopbandits.lab.experiments.experiment import EXTRAS, ROOMS, Cell, Experiment
from coopbandits.lab.experiments.kinds import Mistake
from coopbandits.lab.experiments.own_code import code_digest


def network_digests(experiment: Experiment) -> dict[str, str]:
    """Return the fingerprint of each network, as it is in the first trial."""
    return {name: experiment.network(name, 0).fingerprint for name in experiment.networks}


def module_digests(experiment: Experiment) -> dict[str, str]:
    """Return the hash of each own kind's code."""
    experiment.find_own_modules()
    found = {}
    for kind in sorted(set(_own_kinds(getattr(experiment, room) for room in ROOMS))):
        with suppress(Mistake):  # a text that only looks like one
            found[kind] = code_digest(kind)
    return found


def cell_digests(
    experiment: Experiment, networks: dict[str, str], modules: dict[str, str]
) -> dict[Cell, str]:
    """Hash what each cell's records depend on.

    A record is reused as long as its hash is the same: what other cells hold, how many trials there
    are, how curves are drawn and where a network's file lies is not part of it.

    Args:
        experiment: Whose cells.
        networks: `network_digests`.
        modules: `module_digests`.
    """
    return {cell: _digest(experiment, cell, networks, modules) for cell in experiment.cells}


def _digest(
    experiment: Experiment, cell: Cell, networks: dict[str, str], modules: dict[str, str]
) -> str:
    tables = [
        experiment.networks[cell.network],
        _without(experiment.problems[cell.problem], "problems"),
        _without(experiment.policies[cell.policy], "policies"),
    ]
    facts = {
        "seed": experiment.seed,
        "rounds": experiment.rounds,
        "points": experiment.points,
        "engine": experiment.engine(cell),
        "tables": tables,
        "graph": networks[cell.network],
        "code": {kind: modules[kind] for kind in _own_kinds(tables) if kind in modules},
    }
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _without(table: Mapping[str, Any], room: str) -> dict[str, Any]:
    """Leave out what says where a table is used and how it is drawn; `engine` is counted apart."""
    return {key: value for key, value in table.items() if key not in EXTRAS[room]}


def _own_kinds(values: Iterable[Any]) -> Iterable[str]:
    """Find all `module:name`, also where one word stands for a table."""
    for value in values:
        if isinstance(value, Mapping):
            yield from _own_kinds(value.values())
        elif isinstance(value, list):
            yield from _own_kinds(value)
        elif isinstance(value, str) and _is_own(value):
            yield value


def _is_own(text: str) -> bool:
    module, colon, name = text.partition(":")
    return bool(colon) and name.isidentifier() and all(p.isidentifier() for p in module.split("."))
