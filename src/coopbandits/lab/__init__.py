"""The lab: what researchers need around the core. Imports core, never the reverse.

Names are loaded when they are first used (`coop --help` starts here).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coopbandits.lab.planner import Inspection, Outlook, TtlRow, inspect_network
    from coopbandits.lab.planner_figure import planner_figure
    from coopbandits.lab.similarity import SimilarityRow, similarity_figure, similarity_table
    from coopbandits.lab.trials import trials

__all__ = [
    "Inspection",
    "Outlook",
    "SimilarityRow",
    "TtlRow",
    "inspect_network",
    "planner_figure",
    "similarity_figure",
    "similarity_table",
    "trials",
]
_HOMES = {
    "Inspection": "planner",
    "Outlook": "planner",
    "TtlRow": "planner",
    "inspect_network": "planner",
    "planner_figure": "planner_figure",
    "SimilarityRow": "similarity",
    "similarity_figure": "similarity",
    "similarity_table": "similarity",
    "trials": "trials",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'coopbandits.lab' has no attribute {name!r}")
    found: object = getattr(import_module(f"coopbandits.lab.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
