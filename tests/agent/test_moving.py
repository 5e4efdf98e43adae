"""Agents whose network changes while they run: who joins, who leaves, edges that come and go.

The twin is a run of the final network with a schedule: who joins is away until then, and who leaves
is away from then on. It plans on the final network from the start; real agents move to it.
"""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import LocalProtocolError, NetworkError, RemoteProtocolError, StateError
from coopbandits.similarity import Clusters, Evidence, Laplacian, MeanEmbedding, Same

LINEAR = cb.kernels.Linear()
ROUNDS, SEED = 9, 5
SMALL = cb.Network.from_edges(
    [("ada", "bob"), ("bob", "cyd"), ("cyd", "dan")], names=["ada", "bob", "cyd", "dan"]
)
BY_NAME = Clusters({"ada": 0, "bob": 1, "cyd": 0, "dan": 1, "eve": 0, "fay": 1})


def by_calls(problem, policy, networks, *, ends):
    """Let real agents exchange bytes, and move whenever a round has another network.

    Args:
        problem: On the last network.
        policy: Of all agents.
        networks: By the round from which on there is each.
        ends: What becomes of an agent between two rounds: stored and restored, or as it is.
    """
    network, agents, onward, actions = networks[1], {}, [], []
    for t in range(1, ROUNDS + 1):
        if t in networks:
            network = networks[t]
            agents = {v: a.moved_to(network) for v, a in agents.items() if v not in network.left}
        for v in range(len(network)):
            if v not in agents and v not in network.left:
                agents[v] = policy.agent(network.names[v], network, seed=SEED)
        agents = {v: ends(agent, policy, network) for v, agent in agents.items()}
        offer, row = problem.round(t, SEED), np.full(len(problem.network), cb.run.AWAY)
        posted = [(int(to), m) for v, m in onward if v in agents for to in agents[v].recipients]
        for v, agent in sorted(agents.items()):
            mine = np.flatnonzero(offer.agents == v)
            decision = agent.decide(offer.contexts[mine])
            row[v] = decision.index
            told = agent.reward(decision.id, float(offer.rewards[mine[decision.index]]))
            posted += [(int(to), m) for m in told for to in agent.recipients]
        onward = [(v, m) for v, m in onward if v not in agents]
        read = cb.Digest.from_bytes if policy.say.sums else cb.Message.from_bytes
        for to, message in posted:
            onward += [(to, m) for m in agents[to].receive(read(message.to_bytes()))]
        actions.append(row)
    return np.array(actions), agents


def as_it_is(agent, policy, network):
    return agent


def restored(agent, policy, network):
    return cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=network)


POLICIES = {
    "exact": cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=BY_NAME, ttl=2, eta=0.5),
    "sums": cb.EagerKernelUCB(
        kernel=LINEAR, similarity=Same(), ttl=2, eta=0.5, features=cb.features.Exact()
    ),
    "laplacian": cb.EagerKernelUCB(kernel=LINEAR, similarity=Same(), ttl=1, eta=0.5),
    "coop": cb.CoopKernelUCB(kernel=LINEAR, similarity=Same(), ttl=2, eta=0.5),
    "sampling": cb.EagerKernelTS(kernel=LINEAR, similarity=BY_NAME, ttl=2),
    "digests": cb.EagerKernelUCB(kernel=LINEAR, similarity=Same(), ttl=2, say=cb.say.Sums()),
    "evidence": cb.EagerKernelUCB(kernel=LINEAR, similarity=Evidence(), ttl=2, eta=0.5),
    "embedding": cb.EagerKernelUCB(
        kernel=LINEAR, similarity=MeanEmbedding(0.5), ttl=2, eta=0.5, features=cb.features.Exact()
    ),
    "centre": cb.DistKernelUCB(kernel=LINEAR, ttl=1, eta=0.5),
}
LARGER = SMALL.with_agents(["eve"], [("eve", "dan"), ("eve", "bob")])
LARGEST = LARGER.with_agents(["fay"], [("fay", "eve")])


