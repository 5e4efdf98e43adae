"""Code in tables may break at `/`, `_`, `.` and `:`, and nowhere else.

Paths and names of tests are long; broken at any letter they cannot be read, and unbroken they make
a table wider than the page.
"""

import re
from xml.etree.ElementTree import Element, SubElement

import markdown
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

_BREAKS = re.compile(r"(?<=[/_.:])(?!py\b)(?=[A-Za-z]{2})")


class _InTables(Treeprocessor):
    """Put a place to break behind each of these marks."""

    def run(self, root: Element) -> None:
        for cell in (*root.iter("td"), *root.iter("th")):
            for code in cell.iter("code"):
                if not len(code) and code.text:
                    first, *others = _BREAKS.split(code.text)
                    code.text = AtomicString(first)
                    for text in others:
                        SubElement(code, "wbr").tail = AtomicString(text)


class BreakableExtension(markdown.Extension):
    """The extension, as mkdocs.yml names it."""

    def extendMarkdown(self, md: markdown.Markdown) -> None:
        """Register the treeprocessor behind the one that makes code of backticks."""
        md.treeprocessors.register(_InTables(md), "breakable", 5)


def makeExtension(**settings: object) -> BreakableExtension:
    """Make the extension: how Markdown loads one by its module's name."""
    return BreakableExtension(**settings)
