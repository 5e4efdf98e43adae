"""How is an experiment run? Trial after trial, each kept as it is done; then tables and figures."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from coopbandits.arrays import as_count
from coopbandits.lab.experiments.cluster import on_dask
from coopbandits.lab.experiments.experiment import Cell, Experiment, Task
from coopbandits.lab.experiments.figures import write_figures
from coopbandits.lab.experiments.kinds import HALF_DIAMETER
from coopbandits.lab.experiments.processes import as_they_come
from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.tables import write_tables
from coopbandits.lab.experiments.trial import Record, foreseen_task, run_task
from coopbandits.lab.experiments.whole_files import write_whole
from coopbandits.lab.networks import half_diameter
from coopbandits.network import Network
from coopbandits.progress import LONG, said

Progress = Callable[[int, int, Task | None, Record | None], None]


def run_experiment(
    experiment: Experiment,
    out: str | Path,
    *,
    workers: int | None = None,
    dask: str | None = None,
    on_trial: Progress | None = None,
    on_word: Callable[[str], None] | None = None,
) -> Store:
    """Run an experiment, or what is left of it, and keep it in a folder.

    The same experiment gives the same files, on one worker or many, in one go or in several.

    Args:
        experiment: What to run.
        out: The folder.
        workers: How many processes; as many as there are cores, if not given.
        dask: The address of a Dask scheduler, to run there instead.
        on_trial: Told how many trials of how many are done, and the last one.
        on_word: Told, before the first trial, which kept trials are played again, as what they
            depend on has changed since, and that it will take more than a minute, if it will.
    """
    if workers is not None:
        as_count(workers, "workers")
    check(experiment)
    outlook = _foreseen(experiment, Store(out, experiment).done())
    with Store.begun(out, experiment) as store:
        done = store.done()
        pending = [task for task in experiment.tasks if task not in done]
        if on_word is not None:
            for word in [*_changed(store.changed), *_long(pending, outlook, workers, dask)]:
                on_word(word)
        total = len(done) + len(pending)
        if on_trial is not None:
            on_trial(len(done), total, None, None)
        for count, (task, record) in enumerate(
            _played(experiment, pending, workers, dask), start=len(done) + 1
        ):
            store.add(task, record)
            if on_trial is not None:
                on_trial(count, total, task, record)
        finish(store)
    return store


def _changed(tasks: Sequence[Task]) -> Iterator[str]:
    """Say which trials are played again."""
    for cell, count in Counter(task.cell for task in tasks).items():
        yield (
            f"{cell.policy} on {cell.problem}, {cell.network} has changed since: {count} "
            f"trial{'s' * (count != 1)} played again"
        )


def _foreseen(experiment: Experiment, kept: set[Task]) -> dict[Cell, tuple[float, str]]:
    """Return what a trial of each cell takes that is not kept whole; refuse what cannot be played.

    Nothing is begun before.
    """
    todo = dict.fromkeys(task.cell for task in experiment.tasks if task not in kept)
    return {cell: foreseen_task(experiment, Task(cell, 0)) for cell in todo}


def _long(
    tasks: Sequence[Task],
    outlook: dict[Cell, tuple[float, str]],
    workers: int | None,
    dask: str | None,
) -> Iterator[str]:
    """Say that it takes more than a minute, if it does, what takes longest, and what is faster."""
    counts = Counter(task.cell for task in tasks)
    each = {cell: count * outlook.get(cell, (0.0, ""))[0] for cell, count in counts.items()}
    several = min(workers or os.cpu_count() or 1, max(1, len(tasks)))
    seconds = sum(each.values()) / (1 if dask else several)
    if seconds < LONG:
        return
    longest = max(each, key=lambda cell: each[cell])
    where = "on one core" if dask or several == 1 else f"on {several} cores"
    advice = outlook[longest][1].removeprefix("; ")
    yield (
        f"this will take about {said(seconds)} {where}, most of it {longest.policy} on "
        f"{longest.problem}, {longest.network}{': ' * bool(advice)}{advice}"
    )


def check(experiment: Experiment) -> None:
    """Make everything of the first trial once, so that mistakes show before anything is run."""
    import matplotlib  # noqa: F401, PLC0415 (what is missing should show now, not at the end)
    import pyarrow  # noqa: F401, PLC0415

    experiment.find_own_modules()
    for cell in experiment.cells:
        network = experiment.network(cell.network, 0)
        experiment.policy(cell.policy, experiment.problem(cell.problem, network, 0))


def finish(store: Store) -> None:
    """Write the tables, networks and figures of what is done."""
    write_tables(store)
    for name in store.experiment.networks:
        ttl = _ttl(store.experiment, name)
        facts = network_facts(store.experiment.network(name, 0), ttl)
        text = json.dumps(facts, ensure_ascii=False) + "\n"
        write_whole(store.network_file(name), text.encode())
    write_figures(store)


def network_facts(network: Network, ttl: int) -> dict[str, object]:
    """Return what a drawing of a network needs: edges, cliques and centres of G_γ."""
    cover, centres = network.clique_cover(ttl), network.centres(ttl)
    return {
        "agents": len(network),
        "names": network.names if network.is_named else None,
        "ttl": ttl,
        "diameter": network.diameter if network.diameter != float("inf") else None,
        "edges": network.edges,
        "cliques": cover.labels.tolist(),
        "clique_cover_bound": int(cover.lower_bound),
        "centres": centres.of.tolist(),
        "graph": network.fingerprint,
    }


def _ttl(experiment: Experiment, network: str) -> int:
    """Return the largest γ of the policies."""
    given = [table.get("ttl", 1) for table in experiment.policies.values()]
    drawn = experiment.network(network, 0)
    numbers = [half_diameter(drawn) if ttl == HALF_DIAMETER else ttl for ttl in given]
    return max((ttl for ttl in numbers if isinstance(ttl, int)), default=1)


def _played(
    experiment: Experiment, tasks: list[Task], workers: int | None, dask: str | None
) -> Iterator[tuple[Task, Record]]:
    work = partial(run_task, experiment)
    if not tasks:
        return iter(())
    if dask is not None:
        return on_dask(dask, work, tasks)
    return as_they_come(work, tasks, workers=workers)
