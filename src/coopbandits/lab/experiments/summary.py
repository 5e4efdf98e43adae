"""What did a run find? Means over trials with 95% intervals, and differences paired by seed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.comparison import Mean, mean_of
from coopbandits.frames import frame
from coopbandits.lab.experiments.experiment import Cell
from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.trial import Record
from coopbandits.plots import draw_curve, finish, regret_axes

if TYPE_CHECKING:
    from coopbandits.frames import DataFrame
    from coopbandits.plots import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """One cell over its trials.

    Attributes:
        cell: Which.
        trials: How many are done.
        rounds: (P,) the recorded rounds.
        regret: (P,) the mean cumulative regret per agent; `half` of its 95% interval.
        paired: How many of them the baseline has too.
        difference: (P,) the mean difference to the baseline, paired; `difference_half`.
        final: Of the last round; `final_difference` to the baseline.
        ratio: Final regret by that of the baseline, in the mean.
        slope: Of log regret over log t, in the last three quarters of the rounds.
        messages: Mean per round, over all agents; so `bytes`.
        milliseconds: Per decision.
        worth: (Q, 5) mean over trials of `Record.worth`.
    """

    cell: Cell
    trials: int
    paired: int
    rounds: IntArray
    regret: Array
    half: Array
    difference: Array
    difference_half: Array
    final: Mean
    final_difference: Mean
    ratio: float
    slope: float
    messages: float
    bytes: float
    milliseconds: float
    worth: Array
    records: list[Record]

    def __repr__(self) -> str:
        trials = f"{self.trials} trial{'s' * (self.trials != 1)}"
        return (
            f"Summary({self.cell.policy!r} on {self.cell.problem!r}, {self.cell.network!r}: "
            f"regret {self.final} per agent after {self.rounds[-1]} rounds, {trials})"
        )

    def to_frame(self) -> "DataFrame":
        """Return the curve as a pandas dataframe, a recorded round a row."""
        cell = self.cell
        return frame(
            {
                "problem": cell.problem,
                "network": cell.network,
                "policy": cell.policy,
                "round": self.rounds,
                "regret": self.regret,
                "half": self.half,
                "difference": self.difference,
                "difference_half": self.difference_half,
            }
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the curve: the mean over trials, and its 95% interval as a band.

        Args:
            ax: matplotlib axes to draw on, such as another summary's; new ones, if not given.
        """
        axes = regret_axes(ax)
        low, high = self.regret - self.half, self.regret + self.half
        draw_curve(axes, self.regret, low, high, self.cell.policy, rounds=self.rounds)
        trials = (
            "1 trial" if self.trials == 1 else f"bands: 95% intervals over {self.trials} trials"
        )
        finish(axes, note=f"{self.cell.problem}, {self.cell.network}; {trials}")
        return axes


def summaries(store: Store) -> list[Summary]:
    """Summarise every cell that has trials; differences are over the trials that both have."""
    found = {cell: store.trials(cell) for cell in store.experiment.cells}
    made = []
    for cell, records in found.items():
        if records:
            against = found[baseline_of(store, cell)]
            made.append(_summary(cell, records, against))
    return made


def baseline_of(store: Store, cell: Cell) -> Cell:
    """Return what a cell is compared with: the experiment's baseline, else the first policy there.

    A baseline that does not play a problem is no baseline there.
    """
    there = [
        other
        for other in store.experiment.cells
        if (other.problem, other.network) == (cell.problem, cell.network)
    ]
    named = [other for other in there if other.policy == store.experiment.baseline]
    return (named or there)[0]


def _summary(cell: Cell, found: dict[int, Record], against: dict[int, Record]) -> Summary:
    records = list(found.values())
    regret, half = mean_of(np.array([record.regret for record in records]))
    both = [trial for trial in found if trial in against]  # an unfinished run may have gaps
    if both:
        mine = np.array([found[trial].regret for trial in both])
        base = np.array([against[trial].regret for trial in both])
        difference, difference_half = mean_of(mine - base)
        ratio = float(mine[:, -1].mean() / base[:, -1].mean()) if base[:, -1].any() else 1.0
    else:
        difference = difference_half = np.full_like(regret, np.nan)
        ratio = float("nan")
    rounds = records[0].rounds
    T, V = int(rounds[-1]), len(records[0].agents)
    return Summary(
        cell=cell,
        trials=len(records),
        paired=len(both),
        rounds=rounds,
        regret=regret,
        half=half,
        difference=difference,
        difference_half=difference_half,
        final=Mean(float(regret[-1]), float(half[-1])),
        final_difference=Mean(float(difference[-1]), float(difference_half[-1])),
        ratio=ratio,
        slope=slope(rounds, regret),
        messages=float(np.mean([record.messages[-1] for record in records]) / T),
        bytes=float(np.mean([record.bytes[-1] for record in records]) / T),
        milliseconds=float(np.mean([1e3 * record.seconds / (T * V) for record in records])),
        worth=_mean_worth(records),
        records=records,
    )


def slope(rounds: IntArray, regret: Array) -> float:
    """Fit log regret = a + b·log t over the last three quarters of the rounds; return b."""
    kept = (rounds >= rounds[-1] / 4) & (regret > 0)
    if kept.sum() < 3:
        return float("nan")
    return float(np.polyfit(np.log(rounds[kept]), np.log(regret[kept]), 1)[0])


def _mean_worth(records: list[Record]) -> Array:
    tables = [record.worth for record in records if len(record.worth)]
    if not tables:
        return np.empty((0, 5))
    stacked = np.array(tables)
    held = np.isfinite(stacked)
    total = np.where(held, stacked, 0.0).sum(axis=0)
    return np.where(held.any(axis=0), total / np.maximum(held.sum(axis=0), 1), np.nan)
