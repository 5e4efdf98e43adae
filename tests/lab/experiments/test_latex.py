"""What a document takes from a run is what the run found."""

import re

import pytest

from coopbandits.lab.experiments.experiment import experiment_of
from coopbandits.lab.experiments.latex import escaped, finals_table, write_latex
from coopbandits.lab.experiments.runner import run_experiment
from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.summary import summaries
from lab_small import small

EAGER = {"kind": "EagerKernelUCB", "kernel": "Linear", "similarity": "truth"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    tables = small(
        policies={
            "a_lone & 5%": {"kind": "LinUCB", "eta": 0.3},
            "Eager, K_z known": {**EAGER, "dashed": True},
            "at random": {"kind": "Uniform", "problems": ["linear"]},
        }
    )
    tables["networks"]["star"] = {"kind": "star", "agents": 4}
    tables["problems"]["other"] = dict(tables["problems"]["linear"], dim=2)
    folder = tmp_path_factory.mktemp("latex") / "run"
    return run_experiment(experiment_of(tables), folder, workers=1)


def test_every_policy_has_a_row_and_every_network_a_column(store):
    found = summaries(store)
    first, second = re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", finals_table(store, found),
                               re.DOTALL)  # fmt: skip
    for table, policies in ((first, 3), (second, 2)):
        assert table.startswith(r"\begin{tabular}{lrr}")
        rows = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert len(rows) == 1 + policies
        assert all(len(re.findall(r"(?<!\\)&", row)) == 2 for row in rows)
        assert table.count("{") == table.count("}")
    assert r"a\_lone \& 5\% & " in first
    assert "at random" not in second


def test_cells_are_finals_and_the_least_that_is_no_reference_is_bold(store):
    found = summaries(store)
    text = finals_table(store, found)
    for summary in found:
        mean, half = str(summary.final).split(" ± ")
        shown = rf"\mathbf{{{mean}}}"
        candidates = [
            s.final.value for s in found
            if (s.cell.problem, s.cell.network) == (summary.cell.problem, summary.cell.network)
            and s.cell.policy != "Eager, K_z known"
        ]  # fmt: skip
        bold = summary.final.value == min(candidates)
        assert f"${shown if bold else mean} \\pm {half}$" in text


def test_what_is_written_is_said_and_the_same_every_time(store):
    files = write_latex(store.folder)
    assert [file.name for file in files] == ["regret.pdf", "regret.svg", "regret.png", "finals.tex"]
    first = [file.read_bytes() for file in files]
    assert first[0].startswith(b"%PDF")
    assert [file.read_bytes() for file in write_latex(store.folder)] == first


def test_a_run_of_which_nothing_is_done_has_no_figures(tmp_path):
    with Store.begun(tmp_path / "run", experiment_of(small())):
        pass
    assert write_latex(tmp_path / "run") == []


NAMES = {
    "K_z known": "$K_z$ known",
    r"\input{x} ~^": r"\textbackslash{}input\{x\} \textasciitilde{}\textasciicircum{}",
    "γ ≥ 2, 10 %": r"$\gamma$ $\ge$ 2, 10 \%",
    "two\nlines": "two lines",
    "Erdős-Rényi": "Erdős-Rényi",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_set_as_they_are(name):
    assert escaped(name) == NAMES[name]
