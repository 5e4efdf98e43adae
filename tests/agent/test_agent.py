import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent.inbox import MOST_OF_ALL, MOST_OF_ONE
from coopbandits.errors import (
    CoopBanditsError,
    InputError,
    LocalProtocolError,
    NetworkError,
    NonFiniteError,
    ParameterError,
    RemoteProtocolError,
    ShapeError,
)
from reference import formulas
from worlds import DIM, eager, news


def test_an_agent_that_knows_nothing_chooses_at_random_from_its_own_stream(network, rng):
    offered = rng.normal(size=(50, DIM))
    for v in range(6):
        decision = eager().agent(v, network, seed=9).decide(offered)
        expected = np.random.default_rng(np.random.SeedSequence([9, v])).integers(50)
        assert decision.index == expected
        np.testing.assert_array_equal(decision.context, offered[expected])
        assert (decision.id, decision.mean, decision.std) == (1, 0.0, 1.0)


def test_a_decision_tells_the_mean_std_and_width_of_the_choice(agent, rng):
    X, y = rng.normal(size=(4, DIM)), rng.normal(size=4)
    for x, reward in zip(X, y, strict=True):
        agent.observe(x, reward)
    offered = rng.normal(size=(5, DIM))
    decision = agent.decide(offered)
    mean, variance = formulas.posterior(
        formulas.gram(formulas.rbf, X, X),
        formulas.gram(formulas.rbf, X, offered),
        np.ones(5),
        y,
        1.0,
    )
    bounds = mean + np.sqrt(variance)
    assert decision.index == int(np.argmax(bounds))
    assert decision.mean == pytest.approx(mean[decision.index], rel=1e-10)
    assert decision.std == pytest.approx(np.sqrt(variance[decision.index]), rel=1e-10)
    assert decision.width == 1.0


def test_ties_go_to_the_lowest_index(agent):
    agent.observe([0.0, 0.0, 0.0], -1.0)
    x = [3.0, 0.0, 0.0]
    assert agent.decide([[0.0, 0.0, 0.0], x, x, x]).index == 1


def test_rewards_may_come_late_out_of_order_or_never(network, rng):
    offers = [rng.normal(size=(4, DIM)) for _ in range(5)]
    agent = eager().agent(0, network)
    decisions = [agent.decide(offered) for offered in offers[:4]]
    assert agent.awaiting == (1, 2, 3, 4)
    agent.reward(decisions[2].id, 1.0)
    agent.reward(decisions[0].id, 2.0)
    agent.reward(decisions[3].id, 3.0)
    assert agent.awaiting == (2,)
    assert agent.known == 3
    # the model is a function of the set of observations
    twin = eager().agent(0, network)
    for i, y in [(0, 2.0), (2, 1.0), (3, 3.0)]:
        twin.observe(decisions[i].context, y)
    mine, theirs = agent.decide(offers[4]), twin.decide(offers[4])
    assert (mine.index, mine.mean) == (theirs.index, pytest.approx(theirs.mean, rel=1e-12))
    assert mine.id == 5


def test_a_reward_is_sent_with_all_hops_left_to_the_neighbours(agent, rng):
    decision = agent.decide(rng.normal(size=(4, DIM)))
    [message] = agent.reward(decision.id, 0.5)
    assert (message.round, message.origin, message.reward, message.ttl) == (1, 2, 0.5, 2)
    np.testing.assert_array_equal(message.context, decision.context)
    assert agent.recipients.tolist() == [1, 3]


def test_agents_that_listen_to_nobody_and_isolated_agents_send_nothing(rng):
    isolated = cb.Network.from_edges([(0, 1)], agents=3)
    for agent in (cb.LinUCB().agent(0, isolated), eager().agent(2, isolated)):
        decision = agent.decide(rng.normal(size=(4, DIM)))
        assert agent.reward(decision.id, 0.5) == []
        assert agent.recipients.size == 0


def test_news_is_learnt_once_and_handed_on_with_one_hop_less(agent, rng):
    message = news(rng)
    assert [m.ttl for m in agent.receive(message)] == [1]
    assert agent.known == 1
    assert agent.receive(message) == []
    assert agent.known == 1


