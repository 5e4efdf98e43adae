"""Plain text: what a terminal or a spreadsheet shows, and does not obey."""

from unicodedata import category

# Categories of characters that are not shown: controls, surrogates, ends of lines and paragraphs;
# and those that turn the direction of what follows.
_OBEYED = ("Cc", "Cs", "Zl", "Zp")
_TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# What a spreadsheet calculates instead of showing.
_FORMULA = ("=", "+", "-", "@")


def visible(text: str) -> str:
    r"""Spell out what a terminal would obey instead of showing it: a name's escape is \x1b."""
    return "".join(
        c.encode("unicode_escape").decode() if category(c) in _OBEYED or c in _TURNING else c
        for c in text
    )


def visible_lines(text: str) -> str:
    """Spell out the same in each line of a text."""
    return "\n".join(map(visible, text.split("\n")))


def visible_cell(text: str) -> str:
    """Spell out the same in a cell of a table, and put a quotation mark before a formula."""
    shown = visible(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown
