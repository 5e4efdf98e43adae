"""`coop run`: any policies × problems × networks × trials."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from coopbandits.lab.experiments.experiment import Experiment, located, read_experiment
from coopbandits.lab.experiments.kinds import Mistake
from coopbandits.lab.experiments.runner import check, run_experiment
from coopbandits.lab.experiments.shown import bars, show_finals
from coopbandits.lab.terminal import show_words


def main(options: argparse.Namespace) -> int:
    """Run an experiment's file."""
    carry_out(checked(options.experiment, options.overrides, data=options.data), options)
    return 0


def checked(file: str | Path, overrides: Sequence[str], *, data: str | None = None) -> Experiment:
    """Read an experiment, and make all of it once; a mistake is named with its line."""
    experiment = read_experiment(file, overrides=overrides, data=data)
    try:
        check(experiment)
    except Mistake as mistake:
        text = Path(file).read_text(encoding="utf-8")
        raise located(mistake, str(file), text) from mistake
    return experiment


def carry_out(experiment: Experiment, options: argparse.Namespace) -> None:
    """Run an experiment with a command's options, and show what came of it."""
    with bars(experiment.name) as on_trial:
        store = run_experiment(
            experiment,
            options.out,
            workers=options.workers,
            dask=options.dask,
            on_trial=on_trial,
            on_word=lambda word: show_words([word]),
        )
    show_finals(store)
    show_words([f"kept in {options.out}; `coop report {options.out}` makes a page of it"])
