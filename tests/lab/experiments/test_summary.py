import numpy as np
import pytest
from scipy import stats

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
