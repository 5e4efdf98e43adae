"""Records of decisions: what they hold, and what is refused."""

import json

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, NonFiniteError, ParameterError
from coopbandits.records import SCHEMA, Logged, of_run
from worlds import NETWORKS, ragged


def facts(record):
    return (record.round, record.agent, record.contexts.tolist(), record.action, record.reward)


def test_a_record_holds_what_a_decision_and_its_reward_say(rng):
    network = cb.Network.from_edges([("north", "south")])
    policy = cb.LinUCB().exploring(0.2)
    agent, offered = policy.agent("south", network), rng.normal(size=(4, 2))
    for reward in (0.5, 1.5):
        decision = agent.decide(offered)
        record = Logged.of(agent, decision, offered.tolist(), reward)
        agent.reward(decision, reward)
    assert facts(record) == (2, "south", offered.tolist(), decision.index, 1.5)
    assert record.propensity == decision.propensity
    assert record.policy == policy.fingerprint
    assert not record.contexts.flags.writeable
    numbered = cb.LinUCB().agent(1, cb.Network.path(2))
    assert Logged.of(numbered, numbered.decide(offered), offered, 1.0).agent == 1


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"propensity": 0.1},
        {"propensities": [0.9, 0.1], "policy": "of my own"},
        {"policy": "f" * 64, "propensity": 1 / 3},
    ],
    ids=str,
)
def test_a_record_comes_back_from_json_to_the_bit(rng, more):
    record = Logged(3, "north", rng.normal(size=(2, 3)), 1, float(rng.normal()), **more)
    fields = record.to_dict()
    again = Logged.from_dict(json.loads(json.dumps(fields)))
    assert again.to_dict() == fields
    assert facts(again) == facts(record)
    assert (again.propensity, again.policy) == (record.propensity, record.policy)
    assert fields["schema"] == SCHEMA
    assert set(more) <= set(fields)


GOOD = {"round": 1, "agent": 0, "contexts": [[0.5], [0.25]], "action": 1, "reward": 0.75}


def test_fields_of_ones_own_are_ignored_and_no_schema_is_the_first():
    assert Logged.from_dict({**GOOD, "user": "x"}).to_dict() == {"schema": 1, **GOOD}


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"schema": 2}, InputError, "schema 2 is not known; this version .* reads 1"),
        ({"schema": "1"}, InputError, "schema '1' is not known"),
        ({"schema": True}, InputError, "schema True is not known"),
        ({"policy": 7}, ParameterError, "policy must be a text, .* got 7"),
        ({"policy": ""}, ParameterError, "policy must be a text"),
        ({"propensity": 0.0}, ParameterError, "above 0 and at most 1"),
        ({"propensity": "0.5"}, ParameterError, "propensity must be a number"),
        ({"action": 2}, ParameterError, r"index of an offered action, 0 … 1, got 2"),
        ({"reward": float("nan")}, NonFiniteError, "reward must be finite"),
    ],
    ids=str,
)
def test_what_is_no_record_is_refused(change, error, told):
    with pytest.raises(error, match=told):
        Logged.from_dict({**GOOD, **change})


def test_what_is_no_object_or_lacks_a_field_is_refused():
    with pytest.raises(InputError, match=r"expected a JSON object .* got \[1\]"):
        Logged.from_dict([1])
    with pytest.raises(InputError, match="'reward' is missing"):
        Logged.from_dict({name: GOOD[name] for name in GOOD if name != "reward"})


def test_contexts_must_be_those_that_were_offered(rng):
    agent, offered = cb.LinUCB().agent(0, cb.Network.path(1)), rng.normal(size=(3, 2))
    decision = agent.decide(offered)
    with pytest.raises(ParameterError, match="is not what decision 1 took"):
        Logged.of(agent, decision, offered + 1.0, 0.5)
    with pytest.raises(ParameterError, match="an agent and what its decide returned"):
        Logged.of(agent, decision.id, offered, 0.5)
    point = agent.decide(cb.Box([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(ParameterError, match="a point of a continuum"):
        Logged.of(agent, point, offered, 0.5)


@pytest.mark.parametrize("engine", ["exact", "messages"])
def test_the_records_of_a_run_are_its_decisions(engine):
    problem, policy = ragged(NETWORKS["grid"], 2), cb.LinUCB().exploring(0.3)
    run = cb.play(problem, policy, rounds=5, seed=3, engine=engine)
    records = of_run(run, problem, policy=policy, seed=3)
    assert [(one.round, one.agent) for one in records] == [
        (t, v) for t in range(1, 6) for v in range(9)
    ]
    np.testing.assert_array_equal([one.action for one in records], run.actions.ravel())
    np.testing.assert_array_equal([one.reward for one in records], run.rewards.ravel())
    np.testing.assert_array_equal([one.propensity for one in records], run.propensities.ravel())
    assert {one.policy for one in records} == {policy.fingerprint}
    for one in records:
        offer = problem.round(one.round, 3)
        np.testing.assert_array_equal(one.contexts, offer.contexts[offer.agents == one.agent])


def test_the_records_of_a_run_are_what_its_agents_would_log():
    problem, policy = ragged(cb.Network.path(1), 2), cb.LinTS(samples=5)
    run = cb.play(problem, policy, rounds=6, seed=3)
    agent = policy.agent(0, problem.network, seed=3)
    for record in of_run(run, problem, policy=policy, seed=3):
        offer = problem.round(record.round, 3)
        decision = agent.decide(offer.contexts)
        reward = float(offer.rewards[decision.index])
        agent.reward(decision, reward)
        mine = Logged.of(agent, decision, offer.contexts, reward)
        assert mine.to_dict() == record.to_dict()


def test_who_is_away_leaves_no_record():
    problem = ragged(NETWORKS["grid"], 2)
    run = cb.play(problem, cb.LinUCB(), rounds=4, links=cb.Links(away={2: (2, 3)}))
    records = of_run(run, problem)
    assert len(records) == 4 * 9 - 2
    assert {one.policy for one in records} == {None}
    assert all(one.propensity is not None for one in records)


def test_propensities_are_those_of_all_decisions_or_of_none():
    problem = ragged(NETWORKS["grid"], 2)
    run = cb.play(problem, cb.LinTS(), rounds=4)
    assert np.isfinite(run.propensities[0]).all()  # at random, as nothing was known
    assert {one.propensity for one in of_run(run, problem)} == {None}


def test_a_run_of_another_problem_or_seed_is_refused():
    problem = ragged(NETWORKS["grid"], 2)
    run = cb.play(problem, cb.LinUCB(), rounds=4)
    with pytest.raises(ParameterError, match="expected the problem and the seed that were played"):
        of_run(run, ragged(NETWORKS["grid"], 3))
    with pytest.raises(ParameterError, match="expected a run of finite decision sets"):
        of_run(run, None)
    with pytest.raises(ParameterError, match="its policy or None"):
        of_run(run, problem, policy="LinUCB")