def test_an_agent_outside_my_clique_is_forwarded_and_not_learnt_from(rng):
    network = cb.Network.path(8)
    policy = cb.CoopKernelUCB(kernel=cb.kernels.RBF(), similarity=cb.similarity.Same(), ttl=2)
    labels = network.clique_cover(2).labels
    outsider = next(w for w in range(8) if labels[w] != labels[0])
    agent = policy.agent(0, network)
    forwarded = agent.receive(news(rng, origin=outsider))
    assert [m.ttl for m in forwarded] == [1]
    assert agent.known == 0
    insider = next(w for w in range(1, 8) if labels[w] == labels[0])
    agent.receive(news(rng, origin=insider))
    assert agent.known == 1


def test_strangers_change_nothing(network, rng):
    # K_z knows two clusters: news of the other one changes no decision and no width
    policy = eager(
        similarity=cb.similarity.Clusters([0, 1, 0, 1, 0, 1]),
        width=cb.width.SelfNormalised(),
    )
    offered = rng.normal(size=(6, DIM))
    told, untold = policy.agent(2, network), policy.agent(2, network)
    for agent in (told, untold):
        agent.observe(rng.normal(size=DIM) * 0 + 1, 1.0)
    for t in range(1, 6):
        told.receive(news(rng, origin=1, round=t))
        told.receive(news(rng, origin=3, round=t))
    assert told.known == 1
    mine, theirs = told.decide(offered), untold.decide(offered)
    assert (mine.index, mine.mean, mine.std, mine.width) == (
        theirs.index,
        theirs.mean,
        theirs.std,
        theirs.width,
    )


def test_a_stranger_to_me_who_is_no_stranger_to_my_friend_is_learnt_from(rng):
    # K_z(0, 2) = 0, but both agree with 1: what 2 saw explains what 1 saw
    network = cb.Network.complete(3)
    K_z = np.array([[1, 0.6, 0], [0.6, 1, 0.6], [0, 0.6, 1]])
    agent = eager(similarity=cb.similarity.Known(matrix=K_z)).agent(0, network)
    agent.receive(news(rng, origin=2))
    assert agent.known == 1


def state(agent):
    return agent.to_bytes()


BAD_SETS = [
    ([], ShapeError, r"shape \(0,\).*at least one action"),
    (np.empty((0, DIM)), ShapeError, "at least one action"),
    (np.empty((2, 0)), ShapeError, "one number per context"),
    (np.ones(DIM), ShapeError, r"shape \(3,\)"),
    (np.ones((1, 2, DIM)), ShapeError, r"\(1, 2, 3\)"),
    ([[1.0, np.nan, 0.0]], NonFiniteError, r"nan at index \(0, 1\)"),
    ([[1.0, np.inf, 0.0]], NonFiniteError, "inf"),
    ([["a", "b", "c"]], ShapeError, "array of numbers"),
    ([[1.0, 2.0], [1.0]], ShapeError, "array of numbers"),
    (None, ShapeError, "array of numbers.* got None"),
    ([["1.0", "2.0", "3.0"]], ShapeError, "array of numbers"),
    (np.ones((2, DIM)) * 1j, ShapeError, "array of numbers"),
    (np.ones((2, DIM + 1)), ShapeError, "contexts of 3 numbers"),
]


@pytest.mark.parametrize(("offered", "error", "complaint"), BAD_SETS, ids=range(len(BAD_SETS)))
def test_a_bad_decision_set_gets_one_clear_error_and_changes_nothing(
    agent, rng, offered, error, complaint
):
    agent.observe(rng.normal(size=DIM), 1.0)
    before = state(agent)
    with pytest.raises(error, match=complaint):
        agent.decide(offered)
    assert state(agent) == before


