"""What agents tell: triggers against determinants, sums against observations, and bad answers."""

import dataclasses

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent import snapshot
from coopbandits.errors import (
    InputError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    StateError,
)
from coopbandits.protocol.digests import digest_size
from coopbandits.protocol.messages import message_size
from reference import formulas
from worlds import DIM, NETWORKS, assert_same_fields, eager, news, ragged

LINEAR = cb.kernels.Linear()
EXACT = cb.features.Exact()
SAYS = [
    cb.say.WhenUncertain(0.3),
    cb.say.WhenItPays(0.4),
    cb.say.Sums(),
    cb.say.Sums(every=3),
    cb.say.Sums(gain=0.4),
]


def linear(say, **changes):
    return eager(**{"kernel": LINEAR, "say": say, **changes})


def same_run(one, two):
    assert_same_fields(one, two, but=("engine", "worth"))


def steps(agent, rng, count):
    """Let an agent decide and be rewarded; return (context, reward, what it told) of each step."""
    taken = []
    for _ in range(count):
        decision = agent.decide(rng.normal(size=(3, DIM)))
        y = float(rng.normal())
        taken.append((decision, y, agent.reward(decision.id, y)))
    return taken


def test_a_policy_that_says_everything_has_the_fingerprint_of_one_that_is_not_asked():
    assert eager(say=cb.say.Everything()).fingerprint == eager().fingerprint
    prints = {linear(say).fingerprint for say in [None, *SAYS, cb.say.WhenItPays(0.5)]}
    assert len(prints) == len(SAYS) + 2


@pytest.mark.parametrize("features", [None, EXACT], ids=["factor", "sums"])
def test_an_observation_is_told_exactly_if_its_variance_was_above_the_threshold(
    network, rng, features
):
    threshold, ridge = 0.3, 0.5
    say = cb.say.WhenUncertain(threshold)
    agent = linear(say, ridge=ridge, features=features).agent(2, network)
    X, told = np.empty((0, DIM)), []
    for decision, _, messages in steps(agent, rng, 40):
        x = decision.context
        K = X @ X.T + ridge * np.eye(len(X))
        variance = x @ x - (X @ x) @ np.linalg.solve(K, X @ x) if len(X) else x @ x
        assert [m.round for m in messages] == [decision.id] * int(variance > threshold * ridge)
        told.append(bool(messages))
        X = np.vstack([X, x])
    assert 3 < sum(told) < 30


@pytest.mark.parametrize("features", [None, EXACT], ids=["factor", "sums"])
@pytest.mark.parametrize("kind", [cb.say.WhenItPays, lambda gain: cb.say.Sums(gain=gain)])
def test_an_agent_speaks_once_the_gain_of_what_it_holds_given_the_rest_is_enough(
    network, rng, features, kind
):
    gain, ridge = 0.8, 0.5
    agent = linear(kind(gain), ridge=ridge, features=features).agent(2, network)
    X, told, spoken = np.empty((0, DIM)), 0, 0
    for decision, _, messages in steps(agent, rng, 60):
        X = np.vstack([X, decision.context])
        whole, before = (0.5 * formulas.logdet(A @ A.T, ridge) for A in (X, X[:told]))
        assert bool(messages) == (whole - before > gain)
        if messages:
            told, spoken = len(X), spoken + 1
    assert 3 < spoken < 20


def test_all_that_was_held_back_is_told_in_the_order_in_which_it_was_seen(network, rng):
    agent = linear(cb.say.WhenItPays(1.0)).agent(2, network)
    taken = steps(agent, rng, 30)
    held = []
    for decision, y, messages in taken:
        held.append((decision.id, y))
        if messages:
            assert [(m.round, m.reward) for m in messages] == held
            assert [m.ttl for m in messages] == [2] * len(held)
            held = []
    assert 0 < len(held) < 30


def test_late_rewards_are_told_by_how_surprising_they_were_at_the_decision(network, rng):
    # three equal contexts, decided before any reward: none was known when they were chosen
    agent = linear(cb.say.WhenUncertain(0.6)).agent(2, network)
    x = np.array([[1.0, 0.0, 0.0]])
    ids = [agent.decide(x).id for _ in range(3)]
    assert [len(agent.reward(i, 1.0)) for i in ids] == [1, 1, 1]
    last = agent.decide(x)
    assert last.std**2 == pytest.approx(0.25)
    assert agent.reward(last.id, 1.0) == []
    with pytest.raises(LocalProtocolError, match="has its reward already"):
        agent.reward(last.id, 1.0)


