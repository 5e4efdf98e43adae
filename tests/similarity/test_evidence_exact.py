"""What `Evidence` estimates, beside dense Gaussian likelihoods of all partitions of four agents."""

from dataclasses import replace

import numpy as np
import pytest

from coopbandits.gp.intercept import Intercept
from coopbandits.kernels import RBF, Linear
from coopbandits.similarity import Evidence, gibbs
from coopbandits.similarity.evidence import _PRIOR, WEIGHTS
from coopbandits.similarity.noise_levels import noise_levels
from coopbandits.similarity.similarity import estimated
from learnt_views import learner_of, tasks, view
from reference.partitions import log_crp, partitions


def sampled_world(rng, constants):
    """Four agents of two tasks, with noise and constants of their own: (X_u, y_u)."""
    theta, samples = tasks(rng, 2, dim=3)[[0, 1, 0, 1]], []
    for u, (n, noise) in enumerate(zip([3, 5, 4, 6], [0.3, 0.3, 0.9, 0.3], strict=True)):
        X = rng.normal(size=(n, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        samples.append((X, X @ theta[u] + noise * rng.normal(size=n) + constants * u))
    return samples


def exact_row(samples, features, level, s2, me, intercept):
    """E[K_z(me, ·) | y], by dense log densities of raw rewards under every partition and share."""
    own = np.concatenate([np.full(len(y), u) for u, (_, y) in enumerate(samples)])
    phi, y = np.vstack(features), np.concatenate([y for _, y in samples])
    N, alphas = len(samples), gibbs.concentrations(len(samples))
    table, rows = [], []
    for labels in map(np.array, partitions(N)):
        prior = np.logaddexp.reduce([log_crp(labels, alpha) for alpha in alphas])
        for (a, b, c), share in zip(WEIGHTS, _PRIOR, strict=True):
            K_z = a + b * np.equal.outer(labels, labels) + c * np.eye(N)
            C = s2 * K_z[np.ix_(own, own)] * (phi @ phi.T) + np.diag(level[own])
            if intercept is not None:  # c_u ~ N(0, τ²σ_u²/λ)
                ratio = intercept.variance / intercept.ridge
                C += ratio * np.equal.outer(own, own) * np.sqrt(np.outer(level[own], level[own]))
            fit, logdet = y @ np.linalg.solve(C, y), np.linalg.slogdet(C)[1]
            table.append(prior + share - 0.5 * (fit + logdet))
            rows.append(K_z[me])
    weight = np.exp(np.array(table) - max(table))
    return weight @ np.array(rows) / weight.sum()


@pytest.mark.parametrize(
    ("kernel", "intercept"),
    [
        (Linear(), None),
        (Linear(), Intercept(4.0, 0.7)),
        pytest.param(RBF(1.5), None, marks=pytest.mark.slow),
    ],
    ids=["linear", "with constants", "leading features"],
)
def test_the_mean_of_k_z_is_that_of_exact_bayes(rng, kernel, intercept):
    me, samples = 1, sampled_world(rng, 0.0 if intercept is None else 0.4)
    learner = learner_of(Evidence(contexts=False), 4, kernel)
    if intercept is not None:
        learner = learner.with_intercept(intercept)
    views = view(learner, samples, me=me)
    table, index = learner._read(views), views.index[0]
    (s, _, p), rows = learner._spectrum(table, index)
    level, s2 = noise_levels(s, p, table.q[index], table.n[index], np.ones(4, bool), rows, me)
    features = [learner.basis.features(kernel, X) for X, _ in samples]
    if features[0].shape[1] > 12:  # through the leading directions of all agents' sums
        W = np.linalg.eigh(table.S[index].sum(axis=0))[1][:, -12:]
        features = [phi @ W for phi in features]
    found = []
    for k in range(1_200):
        loadings = estimated(learner, views)
        views = replace(views, known=views.known + 1, state=loadings.state)
        if k >= 20:  # burn-in
            found.append(loadings.expected[0, me])
    expected = exact_row(samples, features, level, s2, me, intercept)
    assert np.abs(expected[[0, 2, 3]] - expected[[0, 2, 3]].mean()).max() > 0.02
    np.testing.assert_allclose(np.mean(found, axis=0), expected, atol=0.03)