def problem_on(network):
    labels = {name: ord(name[0]) % 2 for name in network.names}
    return cb.problems.clustered_linear(network, dim=3, actions=4, clusters=labels, seed=1)


@pytest.mark.parametrize("ends", [as_it_is, restored])
@pytest.mark.parametrize("name", POLICIES)
def test_agents_that_join_decide_as_in_a_run_in_which_they_were_away(name, ends):
    problem, policy = problem_on(LARGEST), POLICIES[name]
    links = cb.Links(away={"eve": (1, 3), "fay": (1, 5)})
    run = cb.play(problem, policy, rounds=ROUNDS, seed=SEED, links=links)
    actions, agents = by_calls(problem, policy, {1: SMALL, 4: LARGER, 6: LARGEST}, ends=ends)
    np.testing.assert_array_equal(actions, run.actions)
    alone = cb.play(problem, policy, rounds=ROUNDS, seed=SEED)
    assert (alone.actions[5:, 4:] != run.actions[5:, 4:]).any(), "it makes a difference"
    assert agents[4].known > 0


@pytest.mark.parametrize("name", POLICIES)
def test_what_those_who_left_have_told_stays(name):
    problem, policy = problem_on(SMALL), POLICIES[name]
    run = cb.play(
        problem, policy, rounds=ROUNDS, seed=SEED, links=cb.Links(away={"cyd": (5, None)})
    )
    smaller = SMALL.without("cyd")
    actions, agents = by_calls(problem, policy, {1: SMALL, 5: smaller}, ends=restored)
    np.testing.assert_array_equal(actions, run.actions)
    assert 2 not in agents
    assert 2 not in agents[1].recipients


@pytest.mark.parametrize("name", ["exact", "sums", "coop", "evidence"])
def test_edges_come_and_go(name):
    whole = SMALL.with_edges([("ada", "dan")])
    problem, policy = problem_on(whole), POLICIES[name]
    links = cb.Links(down={("ada", "dan"): (1, 3), ("bob", "cyd"): (6, None)})
    run = cb.play(problem, policy, rounds=ROUNDS, seed=SEED, links=links)
    networks = {1: SMALL, 4: whole, 6: whole.without_edges([("cyd", "bob")])}
    actions, _ = by_calls(problem, policy, networks, ends=restored)
    np.testing.assert_array_equal(actions, run.actions)


def test_who_is_not_there_yet_relays_nothing():
    # a path whose middle joins in round 4: the ends hear nothing of each other before
    ends = cb.Network.from_edges([], names=["left", "right"])
    whole = ends.with_agents("middle", [("left", "middle"), ("middle", "right")])
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=Same(), ttl=2, eta=0.5)
    problem = cb.problems.clustered_linear(whole, dim=3, actions=4, clusters=[0, 0, 0], seed=1)
    actions, agents = by_calls(problem, policy, {1: ends, 4: whole}, ends=as_it_is)
    links = cb.Links(away={"middle": (1, 3)})
    run = cb.play(problem, policy, rounds=ROUNDS, seed=SEED, links=links)
    np.testing.assert_array_equal(actions, run.actions)
    # its own nine, what the middle told since round 4, and of the other end what came over it
    assert agents[0].known == 9 + 6 + 5


def test_an_agent_that_comes_back_goes_on_under_its_number():
    network = SMALL.without("cyd")
    again = network.with_agents("cyd", [("cyd", "ada")])
    assert again.names == SMALL.names
    assert again.left == ()
    assert again.index("cyd") == 2
    assert again.whole.edges == ((0, 1), (0, 2), (1, 2), (2, 3))


def test_open_decisions_move_too_and_the_old_agent_is_left_alone(rng):
    agent = POLICIES["sums"].agent("ada", SMALL, seed=2)
    first = agent.decide(rng.normal(size=(3, 3)))
    stored = agent.to_bytes()
    moved = agent.moved_to(LARGEST)
    assert moved.awaiting == (first.id,)
    assert moved.name == "ada"
    moved.reward(first.id, 1.0)
    assert agent.to_bytes() == stored
    with pytest.raises(LocalProtocolError, match="has its reward already"):
        moved.reward(first.id, 1.0)


