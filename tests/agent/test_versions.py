"""What earlier releases sent and stored is still read: assets of all versions of the formats.

An agent of four on a path, K_z by `MeanEmbedding` of what was offered, four rounds.
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


def restored(name, version):
    data = (ASSETS / f"agent-v{version}-{name}.bin").read_bytes()
    return cb.Agent.from_bytes(data, policy=POLICIES[name], network=NETWORK)


@pytest.mark.parametrize("name", POLICIES)
def test_agents_of_all_versions_take_the_same_decisions_to_the_bit(name, rng):
    agents = [restored(name, version) for version in (1, 2, 3)]
    assert len({agent.known for agent in agents}) == 1
    for agent in agents[1:]:
        np.testing.assert_array_equal(agent.similarity, agents[0].similarity)
    for _ in range(3):
        offered, y = rng.normal(size=(4, 2)), float(rng.normal())
        decisions = [agent.decide(offered) for agent in agents]
        assert len({(d.id, d.index, d.mean, d.std) for d in decisions}) == 1
        told = [[m.to_bytes() for m in agent.reward(decisions[0].id, y)] for agent in agents]
        assert told[0] == told[1] == told[2]


@pytest.mark.parametrize("version", [1, 2, 3])
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
