"""What fades, and how fast: weights, silence, and what is refused."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.forget import Exponential, Window
from coopbandits.protocol import seen_rounds
from reference import weighted

NETWORK, D = cb.Network.path(3), 2
EXACT = cb.features.Exact()
RULES = {
    "half life": {"forget": Exponential(2.0)},
    "window": {"forget": Window(4), "features": EXACT},
    "window, exact": {"forget": Window(4)},
}
QUERIES = np.array([[1.0, 0.0], [0.3, -1.0]])


def policy_of(name, **changes):
    return cb.EagerKernelUCB(
        cb.kernels.Linear(),
        similarity=cb.similarity.Same(),
        **{"ttl": 2, **RULES[name], **changes},
    )


def news(round_, x, y=1.0, origin=0):
    return cb.Message(round_, origin, np.asarray(x, dtype=float), y, 1)


def wait(agent, rounds):
    """Let rounds pass in which nothing comes."""
    for _ in range(rounds):
        agent.took(QUERIES, 0)


def assert_believes(agent, heard, weights):
    """`heard`: origin, context and reward of each observation."""
    whose, X, y = zip(*heard, strict=True)
    mean, variance, _ = weighted.believe(
        lambda u, X, w, Y: X @ Y.T,
        np.array(whose),
        np.array(X),
        np.array(y),
        np.array(weights, dtype=float),
        agent.agent,
        QUERIES,
        ridge=1.0,
    )
    found = agent.predict(QUERIES)
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(found.std, np.sqrt(variance), atol=1e-12)


def test_weights_are_halves_and_windows():
    ages = np.array([0, 1, 2, 5, 10])
    np.testing.assert_allclose(Exponential(5).weight(ages), 0.5 ** (ages / 5))
    np.testing.assert_array_equal(Window(2).weight(ages), [1, 1, 0, 0, 0])
    for rule in (Exponential(0.3), Window(1)):
        assert (rule.weight(0), rule.weight(2**62)) == (1, 0)


@pytest.mark.parametrize("name", RULES)
def test_own_observations_age_in_own_rounds(name, rng):
    """Rewards may come late: an observation is as old as its decision."""
    agent = policy_of(name).agent(1, NETWORK)
    X, y = rng.normal(size=(6, D)), rng.normal(size=6)
    decisions = [agent.took(x[None], 0) for x in X]
    for decision, reward in reversed(list(zip(decisions, y, strict=True))):
        agent.reward(decision, reward)
    ages = 6 - np.arange(1, 7)
    weight = agent.policy.forget.weight
    assert_believes(agent, [(1, *one) for one in zip(X, y, strict=True)], weight(ages))
    wait(agent, 2)
    assert_believes(agent, [(1, *one) for one in zip(X, y, strict=True)], weight(ages + 2))


@pytest.mark.parametrize("name", RULES)
def test_others_age_in_their_own_rounds_and_once_silent_in_the_receivers(name, rng):
    agent = policy_of(name).agent(1, NETWORK)
    weight = agent.policy.forget.weight
    agent.predict(QUERIES)
    X, y = rng.normal(size=(4, D)), rng.normal(size=4)
    whose, rounds = np.array([0, 0, 2, 0]), np.array([7, 8, 100, 10])
    for x, reward, origin, round_ in zip(X, y, whose, rounds, strict=True):
        agent.receive(news(round_, x, reward, origin))
    heard = [*zip(whose, X, y, strict=True)]
    ages = np.array([3, 2, 0, 0])  # however many rounds others have had
    for silent in range(5):
        assert_believes(agent, heard, weight(ages + silent))
        wait(agent, 1)
    assert agent.known == 4


@pytest.mark.parametrize("name", ["half life", "window"])
def test_digests_age_alike(name, rng):
    """Sums are told as of their newest round, and age while their origin is silent."""
    policy = policy_of(name, say=cb.say.Sums())
    agent, peer = policy.agent(1, NETWORK), policy.agent(0, NETWORK)
    agent.predict(QUERIES)
    X, y = rng.normal(size=(5, D)), rng.normal(size=5)
    for x, reward in zip(X, y, strict=True):
        for digest in peer.reward(peer.took(x[None], 0), reward):
            agent.receive(digest)
    weight, ages = policy.forget.weight, 5 - np.arange(1, 6)
    for silent in range(6):
        expected = weight(ages) * weight(silent)
        assert_believes(agent, [(0, *one) for one in zip(X, y, strict=True)], expected)
        wait(agent, 1)
    assert agent.known == 5


@pytest.mark.parametrize("name", RULES)
def test_what_has_faded_leaves_the_prior(name):
    agent, fresh = (policy_of(name).agent(1, NETWORK) for _ in range(2))
    agent.hear(0, QUERIES, [1.0, -9.0])
    agent.reward(agent.took(QUERIES, 0), 3.0)
    agent.predict(QUERIES)
    wait(agent, 200)
    mine, prior = agent.predict(QUERIES), fresh.predict(QUERIES)
    np.testing.assert_allclose(mine.mean, prior.mean, atol=1e-12)
    np.testing.assert_allclose(mine.std, prior.std, atol=1e-12)
    assert agent.known == 3  # it was learnt once


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("how", ["receive", "observe", "hear"])
def test_something_old_that_comes_late_does_not_make_old_evidence_fresh(name, how):
    agent = policy_of(name).agent(1, NETWORK)
    agent.predict(QUERIES)
    heard = [(0, [1.0, 0.0], 2.0), (0, [0.0, 1.0], -1.0)]
    agent.receive(news(5, *heard[0][1:]))
    agent.predict(QUERIES)
    wait(agent, 3)
    old = {"receive": 4, "observe": 0, "hear": 3}[how]
    if how == "receive":
        agent.receive(news(old, *heard[1][1:]))
    elif how == "observe":
        agent.observe(*heard[1][1:], origin=0)
    else:
        agent.hear(0, [heard[1][1]], [heard[1][2]], rounds=[old])
    agent.predict(QUERIES)
    # 3 silent rounds, and by how much each is older than the newest
    weight = agent.policy.forget.weight
    assert_believes(agent, heard, [weight(3), weight(3 + 5 - old)])
    if name == "half life":  # its own rounds count again, once the origin goes on
        agent.receive(news(6, *heard[0][1:]))
        ages = np.array([1, 6 - old, 0])
        assert_believes(agent, [*heard, heard[0]], weight(ages))


@pytest.mark.parametrize("name", RULES)
def test_a_peers_last_round_of_all_takes_only_its_own_evidence(name):
    """Ages of rounds up to 2⁶³ − 1 do not overflow."""
    agent = policy_of(name).agent(1, NETWORK)
    agent.predict(QUERIES)
    for round_ in (3, 2**63 - 1, 4):
        agent.receive(news(round_, [1.0, 0.0]))
        agent.predict(QUERIES)
    assert_believes(agent, [(0, [1.0, 0.0], 1.0)], [1.0])
    wait(agent, 2)
    weight = agent.policy.forget.weight(2)
    assert_believes(agent, [(0, [1.0, 0.0], 1.0)], [weight])


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "long", None, True, 1e60])
def test_a_half_life_that_makes_no_sense_is_refused(bad):
    with pytest.raises(InputError, match="half_life must"):
        Exponential(half_life=bad)


@pytest.mark.parametrize("bad", [0, -1, 2.5, np.nan, np.inf, "long", None, True, 2**40])
def test_a_window_that_makes_no_sense_is_refused(bad):
    with pytest.raises(InputError, match="rounds must be"):
        Window(rounds=bad)


@pytest.mark.parametrize("bad", [3, "Window", Window, (1, 2)])
def test_what_is_no_rule_is_refused(bad):
    with pytest.raises(ParameterError, match=r"is no rule; expected coopbandits\.forget"):
        cb.LinUCB(forget=bad)


def test_exact_posteriors_refuse_to_fade_by_a_factor_and_name_features():
    network, rbf = cb.Network.path(3), cb.kernels.RBF()
    problem = cb.problems.clustered_linear(network, dim=2)
    for policy in (
        cb.KernelUCB(rbf, forget=Exponential(3.0)),
        cb.LinUCB(forget=Exponential(3.0)),
    ):
        with pytest.raises(ParameterError, match="features="):
            cb.play(problem, policy, rounds=3, engine="exact")
    with pytest.raises(ParameterError, match="features="):
        cb.KernelUCB(rbf, forget=Exponential(3.0)).agent(0, network)
    with pytest.raises(ParameterError, match="features="):
        cb.play(problem, cb.KernelUCB(rbf, forget=Exponential(3.0)), rounds=3, engine="messages")


def test_frozen_embeddings_refuse_to_fade():
    frozen = cb.similarity.MeanEmbedding(refresh="frozen")
    policy = cb.EagerKernelUCB(cb.kernels.Linear(), similarity=frozen, forget=Window(3))
    with pytest.raises(ParameterError, match="take another refresh with forget="):
        policy.agent(0, NETWORK)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("ttl", [1, 2])
def test_memory_is_bounded_whatever_never_comes(name, ttl, monkeypatch):
    """Messages with gaps, out of order and in copies; one decision in ten has no reward."""
    monkeypatch.setattr(seen_rounds, "WINDOW", 16)
    policy = policy_of(name, ttl=ttl)
    agent = policy.agent(1, NETWORK, expire=50)
    rng, sizes, x = np.random.default_rng(0), [], QUERIES[0]
    for t in range(1, 901):
        decision = agent.took(QUERIES, 0)
        if t % 10:
            agent.reward(decision, 1.0)
        for origin in (0, 2):
            round_ = max(1, t - int(rng.integers(4)))
            hops = int(rng.integers(1, ttl + 1))
            if round_ % 7:
                agent.receive(cb.Message(round_, origin, x, 1.0, hops))
        if t % 20 == 0:
            agent.predict(QUERIES)
        if t % 300 == 0:
            sizes.append(len(agent.to_bytes()))
    assert sizes[2] <= 1.05 * sizes[1]
    assert len(agent.awaiting) <= 50
