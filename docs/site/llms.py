"""llms.txt: the site for language models, by the convention of llmstxt.org.

A file of one line for each page: its title, its place, and its first sentence.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from pages import title_of

_ABOUT = """# coopbandits

> Cooperative multi-agent kernel contextual bandits in Python (Dubey & Pentland, ICML 2020): agents
> that each decide at once on their own problem, and learn from neighbours as far as their problems
> agree.

`pip install coopbandits`, `import coopbandits as cb`. `cb.play` simulates a policy on a problem,
`policy.agent` makes one agent without I/O, `coop up` runs a fleet of nodes over HTTP. The pages
below are Markdown, beside the HTML pages of the same names; the reference is HTML alone.
"""


def write_llms(folder: Path, doors: Iterable[tuple[str, list[str]]]) -> None:
    """Write llms.txt.

    Args:
        folder: Where the pages are.
        doors: Titles of the menu, with the places of their pages.
    """
    parts = [_ABOUT]
    for title, places in doors:
        lines = [f"## {title}", ""]
        for place in places:
            text = (folder / place).read_text(encoding="utf-8")
            if place.startswith("reference/"):  # its words are the docstrings'
                lines.append(f"- [{title_of(text)}]({place.removesuffix('.md')}.html)")
            else:
                lines.append(f"- [{title_of(text)}]({place}){_first_sentence(text)}")
        parts.append("\n".join(lines) + "\n")
    (folder / "llms.txt").write_text("\n".join(parts), encoding="utf-8")


def _first_sentence(text: str) -> str:
    """Read the first sentence below the title, as plain text."""
    body = re.sub(r"^# .*?$", "", text, count=1, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", body):
        if re.match(r"\s*[\w`*\[…'\"(]", paragraph) and not paragraph.startswith(("    ", "```")):
            plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            return ": " + re.split(r"(?<=[.?:]) ", plain)[0].rstrip(":")
    return ""
