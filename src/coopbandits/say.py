r"""What do I tell? Everything, only what is worth it, or sums instead of observations.

An answer is asked after each reward, about the observations that the agent has made and not told
yet. It sees the *variance ratio* of each,

    s = σ²/λ      σ² the variance at its context, as it stood at the decision

since that is what an observation can teach: it divides the variance at its context by 1 + s, and
its information gain is ½ ln(1 + s). Where rewards come at once and no other news comes between,
these gains add up to ½ log det(I + K/λ) of the observations, given all that was known before them.

| answer | tells |
|---|---|
| `Everything` | each observation, at once |
| `WhenUncertain` | an observation at once if s was above a threshold, else never |
| `WhenItPays` | nothing until the gain of what was held back is above a threshold, then all of it |
| `Sums` | what all own observations add up to, every so often or when it pays |
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from coopbandits.arrays import Array, as_count, as_not_negative, short
from coopbandits.errors import ParameterError

__all__ = [
    "Everything",
    "Say",
    "Sums",
    "WhenItPays",
    "WhenUncertain",
]


@runtime_checkable
class Say(Protocol):
    """An answer to: what do I tell?

    Example:
        >>> isinstance(cb.say.Everything(), cb.say.Say)
        True
    """

    sums: ClassVar[bool]
    """Whether sums are told (`digests.Digest`), not observations (`messages.Message`)."""

    holds: ClassVar[bool]
    """Whether what is not told at once may be told later."""

    def speaks(self, variance_ratio: Array) -> bool:
        """Tell whether to speak now, given s of each observation not told, oldest first: (k,)."""
        ...


@dataclass(frozen=True, slots=True)
class Everything:
    """Tell each observation at once, as the paper's algorithms do.

    Example:
        >>> cb.say.Everything().speaks(np.array([0.0]))
        True
    """

    sums: ClassVar[bool] = False
    holds: ClassVar[bool] = False

    def speaks(self, variance_ratio: Array) -> bool:
        """Speak."""
        return True


@dataclass(frozen=True, slots=True)
class WhenUncertain:
    """Tell an observation only if σ² at its decision was above `threshold`·λ; else never.

    What an agent was sure of before it looked, its neighbours would learn little from. It saves
    most: an agent that is sure falls silent.

    Args:
        threshold: At 0 all that can teach anything is told; at 1 only what halves a variance.

    Example:
        >>> rule = cb.say.WhenUncertain(threshold=1.0)
        >>> rule.speaks(np.array([0.5])), rule.speaks(np.array([1.5]))
        (False, True)
    """

    threshold: float
    sums: ClassVar[bool] = False
    holds: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", as_not_negative(self.threshold, "threshold"))

    def speaks(self, variance_ratio: Array) -> bool:
        """Speak if the newest observation could teach enough."""
        return bool(variance_ratio[-1] > self.threshold)


@dataclass(frozen=True, slots=True)
class WhenItPays:
    """Hold observations back until their information gain is above `gain`, then tell all of them.

    Nothing is left out, it comes late; what is saved is what is still held back at the end. An
    agent speaks at most Υ/gain times, with Υ the information gain of all that it sees. What is held
    back takes memory, and the surer an agent is, the longer it holds.

    Args:
        gain: In nats; ½ ln 2 ≈ 0.35 is what halves one variance.

    Example:
        >>> rule = cb.say.WhenItPays(gain=0.5)
        >>> rule.speaks(np.array([1.0])), rule.speaks(np.array([1.0, 1.0]))  # ½ ln 2, ln 2
        (False, True)
    """

    gain: float
    sums: ClassVar[bool] = False
    holds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "gain", as_not_negative(self.gain, "gain"))

    def speaks(self, variance_ratio: Array) -> bool:
        """Speak if what was held back tells enough."""
        return _gain(variance_ratio) > self.gain


@dataclass(frozen=True, slots=True)
class Sums:
    """Tell n, Σy², Σφy and Σφφᵀ of all own observations so far, in one message of fixed size.

    A newer message of an agent says all that an older one did and takes its place, so a lost one
    costs nothing but time. Needs a policy with `features=`, or a linear kernel, whose features are
    its contexts. With m features a message has m(m + 3)/2 + 2 numbers; where K_z is learnt, it has
    what that is learnt from beside them.

    Args:
        every: After so many observations; 1 unless a gain is given.
        gain: As soon as the information gain of what was not told is above this, in nats.

    Example:
        >>> rule = cb.say.Sums(every=3)
        >>> rule.speaks(np.ones(2)), rule.speaks(np.ones(3))
        (False, True)
    """

    every: int | None = None
    gain: float | None = None
    sums: ClassVar[bool] = True
    holds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.every is not None and self.gain is not None:
            raise ParameterError(
                f"every={short(self.every)} and gain={short(self.gain)} are two answers to when "
                "sums are told; give one of them"
            )
        if self.gain is not None:
            object.__setattr__(self, "gain", as_not_negative(self.gain, "gain"))
        else:
            every = 1 if self.every is None else as_count(self.every, "every")
            object.__setattr__(self, "every", every)

    def speaks(self, variance_ratio: Array) -> bool:
        """Speak if enough was seen, or learnt."""
        if self.gain is not None:
            return _gain(variance_ratio) > self.gain
        assert self.every is not None
        return len(variance_ratio) >= self.every


def _gain(variance_ratio: Array) -> float:
    return 0.5 * float(np.log1p(variance_ratio).sum())
