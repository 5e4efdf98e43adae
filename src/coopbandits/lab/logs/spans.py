"""Between which numbers do a log's contexts lie? And the scaling that makes them of size 1.

Prices in cents and hours of the day drown each other in a kernel. A scaling maps each number to
(x − shift)/spread with the mean and the standard deviation of what was offered; numbers that are 0
or 1 everywhere (one-hot, yes or no) stay as they are, and so does what never varies, but for its
shift.
"""

import numpy as np

from coopbandits.lab.logs.log import Log, as_log
from coopbandits.scaling import Scaling


def fit_scaling(log: Log) -> Scaling:
    """Fit a policy's `scaling=` to what a log offered.

    Args:
        log: Any; with or without columns.
    """
    X = np.concatenate([one.contexts for one in as_log(log).decisions])
    shift, spread = X.mean(axis=0), X.std(axis=0)
    flags = ((X == 0) | (X == 1)).all(axis=0)
    still = spread <= 1e-12 * np.maximum(np.abs(X).max(axis=0), 1e-300)
    return Scaling(np.where(flags, 0.0, shift), np.where(flags | still, 1.0, spread))


def needs_scaling(log: Log) -> bool:
    """Tell whether some numbers of a log's contexts are far from size 1."""
    scaling = fit_scaling(log)
    moved = (scaling.spread < 0.2) | (scaling.spread > 5) | (np.abs(scaling.shift) > 5)
    return bool(moved.any())
