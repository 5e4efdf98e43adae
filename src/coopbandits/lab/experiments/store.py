"""Where is a run kept? One folder that can be copied anywhere; nothing in it is half-written.

experiment.toml          what was run; `coop run` takes it
manifest.json            seed, versions, the networks' and own modules' hashes
trials/*.npz             one file for each trial that is done
curves.parquet, .csv     regret, messages, bytes at the recorded rounds of every trial
finals.parquet, .csv     the last of them
worth.parquet, .csv      learnt K_z against the truth, where there are any
networks/*.json          edges, cliques, centres
timings/*.json, .csv     seconds; the only files that differ from run to run
figures/                 SVG and PNG, and the data behind each
"""

import json
import os
import platform
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

import coopbandits
from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.experiment import (
    ROOMS,
    SETTINGS,
    Cell,
    Experiment,
    Task,
    experiment_of,
)
from coopbandits.lab.experiments.kinds import own
from coopbandits.lab.experiments.trial import Record

FORMAT = 1
_ARRAYS = ("rounds", "regret", "messages", "bytes", "agents", "worth", "learnt", "truth")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, also where the disk is full or the power goes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


class Store:
    """The folder of one run."""

    def __init__(self, folder: str | Path, experiment: Experiment) -> None:
        self.folder = Path(folder)
        self.experiment = experiment

    @classmethod
    def begin(cls, folder: str | Path, experiment: Experiment) -> "Store":
        """Make the folder of an experiment, or go on in it if it holds the same one."""
        store = cls(folder, experiment)
        file = store.folder / "experiment.toml"
        manifest = _json(store._manifest())
        if file.exists():
            _check_same(store.folder, read_store(store.folder).experiment, experiment)
            before = (store.folder / "manifest.json").read_bytes()
            _check_versions(store.folder, json.loads(before), json.loads(manifest))
        elif store.folder.exists() and any(store.folder.iterdir()):
            raise ExperimentError(
                f"{store.folder} is not empty and holds no experiment; choose another --out"
            )
        for stale in store.folder.rglob(".*.part"):
            stale.unlink(missing_ok=True)
        write_whole(store.folder / "manifest.json", manifest)
        write_whole(file, experiment.to_toml().encode())
        return store

    def done(self) -> set[Task]:
        """Return the trials that are kept."""
        return {task for task in self.experiment.tasks if self._file(task).exists()}

    def add(self, task: Task, record: Record) -> None:
        """Keep one trial."""
        packed = BytesIO()
        texts = {"engine": np.array(record.engine), "graph": np.array(record.graph)}
        np.savez_compressed(packed, **{n: getattr(record, n) for n in _ARRAYS}, **texts)  # type: ignore[arg-type]
        write_whole(self._timing(task), _json({"seconds": record.seconds}))
        write_whole(self._file(task), packed.getvalue())

    def record(self, task: Task) -> Record:
        """Read one trial."""
        try:
            packed = BytesIO(self._file(task).read_bytes())
            with np.load(packed, allow_pickle=False) as held:
                facts: dict[str, Any] = {name: held[name] for name in _ARRAYS}
                facts.update({name: str(held[name]) for name in ("engine", "graph")})
            timing = self._timing(task)
            seconds = json.loads(timing.read_text())["seconds"] if timing.exists() else np.nan
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise ExperimentError(
                f"{self._file(task)} is damaged ({error}); remove it and run again"
            ) from error
        return Record(**facts, seconds=seconds)

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
        import scipy  # noqa: PLC0415

        experiment = self.experiment
        return {
            "format": FORMAT,
            "name": experiment.name,
            "seed": experiment.seed,
            "versions": {
                "coopbandits": coopbandits.__version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
            "machine": platform.machine(),
            "networks": {
                name: experiment.network(name, 0).fingerprint for name in experiment.networks
            },
            "own modules": _own_modules(experiment),
        }


def read_store(folder: str | Path) -> Store:
    """Open the folder of a run."""
    import tomllib  # noqa: PLC0415

    file = Path(folder) / "experiment.toml"
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        manifest = json.loads((Path(folder) / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f"{folder} holds no run ({error}); expected a folder that `coop run --out` made"
        ) from error
    if manifest.get("format") != FORMAT:
        raise ExperimentError(
            f"{folder} is of format {manifest.get('format')}; this version reads format {FORMAT}"
        )
    return Store(folder, experiment_of(tables))


def _trial(task: Task) -> str:
    cell = task.cell
    return f"{_slug(cell.problem, cell.network, cell.policy)}-{task.trial:04d}"


def _slug(*names: str) -> str:
    """A file's name for some names: readable, and different for different ones."""
    plain = ["".join(c if c.isascii() and c.isalnum() else "-" for c in name) for name in names]
    mark = sha256("\0".join(names).encode()).hexdigest()[:6]
    return f"{'_'.join(plain)[:80]}-{mark}"


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _own_modules(experiment: Experiment) -> dict[str, str]:
    """Hash the files of one's own modules: results are of these and of no other."""
    import inspect  # noqa: PLC0415
    import sys  # noqa: PLC0415

    if experiment.folder and experiment.folder not in sys.path:
        sys.path.insert(0, experiment.folder)
    found = {}
    for kind in sorted(set(_own_kinds(getattr(experiment, room) for room in ROOMS))):
        source = inspect.getsourcefile(inspect.unwrap(own(kind, ("kind",))))
        found[kind] = sha256(Path(source).read_bytes()).hexdigest() if source else "?"
    return found


def _own_kinds(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        if isinstance(value, dict):
            kind = value.get("kind", "")
            if isinstance(kind, str) and ":" in kind:
                yield kind
            yield from _own_kinds(value.values())


def _check_same(folder: Path, before: Experiment, now: Experiment) -> None:
    """Refuse to mix two experiments in one folder; more trials are no other experiment."""
    for key in (*SETTINGS, *ROOMS):
        old, new = getattr(before, key), getattr(now, key)
        if key not in ("trials", "name", "baseline", "data") and old != new:
            raise ExperimentError(
                f"{folder} holds another experiment: {key} differs there; choose another --out, or "
                "remove the folder"
            )


def _check_versions(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    for key in ("networks", "own modules", "versions", "machine"):
        if before.get(key) != now[key]:
            raise ExperimentError(
                f"{folder} was begun with other {key}: {before.get(key)}, now {now[key]}; results "
                "of both would be mixed. Choose another --out, or remove the folder"
            )
