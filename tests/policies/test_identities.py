"""Policies that must decide alike, because they are the same algorithm in that case."""

import numpy as np
import pytest

import coopbandits as cb
from worlds import NETWORKS, WIDTHS, network_contexts, ragged

RBF = cb.kernels.RBF()


def actions(problem, policy, rounds=12, seed=3):
    return cb.play(problem, policy, rounds=rounds, seed=seed).actions


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
def test_coop_on_a_graph_without_edges_is_kernel_ucb_alone(width):
    network = cb.Network.from_edges([], agents=5)
    problem = ragged(network)
    coop = cb.CoopKernelUCB(kernel=RBF, similarity=cb.similarity.Same(), ttl=3, width=width)
    alone = cb.KernelUCB(kernel=RBF, width=width)
    np.testing.assert_array_equal(actions(problem, coop), actions(problem, alone))


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
@pytest.mark.parametrize("name", ["grid", "erdos-renyi", "directed"])
def test_eager_and_coop_with_alone_are_kernel_ucb_for_every_width(name, width):
    problem = ragged(NETWORKS[name])
    alone = actions(problem, cb.KernelUCB(kernel=RBF, width=width))
    for make in (cb.EagerKernelUCB, cb.CoopKernelUCB):
        policy = make(kernel=RBF, similarity=cb.similarity.Alone(), ttl=2, width=width)
        np.testing.assert_array_equal(actions(problem, policy), alone)


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
def test_coop_with_same_on_a_complete_graph_is_one_agent_with_v_observations_a_round(width):
    # all lags are 1: after t rounds each agent holds all V·t observations, as one agent would
    V, rounds = 4, 10
    network = cb.Network.complete(V)
    problem = ragged(network, rounds=rounds)
    policy = cb.CoopKernelUCB(kernel=RBF, similarity=cb.similarity.Same(), ttl=1, width=width)
    run = cb.play(problem, policy, rounds=rounds, seed=3)
    # the self-normalised width holds for V agents at once there, for one here: δ/V is the same
    if isinstance(width, cb.width.SelfNormalised):
        width = cb.width.SelfNormalised(norm=width.norm, noise=width.noise, delta=width.delta / V)
    one = cb.KernelUCB(kernel=RBF, width=width).agent(0, cb.Network.path(1))
    for t in range(1, rounds + 1):
        offer = problem.round(t, 3)
        if t > 1:
            for v in range(V):
                chosen = one.decide(offer.contexts[offer.agents == v]).index
                assert chosen == run.actions[t - 1, v]
        for v in range(V):
            row = offer.starts[v] + run.actions[t - 1, v]
            one.observe(offer.contexts[row], offer.rewards[row])
    assert one.known == V * rounds


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
def test_linucb_is_kernel_ucb_with_the_linear_kernel(width):
    problem = ragged(NETWORKS["grid"])
    np.testing.assert_array_equal(
        actions(problem, cb.LinUCB(width=width, ridge=0.6)),
        actions(problem, cb.KernelUCB(kernel=cb.kernels.Linear(), width=width, ridge=0.6)),
    )


