"""Is running consensus an instance of the kernel, as the paper says in section 6? (Reading 19.)

The claim: K_x is diagonal over arms, and K_z(i, j) = [A^d(i,j)]_ij is the power of the graph's
Laplacian. docs/baselines.md has the proofs of what is tested here.
"""

import networkx
import numpy as np
import pytest

import coopbandits as cb
from coopbandits.baselines.consensus_ucb import consensus_matrix
from coopbandits.engines import Simulation
from coopbandits.errors import SimilarityError
from coopbandits.gp.compositions import Hadamard, JointKernel
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.gp.posterior import Posterior
from reference import social
from worlds import NETWORKS

GRAPHS = [
    cb.Network.from_networkx(networkx.convert_node_labels_to_integers(graph))
    for graph in networkx.graph_atlas_g()
    if 2 <= len(graph) <= 6 and networkx.is_connected(graph)
]


def by_distance(matrix, network):
    """K_z(i, j) = [A^d(i,j)]_ij, literally."""
    V, d = len(network), network.distances.astype(int)
    powers = [np.linalg.matrix_power(matrix, k) for k in range(d.max() + 1)]
    return np.array([[powers[d[i, j]][i, j] for j in range(V)] for i in range(V)])


def smallest(K):
    return np.linalg.eigvalsh(K)[0]


