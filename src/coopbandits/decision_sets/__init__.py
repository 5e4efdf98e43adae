"""What may be chosen from, where it is no finite list? Boxes, polytopes, and their maxima."""

from coopbandits.decision_sets.decision_set import Box, DecisionSet, Polytope

__all__ = ["Box", "DecisionSet", "Polytope"]