@pytest.mark.parametrize(
    ("decision", "y", "error", "complaint"),
    [
        (1, np.nan, NonFiniteError, "a reward must be finite, got nan"),
        (1, np.inf, NonFiniteError, "a reward must be finite, got inf"),
        (1, "much", InputError, "a reward must be a number"),
        (1, 1e51, InputError, r"a reward must lie within ±1e\+50"),
        (1, [1.0], InputError, "a reward must be a number"),
        (1, None, InputError, "a reward must be a number"),
        (2, 1.0, LocalProtocolError, "decision 2 has its reward already"),
        (3, 1.0, LocalProtocolError, "no decision 3; agent 2 has taken 2"),
        (0, 1.0, LocalProtocolError, "no decision 0"),
        (-1, 1.0, LocalProtocolError, "no decision -1"),
        ("first", 1.0, LocalProtocolError, r"whole number.*got 'first'"),
        (True, 1.0, LocalProtocolError, r"whole number.*got True"),
    ],
    ids=str,
)
def test_a_bad_reward_gets_one_clear_error_and_changes_nothing(
    agent, rng, decision, y, error, complaint
):
    for _ in range(2):
        agent.decide(rng.normal(size=(3, DIM)))
    agent.reward(2, 0.5)
    before = state(agent)
    with pytest.raises(error, match=complaint):
        agent.reward(decision, y)
    assert state(agent) == before


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"origin": 6}, "agent 6 as its origin"),
        ({"ttl": 3}, "3 hops left"),
        ({"ttl": 0}, "ttl"),
        ({"reward": np.nan}, "reward must be finite"),
        ({"reward": -1e51}, "reward must lie within"),
        ({"context": np.array([1.0, np.nan, 0.0])}, "context must be finite"),
        ({"context": np.ones(2)}, "2 numbers and 0 attached; agent 2 uses 3 numbers"),
        ({"round": -1}, "round"),
        ({"origin": 2, "round": 7}, "bears the name of agent 2"),
    ],
    ids=str,
)
def test_a_bad_message_is_a_peers_fault_and_changes_nothing(agent, rng, changes, complaint):
    agent.decide(rng.normal(size=(3, DIM)))
    before = state(agent)
    with pytest.raises(RemoteProtocolError, match=complaint):
        agent.receive(news(rng, **changes))
    assert state(agent) == before


def test_contexts_where_the_kernel_overflows_are_refused(network, rng):
    agent = eager(kernel=cb.kernels.Linear()).agent(2, network)
    with pytest.raises(NonFiniteError, match=r"kernel is too large.*1e\+06"):
        agent.decide([[1e6, 0.0, 0.0], [0.0, 1.0, 0.0]])
    agent.decide(rng.normal(size=(3, DIM)))
    with pytest.raises(RemoteProtocolError, match="leaves no digits"):
        agent.receive(news(rng, context=np.full(DIM, 1e6)))


def test_numbers_without_room_for_arithmetic_are_refused(network, rng):
    for kernel in (cb.kernels.RBF(0.1), cb.kernels.Matern(nu=2.5), cb.kernels.Matern(nu=3.3)):
        agent = eager(kernel=kernel).agent(2, network)
        with pytest.raises(InputError, match=r"must lie within ±1e\+50"):
            agent.decide([[1e51, 0.0, 0.0]])
        decision = agent.decide(1e50 * np.eye(DIM))
        agent.reward(decision.id, 1e50)
        agent.receive(news(rng, context=np.full(DIM, -1e50), reward=-1e50))
        decision = agent.decide(np.vstack([1e50 * np.eye(DIM), np.zeros(DIM)]))
        assert np.isfinite([decision.mean, decision.std, decision.width]).all()


def test_a_peer_cannot_stop_an_agent(network, rng):
    # whatever a neighbour sends is refused there and then, or does no harm
    agent = eager(kernel=cb.kernels.Linear()).agent(2, network)
    agent.decide(rng.normal(size=(2, DIM)))
    for t, scale in enumerate(10.0 ** np.arange(0, 50, 2), start=1):
        message = news(rng, round=t, context=scale * rng.normal(size=DIM), reward=scale)
        if scale > 1e5:
            with pytest.raises(RemoteProtocolError, match="leaves no digits"):
                agent.receive(message)
        else:
            agent.receive(message)
    assert np.isfinite(agent.decide(rng.normal(size=(4, DIM))).mean)


def test_a_decide_that_raises_keeps_what_was_heard_before_the_first_one(rng):
    follower = cb.DistKernelUCB(kernel=cb.kernels.RBF()).agent(1, cb.Network.complete(3))
    follower.receive(news(rng, origin=0, ttl=1, context=np.eye(4)[3]))
    before = follower.to_bytes()
    with pytest.raises(LocalProtocolError, match="equally far"):
        follower.decide(np.eye(4)[:3])
    assert follower.to_bytes() == before


