"""`coop up`: a whole fleet, as somebody types it, watches it and pulls plugs."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
from contextlib import ExitStack
from itertools import chain

import pytest

from coopbandits.cli import main
from coopbandits.fleet.client import Client, Retries
from coopbandits.fleet.commands import node as node_command, up as up_command
from coopbandits.fleet.configuration import read_configuration
from coopbandits.fleet.local_fleet import prepared
from coopbandits.fleet.process import open_store
from fleet.processes import (
    ENVIRONMENT,
    children,
    eventually,
    free_port,
    greeted,
    is_alive,
    running,
)

CONTEXTS = {"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0], "c": [0.0, 0.0, 1.0]}


def up(folder, *arguments, name="up"):
    return running(["up", "--out", folder, *arguments], folder.parent, name)


def test_a_fleet_answers_its_own_curl_lines_and_goes_on_where_it_was(tmp_path):
    folder = tmp_path / "a fleet"
    with up(folder, "--agents", "3", "--port", free_port()) as fleet:
        urls = greeted(fleet, 3)
        lines = re.findall(r"^  (curl .*)$", fleet.said(), re.M)
        assert len(lines) == 2
        decided = subprocess.run(
            ["bash", "-c", lines[0]], capture_output=True, text=True, check=True, env=ENVIRONMENT
        ).stdout
        event = json.loads(decided)["event_id"]
        subprocess.run(["bash", "-c", lines[1] + " --fail"], check=True, env=ENVIRONMENT)
        with Client(urls[0]) as one, Client(urls[2]) as other:
            assert eventually(lambda: one.event(event).recorded)
            assert eventually(lambda: other.status().observations == 1)
        assert fleet.end(signal.SIGINT) == 0
    with up(folder, name="again") as fleet:
        assert greeted(fleet, 3) == urls
        with Client(urls[0]) as one:
            assert one.status().decisions == 1
            assert one.event(event).reward == 1.0
        assert fleet.end() == 0


def test_a_node_that_is_killed_is_started_again_and_the_fleet_ends_with_its_command(tmp_path):
    with up(tmp_path / "fleet", "--agents", "2", "--port", free_port()) as fleet:
        urls = greeted(fleet, 2)
        nodes = children(fleet.pid)
        assert len(nodes) == 2
        os.kill(nodes[0], signal.SIGKILL)
        assert eventually(lambda: "was killed by signal 9" in fleet.said())
        for url in urls:
            with Client(url, retries=Retries(deadline=20.0)) as client:
                assert client.decide(CONTEXTS).action in CONTEXTS
        again = children(fleet.pid)
        everyone = [*again, *chain.from_iterable(map(children, again))]
        assert len(everyone) == 4  # two nodes, and a learner each
        fleet.end(signal.SIGKILL)
        assert eventually(lambda: not any(map(is_alive, everyone)))


@pytest.mark.parametrize("fault", ["port", pytest.param("log", marks=pytest.mark.slow)])
def test_a_fleet_is_greeted_without_a_node_that_cannot_start(tmp_path, fault):
    made = prepared(tmp_path / "fleet", topology=None, agents=2, port=free_port())
    configuration = read_configuration(made.nodes["site-1"], {})
    with ExitStack() as held:
        if fault == "port":
            port = configuration.said.http.port
            held.enter_context(socket.create_server(("127.0.0.1", port)))
        else:
            open_store(configuration).close()
            (configuration.folder / "mark").unlink()
            (configuration.folder / "log.sqlite").write_bytes(b"no log" * 1000)
        fleet = held.enter_context(up(tmp_path / "fleet", "--demo"))
        [url] = greeted(fleet, 1)
        assert "1 of 2 nodes" in fleet.said()
        assert re.search(r"site-1 +DOWN", fleet.said())
        assert f"node site-1 ended with exit code {2 if fault == 'port' else 4}" in fleet.said()
        with Client(url) as client:
            assert client.status().node == "site-2"
            assert eventually(lambda: client.status().decisions > 0)  # of the demo
        assert fleet.end() == 0


@pytest.mark.slow
def test_a_fleet_of_which_no_node_can_start_ends_with_their_exit_code(tmp_path):
    made = prepared(tmp_path / "fleet", topology=None, agents=1, port=free_port())
    with (
        socket.create_server(
            ("127.0.0.1", read_configuration(made.nodes["site-1"], {}).said.http.port)
        ),
        up(tmp_path / "fleet") as fleet,
    ):
        assert fleet.code() == 2
        assert "choose an address of this machine" in fleet.said()
        assert "Ctrl-C" not in fleet.said()


@pytest.mark.parametrize("name", ["NAME", "TOPOLOGY", "FOLDER", "KEY", "HTTP_PORT"])
def test_variables_that_hold_for_one_node_are_refused(tmp_path, capsys, monkeypatch, name):
    monkeypatch.setenv(f"COOP_{name}", "7800")
    assert main(["up", "--out", str(tmp_path / "fleet")]) == 2
    assert f"COOP_{name}, which would hold for every node" in capsys.readouterr().err
    assert not (tmp_path / "fleet").exists()


def test_a_setting_that_is_wrong_is_said_once_and_nothing_starts(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COOP_MODE", "maybe")
    assert main(["up", "--agents", "3", "--out", str(tmp_path / "fleet")]) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)
    assert "invalid enum value 'maybe'" in said.err


def test_the_demo_sends_traffic_and_the_page_is_there(tmp_path):
    with up(tmp_path / "fleet", "--agents", "2", "--port", free_port(), "--demo") as fleet:
        url = greeted(fleet, 2)[1]
        with Client(url) as client:
            assert eventually(lambda: client.status().rewards.learner.count >= 2)
            assert eventually(lambda: client.status().observations >= 4)
        assert fleet.end() == 0
        assert "demo traffic" not in fleet.said()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--agents", "0"], "--agents must be from 1 to 64"),
        (["--topology", "nowhere.toml"], "cannot read nowhere"),
        (["--port", "70000"], "--port must be from 1 to 65535"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tmp_path, capsys, arguments, complaint):
    assert main(["up", "--out", str(tmp_path / "fleet"), *arguments]) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)
    assert complaint in said.err
    assert not (tmp_path / "fleet").exists()


@pytest.mark.parametrize("command", [up_command, node_command])
def test_names_of_sites_are_shown_as_text_that_no_terminal_obeys(command, capsys):
    command._say("two sites\n  red \x1b[31m")
    assert capsys.readouterr().out == "two sites\n  red \\x1b[31m\n"


class Load:
    """One user of each node: decides, rewards, and remembers what was acknowledged."""

    def __init__(self, urls):
        self.stop = threading.Event()
        self.decided, self.rewarded, self.failed = {}, {}, []
        self.threads = [threading.Thread(target=self.use, args=item) for item in enumerate(urls)]

    def use(self, node, url):
        with Client(url, retries=Retries(timeout=2.0, deadline=300.0)) as client:
            count = 0
            while not self.stop.is_set():
                count += 1
                event = f"{node}-{count}"
                try:
                    self.decided[node, event] = client.decide(CONTEXTS, event_id=event)
                    if count % 10:  # one in ten is never rewarded
                        client.reward(event, float(count))
                        self.rewarded[node, event] = float(count)
                except Exception as error:
                    self.failed.append(error)
                    return
                self.stop.wait(0.002)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(90)


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_or_counted_twice_while_nodes_are_killed(tmp_path, kills):
    folder = tmp_path / "fleet"
    with up(folder, "--agents", "3", "--port", free_port()) as fleet:
        urls = greeted(fleet, 3)
        with Load(urls) as load:
            for number in range(kills):
                assert eventually(lambda: len(children(fleet.pid)) == 3)
                nodes = children(fleet.pid)
                before = len(load.decided)
                assert eventually(lambda b=before: len(load.decided) > b + 10 or load.failed)
                os.kill(nodes[number % 3], signal.SIGKILL)
                assert eventually(lambda n=number: fleet.said().count("signal 9") == n + 1)
        assert load.failed == []
        assert len(load.rewarded) > 10 * kills / 2
        clients = [Client(url, retries=Retries(deadline=30.0)) for url in urls]
        try:
            check(clients, load)
        finally:
            for client in clients:
                client.close()
        assert fleet.end() == 0


def check(clients, load):
    """Compare what nodes hold with what they acknowledged."""
    for node, client in enumerate(clients):
        mine = {event: value for (v, event), value in load.rewarded.items() if v == node}
        assert eventually(lambda c=client, m=mine: c.status().own_records >= len(m))
        lines = {}
        for line in client.log():
            assert line["event_id"] not in lines, "an event stands twice in the log"
            lines[line["event_id"]] = line["reward"]
        assert lines.items() >= mine.items()
        # a reward may have been kept whose answer was lost, and no other
        assert len(lines) - len(mine) <= 1
        assert client.status().own_records == len(lines)
        for (v, event), reply in [*load.decided.items()][:: max(1, len(load.decided) // 50)]:
            if v == node:
                assert client.decide(CONTEXTS, event_id=event) == reply
    held = [{peer.name: peer.records for peer in client.peers().peers} for client in clients]
    own = [client.status().own_records for client in clients]
    for client in clients:
        assert eventually(
            lambda c=client: [peer.records for peer in c.peers().peers] == own, seconds=30.0
        ), (own, held)
