"""`coop fit` and `coop replay` on a CSV or Parquet file."""

import json

import numpy as np
import pytest
from pyarrow import csv, parquet

import coopbandits as cb
import shops
from coopbandits.cli import main
from coopbandits.lab import compare_kernels, fit_scaling, read_table, replay_policy

ROLES = {"agent": "shop", "action": "product", "reward": "clicked", "time": "when"}
COLUMNS = [
    *(word for role, name in ROLES.items() for word in (f"--{role}", name)),
    "--features", "cents,hour", "--propensity", "p",
]  # fmt: skip
FOUR = shops.NAMES[:4]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "shops.csv"
    shops.write(path, each=60, shops=FOUR)
    return path


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def python(table):
    return read_table(table, features=["cents", "hour"], propensity="p", **ROLES)


def said(capsys):
    return " ".join(capsys.readouterr().out.split())


def failed(arguments, capsys):
    assert main(arguments) == 2
    return " ".join(capsys.readouterr().err.split())


def test_fit_is_what_python_finds_in_scaled_units(table, capsys):
    assert main(["fit", str(table), *COLUMNS, "--kernels", "rbf", "--json"]) == 0
    [shown] = json.loads(capsys.readouterr().out)
    log = python(table)
    [found] = compare_kernels(log.scaled(fit_scaling(log)), ["rbf"])
    assert (shown["lengthscale"], shown["noise"]) == (found.lengthscale, found.noise)


def test_fit_shows_agents_spans_and_scaling_and_writes_a_policy(table, tmp_path, capsys):
    out = tmp_path / "new" / "policy.toml"
    arguments = [*COLUMNS, "--kernels", "linear", "--out", str(out), "--ttl", "2"]
    assert main(["fit", str(table), *arguments]) == 0
    shown = said(capsys)
    assert "240 decisions of 4 agents (Basel, Bern, Biel, Chur); a context has 5 numbers" in shown
    assert "cents number 250 … 410 the action" in shown
    assert "product 3 categories cocoa, coffee, tea the action – 0 or 1" in shown
    policy, log = cb.Policy.from_spec(out.read_text(encoding="utf-8")), python(table)
    assert (policy.scaling, policy.ttl, policy.name) == (fit_scaling(log), 2, "Eager-KernelUCB")
    assert policy.intercept >= 3 * log.rewards.mean()
    agent = policy.agent("Bern", cb.Network.from_edges([], names=log.names))
    mine = [one for one in log.decisions if one.agent == 1]
    for one in mine:  # contexts and rewards as they are
        agent.observe(one.contexts[one.action], one.reward)
    assert agent.predict(mine[0].contexts).mean.mean() == pytest.approx(0.06, abs=0.06)


def test_parquet_is_read_as_csv_is(table, tmp_path, capsys):
    other = tmp_path / "shops.parquet"
    parquet.write_table(csv.read_csv(table), other)
    shown = []
    for path in (table, other):
        arguments = [*COLUMNS, "--policies", "LinUCB", "--json"]
        assert main(["replay", str(path), *arguments]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_a_replay_of_a_table_is_what_python_finds(table, tmp_path, capsys):
    edges = tmp_path / "edges.csv"
    shops.ring(edges, FOUR)
    arguments = ["--network", str(edges), "--policies", "NaiveCooperation", "--kernel", "linear"]
    assert main(["replay", str(table), *COLUMNS, *arguments, "--json"]) == 0
    [shown] = json.loads(capsys.readouterr().out)
    log = python(table)
    scaling = fit_scaling(log)
    [fit] = compare_kernels(log.scaled(scaling), ["linear"])
    policy = cb.NaiveCooperation(kernel=fit.kernel, ridge=fit.ridge, eta=fit.eta, scaling=scaling)
    network = cb.Network.from_edges(
        [(name, FOUR[v - 1]) for v, name in enumerate(FOUR)], names=FOUR
    )
    found = replay_policy(log, policy, network=network, centre=fit.centre)
    assert (shown["mean"], shown["rounds"]) == (found.mean, len(found.rewards))
    assert np.isfinite(shown["mean"])


def test_without_a_network_nobody_hears_anybody_and_that_is_said(table, capsys):
    arguments = ["replay", str(table), *COLUMNS, "--policies", "LinUCB,NaiveCooperation"]
    assert main([*arguments, "--kernel", "linear"]) == 0
    assert "no --network is given, so nobody hears anybody" in said(capsys)
    assert main([*arguments, "--kernel", "linear", "--network", "complete"]) == 0
    assert "nobody hears anybody" not in said(capsys)


def test_what_is_missing_is_said_with_what_to_type(table, tmp_path, capsys):
    words = failed(["fit", str(table)], capsys)
    assert "--agent and --reward are needed" in words
    assert "Its columns are shop, when, product, cents, hour, age, clicked, p" in words
    with_ages = [*COLUMNS[:-3], "cents,age", "--propensity", "p"]
    words = failed(["fit", str(table), *with_ages], capsys)
    assert "column 'age' has no value in" in words
    assert "--missing drop" in words
    assert main(["fit", str(table), *with_ages, "--missing", "indicate", "--json"]) == 0
    capsys.readouterr()
    words = failed(["replay", str(table), *COLUMNS[2:]], capsys)
    assert "--agent" in words
    words = failed(["fit", str(tmp_path / "log.jsonl"), "--agent", "shop"], capsys)
    assert "--agent is for tables" in words
    words = failed(["fit", str(table), *COLUMNS, "--out", str(tmp_path)], capsys)
    assert "is a folder" in words


def test_actions_can_be_known_by_their_features_alone(table, capsys):
    arguments = ["fit", str(table), *COLUMNS, "--no-action-labels", "--kernels", "linear"]
    assert main(arguments) == 0
    shown = said(capsys)
    assert "a context has 2 numbers" in shown
    assert "product" not in shown.partition("240 rewards")[0]


def test_one_action_is_no_choice(table, capsys):
    alone = ["--agent", "shop", "--reward", "clicked", "--features", "cents"]
    words = failed(["replay", str(table), *alone, "--uniform"], capsys)
    assert "each decision of the log offers one action only" in words
    assert main(["fit", str(table), *alone, "--kernels", "linear", "--json"]) == 0
