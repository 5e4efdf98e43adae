"""The page is one file: within its limit, the same every time, and deaf to what names say."""

import json
import re
import shutil
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from coopbandits import cli
from coopbandits.errors import ExperimentError
from coopbandits.lab import read_store, write_report
from coopbandits.lab.report import page as page_module
from coopbandits.lab.report.page import LIMIT, embedded, page

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = [
    "</script><script>window.broken = 1</script>",
    '"><img src=x onerror="window.broken = 1">',
    "{{data}} {{script}} \\u003c \\",
    "__proto__",
    "line\u2028feed & <b>bold</b> 'quoted'",
]


class Elements(HTMLParser):
    """What a browser would make of the page, as far as it matters here."""

    def __init__(self, text):
        super().__init__()
        self.found, self.texts, self.open = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.open = (tag, dict(attributes).get("id"))
        self.texts.setdefault(self.open, "")

    def handle_data(self, data):
        if self.open:
            self.texts[self.open] += data

    def handle_endtag(self, tag):
        self.open = None


def data_of(made):
    return json.loads(Elements(made.decode()).texts["script", "data"])


def test_the_page_is_small_and_asks_for_nothing(real_run):
    made = page(real_run)
    assert len(made) <= LIMIT == 1_000_000
    text = made.decode()
    assert set(re.findall(r"https?://[^\"'\s]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|import\(|WebSocket", text)
    for tag, attributes in Elements(text).found:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form"}
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)


def test_the_pages_policy_allows_its_own_script_and_style_only(real_run):
    [policy] = [
        attributes["content"]
        for tag, attributes in Elements(page(real_run).decode()).found
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert len(re.findall(r"(?:style|script)-src 'sha256-[\w+/]{43}='", policy)) == 2


def test_the_same_run_gives_the_same_bytes_wherever_it_lies(real_run, tmp_path):
    elsewhere = tmp_path / "copied" / "run"
    shutil.copytree(real_run, elsewhere)
    made = page(real_run)
    assert made == page(real_run) == page(elsewhere)
    assert str(real_run).encode() not in made


def test_detail_is_given_up_to_keep_the_limit(real_run):
    whole = page(real_run)
    small = page(real_run, limit=len(whole) - 1)
    assert len(small) < len(whole)
    panel, less = data_of(whole)["panels"][0], data_of(small)["panels"][0]
    assert panel["rounds"] == list(range(1, 13))
    assert less["series"][0]["final"] == panel["series"][0]["final"]  # results never


def test_maps_and_drawings_go_first_where_little_room_is_left(made_run):
    store = made_run(learners=["other"], agents=40)
    scripts = len(page_module.filled({**data_of(page(store.folder)), "panels": []}))
    made = data_of(page(store.folder, limit=scripts))
    assert made["panels"][0]["similarity"] is None or made["panels"][0]["similarity"]["rows"] < 40
    assert len(made["panels"][0]["series"]) == 2


def test_a_run_that_no_page_can_hold_is_refused(real_run):
    with pytest.raises(ExperimentError, match=r"with the least detail, more than 10,000; split"):
        page(real_run, limit=10_000)


def test_names_are_text_whatever_they_say(made_run):
    store = made_run(
        name=HOSTILE[0], policies=HOSTILE, problems=[HOSTILE[0], HOSTILE[3]],
        networks=["__proto__", '"><b>'],
    )  # fmt: skip
    made = page(store.folder)
    elements = Elements(made.decode())
    tags = [tag for tag, _ in elements.found]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert "b" not in tags
    data = data_of(made)
    assert [policy["name"] for policy in data["policies"]] == HOSTILE
    assert {panel["problem"] for panel in data["panels"]} == {HOSTILE[0], HOSTILE[3]}
    assert data["parameters"]["toml"] == store.experiment.to_toml()
    assert elements.texts["title", None] == elements.texts["h1", None] == HOSTILE[0]


def test_embedded_json_is_json_that_ends_no_element():
    value = {name: [name] for name in HOSTILE}
    text = embedded(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded([float("nan")])


def test_every_hole_of_the_template_is_filled_and_every_asset_shipped(real_run):
    folder = Path(page_module.__file__).parent
    holes = re.findall(r"\{\{\w+\}\}", (folder / "template.html").read_text(encoding="utf-8"))
    made = page(real_run)
    assert len(holes) == 7
    assert not any(hole.encode() in made for hole in holes)
    scripts = {file.name for file in folder.glob("*.js")}
    assert scripts == set(page_module._SCRIPTS)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = settings["tool"]["setuptools"]["package-data"]["coopbandits.lab.report"]
    others = {file.suffix for file in folder.iterdir() if file.is_file()} - {".py"}
    assert {f"*{suffix}" for suffix in others} == set(shipped)


def test_the_command_writes_the_page_and_says_where(made_run, tmp_path, capsys):
    store = made_run()
    assert cli.main(["report", str(store.folder)]) == 0
    file = store.folder / "report.html"
    assert file.read_bytes() == page(store.folder)
    size = f"{len(file.read_bytes()) / 1000:,.0f} kB"
    assert capsys.readouterr().out == f"{file} ({size})\n"
    other = tmp_path / "new" / "my page.html"
    assert cli.main(["report", str(store.folder), "--out", str(other)]) == 0
    assert other.read_bytes() == file.read_bytes()
    assert write_report(store.folder) == file
    assert read_store(store.folder).experiment == store.experiment  # a page changes no run


def test_what_is_no_run_or_no_file_is_said_in_one_line(made_run, tmp_path, capsys):
    assert cli.main(["report", str(tmp_path / "nowhere")]) == 2
    assert "holds no run" in capsys.readouterr().err
    folder = made_run().folder
    assert cli.main(["report", str(folder), "--out", str(tmp_path)]) == 2
    assert "is a folder; give the page's file" in capsys.readouterr().err
