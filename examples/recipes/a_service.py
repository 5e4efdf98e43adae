# %% [markdown]
# # A service
#
# `coop up` starts nodes on this machine, one process each: decisions and rewards over HTTP, a durable log, and what each
# node learns from its neighbours.

# %%
import socket
import subprocess
import sys
import time

from coopbandits.fleet.client import Client, Retries

with socket.create_server(("127.0.0.1", 0)) as free:
    port = str(free.getsockname()[1])
command = ["up", "--agents", "2", "--port", port]  # in a terminal: coop up --agents 2
fleet = subprocess.Popen(
    [sys.executable, "-c", "from coopbandits.cli import main; main()", *command],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
patient = Retries(deadline=120.0)  # until the node is up

# %% [markdown]
# ## Ask, and say what came of it
#
# Actions are named, each with its context. A reward that was acknowledged is on disk and counts once; after a lost connection
# the client tries again with the same id.

# %%
with Client(f"http://127.0.0.1:{port}", retries=patient) as node:
    models = {"small model": [0.1, 1.0], "large model": [0.9, 1.0]}
    for _ in range(30):
        decision = node.decide(models)
        node.reward(decision.event_id, 1.0 if decision.action == "large model" else 0.2)
    time.sleep(2)  # learning runs beside deciding, five times a second at most
    decision = node.decide(models)
    print(decision.action, "rather than", {*models} - {decision.action})
    status = node.status()
    print(f"{status.decisions} decisions, {status.rewards.learner.count} rewards")

# %% [markdown]
# ## Its neighbour has heard
#
# The observations travel to the other node, signed, and stay there however long the first one is away. The next port is the
# neighbour's; `coop up` prints all addresses.

# %%
with Client(f"http://127.0.0.1:{int(port) + 1}", retries=patient) as neighbour:
    print("heard from others:", neighbour.status().observations > 0)

# %% [markdown]
# ## The end
#
# Ctrl-C, or a signal: requests under way are answered, and all is on disk. The same command goes on from there.

# %%
fleet.terminate()
print("exit code", fleet.wait(timeout=60))

# %% [markdown]
# [A fleet of nodes](../fleet.md) has configuration, modes, a control group, backups, the live page, and what is promised.
