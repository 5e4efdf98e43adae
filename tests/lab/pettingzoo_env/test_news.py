import networkx as nx
import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import RemoteProtocolError
from coopbandits.lab import parallel_env
from coopbandits.protocol import Observation
from coopbandits.protocol.messages import Relay
from environments import NETWORK, T, V, episode, make, spelt
from worlds import NETWORKS


def knows(network, ttl, v, t):
    """What v knows of others at its decision of round t: t' + max(1, d) <= t, d from networkx."""
    graph = nx.DiGraph(zip(*np.nonzero(network.adjacency), strict=True))
    graph.add_nodes_from(range(len(network)))
    distances = nx.single_target_shortest_path_length(graph, v, cutoff=ttl)
    return {
        (origin, before)
        for origin, d in dict(distances).items()
        for before in range(1, t)
        if origin != v and before + max(1, d) <= t
    }


@pytest.mark.parametrize("ttl", [1, 2, 5])
@pytest.mark.parametrize("name", ["path", "directed", "two parts", "grid"])
class TestNews:
    def test_is_what_the_lag_rule_says_each_thing_once(self, name, ttl, rng):
        problem = cb.problems.clustered_linear(NETWORKS[name], dim=3, actions=4)
        env = parallel_env(problem, rounds=T, ttl=ttl)
        actions, returned = episode(env, 3, rng)
        for v, agent in enumerate(env.possible_agents):
            known = []
            for t, (*_, infos) in enumerate(returned, start=1):  # before the decision of round t
                for message in infos[agent]["messages"]:
                    offer = problem.round(message["round"], 3)
                    origin = message["origin"]
                    row = offer.starts[origin] + actions[message["round"] - 1, origin]
                    np.testing.assert_array_equal(message["context"], offer.contexts[row])
                    assert message["reward"] == offer.rewards[row]
                    known.append((origin, message["round"]))
                assert len(known) == len(set(known))
                assert set(known) == knows(problem.network, ttl, v, t)

    def test_arrives_as_relays_would_carry_it(self, name, ttl, rng):
        network = NETWORKS[name]
        problem = cb.problems.clustered_linear(network, dim=3, actions=4)
        _, returned = episode(parallel_env(problem, rounds=T, ttl=ttl), 3, rng)
        relays = [Relay(v, agents=len(network), ttl=ttl) for v in range(len(network))]
        held = []
        for t, (*_, infos) in enumerate(returned[1:], start=1):
            flying, held = held, []
            for v, relay in enumerate(relays):
                message = relay.send(Observation(v, t, np.zeros(3), 0.0))
                flying += [(to, message) for to in network.neighbours(v)]
            arrived = [set() for _ in relays]
            for to, message in flying:
                new, onward = relays[to].accept(relays[to].check(message))
                held += [(next_, m) for m in onward for next_ in network.neighbours(to)]
                if new:
                    arrived[to].add((message.round, message.origin, message.ttl))
            for v, relay_heard in enumerate(arrived):
                heard = infos[f"agent_{v}"]["messages"]
                assert {(m["round"], m["origin"], m["ttl"]) for m in heard} == relay_heard


@pytest.mark.parametrize(
    "policy",
    [
        cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=cb.similarity.Same(), ttl=2),
        cb.EagerKernelUCB(
            kernel=cb.kernels.Linear(), similarity=cb.similarity.Coregionalised(), ttl=3
        ),
        cb.CoopKernelUCB(kernel=cb.kernels.RBF(), similarity=cb.similarity.Same(), ttl=2),
        cb.DistKernelUCB(kernel=cb.kernels.RBF(), ttl=2),
        cb.NaiveCooperation(ttl=3),
        cb.LinUCB(),
    ],
    ids=lambda policy: policy.name,
)
def test_agents_that_hear_only_the_environment_decide_as_in_play(policy):
    problem = cb.problems.kernel(NETWORK, dim=3, actions=5)
    run = cb.play(problem, policy, rounds=T, seed=6)
    env = parallel_env(problem, rounds=T, ttl=policy.ttl)
    learners = {f"agent_{v}": policy.agent(v, NETWORK, seed=6) for v in range(V)}
    observations, infos = env.reset(seed=6)
    for t in range(T):
        decisions = {}
        for name, learner in learners.items():
            for message in infos[name]["messages"]:
                learner.receive(cb.Message(**message))
            decisions[name] = learner.decide(observations[name]["observation"])
        choices = {name: decision.index for name, decision in decisions.items()}
        assert list(choices.values()) == run.actions[t].tolist()
        observations, rewards, _, _, infos = env.step(choices)
        for name, learner in learners.items():
            learner.reward(decisions[name].id, rewards[name])


def test_agents_that_attach_more_than_a_context_refuse_the_environments_messages():
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(), similarity=cb.similarity.Evidence(), ttl=1
    )
    env = make("kernel", ttl=1)
    observations, _ = env.reset(seed=0)
    listener = policy.agent(0, NETWORK)
    listener.decide(observations["agent_0"]["observation"])
    *_, infos = env.step(dict.fromkeys(env.agents, 0))
    [message] = infos["agent_0"]["messages"]
    with pytest.raises(
        RemoteProtocolError, match="3 numbers and 0 attached; agent 0 uses 3 numbers and 3"
    ):
        listener.receive(cb.Message(**message))


def test_nothing_is_heard_without_a_ttl_or_across_the_parts_of_a_network(rng):
    _, returned = episode(make("clustered_linear"), 0, rng)
    assert not any(info["messages"] for *_, infos in returned for info in infos.values())
    alone = cb.problems.kernel(cb.Network.from_edges([], agents=2), dim=3)
    _, returned = episode(parallel_env(alone, rounds=T, ttl=3), 0, rng)
    assert not any(info["messages"] for *_, infos in returned for info in infos.values())


def test_a_new_episode_does_not_hear_the_one_before():
    env = make("clustered_linear", ttl=3)
    (_, first), (_, again) = (episode(env, 1, np.random.default_rng(0)) for _ in range(2))
    for (*_, one), (*_, two) in zip(first, again, strict=True):
        assert spelt(one) == spelt(two)
    assert any(info["messages"] for info in two.values())
