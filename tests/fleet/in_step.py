"""Nodes in step: all decide, all are rewarded, then records travel one hop, as in the paper."""

import asyncio
from itertools import count

import numpy as np

import coopbandits as cb
from coopbandits.fleet.api import Action, DecideRequest
from coopbandits.fleet.core.actions import Tick
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.core.wire import Have, decoded
from coopbandits.fleet.face import Decide, Reward
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.learner import InlineLearner
from coopbandits.fleet.runtime import Node


def named(network):
    """Return the same network with names."""
    names = [f"site {v}" for v in range(len(network))]
    edges = [
        (names[v], names[u])
        for v in range(len(network))
        for u in network.neighbours(v).tolist()
        if v < u
    ]
    return cb.Network.from_edges(edges, names=names)


class HoldingLinks:
    """Links whose offers (`Have`) leave when they are told to: what is offered travels one hop."""

    def __init__(self, links):
        self._links, self._held, self.open = links, [], False

    def start(self, received, linked):
        self._links.start(received, linked)

    def send(self, neighbour, data):
        if isinstance(decoded(data), Have) and not self.open:
            self._held.append((neighbour, data))
        else:
            self._links.send(neighbour, data)

    def release(self):
        held, self._held = self._held, []
        for neighbour, data in held:
            self._links.send(neighbour, data)

    def close(self):
        self._links.close()


class Fleet:
    """Nodes that play a problem in step."""

    def __init__(self, problem, policy, store_of, links_of, keys_of=HashKeys, seed=0):
        self.problem, self.seed = problem, seed
        self.network = problem.network
        self.time = 1_000.0
        self.links, self.nodes = {}, {}
        for name in self.network.names:
            settings = Settings(
                fleet="in step", name=name, network=self.network, policy=policy, seed=seed,
                pace=1.0, have_every=1e9, want_timeout=1e9,
            )  # fmt: skip
            self.links[name] = HoldingLinks(links_of(name))
            self.nodes[name] = Node(
                settings, keys_of(name), store_of(name), self.links[name], InlineLearner(),
                clock=lambda: self.time, tick=None,
            )  # fmt: skip
        some = next(iter(self.nodes.values())).settings
        carrier = some.policy.listen.carrier(self.network)
        self.distances = carrier.distances_from(range(len(self.network)))
        self.ttl = policy.ttl

    async def start(self):
        for links in self.links.values():
            links.open = True
        for node in self.nodes.values():
            await node.start()
        await self.until(
            lambda node: all(one.answered for one in node.core.exchange.neighbours.values())
        )
        for node in self.nodes.values():
            node._handle(Tick())
            assert node.core.own.writing
        for links in self.links.values():
            links.open = False

    async def play(self, rounds):
        """Return the index of each action, (T, V)."""
        actions = np.zeros((rounds, len(self.network)), dtype=int)
        for t in range(1, rounds + 1):
            self.time = 1_000.0 + t
            await self.learn()
            offer = self.problem.round(t, self.seed)
            taken = {}
            for v, (name, node) in enumerate(self.nodes.items()):
                at = slice(int(offer.starts[v]), int(offer.starts[v] + offer.sizes[v]))
                offered = [Action(str(i), x.tolist()) for i, x in enumerate(offer.contexts[at])]
                reply = await node.ask(Decide(DecideRequest(offered)))
                actions[t - 1, v] = int(reply.action)
                taken[name] = reply.event_id, float(offer.rewards[at][int(reply.action)])
            for name, (event, reward) in taken.items():
                await self.nodes[name].ask(Reward(event, reward))
            await self.until(lambda node, t=t: self.held(node, node.settings.name) == t)
            for links in self.links.values():
                links.release()
            await self.until(lambda node, t=t: self.has_heard(node, t))
        return actions

    async def learn(self):
        """Let all nodes learn what they have heard, and adopt it."""
        for node in self.nodes.values():
            node._handle(Tick())
        await self.until(lambda node: not node.core.learning.busy)

    @staticmethod
    def held(node, origin):
        """Return how many records of an origin have been applied."""
        return sum(one.applied for one in node.core.feeds.origins[origin].epochs.values())

    def has_heard(self, node, t):
        """Tell whether a node holds all that has reached it by the end of a round."""
        v = node.core.agent.agent
        return all(
            self.held(node, origin) == max(0, t + 1 - max(1, int(self.distances[u, v])))
            for u, origin in enumerate(self.network.names)
            if self.distances[u, v] <= self.ttl
        )

    async def until(self, holds):
        """Wait until something holds of all nodes."""
        for tries in count():
            await self.settle()
            if all(holds(node) for node in self.nodes.values()):
                return
            assert tries < 2_000, "the nodes do not get there"
            await asyncio.sleep(0.005)

    async def settle(self):
        """Let what is on its way arrive; links in memory do so here."""

    async def stop(self):
        for node in self.nodes.values():
            await node.stop()
