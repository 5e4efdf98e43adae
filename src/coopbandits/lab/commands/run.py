"""`coop run`: any policies × problems × networks × trials."""

import argparse
from pathlib import Path

from coopbandits.lab.experiment import Experiment, located, read_experiment
from coopbandits.lab.kinds import Mistake
from coopbandits.lab.runner import run_experiment
from coopbandits.lab.terminal import bars, console, show_finals


def main(options: argparse.Namespace) -> int:
    """Run an experiment's file."""
    experiment = read_experiment(options.experiment, overrides=options.overrides, data=options.data)
    try:
        carry_out(experiment, options)
    except Mistake as mistake:
        text = Path(options.experiment).read_text(encoding="utf-8")
        raise located(mistake, options.experiment, text) from mistake
    return 0


def carry_out(experiment: Experiment, options: argparse.Namespace) -> None:
    """Run an experiment with a command's options, and show what came of it."""
    with bars(experiment.name) as on_trial:
        store = run_experiment(
            experiment, options.out, workers=options.workers, dask=options.dask, on_trial=on_trial
        )
    show_finals(store)
    console().print(f"kept in {options.out}; `coop report {options.out}` makes a page of it")
