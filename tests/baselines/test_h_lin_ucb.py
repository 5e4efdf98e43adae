"""H-LinUCB: the literal algorithm's decisions, DisLinUCB at ε = 0, and LinUCB alone beyond."""

import math

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines import Simulation
from coopbandits.errors import InputError
from reference import servers
from worlds import NETWORKS, ragged, world_of

LINEAR = cb.kernels.Linear()
WIDTHS = [
    cb.width.Fixed(0.7),
    cb.width.SelfNormalised(norm=0.5, noise=0.2),
    cb.width.InformationGain(norm=0.5, noise=0.2),
]


def self_normalised(L, n, ridge, agents):
    return 0.5 + 0.2 / math.sqrt(ridge) * math.sqrt(L + 2 * math.log(agents / 0.1))


@pytest.mark.parametrize(
    ("name", "threshold"), [("path", 0.0), ("path", 2.0), ("two parts", 2.0), ("directed", 6.0)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.4, 1.0, 1.5])
@pytest.mark.parametrize("keep", [False, True])
def test_all_agents_take_the_literal_algorithms_decisions(name, epsilon, keep, threshold):
    network, T = NETWORKS[name], 14
    problem = ragged(network, rounds=T)
    width = cb.width.SelfNormalised(norm=0.5, noise=0.2, delta=0.1)
    alpha = None if epsilon == 1.0 else 0.3
    algorithm = cb.HLinUCB(
        dissimilarity=epsilon, ridge=0.6, width=width, alpha=alpha, threshold=threshold, keep=keep
    )
    run = cb.play(problem, algorithm, rounds=T, seed=2)
    tau = {0.0: 14, 0.2: 14, 0.4: 6, 1.0: 1, 1.5: 0}[epsilon]
    if epsilon == 0:
        alpha = math.inf
    elif alpha is None:
        alpha = math.sqrt(3) / (epsilon * len(network) * T)
    expected, synchronised = servers.h_lin_ucb(
        world_of(problem, 2),
        len(network),
        3,
        epsilon=epsilon,
        ridge=0.6,
        width=self_normalised,
        alpha=alpha,
        threshold=threshold,
        tau=tau,
        keep=keep,
        rounds=T,
        seed=2,
    )
    np.testing.assert_array_equal(run.actions, expected)
    # n, 3 numbers of b and 6 of S go up from each agent and come down to each
    sent = [2 * len(network) if t in synchronised else 0 for t in range(1, T + 1)]
    assert run.messages.tolist() == sent
    assert run.bytes.tolist() == [m * (24 + 8 * 10) for m in sent]
    if epsilon == 0.2 and threshold == 2.0:
        assert 0 < len(synchronised) < T


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
@pytest.mark.parametrize("threshold", [3.0, None])
def test_agents_that_are_alike_share_for_ever_as_dis_lin_ucb(width, threshold):
    network = NETWORKS["erdos-renyi"]
    problem = ragged(network)
    ours = cb.HLinUCB(dissimilarity=0.0, width=width, threshold=threshold)
    D = ours.trigger(agents=10, rounds=12, dim=3)
    run = cb.play(problem, ours, rounds=12)
    dis = cb.play(problem, cb.DisKernelUCB(kernel=LINEAR, width=width, threshold=D), rounds=12)
    np.testing.assert_array_equal(run.actions, dis.actions)
    np.testing.assert_array_equal(run.messages > 0, dis.messages > 0)


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
def test_alike_and_sharing_after_every_round_is_naive_cooperation_on_a_complete_graph(width):
    problem = ragged(cb.Network.complete(6))
    run = cb.play(
        problem, cb.HLinUCB(dissimilarity=0.0, width=width, threshold=0.0), rounds=12, seed=4
    )
    naive = cb.play(problem, cb.NaiveCooperation(width=width), rounds=12, seed=4)
    np.testing.assert_array_equal(run.actions, naive.actions)


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
def test_agents_that_differ_by_more_than_one_are_alone_from_the_start(width):
    problem = ragged(NETWORKS["grid"])
    run = cb.play(problem, cb.HLinUCB(dissimilarity=1.1, width=width, ridge=0.4), rounds=12)
    alone = cb.play(problem, cb.LinUCB(width=width, ridge=0.4), rounds=12)
    np.testing.assert_array_equal(run.actions, alone.actions)
    assert run.messages.sum() == 0
    np.testing.assert_array_equal(run.listens, np.eye(9, dtype=bool))
    np.testing.assert_array_equal(run.similarity(12), np.eye(9))


def test_the_default_is_oful_alone_where_agents_differ():
    problem = ragged(NETWORKS["grid"])
    run = cb.play(problem, cb.HLinUCB(dissimilarity=2.0), rounds=12)
    np.testing.assert_array_equal(run.actions, cb.play(problem, cb.OFUL(), rounds=12).actions)


