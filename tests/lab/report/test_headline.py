"""The sentence at the top says what the trials say, and no more."""

import numpy as np
import pytest

from coopbandits.comparison import Mean
from coopbandits.lab.experiments.experiment import Cell
from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.summary import Summary
from coopbandits.lab.report.headline import finding, headline


@pytest.fixture
def said(made_run):
    """Return the sentence for policies with given final regrets over trials."""
    store = made_run(
        policies=("alone", "b", "c", "reference"), reference={"dashed": True},
        networks=("net", "x", "y", "z"), only=lambda task: False,
    )  # fmt: skip

    def say(regrets, *, network="net"):
        return finding(Store(store.folder, store.experiment), [
            summary(network, policy, np.array(values), np.array(regrets.get("alone", [])))
            for policy, values in regrets.items()
        ])  # fmt: skip

    return say


def summary(network, policy, values, base):
    gaps = values - base if len(base) else np.array([np.nan])
    half = float(4.3 * gaps.std(ddof=1) / len(gaps) ** 0.5) if len(gaps) > 1 else np.nan
    none = np.empty(0)
    return Summary(
        cell=Cell("problem", network, policy), trials=len(values), paired=len(base),
        rounds=np.array([1, 9]), regret=none, half=none, difference=none, difference_half=none,
        final=Mean(float(values.mean()), np.nan if len(values) < 2 else 0.5),
        final_difference=Mean(float(gaps.mean()), half),
        ratio=float(values.mean() / base.mean()) if len(base) else np.nan, slope=0.5, messages=0.0,
        bytes=0.0, milliseconds=0.0, worth=np.empty((0, 5)), records=[],
    )  # fmt: skip


def test_the_best_is_compared_with_the_baseline(said):
    found = said({"alone": [10, 11, 12], "b": [5, 5.5, 6], "c": [7, 8, 9]})
    assert found.sentence == "On net, problem: b has 0.50 of alone's regret (paired, 3 trials)."
    assert found.brief == "b: 0.50 of alone's regret"


def test_a_reference_is_no_candidate(said):
    assert said({"alone": [4, 5], "b": [3, 3], "reference": [1, 1]}).cell.policy == "b"


def test_a_difference_that_may_be_nothing_is_said_to_be_so(said):
    assert "includes 0)" in said({"alone": [10, 12, 14], "b": [9, 15, 11]}).sentence


def test_one_trial_has_no_interval(said):
    sentence = said({"alone": [10], "b": [5]}).sentence
    assert sentence.endswith("regret (paired, 1 trial, so no interval).")


def test_nobody_better_than_alone_is_said_plainly(said):
    sentence = said({"alone": [1, 1.1], "b": [3, 3.1], "c": [2, 2.1]}).sentence
    assert "no policy has less regret than alone; the next, c, has 1.95 of" in sentence


@pytest.mark.parametrize("regrets", [{"alone": [4.0, 5.0]}, {"c": [4.0, 5.0]}], ids=str)
def test_who_has_no_rival_has_a_regret(said, regrets):
    [name] = regrets
    expected = f"On net, problem: {name} has a regret of 4.50 ± 0.50 per agent after 9 rounds"
    assert said(regrets).sentence == f"{expected} (2 trials)."


def test_of_several_the_least_and_the_most_are_named(said):
    findings = [
        said({"alone": [10, 10], "b": [share, share]}, network=name)
        for name, share in (("x", 4), ("y", 9), ("z", 6))
    ]
    sentence = headline(findings, [2, 2])
    assert "baseline has 0.40 of that one's regret on x, problem (b against alone)" in sentence
    assert "0.90 on y" in sentence
    assert "the most of 3 pairs of problem and network (paired, 2 trials)" in sentence
    assert "1 trial, so no intervals" in headline(findings, [1, 1])
    assert headline(findings[:1], [2]) == findings[0].sentence
