"""Comparisons: runs paired by seed, and intervals that cover as often as they say."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import coopbandits as cb
from coopbandits.comparison import Comparison, Mean, Played, mean_of
from coopbandits.errors import CoopBanditsError, ParameterError

NETWORK = cb.Network.path(4)
PROBLEM = cb.problems.clustered_linear(NETWORK, dim=3, noise=0.3)
ALONE = cb.LinUCB(eta=0.3)
NAIVE = cb.NaiveCooperation(kernel=cb.kernels.Linear(), eta=0.3)
CLUB = cb.CLUB(lag=1)


def compared(**changes):
    settings = {"rounds": 12, "seeds": 4, **changes}
    return cb.compare(
        settings.pop("problem", PROBLEM),
        settings.pop("policies", [ALONE, NAIVE, CLUB]),
        **settings,
    )


def made_up(values, **changes):
    """A comparison of policies with given regrets, (P, S)."""
    records = tuple(
        Played(policy=f"p{p}", seed=s, regret=v, reward=-v, messages=s, bytes=0, engine="none")
        for s, column in enumerate(np.transpose(values).tolist())
        for p, v in enumerate(column)
    )
    curves = np.zeros((*np.shape(values), 1))
    return Comparison(**{"records": records, "curves": curves, "against": "p0", **changes})


def test_every_record_is_that_of_the_run_with_its_seed():
    found = compared(seeds=[5, 2])
    assert [(r.seed, r.policy) for r in found.records] == [
        (seed, policy.name) for seed in (5, 2) for policy in (ALONE, NAIVE, CLUB)
    ]
    policies = {policy.name: policy for policy in (ALONE, NAIVE, CLUB)}
    for record in found.records:
        run = cb.play(PROBLEM, policies[record.policy], rounds=12, seed=record.seed)
        assert record.regret == run.regret_per_agent[-1]
        assert record.reward == run.rewards.sum(axis=0).mean()
        assert (record.messages, record.bytes) == (run.messages.sum(), run.bytes.sum())
        assert record.engine == run.engine
        p, s = found.policies.index(record.policy), found.seeds.index(record.seed)
        np.testing.assert_array_equal(found.curves[p, s], run.regret_per_agent)
    with pytest.raises(ValueError, match="read-only"):
        found.curves[0] = 0.0


def test_the_same_seeds_give_the_same_comparison():
    assert compared().records == compared(seeds=range(4)).records
    assert compared().records[:6] == compared(seeds=2).records


@pytest.mark.parametrize("of", ["regret", "reward", "messages", "bytes"])
def test_differences_are_students_over_pairs(of):
    found = compared(level=0.9)
    values = {
        name: np.array([getattr(r, of) for r in found.records if r.policy == name], dtype=float)
        for name in found.policies
    }
    for name, against in (("CLUB", None), ("CLUB", NAIVE.name), ("LinUCB", "CLUB")):
        gaps = values[name] - values[against or "LinUCB"]
        difference = found.difference(name, against, of=of)
        assert difference.value == pytest.approx(gaps.mean())
        if np.ptp(gaps) > 0:
            interval = stats.ttest_rel(values[name], values[against or "LinUCB"])
            low, high = interval.confidence_interval(0.9)
            assert (difference.low, difference.high) == pytest.approx((low, high))
        else:
            assert difference.half == 0.0
    if of == "regret":
        assert found.differences == {n: found.difference(n) for n in (NAIVE.name, "CLUB")}


def test_differences_are_against_the_policy_that_is_named():
    found = compared(against="CLUB")
    assert list(found.differences) == ["LinUCB", NAIVE.name]
    gap = found.values("LinUCB") - found.values("CLUB")
    assert found.differences["LinUCB"].value == pytest.approx(gap.mean())
    assert found.difference("CLUB") == Mean(0.0, 0.0)


def test_pairing_takes_out_what_seeds_have_in_common(rng):
    shared = 100.0 * rng.normal(size=6)
    found = made_up([shared, shared + 1.0 + 0.01 * rng.normal(size=6)])
    assert found.difference("p1").half < 0.1 < found.mean("p1").half


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("seeds", [2, 5])
def test_an_interval_covers_the_true_difference_as_often_as_it_says(rng, level, seeds):
    trials, truth = 4000, 0.7
    base = 3.0 * rng.normal(size=(trials, seeds))
    other = base + truth + 0.5 * rng.normal(size=(trials, seeds))
    mean, half = mean_of((other - base).T, level)  # all trials at once
    for i in range(3):
        one = made_up([base[i], other[i]], level=level).difference("p1")
        assert (one.value, one.half) == pytest.approx((mean[i], half[i]))
    covered = (np.abs(mean - truth) <= half).mean()
    assert abs(covered - level) < 4 * np.sqrt(level * (1 - level) / trials)


def test_one_seed_has_no_interval():
    found = compared(seeds=1)
    assert np.isnan(found.difference("CLUB").half)
    assert np.isnan(mean_of(np.ones((1, 2)))[1]).all()
    assert "±" not in str(found)
    assert "1 seed, so without intervals" in str(found)


def test_a_problem_may_be_a_function_of_the_seed():
    def problem(seed):
        return cb.problems.clustered_linear(NETWORK, dim=3, seed=seed + 10)

    found = compared(problem=problem, policies=[ALONE], seeds=[3, 4])
    for record in found.records:
        run = cb.play(problem(record.seed), ALONE, rounds=12, seed=record.seed)
        assert record.regret == run.regret_per_agent[-1]


def test_policies_may_be_given_by_name():
    found = compared(policies={"bold": cb.LinUCB(eta=3.0), "shy": ALONE}, against="shy")
    assert found.policies == ("bold", "shy")
    assert list(found.differences) == ["bold"]


def test_it_plays_continua_too():
    problem = cb.problems.continuum(NETWORK, cb.Box([0.0], [1.0]), support=5)
    policies = [cb.KernelUCB(kernel=problem.kernel), cb.Uniform()]
    found = cb.compare(problem, policies, rounds=3, seeds=2)
    assert {record.engine for record in found.records} == {"messages"}


def test_links_and_engines_are_those_of_play():
    links = cb.Links(loss=0.5)
    found = compared(policies=[NAIVE], links=links, seeds=1)
    run = cb.play(PROBLEM, NAIVE, rounds=12, seed=0, links=links)
    assert found.records[0].regret == run.regret_per_agent[-1]
    assert compared(policies=[NAIVE], engine="exact").records[0].engine == "exact"


def test_its_table_says_what_was_found():
    found = compared(seeds=3)
    head, alone, naive, club, foot = str(found).splitlines()
    assert head.split("  ")[0] == "policy"
    assert "more than LinUCB" in head
    assert alone.startswith("LinUCB ")
    assert str(found.mean("LinUCB")) in alone
    assert str(found.difference(NAIVE.name)) in naive
    assert str(found.difference("CLUB")) in club
    assert f"{found.mean('CLUB', 'messages').value:,.0f}" in club
    assert foot == "12 rounds, 3 seeds; ± half of 95% intervals, paired by seed"
    assert repr(found) == str(found) == found.table()
    assert len({len(line) for line in (head, alone, naive, club)}) == 1  # columns are aligned


def test_records_are_rows_of_a_table():
    found = compared(seeds=2)
    frame = pd.DataFrame(found.records)
    assert list(frame.columns) == [field.name for field in dataclasses.fields(Played)]
    by_hand = frame.pivot(index="seed", columns="policy", values="regret")
    gap = (by_hand["CLUB"] - by_hand["LinUCB"]).mean()
    assert found.differences["CLUB"].value == pytest.approx(gap)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": []}, "nothing to compare: policies is empty"),
        ({"policies": ALONE}, "expected a list of policies, or a mapping"),
        ({"policies": [ALONE, "LinUCB"]}, "'LinUCB' is no policy"),
        ({"policies": [ALONE, cb.CLUB]}, "is no policy; coopbandits.LinUCB"),
        ({"policies": [ALONE, cb.LinUCB(eta=1.0)]}, "2 policies are called 'LinUCB'; give each"),
        ({"policies": {1: ALONE}}, "policies has 1 for a name; expected a text"),
        ({"seeds": 0}, "seeds must be a whole number >= 1, got 0"),
        ({"seeds": []}, r"seeds=\[\]; expected at least one"),
        ({"seeds": [1, 2, 1]}, "all different: a seed twice is one run twice"),
        ({"seeds": [1, -1]}, "seed must be a whole number >= 0"),
        ({"seeds": "three"}, "seeds='three'; expected how many, or a list"),
        ({"seeds": None}, "seeds=None; expected how many"),
        ({"rounds": 0}, "rounds must be a whole number >= 1"),
        ({"against": "OFUL"}, "against='OFUL' is not known; expected 'LinUCB', "),
        ({"level": 1.0}, "level must be a probability between 0 and 1, got 1.0"),
        ({"level": 95}, "level must be a probability between 0 and 1, got 95"),
        ({"problem": 3}, "3 is no problem; coopbandits.problems makes some"),
        ({"problem": lambda seed: None}, "None is no problem"),
        ({"engine": "fast"}, "engine='fast' is not known"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    with pytest.raises(CoopBanditsError, match=message):
        compared(**change)


def test_what_is_not_in_it_cannot_be_asked_for():
    found = made_up([[1.0, 2.0], [2.0, 2.5]])
    with pytest.raises(ParameterError, match="policy='p2' is not known; expected 'p0' or 'p1'"):
        found.mean("p2")
    with pytest.raises(ParameterError, match="of='time' is not known; expected 'regret'"):
        found.difference("p1", of="time")
