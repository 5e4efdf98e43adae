"""What must every width be?"""

from typing import Any

import numpy as np

from coopbandits.arrays import Array, IntArray, short
from coopbandits.testing.assertions import numbers, require, require_same, untouched
from coopbandits.width import Width

_LOGDETS, _COUNTS, _RIDGES = np.linspace(0.0, 30.0, 31), (0, 1, 20), (0.01, 1.0, 5.0)


def check_width(width: Any) -> None:
    """Check that a value is a width: w ≥ 0, finite, and never smaller for a larger log det.

    `factor(logdet=, count=, ridge=, agents=)` must return float64 of shape (m,), each query by
    itself, the same when asked again, and leave its arrays alone. It is asked from the first
    decision on, when nothing is known: logdet 0, count 0.

    Args:
        width: How sure am I?

    Raises:
        AssertionError: It is none; the message says where.

    Example:
        >>> check_width(cb.width.SelfNormalised(norm=1.0, noise=0.3, delta=0.05))
        >>> class Falling:
        ...     def factor(self, *, logdet, count, ridge, agents):
        ...         return np.exp(-logdet)
        >>> check_width(Falling())
        Traceback (most recent call last):
        AssertionError: the factor of ... must not fall as logdet grows, but goes from 1 to ...
    """
    what = short(width)
    require(
        isinstance(width, Width) and not isinstance(width, type),
        f"{what} is no width; expected a value with factor(logdet=, count=, ridge=, agents=)",
    )
    for ridge in _RIDGES:
        for agents in (1, 50):
            for count in _COUNTS:
                w = _factor(width, _LOGDETS, count, ridge, agents)
                at = f"count={count}, ridge={ridge} and agents={agents}"
                require(
                    (w >= 0).all(),
                    f"the factor of {what} must be >= 0, got {w.min():.6g} at {at}",
                )
                fall = np.diff(w)
                if (fall < 0).any():
                    i = int(fall.argmin())
                    raise AssertionError(
                        f"the factor of {what} must not fall as logdet grows, but goes from "
                        f"{w[i]:.6g} to {w[i + 1]:.6g} at {at}"
                    )
    _check_each_query(width, what)


def _factor(width: Any, logdet: Array, count: int, ridge: float, agents: int) -> Array:
    m = len(logdet)
    found = untouched(
        lambda **known: width.factor(ridge=ridge, **known),
        what=f"the factor of {short(width)}",
        logdet=logdet,
        count=np.full(m, count),
        agents=np.full(m, agents),
    )
    return numbers(found, (m,), f"the factor of {short(width)} for {m} queries")


def _check_each_query(width: Any, what: str) -> None:
    logdet, count, agents = np.array([0.0, 3.0, 9.0]), np.array([0, 4, 20]), np.array([1, 5, 5])

    def asked(at: IntArray) -> Array:
        return np.asarray(
            width.factor(logdet=logdet[at], count=count[at], ridge=0.5, agents=agents[at])
        )

    together = asked(np.arange(3))
    alone = np.concatenate([asked(np.array([i])) for i in range(3)])
    require_same(
        together, alone, f"{what} must answer each query by itself, together and alone", rtol=1e-12
    )
