"""coop-UCB2: its pseudocode, what consensus conserves, and what it refuses."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.baselines.consensus_ucb import consensus_matrix
from coopbandits.engines import Simulation
from coopbandits.errors import NetworkError, ParameterError
from reference import social
from worlds import NETWORKS, ragged, world_of

CONNECTED = ["path", "star", "spiked star", "grid", "erdos-renyi", "barabasi-albert"]


def problem_of(network, seed=0, **settings):
    return cb.problems.fully_cooperative(
        network, **{"dim": 2, "actions": 4, "noise": 0.3, "norm": 2.0, "seed": seed, **settings}
    )


def player_of(problem, algorithm, rounds, seed=0):
    """Play some rounds and return who played them, with the arms and rewards (T, V)."""
    contexts = problem.round(1, seed).contexts
    player = algorithm.player(
        Simulation(network=problem.network, contexts=contexts, rounds=rounds, seed=seed)
    )
    arms, rewards = [], []
    for t in range(1, rounds + 1):
        offer = problem.round(t, seed)
        rows = player.play(t, offer)
        arms.append(rows - offer.starts)
        rewards.append(offer.rewards[rows])
    return player, np.array(arms), np.array(rewards)


@pytest.mark.parametrize("kappa", [0.3, 1.0])
@pytest.mark.parametrize("name", CONNECTED)
@pytest.mark.parametrize("seed", [0, 1])
def test_it_takes_the_literal_algorithms_decisions(name, kappa, seed):
    network = NETWORKS[name]
    problem = problem_of(network, seed)
    expected, n, s = social.coop_ucb2(
        world_of(problem, seed),
        network.adjacency,
        noise=0.3,
        exploration=1.3,
        kappa=kappa,
        rounds=40,
        seed=seed,
    )
    algorithm = cb.ConsensusUCB(noise=0.3, exploration=1.3, kappa=kappa)
    run = cb.play(problem, algorithm, rounds=40, seed=seed)
    np.testing.assert_array_equal(run.actions, expected)
    player, arms, _ = player_of(problem, algorithm, 40, seed)
    np.testing.assert_array_equal(arms, expected)
    np.testing.assert_allclose(player.counts, n, rtol=1e-9)
    np.testing.assert_allclose(player.sums, s, rtol=1e-9, atol=1e-12)


def test_an_arm_out_of_sight_is_pulled_next():
    # two agents with κ = 1 swap all they know; whoever knows nothing of an arm pulls it
    network, seed = cb.Network.path(2), 1
    problem = problem_of(network, seed, actions=2)
    expected, _, _ = social.coop_ucb2(
        world_of(problem, seed), network.adjacency, noise=0.3, exploration=1.1, kappa=1.0,
        rounds=20, seed=seed,
    )  # fmt: skip
    algorithm = cb.ConsensusUCB(noise=0.3, kappa=1.0)
    run = cb.play(problem, algorithm, rounds=20, seed=seed)
    np.testing.assert_array_equal(run.actions, expected)
    assert run.actions[0, 0] != run.actions[0, 1]  # else nobody loses sight of an arm
    player, _, _ = player_of(problem, algorithm, 2, seed)
    assert (player.counts == 0).any()


@pytest.mark.parametrize("name", [*CONNECTED, "two parts"])
@pytest.mark.parametrize("kappa", [0.2, 1.0])
def test_consensus_conserves_what_was_seen_in_each_component(name, kappa):
    network = NETWORKS[name]
    P = consensus_matrix(network, kappa)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_array_equal(P, P.T)
    assert (P >= 0).all()
    assert not P[~(network.adjacency | np.eye(len(network), dtype=bool))].any()
    player, arms, rewards = player_of(problem_of(network), cb.ConsensusUCB(kappa=kappa), 25)
    for members in network.components:
        for k in range(4):
            pulled = arms[:, members] == k
            assert player.counts[members, k].sum() == pytest.approx(pulled.sum(), rel=1e-10)
            assert player.sums[members, k].sum() == pytest.approx(
                rewards[:, members][pulled].sum(), rel=1e-10
            )


def test_on_a_connected_network_its_matrix_is_the_papers():
    network = NETWORKS["erdos-renyi"]
    L = social.laplacian(network.adjacency)
    np.testing.assert_allclose(
        consensus_matrix(network, 0.7), np.eye(len(network)) - 0.7 / L.diagonal().max() * L
    )


@pytest.mark.parametrize("name", CONNECTED)
def test_without_new_pulls_estimates_come_to_the_pooled_mean(name):
    problem = problem_of(NETWORKS[name])
    player, arms, rewards = player_of(problem, cb.ConsensusUCB(kappa=0.5), 12)
    P = np.linalg.matrix_power(player.similarity(), 4000)
    means = (P @ player.sums) / (P @ player.counts)
    for k in range(4):
        np.testing.assert_allclose(means[:, k], rewards[arms == k].mean(), rtol=1e-6)


def test_on_a_complete_network_the_right_kappa_pools_at_once():
    # κ = (V − 1)/V makes P = J/V
    V = 6
    algorithm = cb.ConsensusUCB(kappa=(V - 1) / V)
    player, arms, rewards = player_of(problem_of(cb.Network.complete(V)), algorithm, 15)
    for k in range(4):
        np.testing.assert_allclose(player.counts[:, k], (arms == k).sum() / V)
        np.testing.assert_allclose(
            player.sums[:, k] / player.counts[:, k], rewards[arms == k].mean()
        )


def test_components_play_as_networks_of_their_own():
    network = NETWORKS["two parts"]  # 0-1-2, 3-4, 5
    problem = problem_of(network)
    run = cb.play(problem, cb.ConsensusUCB(noise=0.3), rounds=30)
    first = network.components[0]  # agents draw from streams by their number: 0, 1, 2
    expected, _, _ = social.coop_ucb2(
        world_of(problem, 0),
        network.adjacency[np.ix_(first, first)],
        noise=0.3,
        exploration=1.1,
        kappa=0.5,
        rounds=30,
        seed=0,
    )
    np.testing.assert_array_equal(run.actions[:, first], expected)
    # an agent on its own mixes nothing: its counts are its pulls
    player, arms, _ = player_of(problem, cb.ConsensusUCB(noise=0.3), 30)
    np.testing.assert_array_equal(player.counts[5], np.bincount(arms[:, 5], minlength=4))


def test_everyone_pulls_every_arm_once_first():
    run = cb.play(problem_of(NETWORKS["grid"]), cb.ConsensusUCB(), rounds=4)
    assert (np.sort(run.actions, axis=0) == np.arange(4)[:, None]).all()


def test_each_sends_its_estimates_to_each_neighbour_in_every_round():
    network = NETWORKS["grid"]  # 12 edges
    run = cb.play(problem_of(network), cb.ConsensusUCB(), rounds=3)
    np.testing.assert_array_equal(run.messages, [24] * 3)
    # the header of a message, and n̂ and ŝ of 4 arms
    header = len(cb.Message(1, 0, np.ones(1), 1.0, 1).to_bytes()) - 16
    np.testing.assert_array_equal(run.bytes, [24 * (header + 8 * 2 * 4)] * 3)
    np.testing.assert_array_equal(run.listens, network.adjacency | np.eye(9, dtype=bool))


def test_cooperating_agents_lose_less_than_agents_on_their_own():
    together = problem_of(cb.Network.complete(10), actions=8)
    apart = problem_of(cb.Network.from_edges([], agents=10), actions=8)
    algorithm = cb.ConsensusUCB(noise=0.3, kappa=0.9)
    regret = [cb.play(p, algorithm, rounds=150).regret_per_agent[-1] for p in (together, apart)]
    assert regret[0] < 0.6 * regret[1]


@pytest.mark.parametrize("kind", ["fresh", "ragged", "each its own", "turned round", "fewer"])
def test_decision_sets_that_change_are_refused(kind):
    network = cb.Network.path(3)
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(4, 2))
    offered = np.tile(arms, (2, 3, 1, 1))
    if kind == "fresh":
        problem = cb.problems.clustered_linear(network)
    elif kind == "ragged":
        problem = ragged(network)
    else:
        if kind == "each its own":
            offered[:, 2] = rng.normal(size=(4, 2))
        elif kind == "turned round":
            offered[1, 1] = arms[::-1]
        else:
            offered = [[list(arms)] * 3, [list(arms[:3])] * 3]
        sizes = [[len(row) for row in sets] for sets in offered]
        rewards = [[np.zeros(size) for size in row] for row in sizes]
        problem = cb.problems.table(network, offered, rewards)
    with pytest.raises(ParameterError, match=r"same actions for all agents in all rounds.*fully"):
        cb.play(problem, cb.ConsensusUCB(), rounds=2)


def test_arcs_without_a_way_back_are_refused():
    problem = problem_of(NETWORKS["directed"])
    with pytest.raises(NetworkError, match="carry news both ways"):
        cb.play(problem, cb.ConsensusUCB(), rounds=2)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"noise": -1.0}, "noise must be >= 0"),
        ({"exploration": None}, "exploration must be a number"),
        ({"kappa": 0.0}, "kappa must be above 0 and at most 1, got 0"),
        ({"kappa": 1.1}, "kappa must be above 0 and at most 1, got 1.1"),
    ],
    ids=range(4),
)
def test_settings_out_of_range_are_refused(settings, complaint):
    with pytest.raises(ParameterError, match=complaint):
        cb.ConsensusUCB(**settings)
