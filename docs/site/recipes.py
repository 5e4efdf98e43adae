"""Recipes as pages: a script in cells, with what it printed and drew.

A recipe is a script of `examples/recipes`. `# %% [markdown]` begins a cell of prose, each line
behind `# `; `# %%` begins one of code. Cells run in their order, with one set of names, in a
process of their own; what a cell prints stands below it, and so do the figures that it leaves open
in pyplot.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from pages import ROOT

RECIPES = ROOT / "examples" / "recipes"
_BEGIN = re.compile(r"^# %%(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of a recipe.

    Attributes:
        kind: "prose" or "code".
        text: Markdown, or Python.
        line: Of the script, at which the text begins.
    """

    kind: str
    text: str
    line: int


def cells_of(script: str) -> list[Cell]:
    """Part a script into its cells.

    Args:
        script: The text of the recipe.
    """
    begins = [*_BEGIN.finditer(script)]
    ends = [found.start() for found in begins[1:]] + [len(script)]
    cells = []
    for found, end in zip(begins, ends, strict=True):
        body = script[found.end() : end].strip("\n")
        line = script[: found.end()].count("\n") + 2
        if found[1].strip() == "[markdown]":
            prose = "\n".join(row.removeprefix("#").removeprefix(" ") for row in body.split("\n"))
            cells.append(Cell("prose", prose, line))
        elif body:
            cells.append(Cell("code", body, line))
    return cells


def run_cells(script: str, name: str, folder: Path) -> list[dict[str, object]]:
    """Run a recipe's code, cell by cell, and keep what each printed and drew.

    Args:
        script: The text of the recipe.
        name: Of its file, for errors and figures.
        folder: Where figures go.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    shown: list[dict[str, object]] = []
    for number, cell in enumerate(cells_of(script)):
        printed = StringIO()
        figures: list[str] = []
        if cell.kind == "code":
            code = compile("\n" * (cell.line - 1) + cell.text, name, "exec")
            with redirect_stdout(printed):
                exec(code, names)
            figures = _drawn(folder, f"{Path(name).stem}-{number}")
        shown.append(
            {"kind": cell.kind, "text": cell.text, "out": printed.getvalue(), "figures": figures}
        )
    return shown


def _drawn(folder: Path, stem: str) -> list[str]:
    """Save the figures that are open, and close them."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot  # noqa: PLC0415 (only if the recipe draws)

    files = []
    for number in pyplot.get_fignums():
        file = f"{stem}-{number}.png"
        pyplot.figure(number).savefig(folder / file, dpi=110, bbox_inches="tight")
        files.append(file)
    pyplot.close("all")
    return files


def page_of(name: str, shown: list[dict[str, object]]) -> str:
    """Write a recipe that was run as Markdown.

    Args:
        name: Of its file.
        shown: Its cells, with what they printed and drew.
    """
    parts = []
    for cell in shown:
        if cell["kind"] == "prose":
            parts.append(str(cell["text"]))
            continue
        parts.append(f"```python\n{cell['text']}\n```")
        if cell["out"]:
            parts.append(f'```text {{ .printed title="prints" }}\n{str(cell["out"]).rstrip()}\n```')
        figures = cell["figures"]
        assert isinstance(figures, list)
        parts += [f"![What the code above draws]({file})" for file in figures]
    parts.append(f"---\n\nThis page is the script `examples/recipes/{name}`, with what it printed.")
    return "\n\n".join(parts) + "\n"


def write_recipes(folder: Path, scripts: Path = RECIPES) -> list[str]:
    """Run all recipes, two at a time, and write their pages.

    Args:
        folder: Where the pages go.
        scripts: Where the recipes are.

    Returns:
        The pages, by their place in the site.
    """
    folder = folder / "recipes"
    folder.mkdir(parents=True, exist_ok=True)
    waiting = sorted(scripts.glob("*.py"))
    running: list[tuple[Path, subprocess.Popen[str]]] = []
    pages = []
    while waiting or running:
        while waiting and len(running) < 2:
            running.append((waiting[0], _started(waiting.pop(0), folder)))
        script, process = running.pop(0)
        out, errors = process.communicate()
        if process.returncode:
            for _, other in running:
                other.kill()
            raise SystemExit(f"the recipe {script.name} does not run:\n{errors}")
        text = page_of(script.name, json.loads(out))
        (folder / f"{script.stem.replace('_', '-')}.md").write_text(text, encoding="utf-8")
        pages.append(f"recipes/{script.stem.replace('_', '-')}.md")
    return pages


def _started(script: Path, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, __file__, str(script.resolve()), str(folder.resolve())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"},
    )


def main() -> None:
    """Run one recipe, in an empty folder, and write its cells as JSON."""
    script, folder = Path(sys.argv[1]), Path(sys.argv[2])
    text = script.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        shown = run_cells(text, script.name, folder)
        os.chdir(folder)
    print(json.dumps(shown))


if __name__ == "__main__":
    main()