def test_an_agent_without_a_posterior_or_without_listeners_tells_all_or_nothing(network, rng):
    random = dataclasses.replace(linear(cb.say.WhenUncertain(10.0)), act=cb.act.AtRandom())
    assert [len(m) for *_, m in steps(random.agent(0, network), rng, 3)] == [1, 1, 1]
    isolated = cb.Network.from_edges([(0, 1)], agents=3)
    for say in SAYS:
        taken = steps(linear(say).agent(2, isolated), rng, 3)
        assert [m for *_, m in taken] == [[], [], []]


@pytest.mark.parametrize("name", ["path", "grid", "directed"])
@pytest.mark.parametrize("ttl", [1, 3])
def test_thresholds_of_nothing_and_sums_each_time_are_everything(name, ttl):
    problem = ragged(NETWORKS[name], rounds=7)
    plain = cb.play(problem, linear(None, ttl=ttl, features=EXACT), 7, engine="messages")
    # a context that teaches nothing at all would be left out; these are random
    for say in (cb.say.WhenUncertain(0.0), cb.say.WhenItPays(0.0)):
        run = cb.play(problem, linear(say, ttl=ttl, features=EXACT), 7)
        assert run.engine == "messages"
        same_run(run, plain)
    sums = cb.play(problem, linear(cb.say.Sums(), ttl=ttl), 7)
    np.testing.assert_array_equal(sums.actions, plain.actions)
    np.testing.assert_array_equal(sums.messages, plain.messages)
    assert sums.bytes.sum() == sums.messages.sum() * digest_size(3)


@pytest.mark.parametrize("similarity", [cb.similarity.Evidence(), cb.similarity.Coregionalised()])
def test_sums_carry_what_a_similarity_is_learnt_from(similarity):
    problem = ragged(cb.Network.path(4), rounds=10)
    changes = {"similarity": similarity, "features": EXACT, "ttl": 2}
    plain = cb.play(problem, linear(None, **changes), 10, engine="messages")
    sums = cb.play(problem, linear(cb.say.Sums(), **changes), 10)
    np.testing.assert_array_equal(sums.actions, plain.actions)
    for (t, K_z), (same_t, same_K_z) in zip(plain.estimates, sums.estimates, strict=True):
        assert t == same_t
        np.testing.assert_allclose(K_z, same_K_z, atol=1e-9)


def test_nobody_is_told_anything_before_it_pays_and_then_agents_are_alone():
    problem = ragged(NETWORKS["grid"], rounds=10)
    alone = cb.play(problem, cb.KernelUCB(kernel=LINEAR), 10)
    for say in (cb.say.WhenUncertain(1e9), cb.say.WhenItPays(1e9), cb.say.Sums(every=11)):
        run = cb.play(problem, linear(say), 10)
        np.testing.assert_array_equal(run.actions, alone.actions)
        assert run.messages.sum() == run.bytes.sum() == 0


@pytest.mark.parametrize("say", SAYS, ids=repr)
@pytest.mark.parametrize(
    "similarity",
    [cb.similarity.Same(), cb.similarity.Evidence(), cb.similarity.MeanEmbedding(0.5)],
    ids=lambda s: type(s).__name__,
)
def test_every_answer_plays_with_every_similarity_and_says_less(say, similarity):
    problem = ragged(cb.Network.path(4), rounds=6)
    run = cb.play(problem, linear(say, similarity=similarity), 6, seed=3)
    again = cb.play(problem, linear(say, similarity=similarity), 6, seed=3, engine="messages")
    same_run(run, again)
    whole = cb.play(problem, linear(None, similarity=similarity), 6, seed=3)
    assert 0 < run.messages.sum() <= whole.messages.sum()
    if say != cb.say.Sums():
        assert run.messages.sum() < whole.messages.sum()


