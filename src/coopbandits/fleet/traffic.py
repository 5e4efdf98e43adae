"""Traffic of a simulated problem, so that a fleet has something to learn: decide, then reward.

Sites fall into two clusters of tasks. Each site asks a few times a second, and its rewards come a
moment later; one in twenty never does.
"""

import heapq
import os
import sys
import time
from collections.abc import Mapping

import numpy as np

import coopbandits as cb
from coopbandits.errors import CoopBanditsError
from coopbandits.fleet.api import Action
from coopbandits.fleet.client import Client, Retries
from coopbandits.network import Network

DIM, ACTIONS = 5, 4
_RATE = 2.0  # decisions a second at each site
_DELAY = 0.2, 1.5  # seconds from a decision to its reward
_LOST = 0.05


def demo_problem(network: Network, seed: int) -> cb.problems.Problem:
    """Return the problem: linear tasks of two clusters, one half of the sites each."""
    half = len(network) / 2
    labels = [int(v >= half) for v in range(len(network))]
    return cb.problems.clustered_linear(
        network, clusters=labels, dim=DIM, actions=ACTIONS, noise=0.2, seed=seed
    )


def send(urls: Mapping[str, str], network: Network, *, seed: int, parent: int) -> None:
    """Send traffic to nodes until the parent process is another.

    Args:
        urls: By site, where its node answers.
        network: The sites.
        seed: Of the problem.
        parent: A process id.
    """
    problem, rng = demo_problem(network, seed), np.random.default_rng(seed)
    clients = {name: Client(url, retries=Retries(deadline=2.0)) for name, url in urls.items()}
    waiting: list[tuple[float, int, str, str, float]] = []
    round_, count = 0, 0
    while os.getppid() == parent:
        round_ += 1
        offer = problem.round(round_, seed)
        began = time.monotonic()
        for name, client in clients.items():
            v = network.index(name)
            at = slice(int(offer.starts[v]), int(offer.starts[v] + offer.sizes[v]))
            actions = [
                Action(f"action {i + 1}", x.tolist()) for i, x in enumerate(offer.contexts[at])
            ]
            try:
                reply = client.decide(actions)
            except CoopBanditsError as error:
                sys.stderr.write(f"demo traffic: {name}: {error}\n")
                continue
            if rng.random() >= _LOST:
                index = [action.id for action in actions].index(reply.action)
                reward, count = float(offer.rewards[at][index]), count + 1
                due = time.monotonic() + rng.uniform(*_DELAY)
                heapq.heappush(waiting, (due, count, name, reply.event_id, reward))
            time.sleep(max(0.0, rng.uniform(0.2, 0.8) / _RATE / len(clients)))
            _reward_due(clients, waiting)
        while time.monotonic() < began + 1 / _RATE:
            time.sleep(0.02)
            _reward_due(clients, waiting)


def _reward_due(
    clients: Mapping[str, Client], waiting: list[tuple[float, int, str, str, float]]
) -> None:
    while waiting and waiting[0][0] <= time.monotonic():
        _, _, name, event, reward = heapq.heappop(waiting)
        try:
            clients[name].reward(event, reward)
        except CoopBanditsError as error:
            sys.stderr.write(f"demo traffic: {name}: {error}\n")
