"""Where is a log kept? Files of decisions, and tables of one's own.

A log has one decision a line (JSON Lines), in any order; if its name ends in `.gz`, compressed:

    {"round": 1, "agent": 0, "contexts": [[0.1, 0.9], [0.4, 0.2]], "action": 1, "reward": 0.7,
     "propensity": 0.5}

`propensity` is the probability with which the logging policy took that action; `propensities`, in
its place, are those of all offered actions. Either may be missing, but not on some lines only.
`agent` is a number or a name, on all lines the same of both. `policy` is the fingerprint of the
policy that decided, and `schema` the version of these fields; both may be missing. Other fields are
ignored. A line is a `coopbandits.records.Logged`; docs/logs.md has the whole format.
"""

import gzip
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from coopbandits.arrays import short
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab.logs.frame import is_table, read_frame
from coopbandits.lab.logs.log import Log, as_log, check_against, twice
from coopbandits.lab.logs.naming import naming_of
from coopbandits.network import Network, as_network
from coopbandits.records import Logged

__all__ = ["append_log", "read_log", "read_table", "write_log"]


def read_log(path: str | Path, *, network: Network | None = None) -> Log:
    """Read a log; what is wrong with it is said with the line where it is.

    Args:
        path: A file of JSON Lines; one whose name ends in `.gz` is decompressed.
        network: The agents, so that a decision of an agent that is not among them is found, and
            that agents have the numbers that they have there.
    """
    decisions: list[Logged] = []
    seen: dict[tuple[int, int | str], int] = {}
    for number, line in enumerate(_lines(Path(path)), start=1):
        if not line.strip():
            continue
        try:
            one = _decision(line)
            if network is not None:
                one = one.of_agent(as_network(network).index(one.agent))
            check_against(one, decisions[0] if decisions else one, None)
            if (one.round, one.agent) in seen:
                raise InputError(f"{twice(one)} (also on line {seen[one.round, one.agent]})")
        except InputError as error:
            raise type(error)(f"{path}, line {number}: {error}") from error
        seen[one.round, one.agent] = number
        decisions.append(one)
    if not decisions:
        raise InputError(f"{path} holds no decision; expected one JSON object a line")
    if network is None:
        return Log.of(decisions)
    return Log.of(decisions, agents=len(network), names=network.names if network.is_named else None)


def read_table(path: str | Path, **roles: Any) -> Log:
    """Make a log of a CSV or Parquet file.

    Args:
        path: A file whose name ends in .csv, .tsv (or these with .gz), .parquet or .pq. In a text
            file the first line names the columns, which commas, semicolons or tabs part.
        roles: Which columns say what, as `Log.from_frame` takes them.
    """
    if not is_table(path):
        raise InputError(
            f"{path} is no table by its name; expected one that ends in .csv, .tsv, .csv.gz, "
            ".parquet or .pq (read_log reads JSON Lines)"
        )
    wanted = naming_of(**roles).columns
    return Log.from_frame(read_frame(path, wanted), **roles)


def write_log(log: Log, path: str | Path) -> None:
    """Write a log; the same log gives the same bytes, and reads back to the bit."""
    as_log(log)
    lines = [
        _line(one.of_agent(log.names[int(one.agent)]) if log.names is not None else one)
        for one in log.decisions
    ]
    Path(path).write_bytes(_packed("".join(lines), Path(path)))


def append_log(decisions: Iterable[Logged], path: str | Path) -> None:
    """Add decisions to the end of a file, which is made if it is not there.

    Each is checked on its own; `read_log` says what does not fit together.

    Args:
        decisions: Such as `Logged.of(agent, decision, contexts, reward)` makes.
        path: A file of JSON Lines; one whose name ends in `.gz` is compressed.
    """
    listed = tuple(decisions)
    if not all(isinstance(one, Logged) for one in listed):
        raise ParameterError(f"expected decisions, each a Logged, got {short(listed)}")
    with Path(path).open("ab") as file:
        file.write(_packed("".join(map(_line, listed)), Path(path)))


def _line(one: Logged) -> str:
    return json.dumps(one.to_dict()) + "\n"


def _packed(text: str, path: Path) -> bytes:
    return gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode()


def _lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().split("\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(
            f"{path} cannot be read as a log ({error}); expected a text file of JSON Lines, "
            "compressed by gzip if its name ends in .gz"
        ) from error


def _decision(line: str) -> Logged:
    """Read one line."""
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is no JSON ({error}): {short(line.strip())}") from error
    return Logged.from_dict(fields)
