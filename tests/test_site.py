"""The documentation site: every page is in the menu, every recipe runs, every link leads somewhere.

The site is built once, with a small page of the demo, and looked at as files and in a browser.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

import coopbandits as cb

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "docs" / "site"
RECIPES = sorted((ROOT / "examples" / "recipes").glob("*.py"))
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
# A reader of the field's papers looks for these; each must lead to the page that explains it.
WORDS = {
    "sufficient statistics": "evidence-model.html",
    "collapsed Gibbs": "glossary.html",
    "acquisition": "glossary.html",
    "event-triggered": "glossary.html",
    "empirical Bayes": "glossary.html",
    "ICM": "glossary.html",
    "write-ahead log": "fleet.html",
    "anti-entropy": "glossary.html",
    "Thompson sampling": "glossary.html",
    "Nyström": "glossary.html",
}
# More than two seconds of CPU, or processes of their own.
SLOW = {
    "a_service.py",
    "federated_sites.py",
    "model_router.py",
    "my_algorithm.py",
    "my_table.py",
}

pytest.importorskip("mkdocstrings_handlers", reason="the extra docs is not installed")


@pytest.fixture(scope="module")
def tools():
    """The modules of docs/site, by name."""
    sys.path.insert(0, str(TOOLS))
    names = (
        "pages",
        "recipes",
        "public_names",
        "llms",
        "mathml",
        "breakable",
        "docstrings",
        "build_site",
    )
    try:
        yield {name: import_module(name) for name in names}
    finally:
        sys.path.remove(str(TOOLS))
        for name in names:
            sys.modules.pop(name, None)


def test_every_document_and_every_recipe_is_in_the_menu(tools):
    listed = [place for _, places in tools["build_site"].doors() for place in places]
    assert len(listed) == len({*listed})
    documents = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    recipes = {f"recipes/{p.stem.replace('_', '-')}.md" for p in RECIPES}
    written = {place for place in listed if not place.startswith("reference/")}
    assert written == documents | recipes | {*tools["pages"].BESIDE.values()}


def test_the_menu_has_four_doors(tools):
    assert [title for title, _ in tools["build_site"].doors()] == [
        "Start",
        "Do",
        "Understand",
        "Look up",
    ]


def test_a_link_shows_a_title_and_leads_to_the_page(tools):
    titles = {"a.md": "All of it", "decisions/b.md": "What for", "changelog.md": "Changelog"}
    text = (
        "[mine](../examples/recipes/my_own.py) "
        "[a.md](a.md#x) [docs/a.md](a.md) [words](a.md), (docs/a.md), `docs/a.md`, "
        "[log](../CHANGELOG.md) [out](https://example.org/a.md) [here](#x)\n"
        "```\n[a.md](a.md) docs/a.md\n```\n"
    )
    assert tools["pages"].page_of(text, place="c.md", titles=titles) == (
        "[mine](recipes/my-own.md) "
        "[All of it](a.md#x) [All of it](a.md) [words](a.md), ([All of it](a.md)), `docs/a.md`, "
        "[log](changelog.md) [out](https://example.org/a.md) [here](#x)\n"
        "```\n[a.md](a.md) docs/a.md\n```\n"
    )
    deep = tools["pages"].page_of("[a](../a.md) docs/a.md", place="decisions/b.md", titles=titles)
    assert deep == "[a](../a.md) [All of it](../a.md)"
    beside = tools["pages"].page_of("docs/a.md", place="changelog.md", titles=titles)
    assert beside == "[All of it](a.md)"


def test_a_recipe_is_cells_in_their_order_with_what_they_print(tools, tmp_path):
    script = (
        "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nx = 2\nprint(x + 1)\n\n# %%\nprint(x)\n"
    )
    shown = tools["recipes"].run_cells(script, "one.py", tmp_path)
    assert [cell["out"] for cell in shown] == ["", "3\n", "2\n"]
    page = tools["recipes"].page_of("one.py", shown)
    assert page.startswith("# Title\n\nWords.\n\n```python\nx = 2\nprint(x + 1)\n```\n")
    assert page.index("\n3\n") < page.index("print(x)\n```") < page.index("\n2\n")


def test_a_recipe_that_fails_names_its_line(tools, tmp_path):
    broken = "# %% [markdown]\n# # Title\n\n# %%\nx = 1\nx / 0\n"
    (tmp_path / "broken.py").write_text(broken, encoding="utf-8")
    with pytest.raises(SystemExit, match=r"(?s)broken\.py.*line 6.*ZeroDivisionError"):
        tools["recipes"].write_recipes(tmp_path / "pages", tmp_path)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.name in SLOW else [])
        for p in RECIPES
    ],
)
def test_the_recipe_runs_and_prints(script, tmp_path):
    shown = subprocess.run(
        [sys.executable, str(TOOLS / "recipes.py"), str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MPLBACKEND": "Agg"},
    ).stdout
    cells = json.loads(shown)
    assert cells[0]["text"].startswith("# ")
    assert any(cell["out"] for cell in cells)


def test_a_function_in_a_module_of_its_name_is_read_where_it_is_made(tools):
    where = tools["public_names"].where
    assert where("coopbandits.problems", "table") == "coopbandits.problems.table.table"
    assert where("coopbandits.kernels", "RBF") == "coopbandits.kernels.RBF"
    assert where("coopbandits.similarity", "Evidence") == "coopbandits.similarity.Evidence"


def test_a_docstring_links_the_documents_that_it_names(tools):
    text = "As said (docs/widths.md, docs/no-such.md), `docs/widths.md`.\n\nExample:\n    >>> 1\n"
    assert tools["docstrings"].for_the_site(text) == (
        "As said ([What η, α, β and √β mean](../widths.md), docs/no-such.md), `docs/widths.md`."
        "\n\nExamples:\n    >>> 1\n"
    )


def test_formulas_become_mathml_without_anything_to_download(tools):
    drawn = tools["mathml"].formula(r"k(x, x') = \exp\bigl(-\lVert x \rVert^2 / 2\ell^2\bigr)")
    assert drawn.startswith('<div class="formula"><math')
    assert "\\" not in drawn


def test_code_in_tables_breaks_at_its_marks_and_nowhere_else(tools):
    text = "| a |\n|---|\n| `x/test_y.py::test_z` |\n\n`x/test_y.py`"
    drawn = tools["breakable"].markdown.markdown(text, extensions=["tables", "breakable"])
    assert "<code>x/<wbr />test_y.py::<wbr />test_z</code>" in drawn
    assert "<code>x/test_y.py</code>" in drawn


def public():
    """Every public name, by its path."""
    for name in cb.__all__:
        if not isinstance(getattr(cb, name), ModuleType):
            yield f"coopbandits.{name}"


def test_the_page_of_errors_names_every_error():
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for name, value in vars(cb.errors).items():
        if isinstance(value, type) and issubclass(value, cb.errors.CoopBanditsError):
            assert f"`{name}`" in text, name


def test_the_page_of_errors_names_every_kind_of_problem_over_http():
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for kind in import_module("coopbandits.fleet.http.problems").KINDS:
        assert f"`{kind}`" in text, kind


def test_the_chart_and_the_table_name_every_policy():
    text = (ROOT / "docs" / "which-algorithm.md").read_text(encoding="utf-8")
    policies, others = import_module("coopbandits.policies"), import_module("coopbandits.baselines")
    for name in (*policies.__all__, *others.__all__):
        assert f"`{name}`" in text, name


def built(pages, out):
    """Build pages that were gathered, as `make docs` does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(
        [*command, "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(out)],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "SITE_PAGES": str(pages),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(TOOLS), os.environ.get("PYTHONPATH")])),
        },
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    demo = folder / "report.html"
    demo.write_text("<!doctype html><title>A run</title><p>As coop demo writes it.", "utf-8")
    command = [sys.executable, str(TOOLS / "build_site.py"), "--demo", str(demo)]
    run = subprocess.run(
        [*command, "--out", str(folder / "site")], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert not run.stderr
    return folder / "site"


class Page(HTMLParser):
    """What a page links to, what it loads, and where links may lead in it."""

    def __init__(self, file):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        has = dict(attrs)
        self.anchors |= {has[key] for key in ("id", "name") if has.get(key)}
        if tag == "a" and has.get("href"):
            self.links.append(has["href"])
        elif tag == "link" and has.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(has.get("href", ""))
        elif has.get("src"):
            self.loads.append(has["src"])


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere_and_nothing_comes_from_outside(site):
    pages = {file: Page(file) for file in site.rglob("*.html")}
    assert len(pages) > 60
    for file, page in pages.items():
        if file.name == "404.html":  # its links start from the root of a server
            continue
        for url in page.loads:
            assert not urlsplit(url).scheme or url.startswith("data:"), (file, url)
        for url in (*page.links, *page.loads):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), (file.name, url)
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors | {"__top"}, (file, url)


@pytest.mark.slow
def test_the_reference_has_every_public_name(site, tools):
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[-1]
    lines = [line.split(" ") for line in zlib.decompress(inventory).decode().splitlines()]
    found = {name for name, kind, *_ in lines if kind != "py:module"}
    names = tools["public_names"]
    for module in names.MODULES:
        path = f"coopbandits.{module}"
        named = {names.where(path, name) for name in names.public_names(import_module(path))}
        assert not named - found, path
    assert not {*public()} - found


@pytest.mark.slow
def test_llms_txt_names_pages_that_are_there(site):
    text = (site / "llms.txt").read_text(encoding="utf-8")
    places = re.findall(r"^- \[.+?\]\((.+?)\)", text, flags=re.MULTILINE)
    assert {"start.md", "glossary.md", "reference/kernels.html"} <= {*places}
    for place in places:
        assert (site / place).is_file(), place


@pytest.mark.slow
def test_a_link_that_leads_nowhere_stops_the_build(site, tmp_path):
    pages = tmp_path / "pages"
    shutil.copytree(site.with_name("site-pages"), pages)
    with (pages / "start.md").open("a", encoding="utf-8") as page:
        page.write("\n[nowhere](glossary.md#no-such-heading)\n")
    run = built(pages, tmp_path / "site")
    assert run.returncode
    assert "no-such-heading" in run.stdout + run.stderr


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    with sync.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@pytest.mark.slow
def test_the_folder_opened_in_a_browser_is_searched_and_asks_for_nothing_outside(site, browser):
    page = browser.new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    for word, place in WORDS.items():
        page.goto(f"{site.as_uri()}/index.html")
        page.locator("[data-md-component=search-query]").press_sequentially(word)
        first = page.locator(".md-search-result__link").first
        first.wait_for()
        page.wait_for_function(
            "place => [...document.querySelectorAll('.md-search-result__link')].slice(0, 8)"
            ".some(link => new URL(link.href).pathname.endsWith(place))",
            arg=f"/{place}",
        )
    page.close()
    assert asked
    assert not [url for url in asked if urlsplit(url).scheme not in ("file", "data", "blob")]
    assert not said


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone(site, browser, scheme):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    for place in ("index", "start", "which-algorithm", "glossary", "reproduction", "theory"):
        page.goto(f"{site.as_uri()}/{place}.html")
        assert page.evaluate("document.documentElement.scrollWidth") == 390, place
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    bright = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
    assert (bright < 100) == (scheme == "dark")
    context.close()
