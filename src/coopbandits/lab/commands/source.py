"""Which log does a command line mean? A file of decisions, or a table with its columns named."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from coopbandits.arrays import short
from coopbandits.errors import InputError, NetworkError, ParameterError
from coopbandits.lab.edge_lists import read_edges
from coopbandits.lab.logs.columns import spans
from coopbandits.lab.logs.frame import is_table, names_in
from coopbandits.lab.logs.log import Log
from coopbandits.lab.logs.log_files import read_log, read_table
from coopbandits.lab.logs.spans import fit_scaling
from coopbandits.lab.terminal import show_table
from coopbandits.network import Network
from coopbandits.scaling import Scaling

# What a command line may say of a table's columns, as `Log.from_frame` takes it.
ROLES = ("agent", "action", "features", "reward", "propensity", "time", "chosen", "decision")
MORE = ("action_features", "categorical", "missing", "catalogue", "code_action")
_NEEDED = ("agent", "reward")


def read_source(options: argparse.Namespace) -> tuple[Log, Scaling | None]:
    """Read the log that options name; a table comes with a scaling of its columns.

    Args:
        options: `log`, a path; and, for a table, what `ROLES` and `MORE` say.
    """
    given = {name: getattr(options, name, None) for name in (*ROLES, *MORE)}
    roles = {name: value for name, value in given.items() if value is not None}
    if not is_table(options.log):
        if roles:
            flag = _flag(next(iter(roles)))
            raise ParameterError(
                f"{flag} is for tables, but {options.log} is a log of JSON Lines by its name; a "
                "table's name ends in .csv, .tsv, .csv.gz, .parquet or .pq"
            )
        return read_log(options.log), None
    missing = [_flag(name) for name in _NEEDED if name not in roles]
    if missing:
        raise ParameterError(
            f"{options.log} is a table; say which of its columns are what: {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} needed, then "
            f"{', '.join(_flag(role) for role in ROLES if role not in _NEEDED)}. "
            f"Its columns are {', '.join(names_in(options.log))}"
        )
    log = read_table(options.log, **roles)
    return log, fit_scaling(log)


def show_columns(log: Log, scaling: Scaling | None) -> None:
    """Print what contexts are made of: columns with their spans, and how each is scaled."""
    if log.columns is None:
        return
    rows, start = [], 0
    for feature, row in zip(log.columns.features, spans(log.columns), strict=True):
        scaled = "0 or 1" if feature.kind != "number" else "as it is"
        if scaling is not None and feature.kind == "number":
            shift, spread = float(scaling.shift[start]), float(scaling.spread[start])
            scaled = f"(x − {shift:.4g})/{spread:.4g}"
        start += len(feature.names)
        rows.append([*row, scaled])
    who = f"{len(log)} decisions of {log.agents} agents ({', '.join(shown_names(log))})"
    columns = ["column", "kind", "span", "belongs to", "missing", "scaled"]
    title = f"{who}; a context has {log.dim} numbers"
    show_table(title, columns, rows, left=len(columns))  # texts


def shown_names(log: Log, most: int = 12) -> list[str]:
    """Return what a log's agents are called, at most so many."""
    names = [name_of(log, v) for v in range(min(log.agents, most))]
    return names if log.agents <= most else [*names, f"and {log.agents - most} more"]


def name_of(log: Log, agent: int) -> str:
    """Return an agent's name, or its number."""
    return str(agent) if log.names is None else log.names[agent]


def read_network(path: str | Path, log: Log) -> Network:
    """Read edges between a log's agents, by their names, or their numbers where they have none.

    Args:
        path: A file of edges; or "complete", for everybody beside everybody.
        log: Whose agents.
    """
    if str(path) == "complete" and not Path(path).exists():
        pairs = [(i, j) for i in range(log.agents) for j in range(i)]
        if log.names is None:
            return Network.from_edges(pairs, agents=log.agents)
        names: Sequence[str] = log.names
        return Network.from_edges([(names[i], names[j]) for i, j in pairs], names=names)
    edges = read_edges(Path(path))
    ends = edges.names[edges.edges]
    if log.names is None:
        if ends.dtype.kind != "i":
            raise NetworkError(
                f"{path} names agents by text, such as {short(str(ends[0, 0]))}, but the log has "
                "numbers; expected the same in both"
            )
        return Network.from_edges(ends, agents=log.agents)
    named = [(str(i), str(j)) for i, j in ends.tolist()]
    return Network.from_edges(named, names=log.names)


def written(path: str | Path, text: str) -> Path:
    """Write a text file, making its folder."""
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{file} is a folder; expected the name of a file")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def _flag(role: str) -> str:
    return "--" + role.replace("_", "-")
