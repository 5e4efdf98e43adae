"""The page of a real node, in a real browser, while traffic comes and the node is killed."""

import json
import os
import signal

from coopbandits import lab
from coopbandits.fleet.client import Client, Retries
from coopbandits.fleet.traffic import DIM
from fleet.processes import children, eventually, free_port, running

PATIENCE = 30_000
# How many own records the page shows; it knows from asking.
SHOWN = "() => parseInt(document.querySelector('#about-records').textContent) >= "
# What goes on its way in the picture, and which events are spoken of; known from notes alone.
KEEP_PATHS = """() => import('./travel.js').then(({ Travel }) => {
  window.paths = [];
  const go = Travel.prototype.go;
  Travel.prototype.go = function (path, kind) {
    paths.push([...path, kind].join(' '));
    return go.call(this, path, kind);
  };
})"""
WENT = "path => paths.includes(path)"
TOLD = "text => document.querySelector('#notes').textContent.includes(text)"


def see_event(page, client, event):
    """Let something happen, and wait until the page tells of it."""
    actions = {name: [float(name == "a")] * DIM for name in "ab"}
    client.decide(actions, event_id=event)
    page.wait_for_function(TOLD, arg=f"for event {event}, by", timeout=PATIENCE)
    client.reward(event, 0.5)
    page.wait_for_function(TOLD, arg=f"Event {event}, decided", timeout=PATIENCE)


def test_the_page_of_a_node_lives_with_its_traffic_and_survives_a_kill(browser, tmp_path):
    arguments = ["up", "--agents", "2", "--demo", "--port", free_port(), "--out", tmp_path / "f"]
    with running(arguments, tmp_path) as fleet:
        assert eventually(lambda: "Ctrl-C stops" in fleet.said())
        url = fleet.urls()[0]
        page, said, asked = browser.new_page(), [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        page.evaluate(KEEP_PATHS)
        page.locator("label", has_text="all").click()
        page.wait_for_function(SHOWN + "2", timeout=PATIENCE)
        for path in ("site-1 site-2 mine", "site-2 site-1 others"):
            page.wait_for_function(WENT, arg=path, timeout=PATIENCE)
        assert said == []
        with Client(url, retries=Retries(deadline=20.0)) as client:
            see_event(page, client, "watched-1")
            os.kill(children(fleet.pid)[0], signal.SIGKILL)
            before = client.status().own_records
            page.wait_for_function(f"{SHOWN} {before + 1}", timeout=PATIENCE)
            page.wait_for_selector("[data-state=live]", timeout=PATIENCE)
            see_event(page, client, "watched-2")
            lines = list(client.log())
        assert {one.startswith((f"{url}/", "data:")) for one in asked} == {True}
        page.close()
        assert fleet.end() == 0
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(lab.read_log(log)) == len(lines) > 2
