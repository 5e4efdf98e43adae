"""The sentence at the top says what the trials say, and no more."""

from dataclasses import replace

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


def several(said, **shares):
    """Findings on some networks, where the best has given shares of the baseline's regret."""
    return [
        said({"alone": [10, 10], "b": [10 * share, 10 * share]}, network=name)
        for name, share in shares.items()
    ]


def test_of_several_the_least_and_the_most_are_named_in_sentences(said):
    findings = several(said, x=0.4, y=0.9, z=0.6)
    assert headline(findings, [2, 2]) == (
        "On each of 3 pairs of problem and network, a policy has less regret than alone (paired, "
        "2 trials). The best policy has 0.40 of its regret on x, problem (b), and 0.90 of it on "
        "y, problem (b); on the other its share is between these."
    )
    assert "(paired, 1 trial, so no intervals)" in headline(findings, [1, 1])
    assert "(paired, 2 to 5 trials)" in headline(findings, [5, 2])
    assert headline(findings[:1], [2]) == findings[0].sentence


@pytest.mark.parametrize(
    ("shares", "opening"),
    [
        ({"x": 0.4, "y": 0.9}, "On both pairs of problem and network, a policy has less"),
        ({"x": 0.4, "y": 1.2}, "On 1 of 2 pairs of problem and network, a policy has less"),
        ({"x": 1.4, "y": 1.2}, "On none of 2 pairs of problem and network, a policy has less"),
    ],
    ids=str,
)
def test_it_is_said_on_how_many_cooperation_pays(said, shares, opening):
    sentence = headline(several(said, **shares), [2, 2])
    assert sentence.startswith(opening)
    assert "between these" not in sentence  # there are no others


def test_of_several_it_is_said_where_the_difference_may_be_nothing(said):
    clear = said({"alone": [10, 12, 14], "b": [5, 6, 7]}, network="x")
    unclear = said({"alone": [10, 12, 14], "b": [9, 15, 11]}, network="y")
    assert (clear.sure, unclear.sure) == (True, False)
    doubt = "On 1 of them the 95% interval of the difference includes 0."
    assert headline([clear, unclear], [3, 3]).endswith(doubt)
    assert doubt not in headline([clear, replace(unclear, sure=True)], [3, 3])


def test_where_baselines_differ_none_is_named(said):
    one, other = several(said, x=0.4, y=0.9)
    sentence = headline([one, replace(other, against="c")], [2, 2])
    assert "less regret than the baseline (paired" in sentence
