"""`coop replay`: what would other policies have earned on a log?"""

import argparse
from typing import Any

import coopbandits.policies
from coopbandits.errors import ParameterError
from coopbandits.lab.commands.source import read_network, read_source, show_columns
from coopbandits.lab.logs.configured import Fits, configured, known_policy
from coopbandits.lab.logs.replay import Replay, replay_policy
from coopbandits.lab.terminal import show_json, show_table, show_words
from coopbandits.similarity import Evidence


def main(options: argparse.Namespace) -> int:
    """Replay a log with some policies, their kernel, ridge and width fitted to it.

    Args:
        options: `log`, a path, and for a table its columns (`source.py`); `network`, a file of one
            edge a line, "complete", or None for agents that hear nobody; `policies`, names such as
            "EagerKernelUCB"; `kernel`, "linear", "rbf" or "matern", or None for the likeliest;
            `ttl`; `seed`; `json`, whether to print JSON; and `uniform`, if it is there, whether all
            actions were as likely in a log that does not say.
    """
    log, scaling = read_source(options)
    network = None if options.network is None else read_network(options.network, log)
    if not options.policies:
        known = ", ".join(coopbandits.policies.__all__)
        raise ParameterError(f"no policy is given; expected some of {known}")
    for name in options.policies:
        known_policy(name)
    fits = Fits(log, options.kernel, scaling)
    found, shown = [], []
    for name in options.policies:
        policy, centre = configured(name, fits, options.ttl)
        shown.append(f"{name}, Evidence" if isinstance(policy.similarity, Evidence) else name)
        found.append(
            replay_policy(
                log,
                policy,
                network=network,
                uniform=bool(getattr(options, "uniform", False)),
                centre=centre,
                seed=options.seed,
            )
        )
    if options.json:
        show_json([_facts(name, r) for name, r in zip(options.policies, found, strict=True)])
        return 0
    show_columns(log, scaling)
    show_table(
        f"mean reward a decision while learning; the log's own is {found[0].logged:.4g}",
        ["policy", "mean", "95% interval", "rounds", "decisions used"],
        [_row(name, r) for name, r in zip(shown, found, strict=True)],
    )
    words = ["kernel, ridge and width were fitted to the same log (coop fit)"]
    if network is None:
        words.append(
            "no --network is given, so nobody hears anybody: each agent learned from its own "
            "decisions only, under every policy"
        )
    show_words(words)
    return 0


def _row(name: str, found: Replay) -> list[str]:
    low, high = found.interval
    return [
        name,
        f"{found.mean:.4g}",
        f"{low:.4g} … {high:.4g}",
        str(len(found.rewards)),
        str(found.used),
    ]


def _facts(name: str, found: Replay) -> dict[str, Any]:
    return {
        "policy": name,
        "mean": found.mean,
        "interval": found.interval,
        "level": found.level,
        "rounds": len(found.rewards),
        "accepted": found.accepted,
        "used": found.used,
        "floor": found.floor,
        "logged": found.logged,
    }
