"""`coop reproduce`: the paper's figure."""

import argparse

from coopbandits.errors import ExperimentError, InputError
from coopbandits.lab.commands.run import carry_out
from coopbandits.lab.experiments.reproduce import paper_experiment


def main(options: argparse.Namespace) -> int:
    """Run the paper's figure, or a part of it."""
    experiment = paper_experiment(
        profile=options.profile,
        networks=options.networks,
        setups=options.setups,
        algorithms=options.algorithms,
        agents=options.agents,
        rounds=options.rounds,
        trials=options.trials,
        seed=options.seed,
        data=options.data,
    )
    try:
        carry_out(experiment, options)
    except InputError as error:
        if "as-skitter" not in str(error):
            raise
        raise ExperimentError(
            f"{error}. Or leave it out: --networks er,facebook,twitch; as-caida stands in for it "
            "only if you ask: --networks er,facebook,twitch,caida"
        ) from error
    return 0
