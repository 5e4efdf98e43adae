"""What earlier releases sent and stored is still read: assets of all versions of the formats.

An agent of four on a path, K_z by `MeanEmbedding` of what was offered, four rounds. In version 4,
which came with options, also agents that have lived through what `grown` does. In version 5, which
came with chains that live with the agent, also agents with `Evidence`.
"""

from pathlib import Path

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import StateError

ASSETS = Path(__file__).parents[1] / "assets"
NETWORK = cb.Network.path(4)
OFFERED = cb.similarity.MeanEmbedding(0.5, sample="offered", kernel=cb.kernels.Linear())
POLICIES = {
    name: cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=OFFERED, ttl=2, say=say)
    for name, say in {"exact": cb.say.Everything(), "sums": cb.say.Sums(every=2)}.items()
}
LINEAR, SAME = cb.kernels.Linear(), cb.similarity.Same()
OPTIONS = {
    "faded": cb.EagerKernelUCB(
        LINEAR, similarity=SAME, ttl=2, intercept=2.0, forget=cb.forget.Exponential(2.5)
    ),
    "window": cb.EagerKernelUCB(LINEAR, similarity=SAME, ttl=2, forget=cb.forget.Window(3)),
}
EVIDENCE = cb.similarity.Evidence()
CHAINS = {
    "chains": cb.EagerKernelUCB(LINEAR, similarity=EVIDENCE, ttl=2),
    "chains-sums": cb.EagerKernelUCB(
        LINEAR, similarity=EVIDENCE, ttl=2, features=cb.features.Exact()
    ),
}


def restored(name, version):
    data = (ASSETS / f"agent-v{version}-{name}.bin").read_bytes()
    policy = {**POLICIES, **OPTIONS, **CHAINS}[name]
    return cb.Agent.from_bytes(data, policy=policy, network=NETWORK)


def grown(policy):
    """Return an agent with something learnt, something folded in, and something that waits."""
    rng, agent = np.random.default_rng(4), policy.agent(1, NETWORK, seed=1, expire=6)
    agent.hear(2, rng.normal(size=(2, 2)), rng.normal(size=2), rounds=[1, 3])
    for t in range(1, 8):
        decision = agent.decide(rng.normal(size=(3, 2)), learn=t % 3 != 0)
        agent.receive(cb.Message(2 * t, 0, rng.normal(size=2), float(rng.normal()), 2))
        if t != 4:
            agent.reward(decision, float(rng.normal()))
    return agent


@pytest.mark.parametrize("name", POLICIES)
def test_agents_of_all_versions_take_the_same_decisions(name, rng):
    # K_z is stored as it was estimated: BLAS on another machine has other last bits
    agents = [restored(name, version) for version in (1, 2, 3, 4, 5)]
    assert len({agent.known for agent in agents}) == 1
    for agent in agents[1:]:
        np.testing.assert_allclose(agent.similarity, agents[0].similarity, atol=1e-12)
    for _ in range(3):
        offered, y = rng.normal(size=(4, 2)), float(rng.normal())
        decisions = [agent.decide(offered) for agent in agents]
        assert len({(d.id, d.index) for d in decisions}) == 1
        for decision in decisions[1:]:
            np.testing.assert_allclose(decision.scores.upper, decisions[0].scores.upper, atol=1e-12)
        told = [[m.to_bytes() for m in agent.reward(decisions[0].id, y)] for agent in agents]
        assert all(one == told[0] for one in told)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("learn", [True, False])
def test_agents_with_options_of_version_4_decide_as_those_of_today(name, learn, rng):
    agent, today = restored(name, 4), grown(OPTIONS[name])
    assert (agent.known, agent.awaiting, agent.expire) == (15, (4,), 6)
    assert (today.known, today.awaiting, today.expire) == (15, (4,), 6)
    assert agent.to_bytes()[3] == 5
    for _ in range(3):
        offered, y = rng.normal(size=(4, 2)), float(rng.normal())
        mine, others = (one.decide(offered, learn=learn) for one in (agent, today))
        assert (mine.id, mine.index) == (others.id, others.index)
        np.testing.assert_allclose(mine.scores.mean, others.scores.mean, atol=1e-9)
        np.testing.assert_allclose(mine.scores.std, others.scores.std, atol=1e-9)
        for one in (agent, today):
            one.reward(mine.id, y)
            # it has seen this round already
            one.receive(cb.Message(14, 0, np.ones(2), 9.0, 2))
    assert agent.known == today.known == 18


