"""An engineer's first hour: a fleet that is tried by curl, killed, restarted and verified."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from coopbandits.fleet.client import Client, Retries
from fleet.processes import (
    COOP,
    ENVIRONMENT,
    children,
    eventually,
    free_port,
    greeted,
    is_alive,
    running,
)

# as many numbers as the printed lines have
ROUTES = {
    "express": [1.0, 0.0, 0.0, 0.2, 0.0],
    "rail": [0.0, 1.0, 0.0, 0.0, 0.1],
    "ship": [0.0, 0.0, 1.0, 0.3, 0.3],
}


def typed(line):
    """Type one of the two lines that were printed, and return what it answers."""
    if shutil.which("curl"):
        done = subprocess.run(
            ["bash", "-c", f"{line} --fail-with-body"], capture_output=True, text=True,
            check=True, env=ENVIRONMENT,
        )  # fmt: skip
        return json.loads(done.stdout or "{}")
    # the same request by Python, where there is no curl
    url, body = re.search(r"http://[^ ]+", line)[0], json.loads(re.search(r"-d '(.*)'$", line)[1])
    with Client(url.partition("/v1/")[0]) as client:
        if url.endswith("/decide"):
            actions = {action["id"]: action["context"] for action in body["actions"]}
            return {"event_id": client.decide(actions, event_id=body["event_id"]).event_id}
        client.reward(url.split("/")[-2], body["value"])
        return {}


@pytest.mark.slow
def test_a_fleet_is_tried_killed_restarted_and_verified(tmp_path):
    folder = tmp_path / "fleet"
    arguments = ["up", "--agents", "2", "--out", folder, "--port", free_port()]
    with running(arguments, tmp_path, "first") as fleet:
        urls = greeted(fleet, 2)
        assert all(url.startswith("http://127.0.0.1:") for url in urls)
        decide, reward = re.findall(r"^  (curl .*)$", fleet.said(), re.M)
        decided = typed(decide)
        event = decided["event_id"]
        typed(reward)

        with Client(urls[0]) as one, Client(urls[1]) as other:
            assert eventually(lambda: one.event(event).recorded)
            for _ in range(5):
                decision = one.decide(ROUTES)
                assert decision.action in ROUTES
                one.reward(decision.event_id, 1.0 if decision.action == "rail" else 0.0)
            # the neighbour hears of every reward
            assert eventually(lambda: other.status().observations == 6)

        nodes = children(fleet.pid)
        os.kill(nodes[0], signal.SIGKILL)
        assert eventually(lambda: "was killed by signal 9" in fleet.said())
        with Client(urls[0], retries=Retries(deadline=20.0)) as one:
            assert one.event(event).reward == 1.0
            assert one.status().decisions == 6
        nodes = children(fleet.pid)
        assert fleet.end(signal.SIGTERM) == 0
        assert eventually(lambda: not any(map(is_alive, nodes)))

    with running(["up", "--out", folder], tmp_path, "again") as fleet:
        assert greeted(fleet, 2) == urls
        with Client(urls[0]) as one:
            assert one.status().decisions == 6
        assert typed(decide) == decided  # who asks again gets the same answer
        assert fleet.end(signal.SIGINT) == 0

    for site in ("site-1", "site-2"):
        config = next(folder.glob(f"**/{site}/node.toml"))
        done = subprocess.run(
            [*COOP, "node", "verify", "--config", str(config)],
            capture_output=True, text=True, check=False, env=ENVIRONMENT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert re.search(r": whole\n.*\b6 records\b", done.stdout), done.stdout
