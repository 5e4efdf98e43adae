"""Where is a run kept? One folder that can be copied anywhere; nothing in it is half-written.

experiment.toml          what was run; `coop run` takes it
manifest.json            seed, versions, hashes of networks, own modules and cells
trials/*.npz             one file for each trial that is done, which says whose it is
curves.parquet, .csv     regret, messages, bytes at the recorded rounds of every trial
finals.parquet, .csv     the last of them
worth.parquet, .csv      learnt K_z against the truth, where there are any
networks/*.json          edges, cliques, centres
timings/*.json, .csv     seconds; the only files that differ from run to run
figures/                 SVG and PNG, and the data behind each
"""

import json
import platform
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import coopbandits
from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.dependencies import (
    cell_digests,
    module_digests,
    network_digests,
)
from coopbandits.lab.experiments.experiment import (
    ROOMS,
    Cell,
    Experiment,
    Task,
    experiment_of,
)
from coopbandits.lab.experiments.record_file import Identity, packed, unpacked
from coopbandits.lab.experiments.trial import Record
from coopbandits.lab.experiments.whole_files import locked, undisturbed, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from coopbandits.frames import DataFrame

FORMAT = 2
# Records of format 1 do not say whose they are; they are read, and not gone on with.
_READ = (1, FORMAT)


