"""What is the finding in a sentence? The best policy beside the baseline, as far as trials say."""

from dataclasses import dataclass

import numpy as np

from coopbandits.lab.experiments.experiment import Cell
from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.summary import Summary, baseline_of


@dataclass(frozen=True)
class Finding:
    """The best policy of one problem on one network.

    Attributes:
        cell: Which it is.
        against: The baseline's name; empty where nothing can be compared with it.
        ratio: Regret by that of the baseline.
        sentence: For people.
        brief: The same in a few words.
        sure: Whether the interval of the difference is on one side of 0; so where there is none.
    """

    cell: Cell
    against: str
    ratio: float
    sentence: str
    brief: str
    sure: bool = True


def finding(store: Store, here: list[Summary]) -> Finding:
    """Say which policy is best; one that is drawn dashed is a reference, and no candidate."""
    table = store.experiment.policies
    candidates = [s for s in here if not table[s.cell.policy].get("dashed")] or here
    against = baseline_of(store, here[0].cell).policy
    rivals = [s for s in candidates if s.cell.policy != against and np.isfinite(s.ratio)]
    place = f"On {here[0].cell.network}, {here[0].cell.problem}"
    if not rivals:
        best = min(candidates, key=lambda s: s.final.value)
        name, count = best.cell.policy, _trials(best.trials)
        regret = f"a regret of {best.final} per agent after {int(best.rounds[-1])} rounds"
        return Finding(
            best.cell, "", float("nan"), f"{place}: {name} has {regret} ({count}).",
            f"{name}: {best.final}",
        )  # fmt: skip
    best = min(rivals, key=lambda s: s.ratio)
    name, count = best.cell.policy, _trials(best.paired)
    share = f"{best.ratio:.2f} of {against}'s regret"
    sure = _sure(best)
    if best.ratio < 1:
        sentence = f"{place}: {name} has {share} (paired, {count}{sure})."
    else:
        sentence = (
            f"{place}: no policy has less regret than {against}; the next, {name}, has {share} "
            f"(paired, {count}{sure})."
        )
    return Finding(best.cell, against, best.ratio, sentence, f"{name}: {share}", sure=not sure)


def headline(findings: list[Finding], trials: list[int]) -> str:
    """Say it for the whole run: the least and the most, so that nothing is picked by taste."""
    if not findings:
        return "No trial is done yet."
    compared = sorted((f for f in findings if f.against), key=lambda f: f.ratio)
    if len(findings) == 1 or not compared:
        return findings[0].sentence
    if len(compared) == 1:
        return compared[0].sentence
    least, most = compared[0], compared[-1]
    numbers = sorted({min(trials), max(trials)})
    count = " to ".join(map(str, numbers)) + (" trial" if numbers == [1] else " trials")
    sure = "" if max(trials) > 1 else ", so no intervals"
    rivals = {f.against for f in compared}
    baseline = rivals.pop() if len(rivals) == 1 else "the baseline"
    better = sum(f.ratio < 1 for f in compared)
    others = "other" if len(compared) == 3 else "others"
    between = f"; on the {others} its share is between these" if len(compared) > 2 else ""
    unsure = sum(not f.sure for f in compared)
    doubt = f" On {unsure} of them the 95% interval of the difference includes 0." if unsure else ""
    return (
        f"On {_share(better, len(compared))} pairs of problem and network, a policy has less "
        f"regret than {baseline} (paired, {count}{sure}). The best policy has {least.ratio:.2f} of "
        f"its regret on {_named(least)}, and {most.ratio:.2f} of it on {_named(most)}{between}."
        + doubt
    )


def _share(some: int, pairs: int) -> str:
    if some == pairs:
        return f"each of {pairs}" if pairs > 2 else "both"
    return f"{some or 'none'} of {pairs}"


def _named(one: Finding) -> str:
    return f"{one.cell.network}, {one.cell.problem} ({one.cell.policy})"


def _trials(count: int) -> str:
    return "1 trial, so no interval" if count == 1 else f"{count} trials"


def _sure(best: Summary) -> str:
    gap, half = best.final_difference.value, best.final_difference.half
    if np.isnan(half) or abs(gap) > half:
        return ""
    return "; the 95% interval of the difference includes 0"
