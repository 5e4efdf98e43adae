"""`coop reproduce`: the paper's figure."""

import argparse
import sys

from coopbandits.errors import ExperimentError
from coopbandits.lab.commands.run import carry_out
from coopbandits.lab.experiments.experiment import Experiment
from coopbandits.lab.experiments.reproduce import how_to_get, missing_networks, paper_experiment
from coopbandits.lab.terminal import show_words


def main(options: argparse.Namespace) -> int:
    """Run the paper's figure, or a part of it; networks that cannot be had are left out by name."""
    experiment = _asked(options, options.networks)
    missing = missing_networks(list(experiment.networks), data=options.data)
    if not missing:
        carry_out(experiment, options)
        return 0
    names, ways = ", ".join(missing), "\n".join(how_to_get(missing, data=options.data))
    reason = f"{names}: the files are not here and could not be fetched"
    left = [name for name in experiment.networks if name not in missing]
    if options.networks is not None:
        raise ExperimentError(f"{reason}.\n{ways}")
    sys.stderr.write(f"Left out: {reason}.\n{ways}\n")
    carry_out(_asked(options, left), options)
    show_words([f"without {names}, whose files are not here: see above how to get them"])
    return 0


def _asked(options: argparse.Namespace, networks: list[str] | None) -> Experiment:
    return paper_experiment(
        profile=options.profile,
        networks=networks,
        setups=options.setups,
        algorithms=options.algorithms,
        agents=options.agents,
        rounds=options.rounds,
        trials=options.trials,
        seed=options.seed,
        data=options.data,
    )
