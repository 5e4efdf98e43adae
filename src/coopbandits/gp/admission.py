"""Which contexts may a posterior be asked about? Those that leave a Cholesky factor digits."""

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.errors import NonFiniteError
from coopbandits.gp.compositions import JointKernel

# σ² is a difference of numbers of size K(x̃, x̃), and as small as λ/n: its relative error is about
# 1e-16·n·K/λ. Beyond this ratio too few digits are left.
LARGEST_RATIO = 1e10


def admits(kernel: JointKernel, ridge: float, agents: IntArray, X: Array) -> bool:
    """Tell whether contexts can be learnt from and asked about: (m,), (m, d).

    K(x̃, x̃)/λ must leave digits for a Cholesky factor; by Cauchy-Schwarz that bounds K between
    contexts too. A kernel that cannot take such contexts (their dimension, an arm) raises here.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        kernel(agents[:1], X[:1], agents[:1], X[:1])
        return bool((kernel.diagonal(agents, X) <= LARGEST_RATIO * ridge).all())


def refusal(X: Array, ridge: float) -> NonFiniteError:
    """Say why contexts are not admitted."""
    return NonFiniteError(
        f"the kernel is too large beside the ridge {ridge:g} for some contexts (their largest "
        f"entry is {np.abs(X).max():.3g}); scale the contexts down, or take a larger ridge: "
        f"K(x, x) must be at most {LARGEST_RATIO:g} times the ridge"
    )
