"""`coop up`: a fleet of nodes on this machine."""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from coopbandits.errors import ParameterError
from coopbandits.fleet.configuration import read_configuration
from coopbandits.fleet.local_fleet import LocalFleet, prepared
from coopbandits.fleet.supervisor import Ready, Supervisor
from coopbandits.fleet.traffic import DIM, send
from coopbandits.plain_text import visible_lines

_CONTROL = 0.1
_ADDRESS = "http://127.0.0.1"
_OF_ONE_NODE = {"COOP_NAME", "COOP_TOPOLOGY", "COOP_FOLDER", "COOP_KEY", "COOP_HTTP_PORT"}


def main(options: argparse.Namespace) -> int:
    """Prepare the folder, and run its nodes until Ctrl-C."""
    began = time.monotonic()
    _refuse_variables(os.environ)
    if not 0 < options.port < 2**16:
        raise ParameterError(f"--port must be from 1 to 65535, got {options.port}")
    fleet = prepared(
        Path(options.out),
        topology=None if options.topology is None else Path(options.topology),
        agents=options.agents,
        port=options.port,
        control=_CONTROL if options.demo else 0.0,
    )
    for path in fleet.nodes.values():
        read_configuration(path, os.environ)  # what is wrong is said once, and before any starts
    supervisor = Supervisor(fleet.nodes, _say)

    def ready(nodes: dict[str, Ready]) -> None:
        seconds = time.monotonic() - began
        _say("\n".join(_greeting(fleet, nodes, options.out, seconds)))
        if options.demo:
            urls = {name: f"{_ADDRESS}:{node.port}" for name, node in nodes.items()}
            supervisor.beside(
                partial(send, urls, fleet.topology.network, seed=0, parent=os.getpid())
            )

    code = supervisor.run(ready)
    _say(f"stopped; `coop up --out {shlex.quote(options.out)}` goes on from here")
    return code


def _refuse_variables(environment: Mapping[str, str]) -> None:
    """Refuse variables that would say the same of all nodes, where each needs its own."""
    found = sorted(_OF_ONE_NODE & environment.keys())
    if found:
        raise ParameterError(
            f"the environment sets {', '.join(found)}, which would hold for every node of the "
            "fleet; unset it, and edit the node.toml of a site's folder instead"
        )


def _greeting(fleet: LocalFleet, nodes: dict[str, Ready], out: str, seconds: float) -> list[str]:
    """Return what is said once nodes take requests, or have ended."""
    names = [*nodes]
    first, dim = nodes[names[0]].port, nodes[names[0]].dim or DIM
    width = max(map(len, fleet.nodes))
    url, event = f"{_ADDRESS}:{first}", f"try-{int(time.time())}"
    contexts = [[float(i == k) for i in range(dim)] for k in range(min(dim, 3))]
    actions = [{"id": "abc"[k], "context": x} for k, x in enumerate(contexts)]
    kind = "-H 'Content-Type: application/json'"
    decide = shlex.quote(json.dumps({"event_id": event, "actions": actions}))
    down = [name for name in fleet.nodes if name not in nodes]
    count = f"{len(names)} of {len(fleet.nodes)}" if down else f"{len(names)}"
    return [
        f'fleet "{fleet.topology.fleet}": {count} node{"s" * (len(fleet.nodes) > 1)} in {out}, '
        f"ready after {seconds:.1f} s",
        *(f"  {name:{width}}  {_ADDRESS}:{node.port}/" for name, node in nodes.items()),
        *(f"  {name:{width}}  DOWN: it says above why" for name in down),
        "",
        f"Open {url}/ to watch. Ask for a decision, then say what it brought:",
        "",
        f"  curl -s {url}/v1/decide {kind} -d {decide}",
        "",
        f"  curl -s {url}/v1/events/{event}/reward {kind} -d '{{\"value\": 1.0}}'",
        "",
        "Ctrl-C stops all nodes; nothing is lost.",
    ]


def _say(text: str) -> None:
    sys.stdout.write(visible_lines(text) + "\n")
    sys.stdout.flush()
