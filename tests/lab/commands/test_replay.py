import argparse
import json

import numpy as np
import pytest

import coopbandits as cb
from coopbandits import policies
from coopbandits.cli import main
from coopbandits.errors import InputError, NetworkError, ParameterError
from coopbandits.lab import Log, Logged, fit_kernel, logged, read_log, replay_policy, write_log
from coopbandits.lab.commands import replay
from coopbandits.lab.logs.configured import Fits, configured, deployable


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    problem = cb.problems.kernel(cb.Network.path(3), dim=2, actions=2, norm=2.0, seed=1)
    path = tmp_path_factory.mktemp("log") / "log.jsonl.gz"
    write_log(logged(problem, 60, seed=1), path)
    return path


@pytest.fixture
def edges(tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("# a path\n0 1\n1, 2\n\n", encoding="utf-8")
    return file


def options(path, **changes):
    defaults = {
        "log": path,
        "network": None,
        "policies": ["KernelUCB"],
        "kernel": "rbf",
        "ttl": 1,
        "seed": 0,
        "json": False,
    }
    return argparse.Namespace(**{**defaults, **changes})


def test_json_is_what_python_finds(path, edges, capsys):
    assert replay.main(options(path, policies=["NaiveCooperation"], network=edges, json=True)) == 0
    [shown] = json.loads(capsys.readouterr().out)
    log = read_log(path)
    fit = fit_kernel(log)
    found = replay_policy(
        log,
        cb.NaiveCooperation(kernel=fit.kernel, ridge=fit.ridge, eta=fit.eta),
        network=cb.Network.path(3),
        centre=fit.centre,
    )
    assert shown["mean"] == found.mean
    assert shown["interval"] == list(found.interval)
    assert (shown["policy"], shown["rounds"]) == ("NaiveCooperation", len(found.rewards))


def test_every_named_policy_can_be_tried(path):
    fits = Fits(read_log(path), "rbf")
    for name in policies.__all__:
        policy, _ = configured(name, fits, 1)
        assert isinstance(policy, cb.Policy)


def test_policies_of_fixed_kernels_get_the_fitted_posterior(path, rng):
    log = read_log(path)
    fits = Fits(log, "rbf")
    mine = [one for one in log.decisions if one.agent == 0]
    offered = rng.normal(size=(4, 2))
    for name, linear in [("LinUCB", True), ("OFUL", True), ("IGPUCB", False), ("GPUCB", False)]:
        fit = fits.of(linear=linear)
        policy, centre = configured(name, fits, 1)
        agent = policy.agent(0, cb.Network.path(3))
        for one in mine:
            agent.observe(one.contexts[one.action], one.reward - centre)
        decision = agent.decide(offered)
        X = np.array([one.contexts[one.action] for one in mine])
        expected = fit.predict(X, np.array([one.reward for one in mine]), offered)
        assert decision.mean + centre == pytest.approx(expected[decision.index])


def test_every_named_policy_can_be_written_for_contexts_and_rewards_as_they_are(path):
    log = read_log(path)
    scaling = cb.Scaling(shift=[1.0, -2.0], spread=[0.5, 3.0])
    fits = Fits(log, "rbf", scaling)
    for name in policies.__all__:
        policy = deployable(name, fits, 2)
        assert cb.Policy.from_spec(policy.to_toml()) == policy
        assert name == "Uniform" or (policy.scaling == scaling and policy.intercept > 0)


def test_an_intercept_is_in_the_units_of_its_policys_kernel(path):
    log = read_log(path)
    fits = Fits(log, "linear")
    offered = log.decisions[0].contexts
    means = []
    for name in ("LinUCB", "OFUL", "KernelUCB", "IGPUCB"):  # one posterior, in several units
        agent = deployable(name, fits, 1).agent(0, cb.Network.path(3))
        for one in log.decisions:
            if one.agent == 0:
                agent.observe(one.contexts[one.action], one.reward)
        means.append(agent.predict(offered).mean)
    assert np.ptp(means, axis=0).max() < 1e-6


def test_the_table_has_a_row_for_each_policy(path, capsys):
    replay.main(options(path, policies=["Uniform", "LinUCB"], kernel=None))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mean reward a decision while learning; the log's own is ")
    named = [line.split()[0] for line in lines if line.split()]
    assert [name for name in named if name in ("Uniform", "LinUCB")] == ["Uniform", "LinUCB"]


def test_the_table_says_where_evidence_learns_the_kernel_between_agents(path, edges, capsys):
    replay.main(options(path, policies=["EagerKernelUCB", "NaiveCooperation"], network=edges))
    shown = capsys.readouterr().out
    assert "EagerKernelUCB, Evidence " in shown
    assert shown.count("Evidence") == 1


def test_bad_input_is_an_error_of_the_tree(path, tmp_path, edges):
    with pytest.raises(ParameterError, match=r"policy 'Best' is not known; expected .*LinUCB"):
        replay.main(options(path, policies=["Best"]))
    with pytest.raises(NetworkError, match="cannot be read"):
        replay.main(options(path, network=tmp_path / "none"))
    edges.write_text("0 1\n1 two\n", encoding="utf-8")
    with pytest.raises(NetworkError, match=r"line 2 of .* is '1 two'; expected two whole numbers"):
        replay.main(options(path, network=edges))
    edges.write_text("0 7\n", encoding="utf-8")
    with pytest.raises(NetworkError, match="names agent 7"):
        replay.main(options(path, network=edges))
    bare = Log.of(
        [Logged(d.round, d.agent, d.contexts, d.action, d.reward) for d in read_log(path).decisions]
    )
    write_log(bare, tmp_path / "bare.jsonl")
    with pytest.raises(InputError, match="does not say with which probability"):
        replay.main(options(tmp_path / "bare.jsonl", policies=["Uniform"]))
    assert replay.main(options(tmp_path / "bare.jsonl", policies=["Uniform"], uniform=True)) == 0


def test_a_log_and_a_network_go_by_name(tmp_path, capsys):
    network = cb.Network.from_edges([("Bern", "Oslo"), ("Oslo", "Kyiv")])
    problem = cb.problems.kernel(network, dim=2, actions=2, norm=2.0, seed=1)
    log, edges = tmp_path / "log.jsonl", tmp_path / "towns.csv"
    write_log(logged(problem, 60, seed=1), log)
    edges.write_text("from,to\nOslo,Bern\nKyiv,Oslo\n", encoding="utf-8")
    replay.main(options(log, policies=["NaiveCooperation"], network=edges, json=True))
    by_name = capsys.readouterr().out
    numbered, pairs = tmp_path / "numbers.jsonl", tmp_path / "numbers.txt"
    write_log(Log(read_log(log).decisions, 3), numbered)
    pairs.write_text("0 2\n1 2\n", encoding="utf-8")
    replay.main(options(numbered, policies=["NaiveCooperation"], network=pairs, json=True))
    assert capsys.readouterr().out == by_name
    with pytest.raises(NetworkError, match="names agents by text, such as 'Bern', but the log has"):
        replay.main(options(numbered, network=edges))
    edges.write_text("Oslo,Rome\n", encoding="utf-8")
    with pytest.raises(NetworkError, match="agent 'Rome' is not in this network"):
        replay.main(options(log, network=edges))


def test_the_log_of_agents_that_explore_is_replayed_and_fitted(tmp_path, capsys):
    problem = cb.problems.kernel(cb.Network.path(2), dim=2, actions=2, norm=2.0, seed=1)
    policy = cb.KernelTS(kernel=cb.kernels.RBF(), samples=8).exploring(0.6)
    run = cb.play(problem, policy, rounds=120, seed=1)
    file = str(tmp_path / "log.jsonl")
    write_log(Log.of_run(run, problem, policy=policy, seed=1), file)
    assert main(["replay", file, "--policies", "KernelUCB", "--kernel", "rbf", "--json"]) == 0
    [shown] = json.loads(capsys.readouterr().out)
    assert shown["logged"] == pytest.approx(run.rewards.mean())
    assert shown["floor"] == pytest.approx(run.propensities.min())
    assert main(["fit", file, "--json"]) == 0
    assert {fit["observations"] for fit in json.loads(capsys.readouterr().out)} == {240}
