"""A hurried reviewer: ten minutes, a terminal, a browser, and the first lines of the README.

What they type is run as they type it, all in one empty folder; what they look at is looked at.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
FIRST_LINES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)[0]
THEN = """
print(run)
print(run.to_frame().head())
print(run.to_frame(per="round").messages.sum() == run.messages.sum())
run.plot(label="Eager").figure.savefig("regret.png")
comparison = cb.compare(problem, [cb.LinUCB(**options), eager], rounds=20, seeds=2)
print(comparison)
print(len(comparison.to_frame()))
comparison.plot().figure.savefig("compared.png")
"""
LOOKED_AT = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser"])), None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reviewer")


@pytest.fixture(scope="module")
def typed(folder):
    """Return what a line prints; it must work, and complain of nothing."""

    def run(line):
        program, *words = shlex.split(line)
        assert program == "coop"
        done = subprocess.run(
            [sys.executable, "-m", "coopbandits.cli", *words],
            capture_output=True, text=True, check=False, cwd=folder,
            env={**os.environ, "MPLBACKEND": "agg"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def demo(typed):
    return typed("coop demo --rounds 8 --trials 1 --workers 1")


@pytest.fixture(scope="module")
def store(demo, folder):
    from coopbandits.lab import read_store  # noqa: PLC0415

    return read_store(folder / "out" / "demo")


def test_coop_says_what_it_can_do_and_where_to_start(typed):
    text = typed("coop")
    assert text == typed("coop --help")
    assert "Start with `coop demo`" in text
    assert "coop demo --out" in typed("coop demo --help")


def test_the_installation_is_well(typed):
    assert typed("coop doctor").endswith("all is well\n")


@pytest.mark.slow
def test_the_demo_says_what_it_found_and_where_its_page_is(demo, folder):
    assert "regret per agent" in demo
    for name in ("alone (LinUCB)", "naive cooperation", "Eager-KernelUCB, Evidence"):
        assert name in demo
    page = folder / demo.splitlines()[-1].split(" (")[0]
    assert page.name == "report.html"
    text = page.read_text(encoding="utf-8")
    headline = re.search(r'<p class="headline">(.*?)</p>', text)[1]
    assert re.fullmatch(r"On Erdős-Rényi\(40, 0\.3\), linear tasks: .+ has? .+\.", headline)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), LOOKED_AT)
def test_the_demos_page_can_be_looked_at(demo, folder, width, scheme):
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    complaints = []
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto((folder / "out" / "demo" / "report.html").as_uri())
        tab.locator("#maps canvas").first.wait_for()
        assert tab.locator("#finals tbody tr").count() == 5
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        wider = tab.evaluate("byId('finals').scrollWidth > byId('finals').clientWidth")
        assert wider == tab.locator(".scroller.beyond").is_visible() == (width == 390)
        browser.close()
    assert complaints == []


@pytest.mark.slow
def test_the_demos_results_can_be_taken_elsewhere(typed, store, folder):
    assert repr(store) == (f"Store('{store.folder}': Forty agents, four tasks, 5 of 5 trials)")
    assert len(store.to_frame()) == 5
    said = typed("coop report out/demo --figures").splitlines()
    for line, start in zip(said, (b"<!doctype", b"%PDF", b"<?xml", b"\x89PNG", b"%"), strict=True):
        assert (folder / line.split(" (")[0]).read_bytes().startswith(start)


@pytest.mark.slow
def test_the_first_lines_of_the_readme_and_what_one_tries_next(folder):
    assert len(FIRST_LINES.strip().splitlines()) <= 12
    done = subprocess.run(
        [sys.executable, "-c", FIRST_LINES + THEN],
        capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    promised = FIRST_LINES.strip().rpartition("# ")[2]
    assert done.stdout.startswith(promised)
    for part in ("Run(50 rounds of 50 agents", "propensity", "True", "± half of 95% intervals"):
        assert part in done.stdout
    for name in ("regret.png", "compared.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
