"""How is a text written where it cannot be written as it is? In letters that everybody has.

A terminal of ASCII or Latin-1 knows no γ, ± or line of a table; there it is "gamma", "+/-" and "-".
"""

import codecs
import sys
from typing import Any, TextIO
from unicodedata import normalize

_ERRORS = "coopbandits-letters"
_WRITTEN = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "Delta", "ε": "epsilon",
    "η": "eta", "θ": "theta", "κ": "kappa", "λ": "lambda", "μ": "mu", "π": "pi", "ρ": "rho",
    "σ": "sigma", "τ": "tau", "Υ": "Upsilon", "φ": "phi", "ω": "omega", "ℓ": "l",
    "±": "+/-", "×": "x", "·": "*", "√": "sqrt", "∞": "inf", "≥": ">=", "≤": "<=", "≠": "!=",
    "≈": "~", "−": "-", "–": "-", "—": "-", "…": "...", "→": "->", "←": "<-", "↑": "^", "↓": "v",
    "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "•": "*", "½": "1/2",
    "─": "-", "━": "-", "═": "=", "│": "|", "┃": "|", "╸": "-", "╺": "-",
}  # fmt: skip


def written(text: str, encoding: str) -> str:
    """Return a text as it can be written in an encoding; it is itself wherever it can be."""
    return text.encode(encoding, _ERRORS).decode(encoding)


def make_printable(*streams: TextIO | Any) -> None:
    """Let streams write any text, whatever their encoding."""
    for stream in streams:
        if is_narrow(stream) and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ERRORS)


def is_narrow(stream: TextIO | Any) -> bool:
    """Tell whether there are letters that a stream cannot write."""
    return not str(getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")


def printed(text: str) -> str:
    """Return a text as it will stand on the screen, for tables whose columns must be in line."""
    return written(text, sys.stdout.encoding or "utf-8")


def _in_other_letters(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return "".join(_letter(letter) for letter in letters), error.end


def _letter(letter: str) -> str:
    """Write one letter: by its name, without its accents, or as a question mark."""
    if letter in _WRITTEN:
        return _WRITTEN[letter]
    bare = normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return bare or "?"


codecs.register_error(_ERRORS, _in_other_letters)
