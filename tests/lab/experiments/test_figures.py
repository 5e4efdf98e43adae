from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from coopbandits.comparison import Mean
from coopbandits.lab.experiments.experiment import experiment_of
from coopbandits.lab.experiments.figures import drawn, regret_figure
from coopbandits.lab.experiments.reproduce import paper_experiment
from coopbandits.lab.experiments.runner import run_experiment
from coopbandits.lab.experiments.summary import summaries
from lab_small import small


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    tables = small()
    tables["networks"]["star"] = {"kind": "star", "agents": 4}
    folder = tmp_path_factory.mktemp("figures") / "run"
    return run_experiment(experiment_of(tables), folder, workers=1)


def test_every_problem_and_network_has_a_panel_and_every_policy_a_line(store):
    figure = regret_figure(store, summaries(store))
    assert len(figure.axes) == 2
    found = {(s.cell.network, s.cell.policy): s for s in summaries(store)}
    for axis, network in zip(figure.axes, ("path", "star"), strict=True):
        assert axis.get_title() == network
        for line, policy in zip(axis.get_lines(), ("alone", "eager"), strict=True):
            assert (line.get_ydata() == found[network, policy].regret).all()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["alone", "eager"]


@pytest.mark.parametrize("networks", [1, 4])
def test_a_legend_of_long_names_stays_within_the_figure(networks):
    of_networks = ["er", "facebook", "twitch", "caida"][:networks]
    experiment = paper_experiment(networks=of_networks, setups=["1"])
    rounds = np.arange(1, 4)
    flat = {"rounds": rounds, "regret": 1.0 * rounds, "half": 0.0 * rounds, "final": Mean(3, 0)}
    found = [SimpleNamespace(cell=cell, **flat) for cell in experiment.cells]
    figure = regret_figure(SimpleNamespace(experiment=experiment), found)
    figure.canvas.draw()
    [legend] = figure.legends
    shown = legend.get_window_extent()
    assert shown.x0 >= 0
    assert shown.x1 <= figure.bbox.width
    assert len(legend.get_texts()) == len(experiment.policies)


@pytest.mark.parametrize("T", [1, 7, 500, 20_000, 1_000_000])
def test_no_ticks_touch_however_many_rounds_there_are(T):
    networks = ["er", "facebook", "twitch", "caida"]
    experiment = paper_experiment(networks=networks, setups=["1"], rounds=T)
    rounds = np.array([1, T])
    flat = {"rounds": rounds, "regret": 1e4 * rounds, "half": 0.0 * rounds, "final": Mean(3, 0)}
    found = [SimpleNamespace(cell=cell, **flat) for cell in experiment.cells]
    figure = regret_figure(SimpleNamespace(experiment=experiment), found)
    figure.canvas.draw()
    for axis in figure.axes:
        for labels in (axis.get_xticklabels(), axis.get_yticklabels()):
            boxes = [text.get_window_extent() for text in labels if text.get_text()]
            assert boxes
            assert not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_policies_that_differ_twentyfold_are_drawn_on_a_logarithmic_scale(store):
    found = summaries(store)
    assert {axis.get_yscale() for axis in regret_figure(store, found).axes} == {"linear"}
    worse = replace(found[0], final=Mean(1000.0, 1.0), regret=found[0].regret * 1000)
    figure = regret_figure(store, [worse, *found[1:]])
    assert {axis.get_yscale() for axis in figure.axes} == {"log"}
    assert "log scale" in figure.axes[0].get_ylabel()


def test_the_same_figure_gives_the_same_bytes(store):
    first, second = (drawn(regret_figure(store, summaries(store))) for _ in range(2))
    assert first == second
    assert first["svg"].startswith(b"<?xml")
    assert first["png"].startswith(b"\x89PNG")
