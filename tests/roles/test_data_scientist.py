"""A data scientist with a table of 12 shops, from the file to agents that decide, as they type it.

Names, prices in cents, timestamps, missing ages, clicks at some 6%; every product was shown as
often, and nobody has read more than the help.
"""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

import coopbandits as cb
import shops
from coopbandits.cli import main
from coopbandits.lab import read_agents

LIKES = ("coffee", "cocoa")


def taste(shop, product, hour):
    """Every shop has its customers' taste: coffee in the first six, cocoa in the others."""
    liked = LIKES[shops.NAMES.index(shop) // 6]
    return 0.16 if product == liked else 0.01


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the table and the edges of two regions, in which commands are typed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    rows = shops.write(tmp_path / "shops.csv", each=90, base=taste, seed=3)
    pairs = [(shops.NAMES[v], shops.NAMES[v + 1]) for v in range(11) if v != 5]
    edges = "".join(f"{i},{j}\n" for i, j in pairs)
    (tmp_path / "edges.csv").write_text(f"from,to\n{edges}", encoding="utf-8")
    assert 0.05 < np.mean([row[-2] for row in rows]) < 0.07
    return tmp_path


def typed(line, capsys):
    """Type a line into a terminal; return the exit code and what is shown, in one line."""
    code = main(shlex.split(line)[1:])
    shown = capsys.readouterr()
    return code, " ".join((shown.out + shown.err).split())


def test_from_a_table_of_shops_to_agents_that_decide(desk, capsys):
    # just try it
    code, shown = typed("coop fit shops.csv", capsys)
    assert code == 2
    assert "--agent and --reward are needed" in shown
    assert "shop, when, product, cents, hour, age, clicked, p" in shown

    # a typo, then all columns that look useful
    columns = "--agent shop --action product --reward clicked --time when"
    code, shown = typed(f"coop fit shops.csv {columns} --features price,age", capsys)
    assert code == 2
    assert "no column 'price'" in shown
    code, shown = typed(f"coop fit shops.csv {columns} --features hour,age,when", capsys)
    assert code == 2
    assert "column 'age' has no value in" in shown
    code, shown = typed(
        f"coop fit shops.csv {columns} --features hour,age,when --missing indicate", capsys
    )
    assert code == 2
    assert "column 'when' holds times" in shown
    assert "such as the hour" in shown

    # what contexts are made of, in whose units, and a policy for the engineer
    features = "--features cents,hour,age --missing indicate"
    code, shown = typed(
        f"coop fit shops.csv {columns} {features} --kernels linear --out policy.toml", capsys
    )
    assert code == 0
    assert "1080 decisions of 12 agents (Basel, Bern, Biel," in shown
    assert "cents number 250 … 410 the action" in shown
    policy = cb.Policy.from_spec((desk / "policy.toml").read_text(encoding="utf-8"))
    assert policy.scaling.shift[0] == pytest.approx(np.mean([*shops.PRODUCTS.values()]))
    assert policy.intercept > 0

    # nothing said how likely each product was shown; it was one in three
    code, shown = typed(f"coop replay shops.csv {columns} --policies LinUCB", capsys)
    assert code == 2
    assert "pass uniform=True (--uniform)" in shown
    code, shown = typed(f"coop replay shops.csv {columns} --policies LinUCB --uniform", capsys)
    assert code == 0
    assert "nobody hears anybody" in shown

    # which policy? no hour, no age: a small table that everybody understands
    advise = f"coop advise shops.csv {columns} --propensity p --network edges.csv --ttl 1"
    code, shown = typed(f"{advise} --kernels linear --out advice", capsys)
    assert code == 0
    assert all(name in shown for name in shops.NAMES)
    assert "alone" in shown
    assert "estimated, γ = 1" in shown
    assert "Kernel: linear" in shown
    assert "Verdict:" in shown
    assert "earns more than what was logged" in shown
    assert "read_agents('advice')" in shown

    # the agents go on, and know each shop's taste
    stored = read_agents(desk / "advice")
    offered = stored.columns.contexts({"product": [*shops.PRODUCTS]})
    right = 0
    for v, name in enumerate(shops.NAMES):
        decision = stored[name].decide(offered)
        right += [*shops.PRODUCTS][decision.index] == LIKES[v // 6]
        stored[name].reward(decision, 1.0)
    assert right >= 10
    assert cb.Policy.from_spec((desk / "advice" / "policy.toml").read_text()) == stored.policy


def test_the_same_in_a_notebook(desk):
    table = pd.read_csv(desk / "shops.csv", parse_dates=["when"])
    table["hour"] = table["when"].dt.hour
    log = cb.Log.from_frame(
        table,
        agent="shop",
        action="product",
        features=["cents", "hour"],
        reward="clicked",
        propensity="p",
        time="when",
    )
    assert log.names == tuple(sorted(shops.NAMES))
    assert log.rewards.mean() == pytest.approx(table["clicked"].mean())
    found = cb.lab.advise(log, kernels=["linear"], replays=False)
    text = found.policy.to_toml()
    assert cb.Policy.from_spec(text) == found.policy
    agents = found.agents()
    assert [agent.known for agent in agents] == [90] * 12


def test_a_script_reads_the_advice_as_json(desk, capsys):
    line = (
        "coop advise shops.csv --agent shop --action product --reward clicked --uniform "
        "--kernels linear --most 60 --json"
    )
    assert main(shlex.split(line)[1:]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["recommended"] in [one["policy"] for one in said["candidates"]]
    assert {one["agent"] for one in said["agents"]} == set(shops.NAMES)
    assert {one["decisions"] for one in said["agents"]} == {60}
    assert said["kernel"] == "linear"
