"""The border of one agent: from raw units of contexts and rewards to those that it computes in."""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import (
    Array,
    IntArray,
    as_contexts,
    as_floats,
    as_number,
    as_reward,
    frozen,
    short,
)
from coopbandits.decision_sets import Box, DecisionSet, Polytope
from coopbandits.errors import ParameterError, ShapeError
from coopbandits.policy import Policy
from coopbandits.protocol.messages import LAST_ROUND


@dataclass(frozen=True, eq=False)
class Units:
    """A policy's `scale=` and `scaling=`."""

    policy: Policy

    def offered(self, contexts: object) -> tuple[Array | DecisionSet, Array | DecisionSet]:
        """Check a decision set, and return it as it is and as it is computed with."""
        scaling = self.policy.scaling
        if isinstance(contexts, Box | Polytope):
            return contexts, contexts if scaling is None else scaling.scaled_set(contexts)
        raw = as_contexts(contexts)
        return raw, self.scaled(raw)

    def scaled(self, contexts: Array) -> Array:
        """Return checked contexts as they are computed with: (n, d)."""
        scaling = self.policy.scaling
        return contexts if scaling is None else scaling.scaled(contexts)

    def raw(self, context: Array) -> Array:
        """Return a point in raw units: (d,)."""
        scaling = self.policy.scaling
        return context if scaling is None else scaling.raw(context)

    def reward(self, y: object) -> float:
        """Check one reward, and divide it."""
        value, scale = as_reward(y), self.policy.scale
        return value if scale == 1 else as_number(value / scale, "a reward divided by scale=")

    def rewards(self, y: object, count: int) -> Array:
        """Check as many rewards as there are contexts, and divide them: (k,)."""
        values = as_floats(y, "rewards")
        if values.shape != (count,):
            raise ShapeError(
                f"{count} contexts came with rewards of shape {values.shape}; expected ({count},)"
            )
        with np.errstate(over="ignore"):
            return as_floats(values / self.policy.scale, "rewards divided by scale=")


def as_rounds(rounds: object, count: int, otherwise: IntArray) -> IntArray:
    """Check the rounds of a block of observations: (k,)."""
    if rounds is None:
        return otherwise
    values = as_floats(rounds, "rounds")
    whole = values.astype(np.int64) if np.abs(values).max(initial=0.0) < 2.0**62 else None
    if values.shape != (count,) or whole is None or (whole != values).any() or (whole < 0).any():
        raise ParameterError(
            f"rounds must be {count} whole numbers from 0 to {LAST_ROUND}, got {short(rounds)}"
        )
    return whole


def as_attached(attached: object, count: int, size: int) -> Array:
    """Check what is attached to a block of observations: (k, ·)."""
    values = as_floats(attached, "what is attached")
    if values.shape != (count, size):
        raise ShapeError(
            f"what is attached to {count} contexts has shape {values.shape}; expected "
            f"({count}, {size})"
        )
    return frozen(values)
