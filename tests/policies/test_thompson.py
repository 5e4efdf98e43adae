"""Policies that act on a draw from their posterior: its law, and what the draw must not change."""

import dataclasses
from statistics import NormalDist

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.act import Sample
from coopbandits.features import Nystrom
from coopbandits.gp.compositions import Hadamard, JointKernel
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.gp.posterior import Posterior
from coopbandits.policy import plan
from reference import formulas
from worlds import NETWORKS, Recorded, network_contexts, news, ragged

RBF = cb.kernels.RBF()
MAKE = [cb.CoopKernelTS, cb.EagerKernelTS]


def recorded(policy):
    return dataclasses.replace(policy, act=Recorded())


def informed(policy, rng, n=6, dim=2):
    """An agent with n observations of its own, and these."""
    agent = policy.agent(0, cb.Network.path(1), seed=4)
    X, y = rng.normal(size=(n, dim)), rng.normal(size=n)
    for x, reward in zip(X, y, strict=True):
        agent.observe(x, reward)
    return agent, X, y


def posterior(k, X, y, Q, ridge):
    """Mean and covariance at Q, by an inverse."""
    inverse = np.linalg.inv(formulas.gram(k, X, X) + ridge * np.eye(len(X)))
    W = formulas.gram(k, Q, X) @ inverse
    return W @ y, formulas.gram(k, Q, Q) - W @ formulas.gram(k, X, Q)


@pytest.mark.parametrize(
    ("policy", "k"),
    [
        (cb.LinTS(eta=0.5, ridge=0.3), formulas.linear),
        (cb.KernelTS(kernel=RBF, eta=0.8, ridge=0.3), formulas.rbf),
    ],
    ids=["linear", "rbf"],
)
def test_draws_have_the_posteriors_mean_and_covariance(rng, policy, k):
    draws, Q = 800, rng.normal(size=(4, 2))
    agent, X, y = informed(recorded(policy), rng)
    for _ in range(draws):
        agent.decide(Q)  # no reward comes: the posterior stays what it is
    values = np.array(agent.policy.act.rated)
    mean, covariance = posterior(k, X, y, Q, 0.3)
    covariance *= policy.width.eta**2 / 0.3  # w = η/√λ
    variance = np.diagonal(covariance)
    off = values - mean
    assert (np.abs(off.mean(axis=0)) < 5 * np.sqrt(variance / draws)).all()
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / draws)
    assert (np.abs(off.T @ off / draws - covariance) < 5 * spread).all()
    correlations = covariance / np.sqrt(np.outer(variance, variance))
    assert np.abs(correlations - np.eye(4)).max() > 0.5  # independent draws would be found out


def test_an_action_is_taken_as_often_as_it_is_the_best(rng):
    # two actions: P(f(x) > f(x')) in closed form, w = 1 as η² = λ
    agent, X, y = informed(cb.KernelTS(kernel=RBF, eta=0.5, ridge=0.25), rng)
    draws, Q = 800, np.array([[0.4, 0.1], [1.0, -0.3]])
    mean, covariance = posterior(formulas.rbf, X, y, Q, 0.25)
    apart = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    p = NormalDist().cdf((mean[1] - mean[0]) / apart)
    taken = np.mean([agent.decide(Q).index for _ in range(draws)])
    assert 0.1 < p < 0.9
    assert abs(taken - p) < 5 * np.sqrt(p * (1 - p) / draws)


@pytest.mark.parametrize("w", [1.0, 2.5])
def test_a_linear_draw_is_that_of_weights_drawn_around_ridge_regression(rng, w):
    # φᵀθ̃ with θ̃ ~ N(μ, w²λA⁻¹), A = λI + XᵀX, has the covariance of a draw of w·Σ^½
    ridge, X, y, D = 0.4, rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=(5, 3))
    kernel = JointKernel(cb.kernels.Linear(), DenseKernel(np.ones((1, 1))), Hadamard())
    known = Posterior(kernel, ridge)
    known.extend(np.zeros(7, dtype=int), X, y)
    belief = known.predict(np.zeros(5, dtype=int), D, joint=True)
    A = ridge * np.eye(3) + X.T @ X
    np.testing.assert_allclose(belief.mean, D @ np.linalg.solve(A, X.T @ y), atol=1e-12)
    primal = w**2 * ridge * D @ np.linalg.inv(A) @ D.T
    np.testing.assert_allclose(w**2 * belief.covariance, primal, atol=1e-12)


