"""The page of a real node, in a real browser, while traffic comes and the node is killed."""

import json
import os
import signal

from coopbandits import lab
from coopbandits.fleet.client import Client, Retries
from fleet.processes import children, eventually, free_port, running

# How many own records the page shows.
SHOWN = "() => parseInt(document.querySelector('#about-records').textContent) >= "


def test_the_page_of_a_node_lives_with_its_traffic_and_survives_a_kill(browser, tmp_path):
    arguments = ["up", "--agents", "2", "--demo", "--port", free_port(), "--out", tmp_path / "f"]
    with running(arguments, tmp_path) as fleet:
        assert eventually(lambda: "Ctrl-C stops" in fleet.said())
        url = fleet.urls()[0]
        page, said, asked = browser.new_page(), [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        page.wait_for_function(SHOWN + "2", timeout=30_000)
        assert said == []
        os.kill(children(fleet.pid)[0], signal.SIGKILL)
        with Client(url, retries=Retries(deadline=20.0)) as client:
            before = client.status().own_records
            page.wait_for_function(f"{SHOWN} {before + 1}", timeout=30_000)
            lines = list(client.log())
        assert {one.startswith((f"{url}/", "data:")) for one in asked} == {True}
        page.close()
        assert fleet.end() == 0
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(lab.read_log(log)) == len(lines) > 2
