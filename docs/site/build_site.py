"""Build the documentation site: `make docs`.

Pages are gathered first, as Markdown: the documents of `docs/`, recipes with what they print, the
reference of every public name, and llms.txt. MkDocs then makes the site of them, and stops at a
link that leads nowhere. What it makes needs no server and asks for nothing outside its folder.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from llms import write_llms
from pages import ROOT, write_pages
from public_names import write_reference
from recipes import write_recipes

SETTINGS = ROOT / "mkdocs.yml"


def gathered(folder: Path, *, demo: Path) -> None:
    """Write all pages, and what they show, into a folder that is made anew.

    Args:
        folder: Where they go.
        demo: The page that `coop demo` made.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_pages(folder)
    write_recipes(folder)
    write_reference(folder)
    shutil.copytree(ROOT / "docs" / "site" / "static", folder / "static")
    (folder / "demo").mkdir()
    shutil.copy(demo, folder / "demo" / "report.html")
    write_llms(folder, doors())


def doors() -> list[tuple[str, list[str]]]:
    """Read the menu: titles of the first level, with all pages below each."""
    menu = settings()["nav"]
    return [(title, [*_places(below)]) for entry in menu for title, below in entry.items()]


def settings() -> dict[str, list[dict[str, object]]]:
    """Read mkdocs.yml, whatever tags of MkDocs it has."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("", lambda *_: None)
    loaded: dict[str, list[dict[str, object]]] = yaml.load(
        SETTINGS.read_text(encoding="utf-8"), Loader
    )
    return loaded


def _places(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, list | dict):
        for below in entry.values() if isinstance(entry, dict) else entry:
            yield from _places(below)


def main() -> None:
    """Gather the pages and build the site."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "site", help="default out/site")
    parser.add_argument("--demo", type=Path, default=ROOT / "out" / "demo" / "report.html")
    options = parser.parse_args()
    if not options.demo.is_file():
        parser.error(f"there is no page of the demo in {options.demo}; try: coop demo")
    out = options.out.resolve()
    pages = out.with_name(f"{out.name}-pages")
    gathered(pages, demo=options.demo)
    _made(pages, out)
    for source in pages.rglob("*.md"):  # what llms.txt names
        if source.parent.name != "reference":
            shutil.copy(source, out / source.relative_to(pages))
    print(f"Site: {out / 'index.html'}")


def _made(pages: Path, out: Path) -> None:
    """Make the site, or end with what MkDocs has to say.

    Not by `--quiet`: MkDocs counts as faults only warnings that it would show.
    """
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean"]
    made = subprocess.run(
        [*command, "--config-file", str(SETTINGS), "--site-dir", str(out)],
        env=_surroundings(pages),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if made.returncode:
        raise SystemExit(made.stderr)


def _surroundings(pages: Path) -> dict[str, str]:
    """Tell MkDocs where pages and extensions are."""
    here = str(Path(__file__).parent)
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return {
        **os.environ,
        "SITE_PAGES": str(pages),
        "PYTHONPATH": path,
        "NO_MKDOCS_2_WARNING": "1",  # the end of Material is known: docs/dependencies.md
    }


if __name__ == "__main__":
    main()
