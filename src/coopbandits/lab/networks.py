"""Where does a real network come from? A data folder, or SNAP's own files."""

import os
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from coopbandits.arrays import Seed, short
from coopbandits.errors import NetworkError, ParameterError
from coopbandits.lab.edge_lists import EdgeList, read_edges
from coopbandits.lab.terminal import console
from coopbandits.network import Network

OnBytes = Callable[[int, int], None]

VARIABLE = "COOPBANDITS_DATA"
_HOME = "https://snap.stanford.edu/data/"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Source:
    """A published network.

    Attributes:
        files: Names under which its file is looked for; the first is the official one.
        member: Which file of the official zip, where it is one.
        nodes: As published.
        edges: Undirected ones, each once.
        fingerprint: `EdgeList.fingerprint`; None where only the published counts can be checked.
    """

    files: tuple[str, ...]
    nodes: int
    edges: int
    member: str | None = None
    fingerprint: str | None = None

    @property
    def address(self) -> str:
        """Where the official file is."""
        return _HOME + self.files[0]


def _twitch(language: str, nodes: int, edges: int, fingerprint: str) -> Source:
    return Source(
        ("twitch.zip", f"musae-twitch-{language}.csv.gz", f"musae_{language}_edges.csv"),
        nodes,
        edges,
        f"musae_{language}_edges.csv",
        fingerprint,
    )


SOURCES = {
    "ego-facebook": Source(
        ("facebook_combined.txt.gz", "ego-facebook.txt.gz", "facebook_combined.txt"),
        4_039,
        88_234,
        None,
        "898824ae3e259f0d433eb755f0703a4d1cb3ed294b68b447f622c541795a38b1",
    ),
    "musae-twitch-de": _twitch(
        "DE", 9_498, 153_138, "e1e258942c84730bb5e8791f84b931c652211d9ee1d233f8906a06d6dc529c1a"
    ),
    "musae-twitch-engb": _twitch(
        "ENGB", 7_126, 35_324, "f26926cfc3f925849182606faa2cf92753dd9caaa73b996223d7a1dfefee05b1"
    ),
    "musae-twitch-es": _twitch(
        "ES", 4_648, 59_382, "699ad6ded45f27cbf2e952a6e2d7e271e6d970e06b137ba4e3d19d9d01334346"
    ),
    "musae-twitch-fr": _twitch(
        "FR", 6_549, 112_666, "19e10a51d87438a2c225947a05f6483106311a36e283c46b7c55e68b3ee09264"
    ),
    "musae-twitch-ptbr": _twitch(
        "PTBR", 1_912, 31_299, "2fe1dc28284f7db7e4118264770e7add23690395406d4569f5384307c2a987e6"
    ),
    "musae-twitch-ru": _twitch(
        "RU", 4_385, 37_304, "f103ce05bce548f4481fa1d9ca3ae8bf2657895eb2803b15bc68764dcad64af9"
    ),
    "as-skitter": Source(("as-skitter.txt.gz", "as-skitter.txt"), 1_696_415, 11_095_298),
    "as-caida": Source(
        ("as-caida20071105.txt.gz", "as-caida20071105.txt"),
        26_475,
        53_381,
        None,
        "4c5d97d0375ebb7aa307a1900822a02e87260a9cb4057c172a42055f8d908b56",
    ),
}


def load_network(
    name: str | Path,
    *,
    agents: int | None = None,
    seed: Seed = 0,
    data: str | Path | None = None,
    download: bool = True,
    on_bytes: OnBytes | None = None,
) -> Network:
    """Load a real network, or a connected sample of it (`EdgeList.sample` has the rule).

    Args:
        name: "ego-facebook", "musae-twitch-de" (also engb, es, fr, ptbr, ru), "as-skitter" or
            "as-caida"; or the path of a file of edges.
        agents: How many agents to sample; all, if not given.
        seed: Of the sample.
        data: Where files are looked for first; then the folder that the environment variable
            COOPBANDITS_DATA names, then the user's cache.
        download: Whether a file that is in none of them is fetched from SNAP, into the first.
        on_bytes: Told how many bytes of how many (0: not known) have come, for a progress display.
    """
    graph = _graph(name, data, download, on_bytes)
    return graph.network() if agents is None else graph.sample(agents, seed=seed)


def data_folders(data: str | Path | None = None) -> list[Path]:
    """Return the folders in which files of networks are looked for, in this order."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    given = [data, os.environ.get(VARIABLE), Path(cache) / "coopbandits" / "networks"]
    return [Path(folder).expanduser() for folder in given if folder]


def find_file(name: str, data: str | Path | None = None) -> tuple[Path, str | None] | None:
    """Find a published network's file, and which member of it; None if it is in no folder."""
    source = SOURCES[name]
    for folder in data_folders(data):
        for file in source.files:
            if (folder / file).is_file():
                return folder / file, source.member if file.endswith(".zip") else None
    return None


