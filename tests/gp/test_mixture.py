"""What is believed where K_z may be one of several is the mixture, in every engine."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent import snapshot
from coopbandits.agent.factor_beliefs import FactorBeliefs
from coopbandits.engines.recursive import RecursiveRegression
from coopbandits.errors import StateError
from coopbandits.features import Exact
from coopbandits.gp.mixture import Mixture, Moments
from coopbandits.gp.posterior import Belief
from coopbandits.policy import plan
from coopbandits.protocol import Observation
from coopbandits.similarity.similarity import estimated
from differences import slopes_are_those_of_differences
from learnt_views import Torn, view
from reference import formulas
from worlds import NETWORKS, ragged

NETWORK = cb.Network.complete(4)


def belief_of(mean, covariance, logdet, count):
    k = len(mean)
    std = np.sqrt(np.diagonal(covariance))
    return Belief(mean, std**2, np.full(k, logdet), np.full(k, count), covariance)


def root(rng, k):
    return rng.normal(size=(k, k))


def test_mean_and_covariance_are_those_of_draws_from_the_parts(rng):
    """Against a sum over parts, query by query, for two agents of different numbers of queries."""
    weight, sizes = np.array([0.5, 0.3, 0.2]), (3, 2)
    mixture = Mixture(5, 3)
    for agent, k in enumerate(sizes):
        means, roots = rng.normal(size=(3, k)), [root(rng, k) for _ in weight]
        rows = np.arange(k) + 3 * agent
        for w, mean, R in zip(weight, means, roots, strict=True):
            mixture.add_one(belief_of(mean, R @ R.T, 1.0 + w, int(10 * w)), rows, w)
        mean = sum(w * m for w, m in zip(weight, means, strict=True))
        second = sum(
            w * (R @ R.T + np.outer(m, m)) for w, m, R in zip(weight, means, roots, strict=True)
        )
        covariance = second - np.outer(mean, mean)
        found = mixture.belief()
        np.testing.assert_allclose(found.mean[rows], mean)
        np.testing.assert_allclose(found.std[rows] ** 2, np.diagonal(covariance))
        assert found.covariance is not None
        np.testing.assert_allclose(found.covariance[rows, :k], covariance)
        np.testing.assert_allclose(found.logdet[rows], 1.0 + weight @ weight)
        assert (found.count[rows] == 5).all()
        sums = Moments(2, k)
        for h in ([0], [1, 2]):
            own = np.array([roots[i] @ roots[i].T for i in h])
            whose, logdets = np.full(len(h), agent), np.ones(len(h))
            sums.add(whose, weight[h], means[h], own, logdets, np.array(h))
        whose, centre, spread, logdet, count = sums.whole()
        assert (whose, logdet, count) == ([agent], [pytest.approx(1.0)], [2])
        np.testing.assert_allclose(centre[0], mean)
        np.testing.assert_allclose(spread[0], covariance)


def test_one_hypothesis_is_believed_to_the_bit(rng):
    R = root(rng, 4)
    sure = belief_of(rng.normal(size=4), R @ R.T, 0.3, 7)
    mixture = Mixture(4, 4)
    mixture.add_one(sure, np.arange(4), 1.0)
    for name in ("mean", "std", "logdet", "count", "covariance"):
        np.testing.assert_array_equal(getattr(mixture.belief(), name), getattr(sure, name))


def literal_mixture(seen, X, ridge):
    """Agent 2's belief by the paper's formula under each K_z of `Torn`, put together."""
    u, C, y = (np.array(part) for part in zip(*seen, strict=True))
    alike = 0.8 + 0.2 * np.eye(4)
    near = np.eye(4)
    near[1:, 1:] += 0.9 * (1 - np.eye(3))
    parts = []
    for K_z in (alike, near, np.eye(4)):
        K = K_z[np.ix_(u, u)] * (C @ C.T)
        parts.append(
            formulas.posterior(K, K_z[u, 2][:, None] * (C @ X.T), (X**2).sum(axis=1), y, ridge)
        )
    w = np.array([0.5, 0.3, 0.2])
    means, variances = (np.array(part) for part in zip(*parts, strict=True))
    mean = w @ means
    return mean, np.sqrt(w @ (variances + means**2) - mean**2)


@pytest.mark.parametrize("features", [None, Exact()], ids=["exact", "sums"])
def test_an_agent_believes_the_mixture_of_the_papers_posteriors(rng, features):
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(), similarity=Torn(), ridge=0.7, eta=0.4, features=features
    )
    agent = policy.agent(2, NETWORK, seed=1)
    seen = []
    for t in range(1, 9):
        X = rng.normal(size=(5, 3))
        decision = agent.decide(X)
        if seen:
            mean, std = literal_mixture(seen, X, 0.7)
            assert decision.index == np.argmax(mean + 0.4 / np.sqrt(0.7) * std)
            assert decision.mean == pytest.approx(mean[decision.index], rel=1e-8)
            assert decision.std == pytest.approx(std[decision.index], rel=1e-8)
        y = float(rng.normal())
        seen.append((2, X[decision.index], y))
        agent.reward(decision.id, y)
        for origin in (0, 1, 3):
            x, y = rng.normal(size=3), float(rng.normal())
            seen.append((origin, x, y))
            agent.receive(cb.Message(t, origin, x, y, 1))
    restored = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
    X = rng.normal(size=(5, 3))
    one, two = agent.decide(X), restored.decide(X)
    assert (one.index, one.mean, one.std) == (two.index, two.mean, two.std)
    assert restored.similarity == pytest.approx([0.4, 0.67, 1.0, 0.67])


@pytest.mark.parametrize("make", [cb.EagerKernelUCB, cb.EagerKernelTS])
def test_the_sparse_engine_believes_what_agents_with_features_do(make):
    problem = ragged(NETWORKS["two parts"], 3)
    policy = make(kernel=cb.kernels.Linear(), similarity=Torn(), ttl=2, ridge=0.6, features=Exact())
    one, two = (
        cb.play(problem, policy, rounds=6, seed=1, engine=engine, laziness=0.0)
        for engine in ("sparse", "messages")
    )
    np.testing.assert_array_equal(one.actions, two.actions)


def test_lazy_statistics_stand_on_the_mixture_until_there_is_more_news():
    problem = ragged(NETWORKS["two parts"], 4)
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(), similarity=Torn(refresh="every round"), ttl=1, features=Exact()
    )
    lazy, exact = (
        cb.play(problem, policy, rounds=6, seed=1, engine=engine)
        for engine in ("sparse", "messages")
    )
    # K_z is estimated again in each round, so all news is looked at, to what δ is rounded by
    assert (lazy.actions == exact.actions).mean() > 0.9


def test_lazy_statistics_stand_where_hypotheses_are_about_different_agents(monkeypatch):
    """What there is and what was seen are counted alike, over all whom some hypothesis is about."""
    stood = []

    def reset(self, agents, *rest, reset=RecursiveRegression.reset):
        stood.extend(agents)
        reset(self, agents, *rest)

    monkeypatch.setattr(RecursiveRegression, "reset", reset)
    problem = ragged(NETWORKS["two parts"], 4, rounds=40)
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(), similarity=Torn(growth=4.0), ttl=2, features=Exact()
    )
    cb.play(problem, policy, rounds=40, seed=1, engine="sparse")
    assert len(stood) < 0.7 * 40 * len(problem.network)


def test_odds_need_not_add_up_to_one(rng):
    @dataclass(frozen=True)
    class Twice(Torn):
        def estimate(self, views):
            loadings = super().estimate(views)
            return replace(loadings, weight=2.0 * loadings.weight)

    learner = Twice()
    views = view(learner, [(rng.normal(size=(2, 3)), np.zeros(2)) for _ in range(4)], me=2)
    np.testing.assert_allclose(estimated(learner, views).weight, [0.5, 0.3, 0.2])


def test_where_one_hypothesis_is_no_number_an_agent_is_on_its_own(rng):
    @dataclass(frozen=True)
    class Broken(Torn):
        def estimate(self, views):
            loadings = super().estimate(views)
            loadings.U[1, 0] = np.nan
            return loadings

    learner = Broken()
    views = view(learner, [(rng.normal(size=(2, 3)), np.zeros(2)) for _ in range(4)], me=2)
    found = estimated(learner, views)
    np.testing.assert_array_equal(found.expected[0], np.eye(4))


def test_a_stored_agent_whose_odds_are_none_is_refused(rng):
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=Torn(), features=Exact())
    agent = policy.agent(2, NETWORK, seed=1)
    for t in (1, 2):
        decision = agent.decide(rng.normal(size=(3, 2)))
        agent.reward(decision.id, 1.0)
        agent.receive(cb.Message(t, 1, rng.normal(size=2), 0.5, 1))
    agent.decide(rng.normal(size=(3, 2)))
    _, header, arrays = snapshot.unpack(agent.to_bytes())
    for weight in (np.array([0.5, 0.3, 0.3]), np.array([0.5, 0.5, np.nan]), np.ones(1), []):
        data = snapshot.pack(header, {**arrays, "weight": np.array(weight, dtype=float)})
        with pytest.raises(StateError, match="make no sense"):
            cb.Agent.from_bytes(data, policy=policy, network=NETWORK)


@pytest.mark.parametrize("learnt", [0, 4, 9])
def test_slopes_of_a_mixture_are_those_of_differences(rng, learnt):
    policy = cb.EagerKernelUCB(kernel=cb.kernels.RBF(0.7), similarity=Torn(), ridge=0.3)
    beliefs = FactorBeliefs(policy, plan(policy, NETWORK), 2)
    seen = [
        Observation(int(rng.integers(4)), 1, rng.normal(size=2), float(rng.normal()))
        for _ in range(9)
    ]
    beliefs.learn(seen[:learnt])
    beliefs.learn(seen[learnt:])
    surface = beliefs.surface(np.empty(0))
    slopes_are_those_of_differences(surface, rng.normal(size=(6, 2)))


@pytest.mark.parametrize("make", [cb.EagerKernelUCB, cb.EagerKernelTS])
def test_agents_that_are_torn_choose_from_a_continuum(rng, make):
    policy = make(kernel=cb.kernels.RBF(0.5), similarity=Torn(), ridge=0.3)
    agent = policy.agent(2, NETWORK, seed=1)
    box = cb.Box([-1.0], [1.0])
    for t in range(1, 5):
        agent.receive(cb.Message(t, 1, rng.uniform(-1, 1, size=1), float(rng.normal()), 1))
        decision = agent.decide(box)
        agent.reward(decision.id, float(rng.normal()))
    if make is cb.EagerKernelUCB:
        grid = np.linspace(-1, 1, 2001)[:, None]
        decision = agent.decide(box)
        chosen = decision.mean + decision.width * decision.std
        restored = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
        on_grid = restored.decide(grid)
        assert chosen >= on_grid.mean + on_grid.width * on_grid.std - 1e-6
