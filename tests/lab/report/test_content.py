"""What the page shows is what the run holds: numbers equal summaries, and gaps are gaps."""

from types import SimpleNamespace

import numpy as np
import pytest

from coopbandits.lab.experiments.experiment import Cell, Task
from coopbandits.lab.experiments.store import read_store
from coopbandits.lab.experiments.summary import summaries
from coopbandits.lab.report.content import Detail, content, number, thinned
from coopbandits.lab.report.layout import drawing
from coopbandits.lab.report.matrices import similarity_maps

ALL = Detail(points=1000, rows=1000, edges=1000)


def shown(store, detail=ALL):
    return content(store, summaries(store), detail)


def as_floats(values):
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def test_the_numbers_of_the_page_equal_the_summaries(real_run):
    store = read_store(real_run)
    made = shown(store)
    found = {
        (panel["problem"], made["networks"][panel["network"]]["name"], one["policy"]): (panel, one)
        for panel in made["panels"]
        for one in panel["series"]
    }
    names = [policy["name"] for policy in made["policies"]]
    expected = summaries(store)
    assert len(found) == len(expected) == 14
    for s in expected:
        panel, one = found[s.cell.problem, s.cell.network, names.index(s.cell.policy)]
        assert panel["rounds"] == s.rounds.tolist()
        assert names[panel["baseline"]] == "alone"
        for key, curve in [
            ("regret", s.regret), ("half", s.half), ("difference", s.difference),
            ("differenceHalf", s.difference_half),
        ]:  # fmt: skip
            np.testing.assert_allclose(as_floats(one[key]), curve, rtol=1e-4)
        ends = [s.final.value, s.final.half, s.final_difference.value, s.final_difference.half]
        given = as_floats([*one["final"], *one["finalDifference"]])
        np.testing.assert_allclose(given, ends, rtol=1e-5)
        for key in ("ratio", "slope", "messages", "bytes", "milliseconds"):
            assert one[key] == pytest.approx(getattr(s, key), rel=1e-5)
        np.testing.assert_allclose(
            np.array([as_floats(row) for row in one["worth"]]).reshape(-1, 5), s.worth, rtol=1e-4
        )
        assert (one["trials"], one["paired"], one["engine"]) == (3, 3, s.records[0].engine)


def test_differences_pair_the_same_trials_where_an_unfinished_run_has_gaps(made_run, gap):
    store = made_run(trials=4, only=gap("other", 1))
    one = shown(store)["panels"][0]["series"][1]
    regrets = {
        (policy, trial): store.record(Task(Cell("problem", "net", policy), trial)).regret[-1]
        for policy in ("alone", "other")
        for trial in (0, 2, 3)
    }
    pairs = [regrets["other", trial] - regrets["alone", trial] for trial in (0, 2, 3)]
    assert one["finalDifference"][0] == pytest.approx(np.mean(pairs), rel=1e-5)
    assert (one["trials"], one["paired"]) == (3, 3)
    assert shown(store)["done"] == 7
    assert shown(store)["expected"] == 8


def test_what_one_trial_cannot_say_is_null(made_run):
    one = shown(made_run(trials=1, timed=False))["panels"][0]["series"][1]
    assert set(one["half"]) == set(one["differenceHalf"]) == {None}
    assert one["final"][1] is one["finalDifference"][1] is one["milliseconds"] is None
    assert one["final"][0] > 0


def test_a_baseline_without_trials_compares_with_nothing(made_run):
    store = made_run(only=lambda task: task.cell.policy == "other")
    made = shown(store)
    [one] = made["panels"][0]["series"]
    assert made["panels"][0]["baseline"] == 0
    assert one["ratio"] is None
    assert set(one["difference"]) == {None}


def test_a_baseline_that_does_not_play_leaves_the_first_who_does(made_run):
    store = made_run(
        policies=("one", "two", "three"), problems=("p", "q"), baseline="three",
        three={"problems": ["q"]},
    )  # fmt: skip
    baselines = {panel["problem"]: panel["baseline"] for panel in shown(store)["panels"]}
    assert baselines == {"p": 0, "q": 2}


def test_a_stopped_run_has_no_drawing_yet(made_run):
    made = shown(made_run(drawn=False))
    assert made["networks"] == [{"name": "net", "leftOut": False}]


def test_a_run_without_trials_has_a_page_that_says_so(made_run):
    made = shown(made_run(only=lambda task: False))
    assert made["panels"] == []
    assert made["headline"] == "No trial is done yet."


def test_thinning_keeps_the_ends_and_early_rounds():
    rounds = np.arange(1, 1001)
    kept = thinned(rounds, 40)
    assert len(kept) <= 40
    assert (kept[0], kept[-1]) == (0, 999)
    assert (rounds[kept] < 10).sum() >= 3  # evenly spread alone would keep one
    assert np.array_equal(thinned(rounds, 1000), np.arange(1000))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1234567.0, 1234570), (0.123456789, 0.123457), (2.0, 2), (np.nan, None), (np.inf, None)],
)
def test_numbers_are_short_and_none_where_there_is_none(value, expected):
    assert number(value) == expected


def test_a_page_calls_agents_by_their_names():
    towns = ["Oslo", "Bern", "Kyiv"]
    facts = {
        "agents": 3, "names": towns, "edges": [(0, 1), (1, 2)], "cliques": [0, 0, 1], "ttl": 1,
        "diameter": 2, "centres": [1, 1, 1], "clique_cover_bound": 2, "graph": "",
    }  # fmt: skip
    assert drawing("towns", facts, 10)["ids"] == towns
    assert drawing("towns", {**facts, "names": None}, 10)["ids"] == [0, 1, 2]
    summary = SimpleNamespace(records=[SimpleNamespace(learnt=np.eye(3), truth=np.eye(3))])
    assert sorted(similarity_maps([(0, summary)], 9, facts)["order"]) == sorted(towns)
