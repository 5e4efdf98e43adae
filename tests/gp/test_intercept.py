"""Agents' own constants: sums with constants integrated out against the dense formula."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import coopbandits as cb
from coopbandits.agent.learning import believed
from coopbandits.gp.intercept import Intercept, as_statistics, summarised
from coopbandits.similarity.hypotheses import Hypotheses
from reference import weighted

V, M, RIDGE = 4, 3, 0.7


def data(seed, n=25):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(V, size=n),
        rng.normal(0.5, 1.0, size=(n, M)),
        rng.normal(size=n),
        rng.uniform(0.05, 1.0, size=n),
    )


def kernel_of(K_z):
    return lambda u, X, w, Y: K_z[np.ix_(u, w)] * (X @ Y.T)


def sums_of(agents, X, y, weights, intercept):
    rows = summarised(X, y, intercept)
    rows[:, 1:] *= weights[:, None]
    sums = np.zeros((V, rows.shape[1]))
    np.add.at(sums, agents, rows)
    return sums


@given(seed=st.integers(0, 10**6), tau=st.sampled_from([0.1, 1.0, 10.0, 500.0]))
def test_sums_with_constants_integrated_out_are_the_dense_posterior(seed, tau):
    agents, X, y, weights = data(seed)
    rng = np.random.default_rng([seed, 1])
    root = rng.normal(size=(V, 2))
    K_z = root @ root.T + np.diag(rng.uniform(0.1, 1.0, V))
    network, v = cb.Network.complete(V), int(rng.integers(V))
    lags = network.lags(1)
    given_ = cb.similarity.network_kernel(cb.similarity.Known(matrix=K_z), network)
    hypotheses = Hypotheses.of(lags, np.array([v]), given_)
    intercept = Intercept(tau**2, RIDGE)
    found = believed(hypotheses, sums_of(agents, X, y, weights, intercept), M, RIDGE, intercept)
    queries = rng.normal(size=(5, M))
    mean, variance, logdet = weighted.believe(
        kernel_of(K_z), agents, X, y, weights, v, queries, ridge=RIDGE, tau=tau
    )
    asked = found.ask(intercept.features(queries))
    np.testing.assert_allclose(asked[0], mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(asked[1], variance, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.logdet, logdet, rtol=1e-10)


def test_a_constant_added_to_all_rewards_changes_beliefs_by_one_over_tau_squared():
    agents, X, y, _ = data(0, n=40)
    queries = np.random.default_rng(5).normal(size=(6, M))

    def changed(tau):
        policy = cb.EagerKernelUCB(
            kernel=cb.kernels.Linear(), similarity=cb.similarity.Same(), intercept=tau, ridge=RIDGE
        )
        gaps = []
        for shift in (0.0, 10.0):
            agent = policy.agent(0, cb.Network.complete(V))
            for u, x, reward in zip(agents, X, y, strict=True):
                agent.observe(x, reward + shift, origin=int(u))
            mean = agent.predict(queries).mean
            gaps.append(mean - mean[0])
        return np.abs(gaps[1] - gaps[0]).max()

    sizes = np.array([changed(tau) for tau in (4.0, 8.0, 16.0, 32.0)])
    np.testing.assert_allclose(sizes[:-1] / sizes[1:], 4.0, rtol=0.05)


@given(seed=st.integers(0, 10**6))
def test_the_joint_law_of_weights_and_constant_is_that_of_one_weight_more(seed):
    """Alone, an agent with a constant has features (φ, 1), and a prior variance τ² of the last."""
    agents, X, y, weights = data(seed)
    own = agents == 0
    tau = 2.0
    intercept = Intercept(tau**2, RIDGE)
    sums = sums_of(agents[own] * 0, X[own], y[own], weights[own], intercept)
    statistics = as_statistics(sums[:1], M, intercept)
    A = RIDGE * np.eye(M) + statistics.S[0]
    mean = np.linalg.solve(A, statistics.b[0])
    both, spread = intercept.own(sums[:1], M).joint(mean[None], (RIDGE * np.linalg.inv(A))[None])
    phi = intercept.features(X[own])
    prior = np.diag([1.0] * M + [tau**2])
    W = np.diag(weights[own])
    precision = np.linalg.inv(prior) + phi.T @ W @ phi / RIDGE
    expected = np.linalg.inv(precision)
    np.testing.assert_allclose(spread[0], expected, atol=1e-10)
    np.testing.assert_allclose(both[0], expected @ phi.T @ W @ y[own] / RIDGE, atol=1e-10)


@pytest.mark.parametrize("tau", [0.0, -1.0, np.nan, "1", 1e4])
def test_an_intercept_that_makes_no_sense_is_refused(tau):
    with pytest.raises(cb.errors.CoopBanditsError, match="intercept"):
        cb.LinUCB(intercept=tau)


def test_an_intercept_too_large_beside_the_ridge_names_scale():
    with pytest.raises(cb.errors.ParameterError, match=r"at most 1e\+06.*scale="):
        cb.LinUCB(intercept=1001.0)
    assert cb.LinUCB(intercept=1000.0).intercept == 1000.0


def test_policies_with_and_without_a_constant_have_different_fingerprints():
    policies = [
        cb.LinUCB(),
        cb.LinUCB(intercept=1.0),
        cb.LinUCB(intercept=2.0),
        cb.LinUCB(scale=2.0),
        cb.LinUCB(forget=cb.forget.Window(3)),
        cb.LinUCB(forget=cb.forget.Exponential(3)),
        cb.LinUCB(scaling=cb.Scaling(0.0, 2.0)),
    ]
    assert len({policy.fingerprint for policy in policies}) == len(policies)