def test_a_network_in_which_an_agent_is_not_is_refused(rng):
    agent = POLICIES["sums"].agent("ada", SMALL)
    agent.decide(rng.normal(size=(3, 3)))
    gone = SMALL.without("ada")
    with pytest.raises(
        NetworkError, match="agent 'ada' has left this network, and has 1 decisions without a rew"
    ):
        agent.moved_to(gone)
    assert len(agent.awaiting) == 1
    with pytest.raises(NetworkError, match="agent 'ada' has left this network"):
        cb.Agent.from_bytes(agent.to_bytes(), policy=agent.policy, network=gone)
    with pytest.raises(NetworkError, match="agent 'ada' has left this network"):
        agent.policy.agent("ada", gone)
    assert agent.policy.agent("bob", gone).recipients.tolist() == [2]


def test_another_network_is_refused_with_what_differs():
    agent = POLICIES["sums"].agent("bob", SMALL)
    other = cb.Network.from_edges([("ada", "bob")], names=["ada", "bob", "cyd"])
    said = r"agents 4, here 3; edges 3, here 1; neighbours \[0, 2\], here \[0\]"
    with pytest.raises(StateError, match=f"stored in another network: {said}"):
        cb.Agent.from_bytes(agent.to_bytes(), policy=agent.policy, network=other)
    with pytest.raises(NetworkError, match=f"did not grow out of its own: {said}"):
        agent.moved_to(other)
    # a network does not go back either
    with pytest.raises(StateError, match="agents 5, here 4"):
        cb.Agent.from_bytes(agent.moved_to(LARGER).to_bytes(), policy=agent.policy, network=SMALL)
    renamed = cb.Network(SMALL.adjacency, names=["ada", "bob", "cyd", "don"])
    with pytest.raises(StateError, match="as many agents and edges, but not the same, or other n"):
        cb.Agent.from_bytes(agent.to_bytes(), policy=agent.policy, network=renamed)


def test_another_policy_is_refused_with_the_answers_that_differ():
    agent = POLICIES["exact"].agent(0, SMALL)
    other = cb.EagerKernelUCB(kernel=cb.kernels.RBF(2.0), similarity=BY_NAME, ttl=3, eta=0.5)
    with pytest.raises(
        StateError, match=r"another policy: kernel was RBF\(.*1\.0\), now RBF\(.*2\.0\); ttl was 2"
    ):
        cb.Agent.from_bytes(agent.to_bytes(), policy=other, network=SMALL)


def test_a_message_of_a_newcomer_is_refused_by_who_does_not_know_of_it(rng):
    old, new = POLICIES["exact"].agent("dan", SMALL), POLICIES["exact"].agent("eve", LARGER)
    decision = new.decide(rng.normal(size=(3, 3)))
    (message,) = new.reward(decision.id, 1.0)
    with pytest.raises(
        RemoteProtocolError, match="agent 4 as its origin, but the agents are 0 … 3"
    ):
        old.receive(message)
    assert old.moved_to(LARGER).receive(message)


def test_labels_by_number_say_that_newcomers_need_some():
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=Clusters([0, 1, 0, 1]), ttl=1)
    with pytest.raises(cb.errors.SimilarityError, match="4 cluster labels, but the network has 5"):
        policy.agent("ada", SMALL).moved_to(LARGER)
    known = Clusters({"ada": 0, "bob": 0, "cyd": 0, "dan": 1})
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=known, ttl=1)
    with pytest.raises(cb.errors.SimilarityError, match="agent 'eve' has no cluster label"):
        policy.agent("ada", SMALL).moved_to(LARGER)


def test_under_the_laplacian_a_newcomer_is_in_the_graph():
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=Laplacian(1.0), ttl=2)
    agent = policy.agent("dan", SMALL).moved_to(LARGER)
    np.testing.assert_allclose(
        agent.similarity[[1, 2, 4]], Laplacian(1.0).matrix(LARGER)[3, [1, 2, 4]]
    )
