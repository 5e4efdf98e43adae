"""DynUCB: its literal twin, agents that move between clusters, and what it refuses."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines import Simulation
from coopbandits.errors import ParameterError
from reference import clusters as literal
from worlds import NETWORKS, ragged, world_of


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize(("clusters", "seed"), [(1, 0), (2, 1), (3, 2), (12, 3)])
def test_dyn_ucb_takes_the_literal_algorithms_decisions(clusters, lag, seed):
    problem = ragged(NETWORKS["grid"], seed)
    algorithm = cb.DynUCB(clusters=clusters, alpha=0.4, ridge=0.8, lag=lag)
    player = algorithm.player(
        Simulation(network=problem.network, contexts=np.ones((1, 3)), rounds=12, seed=seed)
    )
    expected, found = literal.dyn_ucb(
        world_of(problem, seed),
        9,
        alpha=0.4,
        ridge=0.8,
        start=player.sums.labels.tolist(),
        clusters=clusters,
        rounds=12,
        seed=seed,
        lag=lag,
    )
    run = cb.play(problem, algorithm, rounds=12, seed=seed)
    np.testing.assert_array_equal(run.actions, expected)
    for t in range(1, 13):
        label = np.array(found[t - 1])
        np.testing.assert_array_equal(run.similarity(t), label[:, None] == label)
    if clusters > 1:  # agents do move
        assert len({tuple(label) for label in found}) > 2


def test_the_first_clusters_are_drawn_anew_for_each_seed():
    told = {"network": cb.Network.path(30), "contexts": np.ones((1, 3)), "rounds": 2}
    one, two = (cb.DynUCB().player(Simulation(**told, seed=s)).sums.labels for s in (0, 1))
    assert (one != two).any()
    assert set(one.tolist()) == set(range(4))


def test_one_cluster_is_the_centralised_agent_with_its_width():
    problem = ragged(NETWORKS["grid"], 6)
    for lag in (0, 1):
        one, two = (
            cb.play(problem, policy, rounds=12, seed=6)
            for policy in (
                cb.DynUCB(clusters=1, alpha=0.5, ridge=0.6, lag=lag),
                cb.Centralised(
                    kernel=cb.kernels.Linear(), width=cb.width.Logarithmic(0.5), ridge=0.6, lag=lag
                ),
            )
        )
        np.testing.assert_array_equal(one.actions, two.actions)
        np.testing.assert_array_equal(one.bytes, two.bytes)


def test_two_clearly_separate_tasks_are_told_apart():
    truth = np.arange(12) % 2
    problem = cb.problems.clustered_linear(
        cb.Network.complete(12), dim=3, noise=0.05, seed=1, clusters=truth.tolist()
    )
    run = cb.play(problem, cb.DynUCB(clusters=2, alpha=0.2, lag=1), rounds=80)
    np.testing.assert_array_equal(run.similarity(80), truth[:, None] == truth[None, :])


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"clusters": 0}, "clusters must be"),
        ({"alpha": -1.0}, "alpha must be >= 0, got -1"),
        ({"ridge": 0.0}, "ridge must be above 0"),
        ({"lag": 2}, "lag must be 0 or 1, got 2"),
    ],
    ids=range(4),
)
def test_settings_out_of_range_are_refused(settings, complaint):
    with pytest.raises(ParameterError, match=complaint):
        cb.DynUCB(**settings)
