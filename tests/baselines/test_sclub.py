"""SCLUB: its literal twin, clusters that split and merge, and what it refuses."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines import Simulation
from coopbandits.errors import ParameterError
from reference import clusters as literal
from worlds import NETWORKS, ragged, world_of


def labels(K_z):
    return [int(row.argmax()) for row in K_z]


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize(
    ("alpha_theta", "seed"), [(0.0, 0), (0.3, 1), (0.5, 2), (0.7, 3), (1.0, 5), (9.0, 4)]
)
def test_sclub_takes_the_literal_algorithms_decisions(alpha_theta, lag, seed):
    problem = ragged(NETWORKS["grid"], seed, rounds=16)
    expected, found = literal.sclub(
        world_of(problem, seed),
        9,
        alpha=0.4,
        alpha_theta=alpha_theta,
        ridge=0.8,
        rounds=16,
        seed=seed,
        lag=lag,
    )
    sclub = cb.SCLUB(alpha=0.4, alpha_theta=alpha_theta, ridge=0.8, lag=lag)
    run = cb.play(problem, sclub, rounds=16, seed=seed)
    np.testing.assert_array_equal(run.actions, expected)
    for t in range(1, 17):
        assert labels(run.similarity(t)) == found[t - 1]
    # the cases differ: all part, nobody does, and clusters split and merge again
    sizes = [len(set(row)) for row in found]
    if alpha_theta in (0.0, 9.0):
        assert sizes[-1] == {0.0: 9, 9.0: 1}[alpha_theta]
    elif alpha_theta == 1.0:
        assert max(sizes) > 1
        assert (np.diff(sizes) < 0).any()


def test_phases_have_twice_as_many_steps_as_the_one_before():
    problem = ragged(NETWORKS["grid"], 0)
    for lag, phases in ((0, [3, 4, 4, 5]), (1, [1, 1, 2, 2])):  # 9 steps a round, or one
        player = cb.SCLUB(lag=lag).player(
            Simulation(network=problem.network, contexts=np.ones((1, 3)), rounds=4, seed=0)
        )
        seen = []
        for t in range(1, 5):
            player.play(t, problem.round(t, 0))
            seen.append(player.phase)
        assert seen == phases


@pytest.mark.parametrize("lag", [0, 1])
def test_clearly_separate_clusters_are_found_and_one_stays_one(lag):
    tasks = np.arange(12) % 3
    for truth in (tasks, np.zeros(12, dtype=int)):
        problem = cb.problems.clustered_linear(
            cb.Network.complete(12), dim=3, noise=0.05, seed=1, clusters=truth.tolist()
        )
        run = cb.play(problem, cb.SCLUB(alpha=0.2, alpha_theta=1.0, lag=lag), rounds=80)
        np.testing.assert_array_equal(run.similarity(80), truth[:, None] == truth[None, :])


def test_a_cluster_that_never_splits_decides_as_club_does():
    problem = ragged(NETWORKS["grid"], 6)
    for lag in (0, 1):
        one, two = (
            cb.play(problem, algorithm, rounds=12, seed=6)
            for algorithm in (
                cb.SCLUB(alpha=0.5, alpha_theta=1e6, lag=lag),
                cb.CLUB(alpha=0.5, alpha_2=1e6, lag=lag),
            )
        )
        np.testing.assert_array_equal(one.actions, two.actions)
        np.testing.assert_array_equal(one.bytes, two.bytes)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"alpha": -1.0}, "alpha must be >= 0, got -1"),
        ({"alpha_theta": "much"}, "alpha_theta must be a number"),
        ({"ridge": 0.0}, "ridge must be above 0"),
        ({"lag": 2}, "lag must be 0 or 1, got 2"),
    ],
    ids=range(4),
)
def test_settings_out_of_range_are_refused(settings, complaint):
    with pytest.raises(ParameterError, match=complaint):
        cb.SCLUB(**settings)
