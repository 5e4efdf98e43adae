"""Agents as bytes: stored, restored, damaged, forged, another's, and of an older version."""

import dataclasses
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent import snapshot
from coopbandits.errors import ParameterError, StateError
from reference import formulas
from worlds import DIM, NETWORKS, eager, network_contexts, news

ASSETS = Path(__file__).parents[1] / "assets"


def drive(policy, network, rounds, seed, *, after=None):
    """Let agents talk; return their choices. `after(t, agents)` may replace them."""
    rng = np.random.default_rng(seed)
    agents = [policy.agent(v, network, seed=seed) for v in range(len(network))]
    held, choices = [], []
    for t in range(1, rounds + 1):
        flying, held, row = held, [], []
        for agent in agents:
            decision = agent.decide(rng.normal(size=(4, DIM)))
            row.append(decision.index)
            if t % 3 or agent.agent % 2:  # some rewards never come
                for m in agent.reward(decision.id, float(rng.normal())):
                    flying += [(int(to), m) for to in agent.recipients]
        for to, m in flying:
            for onward in agents[to].receive(m):
                held += [(int(next_), onward) for next_ in agents[to].recipients]
        choices.append(row)
        if after is not None:
            agents = after(t, agents)
    return np.array(choices)


@pytest.mark.parametrize(
    "policy",
    [
        cb.LinUCB(),
        eager(),
        eager(similarity=cb.similarity.Laplacian(1.0), width=cb.width.SelfNormalised()),
        cb.CoopKernelUCB(
            kernel=cb.kernels.Matern(nu=1.5),
            similarity=cb.similarity.Known(contexts=network_contexts(10), kernel=cb.kernels.RBF()),
            ttl=3,
        ),
        cb.DistKernelUCB(kernel=cb.kernels.RBF(), ttl=2),
        cb.Uniform(),
    ],
    ids=lambda policy: policy.name,
)
def test_an_agent_restored_from_bytes_takes_the_same_decisions(policy):
    network = NETWORKS["barabasi-albert"]

    def stored_and_restored(t, agents):
        if t not in (1, 4, 5):
            return agents
        data = [agent.to_bytes() for agent in agents]
        back = [cb.Agent.from_bytes(d, policy=policy, network=network) for d in data]
        assert [agent.to_bytes() for agent in back] == data
        assert [agent.known for agent in back] == [agent.known for agent in agents]
        return back

    expected = drive(policy, network, 9, seed=4)
    np.testing.assert_array_equal(
        drive(policy, network, 9, seed=4, after=stored_and_restored), expected
    )


def test_restored_beliefs_are_equal_to_the_bit(agent, network, rng):
    for t in range(1, 200):
        decision = agent.decide(rng.normal(size=(3, DIM)))
        agent.reward(decision.id, float(rng.normal()))
        agent.receive(news(rng, round=t))
    back = cb.Agent.from_bytes(agent.to_bytes(), policy=agent.policy, network=network)
    offered = rng.normal(size=(30, DIM))
    mine, theirs = agent.decide(offered), back.decide(offered)
    assert (mine.mean, mine.std, mine.index) == (theirs.mean, theirs.std, theirs.index)


def test_digests_that_wait_come_back_to_the_bit(network, rng):
    policy = eager(features=cb.features.Fourier(6), say=cb.say.Sums())
    sender, agent = policy.agent(1, network), policy.agent(2, network)
    agent.decide(rng.normal(size=(2, DIM)))
    for _ in range(20):
        decision = sender.decide(1e-3 * rng.normal(size=(2, DIM)))
        for digest in sender.reward(decision.id, 1.0):
            agent.receive(digest)
        data = agent.to_bytes()
        assert cb.Agent.from_bytes(data, policy=policy, network=network).to_bytes() == data


@pytest.mark.parametrize("say", [cb.say.Everything(), cb.say.Sums()], ids=str)
def test_an_agent_with_the_largest_rewards_can_be_restored(network, rng, say):
    similarity = cb.similarity.Evidence()
    policy = eager(kernel=cb.kernels.Linear(), similarity=similarity, say=say)
    policy = dataclasses.replace(policy, features=cb.features.Exact())
    agent = policy.agent(2, network)
    for _ in range(5):
        agent.reward(agent.decide(rng.normal(size=(2, DIM))).id, 1e50)
        data = agent.to_bytes()
        assert cb.Agent.from_bytes(data, policy=policy, network=network).to_bytes() == data


def test_an_agent_can_be_restored_that_has_heard_of_more_than_any_agent_can_see(network, rng):
    policy = eager(
        kernel=cb.kernels.Linear(), similarity=cb.similarity.MeanEmbedding(), say=cb.say.Sums()
    )
    sender, agent = policy.agent(1, network), policy.agent(2, network)
    [digest] = sender.reward(sender.decide(rng.normal(size=(2, DIM))).id, 1.0)
    n = 2.0**40
    forged = dataclasses.replace(
        digest, round=2**40, sums=n * digest.sums, summaries=n * digest.summaries
    )
    agent.receive(forged)
    agent.decide(rng.normal(size=(2, DIM)))
    data = agent.to_bytes()
    back = cb.Agent.from_bytes(data, policy=policy, network=network)
    assert (back.to_bytes(), back.estimated) == (data, 2**40)


def test_an_agent_that_has_seen_nothing_can_be_stored(network):
    agent = eager().agent(3, network, seed=5)
    back = cb.Agent.from_bytes(agent.to_bytes(), policy=agent.policy, network=network)
    offered = np.eye(DIM)
    assert back.decide(offered).index == agent.decide(offered).index


def test_a_policy_made_anew_with_equal_answers_restores_the_agent(network):
    agent = eager().agent(3, network)
    assert cb.Agent.from_bytes(agent.to_bytes(), policy=eager(), network=network).agent == 3


