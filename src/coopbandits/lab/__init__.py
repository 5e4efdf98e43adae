"""The lab: what researchers need around the core. Imports core, never the reverse."""

from coopbandits.lab.similarity import SimilarityRow, similarity_figure, similarity_table
from coopbandits.lab.trials import trials

__all__ = ["SimilarityRow", "similarity_figure", "similarity_table", "trials"]
