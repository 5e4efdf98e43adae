"""What fades, and how fast: weights, silence, and what is refused."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.forget import Exponential, Window
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
        cb.kernels.Linear(), similarity=cb.similarity.Same(), ttl=2, **{**RULES[name], **changes}
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
