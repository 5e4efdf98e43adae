"""What does a file of edges say? SNAP's formats, streamed, and connected samples of them.

One edge a line, two whole numbers or two names first: parted by blanks, tabs or commas; further
columns, lines that start with # and one line of column names are passed over; plain, gzip, or a
member of a zip. Direction, duplicates and edges of a node to itself are dropped. In a file of names
commas part them if the first line has one, else tabs, else blanks; a first line such as `from,to`
or `source,target` names columns. They are UTF-8, and quotes have no meaning.
"""

import gzip
import json
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from coopbandits.arrays import IntArray, Seed, as_count, as_seed
from coopbandits.errors import NetworkError
from coopbandits.network import LARGEST_NETWORK, Network

_CHUNK = 1 << 24
_TOO_LONG = re.compile(rb"\d{19}")
_WHOLE = re.compile(rb"-?\d+")
# What the first line of a file of names may call its columns.
_COLUMNS = {
    b"from", b"to", b"source", b"target", b"src", b"dst", b"sender", b"receiver", b"node1",
    b"node2", b"id_1", b"id_2", b"fromnodeid", b"tonodeid",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class EdgeList:
    """A simple undirected graph.

    Attributes:
        names: (N,) what the file calls the nodes, numbers or texts, in order.
        edges: (E, 2) the edges, each once, as places i < j in `names`, in order.
    """

    names: npt.NDArray[Any]
    edges: IntArray

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the edges by name: equal for equal graphs, however the file was written."""
        named = self.names[self.edges]
        if named.dtype.kind != "i":
            return sha256(json.dumps(named.tolist()).encode()).hexdigest()
        return sha256(np.ascontiguousarray(named, dtype="<i8").tobytes()).hexdigest()

    def called(self, nodes: IntArray) -> list[str] | None:
        """Return what the file calls some nodes; None where they are numbered as agents are."""
        names = self.names[nodes]
        is_numbered = names.dtype.kind == "i" and np.array_equal(names, np.arange(len(names)))
        return None if is_numbered else [str(name) for name in names.tolist()]

    def network(self) -> Network:
        """Return the whole graph; agent v is the node of the v-th lowest name, and called so."""
        if len(self.names) > LARGEST_NETWORK:
            raise NetworkError(
                f"the file has {len(self.names):,} nodes, and a network at most "
                f"{LARGEST_NETWORK:,} agents; pass agents= for a connected sample"
            )
        V = len(self.names)
        return Network.from_edges(self.edges, agents=V, names=self.called(np.arange(V)))

    def sample(self, agents: int, *, seed: Seed = 0) -> Network:
        """Return a connected sample, with all edges among its nodes.

        Breadth first from a node drawn at random in the largest component, each node's neighbours
        in random order, until there are enough. Agents are numbered in the order of their joining,
        and called what the file calls them.
        """
        count = as_count(agents, "agents", most=LARGEST_NETWORK)
        starts, neighbours, component = self._adjacency
        if count > len(component):
            raise NetworkError(
                f"agents={count}, but the largest connected part has {len(component)} nodes"
            )
        rng = np.random.default_rng([as_seed(seed), 17])
        order = [int(rng.choice(component))]
        joined = {order[0]: 0}
        for node in order:
            for other in rng.permutation(neighbours[starts[node] : starts[node + 1]]).tolist():
                if other not in joined and len(order) < count:
                    joined[other] = len(order)
                    order.append(other)
            if len(order) == count:
                break
        pairs = [
            (agent, joined[other])
            for node, agent in joined.items()
            for other in neighbours[starts[node] : starts[node + 1]].tolist()
            if joined.get(other, -1) > agent
        ]
        return Network.from_edges(pairs, agents=count, names=self.called(np.array(order)))

    @cached_property
    def _adjacency(self) -> tuple[IntArray, IntArray, IntArray]:
        """Neighbours by node, in order, where each node's start, and the largest component."""
        from scipy.sparse import csr_array  # noqa: PLC0415
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

        N, (i, j) = len(self.names), self.edges.T.astype(np.int32)
        ends = np.concatenate([i, j]), np.concatenate([j, i])
        graph = csr_array((np.ones(2 * len(i), dtype=np.int8), ends), shape=(N, N))
        graph.sort_indices()
        _, labels = connected_components(graph, directed=False)
        largest = int(np.bincount(labels).argmax())
        return graph.indptr, graph.indices, np.flatnonzero(labels == largest)  # type: ignore[return-value]


def read_edges(
    path: Path, *, member: str | None = None, on_bytes: Callable[[int], None] | None = None
) -> EdgeList:
    """Read a file of edges.

    Args:
        path: The file.
        member: Which file of a zip: how its name ends.
        on_bytes: Told how many bytes of text have been read, for a progress display.
    """
    parts: list[npt.NDArray[Any]] = []
    try:
        with _opened(path, member) as file:
            for pairs in _pairs(file, path, on_bytes):
                parts.append(pairs)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, KeyError) as error:
        raise NetworkError(
            f"{path} cannot be read ({error}); it is missing or damaged: fetch it anew"
        ) from error
    if not parts:
        raise NetworkError(f"{path} holds no edge; expected lines of two whole numbers or names")
    pairs = np.concatenate(parts)
    parts.clear()
    names, places = np.unique(pairs, return_inverse=True)
    places = places.reshape(-1, 2)
    low, high = places.min(axis=1), places.max(axis=1)
    keys = np.unique((low * np.int64(len(names)) + high)[low != high])
    return EdgeList(names, np.column_stack(np.divmod(keys, len(names))))


