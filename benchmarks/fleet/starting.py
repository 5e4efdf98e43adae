"""How long from an empty environment to five nodes that answer? And `coop up` for others to use."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.fleet.running import ROOT

Facts = dict[str, Any]
STARTING = {"full": {"agents": 5, "turns": 3}, "small": {"agents": 2, "turns": 0}}
FIRST_PORT = 18_080
PATIENCE = 120.0


class Fleet:
    """`coop up` in a process of its own.

    Attributes:
        pid: Of `coop up`.
        urls: By site, where its node answers; once `wait` has returned.
    """

    def __init__(
        self, coop: list[str | Path], folder: Path, agents: int, environment: dict[str, str]
    ) -> None:
        """Start it.

        Args:
            coop: The command that is `coop`.
            folder: The fleet's.
            agents: How many nodes.
            environment: The process's.
        """
        self._folder, self._agents = folder, agents
        self._log = (folder.parent / "up.log").open("wb")
        more = ["--agents", str(agents), "--port", str(FIRST_PORT), "--out", str(folder)]
        self._process = subprocess.Popen(
            [*coop, "up", *more],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        self.pid = self._process.pid
        self.urls: dict[str, str] = {}

    def wait(self) -> None:
        """Wait until all nodes answer /readyz."""
        until = time.monotonic() + PATIENCE
        while len(self.urls) < self._agents or not all(map(ready, self.urls.values())):
            for path in sorted(self._folder.glob("*/node.toml")):
                try:
                    port = tomllib.loads(path.read_text(encoding="utf-8"))["http"]["port"]
                except (KeyError, tomllib.TOMLDecodeError):
                    continue  # it is being written
                self.urls[path.parent.name] = f"http://127.0.0.1:{port}"
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"`coop up` does not get there: {self.said()}")
            time.sleep(0.02)

    def said(self) -> str:
        """Return the end of what it printed."""
        return Path(self._log.name).read_text(encoding="utf-8", errors="replace")[-2000:]

    def stop(self) -> int:
        """End it as Ctrl-C does, and return its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._log.close()


def plain() -> dict[str, str]:
    """Return the environment without what would put other code before what is installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def ready(url: str) -> bool:
    """Tell whether a node says that it is ready."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def starting(settings: Facts) -> Facts:
    """Wall clock time from nothing to five nodes that answer /readyz.

    `python -m venv`, `pip install '.[fleet]'` of this checkout with constraints.txt (packages come
    from pip's cache or the index, as they do for anybody), `coop up --agents 5`.
    """
    steps = []
    for _ in range(settings["turns"]):
        with tempfile.TemporaryDirectory() as name:
            folder, took, since = Path(name), {}, time.perf_counter()
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
            took["venv"] = time.perf_counter() - since
            python, coop = (folder / "venv" / "bin" / name for name in ("python", "coop"))
            install: list[str | Path] = [
                python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                "--no-compile", "-c", ROOT / "constraints.txt", f"{copied(folder)}[fleet]",
            ]  # fmt: skip
            subprocess.run(install, check=True, env=plain(), stderr=subprocess.DEVNULL)
            took["install"] = time.perf_counter() - since - took["venv"]
            fleet = Fleet([coop], folder / "fleet", settings["agents"], plain())
            try:
                fleet.wait()
                took["whole"] = time.perf_counter() - since
                took["up"] = took["whole"] - took["install"] - took["venv"]
            finally:
                fleet.stop()
            steps.append({step: round(seconds, 2) for step, seconds in took.items()})
            print(steps[-1], flush=True)
    return {"turns": steps}


def copied(folder: Path) -> Path:
    """Return a copy of what pip needs of this checkout: it builds in place, and leaves files."""
    target = folder / "checkout"
    target.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, target)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", target / "src", ignore=ignored)
    return target
