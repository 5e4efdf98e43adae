import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from scipy import stats

from coopbandits.errors import ParameterError
from coopbandits.lab.experiments.experiment import Cell, experiment_of
from coopbandits.lab.experiments.runner import run_experiment
from coopbandits.lab.experiments.summary import slope, summaries
from lab_small import small


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("summary") / "run"
    return run_experiment(experiment_of(small(trials=4)), folder, workers=1)


def test_differences_are_paired_by_seed(store):
    alone, eager = summaries(store)
    pairs = [
        [record.regret[-1] for record in store.records(Cell("linear", "path", name))]
        for name in ("alone", "eager")
    ]
    gaps = np.array(pairs[1]) - np.array(pairs[0])
    assert eager.final_difference.value == pytest.approx(gaps.mean())
    low, high = stats.ttest_1samp(gaps, 0.0).confidence_interval(0.95)
    assert eager.final_difference.half == pytest.approx((high - low) / 2)
    assert eager.ratio == pytest.approx(np.mean(pairs[1]) / np.mean(pairs[0]))
    assert (alone.final_difference.value, alone.ratio) == (0.0, 1.0)


def test_the_slope_of_a_power_is_its_exponent():
    t = np.arange(1, 200)
    assert slope(t, 3.0 * t**0.5) == pytest.approx(0.5)
    assert np.isnan(slope(np.array([1, 2]), np.array([0.0, 0.0])))


def test_a_baseline_that_does_not_play_gives_way_to_the_first(tmp_path):
    tables = small(trials=2, baseline="eager")
    tables["problems"]["other"] = dict(tables["problems"]["linear"], dim=2)
    tables["policies"]["eager"]["problems"] = ["linear"]
    found = summaries(run_experiment(experiment_of(tables), tmp_path / "run", workers=1))
    ratios = {(s.cell.problem, s.cell.policy): s.ratio for s in found}
    assert ratios["linear", "eager"] == 1.0 != ratios["linear", "alone"]
    assert ratios["other", "alone"] == 1.0


def test_a_summary_is_one_line_that_says_what_was_found(store):
    alone, _ = summaries(store)
    assert repr(alone) == (
        f"Summary('alone' on 'linear', 'path': regret {alone.final} per agent after 6 rounds, "
        "4 trials)"
    )


def test_a_store_is_one_line_that_says_how_much_is_done(store):
    assert repr(store) == f"Store('{store.folder}': small, 8 of 8 trials)"


def test_a_stores_frames_are_its_tables(store):
    for name in ("finals", "curves"):
        kept = pd.read_csv(store.folder / f"{name}.csv", dtype={"graph": str})
        pd.testing.assert_frame_equal(store.to_frame(name), kept)
    assert len(store.to_frame("timings")) == 8
    assert store.to_frame("worth").empty  # nobody here learns K_z
    with pytest.raises(ParameterError, match=r"table.*'finals'"):
        store.to_frame("final")


def test_a_summarys_frame_is_its_curve(store):
    _, eager = summaries(store)
    frame = eager.to_frame()
    assert set(frame.policy) == {"eager"}
    for name in ("regret", "half", "difference", "difference_half"):
        np.testing.assert_array_equal(frame[name], getattr(eager, name))
    np.testing.assert_array_equal(frame["round"], eager.rounds)


def test_summaries_and_stores_are_drawn(store):
    alone, eager = summaries(store)
    axes = eager.plot(alone.plot())
    for line, summary in zip(axes.lines, (alone, eager), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), summary.regret)
        np.testing.assert_array_equal(line.get_xdata(), summary.rounds)
    figure = store.plot()
    assert figure.number in pyplot.get_fignums()  # as notebooks need it
    assert len(figure.axes) == 1
    pyplot.close("all")
