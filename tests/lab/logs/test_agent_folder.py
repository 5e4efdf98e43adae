"""Agents that have learnt a log, written into a folder and read from it."""

import json

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.fleet.topology import Topology
from coopbandits.lab import Log, read_agents, start_agents, write_agents

TABLE = {
    "shop": ["Bern", "a/b: c", "Zürich"] * 4,
    "product": ["tea", "coffee", "tea", "cocoa"] * 3,
    "hour": [*range(12)],
    "sold": [1, 0, 0, 1, 1, 0] * 2,
}


@pytest.fixture
def log():
    roles = {"agent": "shop", "action": "product", "features": ["hour"], "reward": "sold"}
    return Log.from_frame(TABLE, **roles)


@pytest.fixture
def agents(log):
    policy = cb.EagerKernelUCB(
        cb.kernels.Linear(),
        similarity=cb.similarity.Same(),
        features=cb.features.Exact(),
        intercept=2.0,
        scaling=cb.lab.fit_scaling(log),
    )
    network = cb.Network.from_edges([("Bern", "Zürich")], names=log.names)
    return start_agents(log, policy, network=network)


def test_agents_come_back_to_the_bit_with_their_columns(log, agents, tmp_path):
    write_agents(agents, tmp_path / "new" / "folder", columns=log.columns)
    stored = read_agents(tmp_path / "new" / "folder")
    assert [one.to_bytes() for one in stored] == [one.to_bytes() for one in agents]
    assert (len(stored), stored.columns, stored.policy) == (3, log.columns, agents[0].policy)
    assert stored["Zürich"].agent == log.names.index("Zürich")
    offered = stored.columns.contexts({"hour": [9, 9], "product": ["tea", "cocoa"]})
    decision = stored["Bern"].decide(offered)
    [message] = stored["Bern"].reward(decision, 1.0)
    stored["Zürich"].receive(message)
    assert stored["Zürich"].known == agents[log.names.index("Zürich")].known + 1


def test_names_do_not_lead_out_of_the_folder(agents, tmp_path):
    write_agents(agents, tmp_path)
    files = sorted(file.name for file in (tmp_path / "agents").iterdir())
    assert files == ["000-Bern.bin", "001-Zürich.bin", "002-a-b-c.bin"]


def test_agents_without_names_or_columns_come_back(tmp_path):
    network = cb.Network.path(3)
    agents = [cb.LinUCB().agent(v, network) for v in range(3)]
    agents[1].observe([1.0, 0.0], 1.0)
    write_agents(agents, tmp_path)
    stored = read_agents(tmp_path)
    assert stored.columns is None
    assert stored.network.edges == network.edges
    assert np.array_equal(stored[1].predict(np.eye(2)).mean, agents[1].predict(np.eye(2)).mean)


def test_what_was_there_before_is_replaced(agents, tmp_path):
    network = cb.Network.path(5)
    write_agents([cb.LinUCB().agent(v, network) for v in range(5)], tmp_path)
    write_agents(agents, tmp_path)
    assert len(list((tmp_path / "agents").iterdir())) == len(read_agents(tmp_path)) == 3


def test_a_fleet_can_be_made_of_the_folder(agents, tmp_path):
    write_agents(agents, tmp_path)
    fleet = Topology.read(tmp_path / "topology.toml")
    assert fleet.policy == agents[0].policy
    assert fleet.network.names == agents[0].network.names
    assert fleet.network.edges == agents[0].network.edges


def test_what_is_no_folder_of_agents_is_refused(agents, tmp_path):
    with pytest.raises(InputError, match="is no folder of agents, or is damaged"):
        read_agents(tmp_path)
    write_agents(agents, tmp_path)
    facts = json.loads((tmp_path / "agents.json").read_text())
    (tmp_path / "agents.json").write_text(json.dumps({**facts, "version": 2}))
    with pytest.raises(InputError, match="has version 2; this version of coopbandits reads 1"):
        read_agents(tmp_path)
    (tmp_path / "agents.json").write_text(json.dumps({**facts, "files": ["gone.bin"]}))
    with pytest.raises(InputError, match=r"damaged .*gone\.bin"):
        read_agents(tmp_path)
    with pytest.raises(ParameterError, match="expected all agents of a network"):
        write_agents(agents[1:], tmp_path)
    with pytest.raises(ParameterError, match="expected all agents of a network"):
        write_agents([], tmp_path)
