"""What the documents say of the code and the tests must be there."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.cli import main
from coopbandits.lab.commands.demo import DEMO
from coopbandits.lab.experiments.experiment import read_experiment
from coopbandits.lab.experiments.reproduce import paper_experiment
from coopbandits.lab.experiments.runner import check
from real_data import data_set, needs

ROOT = Path(__file__).resolve().parents[1]


def python_blocks(file):
    return re.findall(r"```python\n(.*?)```", file.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_readmes_python_examples_run_and_print_what_they_say():
    first, *others = python_blocks(ROOT / "README.md")
    code, _, promised = first.rpartition("# ")
    assert len(code.splitlines()) <= 11  # ten lines and an empty one
    shown = subprocess.run(
        [sys.executable, "-c", code + "".join(others)], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == promised.strip()


@pytest.mark.parametrize(
    "document",
    [
        "architecture.md",
        "changing-networks.md",
        "continuum.md",
        "arms.md",
        "deploy.md",
        "errors.md",
        pytest.param("experiments.md", marks=pytest.mark.slow),
        pytest.param("forgetting.md", marks=pytest.mark.slow),
        pytest.param("logs.md", marks=pytest.mark.slow),
        "pettingzoo.md",
        "planner.md",
        "policy-files.md",
        "rewards-as-they-are.md",
        "saying-less.md",
        "similarity.md",
        "start.md",
        "testing.md",
        "theory.md",
    ],
)
def test_the_documents_examples_run(document):
    blocks = python_blocks(ROOT / "docs" / document)
    assert blocks
    for block in blocks:  # each runs on its own
        subprocess.run([sys.executable, "-c", block], capture_output=True, check=True)


@pytest.mark.slow
def test_the_baselines_example_prints_what_it_says():
    document = ROOT / "docs" / "baselines.md"
    [block] = python_blocks(document)
    shown = subprocess.run(
        [sys.executable, "-c", block], capture_output=True, text=True, check=True
    ).stdout
    assert " ".join(shown.split()) in " ".join(document.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("document", ["baselines.md", "fleet.md", "paper-map.md"])
def test_every_test_that_a_map_names_exists(document):
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    named = 0
    for path, test in re.findall(r"(?:`([\w/]+\.py))?::((?:Test\w+::)?test_\w+)`", text):
        sources = [ROOT / "tests" / path] if path else [*(ROOT / "tests").rglob("test_*.py")]
        name = test.rpartition("::")[2]
        assert any(f"def {name}(" in s.read_text(encoding="utf-8") for s in sources), test
        named += 1
    assert named > {"baselines.md": 6, "fleet.md": 5, "paper-map.md": 40}[document]


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "docs/architecture.md",
        "docs/baselines.md",
        "docs/deploy.md",
        "docs/fleet.md",
        "docs/paper-map.md",
        "CONTRIBUTING.md",
    ],
)
def test_every_module_that_a_document_names_exists(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    for name in set(re.findall(r"`((?:\w+/)*\w+\.py)`", text)):
        lab, fleet = "src/coopbandits/lab", "src/coopbandits/fleet"
        places = [
            "src/coopbandits",
            fleet,
            "tests",
            "",
            "tests/policies",
            lab,
            f"{lab}/experiments",
        ]
        assert any((ROOT / place / name).exists() for place in places), name


def test_the_kernel_between_agents_is_written_one_way():
    """K_z in words, pages and figures; only a document of LaTeX sets it as a formula."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.py")]
    files += [*(ROOT / "src").rglob("*.*")]
    for file in files:
        if file.suffix in (".md", ".py", ".js", ".html") and file.name != "latex.py":
            text = file.read_text(encoding="utf-8")
            assert not re.findall(r"K<sub>z|\bKz\b|\bK_Z\b|\$K_z\$|K_\{z\}|Kᵤ", text), file


