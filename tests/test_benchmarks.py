"""The benchmarks that measure a claim: what they build and fit is what they say."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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
