"""An agent with features keeps sums alone: the same decisions, and no more memory over time."""

import tracemalloc

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent import snapshot
from coopbandits.errors import ParameterError, StateError
from coopbandits.features import Exact, Fourier, Nystrom
from coopbandits.kernels import RBF, Linear
from coopbandits.policy import plan
from worlds import eager

NETWORK = cb.Network.complete(3)
BASIS = Nystrom(np.random.default_rng(5).normal(size=(8, 2)))
SIMILARITIES = {
    "known": cb.similarity.Known(contexts=np.eye(3), kernel=RBF()),
    "evidence": cb.similarity.Evidence(),
    "embedding": cb.similarity.MeanEmbedding(0.5, sample="offered", kernel=Linear()),
}


def policy_of(name):
    return cb.EagerKernelUCB(kernel=RBF(), similarity=SIMILARITIES[name], features=BASIS)


def live(agent, rng, rounds, first=1):
    """Decide, learn, and hear of the others, round after round; return the choices."""
    choices = []
    for t in range(first, first + rounds):
        offered = rng.normal(size=(4, 2))
        decision = agent.decide(offered)
        choices.append((decision.index, decision.mean, decision.std))
        agent.reward(decision.id, float(np.sin(decision.context[0])))
        for origin in (1, 2):
            x = rng.normal(size=2)
            attached = plan(agent.policy, NETWORK).attached(2)
            extra = np.append([4.0], rng.normal(size=attached - 1)) if attached else np.empty(0)
            agent.receive(cb.Message(t, origin, x, float(np.sin(x[0])), 1, extra))
    return choices


@pytest.mark.parametrize("name", SIMILARITIES)
def test_a_restored_agent_decides_the_same_to_the_bit(name, rng):
    policy = policy_of(name)
    agent = policy.agent(0, NETWORK)
    live(agent, rng, 20)
    agent.observe(rng.normal(size=2), 0.3)  # pending as it is stored
    again = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
    assert again.to_bytes() == agent.to_bytes()
    assert again.known == agent.known == 61
    np.testing.assert_array_equal(again.similarity, agent.similarity)
    one, two = (live(each, np.random.default_rng(9), 6, first=21) for each in (agent, again))
    assert one == two


def test_what_does_not_fit_a_stored_model_is_refused(rng):
    policy = policy_of("known")
    agent = policy.agent(0, NETWORK)
    live(agent, rng, 3)
    _, header, arrays = snapshot.unpack(agent.to_bytes())
    for name, value in [
        ("sums", arrays["sums"][:1]),
        ("U", arrays["U"][:, :2]),
        ("delta", arrays["delta"][0]),
    ]:
        forged = snapshot.pack(header, {**arrays, name: value})
        with pytest.raises(StateError, match="do not fit each other"):
            cb.Agent.from_bytes(forged, policy=policy, network=NETWORK)


def test_memory_and_the_stored_size_stay_the_same(rng):
    agent = policy_of("known").agent(0, NETWORK)
    live(agent, rng, 50)
    early = len(agent.to_bytes())
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    live(agent, rng, 400, first=51)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert agent.known == 3 * 450
    assert abs(len(agent.to_bytes()) - early) < 200  # numbers with more digits
    assert grown < 60_000


def test_history_is_added_up_before_the_first_decision(rng):
    """A long history does not wait in memory, and counts the same."""
    X = rng.normal(size=(2500, 2))
    y = X[:, 0]
    featured = cb.LinUCB(features=Exact()).agent(0, NETWORK)
    plain = cb.LinUCB().agent(0, NETWORK)
    for x, reward in zip(X, y, strict=True):
        featured.observe(x, reward)
        plain.observe(x, reward)
    assert len(featured._inbox) < 1024
    offered = rng.normal(size=(5, 2))
    one, two = featured.decide(offered), plain.decide(offered)
    assert one.index == two.index
    assert (one.mean, one.std) == pytest.approx((two.mean, two.std), rel=1e-6)


class Counted:
    """Fourier features that note how many contexts they were asked about."""

    def __init__(self):
        self.asked = []

    def features(self, kernel, X):
        self.asked.append(len(X))
        return Fourier(16).features(kernel, X)

    def size(self, kernel, dim):
        return 16


