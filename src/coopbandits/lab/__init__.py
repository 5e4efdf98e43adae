"""The lab: what researchers need around the core. Imports core, never the reverse.

Names are loaded when they are first used (`coop --help` starts here).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coopbandits.lab.bounds import bound_figure
    from coopbandits.lab.datasets.lastfm import lastfm
    from coopbandits.lab.datasets.open_bandit import open_bandit
    from coopbandits.lab.datasets.routellm import routellm
    from coopbandits.lab.experiments.experiment import Experiment, read_experiment
    from coopbandits.lab.experiments.latex import write_latex
    from coopbandits.lab.experiments.processes import trials
    from coopbandits.lab.experiments.reproduce import paper_experiment
    from coopbandits.lab.experiments.runner import run_experiment
    from coopbandits.lab.experiments.store import Store, read_store
    from coopbandits.lab.experiments.summary import Summary, summaries
    from coopbandits.lab.logs.advice import Advice, advise
    from coopbandits.lab.logs.agent_folder import StoredAgents, read_agents, write_agents
    from coopbandits.lab.logs.columns import Columns, Feature
    from coopbandits.lab.logs.exports import to_obp, to_vw, write_vw
    from coopbandits.lab.logs.fit import Fit, compare_kernels, fit_kernel
    from coopbandits.lab.logs.log import Log, Logged
    from coopbandits.lab.logs.log_files import append_log, read_log, read_table, write_log
    from coopbandits.lab.logs.off_policy import Value, evaluate_policy, importance_weights
    from coopbandits.lab.logs.replay import Replay, replay_policy
    from coopbandits.lab.logs.simulated import logged
    from coopbandits.lab.logs.spans import fit_scaling
    from coopbandits.lab.logs.started import start_agents
    from coopbandits.lab.networks import load_network
    from coopbandits.lab.pettingzoo_env import parallel_env
    from coopbandits.lab.planning.drawing import planner_figure
    from coopbandits.lab.planning.planner import Inspection, Outlook, TtlRow, inspect_network
    from coopbandits.lab.report import write_report
    from coopbandits.lab.similarity import SimilarityRow, similarity_figure, similarity_table

__all__ = [
    "Advice",
    "Columns",
    "Experiment",
    "Feature",
    "Fit",
    "Inspection",
    "Log",
    "Logged",
    "Outlook",
    "Replay",
    "SimilarityRow",
    "Store",
    "StoredAgents",
    "Summary",
    "TtlRow",
    "Value",
    "advise",
    "append_log",
    "bound_figure",
    "compare_kernels",
    "evaluate_policy",
    "fit_kernel",
    "fit_scaling",
    "importance_weights",
    "inspect_network",
    "lastfm",
    "load_network",
    "logged",
    "open_bandit",
    "paper_experiment",
    "parallel_env",
    "planner_figure",
    "read_agents",
    "read_experiment",
    "read_log",
    "read_store",
    "read_table",
    "replay_policy",
    "routellm",
    "run_experiment",
    "similarity_figure",
    "similarity_table",
    "start_agents",
    "summaries",
    "to_obp",
    "to_vw",
    "trials",
    "write_agents",
    "write_latex",
    "write_log",
    "write_report",
    "write_vw",
]

_HOMES = {
    "Advice": "logs.advice",
    "Columns": "logs.columns",
    "Experiment": "experiments.experiment",
    "Feature": "logs.columns",
    "Fit": "logs.fit",
    "Inspection": "planning.planner",
    "Log": "logs.log",
    "Logged": "logs.log",
    "Outlook": "planning.planner",
    "Replay": "logs.replay",
    "SimilarityRow": "similarity",
    "Store": "experiments.store",
    "StoredAgents": "logs.agent_folder",
    "Summary": "experiments.summary",
    "TtlRow": "planning.planner",
    "Value": "logs.off_policy",
    "advise": "logs.advice",
    "append_log": "logs.log_files",
    "bound_figure": "bounds",
    "compare_kernels": "logs.fit",
    "evaluate_policy": "logs.off_policy",
    "fit_kernel": "logs.fit",
    "fit_scaling": "logs.spans",
    "importance_weights": "logs.off_policy",
    "inspect_network": "planning.planner",
    "lastfm": "datasets.lastfm",
    "load_network": "networks",
    "logged": "logs.simulated",
    "open_bandit": "datasets.open_bandit",
    "paper_experiment": "experiments.reproduce",
    "parallel_env": "pettingzoo_env",
    "planner_figure": "planning.drawing",
    "read_agents": "logs.agent_folder",
    "read_experiment": "experiments.experiment",
    "read_log": "logs.log_files",
    "read_store": "experiments.store",
    "read_table": "logs.log_files",
    "replay_policy": "logs.replay",
    "routellm": "datasets.routellm",
    "run_experiment": "experiments.runner",
    "similarity_figure": "similarity",
    "similarity_table": "similarity",
    "start_agents": "logs.started",
    "summaries": "experiments.summary",
    "to_obp": "logs.exports",
    "to_vw": "logs.exports",
    "trials": "experiments.processes",
    "write_agents": "logs.agent_folder",
    "write_latex": "experiments.latex",
    "write_log": "logs.log_files",
    "write_report": "report",
    "write_vw": "logs.exports",
}


if not TYPE_CHECKING:  # or a checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'coopbandits.lab' has no attribute {name!r}")
        found: object = getattr(import_module(f"coopbandits.lab.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
