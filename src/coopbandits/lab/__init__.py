"""The lab: what researchers need around the core. Imports core, never the reverse.

Names are loaded when they are first used (`coop --help` starts here).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coopbandits.lab.experiment import Experiment, read_experiment
    from coopbandits.lab.fit import Fit, compare_kernels, fit_kernel
    from coopbandits.lab.logs import Log, Logged, read_log, write_log
    from coopbandits.lab.networks import load_network
    from coopbandits.lab.off_policy import Value, evaluate_policy, importance_weights
    from coopbandits.lab.pettingzoo_env import parallel_env
    from coopbandits.lab.planner import Inspection, Outlook, TtlRow, inspect_network
    from coopbandits.lab.planner_drawing import planner_figure
    from coopbandits.lab.processes import trials
    from coopbandits.lab.replay import Replay, replay_policy
    from coopbandits.lab.report import write_report
    from coopbandits.lab.reproduce import paper_experiment
    from coopbandits.lab.runner import run_experiment
    from coopbandits.lab.similarity import SimilarityRow, similarity_figure, similarity_table
    from coopbandits.lab.simulated_logs import logged
    from coopbandits.lab.store import Store, read_store
    from coopbandits.lab.summary import Summary, summaries

__all__ = [
    "Experiment",
    "Fit",
    "Inspection",
    "Log",
    "Logged",
    "Outlook",
    "Replay",
    "SimilarityRow",
    "Store",
    "Summary",
    "TtlRow",
    "Value",
    "compare_kernels",
    "evaluate_policy",
    "fit_kernel",
    "importance_weights",
    "inspect_network",
    "load_network",
    "logged",
    "paper_experiment",
    "parallel_env",
    "planner_figure",
    "read_experiment",
    "read_log",
    "read_store",
    "replay_policy",
    "run_experiment",
    "similarity_figure",
    "similarity_table",
    "summaries",
    "trials",
    "write_log",
    "write_report",
]

_HOMES = {
    "Experiment": "experiment",
    "Fit": "fit",
    "Inspection": "planner",
    "Log": "logs",
    "Logged": "logs",
    "Outlook": "planner",
    "Replay": "replay",
    "SimilarityRow": "similarity",
    "Store": "store",
    "Summary": "summary",
    "TtlRow": "planner",
    "Value": "off_policy",
    "compare_kernels": "fit",
    "evaluate_policy": "off_policy",
    "fit_kernel": "fit",
    "importance_weights": "off_policy",
    "inspect_network": "planner",
    "load_network": "networks",
    "logged": "simulated_logs",
    "paper_experiment": "reproduce",
    "parallel_env": "pettingzoo_env",
    "planner_figure": "planner_drawing",
    "read_experiment": "experiment",
    "read_log": "logs",
    "read_store": "store",
    "replay_policy": "replay",
    "run_experiment": "runner",
    "similarity_figure": "similarity",
    "similarity_table": "similarity",
    "summaries": "summary",
    "trials": "processes",
    "write_log": "logs",
    "write_report": "report",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'coopbandits.lab' has no attribute {name!r}")
    found: object = getattr(import_module(f"coopbandits.lab.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
