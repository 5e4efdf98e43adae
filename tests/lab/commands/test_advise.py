"""`coop advise`: what Python finds, in tables and words."""

import argparse
import json

import pytest

import coopbandits as cb
from coopbandits.cli import main
from coopbandits.errors import InputError
from coopbandits.lab import Log, Logged, advise as advised, logged, read_agents, read_log, write_log
from coopbandits.lab.commands import advise


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    network = cb.Network.from_edges([("Bern", "Oslo"), ("Oslo", "Kyiv")])
    problem = cb.problems.clustered_linear(network, dim=3, actions=2, noise=0.3, seed=1)
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    write_log(logged(problem, 90, seed=1), path)
    return path


def options(path, **changes):
    defaults = {
        "log": path, "network": "complete", "ttl": [1], "kernels": ["linear"], "uniform": False,
        "most": 1000, "seed": 0, "out": None, "json": False,
    }  # fmt: skip
    return argparse.Namespace(**{**defaults, **changes})


def test_json_is_what_python_finds(path, capsys):
    assert advise.main(options(path, json=True)) == 0
    said = json.loads(capsys.readouterr().out)
    log = read_log(path)
    network = cb.Network.from_edges(
        [("Bern", "Oslo"), ("Bern", "Kyiv"), ("Oslo", "Kyiv")], names=log.names
    )
    found = advised(log, network=network, ttls=(1,), kernels=["linear"])
    assert said["verdict"] == found.verdict
    assert said["recommended"] == found.recommended.name
    assert said["fingerprint"] == found.policy.fingerprint
    for one, other in zip(said["candidates"], found.judged, strict=True):
        assert one["value"] == other.value
        assert one["learning"] == other.replay.mean
    assert [one["agent"] for one in said["agents"]] == ["Bern", "Kyiv", "Oslo"]
    values = sum(one["trained"] * one["decisions"] for one in said["agents"])
    assert values / len(log) == pytest.approx(found.of(found.recommended).value)


def test_tables_have_a_row_for_each_candidate_and_each_agent(path, tmp_path, capsys):
    assert advise.main(options(path, most=60, out=tmp_path / "advice")) == 0
    shown = capsys.readouterr().out
    rows = [line.split()[0] for line in shown.splitlines() if line.split()]
    assert {"alone", "estimated,", "all", "Bern", "Kyiv", "Oslo", "Verdict:"} <= {*rows}
    assert shown.count("←") == 1
    assert "Of each agent its latest 60 decisions were used (--most)." in shown
    assert f"read_agents('{tmp_path / 'advice'}')" in shown
    stored = read_agents(tmp_path / "advice")
    assert stored["Oslo"].known >= 60
    assert stored["Oslo"].decide(read_log(path).decisions[0].contexts).id == 1


def test_a_log_that_is_too_short_for_a_replay_says_so(path, tmp_path, capsys):
    short = tmp_path / "short.jsonl"
    write_log(read_log(path).before(26), short)
    assert advise.main(options(short, network=None)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Not known: alone, learning: only" in shown
    assert "No network is given, so nobody could hear anybody" in shown


def test_bad_input_is_answered_before_anything_is_written(path, tmp_path, capsys):
    with pytest.raises(InputError, match="is a file; expected a folder"):
        advise.main(options(path, out=path))
    bare = tmp_path / "bare.jsonl"
    write_log(
        Log.of(
            [Logged(d.round, d.agent, d.contexts, d.action, d.reward)
             for d in read_log(path).decisions]
        ),
        bare,
    )  # fmt: skip
    out = tmp_path / "advice"
    assert main(["advise", str(bare), "--out", str(out)]) == 2
    assert "pass uniform=True (--uniform)" in capsys.readouterr().err
    assert not out.exists()
