"""What a release says of itself: one version, one date, a citation that tools can read."""

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml

import coopbandits as cb

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
# The keys of the Citation File Format 1.2.0 that may stand at the top, and in a reference.
TOP = {
    "abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi",
    "identifiers", "keywords", "license", "license-url", "message", "preferred-citation",
    "references", "repository", "repository-artifact", "repository-code", "title", "type", "url",
    "version",
}  # fmt: skip
REFERENCE = {
    "abstract", "authors", "collection-title", "collection-type", "conference", "doi", "editors",
    "end", "identifiers", "month", "publisher", "start", "title", "type", "url", "volume", "year",
}  # fmt: skip
PERSON = {"affiliation", "alias", "email", "family-names", "given-names", "orcid", "website"}


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_newest_release_of_the_changelog_is_this_version():
    headings = re.findall(r"^## (.+)$", CHANGELOG, flags=re.MULTILINE)
    assert headings[0] == "Unreleased"
    released = [re.fullmatch(r"(\d+\.\d+\.\d+) \((\d{4}-\d{2}-\d{2})\)", h) for h in headings[1:]]
    assert all(released), headings
    versions = [tuple(map(int, match[1].split("."))) for match in released]
    assert versions == sorted(versions, reverse=True)
    assert released[0][1] == cb.__version__
    assert all(date.fromisoformat(match[2]) for match in released)


def test_every_release_is_told_by_kinds_of_change():
    for part in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[2:]:
        kinds = re.findall(r"^### (.+)$", part, flags=re.MULTILINE)
        assert kinds
        assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_follows_its_format(citation):
    assert {"cff-version", "message", "title", "authors"} <= set(citation) <= TOP
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert isinstance(citation["date-released"], date)  # YAML's own, as the format has it
    paper = citation["preferred-citation"]
    assert {"type", "title", "authors"} <= set(paper) <= REFERENCE
    assert paper["type"] == "conference-paper"
    assert all(isinstance(paper[key], int) for key in ("year", "volume", "start", "end"))
    for person in [*citation["authors"], *paper["authors"]]:
        assert set(person) <= PERSON or set(person) == {"name"}  # a person, or an entity
    assert {"name"} <= set(paper["conference"])
    for one in paper["identifiers"]:
        assert set(one) <= {"type", "value", "description"}
        assert one["type"] in {"doi", "url", "swh", "other"}


def test_the_citation_is_of_this_release_and_of_the_paper(citation):
    assert citation["version"] == cb.__version__
    assert f"## {citation['version']} ({citation['date-released']})" in CHANGELOG
    assert citation["license"] == PROJECT["project"]["license"]
    paper = citation["preferred-citation"]
    assert [person["family-names"] for person in paper["authors"]] == ["Dubey", "Pentland"]
    for name in ("docs/paper-map.md", "README.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "Dubey" in text
    assert paper["title"] in (ROOT / "docs/paper-map.md").read_text(encoding="utf-8")
    assert PROJECT["project"]["urls"]["Paper"] == paper["url"]


def test_the_pythons_that_are_named_are_those_that_are_tested():
    project = PROJECT["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"PYTHONS ?= {' '.join(named)}\n" in makefile
    assert project["requires-python"] == f">={named[0]}"
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{named[0].replace('.', '')}"


def test_what_is_needed_to_develop_has_a_version():
    pinned = re.findall(
        r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    plain = {re.sub(r"[-_.]+", "-", name).lower() for name in pinned}
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(one for extra in extras for one in extra)]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", one)[0]).lower() for one in wanted}
    assert names - {"coopbandits"} <= plain


def test_the_hooks_before_a_commit_are_local_and_those_of_make():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    for hook in hooks:
        assert {"id", "name", "entry", "language"} <= set(hook)
        assert hook["language"] == "system"
        program, *words = hook["entry"].split()
        assert (
            f"$(BIN)/{program.removeprefix('.venv/bin/')} {' '.join(words[:1])}".strip() in makefile
        )
    assert {hook["entry"].split()[0] for hook in hooks} == {".venv/bin/ruff", ".venv/bin/mypy"}
