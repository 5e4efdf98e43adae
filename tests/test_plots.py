"""The picture of a result shows its numbers, in the colours of the house."""

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.palette import COLOURS

PROBLEM = cb.problems.clustered_linear(cb.Network.path(4), dim=2, actions=3, noise=0.3)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def run():
    return cb.play(PROBLEM, cb.LinUCB(), rounds=6)


def band(axes, place):
    """Where the band of a curve ends, round by round: (2, T)."""
    points = axes.collections[place].get_paths()[0].vertices
    rounds = np.unique(points[:, 0])
    return np.array([[f(points[points[:, 0] == t, 1]) for t in rounds] for f in (min, max)])


def test_the_curve_is_the_mean_of_the_agents_and_the_band_half_of_them(run):
    axes = run.plot()
    [line] = axes.lines
    np.testing.assert_array_equal(line.get_xdata(), range(1, 7))
    np.testing.assert_array_equal(line.get_ydata(), run.regret_per_agent)
    quartiles = np.quantile(np.cumsum(run.regret, axis=0), [0.25, 0.75], axis=1)
    np.testing.assert_allclose(band(axes, 0), quartiles)
    assert axes.get_legend() is None
    assert axes.figure in map(pyplot.figure, pyplot.get_fignums())  # as notebooks need it


def test_another_run_is_drawn_beside_it_in_the_next_colour(run):
    axes = run.plot(label="one")
    assert run.plot(axes, label="two") is axes
    assert [to_hex(line.get_color()) for line in axes.lines] == list(COLOURS[:2])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]


def test_a_comparison_is_drawn_with_its_intervals():
    found = cb.compare(PROBLEM, [cb.LinUCB(), cb.Uniform()], rounds=6, seeds=3)
    axes = found.plot()
    for place, name in enumerate(found.policies):
        np.testing.assert_allclose(axes.lines[place].get_ydata(), found.curves[place].mean(axis=0))
        ends = band(axes, place)[:, -1]
        np.testing.assert_allclose(ends, [found.mean(name).low, found.mean(name).high])
    assert axes.get_title(loc="left") == "bands: 95% intervals over 3 seeds"


def test_one_seed_has_a_curve_and_no_band():
    axes = cb.compare(PROBLEM, [cb.LinUCB()], rounds=3, seeds=1).plot()
    assert axes.get_title(loc="left") == "1 seed"
    assert np.isfinite(axes.lines[0].get_ydata()).all()


def test_what_is_no_axes_is_refused(run):
    with pytest.raises(ParameterError, match="ax=3; expected matplotlib axes"):
        run.plot(3)
