"""The benchmarks that measure a claim: what they build and fit is what they say."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import coopbandits as cb

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def conjecture(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import conjecture  # noqa: PLC0415

    return conjecture


def test_every_cell_of_the_conjecture_has_the_network_numbers_that_it_says(conjecture):
    for cell in conjecture.cells():
        if cell.V <= 64:
            assert len(cell.network) == cell.V  # and raises where α is another
    chains = conjecture.chains(24, 3, 2)
    assert [len(part) for part in chains.components] == [12, 12]
    assert cb.Network.from_edges(chains.edges, agents=24).distances[:12, :12].max() == 3
    with pytest.raises(ValueError, match="make no 5 chains"):
        conjecture.chains(24, 3, 5)


def test_the_slope_of_a_power_law_is_its_exponent(conjecture, rng):
    x = np.array([1.0, 2.0, 4.0, 8.0])
    regrets = 3.0 * x[:, None] ** -0.5 * rng.exponential(size=(4, 4000))
    found, half = conjecture.slope(x, regrets)
    assert abs(found + 0.5) < half < 0.05


def test_the_worst_norm_counts(conjecture):
    facts = {"sweep": "V", "T": 9, "V": 4, "gamma": 1, "alpha": 3}
    rows = [
        {**facts, "norm": norm, "seed": seed, "regret": regret}
        for norm, regrets in [(0.1, (1.0, 2.0)), (0.2, (3.0, 5.0)), (0.4, (6.0, 1.0))]
        for seed, regret in enumerate(regrets)
    ]
    (point,) = conjecture.worst(rows, "V")
    assert (point["norm"], point["inside"], point["rate"]) == (0.2, True, 3.0)
    np.testing.assert_array_equal(point["regrets"], [3.0, 5.0])


def test_the_conjectures_benchmark_measures_resumes_and_reports(conjecture, tmp_path, monkeypatch):
    small = [
        conjecture.made("gamma", 4, 1, 2, [8], [2, 4]),
        conjecture.made("gamma", 8, 3, 2, [8], [2, 4]),
        *(conjecture.made("ring", 6, g, 6 // (g + 1), [8], [2]) for g in (1, 2)),
        *(conjecture.made("alpha", 6, 1, a, [8], [2]) for a in (1, 3)),
        *(conjecture.made("V", v, 2, 1, [8], [2]) for v in (3, 6)),
        conjecture.made("T", 6, 1, 3, [6, 12], [2]),
    ]
    monkeypatch.setattr(conjecture, "cells", lambda: small)
    monkeypatch.setattr(conjecture, "SEEDS", 4)
    file = tmp_path / "conjecture.csv"
    conjecture.run(file)
    first = file.read_text()
    conjecture.run(file)  # there is nothing left to do
    assert file.read_text() == first
    assert len(first.splitlines()) == 1 + 4 * (2 * 2 + 6 + 2)
    row = conjecture.read(file)[0]
    run = conjecture.play(small[0], small[0].network, row["norm"], row["seed"])
    assert row["regret"] == pytest.approx(run.regret[1:].mean(axis=1).sum(), rel=1e-5)
    argv = ["conjecture", "report", "--results", str(tmp_path), "--figure", str(tmp_path / "c.png")]
    monkeypatch.setattr(sys, "argv", argv)
    conjecture.main()
    found = json.loads((tmp_path / "conjecture.json").read_text())
    assert found["T"]["slope of the conjecture"] == pytest.approx(0.5)
    assert found["V"]["slope of the conjecture"] == pytest.approx(-0.5)
    assert (tmp_path / "c.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_widths_benchmark_prints_its_table():
    command = [sys.executable, "benchmarks/widths.py", "--seeds", "2", "--rounds", "6"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert shown.count("| `SelfNormalised` | 1.00 ± 0.00 | 1.00 ± 0.00 |") == 2
    assert "| R² | `Mixture` | 0." in shown


@pytest.fixture
def similarity(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import similarity  # noqa: PLC0415

    few = similarity.Setting(lambda _: cb.Network.path(5), 2, 2, "path of 5")  # type: ignore[attr-defined]
    monkeypatch.setattr(similarity, "SETTINGS", {"few": few})
    monkeypatch.setattr(similarity, "ROUNDS", 6)
    return similarity


@pytest.fixture
def bound(similarity):
    import similarity_bound  # noqa: PLC0415

    return similarity_bound


def test_the_gap_closed_is_a_ratio_of_sums_with_a_jackknife_interval(similarity):
    alone, oracle = np.array([8.0, 7.0, 9.0]), np.array([1.0, 2.0, 1.0])
    assert similarity.gap_closed(alone, alone, oracle) == (0.0, 0.0)
    assert similarity.gap_closed(alone, oracle, oracle) == (100.0, 0.0)
    value, half = similarity.gap_closed(alone, np.array([2.0, 2.0, 4.0]), oracle)
    assert value == pytest.approx(100 * (6 + 5 + 5) / (7 + 5 + 8))
    left_out = np.array([10 / 13, 11 / 15, 11 / 12])
    error = np.sqrt(2 / 3 * ((left_out - left_out.mean()) ** 2).sum())
    assert half == pytest.approx(100 * 4.302653 * error, rel=1e-6)  # t of 2 degrees of freedom


def test_exact_bayes_that_is_told_the_others_groups_is_a_mixture_of_regressions(similarity, bound):
    problem = similarity.problem_of("a", similarity.SETTINGS["few"], 1)
    labels, regret = bound.true_groups("few", 1), 0.0
    assert set(labels) == {0, 1}
    seen = []  # (round, agent, context, reward)
    for t in range(1, similarity.ROUNDS + 1):
        offer, news = problem.round(t, 1), []
        for v in range(5):
            own = [(x, y) for _, u, x, y in seen if u == v]
            parts = []
            for g in (0, 1):
                group = [
                    (x, y)
                    for s, u, x, y in seen
                    if u != v and labels[u] == g and abs(u - v) <= 2 and s + abs(u - v) <= t
                ]
                evidence = _log_density(group + own) - _log_density(group)
                parts.append((evidence, *_posterior(group + own)))
            odds = np.exp([evidence for evidence, _, _ in parts])
            odds /= odds.sum()
            X = offer.contexts[offer.agents == v]
            mean = sum(p * X @ m for p, (_, m, _) in zip(odds, parts, strict=True))
            variance = sum(
                p * (np.diag(X @ C @ X.T) + (X @ m - mean) ** 2)
                for p, (_, m, C) in zip(odds, parts, strict=True)
            )
            row = offer.starts[v] + (mean + np.sqrt(variance)).round(12).argmax()
            expected = offer.expected[offer.agents == v]
            regret += (expected.max() - offer.expected[row]) / 5
            news.append((t, v, offer.contexts[row], offer.rewards[row]))
        seen += news
    assert bound.bayes_told_the_others("few", 1) == pytest.approx(regret, rel=1e-9)


def _stacked(seen):
    X = np.array([x for x, _ in seen]).reshape(-1, 10)
    return X, np.array([y for _, y in seen])


def _log_density(seen):
    """log p(y): weights N(0, I/10), noise 0.3."""
    X, y = _stacked(seen)
    if not seen:
        return 0.0
    return stats.multivariate_normal(cov=X @ X.T / 10 + 0.09 * np.eye(len(y))).logpdf(y)


def _posterior(seen):
    X, y = _stacked(seen)
    cov = np.linalg.inv(10 * np.eye(10) + X.T @ X / 0.09)
    return cov @ X.T @ y / 0.09, cov


def test_the_benchmark_of_similarities_resumes_where_it_stopped(similarity, tmp_path, monkeypatch):
    monkeypatch.setattr(similarity, "RESULTS", tmp_path / "similarity.csv")
    monkeypatch.setattr(similarity, "ProcessPoolExecutor", lambda _: ThreadPoolExecutor(1))
    arguments = ["few"], "a", ["eager"], 2, 1, ["oracle", "evidence", "alone", "naive"]
    similarity.run(*arguments)
    first = similarity.RESULTS.read_text()
    rows = {"oracle", "evidence", "alone", "naive"}
    assert {job[3] for job in similarity.read()} == rows
    assert len(first.splitlines()) == 1 + 2 * len(rows)
    similarity.run(*arguments)  # there is nothing left to do
    assert similarity.RESULTS.read_text() == first
    job = "few", "a", "eager", "evidence", similarity.FIRST
    assert similarity.read()[job] == pytest.approx(similarity.trial(*job), abs=1e-6)


def test_cases_on_large_networks_say_what_they_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import large  # noqa: PLC0415

    # in a process of its own, here of this tree as another one
    found = large.case("power_law", 60, 4, tree=ROOT / "src")
    assert (found["agents"], found["engine"]) == (60, "statistics")
    network = cb.Network.barabasi_albert(60, 5, seed=0)
    again = large.known_clusters(network, rounds=4)
    assert again["regret"] == found["regret"], "the same seed, the same run"
    assert found["peak GB"] > 0
    monkeypatch.setattr(large, "SIZES", (40, 80))
    monkeypatch.setenv("COOP_BEFORE", str(ROOT / "src"))
    monkeypatch.setattr(large, "case", lambda name, V, *_, **__: {"seconds": V**1.5, "peak GB": 1})
    row = large.growing()
    assert row["slope"] == pytest.approx(1.5)
    assert row["times faster"] == 1.0
    assert set(large.sparse_network("at random").arcs.counts) <= set(range(40))


@pytest.fixture
def agents(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import agents  # noqa: PLC0415
    import serving  # noqa: PLC0415

    monkeypatch.setattr(agents, "RESULTS", tmp_path / "agents.json")
    for name, value in {
        "AGENTS": 4,
        "SHORT": 5,
        "LONG": 8,
        "SEEDS": dict.fromkeys(agents.SEEDS, 2),
        "JUMP_SEEDS": dict.fromkeys(agents.JUMP_SEEDS, (2, 1)),
        "RULES": {"LinUCB": ("Window", "D-LinUCB"), "Evidence": ("Exponential",)},
        "HALF_LIVES": (2, 4),
        "WINDOWS": (4,),
    }.items():
        monkeypatch.setattr(agents, name, value)
    for name, value in {
        "HEARD": (3, 4, 5),
        "DECISIONS": 6,
        "TURNS": 2,
        "INLINE": 3,
        "PACE": 0.0,
        "BLOCK": 4,
        "BLOCKS": 5,
        "REPEATS": 1,
        "MESSAGES": (20, 40),
    }.items():
        monkeypatch.setattr(serving, name, value)
    return agents


@pytest.mark.slow
def test_the_benchmark_of_agents_measures_resumes_and_prints(agents, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["agents", "run"])
    agents.main()
    first = agents.RESULTS.read_text()
    agents.main()  # there is nothing left to do
    assert agents.RESULTS.read_text() == first
    found = {name: row["measured"] for name, row in json.loads(first).items()}
    assert set(found) == set(agents.ROWS)
    regret = agents.constant_case("LinUCB", "c", 1)
    assert found["constant"]["LinUCB|c|1"] == regret, "the same seed, the same run"
    still = [found["jump"][f"nothing|LinUCB|{rule}|1"] for rule in ("never|0", "Window|80")]
    assert still[0] == still[1], "a window longer than the run forgets nothing"
    assert found["decide"]["linear|5|2"]["busy"]["decisions"] == 6
    assert found["memory"]["40"]["rounds"] > found["memory"]["20"]["rounds"]
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["agents", "table"])
    agents.main()
    shown = capsys.readouterr().out
    for row in ("| Eager, Evidence | 2 |", "| D-LinUCB | 80 |", "| Fourier(64) | 5 |", "| ratio |"):
        assert row in shown


def test_a_shifted_problem_has_another_constant_and_the_same_regret(agents):
    network = cb.Network.path(3)
    problem = cb.problems.clustered_linear(network, clusters=[0, 0, 1], seed=1)
    more = agents.Shifted(problem, 10.0)
    plain, shifted = (cb.play(each, cb.Uniform(), 6, seed=2) for each in (problem, more))
    np.testing.assert_array_equal(plain.actions, shifted.actions)
    np.testing.assert_allclose(shifted.regret, plain.regret, atol=1e-12)
    np.testing.assert_allclose(shifted.rewards, plain.rewards + 10.0)


def test_a_ratio_of_sums_has_a_jackknife_interval(agents):
    assert agents.ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]) == (2.0, 0.0)
    value, half = agents.ratio([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])
    left_out = np.array([5 / 4, 4 / 4, 3 / 4])
    error = np.sqrt(2 / 3 * ((left_out - left_out.mean()) ** 2).sum())
    assert (value, half) == (1.0, pytest.approx(4.302653 * error, rel=1e-6))


def test_what_a_value_takes_counts_arrays_behind_views_once(agents):
    import serving  # noqa: PLC0415

    whole = np.zeros(10_000)
    held = {"some": whole[:5], "more": whole[5:], "apart": np.zeros(10_000)}
    assert 80_000 < serving.deep_size(held, (held["apart"],)) < 82_000


@pytest.mark.slow
def test_the_fleets_benchmark_measures_resumes_and_prints(tmp_path):
    file = tmp_path / "fleet.json"
    rows = ["decide", "durable", "clients", "hops", "catch up", "growing", "starting"]
    if any(ROOT.glob(".venv-peers/lib/*/site-packages/fastapi")):
        rows.append("fastapi")
    command = [sys.executable, "-m", "benchmarks.fleet", "run", "--size", "small"]
    command += ["--file", str(file), "--rows", ",".join(rows)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    first = file.read_text()
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)  # nothing is left to do
    assert file.read_text() == first
    found = json.loads(first)
    assert set(found) == set(rows)
    assert found["decide"]["measured"]["star|5"]["busy"]["cpu"]["count"] == 5
    assert found["hops"]["measured"]["2"]["count"] == 6
    last = found["growing"]["measured"]["marks"]["900"]
    assert last["refused"] == {}
    assert last["known"] > 900, "its own are among them"
    command = [sys.executable, "-m", "benchmarks.fleet", "table", "--file", str(file)]
    shown = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout
    assert shown == file.with_suffix(".md").read_text() + "\n"
    for bar in ("≤ 5; ≤ 1.5", "≥ 0.5", "≤ 15", "≤ 0.2", "≤ 1.05", "≤ 1.2"):
        assert f"| {bar} |" in shown


@pytest.mark.slow
def test_a_short_soak_loses_nothing(tmp_path):
    file = tmp_path / "soak.json"
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", "0.1", "--file", str(file)]
    shown = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout
    assert " 0 events lost" in shown
    nodes = json.loads(file.read_text())["nodes"]
    assert len(nodes) == 5
    assert all(node["acknowledged"] > 20 for node in nodes.values())


def test_a_soak_fails_on_whatever_must_not_be(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import soak  # noqa: PLC0415

    def report(minutes=60.0, held=True, code=0, **changes):
        whole = {"lost, or not as sent": 0, "never sent": 0, "open and unknown": 0, "growth": 1.05}
        return {
            "minutes": minutes, "records are held everywhere": held, "exit code of coop up": code,
            "nodes": {"a": whole, "b": whole | changes},
        }  # fmt: skip

    assert soak.faults(report()) == []
    assert soak.faults(report(growth=1.06)) == ["b: memory grew by 6.0%"]
    assert soak.faults(report(minutes=10.0, growth=1.06)) == ["b: memory grew by 6.0%"]
    assert soak.faults(report(minutes=0.1, growth=1.06)) == []
    for kind in ("lost, or not as sent", "never sent", "open and unknown"):
        assert soak.faults(report(**{kind: 2})) == [f"b: 2 events {kind}"]
    assert soak.faults(report(held=False)) == ["not all records are held everywhere"]
    assert soak.faults(report(code=3)) == ["coop up ended with 3"]


def test_memory_is_flat_if_all_tenths_after_the_first_are_alike(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import soak  # noqa: PLC0415

    assert soak.flatness([*np.linspace(50, 100, 100), *[100.0] * 900])["growth"] == 1.0
    assert soak.flatness([*[100.0] * 900, *[110.0] * 100])["growth"] == 1.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "said"),
    [
        ([], "no folder of data is named: give --data or COOPBANDITS_DATA"),
        (["--data", "nowhere"], r"nowhere/hetrec2011-lastfm-2k is no folder; expected the files"),
    ],
    ids=["none", "another"],
)
def test_the_benchmark_on_real_people_asks_for_its_data_before_it_works(named, said, tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks" / "real.py"), "run", *named]
    here = {name: value for name, value in os.environ.items() if name != "COOPBANDITS_DATA"}
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=here
    )
    assert run.returncode == 1
    assert said in run.stderr
    assert "Traceback" not in run.stderr


def test_no_benchmark_and_no_example_names_a_folder_beside_the_repository():
    files = [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    assert len(files) > 20
    for file in files:
        depth = len(file.relative_to(ROOT).parts)
        text = file.read_text(encoding="utf-8")
        assert f"parents[{depth}]" not in text, file
        assert "parent." * depth + "parent /" not in text, file
        assert '"shared"' not in text, file
