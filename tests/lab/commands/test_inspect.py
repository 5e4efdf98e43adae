import argparse
import json
import sys
import types

import pytest

import coopbandits as cb
from coopbandits.errors import NetworkError, ParameterError
from coopbandits.lab import inspect_network
from coopbandits.lab.commands.inspect import main

KNOWN = {
    "line": cb.Network.path(8),
    "parts": cb.Network.from_edges([(0, 1)], agents=4),
    "ring": cb.Network.from_edges([(v, (v + 1) % 5) for v in range(5)]),
    "arcs": cb.Network.from_edges([(0, 1), (1, 2), (2, 0)], directed=True),
}


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """Networks by name without any file; returns how they were asked for."""
    calls = []

    def load_network(name, *, agents, seed, data):
        calls.append((name, agents, seed, data))
        if name not in KNOWN:
            raise NetworkError(f"{name} is no network")
        return KNOWN[name]

    module = types.ModuleType("coopbandits.lab.networks")
    module.load_network = load_network  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "coopbandits.lab.networks", module)
    return calls


def options(network="line", **changes):
    given = {"ttl": None, "dim": 10, "agents": None, "seed": 0, "data": None, "out": None}
    return argparse.Namespace(network=network, **{**given, "json": False, **changes})


def row_of(text, ttl, table):
    """The cells of one γ in the table of that title."""
    lines = text.partition(table)[2].splitlines()
    return next(line.split() for line in lines if line.split()[:1] == [ttl])


def test_the_tables_show_what_was_found_for_each_ttl(capsys):
    assert main(options(ttl=[1, 3])) == 0
    text = capsys.readouterr().out
    assert text.startswith("line: 8 agents, 7 edges, diameter 7; neighbours: mean 1.8, most 2")
    for row, shown in zip(
        inspect_network(KNOWN["line"], ttls=[1, 3]).rows, ("1", "3*"), strict=True
    ):
        cells = row_of(text, shown, "What each γ costs")
        assert cells[1:7] == [
            f"{row.mean_neighbourhood:.1f}",
            str(row.largest_neighbourhood),
            str(row.cliques),
            str(row.independent),
            str(row.centres),
            str(row.coop.messages),
        ]
        cells = row_of(text, shown, "What each γ promises")
        assert cells[1:4] == [f"{o.factor:.2f}" for o in (row.coop, row.dist, row.eager)]
        assert cells[7:10] == [f"{o.delay:.1f}" for o in (row.coop, row.dist, row.eager)]
    assert row_of(text, "alone", "What each γ promises")[1:4] == ["1.00"] * 3
    assert "\x1b" not in text  # no terminal, no colours


def test_every_column_is_explained_and_what_the_factors_are_not(capsys):
    main(options())
    lines = capsys.readouterr().out.splitlines()
    for name in (
        *("γ", "reach", "cliques", "apart", "centres", "messages", "bytes"),
        *("factor", "heard", "delay"),
    ):
        assert any(line.startswith(f"{name}  ") for line in lines), name
    text = " ".join(" ".join(lines).split())
    assert "112 each: contexts of 10 numbers" in text
    assert "constants and logarithms are dropped" in text
    assert "multiply the factors by Υ_z" in text
    assert "Eager's is a conjecture" in text
    assert max(map(len, lines)) <= 100


def test_intervals_and_absent_news_are_shown_as_such(capsys, monkeypatch):
    def vague(adjacency, weights):
        return [0], len(adjacency)

    monkeypatch.setattr("coopbandits.theory.network_numbers.bounded_independent_set", vague)
    main(options("ring", ttl=[1]))
    assert "2–3" in row_of(capsys.readouterr().out, "1*", "What each γ costs")
    main(options("parts"))
    text = capsys.readouterr().out
    assert text.startswith("parts: 4 agents, 1 edge in 3 parts, the largest of diameter 1")
    main(options("arcs"))
    assert capsys.readouterr().out.startswith("arcs: 3 agents, 3 arcs")


def test_json_holds_everything_and_no_nan(capsys):
    assert main(options("parts", ttl=[2], dim=4, json=True)) == 0
    record = json.loads(capsys.readouterr().out)
    inspection = inspect_network(KNOWN["parts"], ttls=[2], dim=4)
    (row,) = inspection.rows
    assert record["network"] == "parts"
    assert (record["agents"], record["edges"], record["components"]) == (4, 1, 3)
    assert (record["paper_ttl"], record["near_ttl"], record["least_factor"]) == (1, 2, 0.5)
    shown = record["rows"][0]
    assert (shown["ttl"], shown["cliques"], shown["fewest_cliques"]) == (2, 3, 3)
    assert shown["coop"]["factor"] == row.coop.factor
    assert shown["dist"]["bytes"] == row.dist.messages * (24 + 8 * 5)
    KNOWN["nobody"] = cb.Network.from_edges([], agents=2)
    main(options("nobody", json=True))
    del KNOWN["nobody"]
    record = json.loads(capsys.readouterr().out)
    assert record["mean_distance"] is None
    assert record["rows"][0]["coop"]["delay"] is None


def test_the_network_is_asked_for_as_the_options_say(asked, capsys):
    main(options("line", agents=5, seed=3, data="here", json=True))
    assert asked == [("line", 5, 3, "here")]
    with pytest.raises(NetworkError, match="elsewhere is no network"):
        main(options("elsewhere"))


def test_the_picture_is_written_where_asked_for(tmp_path, capsys):
    file = tmp_path / "new" / "plan.png"
    main(options(out=str(file)))
    assert file.read_bytes()[:4] == b"\x89PNG"
    assert "Picture: " in capsys.readouterr().out


def test_a_picture_that_cannot_be_written_is_refused_before_the_work(asked, tmp_path):
    with pytest.raises(ParameterError, match=r"plan\.doc is no picture"):
        main(options(out="plan.doc"))
    assert asked == []
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ParameterError, match="cannot be written"):
        main(options(out=str(blocked / "plan.png")))