@pytest.mark.parametrize("similarity", [cb.similarity.Evidence(), cb.similarity.Same()], ids=repr)
@pytest.mark.parametrize("make", [cb.EagerKernelUCB, cb.EagerKernelTS])
def test_features_of_a_decision_set_are_computed_once_a_decision(make, similarity, rng):
    basis = Counted()
    agent = make(kernel=RBF(), similarity=similarity, features=basis).agent(0, NETWORK)
    for t in range(1, 4):
        basis.asked.clear()
        decision = agent.decide(rng.normal(size=(7, 2)))
        assert basis.asked.count(7) == 1
        (message,) = agent.reward(decision.id, 1.0)
        agent.receive(cb.Message(t, 1, rng.normal(size=2), 0.5, 1, message.attached))
    problem = cb.problems.kernel(NETWORK, dim=2, actions=7)
    policy = make(kernel=RBF(), similarity=similarity, features=Counted())
    cb.play(problem, policy, rounds=5, engine="sparse")
    assert policy.features.asked.count(21) == 5


def test_very_many_actions_can_be_chosen_from_but_not_drawn_at(rng, network):
    offered = rng.normal(size=(10**5, 1))
    agent = eager(features=cb.features.Fourier(4)).agent(2, network)
    agent.reward(agent.decide(offered).id, 1.0)
    decision = agent.decide(offered)
    assert np.isfinite(decision.mean)
    np.testing.assert_array_equal(offered[decision.index], decision.context)
    kernel, similarity = cb.kernels.RBF(), cb.similarity.Same()
    sampler = cb.EagerKernelTS(kernel=kernel, similarity=similarity).agent(2, network)
    with pytest.raises(ParameterError, match=r"one joint draw at 100,000 actions would take"):
        sampler.decide(offered)


def test_a_million_features_are_refused_before_they_are_laid_out(network):
    policy = eager(kernel=cb.kernels.Linear(), features=cb.features.Exact())
    agent = policy.agent(2, network)
    with pytest.raises(ParameterError, match="the statistics of 1,000,000 features would take"):
        agent.decide(np.zeros((2, 10**6)))


@pytest.mark.parametrize("name", ["known", "evidence"])
def test_own_rewards_that_came_while_a_task_ran_are_folded_in_as_it_is_adopted(name, rng):
    """Not by the next decision, which would wait for all of them."""
    agent = policy_of(name).agent(0, NETWORK)
    live(agent, rng, 8)
    task = agent.learning_task()
    late = [agent.decide(rng.normal(size=(4, 2)), learn=False) for _ in range(5)]
    for decision in late:
        agent.reward(decision, 0.5)
    result = task.run()
    agent.adopt(result)
    beliefs = agent._beliefs
    assert (beliefs.unfolded, beliefs.posterior.count) == (
        (),
        result.posterior.count + len(late),
    )
    expected = result.posterior
    for decision in late:
        phi = BASIS.features(RBF(), decision.context[None])[0]
        expected = expected.conditioned(phi, 0.5, agent.policy.ridge)
    np.testing.assert_allclose(beliefs.posterior.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(beliefs.posterior.covariance, expected.covariance, atol=1e-14)


def test_a_result_that_cannot_be_adopted_whole_changes_nothing(rng, monkeypatch):
    agent = policy_of("known").agent(0, NETWORK)
    live(agent, rng, 4)
    task = agent.learning_task()
    agent.reward(agent.decide(rng.normal(size=(4, 2)), learn=False), 0.5)
    result, before = task.run(), agent.to_bytes()

    def fail(self, kernel, X):
        raise ValueError("no features today")

    with monkeypatch.context() as patched:
        patched.setattr(Nystrom, "features", fail)
        with pytest.raises(ValueError, match="no features today"):
            agent.adopt(result)
    assert agent.to_bytes() == before
    agent.adopt(result)


@pytest.mark.parametrize("features", [None, cb.features.Exact()], ids=["factor", "sums"])
def test_blocks_without_rounds_follow_one_another(features, rng):
    policy = cb.NaiveCooperation(features=features, forget=cb.forget.Window(5))
    X, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    one, other = (policy.agent(0, cb.Network.path(2)) for _ in range(2))
    one.hear(1, X, y)
    for start in range(0, 8, 2):
        other.hear(1, X[start : start + 2], y[start : start + 2])
    last = cb.NaiveCooperation().agent(0, cb.Network.path(2))
    last.hear(1, X[3:], y[3:])
    asked = rng.normal(size=(4, 2))
    for agent in (one, other):
        np.testing.assert_allclose(agent.predict(asked).mean, last.predict(asked).mean, atol=1e-12)