@pytest.mark.parametrize("keep", [True, False])
def test_after_the_shared_rounds_each_is_an_agent_alone_with_its_own_data_or_none(keep):
    network, T, tau = NETWORKS["path"], 12, 4
    problem = ragged(network, rounds=T)
    algorithm = cb.HLinUCB(dissimilarity=0.5, eta=0.6, threshold=1.0, keep=keep)
    run = cb.play(problem, algorithm, rounds=T)
    assert algorithm.shared_rounds(T) == tau
    assert run.messages[:tau].sum() > 0
    assert run.messages[tau:].sum() == 0
    for v in range(len(network)):
        agent = cb.LinUCB(eta=0.6).agent(v, network)
        for t in range(1, T + 1):
            offer = problem.round(t, 0)
            chosen = offer.starts[v] + run.actions[t - 1, v]
            if t > tau and agent.known:  # one that knows nothing chooses at random
                assert agent.preview(offer.contexts[offer.agents == v]) == run.actions[t - 1, v]
            if keep or t > tau:
                agent.observe(offer.contexts[chosen], offer.rewards[chosen])
    np.testing.assert_array_equal(run.similarity(tau), np.ones((7, 7)))
    np.testing.assert_array_equal(run.similarity(tau + 1), np.eye(7))


@pytest.mark.parametrize(
    ("epsilon", "tau"), [(0, 500), (1e-200, 500), (0.04, 500), (0.05, 400), (0.1, 100), (0.7, 2),
                         (1.0, 1), (1.01, 0), (50.0, 0)]
)  # fmt: skip
def test_the_shared_rounds_are_one_over_the_squared_dissimilarity(epsilon, tau):
    assert cb.HLinUCB(dissimilarity=epsilon).shared_rounds(500) == pytest.approx(tau, abs=1)
    if epsilon not in (0.05, 0.1):  # whose square is not a float
        assert cb.HLinUCB(dissimilarity=epsilon).shared_rounds(500) == tau


def test_the_other_numbers_are_those_of_the_authors_code():
    algorithm, sizes = cb.HLinUCB(dissimilarity=0.2), {"agents": 30, "rounds": 400, "dim": 5}
    assert algorithm.weighing(**sizes) == pytest.approx(math.sqrt(5) / (0.2 * 30 * 400))
    assert algorithm.trigger(**sizes) == pytest.approx(math.sqrt(400 * math.log(12000) / 5 / 30))
    assert cb.HLinUCB(dissimilarity=0.2, alpha=0.7).weighing(**sizes) == 0.7
    assert cb.HLinUCB(dissimilarity=0.0, alpha=0.7).weighing(**sizes) == math.inf


def test_weights_bound_what_corrupted_rewards_can_do():
    # with all rewards off by ε, the mean at x is off by at most α·ε·n·‖x‖, and by more without α
    network, T, epsilon, alpha = cb.Network.complete(5), 10, 0.3, 0.02
    rng = np.random.default_rng(1)
    theta, X, asked = np.array([0.5, -0.3]), rng.random(size=(T, 5, 3, 2)), rng.random(size=(9, 2))
    problem = cb.problems.table(network, X, X @ theta + epsilon)

    def errors(**weighing):
        algorithm = cb.HLinUCB(dissimilarity=epsilon, threshold=0.0, eta=0.5, **weighing)
        player = algorithm.player(Simulation(network=network, contexts=X[0, 0], rounds=T, seed=0))
        for t in range(1, T + 1):
            player.play(t, problem.round(t, 0))
        S, b, n = player.common.S[0], player.common.b[0], player.common.n[0]
        assert n == 5 * T
        A = np.eye(2) + S
        norms = np.sqrt(np.einsum("id,di->i", asked, np.linalg.solve(A, asked.T)))
        off = asked @ np.linalg.solve(A, b - S @ theta)  # from what right rewards would give
        return np.abs(off), alpha * epsilon * n * norms

    off, limit = errors(alpha=alpha)
    assert (off <= limit).all()
    off, limit = errors(alpha=1e6)
    assert (off > limit).any()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"dissimilarity": -0.1}, "dissimilarity must be >= 0, got -0.1"),
        ({"dissimilarity": None}, "dissimilarity must be a number"),
        ({"ridge": 0}, "ridge must be above 0"),
        ({"alpha": 0}, "alpha must be above 0"),
        ({"threshold": -2}, "threshold must be >= 0"),
        ({"keep": 1}, "keep must be True or False, got 1"),
        ({"width": cb.width.Fixed}, "is no width"),
        ({"eta": -1.0}, "eta must be >= 0"),
        ({"name": 1}, "name must be a text"),
    ],
    ids=range(9),
)
def test_bad_settings_are_refused(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        cb.HLinUCB(**{"dissimilarity": 0.1, **arguments})
