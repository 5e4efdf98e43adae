"""What does a log say of its candidates? The verdict in words."""

import numpy as np

from coopbandits.lab.logs.advice import NEAR, Advice, Judged
from coopbandits.lab.logs.candidates import Candidate
from coopbandits.lab.logs.fit_words import HARDLY

_LOG_EVIDENCE = 3.0


def words_of(advice: Advice) -> list[str]:
    """Say what to take, why, and what the log cannot tell; a paragraph each."""
    found = [kernel_words(advice), *_verdict(advice)]
    if advice.verdict != "nothing":
        found.append(_over_logged(advice))
    if not advice.network.edges:
        found.append(
            "No network is given, so nobody could hear anybody, and only agents on their own were "
            "tried; --network edges.csv, or --network complete, tries cooperation."
        )
    return found


def kernel_words(advice: Advice) -> str:
    """Say which kernel and scaling were taken, and by how much."""
    fit, scaling = advice.suited.fit, advice.suited.scaling
    how = "contexts as they are" if scaling is None else "scaled contexts"
    taken = next(one for _, one in advice.suited.tried if one is fit)
    others = {
        other.name: max(one.evidence for _, one in advice.suited.tried if one.name == other.name)
        for _, other in advice.suited.tried
        if other.name != fit.name
    }
    said = f"Kernel: {fit.name}, on {how}"
    # differences below 2 or 3 are none
    for name, evidence in sorted(others.items()):
        ahead = taken.evidence - evidence
        if ahead > _LOG_EVIDENCE:
            said += f"; likelier than {name}, log evidence {ahead:+.3g}"
        else:
            said += f"; {name} is about as likely ({-ahead:+.2g})"
    weak = [warning for warning in fit.warnings if warning.startswith(HARDLY)]
    return said + "." + (f" Beware: {weak[0]}." if weak else "")


def _verdict(advice: Advice) -> list[str]:
    if advice.verdict == "nothing":
        return [
            "Verdict: this log tells nothing of any candidate; see why below. Taken: "
            f"“{advice.recommended.name}”, the most cautious."
        ]
    best = max((one for one in advice.judged if len(one.gains)), key=lambda one: one.value)
    beaten = [one for one in advice.judged if one.gap_interval[0] > 0]
    if advice.verdict == "better":
        if not beaten:
            return [f"Verdict: “{best.candidate.name}” is all there was to try."]
        return [
            f"Verdict: take “{best.candidate.name}”. It earns more than each other: "
            + "; ".join(map(_more, beaten))
            + "."
        ]
    less = f" Worse are {', '.join(map(_more, beaten))}." if beaten else ""
    named = advice.recommended.name
    if advice.verdict == "as good":
        alike = [one for one in advice.judged if len(one.gains) and one not in beaten]
        others = [one.candidate for one in alike if one.candidate is not advice.recommended]
        return [
            f"Verdict: take “{named}”. It is as good as {_listed(others)} to within "
            f"{NEAR:.0%}, and the most cautious.{less}"
        ]
    different = _different(advice)
    if len(different) == 1:
        everyone = _listed([advice.recommended, *advice.rivals])
        return [
            f"Verdict: this log cannot tell {everyone} apart: all would have taken the same.{less}",
            f"Take “{named}”, the most cautious of them.",
        ]
    apart = _listed(different)
    same = [one for one in advice.rivals if one not in different]
    rest = f" On this log {_listed(same)} would have taken what one of these takes." if same else ""
    more = (
        f"If differences are as they look, some {_round(advice.more)} more decisions like these "
        f"{len(advice.log):,} would, or show that they differ by less than {NEAR:.0%}."
        if advice.more is not None
        else f"Not even a hundred times these {len(advice.log):,} decisions would, if differences "
        "are as small as they look."
    )
    return [
        f"Verdict: this log cannot tell these apart: {apart}.{rest} {more}{less}",
        f"Until then: “{named}”, the most cautious of them.",
    ]


def _different(advice: Advice) -> list[Candidate]:
    """Return what may be the best, of those that would all take the same one alone."""
    found: list[Judged] = []
    for candidate in (advice.recommended, *advice.rivals):
        one = advice.of(candidate)
        if not any(np.array_equal(one.gains, other.gains) for other in found):
            found.append(one)
    return [one.candidate for one in found]


def _over_logged(advice: Advice) -> str:
    more, (low, high) = advice.over(advice.recommended)
    said = "more" if low > 0 else "less" if high < 0 else "neither surely more nor surely less"
    name = advice.recommended.name
    return (
        f"“{name}” earns {said} than what was logged, {advice.logged:.4g}: by {more:+.4g} a "
        f"decision, between {low:+.4g} and {high:+.4g} with 95% confidence."
    )


def _more(one: Judged) -> str:
    low, high = one.gap_interval
    return f"“{one.candidate.name}” (by {one.gap:.3g} a decision, {low:.3g} … {high:.3g})"


def _listed(candidates: list[Candidate]) -> str:
    names = [f"“{one.name}”" for one in candidates]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _round(number: int) -> str:
    """Say a number to two digits."""
    digits = max(0, len(str(number)) - 2)
    return f"{round(number, -digits):,}"