def test_a_width_that_raises_changes_nothing(network, rng):
    policy = cb.IGPUCB(kernel=cb.kernels.RBF(), width=cb.width.InformationGain(gain=negative_later))
    agent = policy.agent(0, network)
    agent.reward(agent.decide(rng.normal(size=(3, DIM))).id, 1.0)
    before = agent.to_bytes()
    with pytest.raises(InputError, match=r"gain\(1\) must be >= 0"):
        agent.decide(rng.normal(size=(3, DIM)))
    assert agent.to_bytes() == before


class NaNLater:
    """A width that is NaN once something is known."""

    def factor(self, *, logdet, count, ridge, agents):
        return np.where(count > 0, np.nan, 1.0)


@pytest.mark.parametrize("offered", [np.eye(DIM), cb.Box(np.zeros(DIM), np.ones(DIM))], ids=str)
def test_a_width_that_is_nan_is_refused_and_changes_nothing(network, offered):
    agent = eager(width=NaNLater()).agent(2, network)
    agent.reward(agent.decide(offered).id, 1.0)
    before = agent.to_bytes()
    for call in (agent.decide, agent.preview):
        with pytest.raises(NonFiniteError, match="score of an action is NaN"):
            call(offered)
        assert agent.to_bytes() == before


def test_a_first_decide_that_raises_keeps_messages_of_another_length(network, rng):
    agent = eager(width=cb.width.InformationGain(gain=negative_later)).agent(2, network)
    agent.receive(news(rng))
    agent.receive(news(rng, round=2, context=np.ones(7)))
    before = agent.to_bytes()
    with pytest.raises(InputError, match=r"gain\(1\) must be >= 0"):
        agent.decide(rng.normal(size=(3, DIM)))
    assert agent.to_bytes() == before
    assert agent.known == 2


def test_a_follower_keeps_no_data_once_it_is_led(rng):
    follower = cb.DistKernelUCB(kernel=cb.kernels.RBF()).agent(1, cb.Network.complete(3))
    follower.reward(follower.decide(rng.normal(size=(2, DIM))).id, 1.0)
    follower.receive(news(rng, origin=0, ttl=1))
    [message] = follower.reward(follower.decide(rng.normal(size=(2, DIM))).id, 1.0)
    follower.observe(rng.normal(size=DIM), 1.0)
    assert follower.known == 1
    assert message.round == 2


def negative_later(n):
    return -float(n)


def test_a_click_is_a_reward(agent, rng):
    for clicked in (True, np.bool_(False)):
        decision = agent.decide(rng.normal(size=(2, DIM)))
        [message] = agent.reward(decision.id, clicked)
        assert message.reward == float(clicked)


def test_a_peers_context_of_another_length_cannot_fix_mine(network, rng):
    agent = eager().agent(2, network)
    agent.receive(news(rng, context=np.ones(7)))
    agent.receive(news(rng, round=2))
    assert agent.decide(rng.normal(size=(3, DIM))).id == 1
    assert agent.known == 1


def test_a_followers_centre_of_another_length_cannot_lead_it(rng):
    network = cb.Network.complete(4)
    assert network.centres(1).of.tolist() == [0, 0, 0, 0]
    follower = cb.DistKernelUCB(kernel=cb.kernels.RBF()).agent(1, network)
    follower.receive(news(rng, origin=0, ttl=1, context=np.ones(7)))
    decision = follower.decide(rng.normal(size=(3, DIM)))
    assert decision.mean == 0.0
    follower.receive(news(rng, origin=0, ttl=1, round=2, context=np.ones(DIM)))
    decision = follower.decide(np.array([np.zeros(DIM), np.ones(DIM)]))
    assert (decision.index, decision.mean) == (1, None)


def test_what_is_no_message_is_refused(agent, rng):
    with pytest.raises(InputError, match=r"receive takes a Message.*from_bytes"):
        agent.receive(news(rng).to_bytes())


@pytest.mark.parametrize("v", [6, -1, 1.5, "zero", None, True])
def test_an_unknown_agent_is_refused(network, v):
    with pytest.raises(NetworkError, match=r"not in this network.*0 … 5"):
        eager().agent(v, network)


def test_every_error_is_of_our_own_tree(agent, rng):
    for call in (
        lambda: agent.decide([]),
        lambda: agent.reward(9, 1.0),
        lambda: agent.receive(news(rng, ttl=9)),
        lambda: agent.observe([np.nan], 1.0),
    ):
        with pytest.raises(CoopBanditsError, match=r"."):
            call()


