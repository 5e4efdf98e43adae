"""Observations in bulk: a block counts as the messages that it is made of."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import CoopBanditsError
from coopbandits.policy import plan

NETWORK, D = cb.Network.path(4), 2
LINEAR, RBF, EXACT = cb.kernels.Linear(), cb.kernels.RBF(), cb.features.Exact()
SIMILARITIES = {
    "same": cb.similarity.Same(),
    "known": cb.similarity.Known(contexts=np.eye(4)[:, :2], kernel=RBF),
    "clusters": cb.similarity.Clusters([0, 0, 1, 0]),
    "laplacian": cb.similarity.Laplacian(1.0),
    "evidence": cb.similarity.Evidence(),
    "groups": cb.similarity.Evidence(chains=2),
    "coregionalised": cb.similarity.Coregionalised(rank=2, steps=3),
    "by evidence": cb.similarity.Laplacian.by_evidence([0.1, 1.0]),
    "population": cb.similarity.Population.by_evidence([0.0, 0.7, 1.0]),
    "embedding": cb.similarity.MeanEmbedding(0.5, sample="offered", kernel=LINEAR),
}
FROZEN = cb.similarity.MeanEmbedding(refresh="frozen")
FORMS = {
    "exact": {"kernel": LINEAR},
    "window": {"kernel": LINEAR, "forget": cb.forget.Window(4)},
    "sums": {"kernel": LINEAR, "features": EXACT, "intercept": 2.0},
    "fourier": {"kernel": RBF, "features": cb.features.Fourier(8), "scale": 4.0},
    "half life": {"kernel": LINEAR, "forget": cb.forget.Exponential(2.5)},
}
QUERIES = np.array([[1.0, 0.0], [0.3, -1.0], [-2.0, 0.7]])


def policy_of(similarity="same", form="sums"):
    return cb.EagerKernelUCB(similarity=SIMILARITIES.get(similarity, FROZEN), ttl=2, **FORMS[form])


def told(policy, rng, origin, k):
    """What an agent tells of k decisions, as messages."""
    peer = policy.agent(origin, NETWORK)
    return [
        message
        for _ in range(k)
        for message in peer.reward(peer.took(rng.normal(size=(3, D)), 1), rng.normal())
    ]


def heard(agent, messages, **changes):
    """Let an agent hear messages in one block, in raw units."""
    facts = {
        "contexts": np.array([m.context for m in messages]),
        "rewards": agent.policy.scale * np.array([m.reward for m in messages]),
        "rounds": [m.round for m in messages],
        "attached": np.array([m.attached for m in messages]),
        **changes,
    }
    agent.hear(messages[0].origin, facts.pop("contexts"), facts.pop("rewards"), **facts)


def assert_same_beliefs(one, two, tolerance=1e-9):
    mine, others = one.predict(QUERIES), two.predict(QUERIES)
    assert one.known == two.known
    for part in ("mean", "std", "upper"):
        np.testing.assert_allclose(
            getattr(mine, part), getattr(others, part), rtol=tolerance, atol=tolerance
        )
    np.testing.assert_allclose(one.similarity, two.similarity, atol=tolerance)


@pytest.mark.parametrize(
    ("similarity", "form"),
    [
        *((similarity, form) for similarity in SIMILARITIES for form in FORMS),
        ("frozen", "exact"),
    ],
)
def test_a_block_counts_as_its_messages_one_by_one(similarity, form, rng):
    policy = policy_of(similarity, form)
    agent, other = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
    for origin in (0, 2, 3):
        messages = told(policy, rng, origin, 5)
        for message in messages:
            agent.receive(message)
        heard(other, messages)
    assert_same_beliefs(agent, other)


@pytest.mark.parametrize("similarity", [*SIMILARITIES, "frozen"])
def test_a_neighbours_history_counts_as_a_block_of_it(similarity, rng):
    """Whatever the agent has seen itself."""
    policy = policy_of(similarity, "exact")
    agent, other = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
    for one in (agent, other):
        one.observe([1.0, -1.0], 0.5)
        one.reward(one.decide(QUERIES), 1.0)
    X, y = rng.normal(size=(4, D)), rng.normal(size=4)
    for x, reward in zip(X, y, strict=True):
        agent.observe(x, reward, origin=2)
        other.hear(2, [x], [reward], rounds=[0])
    assert agent.to_bytes() == other.to_bytes()
    assert_same_beliefs(agent, other, 0.0)


def test_an_agents_own_log_counts_as_its_rewards(rng):
    for form in FORMS:
        policy = policy_of(form=form)
        agent, other = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
        for _ in range(4):
            offered, y = rng.normal(size=(3, D)), rng.normal()
            agent.reward(agent.took(offered, 2), y)
            decision = other.took(offered, 2)
            other.hear(1, offered[2:], [y], rounds=[decision.id])
        assert_same_beliefs(agent, other)
        agent.observe([1.0, 2.0], 3.0)
        other.hear(1, [[1.0, 2.0]], [3.0])  # history, unless rounds are given
        assert_same_beliefs(agent, other)


@pytest.mark.parametrize("form", ["window", "half life"])
def test_rounds_go_on_after_the_newest_that_was_heard_of(form, rng):
    policy, X, y = policy_of(form=form), rng.normal(size=(3, 2, D)), rng.normal(size=(3, 2))
    agent, other = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
    for one in (agent, other):
        one.predict(QUERIES)
        one.receive(cb.Message(7, 0, X[2, 0], y[2, 0], 2))  # it waits to be learnt
    for block in range(2):
        agent.hear(0, X[block], y[block])
        other.hear(0, X[block], y[block], rounds=8 + 2 * block + np.arange(2))
    assert_same_beliefs(agent, other)


@pytest.mark.parametrize("form", FORMS)
def test_a_peers_last_round_of_all_stops_nobody(form, rng):
    policy = policy_of(form=form)
    agent = policy.agent(1, NETWORK)
    agent.predict(QUERIES)
    for round_ in (3, 2**63 - 1, 4):
        agent.receive(cb.Message(round_, 0, np.ones(D), 1.0, 2))
        for _ in range(2):
            agent.reward(agent.decide(QUERIES), 1.0)
            agent.hear(0, QUERIES, np.ones(3))
            again = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
            assert again.to_bytes() == agent.to_bytes()


def test_what_is_attached_says_as_much_as_a_message_does(rng):
    """Without it, each context counts as all that was offered."""
    policy = policy_of("groups")
    size = plan(policy, NETWORK).attached(D)
    agent, other = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
    X, y = rng.normal(size=(4, D)), rng.normal(size=4)
    agent.hear(0, X, y)
    other.hear(0, X, y, attached=X)  # the mean features of one offered action
    assert size == D
    assert_same_beliefs(agent, other, 0.0)


def test_strangers_change_nothing(rng):
    policy = policy_of("clusters")
    agent = policy.agent(1, NETWORK)
    agent.hear(0, rng.normal(size=(3, D)), rng.normal(size=3))
    before = agent.to_bytes()
    agent.hear(2, rng.normal(size=(3, D)), rng.normal(size=3))
    assert agent.to_bytes() == before


def test_an_agent_beyond_the_hops_changes_nothing(rng):
    policy = cb.EagerKernelUCB(LINEAR, similarity=SIMILARITIES["same"], ttl=1, features=EXACT)
    agent = policy.agent(0, NETWORK)
    agent.predict(QUERIES)
    before = agent.to_bytes()
    agent.hear(3, rng.normal(size=(3, D)), rng.normal(size=3))
    assert agent.to_bytes() == before


@pytest.mark.parametrize("features", [None, cb.features.Fourier(8)], ids=["exact", "sums"])
def test_a_followers_centre_leads_it_by_its_newest_round(features, rng):
    policy = cb.DistKernelUCB(RBF, ttl=1, features=features)
    star = cb.Network.star(4)
    follower, centre = policy.agent(0, star), int(plan(policy, star).leaders[0])
    follower.hear(centre, QUERIES, np.ones(3), rounds=[4, 9, 5])
    decision = follower.decide(QUERIES)
    assert (decision.index, decision.mean) == (1, None)
    follower.hear(centre, QUERIES[:1], [1.0], rounds=[8])  # older than what it follows
    assert follower.decide(QUERIES).index == 1
    follower.hear(centre, QUERIES[:1], [1.0])
    assert follower.decide(QUERIES).index == 0


@pytest.mark.parametrize("form", ["exact", "sums", "window"])
@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"origin": 4}, "agent 4 is not in this network"),
        ({"origin": "north"}, "north"),
        ({"origin": None}, "not in this network"),
        ({"origin": 1.5}, "not in this network"),
        ({"contexts": np.ones((3, 3))}, "contexts of 2 numbers"),
        ({"contexts": np.ones(2)}, r"shape \(2,\)"),
        ({"contexts": np.empty((0, 2))}, r"shape \(0, 2\)"),
        ({"contexts": [[1.0, np.nan]] * 3}, "must be finite"),
        ({"contexts": [["a", "b"]] * 3}, "array of numbers"),
        ({"contexts": 1e40 * np.ones((3, 2))}, "too large beside the ridge"),
        ({"rewards": np.ones(2)}, r"3 contexts came with rewards of shape \(2,\)"),
        ({"rewards": 1.0}, r"rewards of shape \(\)"),
        ({"rewards": np.ones((3, 1))}, r"rewards of shape \(3, 1\)"),
        ({"rewards": [1.0, np.inf, 0.0]}, "must be finite"),
        ({"rewards": "abc"}, "rewards must be an array"),
        ({"rewards": [1e60, 0.0, 0.0]}, "must lie within"),
        ({"rounds": [1, 2]}, "rounds must be 3 whole numbers"),
        ({"rounds": [1, 2, -3]}, "rounds must be 3 whole numbers"),
        ({"rounds": [1, 2, 2.5]}, "rounds must be 3 whole numbers"),
        ({"rounds": [1, 2, 1e40]}, "rounds must be 3 whole numbers"),
        ({"rounds": "abc"}, "rounds must be an array"),
        ({"rounds": [1, 2, np.nan]}, "rounds must be finite"),
        ({"attached": np.ones((3, 1))}, r"expected \(3, 0\)"),
        ({"attached": "abc"}, "what is attached must be an array"),
    ],
    ids=str,
)
def test_a_bad_block_gets_one_clear_error_and_changes_nothing(form, changes, complaint):
    agent = policy_of(form=form).agent(1, NETWORK)
    agent.reward(agent.decide(QUERIES), 1.0)
    before = agent.to_bytes()
    facts = {"origin": 0, "contexts": QUERIES, "rewards": np.ones(3), **changes}
    with pytest.raises(CoopBanditsError, match=complaint):
        agent.hear(facts.pop("origin"), facts.pop("contexts"), facts.pop("rewards"), **facts)
    assert agent.to_bytes() == before
    agent.hear(0, QUERIES, np.ones(3))
    assert agent.known == 4


def test_a_bad_first_block_leaves_the_dimension_open():
    agent = policy_of().agent(1, NETWORK)
    with pytest.raises(CoopBanditsError, match="rounds must be"):
        agent.hear(0, np.ones((1, 5)), [1.0], rounds=[-1])
    agent.hear(0, QUERIES, np.ones(3))
    assert agent.known == 3
