"""Docstrings as mkdocstrings reads them: examples as doctests, documents as links.

The parser of Google's style knows `Examples:`; the project writes `Example:` where there is one. A
docstring names a document by its path, docs/widths.md; on the site that is a link with its title.
"""

import re
from typing import Any

import griffe
from pages import DOCS, title_of

_NAMED = re.compile(r"(?<!\]\()(?<![\w/`\[])docs/([\w/-]+)\.md(?![\w`\]])")


class Docstrings(griffe.Extension):
    """Change docstrings as they are loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = for_the_site(obj.docstring.value)


def for_the_site(text: str) -> str:
    """Turn a docstring into what the site's parser and pages need.

    Args:
        text: The docstring, as it is in the source.
    """

    def link(found: re.Match[str]) -> str:
        file = DOCS / f"{found[1]}.md"
        if not file.is_file():
            return found[0]
        return f"[{title_of(file.read_text(encoding='utf-8'))}](../{found[1]}.md)"

    return _NAMED.sub(link, text.replace("\nExample:\n", "\nExamples:\n"))
