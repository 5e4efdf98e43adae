"""LK-GP-UCB: its pseudocode, and the penalty that its kernel's norm is."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from lockstep_engines import all_engines
from reference import formulas, social
from worlds import NETWORKS, ragged, world_of


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("name", ["path", "star"])
def test_it_takes_the_literal_algorithms_decisions(name, lag):
    network, rho, ridge, seed, rounds = NETWORKS[name], 0.4, 0.3, 5, 4
    problem = ragged(network, seed, rounds=rounds)

    def width(K):
        return formulas.self_normalised(K, ridge, norm=1.2, noise=0.3, delta=0.1, agents=1)

    expected = social.laplacian_kernel_ucb(
        world_of(problem, seed),
        network.adjacency,
        formulas.rbf,
        rho=rho,
        ridge=ridge,
        width=width,
        rounds=rounds,
        seed=seed,
        lag=lag,
    )
    policy = cb.LaplacianKernelUCB(
        kernel=cb.kernels.RBF(),
        rho=rho,
        ridge=ridge,
        width=cb.width.SelfNormalised(norm=1.2, noise=0.3, delta=0.1),
        lag=lag,
    )
    run = all_engines(problem, policy, seed, rounds=rounds)
    np.testing.assert_array_equal(run.actions, expected)


@pytest.mark.parametrize("name", ["path", "erdos-renyi", "two parts"])
def test_the_norm_is_the_penalty_that_binds_neighbours(rng, name):
    # F = Σ a_i K(·, x̃_i): aᵀKa = Σ‖f_v − f_u‖² over the edges + ρ·Σ‖f_v‖² (their Theorem 2.1)
    network, rho, n = NETWORKS[name], 0.7, 12
    agents, X = rng.integers(len(network), size=n), rng.normal(size=(n, 2))
    a = rng.normal(size=n)
    policy = cb.LaplacianKernelUCB(kernel=cb.kernels.RBF(), rho=rho)
    K_z = policy.similarity.matrix(network)
    K_x = formulas.gram(formulas.rbf, X, X)
    norm = a @ (K_z[np.ix_(agents, agents)] * K_x) @ a
    # f_v = Σ_i c_vi k(·, x_i), so ⟨f_v, f_u⟩ = c_vᵀ K_x c_u
    c = K_z[:, agents] * a
    edges = sum((c[i] - c[j]) @ K_x @ (c[i] - c[j]) for i, j in network.edges)
    assert norm == pytest.approx(edges + rho * sum(row @ K_x @ row for row in c), rel=1e-10)


def test_with_the_linear_kernel_and_rho_1_it_is_goblin():
    problem = ragged(NETWORKS["grid"], 1)
    width = cb.width.Logarithmic(0.4)
    runs = [
        cb.play(problem, policy, rounds=12, seed=1)
        for policy in (
            cb.GoBLin(alpha=0.4),
            cb.LaplacianKernelUCB(kernel=cb.kernels.Linear(), width=width),
        )
    ]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)


def test_a_large_rho_leaves_agents_alone_and_a_small_one_makes_them_one():
    # ρ·(L + ρI)⁻¹ → I, and → J/V on a connected network; the kernel is scaled to undo the factor
    network = NETWORKS["grid"]
    problem = ragged(network, 2, rounds=8)
    V = len(network)
    for rho, scale, other in [
        (1e7, 1e7, cb.KernelUCB(kernel=cb.kernels.RBF(), eta=0.5)),
        (1e-7, 1e-7 * V, cb.Centralised(kernel=cb.kernels.RBF(), eta=0.5, lag=1)),
    ]:
        policy = cb.LaplacianKernelUCB(
            kernel=scale * cb.kernels.RBF(), rho=rho, width=cb.width.Fixed(0.5), lag=1
        )
        np.testing.assert_array_equal(
            cb.play(problem, policy, rounds=8, seed=2).actions,
            cb.play(problem, other, rounds=8, seed=2).actions,
        )


def test_a_rho_that_makes_no_kernel_is_refused():
    with pytest.raises(ParameterError, match="rho must be above 0, got -1"):
        cb.LaplacianKernelUCB(kernel=cb.kernels.RBF(), rho=-1.0)
