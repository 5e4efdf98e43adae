"""What can a log not tell about a kernel? The warnings of a fit, in words."""

import numpy as np

from coopbandits.arrays import Array
from coopbandits.lab.logs.marginal import Family

# a standard error of 1 in logarithms is a factor of e either way
_VAGUE = 1.0
# How the first warning begins where there may be no signal at all.
HARDLY = "rewards are hardly"


def at_bounds(
    family: Family, best: Array, bounds: list[tuple[float, float]], X: Array
) -> list[str]:
    """Say which parameters ended at their bounds, and what that means: (n, d) contexts."""
    words = []
    ells = len(best) - family.has_ridge
    still = np.flatnonzero(np.ptp(X, axis=0) == 0)
    for j in range(ells):
        which = f"the lengthscale of dimension {j}" if family.ard else "the lengthscale"
        if family.ard and j in still:
            words.append(f"dimension {j} never varies in this log, so {which} is arbitrary")
        elif best[j] > bounds[j][1] - 1e-3:
            words.append(
                f"{which} is at its upper bound: rewards do not show that they depend on "
                + (f"dimension {j}" if family.ard else "contexts, or they do so linearly")
            )
        elif best[j] < bounds[j][0] + 1e-3:
            words.append(
                f"{which} is at its lower bound: "
                + (
                    "rewards show no noise beside a linear function"
                    if family.name == "linear"
                    else "no context tells anything about another; a wrong kernel, or rewards that "
                    "depend on what contexts do not hold"
                )
            )
    if family.has_ridge and best[-1] > bounds[-1][1] - 1e-3:
        words.append("the noise is at its upper bound: rewards look like noise alone")
    if family.has_ridge and best[-1] < bounds[-1][0] + 1e-3:
        words.append("the noise is at its lower bound: rewards show no noise at all")
    return words


def hardly_a_signal(gained: float, parameters: int) -> list[str]:
    """Say so where a kernel explains rewards no better than its number of parameters grants.

    `gained` is the log evidence less that of independent noise around a constant (Akaike's rule).
    """
    if gained > parameters:
        return []
    return [
        f"{HARDLY} likelier under this kernel than as noise alone (log evidence "
        f"{gained:+.2g}): contexts may say nothing about them, and neither do these parameters"
    ]


def not_identified(errors: dict[str, float | tuple[float, ...]], loose: bool) -> list[str]:
    """Say which parameters the log hardly tells."""
    if loose:
        return [
            "the evidence is flat along some direction, so standard errors are not known: the log "
            "cannot tell some parameters from each other; a longer log may"
        ]
    words = []
    for name, error in errors.items():
        for j, one in enumerate(np.atleast_1d(error)):
            if one > _VAGUE:
                which = f"{name} of dimension {j}" if isinstance(error, tuple) else name
                words.append(
                    f"the {which} is hardly identified: its logarithm has a standard error of "
                    f"{one:.2g}, a factor of {np.exp(min(one, 50.0)):.3g} either way"
                )
    return words