@pytest.mark.parametrize(
    "similarity",
    [cb.similarity.Laplacian(1.0), cb.similarity.Evidence()],
    ids=["given", "learnt"],
)
def test_without_width_a_draw_is_the_mean_and_all_are_greedy(similarity):
    problem = ragged(NETWORKS["grid"], 2)
    greedy = {"kernel": cb.kernels.Linear(), "similarity": similarity, "ttl": 2, "eta": 0.0}
    for one, two in [
        (cb.CoopKernelTS, cb.CoopKernelUCB),
        (cb.EagerKernelTS, cb.EagerKernelUCB),
    ]:
        runs = [cb.play(problem, make(**greedy), rounds=8, seed=1) for make in (one, two)]
        np.testing.assert_array_equal(runs[0].actions, runs[1].actions)


def test_with_width_draws_are_neither_greedy_nor_bounds_and_differ_by_seed():
    problem = cb.problems.clustered_linear(NETWORKS["grid"], dim=3, actions=5)
    answers = {"kernel": cb.kernels.Linear(), "similarity": problem.similarity, "ttl": 2}
    draw, other, bound, greedy = (
        cb.play(problem, policy, rounds=12, seed=1).actions
        for policy in (
            cb.EagerKernelTS(**answers),
            dataclasses.replace(cb.EagerKernelTS(**answers), ridge=1.0 + 1e-9),
            cb.EagerKernelUCB(**answers),
            cb.EagerKernelTS(**answers, eta=0.0),
        )
    )
    assert (draw != bound).mean() > 0.05
    assert (draw != greedy).mean() > 0.05
    np.testing.assert_array_equal(draw, other)  # a draw is continuous in what is known
    offered = np.random.default_rng(0).normal(size=(6, 2))
    chosen = set()
    for seed in range(20):
        agent = cb.LinTS().agent(0, cb.Network.path(1), seed=seed)
        agent.observe([0.1, 0.1], 0.0)
        chosen.add(agent.decide(offered).index)
    assert len(chosen) > 2


BASIS = Nystrom(np.random.default_rng(3).normal(size=(4, 2)))


@pytest.mark.parametrize("features", [None, BASIS], ids=["exact", "features"])
def test_contexts_that_are_offered_twice_get_the_same_draw(rng, features):
    # beyond the span of the features, too
    agent, *_ = informed(recorded(cb.KernelTS(kernel=RBF, features=features)), rng)
    Q = rng.normal(size=(3, 2)) * [1.0, 3.0]
    for _ in range(20):
        assert agent.decide(np.vstack([Q, Q, Q[:1]])).index < 3
    rated = np.array(agent.policy.act.rated)
    np.testing.assert_allclose(rated[:, 3:6], rated[:, :3], atol=1e-9)
    np.testing.assert_allclose(rated[:, 6], rated[:, 0], atol=1e-9)
    assert np.ptp(rated, axis=0).min() > 0.1


def test_a_draw_with_features_has_the_covariance_that_they_and_the_rest_hold(rng):
    # K − φφᵀ, what the features cannot hold, stays as it was before anything was known
    ridge, draws, Q = 0.3, 800, rng.normal(size=(4, 2)) * 2
    policy = cb.KernelTS(kernel=RBF, eta=np.sqrt(ridge), ridge=ridge, features=BASIS)
    agent, X, y = informed(recorded(policy), rng)
    for _ in range(draws):
        agent.decide(Q)
    phi, at = BASIS.features(RBF, X), BASIS.features(RBF, Q)
    A = ridge * np.eye(phi.shape[1]) + phi.T @ phi
    mean = at @ np.linalg.solve(A, phi.T @ y)
    covariance = ridge * at @ np.linalg.inv(A) @ at.T + RBF(Q, Q) - at @ at.T
    off, variance = np.array(agent.policy.act.rated) - mean, np.diagonal(covariance)
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / draws)
    assert (np.abs(off.T @ off / draws - covariance) < 5 * spread).all()
    outside = RBF(Q, Q) - at @ at.T
    assert (np.abs(outside - np.diag(np.diagonal(outside))) > 10 * spread).any()  # jointly


def test_a_set_of_one_action_leaves_no_choice(rng):
    agent, *_ = informed(cb.KernelTS(kernel=RBF), rng)
    decision = agent.decide([[0.3, 0.2]])
    assert decision.index == 0
    assert decision.std > 0  # σ of the posterior, not of the draw


def test_a_preview_uses_up_no_random_number(rng):
    agent, *_ = informed(cb.KernelTS(kernel=RBF, eta=3.0), rng)
    sets = rng.normal(size=(30, 5, 2))
    previews = []
    for offered in sets:
        before = agent._rng.bit_generator.state
        previews.append(agent.preview(offered))
        assert agent.preview(offered) == previews[-1]
        assert agent._rng.bit_generator.state == before
        assert agent.decide(offered).index == previews[-1]
        assert agent._rng.bit_generator.state != before
    assert len(set(previews)) > 2


class Raising(Recorded):
    def score(self, mean, std, width):
        if len(self.rated) == 1:
            raise FloatingPointError("a mistake of one's own")
        return super().score(mean, std, width)


