"""`coop demo`: a small `run` and its `report`."""

import argparse
from typing import Any

from coopbandits.kernels import Linear
from coopbandits.lab.commands.report import main as make_page
from coopbandits.lab.commands.run import carry_out
from coopbandits.lab.experiments.experiment import experiment_of
from coopbandits.lab.terminal import show_words
from coopbandits.network import Network
from coopbandits.policies import EagerKernelUCB
from coopbandits.problems import clustered_linear
from coopbandits.run import play

_WHY = "Rewards have a constant (clicks, ratings, latencies); agents learn their own: intercept=10"
# The prior deviation τ of the constant; rewards are of size 1.
_INTERCEPT: dict[str, Any] = {"intercept": 10.0}
_COMMON = {"kernel": "Linear", "ttl": 1, "eta": 0.3, **_INTERCEPT}
DEMO = {
    "name": "Forty agents, four tasks",
    "trials": 4,
    "rounds": 60,
    "networks": {"Erdős-Rényi(40, 0.3)": {"kind": "erdos_renyi", "agents": 40, "p": 0.3}},
    "problems": {
        "linear tasks": {
            "kind": "clustered_linear", "clusters": [v % 4 for v in range(40)], "dim": 5,
            "actions": 8, "noise": 0.3,
        }
    },
    "policies": {
        "alone (LinUCB)": {"kind": "LinUCB", "eta": 0.3, **_INTERCEPT},
        "naive cooperation": {"kind": "NaiveCooperation", **_COMMON},
        "Coop-KernelUCB, Evidence": {"kind": "CoopKernelUCB", **_COMMON},
        "Eager-KernelUCB, Evidence": {"kind": "EagerKernelUCB", **_COMMON},
        "Eager-KernelUCB, K_z known": {
            "kind": "EagerKernelUCB", **_COMMON, "similarity": "truth", "dashed": True,
        },
    },
}  # fmt: skip


def main(options: argparse.Namespace) -> int:
    """Run the demo, and make its page."""
    asked = {"rounds": options.rounds, "trials": options.trials}
    changed = {name: number for name, number in asked.items() if number is not None}
    experiment = experiment_of({**DEMO, "seed": options.seed, **changed})
    show_words([_WHY])
    _compile()
    carry_out(experiment, options)
    page = {"run": options.out, "out": None, "figures": False, "debug": options.debug}
    return make_page(argparse.Namespace(**page))


def _compile() -> None:
    """Let the chains of `Evidence` be compiled and cached once, and not in every worker."""
    problem = clustered_linear(Network.path(3), dim=2)
    play(problem, EagerKernelUCB(Linear(), **_INTERCEPT), rounds=3)
