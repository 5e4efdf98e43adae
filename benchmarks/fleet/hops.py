"""How long until an observation is applied some hops away? Nodes over Zenoh, on loopback."""

import secrets
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.fleet.running import Running
from benchmarks.fleet.wire import Wire, decide_body, decided, percentiles, rewarded
from benchmarks.fleet.world import ME, World, network

from coopbandits.fleet.keys import public_of

Facts = dict[str, Any]
HOPS = {
    "full": {"hops": 3, "rewards": 1500, "pause": 0.03, "warm up": 50},
    "small": {"hops": 2, "rewards": 6, "pause": 0.02, "warm up": 2},
}


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


def hops(settings: Facts) -> Facts:
    """Wall clock time until an observation is applied, beside that of one durable reward.

    A path of γ + 1 nodes, each a process with a SQLite log, a process learner and Zenoh links on
    loopback. Rewards come to the first, one after the other with random pauses; the clock starts
    when one is sent, and ends when its client has the answer, and when each node has applied it.
    """
    gamma, count = settings["hops"], settings["rewards"] + settings["warm up"]
    net = network("path", gamma + 1)
    names = net.names
    private = {name: secrets.token_bytes(32) for name in names}
    shared = {
        "network": "path", "agents": gamma + 1, "ttl": gamma, "policy": "known", "watch": ME,
        "listen": {
            name: f"tcp/127.0.0.1:{port}"
            for name, port in zip(names, free_ports(len(names)), strict=True)
        },
        "public": {name: public_of(key).hex() for name, key in private.items()},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        nodes = [
            stack.enter_context(
                Running({**shared, "name": name, "private": private[name].hex(),
                         "heads_wait": 20.0, "folder": str(Path(folder) / name)})
            )
            for name in names
        ]  # fmt: skip
        until = time.monotonic() + 30
        while not all(node.ask("linked") for node in nodes):
            time.sleep(0.05)
            if time.monotonic() > until:
                raise RuntimeError("the nodes do not find each other")
        wire, world = Wire(nodes[0].ports["coop"]), World(gamma + 1, 7)
        sent, durable = [], []
        for _ in range(count):
            event = decided(wire, decide_body(world))
            time.sleep(float(world.rng.exponential(settings["pause"])))
            sent.append(time.monotonic())
            durable.append(rewarded(wire, event, float(world.rng.standard_normal())))
        wire.close()
        found: Facts = {"durable reward": percentiles(durable[settings["warm up"] :])}
        for distance, node in enumerate(nodes[1:], 1):
            arrived = applied(node, count)
            took = [b - a for a, b in zip(sent, arrived, strict=True)][settings["warm up"] :]
            found[str(distance)] = percentiles(took)
    return found


def applied(node: Running, count: int) -> list[float]:
    """Return when a node applied each record, by the machine's monotonic clock."""
    until = time.monotonic() + 20
    while True:
        notes = node.ask("received")
        if notes and notes[-1][0] >= count:
            break
        time.sleep(0.1)
        if time.monotonic() > until:
            raise RuntimeError(
                f"the last of {count} records never came; the notes end {notes[-3:]}"
            )
    lasts, times = np.array([one[0] for one in notes]), [one[1] for one in notes]
    return [times[int(np.searchsorted(lasts, sequence))] for sequence in range(1, count + 1)]