@pytest.mark.parametrize(
    "similarity",
    [
        cb.similarity.Same(),
        cb.similarity.Evidence(),
        cb.similarity.MeanEmbedding(0.5, refresh="frozen"),
    ],
    ids=repr,
)
def test_a_preview_is_the_decision_and_leaves_no_trace(rng, network, similarity):
    policy = eager(similarity=similarity)
    plain, asked = (policy.agent(2, network, seed=3) for _ in range(2))
    for _ in range(6):
        offered = rng.normal(size=(5, 3))
        other = rng.normal(size=(4, 3))
        previews = [asked.preview(other), asked.preview(offered), asked.preview(other)]
        assert previews[0] == previews[2]
        expected, decision = plain.decide(offered), asked.decide(offered)
        assert previews[1] == decision.index == expected.index
        for agent in (plain, asked):
            agent.reward(decision.id, float(offered[decision.index].sum()))
    assert asked.to_bytes() == plain.to_bytes()


def test_a_preview_that_raises_has_changed_nothing(rng, network):
    agent = eager().agent(2, network)
    agent.observe(rng.normal(size=3), 1.0)
    before = agent.to_bytes()
    with pytest.raises(ShapeError, match="uses contexts of 3 numbers"):
        agent.preview(rng.normal(size=(2, 4)))
    assert agent.to_bytes() == before


def test_one_origin_cannot_flood_an_agent_with_a_factor_between_two_decisions(rng):
    agent = eager().agent(2, cb.Network.path(6), seed=1)
    agent.decide(rng.normal(size=(2, DIM)))
    sent = [news(rng, round=t, ttl=1) for t in range(1, MOST_OF_ONE + 3)]
    for message in sent[:MOST_OF_ONE]:
        agent.receive(message)
    before = agent.to_bytes()
    with pytest.raises(RemoteProtocolError, match="takes no more until it decides again"):
        agent.receive(sent[MOST_OF_ONE])
    assert agent.to_bytes() == before
    agent.receive(news(rng, origin=3, ttl=1))  # others are heard
    agent.decide(rng.normal(size=(2, DIM)))
    agent.receive(sent[MOST_OF_ONE])  # and it may come again
    assert agent.known == MOST_OF_ONE + 2


@pytest.mark.parametrize("features", [None, cb.features.Exact()])
def test_many_names_cannot_flood_an_agent_either(rng, features):
    network = cb.Network.complete(8)
    agent = eager(kernel=cb.kernels.Linear(), ttl=1, features=features).agent(0, network)
    x = rng.normal(size=DIM)  # and nothing is known of d yet
    sent = [cb.Message(t, v, x, 1.0, 1) for t in range(1, 1000) for v in range(1, 8)]
    for message in sent[:MOST_OF_ALL]:
        agent.receive(message)
    with pytest.raises(RemoteProtocolError, match="takes no more until it decides again"):
        agent.receive(sent[MOST_OF_ALL])
    assert agent.known == MOST_OF_ALL


def test_an_agent_that_keeps_sums_takes_any_number(rng):
    policy = eager(kernel=cb.kernels.Linear(), features=cb.features.Exact())
    agent = policy.agent(2, cb.Network.path(6), seed=1)
    agent.decide(rng.normal(size=(2, DIM)))
    for t in range(1, MOST_OF_ONE + 300):
        agent.receive(news(rng, round=t, ttl=1))
    assert agent.known == MOST_OF_ONE + 299


def test_an_agent_that_keeps_observations_cannot_let_them_fade_and_says_so():
    network, fades = cb.Network.path(2), cb.forget.Exponential(half_life=5)
    policy = cb.KernelUCB(cb.kernels.RBF(), forget=fades)
    with pytest.raises(ParameterError, match=r"half_life=5.* give the policy features=, such as"):
        policy.agent(0, network)
    for kernel, more in (
        (cb.kernels.Linear(), {}),
        (cb.kernels.RBF(), {"features": cb.features.Fourier(8)}),
    ):
        agent = cb.KernelUCB(kernel, forget=fades, **more).agent(0, network)
        agent.reward(agent.decide([[1.0, 0.0]]), 1.0)
        [before, *_, after] = [agent.decide([[1.0, 0.0]]).mean for _ in range(20)]
        assert 0 < after < 0.5 * before
