import numpy as np
import pytest
from scipy import stats

from coopbandits.lab.logs.intervals import by_bernstein, by_bootstrap, by_student


def test_students_interval_is_scipys(rng):
    values = rng.normal(size=17)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert by_student(values, 0.9) == pytest.approx((expected.low, expected.high))


def test_the_bootstrap_of_a_skewed_ratio_is_scipys_bca(rng):
    top, bottom = rng.lognormal(sigma=1.0, size=60), 0.5 + rng.random(60)
    expected = stats.bootstrap(
        (top, bottom),
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="BCa",
        random_state=np.random.default_rng(1),
    ).confidence_interval
    low, high = by_bootstrap(top, bottom, 0.95, np.random.default_rng(2))
    # of 2,000 resamples a 97.5% quantile has a standard error of about 4% of the length
    length = expected.high - expected.low
    assert abs(low - expected.low) < 0.12 * length
    assert abs(high - expected.high) < 0.12 * length


def test_a_mean_that_cannot_vary_has_an_interval_of_no_length():
    assert by_bootstrap(np.full(30, 2.0), np.full(30, 4.0), 0.95, np.random.default_rng(0)) == (
        0.5,
        0.5,
    )


def test_bernstein_scales_with_values(rng):
    values = rng.random(40)
    low, high = by_bernstein(values, 1.0, 0.95)
    assert by_bernstein(10 * values, 10.0, 0.95) == pytest.approx((10 * low, 10 * high))
    assert by_bernstein(values, 1.0, 0.99)[1] > high
