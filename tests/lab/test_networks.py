import gzip
import http.server
import threading

import numpy as np
import pytest

import coopbandits as cb
import real_data
from coopbandits.errors import NetworkError, ParameterError
from coopbandits.lab import load_network, networks
from coopbandits.lab.edge_lists import EdgeList
from coopbandits.lab.networks import SOURCES, Source, half_diameter

REAL = real_data.networks()
there = real_data.needs(REAL)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(networks.VARIABLE, raising=False)
    networks._read.cache_clear()
    return tmp_path / "cache" / "coopbandits" / "networks"


@pytest.fixture
def square(monkeypatch):
    """A published network of four nodes."""
    graph = EdgeList(np.array([1, 2, 3, 4]), np.array([[0, 1], [0, 3], [1, 2], [2, 3]]))
    source = Source(("square.txt.gz", "square.txt"), 4, 4, None, graph.fingerprint)
    monkeypatch.setitem(SOURCES, "square", source)
    return "1 2\n2 3\n3 4\n4 1\n"


@there
@pytest.mark.parametrize("name", [name for name in SOURCES if name != "as-skitter"])
def test_the_real_files_are_as_published(name):
    network = load_network(name, agents=50, data=REAL, download=False)
    assert len(network) == 50
    assert len(network.components) == 1


@there
def test_a_whole_real_network_has_its_published_size():
    network = load_network("ego-Facebook", data=REAL)
    assert (len(network), len(network.edges)) == (4_039, 88_234)


def test_a_users_own_file_is_read(tmp_path):
    (tmp_path / "mine.csv").write_text("from,to\n0,1\n1,2\n")
    assert load_network(tmp_path / "mine.csv").edges == ((0, 1), (1, 2))
    (tmp_path / "mine.csv").write_text("from,to\n0,1\n1,2\n0,2\n")
    assert len(load_network(tmp_path / "mine.csv").edges) == 3, "a changed file is read again"


def test_an_unknown_name_lists_what_is_known():
    with pytest.raises(NetworkError, match=r"'ego-facebok' is neither a file nor .*ego-facebook"):
        load_network("ego-facebok")


def test_folders_are_searched_in_order(tmp_path, monkeypatch, own_cache, square):
    for folder in (own_cache, tmp_path / "variable", tmp_path / "option"):
        folder.mkdir(parents=True)
        (folder / "square.txt").write_text(square)
        monkeypatch.setenv(networks.VARIABLE, str(tmp_path / "variable"))
        option = tmp_path / "option"
        found = networks.find_file("square", option)
        assert found == (folder / "square.txt", None)
    assert len(load_network("square", data=option)) == 4


def test_a_damaged_file_is_not_taken_for_the_network(own_cache, square):
    own_cache.mkdir(parents=True)
    (own_cache / "square.txt").write_text("1 2\n2 3\n3 4\n")
    with pytest.raises(
        NetworkError, match=r"is not square as published: .* 3 edges.*fetch it anew"
    ):
        load_network("square")
    (own_cache / "square.txt").write_text("1 2\n2 3\n3 4\n4 2\n")
    with pytest.raises(NetworkError, match="is not square as published"):
        load_network("square")


def test_without_a_file_or_a_way_to_fetch_it_the_place_for_it_is_named(own_cache):
    with pytest.raises(NetworkError) as caught:
        load_network("as-skitter", download=False)
    for part in ("as-skitter.txt.gz", str(own_cache), "snap.stanford.edu", networks.VARIABLE):
        assert part in str(caught.value)


class Files(http.server.BaseHTTPRequestHandler):
    """Serve one file; /cut/… ends in the middle."""

    content = b""

    def do_GET(self):
        if "missing" in self.path:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        cut = len(self.content) // 2 if self.path.startswith("/cut") else len(self.content)
        self.wfile.write(self.content[:cut])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def test_a_file_is_fetched_once_with_progress(server, square, own_cache, monkeypatch):
    Files.content = gzip.compress(square.encode())
    monkeypatch.setattr(networks, "_HOME", f"{server}/")
    seen = []
    network = load_network("square", on_bytes=lambda come, whole: seen.append((come, whole)))
    assert len(network) == 4
    assert seen[-1] == (len(Files.content), len(Files.content))
    assert [file.name for file in own_cache.iterdir()] == ["square.txt.gz"]
    monkeypatch.setattr(networks, "_HOME", f"{server}/missing/")
    assert load_network("square", agents=2).edges == ((0, 1),)


@pytest.mark.parametrize("fault", ["cut", "missing"])
def test_a_fetch_that_fails_leaves_nothing(server, square, own_cache, monkeypatch, fault):
    Files.content = gzip.compress(square.encode())
    monkeypatch.setattr(networks, "_HOME", f"{server}/{fault}/")
    with pytest.raises(NetworkError, match=r"could not be fetched .*square\.txt\.gz"):
        load_network("square")
    assert list(own_cache.iterdir()) == []


def test_a_fetched_file_that_is_another_is_not_kept(server, square, own_cache, monkeypatch):
    Files.content = gzip.compress(b"1 2\n2 3\n")
    monkeypatch.setattr(networks, "_HOME", f"{server}/")
    with pytest.raises(NetworkError, match="is not square as published"):
        load_network("square")
    assert list(own_cache.iterdir()) == []


def test_half_of_the_diameter_is_the_papers_ttl():
    assert half_diameter(cb.Network.path(8)) == 3
    assert half_diameter(cb.Network.complete(4)) == 1
    with pytest.raises(ParameterError, match="not connected"):
        half_diameter(cb.Network.from_edges([(0, 1)], agents=3))


@pytest.mark.parametrize("name", [None, 3, np.array(["ego-facebook"] * 2), ["a"]], ids=repr)
def test_a_network_is_known_by_a_name_or_a_path(name):
    with pytest.raises(NetworkError, match=r"is no network; expected the name of one \(ego-face"):
        load_network(name)
