"""The lab: what researchers need around the core. Imports core, never the reverse.

Names are loaded when they are first used (`coop --help` starts here).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coopbandits.lab.fit import Fit, compare_kernels, fit_kernel
    from coopbandits.lab.logs import Log, Logged, read_log, write_log
    from coopbandits.lab.off_policy import Value, evaluate_policy, importance_weights
    from coopbandits.lab.replay import Replay, replay_policy
    from coopbandits.lab.similarity import SimilarityRow, similarity_figure, similarity_table
    from coopbandits.lab.simulated_logs import logged
    from coopbandits.lab.trials import trials

__all__ = [
    "Fit",
    "Log",
    "Logged",
    "Replay",
    "SimilarityRow",
    "Value",
    "compare_kernels",
    "evaluate_policy",
    "fit_kernel",
    "importance_weights",
    "logged",
    "read_log",
    "replay_policy",
    "similarity_figure",
    "similarity_table",
    "trials",
    "write_log",
]
_HOMES = {
    "Fit": "fit",
    "Log": "logs",
    "Logged": "logs",
    "Replay": "replay",
    "SimilarityRow": "similarity",
    "Value": "off_policy",
    "compare_kernels": "fit",
    "evaluate_policy": "off_policy",
    "fit_kernel": "fit",
    "importance_weights": "off_policy",
    "logged": "simulated_logs",
    "read_log": "logs",
    "replay_policy": "replay",
    "similarity_figure": "similarity",
    "similarity_table": "similarity",
    "trials": "trials",
    "write_log": "logs",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'coopbandits.lab' has no attribute {name!r}")
    found: object = getattr(import_module(f"coopbandits.lab.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
