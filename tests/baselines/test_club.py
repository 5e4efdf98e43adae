"""CLUB: its pseudocode, the clusters that it finds, and what it refuses."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines import Simulation
from coopbandits.errors import InputError, ParameterError
from reference import social
from worlds import NETWORKS, ragged, world_of

PAIRS = [(i, j) for i in range(9) for j in range(i)]


def labels(K_z):
    return [int(row.argmax()) for row in K_z]


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize(("alpha_2", "seed"), [(0.0, 0), (0.25, 1), (0.5, 2), (0.7, 3), (5.0, 4)])
def test_club_takes_the_printed_algorithms_decisions(alpha_2, lag, seed):
    problem = ragged(NETWORKS["grid"], seed)
    expected, clusters = social.club(
        world_of(problem, seed),
        9,
        alpha=0.4,
        alpha_2=alpha_2,
        ridge=0.8,
        edges=PAIRS,
        rounds=12,
        seed=seed,
        lag=lag,
    )
    club = cb.CLUB(alpha=0.4, alpha_2=alpha_2, ridge=0.8, lag=lag)
    run = cb.play(problem, club, rounds=12, seed=seed)
    np.testing.assert_array_equal(run.actions, expected)
    for t in range(1, 13):
        assert labels(run.similarity(t)) == clusters[t - 1]
    # the cases differ: nobody parts, all part, and clusters come apart one after the other
    counts = [len(set(found)) for found in clusters]
    if alpha_2 in (0.0, 5.0):
        assert counts[-1] == {0.0: 9, 5.0: 1}[alpha_2]
    else:
        assert counts[0] < counts[-1]


def test_a_sparse_first_graph_is_drawn_connected_and_cut_as_printed():
    problem = ragged(NETWORKS["grid"], 4)
    club = cb.CLUB(alpha=0.4, alpha_2=0.4, p=0.4)
    told = {"network": problem.network, "contexts": np.ones((1, 3)), "rounds": 12}
    player = club.player(Simulation(**told, seed=4))
    edges = np.argwhere(np.triu(player.edges))
    assert 8 <= len(edges) < len(PAIRS)
    assert set(social.linked(edges.tolist(), 9)) == {0}
    other = club.player(Simulation(**told, seed=5))
    assert (other.edges != player.edges).any()
    expected, _ = social.club(
        world_of(problem, 4),
        9,
        alpha=0.4,
        alpha_2=0.4,
        ridge=1.0,
        edges=edges.tolist(),
        rounds=12,
        seed=4,
        lag=0,
    )
    np.testing.assert_array_equal(cb.play(problem, club, rounds=12, seed=4).actions, expected)


@pytest.mark.parametrize("lag", [0, 1])
def test_clearly_separate_clusters_are_found_and_one_stays_one(lag):
    network = cb.Network.complete(12)
    tasks = np.arange(12) % 3
    for truth in (tasks, np.zeros(12, dtype=int)):
        problem = cb.problems.clustered_linear(
            network, dim=3, noise=0.05, seed=1, clusters=truth.tolist()
        )
        run = cb.play(problem, cb.CLUB(alpha=0.2, alpha_2=1.0, lag=lag), rounds=60)
        np.testing.assert_array_equal(run.similarity(60), truth[:, None] == truth[None, :])
    assert run.estimates[-1][0] == 1  # of the one task: nothing ever changed


def test_once_clusters_are_found_they_beat_being_alone_and_being_one():
    truth = np.arange(20) % 2
    problem = cb.problems.clustered_linear(
        cb.Network.path(20), dim=6, noise=0.3, seed=0, clusters=truth.tolist()
    )
    width = cb.width.Logarithmic(0.3)
    club, alone, one = (
        cb.play(problem, policy, rounds=200)
        for policy in (
            cb.CLUB(alpha=0.3, alpha_2=1.0, lag=1),
            cb.LinUCB(width=width),
            cb.Centralised(kernel=cb.kernels.Linear(), width=width, lag=1),
        )
    )
    np.testing.assert_array_equal(club.similarity(100), truth[:, None] == truth[None, :])
    late = [run.regret[100:].mean() for run in (club, alone, one)]
    assert late[0] < 0.8 * late[1] < late[2]


def test_a_cluster_that_never_splits_is_the_centralised_agent_with_its_width():
    problem = ragged(NETWORKS["grid"], 6)
    for lag in (0, 1):
        club = cb.CLUB(alpha=0.5, alpha_2=1e6, lag=lag, ridge=0.6)
        one = cb.Centralised(
            kernel=cb.kernels.Linear(), width=cb.width.Logarithmic(0.5), lag=lag, ridge=0.6
        )
        ours, other = (cb.play(problem, p, rounds=12, seed=6) for p in (club, one))
        np.testing.assert_array_equal(ours.actions, other.actions)
        np.testing.assert_array_equal(ours.messages, other.messages)
        np.testing.assert_array_equal(ours.bytes, other.bytes)


def test_deleted_edges_stay_deleted_and_clusters_only_split():
    problem = ragged(NETWORKS["grid"], 0)
    contexts = problem.round(1, 0).contexts
    player = cb.CLUB(alpha_2=0.3).player(
        Simulation(network=problem.network, contexts=contexts, rounds=12, seed=0)
    )
    edges, K_z, refreshes = player.edges.copy(), player.similarity(), 0
    for t in range(1, 13):
        player.play(t, problem.round(t, 0))
        assert (player.edges <= edges).all()
        assert (player.similarity() <= K_z).all()
        assert (player.refreshes > refreshes) == bool((player.similarity() != K_z).any())
        edges, K_z, refreshes = player.edges.copy(), player.similarity(), player.refreshes
    assert refreshes > 0


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"alpha": -1.0}, "alpha must be >= 0, got -1"),
        ({"alpha_2": "much"}, "alpha_2 must be a number"),
        ({"p": 0.0}, "p must be a probability above 0, up to 1, got 0"),
        ({"p": 1.5}, "p must be a probability"),
        ({"ridge": 0.0}, "ridge must be above 0"),
        ({"lag": 2}, "lag must be 0 or 1, got 2"),
    ],
    ids=range(6),
)
def test_settings_out_of_range_are_refused(settings, complaint):
    with pytest.raises(ParameterError, match=complaint):
        cb.CLUB(**settings)


def test_what_cannot_be_computed_with_is_refused():
    network = cb.Network.path(2)
    problem = cb.problems.table(network, np.full((2, 2, 2, 2), 1e8), np.ones((2, 2, 2)))
    with pytest.raises(InputError, match="kernel is too large beside the ridge"):
        cb.play(problem, cb.CLUB(), rounds=2)
    problem = ragged(cb.Network.path(30))
    with pytest.raises(ParameterError, match=r"p=0\.001 gave no connected network"):
        cb.play(problem, cb.CLUB(p=0.001), rounds=2)
