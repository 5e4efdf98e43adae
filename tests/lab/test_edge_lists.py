import gzip
import subprocess
import sys
import zipfile

import networkx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from coopbandits.errors import NetworkError
from coopbandits.lab import edge_lists
from coopbandits.lab.edge_lists import read_edges

TRIANGLE_AND_TAIL = [(3, 8), (8, 12), (3, 12), (12, 40)]


def written(folder, text, name="edges.txt"):
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return file


@pytest.mark.parametrize(
    "text",
    [
        "3 8\n8 12\n3 12\n12 40\n",
        "3\t8\n8\t12\n3\t12\n12\t40",
        "# a head\n# Nodes: 4\n3 8\n\n8 12\n# in between\n3 12\n12 40\n",
        "from,to\n3,8\n8,12\n3,12\n12,40\n",
        "from,to\r\n3,8\r\n8,12\r\n3,12\r\n12,40\r\n",
        "3 8 -1\n8 3 1\n8 12 0\n3 12 2\n12 40 0\n12 12 0\n40 12 1\n",
        "3 8 0.5\n8 12 1e3\n3 12 x\n12 40 0.25\n",
    ],
    ids=[
        "blanks",
        "tabs",
        "comments",
        "names",
        "carriage returns",
        "three columns, both ways",
        "weights",
    ],
)
@pytest.mark.parametrize("name", ["edges.txt", "edges.txt.gz"])
def test_all_of_snaps_formats_give_the_same_graph(tmp_path, text, name):
    graph = read_edges(written(tmp_path, text, name))
    assert graph.names.tolist() == [3, 8, 12, 40]
    assert [tuple(graph.names[edge]) for edge in graph.edges] == sorted(TRIANGLE_AND_TAIL)


def test_a_member_of_a_zip_is_found_by_the_end_of_its_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("a/DE/edges_DE.csv", "from,to\n1,2\n")
        archive.writestr("a/FR/edges_FR.csv", "from,to\n5,7\n")
    graph = read_edges(tmp_path / "all.zip", member="edges_FR.csv")
    assert graph.names.tolist() == [5, 7]
    with pytest.raises(NetworkError, match=r"it holds no edges_ES\.csv"):
        read_edges(tmp_path / "all.zip", member="edges_ES.csv")


@given(
    pairs=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60),
    chunk=st.integers(1, 50),
)
def test_chunks_of_any_size_give_what_networkx_makes_of_the_edges(tmp_path_factory, pairs, chunk):
    file = written(tmp_path_factory.mktemp("edges"), "".join(f"{i} {j}\n" for i, j in pairs))
    before, edge_lists._CHUNK = edge_lists._CHUNK, chunk
    try:
        graph = read_edges(file)
    finally:
        edge_lists._CHUNK = before
    twin = networkx.Graph(pairs)
    assert graph.names.tolist() == sorted(twin.nodes)
    expected = {tuple(sorted(edge)) for edge in twin.edges if edge[0] != edge[1]}
    assert {tuple(graph.names[edge].tolist()) for edge in graph.edges} == expected


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        ("1 2\n3 x\n", 2, "3 x"),
        ("# head\n1 2\n\n3\n", 4, "3"),
        ("1 2\n3 4 5\n6\n", 2, "3 4 5"),
        ("1 2\n1.5 2\n", 2, "1.5 2"),
        ("from,to\n1,2\nfrom,to\n", 3, "from,to"),
        ("7\n8\n", 1, "7"),
        ("1 2\n0 99999999999999999999\n", 2, "0 99999999999999999999"),
    ],
)
def test_a_line_that_is_no_edge_is_named(tmp_path, text, line, shown):
    with pytest.raises(NetworkError, match=f"line {line} of .*edges.txt is '{shown}'"):
        read_edges(written(tmp_path, text))


def test_a_line_is_named_also_in_a_later_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_lists, "_CHUNK", 64)
    text = "".join(f"{i} {i + 1}\n" for i in range(100)) + "oh no\n"
    with pytest.raises(NetworkError, match="line 101 of"):
        read_edges(written(tmp_path, text))


def test_missing_empty_and_damaged_files_are_told_apart(tmp_path):
    with pytest.raises(NetworkError, match="cannot be read"):
        read_edges(tmp_path / "nowhere.txt")
    with pytest.raises(NetworkError, match="holds no edge"):
        read_edges(written(tmp_path, "# nothing\n"))
    whole = gzip.compress("".join(f"{i} {i + 1}\n" for i in range(1000)).encode())
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(NetworkError, match="damaged"):
        read_edges(tmp_path / "cut.gz")
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(NetworkError, match="damaged"):
        read_edges(tmp_path / "no.zip", member="x")


@pytest.fixture
def world(tmp_path):
    """A large part and a small one."""
    graph = networkx.connected_watts_strogatz_graph(300, 6, 0.2, seed=3)
    text = "".join(f"{i * 5} {j * 5}\n" for i, j in graph.edges) + "9001 9002\n"
    return graph, read_edges(written(tmp_path, text))


@pytest.mark.parametrize("seed", range(5))
def test_a_sample_is_connected_with_all_edges_among_its_nodes(world, seed):
    graph, edges = world
    sample = edges.sample(40, seed=seed)
    assert len(sample) == 40
    assert len(sample.components) == 1
    # the rule, literally
    rng = np.random.default_rng([seed, 17])
    order = [int(rng.choice(np.arange(300)))]
    for node in order:
        for other in rng.permutation(sorted(graph[node])).tolist():
            if other not in order and len(order) < 40:
                order.append(other)
    place = {node: agent for agent, node in enumerate(order)}
    among = {tuple(sorted((place[i], place[j]))) for i, j in graph.subgraph(order).edges}
    assert set(sample.edges) == among


