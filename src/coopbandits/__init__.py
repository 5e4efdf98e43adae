"""Cooperative multi-agent kernel contextual bandits.

Many agents each face their own decision problem; the problems are similar, not equal. Each decides
locally at once, tells its neighbours what it saw over a network with delays, and learns from
theirs as far as their problem resembles its own (Dubey & Pentland, ICML 2020).

    import coopbandits as cb

    network = cb.Network.erdos_renyi(50, 0.3, seed=0)
    problem = cb.problems.clustered_linear(network, seed=0)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=problem.similarity, eta=0.3)
    run = cb.play(problem, policy, rounds=100, seed=0)
    run.regret.sum(axis=0).mean()

Names are loaded when they are first used, so that importing the package, and `coop --help`, take no
time.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coopbandits import (
        act,
        arms,
        errors,
        features,
        kernels,
        links,
        listen,
        problems,
        say,
        similarity,
        theory,
        width,
    )
    from coopbandits.agent import Agent, Decision
    from coopbandits.baselines import CLUB, ConsensusUCB, DisKernelUCB, HLinUCB, SupKernelUCB
    from coopbandits.decision_sets import Box, Polytope
    from coopbandits.digests import Digest
    from coopbandits.links import Links
    from coopbandits.messages import Message
    from coopbandits.network import Network
    from coopbandits.policies import (
        GPUCB,
        IGPUCB,
        OFUL,
        Centralised,
        CoopKernelTS,
        CoopKernelUCB,
        DistKernelUCB,
        EagerKernelTS,
        EagerKernelUCB,
        GoBLin,
        KernelTS,
        KernelUCB,
        LaplacianKernelUCB,
        LinTS,
        LinUCB,
        NaiveCooperation,
        Uniform,
    )
    from coopbandits.policy import Policy
    from coopbandits.run import Run, play

__version__ = "0.1.0"

__all__ = [
    "CLUB",
    "GPUCB",
    "IGPUCB",
    "OFUL",
    "Agent",
    "Box",
    "Centralised",
    "ConsensusUCB",
    "CoopKernelTS",
    "CoopKernelUCB",
    "Decision",
    "Digest",
    "DisKernelUCB",
    "DistKernelUCB",
    "EagerKernelTS",
    "EagerKernelUCB",
    "GoBLin",
    "HLinUCB",
    "KernelTS",
    "KernelUCB",
    "LaplacianKernelUCB",
    "LinTS",
    "LinUCB",
    "Links",
    "Message",
    "NaiveCooperation",
    "Network",
    "Policy",
    "Polytope",
    "Run",
    "SupKernelUCB",
    "Uniform",
    "act",
    "arms",
    "errors",
    "features",
    "kernels",
    "links",
    "listen",
    "play",
    "problems",
    "say",
    "similarity",
    "theory",
    "width",
]

_ROOMS = (
    "act",
    "arms",
    "errors",
    "features",
    "kernels",
    "links",
    "listen",
    "problems",
    "say",
    "similarity",
    "theory",
    "width",
)
_HOMES = {
    "Agent": "agent",
    "CLUB": "baselines",
    "ConsensusUCB": "baselines",
    "Box": "decision_sets",
    "Decision": "agent",
    "Digest": "digests",
    "DisKernelUCB": "baselines",
    "HLinUCB": "baselines",
    "Links": "links",
    "Message": "messages",
    "Network": "network",
    "Policy": "policy",
    "Polytope": "decision_sets",
    "Run": "run",
    "SupKernelUCB": "baselines",
    "play": "run",
}


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"coopbandits.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'coopbandits' has no attribute {name!r}")
    found: object = getattr(import_module(f"coopbandits.{_HOMES.get(name, 'policies')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
