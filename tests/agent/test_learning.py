"""Learning apart from deciding: tasks are values, results are adopted once, threads do no harm."""

import dataclasses
import threading

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent import core as agent_core
from coopbandits.errors import InputError, LocalProtocolError, RemoteProtocolError

NETWORK, D = cb.Network.path(4), 2
LINEAR, EXACT, SAME = cb.kernels.Linear(), cb.features.Exact(), cb.similarity.Same()
EVIDENCE = cb.similarity.Evidence(chains=2)
QUERIES = np.array([[1.0, 0.0], [0.3, -1.0], [-2.0, 0.7]])


def policy_of(similarity=SAME, **changes):
    return cb.EagerKernelUCB(
        LINEAR, similarity=similarity, **{"ttl": 2, "features": EXACT, **changes}
    )


def informed(policy, rng, agent=1):
    made = policy.agent(agent, NETWORK)
    for origin in (0, 1, 2):
        made.hear(origin, rng.normal(size=(6, D)), rng.normal(size=6))
    return made


@pytest.mark.parametrize("forget", [None, cb.forget.Exponential(2.0), cb.forget.Window(3)])
def test_there_is_a_task_exactly_if_there_is_something_new(forget, rng):
    agent = policy_of(forget=forget).agent(1, NETWORK)
    assert agent.learning_task() is None  # d is not known
    agent.predict(QUERIES)
    assert agent.learning_task() is None
    agent.hear(0, QUERIES, np.ones(3))
    task = agent.learning_task()
    assert (task.agent, task.known) == (1, 3)
    agent.adopt(task.run())
    assert agent.learning_task() is None
    agent.took(QUERIES, 0)
    # a round has passed: what was told is older by it
    assert (agent.learning_task() is not None) == (forget is not None)


def test_a_task_is_a_value_that_later_news_does_not_change(rng):
    agent = informed(policy_of(EVIDENCE, intercept=1.0), rng)
    task = agent.learning_task()
    before = task.run()
    agent.hear(0, QUERIES, 9 * np.ones(3))
    agent.reward(agent.decide(QUERIES, learn=False), 7.0)
    after = task.run()
    np.testing.assert_array_equal(before.posterior.mean, after.posterior.mean)
    np.testing.assert_array_equal(before.posterior.covariance, after.posterior.covariance)
    np.testing.assert_array_equal(before.hypotheses.U, after.hypotheses.U)


def test_what_came_after_a_task_is_new_to_the_next(rng):
    agent = informed(policy_of(), rng)
    task = agent.learning_task()
    agent.hear(0, QUERIES, np.ones(3))
    agent.adopt(task.run())
    later = agent.learning_task()
    assert (task.known, later.known) == (18, 21)


def test_a_digest_of_who_started_anew_is_news_though_it_counts_less(rng, monkeypatch):
    policy = policy_of(say=cb.say.Sums(), ttl=1)
    agent, peer = policy.agent(1, NETWORK), policy.agent(0, NETWORK)
    agent.predict(QUERIES)
    for _ in range(5):
        for digest in peer.reward(peer.took(QUERIES, 0), 1.0):
            agent.receive(digest)
    task = agent.learning_task()
    peer = peer.restarted()
    for digest in peer.reward(peer.took(QUERIES, 1), -5.0):
        agent.receive(digest)
    # it is added up before the result is there, as whenever much has come
    monkeypatch.setattr(agent_core, "_MOST_PENDING", 0)
    agent.observe(QUERIES[2], 0.0, origin=3)  # too far away to be heard
    agent.adopt(task.run())
    fresh = policy.agent(1, NETWORK)
    fresh.hear(0, QUERIES[1:2], [-5.0])
    np.testing.assert_allclose(agent.predict(QUERIES).mean, fresh.predict(QUERIES).mean, atol=1e-12)


def test_results_of_others_and_of_older_tasks_are_refused(rng):
    policy = policy_of()
    agent, other = informed(policy, rng), informed(policy, rng)
    first = agent.learning_task().run()
    last = agent.learning_task().run()
    before = agent.to_bytes()
    for result, complaint in [
        (first, "of an older task"),
        (other.learning_task().run(), "of another agent"),
        # another process may count its agents alike
        (dataclasses.replace(last, agent=2), r"of another agent \(2, or"),
    ]:
        with pytest.raises(LocalProtocolError, match=complaint):
            agent.adopt(result)
    for nothing in (None, "result", last.posterior, agent.learning_task):
        with pytest.raises(InputError, match="adopt takes what"):
            agent.adopt(nothing)
    assert agent.to_bytes() == before
    agent.adopt(last)
    with pytest.raises(LocalProtocolError, match="was adopted already"):
        agent.adopt(last)


def test_a_restored_agent_adopts_nothing_of_before(rng):
    policy = policy_of()
    agent = informed(policy, rng)
    result = agent.learning_task().run()
    again = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
    with pytest.raises(LocalProtocolError, match="restored since"):
        again.adopt(result)
    agent.adopt(result)
    again.adopt(again.learning_task().run())
    assert again.to_bytes() == agent.to_bytes()