@pytest.mark.parametrize(
    ("say", "similarity"),
    [(say, cb.similarity.Same()) for say in SAYS]
    + [(say, cb.similarity.Evidence()) for say in (SAYS[1], SAYS[3])],
    ids=lambda value: type(value).__name__,
)
def test_an_agent_that_says_less_is_restored_with_what_it_holds(rng, say, similarity):
    policy = linear(say, similarity=similarity)
    network = cb.Network.path(4)
    agents = [policy.agent(v, network, seed=1) for v in range(4)]
    twins = list(agents)
    told = 0
    for t in range(12):
        offered, y = rng.normal(size=(4, 3, DIM)), rng.normal(size=4)
        if t in (0, 5, 9):
            data = [agent.to_bytes() for agent in agents]
            twins = [cb.Agent.from_bytes(d, policy=policy, network=network) for d in data]
            assert [twin.to_bytes() for twin in twins] == data
            assert [twin.known for twin in twins] == [agent.known for agent in agents]
        flying = []
        for agent, twin, x, r in zip(agents, twins, offered, y, strict=True):
            mine, theirs = agent.decide(x), twin.decide(x)
            assert (mine.index, mine.mean, mine.std) == (theirs.index, theirs.mean, theirs.std)
            if t % 4:  # some rewards come late
                for one in (agent, twin) if agent is not twin else (agent,):
                    news = [one.reward(i, float(r)) for i in one.awaiting]
                flying += [(int(to), m) for ms in news for m in ms for to in agent.recipients]
        told += len(flying)
        for to, message in flying:
            for one in {agents[to], twins[to]}:
                one.receive(message)
    assert told > 5
    assert [a.to_bytes() for a in agents] == [a.to_bytes() for a in twins]


def test_an_agent_knows_what_it_was_told_in_sums_before_and_after_it_decides(network, rng):
    policy = linear(cb.say.Sums())
    sender, receiver = policy.agent(1, network), policy.agent(2, network)
    for n, (_, _, [digest]) in enumerate(steps(sender, rng, 5), start=1):
        receiver.receive(digest)
        assert receiver.known == digest.count == n
        receiver.preview(rng.normal(size=(2, DIM)))
        assert receiver.known == n


