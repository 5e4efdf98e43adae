"""A node's process, from outside: it is started, told what to do, and ended by its own id."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}


def environment() -> dict[str, str]:
    """Return the environment of a process that runs this checkout's code on one thread."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": paths}


class Running:
    """A node's process, from outside."""

    def __init__(self, config: dict[str, Any], python: str | Path = sys.executable) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.fleet.node", json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(),
        )
        self.ports: dict[str, int] = self._read()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def ask(self, command: str, *arguments: Any) -> Any:
        """Have a command carried out."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, *arguments]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the node ended with exit code {self._process.wait(5)}")
        return json.loads(line)

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        """End it: by its input's end, else by its own id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
