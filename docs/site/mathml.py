"""Formulas as MathML, which browsers draw by themselves, without scripts and fonts."""

import re

import markdown
from latex2mathml.converter import convert
from markdown.preprocessors import Preprocessor

_DISPLAY = re.compile(r"^([ \t]*)\$\$(.+?)\$\$([,.;]?)[ \t]*$", re.DOTALL | re.MULTILINE)


class _Formulas(Preprocessor):
    """Turn `$$…$$`, alone on its lines, into MathML before anything else is read."""

    def run(self, lines: list[str]) -> list[str]:
        def drawn(found: re.Match[str]) -> str:
            stashed = self.md.htmlStash.store(formula(found[2] + found[3]))
            return f"\n{found[1]}{stashed}\n"

        return _DISPLAY.sub(drawn, "\n".join(lines)).split("\n")


def formula(latex: str) -> str:
    """Convert a displayed formula.

    Args:
        latex: What stands between the dollar signs.
    """
    text = re.sub(r"\s+", " ", latex).strip()
    return f'<div class="formula">{convert(text, display="block")}</div>'


class FormulaExtension(markdown.Extension):
    """The extension, as mkdocs.yml names it."""

    def extendMarkdown(self, md: markdown.Markdown) -> None:
        """Register the preprocessor before code and HTML are read."""
        md.preprocessors.register(_Formulas(md), "formulas", 22)


def makeExtension(**settings: object) -> FormulaExtension:
    """Make the extension: how Markdown loads one by its module's name."""
    return FormulaExtension(**settings)
