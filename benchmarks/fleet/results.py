"""What was measured, on which machine; kept row by row."""

import json
import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
RESULTS = Path(__file__).resolve().parents[1] / "results"


def read(file: Path) -> Facts:
    """Return what has been measured."""
    found: Facts = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def keep(file: Path, row: str, facts: Facts) -> None:
    """Write a row down, beside those that are there."""
    done = read(file)
    done[row] = facts
    text = json.dumps(done, indent=1, ensure_ascii=False)
    # lists of numbers stand on one line each
    text = re.sub(r"\[[-\s\d.e,]+\]", lambda found: re.sub(r"\s+", " ", found[0]), text)
    file.parent.mkdir(exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(file)


def machine() -> Facts:
    """Return the machine's facts, and how busy it is."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    return {
        "cores": os.cpu_count(),
        "cpu": ", ".join(sorted(models)) or platform.machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("numpy", "scipy", "uvicorn", "starlette")},
        "revision": _revision(),
        "load before": os.getloadavg()[0],
    }


def _revision() -> str:
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    answer = subprocess.run(
        asked, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    return answer.stdout.strip() or "unknown"