def test_samples_repeat_by_seed_and_differ_between_seeds(world):
    _, edges = world
    assert edges.sample(40, seed=1).fingerprint == edges.sample(40, seed=1).fingerprint
    assert edges.sample(40, seed=1).fingerprint != edges.sample(40, seed=2).fingerprint


def test_a_sample_larger_than_the_largest_part_is_refused(world):
    with pytest.raises(NetworkError, match="largest connected part has 300 nodes"):
        world[1].sample(301)


def test_the_whole_graph_keeps_the_order_of_names(tmp_path):
    network = read_edges(written(tmp_path, "3 8\n8 12\n3 12\n12 40\n")).network()
    assert network.edges == ((0, 1), (0, 2), (1, 2), (2, 3))


def test_a_graph_too_large_for_a_network_says_to_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_lists, "LARGEST_NETWORK", 3)
    with pytest.raises(NetworkError, match="pass agents="):
        read_edges(written(tmp_path, "3 8\n8 12\n3 12\n12 40\n")).network()


def test_the_fingerprint_is_of_the_graph_not_of_the_file(tmp_path):
    one = read_edges(written(tmp_path, "3 8\n8 12\n"))
    same = read_edges(written(tmp_path, "# other\n12,8\n8,3\n3,8\n", "b.gz"))
    other = read_edges(written(tmp_path, "3 8\n8 13\n", "c.txt"))
    assert one.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.slow
def test_eleven_million_edges_are_read_and_sampled_in_two_gigabytes(tmp_path):
    """As large as as-Skitter: 1.7 million nodes, 11 million edges."""
    file = tmp_path / "large.txt.gz"
    rng = np.random.default_rng(0)
    with gzip.open(file, "wt", compresslevel=1) as out:
        out.write("# FromNodeId\tToNodeId\n")
        for _ in range(22):
            i, j = rng.integers(0, 1_696_415, size=(2, 505_000))
            out.write("".join(f"{a}\t{b}\n" for a, b in zip(i.tolist(), j.tolist(), strict=True)))
    code = (
        "import resource, sys; from pathlib import Path;"
        "from coopbandits.lab.edge_lists import read_edges;"
        f"graph = read_edges(Path({str(file)!r})); network = graph.sample(200);"
        "print(len(graph.edges), len(network), "
        "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert int(shown[0]) > 11_000_000
    assert shown[1] == "200"
    assert int(shown[2]) < 2e9


@pytest.mark.parametrize(
    "text",
    [
        "Oslo,New York\nNew York,Bern\nBern, Oslo \nBern,Kyiv\n",
        "source,target,km\nOslo,New York,5\nNew York,Bern,x\nBern,Oslo,2\nBern,Kyiv,1\n",
        "# towns\nOslo\tNew York\n\nNew York\tBern\nBern\tOslo\nOslo\tBern\nKyiv\tBern\nBern\tBern",
    ],
    ids=["commas", "column names", "tabs, both ways"],
)
@pytest.mark.parametrize("name", ["edges.csv", "edges.csv.gz"])
def test_nodes_may_have_names(tmp_path, text, name):
    network = read_edges(written(tmp_path, text, name)).network()
    assert network.names == ("Bern", "Kyiv", "New York", "Oslo")
    assert network.edges == ((0, 1), (0, 2), (0, 3), (2, 3))


def test_agents_are_called_what_the_file_calls_them(tmp_path):
    numbers = read_edges(written(tmp_path, "70 8\n8 9\n9 70\n9 100\n", "edges.txt"))
    assert numbers.network().names == ("8", "9", "70", "100")
    sample = numbers.sample(3, seed=1)
    edges = {frozenset(sample.names[v] for v in edge) for edge in sample.edges}
    assert edges <= {frozenset(p.split()) for p in ("70 8", "8 9", "9 70", "9 100")}
    plain = read_edges(written(tmp_path, "0 1\n1 2\n", "plain.txt")).network()
    assert not plain.is_named


def test_a_line_without_two_names_is_named_with_its_number(tmp_path):
    with pytest.raises(NetworkError, match=r"line 3 of .* is 'Bern,'; expected two names"):
        read_edges(written(tmp_path, "Oslo,Bern\n# a comment\nBern,\n", "edges.csv"))
    with pytest.raises(NetworkError, match=r"line 2 of .* is 'x y'; expected two whole numbers"):
        read_edges(written(tmp_path, "1 2\nx y\n", "edges.txt"))


@pytest.mark.parametrize(
    "text",
    ["a b\nb c\n", "u,v\nv,w\n", "# mine\nfrom,to\na,b\nb,c\n", "\ufefffrom,to\na,b\nb,c\n"],
    ids=["letters", "letters and commas", "a comment first", "byte order mark"],
)
def test_a_first_line_is_an_edge_unless_it_names_columns(tmp_path, text):
    network = read_edges(written(tmp_path, text, "edges.csv")).network()
    assert (len(network), network.edges) == (3, ((0, 1), (1, 2)))


def test_names_that_are_no_utf8_are_refused(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_bytes("Ana,Bob\nMüller,Ana\n".encode("latin-1"))
    with pytest.raises(NetworkError, match=r"line 2 of .*expected two names.*in UTF-8"):
        read_edges(file)