def told(policy):
    """Return an agent with chains that went on through some estimates."""
    rng, agent = np.random.default_rng(4), policy.agent(1, NETWORK, seed=1)
    for t in range(1, 8):
        decision = agent.decide(rng.normal(size=(3, 2)))
        for origin in (0, 2, 3):
            news = rng.normal(size=2), float(rng.normal()), 2, rng.normal(size=2)
            agent.receive(cb.Message(t, origin, *news))
        agent.reward(decision, float(rng.normal()))
    return agent


@pytest.mark.parametrize("name", CHAINS)
def test_chains_of_version_5_go_on_from_their_labels(name, rng):
    """What chains find may change from release to release, what they start from may not."""
    agent, today = restored(name, 5), told(CHAINS[name])
    labels = agent._beliefs.hypotheses.state
    assert labels.shape == today._beliefs.hypotheses.state.shape == (1, 4, 4)
    assert agent.known == today.known
    copy = cb.Agent.from_bytes(agent.to_bytes(), policy=CHAINS[name], network=NETWORK)
    np.testing.assert_array_equal(copy._beliefs.hypotheses.state, labels)
    for _ in range(3):
        offered, y = rng.normal(size=(4, 2)), float(rng.normal())
        mine, others = (one.decide(offered) for one in (agent, copy))
        assert (mine.id, mine.index) == (others.id, others.index)
        np.testing.assert_array_equal(mine.scores.mean, others.scores.mean)
        np.testing.assert_array_equal(agent.worth, copy.worth)
        for one in (agent, copy):
            one.reward(mine.id, y)
    assert agent.to_bytes() == copy.to_bytes()


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_agents_of_all_versions_are_refused_by_other_networks_and_policies(version):
    data = (ASSETS / f"agent-v{version}-exact.bin").read_bytes()
    with pytest.raises(StateError, match="stored in another network"):
        cb.Agent.from_bytes(data, policy=POLICIES["exact"], network=cb.Network.star(4))
    with pytest.raises(StateError, match=r"another policy: (features was|it was stored by)"):
        cb.Agent.from_bytes(data, policy=POLICIES["sums"], network=NETWORK)
    # names came later, and the agents are the same
    named = cb.Network(NETWORK.adjacency, names=["a", "b", "c", "d"])
    if version < 3:
        cb.Agent.from_bytes(data, policy=POLICIES["exact"], network=named)


@pytest.mark.parametrize(("name", "kind"), [("exact", cb.Message), ("sums", cb.Digest)])
def test_what_was_sent_in_both_versions_is_learnt_alike(name, kind, rng):
    file = {"exact": "message", "sums": "digest"}[name]
    offered, heard = rng.normal(size=(4, 2)), []
    for version in (1, 2):
        agent = POLICIES[name].agent(2, NETWORK, seed=0)
        agent.decide(np.eye(2))
        news = kind.from_bytes((ASSETS / f"{file}-v{version}.bin").read_bytes())
        agent.receive(news)
        assert agent.known > 0
        decision = agent.decide(offered)
        heard.append((decision.index, decision.mean, decision.std))
    assert heard[0] == heard[1]


def test_what_is_attached_has_a_name_in_the_second_version():
    first, second = (
        cb.Message.from_bytes((ASSETS / f"message-v{version}.bin").read_bytes())
        for version in (1, 2)
    )
    assert (len(first.context), len(first.attached)) == (6, 0)
    assert (len(second.context), len(second.attached)) == (2, 4)
    np.testing.assert_array_equal(first.context, second.observation.augmented)