def test_a_task_that_waits_too_long_is_void(rng):
    """Of own rewards since a task, a bounded number is remembered."""
    agent = informed(policy_of(), rng)
    agent.adopt(agent.learning_task().run())
    agent.observe(QUERIES[0], 1.0)
    result = agent.learning_task().run()
    for decision in agent.decide_many([QUERIES] * 1030, learn=False):
        agent.reward(decision, 1.0)
    with pytest.raises(LocalProtocolError, match="of an older task"):
        agent.adopt(result)
    folded = agent.predict(QUERIES, learn=False)
    agent.adopt(agent.learning_task().run())
    learnt = agent.predict(QUERIES, learn=False)
    np.testing.assert_allclose(folded.mean, learnt.mean, atol=1e-9)
    np.testing.assert_allclose(folded.std, learnt.std, atol=1e-9)


def test_exact_beliefs_are_not_learnt_apart():
    agent = cb.EagerKernelUCB(cb.kernels.RBF(), similarity=SAME).agent(1, NETWORK)
    with pytest.raises(LocalProtocolError, match="give the policy features="):
        agent.learning_task()


@pytest.mark.parametrize("similarity", [SAME, EVIDENCE], ids=["same", "evidence"])
def test_an_agent_decides_while_a_thread_learns(similarity, rng):
    """What a thread finds is what the task says, whatever the agent does meanwhile."""
    policy = policy_of(similarity, intercept=1.0)
    agent, peer = informed(policy, rng), policy.agent(0, NETWORK)
    waiting, done, stop = [], [], threading.Event()

    def learn():
        while not stop.is_set():
            if waiting:
                task = waiting.pop()
                done.append((task, task.run()))

    thread = threading.Thread(target=learn)
    thread.start()
    adopted, running = [], False
    try:
        for _ in range(200):
            if not running and (task := agent.learning_task()) is not None:
                waiting.append(task)
                running = True
            elif done:
                task, result = done.pop()
                agent.adopt(result)
                adopted.append((task, result))
                running = False
            decision = agent.decide(rng.normal(size=(3, D)), learn=False)
            assert np.isfinite([decision.mean, decision.std]).all()
            agent.reward(decision, rng.normal())
            for message in peer.reward(peer.took(QUERIES, 0), rng.normal()):
                agent.receive(message)
    finally:
        stop.set()
        thread.join()
    for task, result in adopted:
        np.testing.assert_array_equal(task.run().posterior.mean, result.posterior.mean)
    assert agent.known == 18 + 400
    again = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
    np.testing.assert_array_equal(again.predict(QUERIES).mean, agent.predict(QUERIES).mean)


def test_agents_of_one_policy_live_in_threads_of_their_own():
    """They share what the policy worked out for the network, and nothing that changes."""
    policy = policy_of(EVIDENCE)

    def live(agent, choices):
        rng = np.random.default_rng(agent.agent)
        for _ in range(30):
            agent.hear(1, rng.normal(size=(2, D)), rng.normal(size=2))
            decision = agent.decide(rng.normal(size=(3, D)))
            choices.append((decision.index, decision.mean, decision.std))
            agent.reward(decision, rng.normal())

    def lives(threaded):
        found = [[], [], []]
        threads = [
            threading.Thread(target=live, args=(policy.agent(v, NETWORK), found[v]))
            for v in range(3)
        ]
        for thread in threads:
            thread.start()
            if not threaded:
                thread.join()
        for thread in threads:
            thread.join()
        return found

    assert lives(threaded=True) == lives(threaded=False)


def test_a_peer_that_counts_more_than_can_be_counted_stops_nobody(rng):
    policy = policy_of(say=cb.say.Sums())
    agent, peer = policy.agent(1, NETWORK), policy.agent(0, NETWORK)
    agent.predict(QUERIES)
    [digest] = peer.reward(peer.took(QUERIES, 0), 1.0)
    for n in (2.0**63, 2.0**62, 2.0**53):
        sums = np.append(n, digest.sums[1:])
        with pytest.raises(RemoteProtocolError, match="is no count of observations"):
            agent.receive(dataclasses.replace(digest, round=2**63 - 1, sums=sums))
    for origin in (0, 2, 3):  # as much as can be
        sums, ttl = np.append(2.0**50, digest.sums[1:]), 1 if origin == 3 else 2
        agent.receive(
            dataclasses.replace(digest, round=2**63 - 1, origin=origin, sums=sums, ttl=ttl)
        )
    agent.predict(QUERIES)
    again = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
    assert again.known == agent.known == 3 * 2**50


@pytest.mark.parametrize("stored", [False, True])
def test_a_result_that_is_adopted_late_keeps_own_rewards_and_lets_news_wait(stored, rng):
    policy = policy_of(intercept=1.0)
    agent = informed(policy, rng)
    agent.adopt(agent.learning_task().run())
    agent.hear(0, QUERIES, [1.0, 2.0, 3.0])
    result = agent.learning_task().run()
    fresh = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
    for y in (5.0, -4.0):
        agent.reward(agent.took(QUERIES, 1), y)
        fresh.hear(1, QUERIES[1:2], [y])
    agent.hear(2, QUERIES, np.ones(3))
    agent.adopt(result)
    if stored:
        agent = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
    found, expected = agent.predict(QUERIES, learn=False), fresh.predict(QUERIES)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-9)
    np.testing.assert_allclose(found.std, expected.std, atol=1e-9)
    fresh.hear(2, QUERIES, np.ones(3))
    np.testing.assert_allclose(agent.predict(QUERIES).mean, fresh.predict(QUERIES).mean, atol=1e-9)
