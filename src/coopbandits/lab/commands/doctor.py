"""`coop doctor`: is everything installed, and does it work?"""

import argparse
import importlib
import os
import platform
import tempfile
from importlib import metadata
from pathlib import Path

from coopbandits.lab.networks import SOURCES, VARIABLE, data_folders, find_file
from coopbandits.lab.terminal import console

# Package, what it is for, which extra brings it; without an extra it must be there.
PACKAGES = [
    ("numpy", "everything", ""),
    ("scipy", "everything", ""),
    ("networkx", "graphs", ""),
    ("matplotlib", "figures", "lab"),
    ("pyarrow", "Parquet", "lab"),
    ("rich", "progress and tables", "lab"),
    ("distributed", "coop run --dask", "dask"),
    ("pettingzoo", "lab.parallel_env", "pettingzoo"),
]


def main(options: argparse.Namespace) -> int:
    """Check packages, a small run against agents that exchange messages, and data."""
    screen = console()
    bad = 0
    screen.print(
        f"coopbandits {metadata.version('coopbandits')}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )
    for name, use, extra in PACKAGES:
        try:
            importlib.import_module(name)
            screen.print(f"  ok       {name} {metadata.version(name)}")
        except ImportError:
            how = f"pip install 'coopbandits\\[{extra}]'" if extra else "pip install coopbandits"
            needed = extra in ("", "lab")
            screen.print(f"  {'MISSING' if needed else 'absent '}  {name}, for {use}: {how}")
            bad += needed
    for text, works in (("two engines take the same decisions", _agrees),
                        ("a folder can be written", _writes)):  # fmt: skip
        reason = works()
        screen.print(f"  {'ok     ' if not reason else 'FAILS  '}  {text}{reason}")
        bad += bool(reason)
    folders = ", ".join(map(str, data_folders()))
    screen.print(f"networks are looked for in {folders} ({VARIABLE} adds a folder)")
    for name, source in SOURCES.items():
        found = find_file(name)
        where = found[0] if found else f"not there; fetched when needed: {source.address}"
        screen.print(f"  {'ok     ' if found else '-      '}  {name}: {where}", soft_wrap=True)
    screen.print("all is well" if not bad else f"{bad} thing(s) to mend, see above")
    return 2 if bad else 0


def _agrees() -> str:
    """Play a small problem by shared posteriors and by real messages; empty if they agree."""
    import coopbandits as cb  # noqa: PLC0415

    problem = cb.problems.clustered_linear(cb.Network.path(4), dim=3, actions=3, seed=0)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=problem.similarity, ttl=2)
    runs = [cb.play(problem, policy, 8, engine=engine) for engine in ("exact", "messages")]
    same = (runs[0].actions == runs[1].actions).all()
    return "" if same else ": they differ; please report it with the lines above"


def _writes() -> str:
    try:
        with tempfile.TemporaryDirectory(dir=Path.cwd()):
            return ""
    except OSError as error:
        return f": {error.strerror}; `coop` writes into out/ unless --out says otherwise"
