import gzip
import json

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, NetworkError, NonFiniteError, ParameterError, ShapeError
from coopbandits.lab import Log, Logged, append_log, logged, read_log, write_log

GOOD = {
    "round": 1,
    "agent": 0,
    "contexts": [[0.5, 1.0], [0.25, 0.1]],
    "action": 1,
    "reward": 0.75,
    "propensity": 0.5,
}


@pytest.fixture(scope="module")
def problem():
    return cb.problems.kernel(cb.Network.path(3), dim=2, actions=4, seed=4)


def file_of(tmp_path, *decisions):
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(map(json.dumps, decisions)), encoding="utf-8")
    return file


def columns(log):
    return [
        (one.round, one.agent, one.contexts.tolist(), one.action, one.reward, one.propensity)
        for one in log.decisions
    ]


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_a_log_is_read_back_to_the_bit(problem, tmp_path, name):
    log = logged(problem, 5, seed=1)
    write_log(log, tmp_path / name)
    again = read_log(tmp_path / name, network=problem.network)
    assert columns(again) == columns(log)
    assert again.decisions[3].propensities.tolist() == log.decisions[3].propensities.tolist()
    first = (tmp_path / name).read_bytes()
    write_log(again, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert (gzip.decompress(first) if name.endswith("gz") else first).count(b"\n") == 15


def test_lines_come_in_any_order_with_gaps_and_fields_of_ones_own(tmp_path):
    late, early = {**GOOD, "round": 9, "agent": 2}, {**GOOD, "round": 4, "user": "x"}
    log = read_log(file_of(tmp_path, late, early))
    assert [(one.round, one.agent) for one in log.decisions] == [(4, 0), (9, 2)]
    assert (log.agents, log.dim, len(log)) == (3, 2, 2)
    assert log.taken.tolist() == [[0.25, 0.1]] * 2
    assert log.propensities.tolist() == [0.5, 0.5]
    assert "2 decisions of 3 agents" in repr(log)


def test_a_log_without_propensities_is_read_too(tmp_path):
    bare = {name: GOOD[name] for name in GOOD if name != "propensity"}
    assert read_log(file_of(tmp_path, bare)).propensities is None


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"round": 0}, ParameterError, "round must be a whole number >= 1, got 0"),
        ({"round": 1.5}, ParameterError, "round must be a whole number >= 1, got 1.5"),
        ({"agent": -1}, ParameterError, "agent must be a whole number >= 0, got -1"),
        ({"agent": 4}, NetworkError, "agent 4 is not in this network"),
        ({"action": 2}, ParameterError, r"index of an offered action, 0 … 1, got 2"),
        ({"action": True}, ParameterError, "got True"),
        ({"contexts": [1.0, 2.0]}, ShapeError, r"contexts has shape \(2,\)"),
        ({"contexts": [[1.0], [2.0, 3.0]]}, ShapeError, "rows of equal length"),
        ({"contexts": [[1.0, 2.0, 3.0]] * 2}, ShapeError, "3 numbers here and 2 in the first"),
        ({"contexts": [[1.0, float("nan")]] * 2}, NonFiniteError, "contexts must be finite"),
        ({"reward": float("inf")}, NonFiniteError, "reward must be finite, got inf"),
        ({"reward": None}, ParameterError, "reward must be a number, got None"),
        ({"propensity": 0.0}, ParameterError, r"above 0 and at most 1, got 0\.0"),
        ({"propensity": 1.5}, ParameterError, r"above 0 and at most 1, got 1\.5"),
        ({"propensity": None}, InputError, "lacks 'propensity', unlike the first"),
        ({"propensities": [0.5, 0.5]}, ParameterError, "both given"),
        (
            {"propensity": None, "propensities": [0.5, 0.4]},
            ParameterError,
            r"sum to 1, got .* which sum to 0\.9",
        ),
        (
            {"propensity": None, "propensities": [1.0, 0.0]},
            ParameterError,
            "its probability cannot have been 0",
        ),
        ({"propensity": None, "propensities": [1.0]}, ShapeError, r"expected \(2,\), one for each"),
        (
            {"propensity": None, "propensities": [0.5, 0.5]},
            InputError,
            "has 'propensities', unlike",
        ),
        ({"round": 1}, InputError, r"two decisions in round 1; .* \(also on line 1\)"),
    ],
    ids=str,
)
def test_a_mistake_is_answered_with_its_line(tmp_path, change, error, says):
    file = file_of(tmp_path, GOOD, {**GOOD, "round": 2}, {**GOOD, "round": 3, **change})
    with pytest.raises(error, match=f"log.jsonl, line 3: .*{says}"):
        read_log(file, network=cb.Network.path(4))


