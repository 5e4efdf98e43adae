"""Cooperative multi-agent kernel contextual bandits.

Many agents each face their own decision problem; the problems are similar, not equal. Each decides
locally at once, tells its neighbours what it saw over a network with delays, and learns from
theirs as far as their problem resembles its own (Dubey & Pentland, ICML 2020).

    import coopbandits as cb

    network = cb.Network.erdos_renyi(50, 0.3, seed=0)
    problem = cb.problems.clustered_linear(network, seed=0)
    policy = cb.EagerKernelUCB(
        cb.kernels.Linear(), similarity=problem.similarity, eta=0.3, intercept=10
    )  # rewards have a constant: clicks, ratings, latencies
    run = cb.play(problem, policy, rounds=100, seed=0)
    run.regret.sum(axis=0).mean()

Names are loaded when they are first used, so that importing the package, and `coop --help`, take no
time. `Log` is the lab's, and loaded from there.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what `_HOMES` loads, for type checkers
    from coopbandits import (
        act as act,
        arms as arms,
        errors as errors,
        features as features,
        forget as forget,
        kernels as kernels,
        listen as listen,
        problems as problems,
        records as records,
        say as say,
        similarity as similarity,
        testing as testing,
        theory as theory,
        width as width,
    )
    from coopbandits.agent import Agent as Agent, Decision as Decision
    from coopbandits.baselines import (
        CLUB as CLUB,
        SCLUB as SCLUB,
        ConsensusUCB as ConsensusUCB,
        DiscountedLinUCB as DiscountedLinUCB,
        DisKernelUCB as DisKernelUCB,
        DynUCB as DynUCB,
        EbmTS as EbmTS,
        EbmUCB as EbmUCB,
        HLinUCB as HLinUCB,
        SlidingWindowLinUCB as SlidingWindowLinUCB,
        SupKernelUCB as SupKernelUCB,
    )
    from coopbandits.comparison import Comparison as Comparison, compare as compare
    from coopbandits.decision_sets import Box as Box, Polytope as Polytope
    from coopbandits.lab.logs.log import Log as Log
    from coopbandits.network import Network as Network
    from coopbandits.policies import (
        GPUCB as GPUCB,
        IGPUCB as IGPUCB,
        OFUL as OFUL,
        Centralised as Centralised,
        CoopKernelTS as CoopKernelTS,
        CoopKernelUCB as CoopKernelUCB,
        DistKernelUCB as DistKernelUCB,
        EagerKernelTS as EagerKernelTS,
        EagerKernelUCB as EagerKernelUCB,
        GoBLin as GoBLin,
        KernelTS as KernelTS,
        KernelUCB as KernelUCB,
        LaplacianKernelTS as LaplacianKernelTS,
        LaplacianKernelUCB as LaplacianKernelUCB,
        LinTS as LinTS,
        LinUCB as LinUCB,
        NaiveCooperation as NaiveCooperation,
        Uniform as Uniform,
    )
    from coopbandits.policy import Policy as Policy
    from coopbandits.protocol import (
        Digest as Digest,
        Links as Links,
        Message as Message,
        links as links,
    )
    from coopbandits.run import Run as Run, play as play
    from coopbandits.scaling import Scaling as Scaling

__version__ = "0.2.0"

# Where each public name is; a module stands for itself.
_HOMES = {
    "act": "act",
    "arms": "arms",
    "errors": "errors",
    "features": "features",
    "forget": "forget",
    "kernels": "kernels",
    "listen": "listen",
    "problems": "problems",
    "records": "records",
    "say": "say",
    "similarity": "similarity",
    "testing": "testing",
    "theory": "theory",
    "width": "width",
    "Agent": "agent",
    "Decision": "agent",
    "CLUB": "baselines",
    "SCLUB": "baselines",
    "ConsensusUCB": "baselines",
    "DisKernelUCB": "baselines",
    "DiscountedLinUCB": "baselines",
    "DynUCB": "baselines",
    "EbmTS": "baselines",
    "EbmUCB": "baselines",
    "HLinUCB": "baselines",
    "SlidingWindowLinUCB": "baselines",
    "SupKernelUCB": "baselines",
    "Comparison": "comparison",
    "compare": "comparison",
    "Box": "decision_sets",
    "Polytope": "decision_sets",
    "Log": "lab.logs.log",
    "Network": "network",
    "GPUCB": "policies",
    "IGPUCB": "policies",
    "OFUL": "policies",
    "Centralised": "policies",
    "CoopKernelTS": "policies",
    "CoopKernelUCB": "policies",
    "DistKernelUCB": "policies",
    "EagerKernelTS": "policies",
    "EagerKernelUCB": "policies",
    "GoBLin": "policies",
    "KernelTS": "policies",
    "KernelUCB": "policies",
    "LaplacianKernelTS": "policies",
    "LaplacianKernelUCB": "policies",
    "LinTS": "policies",
    "LinUCB": "policies",
    "NaiveCooperation": "policies",
    "Uniform": "policies",
    "Scaling": "scaling",
    "Policy": "policy",
    "Digest": "protocol",
    "Links": "protocol",
    "Message": "protocol",
    "links": "protocol.links",
    "Run": "run",
    "play": "run",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605 (they are written down once)


if not TYPE_CHECKING:  # or a checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'coopbandits' has no attribute {name!r}")
        home = import_module(f"coopbandits.{_HOMES[name]}")
        found: object = home if home.__name__.endswith(f".{name}") else getattr(home, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