def anchors(file):
    """What a link may name behind #: headings in small letters, unmarked, joined by hyphens."""
    text = re.sub(r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    found = []
    for heading in re.findall(r"^#+ +(.+?) *$", text, flags=re.M):
        shown = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading)
        found.append(re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-"))
    return {f"{a}-{n}" if (n := found[:i].count(a)) else a for i, a in enumerate(found)}


def dead_links(document):
    """Links and images of a document that lead to no file, or to no heading of it."""
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        file = document.parent / name if name else document
        if not re.match(r"https?:", target) and (
            not file.exists() or (anchor and anchor not in anchors(file))
        ):
            yield target


@pytest.mark.parametrize(
    "document",
    sorted(
        p.relative_to(ROOT).as_posix() for p in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    ),
)
def test_every_link_leads_to_a_file_and_a_heading_of_it(document):
    assert not list(dead_links(ROOT / document))


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    document = tmp_path / "page.md"
    document.write_text(
        "# A `name`, twice\n\n## Same\n\n## Same\n\n```\n# no heading\n```\n\n"
        "[a](#a-name-twice) [b](page.md#same-1) [c](https://example.org/#x)\n"
        "[d](#no-heading) [e](page.md#same-2) [f](other.md) ![g](images/g.png)\n",
        encoding="utf-8",
    )
    dead = ["#no-heading", "page.md#same-2", "other.md", "images/g.png"]
    assert list(dead_links(document)) == dead


def test_no_large_file_and_no_lock_file_is_tracked():
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git repository")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    assert ROOT / "README.md" in files
    assert not [f for f in files if f.exists() and f.stat().st_size > 1_000_000]
    assert not [f for f in files if re.search(r"\.lock$|[-.]lock\.\w+$", f.name)]


def test_the_demo_is_a_run_and_its_page(tmp_path, monkeypatch, capsys):
    small = {"trials": 1, "rounds": 3}
    monkeypatch.setattr("coopbandits.lab.commands.demo.DEMO", {**DEMO, **small})
    assert main(["demo", "--out", str(tmp_path / "demo"), "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "Eager-KernelUCB" in shown
    assert "agents learn their own: intercept=10" in shown
    assert (tmp_path / "demo" / "figures" / "regret.png").stat().st_size > 10_000
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000


def test_the_demo_takes_rewards_as_they_are_and_the_paper_takes_its_own():
    assert {policy["intercept"] for policy in DEMO["policies"].values()} == {10.0}  # type: ignore[attr-defined]
    paper = paper_experiment(profile="quick", networks=["er"])
    assert paper.policies
    assert not [name for name, policy in paper.policies.items() if "intercept" in policy]


@pytest.mark.parametrize("file", sorted(p.name for p in (ROOT / "examples").glob("*.toml")))
def test_experiments_of_the_examples_can_be_run(file):
    check(read_experiment(ROOT / "examples" / file))


@pytest.mark.slow
def test_whom_to_trust_runs(tmp_path):
    command = [sys.executable, "examples/whom_to_trust.py", "--rounds", "10"]
    shown = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert "evidence: regret per agent" in shown
    for name in ("evidence.png", "mean-embedding.png"):
        assert (tmp_path / name).stat().st_size > 10_000


def test_changing_world_runs():
    command = [sys.executable, "examples/changing_world.py", "--rounds", "8", "--seeds", "2"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert shown.count("more than LinUCB") == 4
    assert "8 rounds, 2 seeds" in shown


@pytest.mark.slow
def test_regret_and_bound_runs(tmp_path):
    command = [sys.executable, "examples/regret_and_bound.py", "--rounds", "12"]
    shown = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert "Dist-KernelUCB" in shown
    assert (tmp_path / "bound.png").stat().st_size > 10_000


ANSWERS = data_set("routellm-mmlu")


@pytest.mark.slow
@needs(ANSWERS)
def test_llm_router_runs(tmp_path):
    command = [sys.executable, "examples/llm_router.py", str(ANSWERS), "--rounds", "3"]
    shown = subprocess.run(
        [*command, "--trials", "2", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    assert "mean of 2 trials" in shown
    for name in ("alone", "one model for all", "cooperating", "least squares, hindsight"):
        assert len(re.findall(rf"│ {name} +│", shown)) == 6  # one for each price
    assert (tmp_path / "llm-router.png").stat().st_size > 10_000


def test_llm_router_says_what_to_download(tmp_path):
    command = [sys.executable, "examples/llm_router.py", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr
    for name in ("RouteLLM", "subject, prompt, mixtral_8x7b_correct and gpt_4_1106_correct"):
        assert name in run.stderr


def shrunk(folder, name, *changes):
    """Copy a benchmark into a folder, each large setting replaced by a small one."""
    text = (ROOT / "benchmarks" / name).read_text(encoding="utf-8")
    for large, small in changes:
        assert large in text
        text = text.replace(large, small)
    folder.mkdir()
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.slow
def test_the_similarity_benchmark_measures_resumes_and_reports(tmp_path):
    script = shrunk(
        tmp_path / "benchmarks",
        "similarity.py",
        ("ETA = 10, 8, 0.3, 120, 0.3", "ETA = 3, 2, 0.3, 3, 0.3"),
        ("erdos_renyi(60, 0.7", "erdos_renyi(5, 0.7"),
        ("TUNING_TRIALS = 20, 1000, 3", "TUNING_TRIALS = 2, 1000, 1"),
    )
    run = [sys.executable, str(script), "run", "er60", "--scenarios", "ad"]
    for _ in range(2):  # the second time there is nothing left to do
        subprocess.run([*run, "--policies", "eager"], capture_output=True, check=True)
    rows = (tmp_path / "benchmarks" / "results" / "similarity.csv").read_text().splitlines()
    assert len(rows) == len(set(rows))
    shown = subprocess.run(
        [sys.executable, str(script), "table"], capture_output=True, text=True, check=True
    ).stdout
    for method in ("alone", "naive", "oracle", "`Coregionalised`", "`MeanEmbedding`, σ_z = 1"):
        row = next(line for line in shown.splitlines() if line.startswith(f"| {method} |"))
        measured = ["±" in text for text in row.split("|")[2:-1]]
        assert measured == [True, False, False, True, False]  # (a) and (d)
    assert shown.count("| **`Evidence`** |") == 1


@pytest.mark.slow
def test_the_benchmark_of_bytes_measures_and_reports(tmp_path):
    script = shrunk(
        tmp_path / "benchmarks",
        "bytes.py",
        ("ETA = 20, 0.3, 3, 5, 6, 0.3, 0.3", "ETA = 4, 0.9, 2, 2, 3, 0.3, 0.3"),
        ("ROUNDS, SEEDS = 150, 10", "ROUNDS, SEEDS = 6, 2"),
    )
    for what in ("run", "table"):
        shown = subprocess.run(
            [sys.executable, str(script), what], capture_output=True, text=True, check=True
        ).stdout
    told = re.findall(r"^\| (.+?) \|.*± \d", shown, flags=re.MULTILINE)
    assert {"alone", "everything", "sums, every k", "only if σ² > cλ"} <= set(told)
    assert len(told) == 16


def test_the_speed_benchmarks_literal_agent_decides_as_the_engine(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import speed  # noqa: PLC0415

    network = cb.Network.erdos_renyi(12, 0.5, seed=2)
    problem = cb.problems.kernel(network, dim=3, actions=4, seed=2)
    policy = cb.CoopKernelUCB(kernel=speed.RBF, similarity=problem.similarity, ttl=2, eta=1.0)
    row = speed.against_the_twin(problem, policy, rounds=15, most=1000)
    assert row["twin: same decisions"]
    assert row["careful twin: same decisions"]
    run, _ = speed.timed(problem, policy, 15, 0)
    # a literal agent that is told of other choices than its own would take is found out
    other, _ = speed.timed(problem, policy.named("x"), 15, 1)
    assert not speed.literal_agent(problem, policy, other, 0, 0, 1000, careful=True)[2]
    assert speed.literal_agent(problem, policy, run, 0, 0, 5, careful=False)[1] < 15


def test_the_continuum_benchmark_finds_what_brute_force_finds(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import continuum  # noqa: PLC0415

    monkeypatch.setattr(continuum, "TRIALS", 1)
    row = continuum.measured(20, continuum.unit, 1)
    assert row["ms"] > 0
    assert row["gap"] < 1e-9

    # a choice that is not the best is found out
    def worst(beliefs, own, seed):
        surface = beliefs.surface(np.empty(0))
        return own.spread[continuum.bound(surface, own.spread).argmin()]

    monkeypatch.setattr(continuum, "decided", worst)
    assert continuum.measured(20, continuum.unit, 1)["gap"] > 0.5