def fetch_file(
    name: str,
    data: str | Path | None = None,
    *,
    download: bool = True,
    on_bytes: OnBytes | None = None,
) -> tuple[Path, str | None]:
    """Find a published network's file, or fetch it; NetworkError says where it is to be had."""
    return find_file(name, data) or _download(name, data, download, on_bytes)


def _graph(
    name: str | Path,
    data: str | Path | None,
    download: bool,
    on_bytes: OnBytes | None,
) -> EdgeList:
    if not isinstance(name, str | Path):
        raise NetworkError(
            f"{short(name)} is no network; expected the name of one ({', '.join(SOURCES)}) or the "
            "path of a file of edges"
        )
    known = str(name).lower()
    if known not in SOURCES:
        path = Path(name).expanduser()
        if path.is_file():
            return _read(path, None, path.stat().st_mtime_ns)
        raise NetworkError(
            f"{short(str(name))} is neither a file nor a known network; known are "
            f"{', '.join(SOURCES)}"
        )
    fetched = find_file(known, data) is None
    path, member = fetch_file(known, data, download=download, on_bytes=on_bytes)
    graph = _read(path, member, path.stat().st_mtime_ns)
    try:
        _check(graph, SOURCES[known], known, path)
    except NetworkError:
        if fetched:
            path.unlink()
        raise
    return graph


@lru_cache(maxsize=4)
def _read(path: Path, member: str | None, changed: int) -> EdgeList:
    """Read a file once, however many samples are drawn; again if it has changed since."""
    return read_edges(path, member=member)


def _check(graph: EdgeList, source: Source, name: str, path: Path) -> None:
    if (len(graph.names), len(graph.edges)) != (source.nodes, source.edges) or (
        source.fingerprint is not None and graph.fingerprint != source.fingerprint
    ):
        raise NetworkError(
            f"{path} is not {name} as published: it has {len(graph.names):,} nodes and "
            f"{len(graph.edges):,} edges, fingerprint {graph.fingerprint[:12]}; expected "
            f"{source.nodes:,} and {source.edges:,}"
            + (f", {source.fingerprint[:12]}" if source.fingerprint else "")
            + ". Remove the file and fetch it anew"
        )


def _download(
    name: str,
    data: str | Path | None,
    download: bool,
    on_bytes: OnBytes | None,
) -> tuple[Path, str | None]:
    source, folders = SOURCES[name], data_folders(data)
    target = folders[0] / source.files[0]
    reason = "downloads are off"
    if download:
        try:
            with _progress(source.files[0], on_bytes) as shown:
                _fetch(source.address, target, shown)
            return target, source.member
        except OSError as error:  # what urllib raises is one
            reason = str(getattr(error, "reason", error))
    raise NetworkError(
        f"the network {name} is in none of {', '.join(map(str, folders))}, and it could not be "
        f"fetched ({reason}). Get {source.address} elsewhere and put it there as "
        f"{source.files[0]}, or name its folder with --data or {VARIABLE}"
    )


@contextmanager
def _progress(file: str, on_bytes: OnBytes | None) -> Iterator[OnBytes | None]:
    """Show a bar on a terminal, where the caller shows nothing."""
    if on_bytes is not None or not sys.stderr.isatty():
        yield on_bytes
        return
    from rich import progress  # noqa: PLC0415 (heavy)

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console(stderr=True)) as bars:
        bar = bars.add_task(f"fetching {file}", total=None)
        yield lambda come, whole: bars.update(bar, completed=come, total=whole or None)


def _fetch(address: str, target: Path, on_bytes: OnBytes | None) -> None:
    """Fetch a file whole or not at all."""
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(address, timeout=30) as answer, part.open("wb") as file:
            whole, come = int(answer.headers.get("Content-Length") or 0), 0
            while block := answer.read(_BLOCK):
                file.write(block)
                come += len(block)
                if on_bytes is not None:
                    on_bytes(come, whole)
        if whole and come != whole:
            raise OSError(f"{come} of {whole} bytes came")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def half_diameter(network: Network) -> int:
    """γ of the paper's experiments, max(1, ⌊diameter/2⌋); of a network that is connected."""
    diameter = network.diameter
    if diameter == float("inf"):
        raise ParameterError("half of the diameter is no number: the network is not connected")
    return max(1, int(diameter) // 2)
