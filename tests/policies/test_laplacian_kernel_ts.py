"""LK-GP-TS: its literal twin, and the posterior that it draws from."""

import dataclasses

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from lockstep_engines import all_engines
from reference import formulas, social
from worlds import NETWORKS, Recorded, ragged, world_of


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("name", ["path", "star"])
def test_it_takes_the_literal_algorithms_decisions(name, lag):
    network, rho, ridge, seed, rounds = NETWORKS[name], 0.4, 0.3, 5, 5
    problem = ragged(network, seed, rounds=rounds)

    def width(K):
        return formulas.self_normalised(K, ridge, norm=1.2, noise=0.3, delta=0.1, agents=1)

    told = {"rho": rho, "ridge": ridge, "width": width, "rounds": rounds, "seed": seed, "lag": lag}
    world = world_of(problem, seed)
    expected, bounds = (
        social.laplacian_kernel_ucb(world, network.adjacency, formulas.rbf, draws=draws, **told)
        for draws in (True, False)
    )
    policy = cb.LaplacianKernelTS(
        kernel=cb.kernels.RBF(),
        rho=rho,
        ridge=ridge,
        width=cb.width.SelfNormalised(norm=1.2, noise=0.3, delta=0.1),
        lag=lag,
    )
    run = all_engines(problem, policy, seed, rounds=rounds)
    np.testing.assert_array_equal(run.actions, expected)
    assert (expected != bounds).any()  # a draw is no upper bound


def test_with_the_linear_kernel_draws_are_of_goblins_posterior(rng):
    # w_v of N(M⁻¹b, M⁻¹) with M = (I + L) ⊗ I_d + Σφφᵀ: GoB.Lin's regression, with w = 1
    network, d, n, draws = cb.Network.path(3), 2, 9, 800
    policy = cb.LaplacianKernelTS(cb.kernels.Linear(), width=cb.width.Fixed(1.0), lag=1)
    agent = dataclasses.replace(policy, act=Recorded()).agent(1, network, seed=4)
    M, b = np.kron(np.eye(3) + social.laplacian(network.adjacency), np.eye(d)), np.zeros(3 * d)
    for v in np.arange(n) % 3:
        x, y = rng.normal(size=d), rng.normal()
        agent.observe(x, y, origin=int(v))
        phi = np.kron(np.eye(3)[v], x)
        M, b = M + np.outer(phi, phi), b + y * phi
    Q = rng.normal(size=(3, d))
    for _ in range(draws):
        agent.decide(Q)  # no reward comes: the posterior stays what it is
    values = np.array(agent.policy.act.rated)  # type: ignore[attr-defined]
    mine = slice(d, 2 * d)
    mean = Q @ np.linalg.solve(M, b)[mine]
    covariance = Q @ np.linalg.inv(M)[mine, mine] @ Q.T
    variance = np.diagonal(covariance)
    off = values - mean
    assert (np.abs(off.mean(axis=0)) < 5 * np.sqrt(variance / draws)).all()
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / draws)
    assert (np.abs(off.T @ off / draws - covariance) < 5 * spread).all()


def test_it_is_the_row_of_laplacian_kernel_ucb_but_for_its_act():
    one = cb.LaplacianKernelTS(cb.kernels.RBF(), rho=2.0, ridge=0.5, lag=1)
    two = cb.LaplacianKernelUCB(cb.kernels.RBF(), rho=2.0, ridge=0.5, lag=1)
    assert dataclasses.replace(one, act=two.act, name=two.name) == two
    assert one.act == cb.act.Sample()
    assert cb.LaplacianKernelTS(cb.kernels.RBF(), samples=3).act == cb.act.Sample(3)


def test_a_rho_that_makes_no_kernel_is_refused():
    with pytest.raises(ParameterError, match="rho must be above 0, got -1"):
        cb.LaplacianKernelTS(kernel=cb.kernels.RBF(), rho=-1.0)