class Store:
    """The folder of one run.

    Attributes:
        changed: The trials that were kept and are played again, as what they depend on has changed.
    """

    def __init__(self, folder: str | Path, experiment: Experiment) -> None:
        self.folder = Path(folder)
        self.experiment = experiment
        self.changed: tuple[Task, ...] = ()

    def __repr__(self) -> str:
        done, expected = len(self.done()), len(self.experiment.tasks)
        return f"Store({str(self.folder)!r}: {self.experiment.name}, {done} of {expected} trials)"

    def to_frame(self, table: str = "finals") -> "DataFrame":
        """Return what is kept as a pandas dataframe, with what was run in each row.

        Args:
            table: "finals", one of each trial a row; "curves", a recorded round of each trial;
                "worth", learnt K_z against the truth; or "timings".
        """
        from coopbandits.lab.experiments.tables import frame_of  # noqa: PLC0415 (reads stores)

        return frame_of(self, table)

    def plot(self) -> "Figure":
        """Draw regret of every policy, a panel for each problem and network, as a pyplot figure."""
        from matplotlib import pyplot  # noqa: PLC0415 (heavy)

        from coopbandits.lab.experiments.figures import regret_figure  # noqa: PLC0415 (of stores)
        from coopbandits.lab.experiments.summary import summaries  # noqa: PLC0415 (of stores)

        return regret_figure(self, summaries(self), pyplot.figure)

    @classmethod
    @contextmanager
    def begun(cls, folder: str | Path, experiment: Experiment) -> "Iterator[Store]":
        """Make the folder of an experiment, or go on in it with what has not changed since.

        Nobody else can write there meanwhile.
        """
        store = cls(folder, experiment)
        held = {file.name for file in store.folder.iterdir()} if store.folder.is_dir() else set()
        ours = {"experiment.toml", "manifest.json", "trials", "timings", ".lock"}
        if not held & ours and any(not name.endswith(".part") for name in held):
            raise ExperimentError(
                f"{store.folder} is not empty and holds no experiment; choose another --out"
            )
        manifest = store._manifest()
        store.digests = manifest["cells"]
        with locked(store.folder):
            for stale in store.folder.rglob(".*.part"):
                stale.unlink(missing_ok=True)
            if any(store.folder.glob("trials/*.npz")):  # else nothing is lost by starting over
                before = read_store(store.folder)
                _check_same(before, experiment, manifest)
                store.changed = store._changed_since(before)
                for task in store.changed:
                    store._file(task).unlink()
            write_whole(store.folder / "manifest.json", _json(manifest))
            write_whole(store.folder / "experiment.toml", experiment.to_toml().encode())
            yield store

    @property
    def manifest(self) -> dict[str, Any]:
        """Return the manifest as it is kept."""
        file = self.folder / "manifest.json"
        try:
            held = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ExperimentError(
                f"{self.folder} holds no run ({error}); expected a folder that `coop run` made"
            ) from error
        if not isinstance(held, dict) or held.get("format") not in _READ:
            raise ExperimentError(
                f"{file} is damaged or of another version; this one reads formats "
                f"{' and '.join(map(str, _READ))}"
            )
        return held

    def done(self) -> set[Task]:
        """Return the trials that are kept."""
        return {task for task in self.experiment.tasks if self._file(task).exists()}

    @undisturbed()
    def add(self, task: Task, record: Record) -> None:
        """Keep one trial; one that holds NaN is refused."""
        content = packed(record, self.identity(task))
        write_whole(self._timing(task), _json({"seconds": record.seconds}))
        write_whole(self._file(task), content)

    def record(self, task: Task) -> Record:
        """Read one trial; what is damaged, holds NaN or belongs to another trial is refused."""
        facts, found = self.read(task)
        expected = self.identity(task)
        if found is not None and found != expected:
            told = (
                f"another experiment: {found}, played with other tables, another network or other "
                f"code than {self.folder / 'manifest.json'} has"
                if found.is_trial_of(expected)
                else f"another trial: it holds {found}, expected {expected}"
            )
            raise ExperimentError(f"{self._file(task)} belongs to {told}; remove it and run again")
        if not np.array_equal(facts["rounds"], self.experiment.recorded):
            raise ExperimentError(
                f"{self._file(task)} belongs to another experiment: its curves are of other rounds "
                f"than those of {self.folder / 'experiment.toml'}; remove it and run again"
            )
        return Record(**facts, seconds=self._seconds(task))

    def read(self, task: Task) -> tuple[dict[str, Any], Identity | None]:
        """Read what the file of a trial holds, and whose it says that it is."""
        file = self._file(task)
        try:
            facts, found = unpacked(file.read_bytes())
        except (OSError, ValueError) as error:
            told = str(error) if isinstance(error, ValueError) else f"is damaged ({error})"
            raise ExperimentError(f"{file} {told}; remove it and run again") from error
        if found is None and self.manifest["format"] >= FORMAT:
            raise ExperimentError(f"{file} does not say whose it is; remove it and run again")
        return facts, found

    def identity(self, task: Task) -> Identity:
        """Return what the record of a trial must say of itself."""
        cell = task.cell
        return Identity(
            problem=cell.problem,
            network=cell.network,
            policy=cell.policy,
            trial=task.trial,
            seed=self.experiment.seed + task.trial,
            digest=self.digests.get(_cell(cell), ""),
        )

    @cached_property
    def digests(self) -> dict[str, str]:
        """What the records of each cell depend on, as the manifest has it."""
        held = self.manifest.get("cells")
        return held if isinstance(held, dict) else {}

    def _changed_since(self, before: "Store") -> tuple[Task, ...]:
        """Return the kept trials that depend on something else now; all others must be good."""
        found, reused = [], not before.done()
        for task in self.experiment.tasks:
            if not self._file(task).exists():
                continue
            held, expected = self.read(task)[1], self.identity(task)
            was = before.digests.get(_cell(task.cell), held.digest if held else "")
            if held != expected and held == replace(expected, digest=was):
                found.append(task)
            else:
                self.record(task)
                reused = True
        if not reused:
            raise ExperimentError(
                f"{self.folder} holds another experiment: "
                f"{_difference(before.experiment, self.experiment)}; choose another --out, or "
                "remove the folder"
            )
        return tuple(found)

    def _seconds(self, task: Task) -> float:
        file = self._timing(task)
        if not file.exists():
            return float("nan")
        try:
            seconds = float(json.loads(file.read_text())["seconds"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ExperimentError(
                f"{file} is damaged ({error}); remove it and run again"
            ) from error
        if not 0 <= seconds < float("inf"):
            raise ExperimentError(f"{file} holds {seconds} seconds; remove it and run again")
        return seconds

    def records(self, cell: Cell) -> list[Record]:
        """Read the trials of one cell that are kept, in order."""
        return list(self.trials(cell).values())

    def trials(self, cell: Cell) -> dict[int, Record]:
        """Read the trials of one cell that are kept, by their numbers."""
        tasks = [Task(cell, trial) for trial in range(self.experiment.trials)]
        return {task.trial: self.record(task) for task in tasks if self._file(task).exists()}

    def network_file(self, name: str) -> Path:
        """Return where the facts of a network are kept."""
        return self.folder / "networks" / f"{_slug(name)}.json"

    def _file(self, task: Task) -> Path:
        return self.folder / "trials" / f"{_trial(task)}.npz"

    def _timing(self, task: Task) -> Path:
        return self.folder / "timings" / f"{_trial(task)}.json"

    def _manifest(self) -> dict[str, Any]:
        experiment = self.experiment
        networks, modules = network_digests(experiment), module_digests(experiment)
        digests = cell_digests(experiment, networks, modules)
        return {
            "format": FORMAT,
            "name": experiment.name,
            "seed": experiment.seed,
            "versions": versions(),
            "machine": platform.machine(),
            "networks": networks,
            "own modules": modules,
            "cells": {_cell(cell): digest for cell, digest in digests.items()},
        }


def versions() -> dict[str, str]:
    """Return what must be the same for results to be the same."""
    import scipy  # noqa: PLC0415

    return {
        "coopbandits": coopbandits.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def read_store(folder: str | Path) -> Store:
    """Open the folder of a run."""
    file = Path(folder) / "experiment.toml"
    try:
        store = Store(folder, experiment_of(tomllib.loads(file.read_text(encoding="utf-8"))))
    except (OSError, ValueError) as error:  # also an experiment that is none
        raise ExperimentError(
            f"{folder} holds no run ({file.name}: {error}); expected a folder that `coop run` made"
        ) from error
    store.manifest  # noqa: B018 (a run without one is none)
    return store


def _trial(task: Task) -> str:
    return f"{_cell(task.cell)}-{task.trial:04d}"


def _cell(cell: Cell) -> str:
    return _slug(cell.problem, cell.network, cell.policy)


def _slug(*names: str) -> str:
    """A file's name for some names: readable, and different for different ones."""
    plain = ["".join(c if c.isascii() and c.isalnum() else "-" for c in name) for name in names]
    mark = sha256("\0".join(names).encode()).hexdigest()[:6]
    return f"{'_'.join(plain)[:80]}-{mark}"


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _difference(old: Experiment, now: Experiment) -> str:
    """Say what makes two experiments two."""
    for room in ROOMS:
        for name, table in getattr(old, room).items():
            if getattr(now, room).get(name) != table:
                return f"{room}.{name} differs there"
    return "its networks or own modules differ there"


def _check_same(before: Store, now: Experiment, manifest: dict[str, Any]) -> None:
    """Refuse to mix two experiments, or results of two versions, in one folder."""
    old, held = before.experiment, before.manifest
    for key in ("seed", "rounds", "points"):
        if getattr(old, key) != getattr(now, key):
            raise ExperimentError(
                f"{before.folder} holds another experiment: {key} differs there; choose another "
                "--out, or remove the folder"
            )
    if now.trials < old.trials:
        raise ExperimentError(
            f"{before.folder} holds {old.trials} trials of each cell, and {now.trials} are asked "
            "for; they may only grow. Choose another --out, or remove the folder"
        )
    for key in ("format", "versions", "machine"):
        if held.get(key) != manifest[key]:
            raise ExperimentError(
                f"{before.folder} was begun with other {key}: {held.get(key)}, now "
                f"{manifest[key]}; results of both would be mixed. Choose another --out, or remove "
                "the folder"
            )
