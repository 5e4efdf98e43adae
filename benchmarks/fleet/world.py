"""The agents that are measured with, and observations of others as real signed records."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import coopbandits as cb
from coopbandits.agent import feeds
from coopbandits.fleet.checkpoint import Checkpoint
from coopbandits.fleet.core.feeds import Feeds
from coopbandits.fleet.core.wire import Base, Take, encoded
from coopbandits.fleet.ports import Keys
from coopbandits.protocol.messages import Observation

DIM, ACTIONS, TASKS, NOISE = 10, 8, 4, 0.3
ME = "me"


def policy(kind: str, ttl: int, agents: int) -> cb.Policy:
    """Return a linear policy that estimates K_z in every task ("evidence"), or knows it."""
    K_z: Any = cb.similarity.Evidence(refresh="every round")
    if kind == "known":
        K_z = cb.similarity.Clusters(np.arange(agents) % TASKS)
    linear = cb.EagerKernelUCB(cb.kernels.Linear(), eta=0.3, features=cb.features.Exact())
    return replace(linear, similarity=K_z, ttl=ttl)


def network(kind: str, agents: int) -> cb.Network:
    """Return a network of named sites; "me" is a leaf of a star, or any of a complete network."""
    names = [ME, *(f"site{v}" for v in range(1, agents))]
    if kind == "star":
        edges = [(names[1], name) for name in names if name != names[1]]
    elif kind == "complete":
        edges = [(one, two) for i, one in enumerate(names) for two in names[i + 1 :]]
    else:
        edges = list(pairwise(names))
    return cb.Network.from_edges(edges, names=names)


class World:
    """Linear tasks of all sites, whose contexts and rewards are drawn as they are asked for."""

    def __init__(self, agents: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.theta = self.sphere(TASKS)[np.arange(agents) % TASKS]

    def sphere(self, count: int) -> Any:
        """Draw contexts."""
        X = self.rng.standard_normal((count, DIM))
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    def rewards(self, site: int, X: Any) -> Any:
        """Draw rewards."""
        return X @ self.theta[site] + NOISE * self.rng.standard_normal(len(X))


class Origin:
    """Another site: makes records of its feed, and signs checkpoints of it."""

    def __init__(
        self, world: World, policy: cb.Policy, net: cb.Network, name: str, keys: Keys, every: int
    ) -> None:
        self.name, self.number = name, net.index(name)
        self._world, self._keys, self._round = world, keys, 0
        self._agent = policy.agent(name, net, seed=0)
        feeds.settle_dimension(self._agent, DIM)
        self._size = feeds.attached_size(self._agent)
        self._feeds = Feeds(self._agent, [name], every, keys)
        self._feed = self._feeds.open(name, 1).feed

    def records(self, count: int) -> list[bytes]:
        """Make records that follow those before; one round in ten was never rewarded."""
        X = self._world.sphere(count)
        made, head = [], self._feeds.held(self.name, 1)
        for x, y in zip(X, self._world.rewards(self.number, X).tolist(), strict=True):
            self._round += 1 + (self._world.rng.random() < 0.1)
            attached = self._world.rng.standard_normal(self._size)
            one = Observation(self.number, self._round, x, y, attached)
            made.append(self._feed.record(head, one, self._keys))
            head = self._feed.head(made[-1])
            self._feeds.append(self.name, 1, head, made[-1])
        return made

    def take(self, count: int) -> bytes:
        """Return a message with records that follow those before."""
        first = self._feeds.held(self.name, 1).sequence + 1
        return encoded(Take(self.name, 1, first, self.records(count)))

    def checkpointed(self, count: int) -> Iterator[bytes]:
        """Yield the same as `take`, and a checkpoint where one is due."""
        held = self._feeds.held(self.name, 1)
        records = self.records(count)
        yield encoded(Take(self.name, 1, held.sequence + 1, records))
        block = self._feed.trusted(records)
        self._feeds.sync(self.name, 1, block.head, 0.0)
        self._feeds.apply(self.name, 1, block)
        made: Checkpoint | None = self._feeds.checkpoint(self.name, 1)
        if made is not None:
            self._feeds.base_applied(made, 0.0)
            yield encoded(Base(self.name, made.data))
