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
import signal
import tempfile
import threading
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

import coopbandits
from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.experiment import (
    ROOMS,
    Cell,
    Experiment,
    Task,
    experiment_of,
)
from coopbandits.lab.experiments.kinds import own
from coopbandits.lab.experiments.trial import Record

try:
    import fcntl
except ImportError:  # Windows: two runs in one folder are then the user's to avoid
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from coopbandits.frames import DataFrame

FORMAT = 1
_ARRAYS = ("rounds", "regret", "messages", "bytes", "agents", "worth", "learnt", "truth")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let Ctrl-C wait until what is within is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


@undisturbed()
def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, also where the disk is full or the power goes."""
    part = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, 0o644)
        os.replace(part, path)
    except OSError as error:
        raise ExperimentError(
            f"{path} cannot be written ({error.strerror or error}); make room, or choose another "
            "--out, and run the same command again: what was done is kept"
        ) from error
    finally:
        if part is not None:
            Path(part).unlink(missing_ok=True)


class Store:
    """The folder of one run."""

    def __init__(self, folder: str | Path, experiment: Experiment) -> None:
        self.folder = Path(folder)
        self.experiment = experiment

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
        """Make the folder of an experiment, or go on in it if it holds the same one.

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
        with _locked(store.folder):
            for stale in store.folder.rglob(".*.part"):
                stale.unlink(missing_ok=True)
            if any(store.folder.glob("trials/*.npz")):  # else nothing is lost by starting over
                before = read_store(store.folder)
                _check_same(before, experiment)
                _check_versions(store.folder, before.manifest, manifest)
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
        if not isinstance(held, dict) or held.get("format") != FORMAT:
            raise ExperimentError(
                f"{file} is damaged or of another version; this one reads format {FORMAT}"
            )
        return held

    def done(self) -> set[Task]:
        """Return the trials that are kept."""
        return {task for task in self.experiment.tasks if self._file(task).exists()}

    @undisturbed()
    def add(self, task: Task, record: Record) -> None:
        """Keep one trial."""
        packed = BytesIO()
        texts = {"engine": np.array(record.engine), "graph": np.array(record.graph)}
        np.savez_compressed(packed, **{n: getattr(record, n) for n in _ARRAYS}, **texts)  # type: ignore[arg-type]
        write_whole(self._timing(task), _json({"seconds": record.seconds}))
        write_whole(self._file(task), packed.getvalue())

    def record(self, task: Task) -> Record:
        """Read one trial."""
        file = self._file(task)
        try:
            with np.load(BytesIO(file.read_bytes()), allow_pickle=False) as held:
                facts: dict[str, Any] = {name: held[name] for name in _ARRAYS}
                facts.update({name: str(held[name]) for name in ("engine", "graph")})
            file = self._timing(task)
            seconds = float(json.loads(file.read_text())["seconds"]) if file.exists() else np.nan
        except (
            OSError,
            EOFError,
            ValueError,
            TypeError,
            KeyError,
            BadZipFile,
            zlib.error,
        ) as error:
            raise ExperimentError(
                f"{file} is damaged ({error}); remove it and run again"
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
        experiment = self.experiment
        return {
            "format": FORMAT,
            "name": experiment.name,
            "seed": experiment.seed,
            "versions": versions(),
            "machine": platform.machine(),
            "networks": {
                name: experiment.network(name, 0).fingerprint for name in experiment.networks
            },
            "own modules": _own_modules(experiment),
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


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; a lock ends with its process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("a")
    except OSError as error:
        raise ExperimentError(
            f"{folder} cannot be written ({error.strerror or error}); choose another --out"
        ) from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ExperimentError(
                    f"another run is writing to {folder}; wait for it, or choose another --out"
                ) from error
        yield


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

    experiment.find_own_modules()
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


def _check_same(before: Store, now: Experiment) -> None:
    """Refuse to mix two experiments in one folder; more trials and more policies are no other."""
    kept = {task.cell for task in before.done()}
    old = before.experiment
    changed = [
        key for key in ("seed", "rounds", "points") if getattr(old, key) != getattr(now, key)
    ]
    for cell in sorted(kept, key=str):
        for room, name in (
            ("networks", cell.network), ("problems", cell.problem), ("policies", cell.policy)
        ):  # fmt: skip
            if getattr(old, room).get(name) != getattr(now, room).get(name):
                changed.append(f"{room}.{name}")
    if now.trials < old.trials:
        changed.append("trials (they may only grow)")
    if changed:
        raise ExperimentError(
            f"{before.folder} holds another experiment: {changed[0]} differs there; choose another "
            "--out, or remove the folder"
        )


def _check_versions(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    for key in ("networks", "own modules", "versions", "machine"):
        if before.get(key) != now[key]:
            raise ExperimentError(
                f"{folder} was begun with other {key}: {before.get(key)}, now {now[key]}; results "
                "of both would be mixed. Choose another --out, or remove the folder"
            )
