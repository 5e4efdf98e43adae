"""A node as a process: signals, exit codes, and what it leaves behind."""

import os
import re
import resource
import shutil
import signal
import socket
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.cli import main
from coopbandits.fleet.client import Client, Retries
from coopbandits.fleet.client.errors import UnavailableError
from coopbandits.fleet.configuration import read_configuration
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.face import RefusedError
from coopbandits.fleet.process import open_store
from fleet.processes import children, eventually, fleet, is_alive, node

POLICY = cb.EagerKernelUCB(
    cb.kernels.Linear(), similarity=cb.similarity.Same(), ttl=2, eta=0.3
).to_toml()
ACTIONS = {"a": [1.0, 0.0], "b": [0.0, 1.0]}


@pytest.fixture
def made(tmp_path):
    return fleet(tmp_path / "fleet", agents=2, policy=POLICY)


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def coop(*arguments):
    """Run a command that ends by itself, in this process, which has loaded everything."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main([str(word) for word in arguments])
    return Done(code, out.getvalue(), err.getvalue())


def folder_of(path):
    return path.parent / "log"


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def used(path, count=3):
    """Run a node for some decisions, each rewarded, and return its exit code."""
    with node(path) as one, Client(one.url()) as client:
        for number in range(count):
            client.reward(client.decide(ACTIONS).event_id, float(number))
        return one.end()


def test_sigterm_answers_what_is_under_way_and_leaves_a_log_that_goes_on(made):
    path = made.nodes["site-1"]
    with node(path) as one, Client(one.url()) as client:
        learner = eventually(lambda: children(one.pid))
        decided = client.decide(ACTIONS, event_id="first")
        port = int(one.url().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30.0) as asking:
            data = b'{"value": 1.5}'
            asking.sendall(
                b"POST /v1/events/first/reward HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                b"content-type: application/json\r\nexpect: 100-continue\r\n"
                b"content-length: %d\r\n\r\n" % len(data)
            )
            assert asking.recv(1000).startswith(b"HTTP/1.1 100 ")
            one.process.send_signal(signal.SIGTERM)
            assert eventually(lambda: not listens(port))
            assert one.process.poll() is None
            asking.sendall(data)
            assert asking.recv(1000).startswith(b"HTTP/1.1 204 ")
        assert one.code() == 0
        assert eventually(lambda: not any(map(is_alive, learner)))
    with node(path) as one, Client(one.url()) as client:
        again = client.decide(ACTIONS, event_id="first")
        assert again == decided
        # its neighbour is away, so for two seconds it waits for word of how its feed ends
        event = eventually(lambda: (e := client.event("first")).recorded and e)
        assert (event.state, event.reward) == ("closed", 1.5)
        assert client.status().decisions == 1
        assert one.end(signal.SIGINT) == 0


def test_a_node_that_is_killed_goes_on_with_all_that_it_acknowledged(made):
    path = made.nodes["site-1"]
    with node(path) as one, Client(one.url()) as client:
        events = [client.decide(ACTIONS).event_id for _ in range(5)]
        for event in events[:3]:
            client.reward(event, 2.0)
        one.end(signal.SIGKILL)
    with node(path) as one, Client(one.url()) as client:
        assert [client.event(event).values for event in events] == [1, 1, 1, 0, 0]
        assert one.end() == 0


@pytest.mark.slow
def test_neighbours_learn_from_each_other(made):
    with node(made.nodes["site-1"]) as one, node(made.nodes["site-2"]) as two:
        with Client(one.url()) as near, Client(two.url()) as far:
            near.reward(near.decide(ACTIONS).event_id, 1.0)
            assert eventually(lambda: far.status().observations == 1)
            held = {peer.name: peer.records for peer in far.peers().peers}
            assert held == {"site-1": 1, "site-2": 0}
        assert (one.end(), two.end()) == (0, 0)


def test_a_configuration_that_is_wrong_ends_with_2(made):
    path = made.nodes["site-1"]
    done = coop("node", "--config", path, "--set", "mode=maybe")
    assert (done.returncode, done.stdout) == (2, "")
    assert "node.toml: mode: invalid enum value 'maybe'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not folder_of(path).exists()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = coop("node", "--config", path, "--set", f"http.port={taken.getsockname()[1]}")
    assert done.returncode == 2
    assert "choose an address of this machine and a port that no other program has" in done.stderr


def test_check_says_what_would_run_and_runs_nothing(made, monkeypatch):
    path = made.nodes["site-2"]
    monkeypatch.setenv("COOP_MODE", "apprentice")
    done = coop("node", "--config", path, "--check")
    assert done.returncode == 0, done.stderr
    assert "node site-2 of fleet tests, one of 2 sites" in done.stdout
    assert 'mode "apprentice"' in done.stdout
    assert not folder_of(path).exists()


def test_a_folder_that_another_process_holds_ends_with_3(made):
    path = made.nodes["site-1"]
    with node(path) as one:
        one.url()
        done = coop("node", "--config", path, "--set", "http.port=0")
        assert done.returncode == 3
        assert "open in another process" in done.stderr
        assert one.end() == 0


def test_a_disk_that_fails_ends_with_3_and_what_was_acknowledged_is_kept(made):
    """The process may not let its log grow, which the system answers like a broken disk."""
    path = made.nodes["site-1"]
    with node(path) as one, Client(one.url(), retries=Retries(deadline=1.0)) as client:
        replies = [client.decide(ACTIONS, event_id=f"e{number}") for number in range(3)]
        most = (folder_of(path) / "log.sqlite-wal").stat().st_size
        resource.prlimit(one.pid, resource.RLIMIT_FSIZE, (most, most))
        with pytest.raises(UnavailableError):
            client.decide(ACTIONS, event_id="lost")
        assert one.code() == 3
        assert "cannot be written any more" in one.said()
    configuration = read_configuration(path, {})
    store = open_store(configuration)
    events = opened(configuration.settings, configuration.keys, store).events
    store.close()
    assert [events.find(reply.event_id).action for reply in replies] == [
        reply.action for reply in replies
    ]
    with pytest.raises(RefusedError, match="there is no event lost"):
        events.find("lost")


@pytest.mark.slow
def test_what_is_no_http_is_said_with_time_and_site(made):
    with node(made.nodes["site-1"]) as one:
        port = int(one.url().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30.0) as asking:
            asking.sendall(b"HELO there\r\n\r\n")
            assert asking.recv(1000).startswith(b"HTTP/1.1 400 ")
        assert one.end() == 0
        lines = [line for line in one.err.read_text().splitlines() if "Invalid HTTP" in line]
        assert len(lines) == 1
        assert re.match(r"20\d\d-.* WARNING site-1 Invalid HTTP request received\.", lines[0])


def test_a_damaged_log_ends_with_4_and_verify_says_where(made):
    path = made.nodes["site-1"]
    assert used(path) == 0
    log = folder_of(path) / "log.sqlite"
    data = log.read_bytes()
    at = data.index(b"site-1")
    log.write_bytes(data[:at] + b"sitf-1" + data[at + 6 :])
    for arguments in ([], ["verify"], ["replay"]):
        done = coop("node", *arguments, "--config", path, "--set", "http.port=0")
        assert done.returncode == 4, arguments
        assert "is not what was written" in done.stderr + done.stdout


def test_another_policy_is_refused_and_the_log_left_alone(made):
    path = made.nodes["site-1"]
    assert used(path) == 0
    before = (folder_of(path) / "log.sqlite").read_bytes()
    policy = path.parent.parent / "policy.toml"
    policy.write_text(policy.read_text().replace("ttl = 2", "ttl = 1"))
    done = coop("node", "--config", path, "--set", "http.port=0")
    assert done.returncode == 2
    assert "Give the node the policy of its log" in done.stderr
    assert (folder_of(path) / "log.sqlite").read_bytes() == before


@pytest.mark.slow
def test_backup_restore_and_replay(made, tmp_path):
    one_path, two_path = made.nodes["site-1"], made.nodes["site-2"]
    backup = tmp_path / "backup"
    with node(two_path) as two:
        with node(one_path) as one, Client(one.url()) as client:
            client.reward(client.decide(ACTIONS, event_id="kept").event_id, 1.0)
            done = coop("node", "backup", backup, "--config", one_path)
            assert done.returncode == 0, done.stderr
            assert "whole" in done.stdout
            client.reward(client.decide(ACTIONS, event_id="later").event_id, 2.0)
            epoch = client.status().epoch
            with Client(two.url()) as far:
                assert eventually(lambda: far.status().observations == 2)
            assert one.end() == 0
        done = coop("node", "restore", backup, "--config", one_path)
        assert done.returncode == 2
        assert "is not empty" in done.stderr
        done = coop("node", "restore", backup, "--config", one_path, "--overwrite")
        assert done.returncode == 0, done.stderr
        with node(one_path, name="again") as one, Client(one.url()) as client:
            # what the backup lacks comes back from the neighbour, and a new epoch begins
            assert eventually(lambda: client.status().own_records == 2)
            assert client.status().epoch > epoch
            assert eventually(lambda: client.event("kept").recorded)
            client.reward(client.decide(ACTIONS).event_id, 3.0)
            with Client(two.url()) as far:
                assert eventually(lambda: far.status().observations == 3)
            assert not (folder_of(one_path) / "restored").exists()
            assert one.end() == 0
        assert two.end() == 0
    for path in (one_path, two_path):
        done = coop("node", "replay", "--config", path)
        assert done.returncode == 0, done.stderr
        assert "the same to the bit" in done.stdout


def test_the_backup_of_another_node_is_refused_and_the_log_stays(made, tmp_path):
    one, two = made.nodes["site-1"], made.nodes["site-2"]
    for path in (one, two):
        open_store(read_configuration(path, {})).close()
    assert coop("node", "backup", "--config", one, tmp_path / "one").returncode == 0
    before = {file: file.read_bytes() for file in folder_of(two).iterdir()}
    done = coop("node", "restore", tmp_path / "one", "--config", two, "--overwrite")
    assert done.returncode == 2
    assert "is a backup of 'tests/site-1', and 'tests/site-2' is to be restored" in done.stderr
    assert done.stdout == ""
    assert {file: file.read_bytes() for file in folder_of(two).iterdir()} == before
    # and a folder in which there is nothing yet stays so
    shutil.rmtree(folder_of(two))
    assert coop("node", "restore", tmp_path / "one", "--config", two).returncode == 2
    assert not folder_of(two).exists()


def test_a_log_of_another_node_is_a_matter_of_configuration(made):
    one, two = made.nodes["site-1"], made.nodes["site-2"]
    open_store(read_configuration(one, {})).close()
    shutil.copytree(folder_of(one), folder_of(two))
    for arguments in ([], ["replay"]):
        done = coop("node", *arguments, "--config", two, "--set", "http.port=0")
        assert done.returncode == 2
        assert "holds the log of 'tests/site-1'" in done.stderr


@pytest.mark.parametrize("place", [1, 2, 4], ids=["before", "between", "behind"])
def test_a_folder_may_stand_before_or_behind_options(made, tmp_path, place):
    path = made.nodes["site-1"]
    open_store(read_configuration(path, {})).close()
    words = ["backup", "--config", path, "--debug"]
    words.insert(place, tmp_path / "copy")
    if place == 2:
        words = ["--config", path, "backup", tmp_path / "copy"]
    done = coop("node", *words)
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path / 'copy'}: whole" in done.stdout


def test_a_folder_that_no_action_takes_is_refused(made, tmp_path):
    path = made.nodes["site-1"]
    for words in (["verify", tmp_path, "--config", path], ["verify", "--config", path, tmp_path]):
        done = coop("node", *words)
        assert done.returncode == 2
        assert "`coop node verify` takes no folder" in done.stderr
    done = coop("node", "backup", "--config", path)
    assert done.returncode == 2
    assert "needs the new folder of the backup" in done.stderr
    with pytest.raises(SystemExit), redirect_stderr(StringIO()) as said:
        main(["node", "backup", "--config", str(path), "one", "two"])
    assert "unrecognized arguments: two" in said.getvalue() or "one two" in said.getvalue()


@pytest.mark.slow
def test_a_second_copy_of_a_node_ends_with_5(made, tmp_path):
    """Both copies write: each neighbour that hears of it proves the fork."""
    path, copy = made.nodes["site-1"], tmp_path / "copy" / "site-1"
    assert used(path, 2) == 0
    shutil.copytree(path.parent, copy)
    shutil.copy(path.parent.parent / "policy.toml", copy.parent)
    text = (path.parent.parent / "fleet.toml").read_text()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = made.topology.links["site-1"]
    (copy.parent / "fleet.toml").write_text(text.replace(own, f"tcp/127.0.0.1:{port}"))
    with node(made.nodes["site-2"]) as two, node(path) as one:
        with Client(one.url()) as client, Client(two.url()) as far:
            client.reward(client.decide(ACTIONS).event_id, 5.0)
            assert eventually(lambda: far.status().observations == 3)
        with node(copy / "node.toml", name="copy") as second:
            try:
                with Client(second.url(), retries=Retries(deadline=10.0)) as client:
                    client.reward(client.decide(ACTIONS).event_id, 6.0)
            except UnavailableError:
                pass  # it had ended before
            codes = eventually(
                lambda: {one.process.poll(), second.process.poll()} - {None}, seconds=20.0
            )
            assert codes == {5}, one.said() + second.said()
            assert "two copies of site-1" in one.said() + second.said()


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_a_service_manager_is_told(made, tmp_path, kind):
    address = str(tmp_path / "notify") if kind == "path" else f"@coop-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address if kind == "path" else "\0" + address[1:])
        manager.settimeout(30.0)
        environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "300000"}
        with node(made.nodes["site-1"], environment=environment) as one:
            told = []
            while not any(b"READY=1" in text for text in told):
                told.append(manager.recv(1000))
            while told[-1] != b"WATCHDOG=1":
                told.append(manager.recv(1000))
            assert one.end() == 0
        while told[-1] != b"STOPPING=1":
            told.append(manager.recv(1000))


@pytest.mark.slow
def test_modes_and_the_control_group(made):
    path = made.nodes["site-1"]
    rng = np.random.default_rng(0)
    with node(path, "mode=apprentice") as one, Client(one.url()) as client:
        for number in range(6):
            reply = client.decide(ACTIONS, taken="b" if number % 2 else "a")
            assert (reply.action, reply.group) == ("ba"[number % 2 == 0], "baseline")
            client.reward(reply.event_id, float(rng.normal()))
        assert client.status().agreement is not None
        assert eventually(lambda: client.status().observations == 6)
        assert one.end() == 0
    with node(path, "mode=off") as one, Client(one.url()) as client:
        assert client.decide(ACTIONS).action == "a"
        assert one.end() == 0
    with node(path, "control=0.5", "explore=0.2") as one, Client(one.url()) as client:
        replies = [client.decide(ACTIONS, event_id=f"c{number}") for number in range(60)]
        groups = [reply.group for reply in replies]
        assert 10 < groups.count("control") < 50
        assert {reply.action for reply in replies if reply.group == "control"} == {"a"}
        chances = {round(r.propensity, 9) for r in replies if r.group == "learner"}
        assert chances == {0.9, 0.1}
        assert one.end() == 0
