"""How is a run one file that opens anywhere? The template, filled, and never above its limit.

The page asks for nothing: styles, scripts and data are in it, and its own policy (CSP) forbids
anything else. Names from the experiment reach it only as escaped text.
"""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.store import read_store
from coopbandits.lab.experiments.summary import summaries
from coopbandits.lab.experiments.whole_files import write_whole
from coopbandits.lab.report.colours import colour_rules
from coopbandits.lab.report.content import Detail, content

LIMIT = 1_000_000
"""Bytes that a page may have."""
# Maps are the largest and lose the least by being coarser; curves come last.
_DETAILS = (
    Detail(points=160, rows=400, edges=1500),
    Detail(points=160, rows=200, edges=1500),
    Detail(points=160, rows=128, edges=1000),
    Detail(points=120, rows=80, edges=600),
    Detail(points=80, rows=48, edges=300),
    Detail(points=40, rows=24, edges=0),
    Detail(points=24, rows=0, edges=0),
)
_SCRIPTS = (
    "marks.js", "lines.js", "costs.js", "finals.js", "similarity.js", "network.js", "report.js",
)  # fmt: skip


def write_report(run: str | Path, out: str | Path | None = None) -> Path:
    """Write the page of a run, and return where it is.

    The same run gives the same bytes.

    Args:
        run: The folder that `run_experiment` made; the run need not be finished.
        out: The file; report.html in the run's folder, if not given.
    """
    file = Path(out) if out is not None else Path(run) / "report.html"
    if file.is_dir():
        raise ExperimentError(f"{file} is a folder; give the page's file, such as report.html")
    write_whole(file, page(run))
    return file


def page(run: str | Path, *, limit: int = LIMIT) -> bytes:
    """Return the page of a run, with as much detail as its limit allows."""
    store = read_store(run)
    found = summaries(store)
    made = b""
    for detail in _DETAILS:
        made = filled(content(store, found, detail))
        if len(made) <= limit:
            return made
    raise ExperimentError(
        f"the page of {run} would have {len(made):,} bytes with the least detail, more than "
        f"{limit:,}; split the experiment into fewer problems, networks or policies"
    )


def filled(shown: dict[str, Any]) -> bytes:
    """Fill the template; pieces that are put in are not looked through again."""
    style = _asset("report.css") + colour_rules(shown["policies"])
    script = '"use strict";\n' + "\n".join(_asset(name) for name in _SCRIPTS)
    pieces = {
        "policy": escape(_content_policy(style, script)),
        "title": escape(shown["name"]),
        "headline": escape(shown["headline"]),
        "style": style,
        "data": embedded(shown),
        "script": script,
    }
    text = re.sub(r"\{\{(\w+)\}\}", lambda hole: pieces[hole[1]], _asset("template.html"))
    return text.encode()


def embedded(value: object) -> str:
    """Write JSON that cannot end the element it stands in, whatever names it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _content_policy(style: str, script: str) -> str:
    """Allow this style and this script, by their hashes, and nothing else from anywhere."""
    marks = {
        name: "'sha256-" + b64encode(sha256(text.encode()).digest()).decode() + "'"
        for name, text in (("style", style), ("script", script))
    }
    return (
        f"default-src 'none'; style-src {marks['style']}; script-src {marks['script']}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
