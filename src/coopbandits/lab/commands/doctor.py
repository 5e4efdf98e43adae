"""`coop doctor`: is everything installed, and does it work?

It needs no package of an extra itself, so that it can say which are missing.
"""

import argparse
import importlib
import os
import platform
import sys
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import coopbandits

# What comes with the package; and what each extra brings, with what it is for.
PACKAGES = {
    "numpy": "everything",
    "scipy": "everything",
    "networkx": "graphs",
    "numba": "similarity.Evidence",
    "threadpoolctl": "play",
}
EXTRAS = {
    "lab": {
        "matplotlib": "figures and plot()",
        "pandas": "to_frame()",
        "pyarrow": "Parquet",
        "rich": "tables and bars of coop",
    },
    "progress": {"tqdm": "a bar of play"},
    "dask": {"distributed": "coop run --dask"},
    "datasets": {"sklearn": "lab.lastfm, lab.routellm"},
    "pettingzoo": {"pettingzoo": "lab.parallel_env"},
    "fleet": {
        "starlette": "coop up, coop node",
        "uvicorn": "coop up, coop node",
        "zenoh": "links between nodes",
        "nacl": "signatures of nodes",
        "prometheus_client": "metrics of nodes",
        "msgspec": "coop node, and its client",
        "httpx": "the client of nodes",
    },
}
# What most commands of `coop` need.
_NEEDED = "lab"
# Where the distribution is called otherwise than the module.
_CALLED = {"sklearn": "scikit-learn", "zenoh": "eclipse-zenoh", "nacl": "pynacl",
           "prometheus_client": "prometheus-client"}  # fmt: skip


def main(options: argparse.Namespace) -> int:
    """Check packages, a small run against agents that exchange messages, and data."""
    _say(
        f"coopbandits {coopbandits.__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )
    bad = sum(not _is_there(name, use, "MISSING") for name, use in PACKAGES.items())
    absent = []
    for extra, packages in EXTRAS.items():
        word = "MISSING" if extra == _NEEDED else "absent"
        found = [_is_there(name, use, word) for name, use in packages.items()]
        if not all(found):
            absent.append(extra)
            bad += extra == _NEEDED
    checks = {"two engines take the same decisions": _agrees, "a folder can be written": _writes}
    for text, works in checks.items():
        reason = works()
        _say(f"  {'FAILS' if reason else 'ok':9}{text}{reason}")
        bad += bool(reason)
    _data()
    for extra in absent:
        uses = ", ".join(dict.fromkeys(EXTRAS[extra].values()))
        _say(f"pip install 'coopbandits[{extra}]' brings what is missing for: {uses}")
    _say("all is well" if not bad else f"{bad} thing{'s' * (bad > 1)} to mend, see above")
    return 2 if bad else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _is_there(name: str, use: str, word: str) -> bool:
    """Say whether a package is there; if not, with a word for how bad that is."""
    called = _CALLED.get(name, name)
    try:
        if name in PACKAGES:
            importlib.import_module(name)
        elif find_spec(name) is None:  # some extras take seconds to load
            raise ModuleNotFoundError
        version = metadata.version(called)
    except ImportError:  # also a package without metadata
        _say(f"  {word:9}{called}, for {use}")
        return False
    _say(f"  {'ok':9}{called} {version}")
    return True


def _data() -> None:
    """Say where files of networks are looked for, and which are there."""
    try:
        from coopbandits.lab.networks import (  # noqa: PLC0415 (of NumPy, which may be missing)
            SOURCES,
            VARIABLE,
            data_folders,
            find_file,
        )
    except ImportError:
        return
    folders = ", ".join(map(str, data_folders()))
    _say(f"networks are looked for in {folders} ({VARIABLE} adds a folder)")
    for name, source in SOURCES.items():
        found = find_file(name)
        where = found[0] if found else f"not there; fetched when needed: {source.address}"
        _say(f"  {'ok' if found else '-':9}{name}: {where}")


def _agrees() -> str:
    """Play a small problem by shared posteriors and by real messages; empty if they agree."""
    cb = coopbandits
    try:
        problem = cb.problems.clustered_linear(cb.Network.path(4), dim=3, actions=3, seed=0)
        policy = cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=problem.similarity, ttl=2)
        runs = [cb.play(problem, policy, 8, engine=engine) for engine in ("exact", "messages")]
    except ImportError as error:
        return f": {error}"
    same = (runs[0].actions == runs[1].actions).all()
    return "" if same else ": they differ; please report it with the lines above"


def _writes() -> str:
    try:
        with tempfile.TemporaryDirectory(dir=Path.cwd()):
            return ""
    except OSError as error:
        return f": {error.strerror}; `coop` writes into out/ unless --out says otherwise"
