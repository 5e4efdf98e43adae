"""Every engine plays the same run: what the lockstep tests share."""

import numpy as np

import coopbandits as cb
from coopbandits.engines import applies
from coopbandits.policy import plan
from reference import formulas
from worlds import network_contexts

KERNELS = {
    "linear": (cb.kernels.Linear(), formulas.linear),
    "rbf": (cb.kernels.RBF(lengthscale=1.5), lambda x, y: formulas.rbf(x, y, 1.5)),
    "matern": (cb.kernels.Matern(nu=1.5), lambda x, y: formulas.matern(x, y, 1.5)),
}
# for ten agents
GIVEN = [
    cb.similarity.Alone(),
    cb.similarity.Same(),
    cb.similarity.Clusters([0, 1, 0, 1, 2, 0, 1, 2, 2, 0]),
    cb.similarity.Laplacian(0.5),
]


def literal(k_x, K_z, compose=np.multiply):
    """The joint kernel as the twins take it."""

    def kernel(u, X, w, Y):
        return compose(K_z[np.ix_(u, w)], formulas.gram(k_x, X, Y))

    return kernel


def similarity_of(network, seed):
    """A K_z of full support and correlations between 0 and 1, and as a matrix."""
    z = network_contexts(len(network), seed)
    K_z = formulas.gram(formulas.rbf, z, z)
    return cb.similarity.Known(contexts=z, kernel=cb.kernels.RBF()), K_z


def all_engines(problem, policy, seed, rounds=12):
    """Play on every engine that can; all must do the same."""
    exact = cb.play(problem, policy, rounds=rounds, seed=seed, engine="exact")
    others = ["messages"]
    if policy.act.judges and applies("statistics", policy, plan(policy, problem.network)):
        others.append("statistics")
    for engine in others:
        other = cb.play(problem, policy, rounds=rounds, seed=seed, engine=engine)
        assert (exact.engine, other.engine) == ("exact", engine)
        np.testing.assert_array_equal(exact.actions, other.actions)
        np.testing.assert_array_equal(exact.propensities, other.propensities)
        np.testing.assert_array_equal(exact.messages, other.messages)
        np.testing.assert_array_equal(exact.bytes, other.bytes)
        assert [t for t, _ in exact.estimates] == [t for t, _ in other.estimates]
        for (_, K_z), (_, other_K_z) in zip(exact.estimates, other.estimates, strict=True):
            np.testing.assert_allclose(K_z, other_K_z, atol=1e-9)
    return exact
