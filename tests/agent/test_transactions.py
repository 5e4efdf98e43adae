"""A call that raises half-way, in a part of the user's own, has changed nothing.

The parts below work as the library's own until they are told to fail at the n-th call from then on.
"""

import dataclasses

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent import core as agent_core, statistics_beliefs
from coopbandits.errors import NonFiniteError, RemoteProtocolError
from coopbandits.policy import plan
from worlds import DIM, eager, news

NETWORK = cb.Network.path(4)
BOX = cb.Box(-np.ones(DIM), np.ones(DIM), effort=0.2)


class Fuse:
    """Counts down, then fails once: by an interrupt, or by NaN."""

    left, kind = 0, "interrupt"

    def burn(self, value):
        self.left -= 1
        if self.left != 0:
            return value
        if self.kind == "interrupt":
            raise KeyboardInterrupt
        return np.nan * value


FUSE = Fuse()


class OwnWidth:
    def factor(self, *, logdet, count, ridge, agents):
        return FUSE.burn(np.ones(len(logdet)))


class OwnAct:
    judges = True

    def score(self, mean, std, width):
        return FUSE.burn(mean + width * std)

    def slopes(self, mean, std, width):
        return np.ones_like(mean), width

    def leaders(self, network, ttl):
        return np.full(len(network), -1)

    def follow(self, arm, offered):
        raise AssertionError


class OwnKernel:
    def __call__(self, X, Y):
        return FUSE.burn(cb.kernels.RBF()(X, Y))

    def diagonal(self, X):
        return FUSE.burn(np.ones(len(X)))


class OwnFeatures:
    def size(self, kernel, dim):
        return dim

    def features(self, kernel, X):
        return FUSE.burn(0.1 * X)


class OwnSay:
    sums, holds = False, True

    def speaks(self, surprise):
        return FUSE.burn(len(surprise)) >= 2


SUMS, EVIDENCE = cb.say.Sums(every=2), cb.similarity.Evidence()
POLICIES = {
    "width": eager(width=OwnWidth()),
    "act": dataclasses.replace(eager(), act=OwnAct()),
    "kernel": eager(kernel=OwnKernel()),
    "features": eager(features=OwnFeatures()),
    "features and evidence": eager(features=OwnFeatures(), similarity=EVIDENCE),
    "features and sums": eager(features=OwnFeatures(), say=SUMS),
    "features, evidence and sums": eager(features=OwnFeatures(), say=SUMS, similarity=EVIDENCE),
    "say": eager(say=OwnSay()),
    "say and features": eager(say=OwnSay(), features=OwnFeatures()),
}


@pytest.fixture(autouse=True)
def small_room(monkeypatch):
    FUSE.left = 0
    monkeypatch.setattr(agent_core, "_MOST_PENDING", 3)
    monkeypatch.setattr(statistics_beliefs, "_MOST_SINCE", 5)


def calls(policy, seed=0, rounds=6):
    """What may happen to agent 1: name, and what to do with it."""
    rng = np.random.default_rng(seed)
    peer = policy.agent(2, NETWORK)
    history, y = rng.normal(size=(2, DIM)), rng.normal(size=(2, rounds))

    def receive(message):
        return lambda agent: agent.receive(message)

    for t in range(rounds):
        for _ in range(2):
            for message in peer.reward(peer.decide(rng.normal(size=(2, DIM))).id, y[0, t]):
                yield "receive", receive(message)
        if t == 1:
            yield "observe", lambda agent: agent.observe(history[0], 1.0)
        offered = BOX if t % 3 == 2 else rng.normal(size=(4, DIM))
        yield "preview", lambda agent, offered=offered: agent.preview(offered)
        yield "decide", lambda agent, offered=offered: agent.decide(offered)
        for _ in range(4 * (t % 3 == 1)):  # so many that there is no room for the reward
            for message in peer.reward(peer.took(rng.normal(size=(2, DIM)), 0), y[0, t]):
                yield "receive", receive(message)
        if t != 3:
            yield "reward", lambda agent, t=t: agent.reward(t + 1, y[1, t])


def later_calls(policy, seed=0, rounds=3):
    """The same for learning apart from deciding, and for what opens nothing."""
    rng = np.random.default_rng(seed)
    peer = policy.agent(2, NETWORK)
    for t in range(rounds):
        X, y = rng.normal(size=(3, 3, DIM)), rng.normal(size=3)
        if not policy.say.sums:
            yield "hear", lambda agent, X=X, y=y: agent.hear(0, X[0], y)
            yield "observe", lambda agent, X=X: agent.observe(X[1, 0], 1.0, origin=2)
        yield "hear", lambda agent, X=X, y=y: agent.hear(1, X[1], y)
        yield "predict", lambda agent, X=X: agent.predict(X[1]).upper
        for message in peer.reward(peer.took(X[1], 0), y[0]):
            yield "receive", lambda agent, m=message: agent.receive(m)
        yield "rank", lambda agent, X=X: agent.rank(X[2])
        yield "took", lambda agent, X=X: agent.took(X[2], 1)
        yield "took", lambda agent: agent.took(BOX, np.zeros(DIM))
        yield "reward", lambda agent, t=t, y=y: agent.reward(4 * t + 1, y[0])
        if policy.features is not None:
            yield "learning_task", learn_apart
        yield "decide", lambda agent, X=X: agent.decide_many(X[:2], learn=False)[1]
        yield "reward", lambda agent, t=t, y=y: agent.reward(4 * t + 3, y[1])
        yield "predict", lambda agent, X=X: agent.predict(X[2], learn=False).mean