@pytest.mark.parametrize(
    "other",
    [
        eager(ttl=3),
        eager(ridge=2.0),
        eager(eta=0.5),
        eager(kernel=cb.kernels.RBF(2.0)),
        eager(similarity=cb.similarity.Alone()),
        eager(compose="sum"),
        cb.LinUCB(),
    ],
    ids=lambda policy: policy.fingerprint[:8],
)
def test_another_policys_bytes_are_refused(agent, network, other):
    with pytest.raises(StateError, match="another policy"):
        cb.Agent.from_bytes(agent.to_bytes(), policy=other, network=network)


@pytest.mark.parametrize(
    "other", [cb.Network.path(7), cb.Network.star(6), cb.Network.from_edges(
        [(v, v + 1) for v in range(5)], directed=True)], ids=repr
)  # fmt: skip
def test_another_networks_bytes_are_refused(agent, other):
    with pytest.raises(StateError, match="another network"):
        cb.Agent.from_bytes(agent.to_bytes(), policy=agent.policy, network=other)


def test_damaged_bytes_are_refused(agent, network, rng):
    agent.observe(rng.normal(size=DIM), 1.0)
    data = agent.to_bytes()
    restore = {"policy": agent.policy, "network": network}
    with pytest.raises(StateError, match="no stored agent"):
        cb.Agent.from_bytes(b"", **restore)
    with pytest.raises(StateError, match="no stored agent"):
        cb.Agent.from_bytes(b"something else entirely", **restore)
    with pytest.raises(StateError, match="version 9"):
        cb.Agent.from_bytes(data[:3] + b"\x09" + data[4:], **restore)
    for position in range(4, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        with pytest.raises(StateError, match=r"damaged|no stored agent|version"):
            cb.Agent.from_bytes(bytes(damaged), **restore)
    for cut in (1, 10, len(data) // 2):
        with pytest.raises(StateError, match=r"damaged|no stored agent"):
            cb.Agent.from_bytes(data[:-cut], **restore)


@pytest.mark.parametrize(
    "forge",
    [
        lambda header, arrays: header.pop("rng"),
        lambda header, arrays: header.update(rng={"bit_generator": "MT19937"}),
        lambda header, arrays: header.update(agent=99),
        lambda header, arrays: header.update(round="many"),
        lambda header, arrays: arrays.pop("hops"),
        lambda header, arrays: arrays.update(known_rewards=arrays["known_rewards"][:-1]),
        lambda header, arrays: arrays.update(blocks=np.array([999])),
        lambda header, arrays: arrays.update(known_numbers=arrays["known_numbers"][:-1]),
        lambda header, arrays: arrays.update(known_whose=arrays["known_whose"] + 99),
    ],
    ids=range(9),
)
def test_forged_bytes_are_refused(agent, network, rng, forge):
    for _ in range(3):
        agent.reward(agent.decide(rng.normal(size=(2, DIM))).id, 1.0)
    _, header, arrays = snapshot.unpack(agent.to_bytes())
    forge(header, arrays)
    with pytest.raises(StateError, match="make no sense"):
        cb.Agent.from_bytes(snapshot.pack(header, arrays), policy=agent.policy, network=network)


def test_bytes_with_more_than_the_header_lists_are_refused(agent, network):
    padded = agent.to_bytes()[:-4] + b"and more"
    sealed = padded + struct.pack("<I", zlib.crc32(padded))
    with pytest.raises(StateError, match="more than the header lists"):
        cb.Agent.from_bytes(sealed, policy=agent.policy, network=network)


def test_bytes_whose_header_is_no_header_are_refused(agent, network):
    for text in (b"[" * 100_000, b"\xff\xfe", b"[]", b"{}"):
        body = struct.pack("<3sBI", b"CBa", 1, len(text)) + text
        sealed = body + struct.pack("<I", zlib.crc32(body))
        with pytest.raises(StateError, match="make no sense"):
            cb.Agent.from_bytes(sealed, policy=agent.policy, network=network)


def test_an_agent_stored_by_the_first_version_is_still_read():
    # written by version 1: two decisions, one rewarded, one message heard, one observation given
    stored = (ASSETS / "agent-v1.bin").read_bytes()
    back = cb.Agent.from_bytes(stored, policy=eager(), network=cb.Network.path(6))
    assert (back.agent, back.known, back.awaiting) == (2, 3, (2,))
    again = cb.Agent.from_bytes(back.to_bytes(), policy=eager(), network=cb.Network.path(6))
    assert again.to_bytes() == back.to_bytes()
    decision = back.decide(np.eye(DIM))
    assert decision.id == 3
    X = np.array([[0.5, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, -1.0, 2.0]])
    mean, _ = formulas.posterior(
        formulas.gram(formulas.rbf, X, X),
        formulas.gram(formulas.rbf, X, np.eye(DIM)),
        np.ones(3),
        np.array([0.25, 1.0, -0.5]),
        1.0,
    )
    assert decision.mean == pytest.approx(mean[decision.index], rel=1e-12)


def test_what_is_no_bytes_no_policy_or_no_network_is_refused(agent, network):
    data = agent.to_bytes()
    for arguments, complaint in [
        ({"data": None}, "expected bytes"),
        ({"policy": None}, "expected a policy"),
        ({"network": [(0, 1)]}, r"expected a coopbandits\.Network"),
    ]:
        facts = {"data": data, "policy": agent.policy, "network": network, **arguments}
        with pytest.raises(ParameterError, match=complaint):
            cb.Agent.from_bytes(**facts)
    assert cb.Agent.from_bytes(memoryview(data), policy=agent.policy, network=network).agent == 2