@contextmanager
def _opened(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    if member is not None:
        with zipfile.ZipFile(path) as archive:
            held = [name for name in archive.namelist() if name.endswith(member)]
            if not held:
                raise KeyError(f"it holds no {member}")
            with archive.open(held[0]) as file:
                yield file
        return
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        yield file  # type: ignore[misc]


def _pairs(
    file: IO[bytes], path: Path, on_bytes: Callable[[int], None] | None
) -> Iterator[npt.NDArray[Any]]:
    """Yield the edges of one chunk of lines after another."""
    rest, line, columns = b"", 1, 0
    is_named, parting = False, None
    while True:
        read = file.read(_CHUNK)
        chunk, mark, rest = (rest + read).rpartition(b"\n")
        if not read:
            chunk, mark, rest = rest, b"", b""
        if line == 1:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")  # a mark that some editors put first
            is_named = _is_named(chunk + mark)
            parting = _mark(next(iter(_rows(chunk + mark)), b""))
        if is_named:
            named = _named_pairs(chunk + mark, path, line, parting)
            if len(named):
                yield named
        text = b"" if is_named else (chunk + mark).replace(b",", b" ")
        if line == 1:
            text = _without_names(text)
        if b"#" in text:
            kept = (row for row in text.split(b"\n") if not row.lstrip().startswith(b"#"))
            text = b"\n".join(kept)
        if text.strip():
            columns = columns or _first_width(text)
            yield _numbers(text, columns, path, chunk + mark, line)
        line += (chunk + mark).count(b"\n")
        if on_bytes is not None:
            on_bytes(len(read))
        if not read:
            return


def _rows(text: bytes) -> list[bytes]:
    """Return the lines that say something, without comments."""
    return [r for r in text.split(b"\n") if r.strip() and not r.lstrip().startswith(b"#")]


def _mark(row: bytes) -> bytes | None:
    """Tell what parts the names of a line: a comma if it has one, else a tab, else blanks."""
    return next((mark for mark in (b",", b"\t") if mark in row), None)


def _words(row: bytes, mark: bytes | None) -> list[bytes]:
    return [word.strip() for word in row.split(mark)]


def _is_header(words: list[bytes]) -> bool:
    """Tell whether a first line names columns."""
    return len(words) > 1 and all(word.lower() in _COLUMNS for word in words[:2])


def _is_named(text: bytes) -> bool:
    """Tell whether a file's first lines have names for nodes, not numbers."""
    rows = [_words(row, _mark(row))[:2] for row in _rows(text[:10_000])][:2]
    if rows and _is_header(rows[0]):
        rows = rows[1:]
    # one line of letters above numbers names columns, whatever they are called
    named = [not any(_WHOLE.fullmatch(word) for word in row) for row in rows]
    return bool(named) and len(rows[0]) == 2 and all(named)


def _named_pairs(text: bytes, path: Path, line: int, mark: bytes | None) -> npt.NDArray[Any]:
    """Read edges between named nodes: (E, 2), of texts."""
    pairs, first = [], line == 1
    for number, row in enumerate(text.split(b"\n"), start=line):
        words = [] if row.lstrip().startswith(b"#") else _words(row, mark)
        if not any(words):
            continue
        heads, first = first and _is_header(words), False
        if heads:
            continue
        try:
            names = [word.decode() for word in words[:2]]
        except UnicodeDecodeError:
            names = []
        if len(names) < 2 or not all(names):
            shown = row[:60].decode("utf-8", "replace")
            raise NetworkError(
                f"line {number} of {path} is {shown!r}; expected two names, the ends of an edge, "
                "in UTF-8"
            )
        pairs.append(names)
    return np.array(pairs, dtype=np.str_).reshape(-1, 2)


def _first_width(text: bytes) -> int:
    return len(text.lstrip().partition(b"\n")[0].split())


def _without_names(text: bytes) -> bytes:
    """Blank a first line of column names, such as `from,to`."""
    head, mark, tail = text.partition(b"\n")
    return mark + tail if head.strip()[:1].isalpha() else text


def _numbers(text: bytes, columns: int, path: Path, chunk: bytes, line: int) -> IntArray:
    flat = np.empty(0, dtype=np.int64)
    if columns > 2:  # what else a line says, such as a weight, need not be a whole number
        text = b"\n".join(b" ".join(row.split()[:2]) for row in text.split(b"\n"))
        columns = 2
    if columns == 2 and _is_even(text, columns) and not _TOO_LONG.search(text):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # older NumPy only warns of what is no number
            with suppress(ValueError, DeprecationWarning):
                flat = np.fromstring(text.decode("ascii"), dtype=np.int64, sep=" ")
    if not flat.size:
        raise _complaint(path, chunk, line, columns)
    return flat.reshape(-1, columns)[:, :2].copy()


def _is_even(text: bytes, columns: int) -> bool:
    """Whether every line has the same number of words, or none."""
    letters = np.frombuffer(text + b"\n", dtype=np.uint8)
    blank = letters <= 32
    begins = ~blank & np.concatenate([[True], blank[:-1]])
    words = np.diff(np.cumsum(begins)[letters == 10], prepend=0)
    return bool(np.isin(words, (0, columns)).all())


def _complaint(path: Path, chunk: bytes, line: int, columns: int) -> NetworkError:
    """Name the first line that is no edge."""
    for number, row in enumerate(chunk.split(b"\n"), start=line):
        words = row.replace(b",", b" ").split()
        named = number == 1 and row.strip()[:1].isalpha()
        if not words or named or row.lstrip().startswith(b"#"):
            continue
        whole = all(word.lstrip(b"-").isdigit() and len(word) <= 18 for word in words[:2])
        if not whole or len(words) < 2 or (columns == 2 and len(words) != 2):
            shown = row[:60].decode("utf-8", "replace")
            return NetworkError(
                f"line {number} of {path} is {shown!r}; expected two whole numbers, the ends of an "
                "edge, of at most 18 digits, and as many columns as in the lines before"
            )
    return NetworkError(f"{path} holds lines that are no edges; expected two whole numbers a line")
