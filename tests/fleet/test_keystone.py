"""Simulator, agents exchanging bytes, and nodes: in step they take the same decisions."""

import asyncio
import secrets
import socket

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.fleet.keys import Ed25519Keys, HashKeys, public_of
from coopbandits.fleet.links.memory import MemoryNetwork
from coopbandits.fleet.links.zenoh import ZenohLinks
from coopbandits.fleet.store.memory import MemoryStore
from coopbandits.fleet.store.sqlite import SqliteStore
from fleet.in_step import Fleet, named

ROUNDS = 14
LINEAR = cb.kernels.Linear()
EXACT = cb.features.Exact()
POLICIES = {
    "known": cb.EagerKernelUCB(
        LINEAR, similarity=cb.similarity.Clusters([0, 1, 0, 1, 0]), ttl=2, eta=0.3, features=EXACT
    ),
    "evidence": cb.EagerKernelUCB(
        LINEAR, similarity=cb.similarity.Evidence(chains=2), ttl=2, eta=0.3, features=EXACT
    ),
    "embedding, clique, own constants": cb.CoopKernelUCB(
        LINEAR, similarity=cb.similarity.MeanEmbedding(0.7), ttl=2, eta=0.3, features=EXACT,
        intercept=2.0,
    ),
    "posterior samples": cb.EagerKernelTS(
        cb.kernels.RBF(), similarity=cb.similarity.Same(), ttl=3,
        features=cb.features.Fourier(12),
    ),
    "fading": cb.EagerKernelUCB(
        LINEAR, similarity=cb.similarity.Same(), ttl=2, eta=0.3, features=EXACT,
        forget=cb.forget.Exponential(5.0),
    ).exploring(0.2),
    "alone": cb.LinUCB(eta=0.3, features=EXACT),
}  # fmt: skip
NETWORKS = {"path": cb.Network.path(5), "star": cb.Network.star(5)}


def problem_on(network):
    return cb.problems.clustered_linear(named(network), ttl=1, dim=3, actions=4, noise=0.1, seed=1)


def simulated(problem, policy, seed=3):
    return cb.play(problem, policy, rounds=ROUNDS, seed=seed)


def by_messages(problem, policy, seed=3):
    return cb.play(problem, policy, rounds=ROUNDS, seed=seed, engine="messages")


class InMemory(Fleet):
    def __init__(self, problem, policy, seed):
        self.wires = MemoryNetwork()
        network = problem.network
        carrier = policy.listen.carrier(network)

        def links_of(name):
            near = carrier.neighbours(network.index(name)).tolist()
            return self.wires.links(name, [network.names[v] for v in near])

        super().__init__(problem, policy, lambda name: MemoryStore(), links_of, seed=seed)

    async def settle(self):
        self.wires.deliver()
        await asyncio.sleep(0)


async def played(fleet):
    await fleet.start()
    try:
        return await fleet.play(ROUNDS)
    finally:
        await fleet.stop()


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("network", NETWORKS)
def test_nodes_over_memory_decide_as_simulator_and_agents_do(network, name):
    problem, policy = problem_on(NETWORKS[network]), POLICIES[name]
    expected = simulated(problem, policy).actions
    np.testing.assert_array_equal(by_messages(problem, policy).actions, expected)
    actions = asyncio.run(played(InMemory(problem, policy, seed=3)))
    np.testing.assert_array_equal(actions, expected)


def free_ports(count):
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


@pytest.mark.parametrize("name", ["known", "evidence"])
def test_nodes_over_sqlite_and_zenoh_decide_as_the_simulator_does(name, tmp_path):
    problem, policy = problem_on(NETWORKS["path"]), POLICIES[name]
    network = problem.network
    names = network.names
    ends = [f"tcp/127.0.0.1:{port}" for port in free_ports(len(names))]
    private = {one: secrets.token_bytes(32) for one in names}
    public = {one: public_of(key) for one, key in private.items()}

    def links_of(one):
        near = network.neighbours(network.index(one)).tolist()
        peers = {names[v]: ends[v] for v in near}
        return ZenohLinks("keystone", one, ends[network.index(one)], peers)

    fleet = Fleet(
        problem,
        policy,
        lambda one: SqliteStore(tmp_path / one, identity=one),
        links_of,
        keys_of=lambda one: Ed25519Keys(private[one], public),
        seed=3,
    )
    actions = asyncio.run(played(fleet))
    np.testing.assert_array_equal(actions, simulated(problem, policy).actions)


def test_the_fleets_of_these_tests_learn_from_each_other():
    problem = problem_on(NETWORKS["path"])
    alone = simulated(problem, POLICIES["alone"]).actions
    assert (simulated(problem, POLICIES["known"]).actions != alone).any()
    assert isinstance(HashKeys("site 0").sign(b""), bytes)
