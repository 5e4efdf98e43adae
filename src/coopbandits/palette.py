"""The colours of every figure: policies, groups, and what stands back.

Lab figures, report pages, examples and benchmarks take theirs from here.
"""

# Okabe and Ito's colours, which most colour-blind people can tell apart, and three more.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c564b",
    "#6a3d9a", "#c2185b",
)  # fmt: skip
"""Lines and points, in order."""
GROUPS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""Areas: cliques, centres. Black and white are kept for other things."""
QUIET = "#555555"
"""Labels beside lines, references, whoever is alone."""
FAINT = "#999999"
"""Edges and marks that stand behind."""
UNHEARD = "#e8e8e8"
"""Cells of a matrix whose pair does not hear each other."""


def colour(place: int) -> str:
    """Return the colour of the line at a place; after the last they come again."""
    return COLOURS[place % len(COLOURS)]