def test_a_triangle_is_the_smallest_counterexample():
    triangle = cb.Network.complete(3)
    K_z = by_distance(social.laplacian(triangle.adjacency), triangle)
    np.testing.assert_array_equal(K_z, [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    np.testing.assert_array_equal(K_z @ np.ones(3), -np.ones(3))  # the eigenvalue −1
    with pytest.raises(SimilarityError, match=r"not positive semidefinite.*eigenvalue is -1"):
        cb.similarity.Known(matrix=K_z)


def test_powers_of_the_laplacian_make_a_kernel_on_trees_and_on_nothing_else():
    assert len(GRAPHS) == 1 + 2 + 6 + 21 + 112
    trees = 0
    for network in GRAPHS:
        K_z = by_distance(social.laplacian(network.adjacency), network)
        tree = len(network.edges) == len(network) - 1
        assert (smallest(K_z) > -1e-9) == tree
        if tree:  # rank one, and whoever is an odd number of steps away counts with a minus
            sign = (-1.0) ** network.distances[0]
            np.testing.assert_array_equal(K_z, np.outer(sign, sign))
        trees += tree
    assert trees == 1 + 1 + 2 + 3 + 6


def test_even_powers_of_p_are_kernels_and_odd_ones_if_kappa_is_small():
    swap = consensus_matrix(cb.Network.path(2), 1.0)
    assert smallest(swap) == pytest.approx(-1.0)  # P = [[0, 1], [1, 0]]
    for network in GRAPHS:
        L = social.laplacian(network.adjacency)
        most = L.diagonal().max() / np.linalg.eigvalsh(L)[-1]  # d_max/λ_max(L), at least 1/2
        assert most >= 0.5 - 1e-12
        for kappa in (0.5, min(1.0, most), 1.0):
            P = consensus_matrix(network, kappa)
            assert smallest(P @ P) > -1e-12
            for power in (P, P @ P @ P):
                assert (smallest(power) > -1e-9) == (kappa <= most + 1e-12)


@pytest.mark.parametrize("kappa", [0.2, 0.6, 1.0])
def test_by_distance_powers_of_p_are_kernels_on_all_small_graphs(kappa):
    # no proof is known to us that larger ones are
    for network in GRAPHS:
        assert smallest(by_distance(consensus_matrix(network, kappa), network)) > -1e-12


def test_one_step_may_be_what_no_kernel_says():
    # After one pull each, consensus says P·y, and two agents with κ = 1 believe each other and not
    # themselves. A kernel says K_z(K_z + λI)⁻¹y, whose eigenvalues are never below 0.
    network = cb.Network.path(2)
    problem = cb.problems.fully_cooperative(network, contexts=[[1.0]], seed=3)
    player = cb.ConsensusUCB(kappa=1.0).player(
        Simulation(network=network, contexts=np.ones((2, 1)), rounds=1, seed=3)
    )
    offer = problem.round(1, 3)
    player.play(1, offer)
    np.testing.assert_array_equal(player.sums / player.counts, offer.rewards[::-1, None])
    for similarity in (
        cb.similarity.Same(),
        cb.similarity.Laplacian(0.01),
        cb.similarity.Known(matrix=[[1.0, -1.0], [-1.0, 1.0]]),
    ):
        K_z = similarity.matrix(network)
        said = []
        for y in np.eye(2):
            posterior = Posterior(
                JointKernel(cb.kernels.Linear(), DenseKernel(K_z), Hadamard()), 0.1
            )
            posterior.extend(np.arange(2), np.ones((2, 1)), y)
            said.append(posterior.predict(np.arange(2), np.ones((2, 1))).mean)
        assert smallest(np.array(said)) > -1e-12
        assert said[0][0] > 0.3  # its own reward always counts


def test_what_an_observation_is_worth_changes_with_its_age_and_no_fixed_k_z_can_do_that():
    # the weight of u's reward in v's sum, an age of 1, 2, … rounds after it was seen
    P = consensus_matrix(NETWORKS["path"], 0.5)
    weights = [np.linalg.matrix_power(P, age) for age in (1, 2, 3, 2000)]
    assert weights[0][0, 2] == 0 < weights[1][0, 2] < weights[2][0, 2]
    np.testing.assert_allclose(weights[3], 1 / len(P), rtol=1e-3)


@pytest.mark.parametrize("name", ["path", "star", "grid", "erdos-renyi"])
def test_one_discounted_step_is_the_laplacian_kernel_where_p_has_no_negative_eigenvalue(name):
    # K_z = λ·Σ_m (qP)^m is positive semidefinite, its ridge regression after one pull each is
    # q·P·y, and K_z + λI is (L + ρI)⁻¹ up to a factor, ρ = d_max(1 − q)/(κq)
    network, kappa, q, ridge = NETWORKS[name], 0.5, 0.99, 0.3
    V = len(network)
    P = consensus_matrix(network, kappa)
    K_z = ridge * sum(np.linalg.matrix_power(q * P, m) for m in range(1, 4000))
    assert smallest(K_z) > -1e-9
    largest = network.adjacency.sum(axis=1).max()
    rho = largest * (1 - q) / (kappa * q)
    laplacian = cb.similarity.Laplacian(rho).matrix(network)
    np.testing.assert_allclose(
        K_z + ridge * np.eye(V), ridge * largest / (kappa * q) * laplacian, rtol=1e-9, atol=1e-12
    )
    y = np.random.default_rng(1).normal(size=V)
    posterior = Posterior(JointKernel(cb.kernels.Linear(), DenseKernel(K_z), Hadamard()), ridge)
    posterior.extend(np.arange(V), np.ones((V, 1)), y)
    np.testing.assert_allclose(
        posterior.predict(np.arange(V), np.ones((V, 1))).mean, q * P @ y, rtol=1e-8
    )


def test_averaging_with_everyone_at_once_is_the_kernel_of_one_function():
    # P = J/V: V·n̂ and V·ŝ are the pooled count and sum, and K_z = 1 with one-hot arms predicts
    # sum/(count + λ): the same mean as λ → 0, for every agent in every round
    V, K, ridge = 5, 3, 0.7
    network = cb.Network.complete(V)
    problem = cb.problems.fully_cooperative(network, contexts=np.eye(K), noise=0.5, seed=2)
    player = cb.ConsensusUCB(kappa=(V - 1) / V).player(
        Simulation(network=network, contexts=np.eye(K), rounds=12, seed=2)
    )
    same = JointKernel(
        cb.kernels.Linear(), DenseKernel(cb.similarity.Same().matrix(network)), Hadamard()
    )
    posterior = Posterior(same, ridge)
    for t in range(1, 13):
        offer = problem.round(t, 2)
        rows = player.play(t, offer)
        posterior.extend(np.arange(V), offer.contexts[rows], offer.rewards[rows])
        for v in range(V):
            np.testing.assert_allclose(
                posterior.predict(np.full(K, v), np.eye(K)).mean,
                V * player.sums[v] / (V * player.counts[v] + ridge),
                rtol=1e-10,
            )
