"""Docstrings as mkdocstrings reads them: what stands under `Example:` is a doctest.

The parser of Google's style knows `Examples:`; the project writes `Example:` where there is one.
"""

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Give examples the heading that the parser knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class, function or attribute as it is loaded."""
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