def test_what_is_no_log_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read as a log"):
        read_log(tmp_path / "nowhere.jsonl")
    (tmp_path / "broken.gz").write_bytes(gzip.compress(b"{}" * 500)[:-9])
    with pytest.raises(InputError, match="cannot be read as a log"):
        read_log(tmp_path / "broken.gz")
    (tmp_path / "damaged.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff")
    with pytest.raises(InputError, match="cannot be read as a log"):
        read_log(tmp_path / "damaged.gz")
    for text, says in [
        ("\n \n", "holds no decision"),
        ("{'round': 1}", "line 1: this is no JSON"),
        ("[1]", r"line 1: expected a JSON object .* got \[1\]"),
        ('\n{"round": 1, "agent": 0}', "line 2: 'contexts' is missing"),
    ]:
        (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=says):
            read_log(tmp_path / "log.jsonl")
    one = Logged(1, 0, np.eye(2), 0, 1.0)
    with pytest.raises(InputError, match="agent 0 has two decisions in round 1"):
        Log.of([one, one])
    with pytest.raises(ParameterError, match="at least one decision"):
        Log.of([])
    with pytest.raises(NetworkError, match="agent 3 is not in this network"):
        Log.of([Logged(1, 3, np.eye(2), 0, 1.0)], agents=2)


def test_a_log_is_parted_at_a_round(problem):
    log = logged(problem, 6)
    early, late = log.before(3), log.since(3)
    assert (len(early), len(late)) == (6, 12)
    assert columns(early) + columns(late) == columns(log)
    with pytest.raises(ParameterError, match=r"no decision is left .* rounds 1 … 6"):
        log.since(7)


def test_a_uniform_log_holds_what_play_offers_and_pays(problem):
    log = logged(problem, 3, seed=5)
    for one in log.decisions:
        offer = problem.round(one.round, 5)
        mine = offer.agents == one.agent
        assert np.array_equal(one.contexts, offer.contexts[mine])
        assert one.reward == offer.rewards[mine][one.action]
        assert one.propensities.tolist() == [0.25] * 4


def test_actions_are_logged_as_often_as_their_propensities_say(problem):
    policy = cb.KernelUCB(kernel=cb.kernels.RBF())
    log = logged(problem, 80, policy=policy, explore=0.4, seed=2)
    for one in log.decisions:
        assert sorted(one.propensities.tolist()) == pytest.approx([0.1, 0.1, 0.1, 0.7])
    # the likely action is taken with probability 0.7: 4 standard errors either way
    likely = np.mean([one.propensity > 0.5 for one in log.decisions])
    assert abs(likely - 0.7) < 4 * np.sqrt(0.7 * 0.3 / len(log))


def test_the_logging_policy_learns(problem):
    greedy = logged(problem, 60, policy=cb.KernelUCB(kernel=cb.kernels.RBF()), explore=0.1)
    uniform = logged(problem, 60)
    assert greedy.rewards.mean() > uniform.rewards.mean() + 0.1


def test_logging_that_cannot_be_is_refused(problem):
    with pytest.raises(ParameterError, match="explore must be above 0"):
        logged(problem, 2, policy=cb.LinUCB(), explore=0.0)
    with pytest.raises(ParameterError, match="needs a policy="):
        logged(problem, 2, explore=0.5)
    with pytest.raises(ParameterError, match="is no problem"):
        logged(None, 2)
    with pytest.raises(ParameterError, match=r"explores by itself, .*Log.of_run"):
        logged(problem, 2, policy=cb.LinUCB().exploring(), explore=0.5)


