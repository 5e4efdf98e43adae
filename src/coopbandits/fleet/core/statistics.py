"""What a node counts of its own events: rewards by who decided, and agreement."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from coopbandits.fleet.api import Arm, Group, Rewards
from coopbandits.fleet.core.entries import Decided

# Half the width of a 95% interval, in standard errors.
_Z = 1.959963984540054


@dataclass(slots=True)
class Mean:
    """A running mean and variance (Welford)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Count one more."""
        self.count += 1
        step = value - self.mean
        self.mean += step / self.count
        self.squares += step * (value - self.mean)

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None of fewer than two."""
        if self.count < 2:
            return None
        return sqrt(self.squares / (self.count - 1) / self.count)

    @property
    def arm(self) -> Arm:
        """How it is shown."""
        error = self.error
        return Arm(
            self.count, self.mean if self.count else None, None if error is None else _Z * error
        )


@dataclass(slots=True)
class Counts:
    """All that is counted.

    Attributes:
        decisions: Taken so far.
        learner: Rewards of events that the learner decided.
        control: Rewards of the control group's.
        baseline: Rewards of events that an outside or a fixed policy decided, in mode "apprentice"
            or "off".
        agreed: In mode "apprentice", how often the agent would have done the same.
        compared: Of how many.
    """

    decisions: int = 0
    learner: Mean = field(default_factory=Mean)
    control: Mean = field(default_factory=Mean)
    agreed: int = 0
    compared: int = 0
    baseline: Mean = field(default_factory=Mean)

    def decided(self, entry: Decided) -> None:
        """Count a decision, and whether the agent agreed."""
        self.decisions = entry.number
        if entry.agreed is not None:
            self.compared += 1
            self.agreed += entry.agreed

    def closed(self, group: Group, reward: float) -> None:
        """Count the reward of an event for who decided it."""
        groups = {"learner": self.learner, "control": self.control, "baseline": self.baseline}
        groups[group].add(reward)

    @property
    def agreement(self) -> float | None:
        """The share of agreement."""
        return self.agreed / self.compared if self.compared else None

    @property
    def rewards(self) -> Rewards:
        """All groups, and how far the learner is before the control group."""
        one, other = self.learner, self.control
        known = one.count and other.count
        errors = one.error, other.error
        half = None
        if errors[0] is not None and errors[1] is not None:
            half = _Z * sqrt(errors[0] ** 2 + errors[1] ** 2)
        difference = one.mean - other.mean if known else None
        return Rewards(one.arm, other.arm, difference, half, self.baseline.arm)

    def stored(self) -> list[Any]:
        """Return plain values that `restored` takes."""
        means = [[m.count, m.mean, m.squares] for m in (self.learner, self.control, self.baseline)]
        return [self.decisions, *means, self.agreed, self.compared]

    @classmethod
    def restored(cls, stored: list[Any]) -> "Counts":
        """Make it of what `stored` returned, in this release or before.

        States of version 1 have no baseline: its rewards were counted as the learner's, and stay.
        """
        decisions, *kept, agreed, compared = stored
        means = [Mean(*mean) for mean in kept]
        learner, control, baseline = means if len(means) > 2 else [*means, Mean()]
        return cls(decisions, learner, control, agreed, compared, baseline)
