"""What other tools read of a log is what was logged: their formats are parsed back."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab import Log, Logged, evaluate_policy, logged, to_obp, to_vw, write_vw
from worlds import NETWORKS, ragged

PROBLEM = cb.problems.kernel(cb.Network.path(3), dim=2, actions=4, seed=4)


def explored(problem, rounds=8, share=0.3):
    policy = cb.LinUCB().exploring(share)
    return Log.of_run(cb.play(problem, policy, rounds=rounds), problem, policy=policy)


def parsed(text):
    """Read Vowpal Wabbit's text: of each example agent, contexts, action, cost and probability."""
    for example in text.removesuffix("\n\n").split("\n\n"):
        shared, *lines = example.split("\n")
        assert shared.startswith("shared |agent v=")
        contexts, labels = [], {}
        for k, line in enumerate(lines):
            label, _, features = line.partition("|")
            assert features.startswith("x ")
            pairs = [feature.split(":") for feature in features[2:].split(" ")]
            assert [name for name, _ in pairs] == [f"x{j}" for j in range(len(pairs))]
            contexts.append([float(value) for _, value in pairs])
            if label:
                assert label.endswith(" ")  # else it would be a tag
                labels[k] = [float(part) for part in label.split(":")]
        [(action, (ignored, cost, p))] = labels.items()
        assert ignored == 0
        yield int(shared.partition("=")[2]), contexts, action, cost, p


@pytest.mark.parametrize("problem", [PROBLEM, ragged(NETWORKS["grid"], 2)], ids=["even", "ragged"])
def test_vowpal_wabbits_text_says_what_was_logged_to_the_bit(problem, tmp_path):
    log = explored(problem)
    assert list(parsed(to_vw(log))) == [
        (one.agent, one.contexts.tolist(), one.action, -one.reward, one.propensity)
        for one in log.decisions
    ]
    write_vw(log, tmp_path / "log.dat")
    assert (tmp_path / "log.dat").read_text(encoding="utf-8") == to_vw(log)


def test_vowpal_wabbits_text_reads_as_its_documents_do():
    one = Logged(1, 0, [[0.5, 1e-7], [-2.0, 3.0]], 1, 0.0, 0.75)
    assert to_vw(Log.of([one])) == (
        "shared |agent v=0\n|x x0:0.5 x1:1e-07\n0:0.0:0.75 |x x0:-2.0 x1:3.0\n\n"
    )


def test_open_bandit_pipelines_dictionary_says_what_was_logged():
    log = explored(PROBLEM)
    feedback = to_obp(log)
    N = len(log)
    assert (feedback["n_rounds"], feedback["n_actions"]) == (N, 4)
    assert {name: feedback[name].shape for name in feedback if not name.startswith("n_")} == {
        "context": (N, 8),
        "action_context": (4, 4),
        "action": (N,),
        "position": (N,),
        "reward": (N,),
        "pscore": (N,),
    }
    assert feedback["action"].dtype == feedback["position"].dtype == np.int64
    assert not feedback["position"].any()
    for i, one in enumerate(log.decisions):
        np.testing.assert_array_equal(feedback["context"][i].reshape(4, 2), one.contexts)
        assert feedback["action"][i] == one.action
        assert (feedback["reward"][i], feedback["pscore"][i]) == (one.reward, one.propensity)


def test_inverse_propensities_of_the_dictionary_give_the_logs_estimate():
    log = explored(PROBLEM, rounds=60, share=0.8)
    feedback = to_obp(log)
    action_dist = np.zeros((len(log), 4, 1))  # as obp's estimators take it
    action_dist[np.arange(len(log)), feedback["context"].reshape(-1, 4, 2)[:, :, 0].argmin(1)] = 1
    rows = np.arange(len(log))
    pi = action_dist[rows, feedback["action"], feedback["position"]]
    found = (pi / feedback["pscore"] * feedback["reward"]).mean()
    value = evaluate_policy(log, lambda c, v: np.eye(4)[c[:, 0].argmin()], estimator="ips")
    assert found == pytest.approx(value.mean, rel=1e-12)


def test_all_propensities_are_told_where_they_are_known():
    log = logged(PROBLEM, 5, policy=cb.LinUCB(), explore=0.4)
    pi_b = to_obp(log)["pi_b"]
    assert pi_b.shape == (15, 4, 1)
    np.testing.assert_array_equal(pi_b[:, :, 0], [one.propensities for one in log.decisions])
    taken = [one.action for one in log.decisions]
    np.testing.assert_array_equal(pi_b[np.arange(15), taken, 0], to_obp(log)["pscore"])
    bare = Log.of([Logged(t, 0, np.eye(2), 1, 1.0) for t in (1, 2)])
    assert (to_obp(bare, uniform=True)["pi_b"] == 0.5).all()
    assert to_vw(bare, uniform=True).count(":-1.0:0.5 |x") == 2


def test_one_agents_decisions_are_exported_by_number_or_name():
    network = cb.Network.from_edges([("north", "south")])
    log = explored(cb.problems.clustered_linear(network, dim=2, clusters=[0, 1]))
    one, two = to_obp(log, agent="south"), to_obp(log, agent=1)
    np.testing.assert_array_equal(one["reward"], log.rewards[log.owners == 1])
    np.testing.assert_array_equal(one["context"], two["context"])
    with pytest.raises(ParameterError, match="agent='west' has no decision in this log"):
        to_obp(log, agent="west")


def test_what_cannot_be_exported_is_refused():
    bare = Log.of([Logged(t, 0, np.eye(2), 1, 1.0) for t in (1, 2)])
    for export in (to_obp, to_vw):
        with pytest.raises(InputError, match="with which probability"):
            export(bare)
        with pytest.raises(ParameterError, match="expected a log"):
            export([])
    with pytest.raises(InputError, match="from 1 to 5 actions; obp knows one number"):
        to_obp(explored(ragged(NETWORKS["grid"], 2)))