def linucb_by_hand(problem, v, *, alpha, ridge, rounds, seed):
    """LinUCB in the primal: A = λI + Σxxᵀ, b = Σyx, argmax θ̂ᵀx + α·√(xᵀA⁻¹x)."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, v]))
    A, b, taken = None, None, []
    for t in range(1, rounds + 1):
        offer = problem.round(t, seed)
        mine = offer.agents == v
        D, y = offer.contexts[mine], offer.rewards[mine]
        if A is None:
            A, b = ridge * np.eye(D.shape[1]), np.zeros(D.shape[1])
            a = int(rng.integers(len(D)))
        else:
            inverse = np.linalg.inv(A)
            bounds = D @ inverse @ b + alpha * np.sqrt(np.einsum("kd,de,ke->k", D, inverse, D))
            a = int(np.argmax(bounds))
        A, b = A + np.outer(D[a], D[a]), b + y[a] * D[a]
        taken.append(a)
    return taken


def test_linucb_takes_the_primal_algorithms_decisions():
    problem = ragged(NETWORKS["grid"], rounds=30)
    run = actions(problem, cb.LinUCB(eta=0.8, ridge=0.6), rounds=30)
    for v in range(9):
        expected = linucb_by_hand(problem, v, alpha=0.8, ridge=0.6, rounds=30, seed=3)
        assert run[:, v].tolist() == expected


def test_oful_is_linucb_with_the_self_normalised_width():
    problem = ragged(NETWORKS["grid"])
    width = cb.width.SelfNormalised(norm=0.5, noise=0.1, delta=0.2)
    np.testing.assert_array_equal(
        actions(problem, cb.OFUL(width=width)), actions(problem, cb.LinUCB(width=width))
    )


def test_a_linear_network_kernel_is_linucb_with_weighted_observations():
    # the paper's Examples (§3.2): K = (z_vᵀz_v')·(xᵀx') is a linear model on the products z ⊗ x
    network, rounds = NETWORKS["grid"], 12
    z = network_contexts(9, dim=2)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    problem = ragged(network, rounds=rounds)
    similarity = cb.similarity.Known(contexts=z, kernel=cb.kernels.Linear())
    eager = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=similarity, ttl=4, eta=0.6)
    run = cb.play(problem, eager, rounds=rounds, seed=3)
    lag = np.maximum(network.distances, 1)
    A_ridge = np.eye(2 * 3)
    for v in range(9):
        for t in range(2, rounds + 1):
            A, b = A_ridge.copy(), np.zeros(6)
            for w in range(9):
                for s in range(1, t + 1):
                    if s + lag[w, v] <= t:
                        offer = problem.round(s, 3)
                        row = offer.starts[w] + run.actions[s - 1, w]
                        phi = np.kron(z[w], offer.contexts[row])
                        A, b = A + np.outer(phi, phi), b + offer.rewards[row] * phi
            offer = problem.round(t, 3)
            D = np.array([np.kron(z[v], x) for x in offer.contexts[offer.agents == v]])
            inverse = np.linalg.inv(A)
            bounds = D @ inverse @ b + 0.6 * np.sqrt(np.einsum("kd,de,ke->k", D, inverse, D))
            assert int(np.argmax(bounds)) == run.actions[t - 1, v]


def test_two_rbf_kernels_are_one_rbf_kernel_on_concatenated_scaled_contexts():
    # the same observations under K_z ⊙ K_x and under one kernel on x̂ = [x/σ_x; z/σ_z]
    network, rounds = cb.Network.complete(4), 10
    z = network_contexts(4)
    problem = ragged(network, rounds=rounds)
    split = cb.EagerKernelUCB(
        kernel=cb.kernels.RBF(0.7),
        similarity=cb.similarity.Known(contexts=z, kernel=cb.kernels.RBF(1.9)),
    )
    nested = [
        [
            np.hstack([x / 0.7, np.tile(z[v] / 1.9, (len(x), 1))])
            for v, x in enumerate(np.split(offer.contexts, offer.starts[1:]))
        ]
        for offer in problem.rounds
    ]
    rewards = [np.split(offer.rewards, offer.starts[1:]) for offer in problem.rounds]
    joined = cb.problems.table(network, nested, rewards)
    naive = cb.NaiveCooperation(kernel=cb.kernels.RBF())
    np.testing.assert_array_equal(actions(problem, split, rounds), actions(joined, naive, rounds))


def test_naive_cooperation_is_eager_with_same():
    problem = ragged(NETWORKS["erdos-renyi"])
    for width in WIDTHS:
        np.testing.assert_array_equal(
            actions(problem, cb.NaiveCooperation(kernel=RBF, ttl=2, width=width)),
            actions(
                problem,
                cb.EagerKernelUCB(kernel=RBF, similarity=cb.similarity.Same(), ttl=2, width=width),
            ),
        )


def test_centralised_with_lag_one_is_naive_cooperation_on_the_complete_graph():
    problem = ragged(cb.Network.complete(6))
    np.testing.assert_array_equal(
        actions(problem, cb.Centralised(kernel=RBF, lag=1)),
        actions(problem, cb.NaiveCooperation(kernel=RBF)),
    )


def test_coop_on_a_complete_graph_is_eager():
    problem = ragged(cb.Network.complete(6))
    similarity = cb.similarity.Laplacian(0.5)
    np.testing.assert_array_equal(
        actions(problem, cb.CoopKernelUCB(kernel=RBF, similarity=similarity)),
        actions(problem, cb.EagerKernelUCB(kernel=RBF, similarity=similarity)),
    )


def test_known_clusters_split_the_problem_into_one_for_each_cluster():
    # news across clusters is worth nothing: each cluster plays as if the other were not there
    network, labels = cb.Network.complete(6), np.array([0, 1, 0, 1, 0, 1])
    problem = ragged(network)
    policy = cb.EagerKernelUCB(
        kernel=RBF,
        similarity=cb.similarity.Clusters(labels),
        width=cb.width.InformationGain(norm=0.5, noise=0.2),
    )
    run = actions(problem, policy)
    within = cb.Network.from_edges(
        [(i, j) for i in range(6) for j in range(i) if labels[i] == labels[j]], agents=6
    )
    apart = cb.problems.table(
        within,
        [np.split(offer.contexts, offer.starts[1:]) for offer in problem.rounds],
        [np.split(offer.rewards, offer.starts[1:]) for offer in problem.rounds],
    )
    naive = cb.NaiveCooperation(kernel=RBF, width=policy.width)
    np.testing.assert_array_equal(run, actions(apart, naive))


def test_the_kronecker_composition_decides_as_hadamard_and_sum_does_not():
    problem = ragged(NETWORKS["grid"], rounds=12)
    similarity = cb.similarity.Laplacian(0.3)
    runs = {
        compose: actions(
            problem,
            cb.EagerKernelUCB(kernel=RBF, similarity=similarity, ttl=2, compose=compose),
        )
        for compose in ("hadamard", "kronecker", "sum")
    }
    np.testing.assert_array_equal(runs["hadamard"], runs["kronecker"])
    assert (runs["hadamard"] != runs["sum"]).any()
