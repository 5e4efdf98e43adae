"""What does the user see while it runs, and after? Bars and tables; quiet where nobody watches."""

from collections.abc import Iterator
from contextlib import contextmanager

from coopbandits.lab.experiments.experiment import Task
from coopbandits.lab.experiments.runner import Progress
from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.summary import baseline_of, summaries
from coopbandits.lab.experiments.trial import Record
from coopbandits.lab.terminal import console, show_table
from coopbandits.plain_text import visible

# So many columns the whole bar takes with names, and without them.
_WIDE, _NARROW = 120, 60


@contextmanager
def bars(title: str) -> Iterator[Progress]:
    """Show trials done, time left and the last trial's regret, if somebody watches."""
    from rich import progress  # noqa: PLC0415 (heavy)

    screen = console(stderr=True)
    named = progress.TextColumn("{task.description}", markup=False)
    bar_itself = progress.BarColumn(bar_width=20 if screen.width < _WIDE else 40)
    counted = (progress.MofNCompleteColumn(), progress.TextColumn("trials"))
    left = (progress.TimeRemainingColumn(), progress.TextColumn("left"))
    last_one = progress.TextColumn("{task.fields[last]}", markup=False)
    columns: tuple[progress.ProgressColumn, ...]
    if screen.width >= _WIDE:
        columns = (named, bar_itself, *counted, progress.TimeElapsedColumn(), *left, last_one)
    elif screen.width >= _NARROW:
        columns = (bar_itself, *counted, progress.TimeElapsedColumn(), *left)
    else:  # what is squeezed to nothing says nothing
        columns = (*counted, *left)
    with progress.Progress(*columns, console=screen, disable=not screen.is_terminal) as shown:
        bar = shown.add_task(visible(title), total=None, last="")

        def on_trial(done: int, total: int, task: Task | None, record: Record | None) -> None:
            last = ""
            if task is not None and record is not None:
                last = f"{visible(task.cell.policy)}: regret {record.regret[-1]:.4g}"
            shown.update(bar, completed=done, total=total, last=last)

        yield on_trial


def show_finals(store: Store) -> None:
    """Print a table for each problem and network."""
    found = summaries(store)
    for problem, network in dict.fromkeys((s.cell.problem, s.cell.network) for s in found):
        here = [s for s in found if (s.cell.problem, s.cell.network) == (problem, network)]
        against = baseline_of(store, here[0].cell).policy
        show_table(
            f"{problem}, {network}",
            ["policy", "regret per agent", f"minus {against}", "messages a round", "ms a decision"],
            [
                [
                    s.cell.policy,
                    str(s.final),
                    "" if s.cell.policy == against else str(s.final_difference),
                    f"{s.messages:,.0f}",
                    f"{s.milliseconds:.2g}",
                ]
                for s in here
            ],
        )
    trials = sorted({s.trials for s in found})
    console().print(
        f"mean ± 95% interval over {' to '.join(map(str, trials))} trial{'s' * (trials != [1])} of "
        f"{store.experiment.rounds} rounds, paired by seed",
        style="dim",
    )