def learn_apart(agent):
    task = agent.learning_task()
    if task is not None:
        agent.adopt(task.run())


def told(result):
    """What a call returned, so that it can be compared."""
    if isinstance(result, list):
        return [message.to_bytes() for message in result]
    if isinstance(result, cb.Decision):
        facts = result.index, result.mean, result.std, result.width
        return result.context.tobytes(), facts
    return np.asarray(result).tobytes() if result is not None else None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "interrupt") for name in POLICIES),
        *((name, "NaN") for name in POLICIES if "say" not in name),
    ],
)
def test_what_raises_at_the_nth_call_of_an_own_part_changes_nothing(name, kind):
    policy = POLICIES[name]
    raised = broken(policy, kind, calls(policy))
    assert raised >= ({"reward"} if "say" in name else {"decide", "preview"})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "interrupt") for name in POLICIES if "say" not in name),
        ("kernel", "NaN"),
        ("features and evidence", "NaN"),
    ],
)
def test_what_raises_while_learning_apart_changes_nothing(name, kind):
    policy = POLICIES[name]
    raised = broken(policy, kind, later_calls(policy))
    assert raised >= ({"hear", "rank"} if "features" in name else {"rank"})


def broken(policy, kind, sequence):
    """Break every call of a sequence in several places; return which could be broken."""
    agent, twin = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
    raised = set()
    for what, call in sequence:
        for n in (1, 2, 5):
            spare = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
            before = spare.to_bytes()
            FUSE.left, FUSE.kind = n, kind
            try:
                call(spare)
            except (KeyboardInterrupt, NonFiniteError, RemoteProtocolError):
                raised.add(what)
            else:
                continue
            finally:
                FUSE.left = 0
            assert spare.to_bytes() == before
            expected = cb.Agent.from_bytes(before, policy=policy, network=NETWORK)
            assert told(call(spare)) == told(call(expected))
            assert spare.to_bytes() == expected.to_bytes()
        assert told(call(agent)) == told(call(twin))
    return raised


@pytest.mark.parametrize("name", ["features", "features and sums", "say and features"])
def test_a_reward_that_raises_leaves_what_waits_where_it_was(name, rng):
    """Whether there is room for it, and whether own rewards are to be folded in first."""
    policy = POLICIES[name]
    agent = policy.agent(1, NETWORK)
    decisions = agent.decide_many(rng.normal(size=(8, 2, DIM)), learn=False)
    raised = 0
    for decision in decisions:
        for n in (1, 2, 3, 4):
            spare = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
            before = spare.to_bytes()
            FUSE.left, FUSE.kind = n, "interrupt"
            try:
                spare.reward(decision, 1.0)
            except KeyboardInterrupt:
                raised += 1
                assert spare.to_bytes() == before
            finally:
                FUSE.left = 0
        agent.reward(decision, 1.0)
    assert raised > 2


def test_a_centres_block_that_raises_leads_nobody():
    follow = cb.act.FollowCentre(patience=2)
    policy = dataclasses.replace(eager(ttl=1, features=OwnFeatures()), act=follow)
    agent = policy.agent(0, cb.Network.star(4))
    centre = int(plan(policy, agent.network).leaders[0])
    agent.took(np.eye(DIM), 0)
    before = agent.to_bytes()
    FUSE.left, FUSE.kind = 1, "interrupt"
    with pytest.raises(KeyboardInterrupt):
        agent.hear(centre, np.eye(DIM), np.ones(DIM))
    assert agent.to_bytes() == before


def test_an_answer_that_is_neither_true_nor_false_changes_nothing(rng):
    class Vague(OwnSay):
        def speaks(self, surprise):
            return np.array([True, False])

    agent = eager(say=Vague()).agent(1, NETWORK)
    decision = agent.decide(rng.normal(size=(2, DIM)))
    before = agent.to_bytes()
    for _ in range(2):
        with pytest.raises(ValueError, match="ambiguous"):
            agent.reward(decision.id, 1.0)
        assert agent.to_bytes() == before


@pytest.mark.parametrize("policy", [eager(), eager(features=cb.features.Fourier(8))], ids=str)
def test_a_preview_changes_no_later_decision_on_a_continuum(rng, policy):
    plain, asked = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
    for _ in range(6):
        preview, decision = asked.preview(BOX), asked.decide(BOX)
        np.testing.assert_array_equal(preview, decision.context)
        np.testing.assert_array_equal(plain.decide(BOX).context, decision.context)
        for agent in (plain, asked):
            agent.reward(decision.id, float(np.sin(3 * decision.context).sum()))
    assert plain.to_bytes() == asked.to_bytes()


def test_messages_that_are_dropped_with_another_length_leave_room_for_others(rng):
    agent = eager().agent(1, NETWORK)
    for t in range(1, 1025):
        agent.receive(news(rng, round=t, origin=2, ttl=1, context=np.ones(DIM + 1)))
    agent.observe(np.ones(DIM), 1.0)
    agent.receive(news(rng, round=2000, origin=2, ttl=1))
    assert agent.known == 2
