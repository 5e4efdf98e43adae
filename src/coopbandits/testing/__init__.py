"""Contract checks for one's own kernel, similarity, learner, width or act.

Each takes a value and raises an `AssertionError` that says what the value breaks and where, or
returns None. They need no test framework; docs/testing.md shows them in one.
"""

from coopbandits.testing.acts import check_act
from coopbandits.testing.kernels import check_kernel
from coopbandits.testing.learners import check_learner, view_of
from coopbandits.testing.similarities import check_similarity
from coopbandits.testing.widths import check_width

__all__ = [
    "check_act",
    "check_kernel",
    "check_learner",
    "check_similarity",
    "check_width",
    "view_of",
]
