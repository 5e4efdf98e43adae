"""The lab: what researchers need around the core. Imports core, never the reverse.

Names are loaded when they are first used (`coop --help` starts here).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coopbandits.lab.experiment import Experiment, read_experiment
    from coopbandits.lab.networks import load_network
    from coopbandits.lab.pettingzoo_env import parallel_env
    from coopbandits.lab.processes import trials
    from coopbandits.lab.report import write_report
    from coopbandits.lab.reproduce import paper_experiment
    from coopbandits.lab.runner import run_experiment
    from coopbandits.lab.similarity import SimilarityRow, similarity_figure, similarity_table
    from coopbandits.lab.store import Store, read_store
    from coopbandits.lab.summary import Summary, summaries

__all__ = [
    "Experiment",
    "SimilarityRow",
    "Store",
    "Summary",
    "load_network",
    "paper_experiment",
    "parallel_env",
    "read_experiment",
    "read_store",
    "run_experiment",
    "similarity_figure",
    "similarity_table",
    "summaries",
    "trials",
    "write_report",
]

_HOMES = {
    "Experiment": "experiment",
    "SimilarityRow": "similarity",
    "Store": "store",
    "Summary": "summary",
    "load_network": "networks",
    "paper_experiment": "reproduce",
    "parallel_env": "pettingzoo_env",
    "read_experiment": "experiment",
    "read_store": "store",
    "run_experiment": "runner",
    "similarity_figure": "similarity",
    "similarity_table": "similarity",
    "summaries": "summary",
    "trials": "processes",
    "write_report": "report",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'coopbandits.lab' has no attribute {name!r}")
    found: object = getattr(import_module(f"coopbandits.lab.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