def test_a_decision_that_raises_uses_up_no_random_number(rng):
    policy = dataclasses.replace(cb.KernelTS(kernel=RBF), act=Raising())
    agent, *_ = informed(policy, rng)
    offered = rng.normal(size=(4, 2))
    agent.decide(offered)
    before = agent._rng.bit_generator.state
    with pytest.raises(FloatingPointError, match="of one's own"):
        agent.decide(offered)
    assert agent._rng.bit_generator.state == before


SIMILARITIES = {
    "known": cb.similarity.Known(contexts=network_contexts(6), kernel=RBF),
    "evidence": cb.similarity.Evidence(),
    "embedding": cb.similarity.MeanEmbedding(0.5, kernel=cb.kernels.Linear()),
    "frozen": cb.similarity.MeanEmbedding(0.5, kernel=cb.kernels.Linear(), refresh="frozen"),
    "coregionalised": cb.similarity.Coregionalised(rank=2, steps=2),
    "laplacian": cb.similarity.Laplacian.by_evidence([0.1, 1.0]),
    "population": cb.similarity.Population.by_evidence([0.0, 0.7, 1.0]),
}


@pytest.mark.parametrize(
    ("name", "features"),
    [*((name, None) for name in SIMILARITIES), ("known", BASIS), ("evidence", BASIS)],
    ids=lambda given: given if isinstance(given, str) else "features" if given else "exact",
)
def test_a_restored_agent_draws_the_same_to_the_bit(name, features, network):
    kernel = RBF if features is not None else cb.kernels.Linear()
    policy = cb.EagerKernelTS(
        kernel=kernel, similarity=SIMILARITIES[name], ttl=2, features=features
    )

    def live(agent, rng, first, rounds):
        drawn = []
        for t in range(first, first + rounds):
            decision = agent.decide(rng.normal(size=(5, 2)))
            drawn.append((decision.index, decision.mean, decision.std))
            agent.reward(decision.id, float(rng.normal()))
            x, extra = rng.normal(size=2), plan(policy, network).attached(2)
            attached = np.append([2.0], rng.normal(size=extra - 1)) if extra else np.empty(0)
            agent.receive(news(rng, origin=1, round=t, context=x, attached=attached))
        return drawn

    agent = policy.agent(2, network, seed=3)
    live(agent, np.random.default_rng(1), 1, 6)
    again = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=network)
    assert again.to_bytes() == agent.to_bytes()
    one, two = (live(each, np.random.default_rng(2), 7, 5) for each in (agent, again))
    assert one == two
    assert again.to_bytes() == agent.to_bytes()


def actions(problem, policy):
    return cb.play(problem, policy, rounds=8, seed=3).actions


def test_policies_that_are_the_same_algorithm_draw_alike():
    problem = ragged(NETWORKS["directed"])
    alone = actions(problem, cb.KernelTS(kernel=RBF, eta=0.7))
    for make in MAKE:
        policy = make(kernel=RBF, similarity=cb.similarity.Alone(), ttl=2, eta=0.7)
        np.testing.assert_array_equal(actions(problem, policy), alone)
    np.testing.assert_array_equal(
        actions(problem, cb.LinTS(eta=0.7)),
        actions(problem, cb.KernelTS(kernel=cb.kernels.Linear(), eta=0.7)),
    )
    complete, similarity = ragged(cb.Network.complete(5)), cb.similarity.Laplacian(0.5)
    coop, eager = (actions(complete, make(kernel=RBF, similarity=similarity)) for make in MAKE)
    np.testing.assert_array_equal(coop, eager)


def test_the_similarity_is_learnt_unless_it_is_given():
    for make in MAKE:
        assert make(kernel=RBF).similarity == cb.similarity.Evidence()
        assert make(kernel=RBF).act == Sample()


def test_covariances_are_not_computed_where_nobody_draws(monkeypatch):
    def refuse(*given, **named):
        raise AssertionError("nobody asked for a covariance")

    monkeypatch.setattr(Posterior, "_covariance", refuse)
    monkeypatch.setattr("coopbandits.gp.posterior.residual_covariance", refuse)
    monkeypatch.setattr("coopbandits.engines.pooled.own_products", refuse)
    monkeypatch.setattr("coopbandits.engines.by_lags.drawn", refuse)
    problem = ragged(NETWORKS["two parts"])
    for similarity in (cb.similarity.Same(), cb.similarity.Evidence()):
        bound, draw = (
            make(kernel=cb.kernels.Linear(), similarity=similarity)
            for make in (cb.EagerKernelUCB, cb.EagerKernelTS)
        )
        for engine in ("exact", "statistics", "sparse", "messages"):
            cb.play(problem, bound, rounds=3, engine=engine)
            with pytest.raises(AssertionError, match="nobody asked"):
                cb.play(problem, draw, rounds=3, engine=engine)