def test_history_is_told_to_nobody_in_sums_either(network, rng):
    agent = linear(cb.say.Sums()).agent(2, network)
    agent.observe(rng.normal(size=DIM), 1.0)
    [(decision, y, [digest])] = steps(agent, rng, 1)
    phi = decision.context
    expected = np.concatenate([[1.0, y * y], phi * y, np.outer(phi, phi)[np.triu_indices(DIM)]])
    np.testing.assert_allclose(digest.sums, expected, rtol=1e-15)
    assert agent.known == 2


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: cb.say.WhenUncertain(-0.1), "threshold must be >= 0"),
        (lambda: cb.say.WhenUncertain("much"), "threshold must be a number"),
        (lambda: cb.say.WhenItPays(-1.0), "gain must be >= 0"),
        (lambda: cb.say.WhenItPays(np.nan), "gain must be finite"),
        (lambda: cb.say.Sums(every=0), "every must be a whole number >= 1"),
        (lambda: cb.say.Sums(gain=-1.0), "gain must be >= 0"),
        (lambda: cb.say.Sums(every=2, gain=1.0), "give one of them"),
        (lambda: eager(say="everything"), "no say; expected.*Everything"),
        (lambda: eager(say=cb.say.Sums), "no say"),
        (lambda: eager(say=cb.say.Sums()), r"sums of features.*give features="),
    ],
)
def test_a_bad_answer_gets_one_clear_error(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


def test_followers_need_every_arm_and_frozen_embeddings_every_observation(network):
    dist = cb.DistKernelUCB(kernel=LINEAR)
    for say in SAYS:
        with pytest.raises(ParameterError, match="followers wait for"):
            dataclasses.replace(dist, say=say).agent(0, network)
    frozen = cb.similarity.MeanEmbedding(0.5, refresh="frozen")
    with pytest.raises(ParameterError, match="which sums do not keep"):
        linear(cb.say.Sums(), similarity=frozen).agent(0, network)


def test_no_bound_is_claimed_for_agents_that_say_less(network):
    problem = cb.problems.kernel(network, dim=2, actions=3)
    policy = eager(
        similarity=problem.similarity, width=cb.width.SelfNormalised(), say=cb.say.WhenItPays(9.0)
    )
    with pytest.raises(ParameterError, match="agents that tell everything"):
        cb.theory.run_bound(problem, policy, cb.play(problem, policy, 3))


@pytest.mark.parametrize("engine", ["exact", "statistics", "sparse"])
def test_other_engines_refuse_agents_that_say_less(engine):
    problem = ragged(NETWORKS["path"])
    with pytest.raises(ParameterError, match=f"engine='{engine}'.*take engine='messages'"):
        cb.play(problem, linear(cb.say.WhenItPays(1.0)), 3, engine=engine)


def test_each_kind_of_news_goes_to_agents_that_speak_it(network, rng):
    plain, summed = eager().agent(2, network), linear(cb.say.Sums()).agent(2, network)
    [(_, _, [digest])] = steps(linear(cb.say.Sums()).agent(1, network), rng, 1)
    for agent, other in ((plain, digest), (summed, news(rng))):
        before = agent.to_bytes()
        with pytest.raises(RemoteProtocolError, match="agents of this policy send each a"):
            agent.receive(other)
        assert agent.to_bytes() == before
    with pytest.raises(InputError, match=r"receive takes a Digest.*Digest\.from_bytes"):
        summed.receive(digest.to_bytes())


@dataclasses.dataclass(frozen=True)
class Moody:
    sums = False
    holds = True

    def speaks(self, surprise):
        if len(surprise) == 2:
            raise InputError("not in the mood")
        return False


def test_an_answer_that_raises_changes_nothing(network, rng):
    agent = linear(Moody()).agent(2, network)
    steps(agent, rng, 1)
    decision = agent.decide(rng.normal(size=(2, DIM)))
    before = agent.to_bytes()
    with pytest.raises(InputError, match="not in the mood"):
        agent.reward(decision.id, 1.0)
    assert agent.to_bytes() == before


@pytest.mark.parametrize(
    "forge",
    [
        lambda header, arrays: header.pop("before"),
        lambda header, arrays: arrays.pop("untold"),
        lambda header, arrays: arrays.update(variance_ratio=np.ones(9)),
        lambda header, arrays: arrays.update(variance_ratio_ids=arrays["variance_ratio_ids"] + 7),
        lambda header, arrays: arrays.update(digest_numbers=arrays["digest_numbers"][:-1]),
        lambda header, arrays: arrays.update(digests=-arrays["digests"]),
    ],
    ids=range(6),
)
def test_forged_bytes_of_an_agent_that_says_less_are_refused(network, rng, forge):
    policy = linear(cb.say.Sums())
    agent = policy.agent(2, network)
    [*_, (_, _, [digest])] = steps(policy.agent(1, network), rng, 2)
    agent.receive(digest)
    agent.decide(rng.normal(size=(2, DIM)))
    agent.receive(steps(policy.agent(3, network), rng, 1)[0][2][0])
    _, header, arrays = snapshot.unpack(agent.to_bytes())
    forge(header, arrays)
    with pytest.raises(StateError, match="make no sense"):
        cb.Agent.from_bytes(snapshot.pack(header, arrays), policy=policy, network=network)


def test_a_message_is_smaller_than_a_digest_so_sums_must_be_rare_to_save():
    assert message_size(10) == 112
    assert digest_size(10) == 28 + 8 * (2 + 10 + 55)


@pytest.mark.parametrize("make", [cb.CoopKernelTS, cb.EagerKernelTS])
def test_agents_that_draw_say_less_too(make):
    problem = cb.problems.clustered_linear(cb.Network.complete(4), clusters=[0] * 4, dim=3)
    settings = {"kernel": cb.kernels.Linear(), "similarity": cb.similarity.Same(), "eta": 0.3}
    everything, less = (
        cb.play(problem, make(**settings, say=say), rounds=12, seed=1)
        for say in (cb.say.Everything(), cb.say.WhenUncertain(0.2))
    )
    assert 0 < less.messages.sum() < everything.messages.sum()


def test_two_answers_to_when_sums_are_told_are_refused_whatever_they_are():
    with pytest.raises(
        ParameterError, match="every=a value of type int and gain=1 are two answers"
    ):
        cb.say.Sums(every=10**5000, gain=1)
