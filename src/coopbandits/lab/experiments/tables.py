"""What can be opened elsewhere? The records of a run as Parquet and CSV."""

import csv
from collections.abc import Iterator
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.arrays import as_choice
from coopbandits.frames import frame
from coopbandits.lab.experiments.experiment import Task
from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.trial import Record
from coopbandits.lab.experiments.whole_files import write_whole
from coopbandits.plain_text import visible_cell

if TYPE_CHECKING:
    from coopbandits.frames import DataFrame

Columns = dict[str, Any]


def write_tables(store: Store) -> None:
    """Write curves, finals and worth of all trials that are kept, and what they took."""
    records = _records(store)
    for name in ("curves", "finals", "worth"):
        table = _table(store, name, records)
        if table:
            write_whole(store.folder / f"{name}.parquet", parquet(table))
            write_whole(store.folder / f"{name}.csv", csv_text(table).encode())
    timings = csv_text(_table(store, "timings", records)).encode()
    write_whole(store.folder / "timings.csv", timings)


def frame_of(store: Store, table: str) -> "DataFrame":
    """Return one of the tables of a run as a pandas dataframe.

    Args:
        store: The run; it need not be finished.
        table: "curves", "finals", "worth" or "timings".
    """
    name = as_choice(table, "table", tuple(_ROWS))
    return frame(_table(store, name, _records(store)))


def _records(store: Store) -> list[tuple[Task, Record]]:
    """Read all trials that are kept, in order."""
    return [(task, store.record(task)) for task in sorted(store.done(), key=_order(store))]


def _table(store: Store, name: str, records: list[tuple[Task, Record]]) -> Columns:
    return _joined(
        _ROWS[name](store, task, record)
        for task, record in records
        if name != "worth" or len(record.worth)
    )


def _order(store: Store) -> Any:
    cells = {cell: place for place, cell in enumerate(store.experiment.cells)}
    return lambda task: (cells[task.cell], task.trial)


def _keys(store: Store, task: Task, count: int) -> Columns:
    return {
        "problem": [task.cell.problem] * count,
        "network": [task.cell.network] * count,
        "policy": [task.cell.policy] * count,
        "trial": np.full(count, task.trial),
        "seed": np.full(count, store.experiment.seed + task.trial),
    }


def _curves(store: Store, task: Task, record: Record) -> Columns:
    return {
        **_keys(store, task, len(record.rounds)),
        "round": record.rounds,
        "regret": record.regret,
        "messages": record.messages,
        "bytes": record.bytes,
    }


def _finals(store: Store, task: Task, record: Record) -> Columns:
    quarter, median, three = np.quantile(record.agents, [0.25, 0.5, 0.75])
    return {
        **_keys(store, task, 1),
        "agents": np.array([len(record.agents)]),
        "rounds": record.rounds[-1:],
        "regret": record.regret[-1:],
        "regret_quarter": np.array([quarter]),
        "regret_median": np.array([median]),
        "regret_three_quarters": np.array([three]),
        "messages": record.messages[-1:],
        "bytes": record.bytes[-1:],
        "engine": [record.engine],
        "graph": [record.graph],
    }


def _worth(store: Store, task: Task, record: Record) -> Columns:
    names = ("alike", "strangers", "error", "correlation")
    return {
        **_keys(store, task, len(record.worth)),
        "round": record.worth[:, 0].astype(np.int64),
        **{name: record.worth[:, column] for column, name in enumerate(names, start=1)},
    }


def _timings(store: Store, task: Task, record: Record) -> Columns:
    decisions = record.rounds[-1] * len(record.agents)
    return {
        **_keys(store, task, 1),
        "seconds": np.array([record.seconds]),
        "milliseconds_per_decision": np.array([1e3 * record.seconds / decisions]),
    }


_ROWS = {"curves": _curves, "finals": _finals, "worth": _worth, "timings": _timings}


def _joined(tables: Iterator[Columns]) -> Columns:
    joined: Columns = {}
    for table in tables:
        for name, column in table.items():
            joined.setdefault(name, []).extend(np.asarray(column).tolist())
    return joined


def parquet(table: Columns) -> bytes:
    """Write columns as Parquet."""
    import pyarrow  # noqa: PLC0415 (heavy)
    import pyarrow.parquet  # noqa: PLC0415

    packed = BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(table), packed, compression="zstd")
    return packed.getvalue()


def csv_text(table: Columns) -> str:
    """Write columns as CSV; numbers in full, so that reading gives them back.

    A name that begins as a formula does gets a quotation mark before it, and control characters
    are spelt out; Parquet has names as they are.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(
        [visible_cell(value) if isinstance(value, str) else value for value in row]
        for row in zip(*table.values(), strict=True)
    )
    return text.getvalue()