def test_agents_of_a_log_may_have_names(tmp_path):
    decisions = [{**GOOD, "agent": name, "round": 1 + (i > 1)} for i, name in enumerate("baab")]
    file = file_of(tmp_path, *decisions)
    log = read_log(file)
    assert (log.names, log.agents, log.owners.tolist()) == (("a", "b"), 2, [0, 1, 0, 1])
    assert log.called(1) == "'b'"
    write_log(log, tmp_path / "again.jsonl")
    assert columns(read_log(tmp_path / "again.jsonl")) == columns(log)
    assert '"agent": "a"' in (tmp_path / "again.jsonl").read_text(encoding="utf-8")
    # with a network agents have its numbers
    network = cb.Network.from_edges([("b", "a")], names=["c", "b", "a"])
    known = read_log(file, network=network)
    assert (known.names, known.owners.tolist()) == (("c", "b", "a"), [1, 2, 1, 2])
    assert known.before(2).names == ("c", "b", "a")


def test_names_and_numbers_are_not_mixed_and_strangers_are_found(tmp_path):
    mixed = file_of(tmp_path, {**GOOD, "agent": "a"}, {**GOOD, "agent": 1})
    with pytest.raises(InputError, match=r"line 2: agent 1 and, in the first decision, 'a'"):
        read_log(mixed)
    stranger = file_of(tmp_path, {**GOOD, "agent": "Olso"})
    network = cb.Network.from_edges([("Oslo", "Bern")])
    with pytest.raises(NetworkError, match=r"line 1: agent 'Olso' is not.*did you mean 'Oslo'"):
        read_log(stranger, network=network)
    one = Logged(1, "x", [[1.0]], 0, 1.0)
    with pytest.raises(NetworkError, match=r"agent 'x' is not among the names \['y'\]"):
        Log.of([one], names=["y"])
    assert Log.of([one], names=["y", "x"]).owners.tolist() == [1]


def test_a_named_network_logs_names():
    network = cb.Network.from_edges([("north", "south")])
    log = logged(cb.problems.clustered_linear(network, dim=2, clusters=[0, 1]), 3)
    assert log.names == ("north", "south")


@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("file", ["log.jsonl", "log.jsonl.gz"])
def test_the_log_of_a_run_is_read_back_with_propensities_and_policies(tmp_path, file, named):
    edges = [("b", "a"), ("a", "c")] if named else [(0, 1), (1, 2)]
    problem = cb.problems.kernel(cb.Network.from_edges(edges), dim=2, actions=4, seed=4)
    policy = cb.EagerKernelTS(kernel=cb.kernels.RBF(), samples=6).exploring(0.2)
    run = cb.play(problem, policy, rounds=5, seed=2)
    log = Log.of_run(run, problem, policy=policy, seed=2)
    np.testing.assert_array_equal(log.propensities, run.propensities.ravel())
    np.testing.assert_array_equal(log.rewards, run.rewards.ravel())
    assert log.names == (problem.network.names if named else None)
    write_log(log, tmp_path / file)
    again = read_log(tmp_path / file, network=problem.network)
    assert columns(again) == columns(log)
    assert again.policies == log.policies == (policy.fingerprint,)
    assert log.since(3).policies == log.policies
    # decision by decision, as a service would, the same lines come together
    for one in cb.records.of_run(run, problem, policy=policy, seed=2):
        append_log([one], tmp_path / f"grown {file}")
    assert columns(read_log(tmp_path / f"grown {file}", network=problem.network)) == columns(log)


def test_only_decisions_are_appended(tmp_path):
    with pytest.raises(ParameterError, match="expected decisions, each a Logged"):
        append_log([GOOD], tmp_path / "log.jsonl")
    assert not (tmp_path / "log.jsonl").exists()


def test_lines_of_another_schema_are_refused(tmp_path):
    file = file_of(tmp_path, GOOD, {**GOOD, "round": 2, "schema": 7})
    with pytest.raises(InputError, match=r"log.jsonl, line 2: schema 7 is not known"):
        read_log(file)
