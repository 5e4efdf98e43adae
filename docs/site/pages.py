"""The documents as pages of the site: where they are, what their links say and where these lead.

A document of `docs/` is a page as it stands, but for three things. A link that shows the name of a
file shows the title of that page; a document that is named without a link becomes one; and links to
files beside `docs/`, such as CHANGELOG.md and recipes, lead to their pages.
"""

import re
import shutil
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Files of the repository's root that are pages too, and their place in the site.
BESIDE = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
# What a search should find first: the page that says what a word means.
_FIRST = {"glossary.md": "---\nsearch:\n  boost: 3\n---\n\n"}

_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[^\n]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
_NAMED = re.compile(r"(?<!\]\()(?<![\w/\[`.])docs/([\w/-]+\.md)(?![\w\]`])")


def write_pages(folder: Path) -> list[str]:
    """Write all documents as pages, with the files that they show.

    Args:
        folder: Where the pages go.

    Returns:
        The pages, by their place in the site.
    """
    sources = {p.relative_to(DOCS).as_posix(): p for p in sorted(DOCS.rglob("*.md"))}
    sources |= {place: ROOT / name for name, place in BESIDE.items()}
    titles = {place: title_of(p.read_text(encoding="utf-8")) for place, p in sources.items()}
    for place, source in sources.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        text = page_of(source.read_text(encoding="utf-8"), place=place, titles=titles)
        target.write_text(_FIRST.get(place, "") + text, encoding="utf-8")
    shutil.copytree(DOCS / "images", folder / "images", dirs_exist_ok=True)
    return list(sources)


def title_of(text: str) -> str:
    """Read a document's first heading, without marks."""
    heading = re.search(r"^# +(.+?) *$", _FENCE.sub("", text), flags=re.MULTILINE)
    return re.sub(r"[`*]", "", heading[1]) if heading else ""


def page_of(text: str, *, place: str, titles: dict[str, str]) -> str:
    """Turn a document into a page: see the top of this file.

    Args:
        text: The document.
        place: Its place in the site.
        titles: The titles of all pages, by place.
    """

    def link(found: re.Match[str]) -> str:
        picture, shown, target = found.groups()
        name, mark, anchor = target.partition("#")
        if re.match(r"\w+:", target) or not name:
            return found[0]
        aim = _aim(name, place)
        if shown.strip("`").removeprefix("docs/") == PurePosixPath(name).name and aim in titles:
            shown = titles[aim]
        return f"{picture}[{shown}]({_relative(aim, place)}{mark}{anchor})"

    def named(found: re.Match[str]) -> str:
        if found[1] not in titles:
            return found[0]
        return f"[{titles[found[1]]}]({_relative(found[1], place)})"

    pieces, last = [], 0
    for fence in _FENCE.finditer(text):
        pieces += [_LINK.sub(link, _NAMED.sub(named, text[last : fence.start()])), fence[0]]
        last = fence.end()
    return "".join([*pieces, _LINK.sub(link, _NAMED.sub(named, text[last:]))])


def _aim(name: str, place: str) -> str:
    """Say which place a link of a document leads to."""
    home = PurePosixPath(place if place in BESIDE.values() else f"docs/{place}").parent
    steps: list[str] = []
    for step in (home / name).parts:
        if step == "..":
            steps.pop()
        else:
            steps.append(step)
    path = "/".join(steps)
    if recipe := re.fullmatch(r"examples/recipes/(\w+)\.py", path):
        return f"recipes/{recipe[1].replace('_', '-')}.md"
    return BESIDE.get(path, path.removeprefix("docs/"))


def _relative(aim: str, place: str) -> str:
    return "../" * place.count("/") + aim
