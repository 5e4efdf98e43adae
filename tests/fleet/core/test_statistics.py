"""What a node counts of its events agrees with NumPy and SciPy."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from coopbandits.fleet.api import Arm
from coopbandits.fleet.core.statistics import Counts, Mean

values = st.lists(st.floats(-1e6, 1e6), max_size=60)


def counted(learner, control=(), baseline=()):
    counts = Counts()
    groups = {"learner": learner, "control": control, "baseline": baseline}
    for group, rewards in groups.items():
        for reward in rewards:
            counts.closed(group, reward)
    return counts


@given(values)
def test_mean_and_squares_are_those_of_numpy(found):
    mean = Mean()
    for value in found:
        mean.add(value)
    assert mean.count == len(found)
    if found:
        assert mean.mean == pytest.approx(np.mean(found), rel=1e-9, abs=1e-7)
        scale = max(map(abs, found)) ** 2 + 1e-12
        assert mean.squares == pytest.approx(len(found) * np.var(found), rel=1e-7, abs=1e-9 * scale)


def test_numbers_far_from_zero_lose_no_digits():
    mean, shift = Mean(), 1e9
    for value in (4.0, 7.0, 13.0, 16.0):
        mean.add(shift + value)
    assert (mean.mean, mean.squares) == (shift + 10.0, 90.0)


def test_the_half_widths_are_those_of_scipys_normal_interval(rng):
    one, other = rng.normal(1.0, 2.0, 40), rng.normal(0.5, 1.0, 25)
    rewards = counted(one, other).rewards
    errors = []
    for arm, sample in ((rewards.learner, one), (rewards.control, other)):
        error = stats.sem(sample)
        low, high = stats.norm.interval(0.95, loc=sample.mean(), scale=error)
        assert arm.count == len(sample)
        assert arm.mean == pytest.approx(sample.mean())
        assert arm.half_width == pytest.approx((high - low) / 2)
        errors.append(error)
    low, high = stats.norm.interval(0.95, loc=0.0, scale=np.hypot(*errors))
    assert rewards.difference == pytest.approx(one.mean() - other.mean())
    assert rewards.half_width == pytest.approx((high - low) / 2)


def test_nothing_is_said_of_too_few():
    none, single = Arm(0, None, None), Arm(1, 2.0, None)
    rewards = counted([]).rewards
    assert (rewards.learner, rewards.control, rewards.difference) == (none, none, None)
    rewards = counted([2.0]).rewards
    assert (rewards.learner, rewards.control, rewards.difference) == (single, none, None)
    rewards = counted([2.0], [2.0]).rewards
    assert (rewards.control, rewards.difference, rewards.half_width) == (single, 0.0, None)


def test_what_another_policy_earned_is_neither_the_learners_nor_in_the_difference():
    with_baseline = counted([1.0, 1.2], [0.9, 0.7], [-100.0] * 5).rewards
    without = counted([1.0, 1.2], [0.9, 0.7]).rewards
    assert with_baseline.baseline == Arm(5, -100.0, 0.0)
    assert without.baseline == Arm(0, None, None)
    assert msgspec.structs.replace(with_baseline, baseline=without.baseline) == without


@given(st.lists(st.tuples(st.sampled_from(["learner", "control", "baseline"]), st.floats(-9, 9))))
def test_each_group_has_its_own_events_and_all_are_counted(events):
    counts = Counts()
    for group, reward in events:
        counts.closed(group, reward)
    for group in ("learner", "control", "baseline"):
        alone = Mean()
        for one, reward in events:
            if one == group:
                alone.add(reward)
        assert getattr(counts, group) == alone
        assert getattr(counts.rewards, group) == alone.arm


def test_agreement_is_a_share_once_anything_was_compared():
    assert Counts().agreement is None
    assert Counts(agreed=3, compared=4).agreement == 0.75


@given(values, values, values)
def test_what_was_stored_is_restored(learner, control, baseline):
    counts = counted(learner, control, baseline)
    counts.decisions, counts.agreed, counts.compared = 9, 3, 5
    assert Counts.restored(counts.stored()) == counts


def test_counts_of_version_1_are_read_with_an_empty_baseline():
    read = Counts.restored([9, [3, 0.5, 0.1], [2, 0.25, 0.2], 3, 5])
    expected = Counts(9, Mean(3, 0.5, 0.1), Mean(2, 0.25, 0.2), 3, 5)
    assert read == expected
    assert read.baseline.count == 0
