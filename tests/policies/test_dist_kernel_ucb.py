from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import LocalProtocolError, ParameterError
from worlds import NETWORKS, ragged

LED_BY_AGENT_0 = cb.Network.complete(3)


@pytest.mark.parametrize("ttl", [1, 2, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_with_a_fixed_set_a_follower_pulls_what_its_centre_pulled_d_rounds_before(name, ttl):
    # appendix C: x_{v,t} = x_{c(v), t − d(v, c(v))}
    network = NETWORKS[name]
    problem = cb.problems.fully_cooperative(network, dim=2, actions=6, noise=0.5)
    policy = cb.DistKernelUCB(kernel=cb.kernels.RBF(), ttl=ttl, follow="same")
    run = cb.play(problem, policy, rounds=12, seed=1)
    centre_of = network.centres(ttl).of
    for v, centre in enumerate(centre_of):
        if v != centre:
            d = int(network.distances[centre, v])
            np.testing.assert_array_equal(run.actions[d:, v], run.actions[:-d, centre])


def test_until_its_centre_is_heard_a_follower_plays_kernel_ucb_on_its_own():
    network = cb.Network.star(9, spike=2)
    problem = ragged(network, rounds=6)
    dist = cb.play(problem, cb.DistKernelUCB(kernel=cb.kernels.RBF(), ttl=4), rounds=6)
    alone = cb.play(problem, cb.KernelUCB(kernel=cb.kernels.RBF()), rounds=6)
    centres = network.centres(4)
    for v, centre in enumerate(centres.of):
        d = int(network.distances[centre, v]) if v != centre else 1
        np.testing.assert_array_equal(dist.actions[:d, v], alone.actions[:d, v])


def test_a_centre_plays_naive_cooperation_on_what_it_hears():
    # one centre: its own choices follow from the others' observations, whatever they chose
    network = cb.Network.star(5)
    assert network.centres(2).indices.size == 1
    problem = cb.problems.fully_cooperative(network, dim=2, actions=6, noise=0.5)
    run = cb.play(problem, cb.DistKernelUCB(kernel=cb.kernels.RBF(), ttl=2), rounds=8, seed=2)
    centre = int(network.centres(2).indices[0])
    one = cb.KernelUCB(kernel=cb.kernels.RBF()).agent(0, cb.Network.path(1))
    for t in range(1, 9):
        offer = problem.round(t, 2)
        for w in range(5):
            s = t - max(1, int(network.distances[w, centre]))
            if s >= 1:
                past = problem.round(s, 2)
                row = past.starts[w] + run.actions[s - 1, w]
                one.observe(past.contexts[row], past.rewards[row])
        if t > 1:
            assert (
                one.decide(offer.contexts[offer.agents == centre]).index
                == (run.actions[t - 1, centre])
            )


def test_where_sets_change_the_nearest_offered_action_is_taken(rng):
    follower = cb.DistKernelUCB(kernel=cb.kernels.RBF()).agent(1, LED_BY_AGENT_0)
    arm = rng.normal(size=2)
    follower.receive(cb.Message(round=1, origin=0, context=arm, reward=0.0, ttl=1))
    offered = arm + np.array([[1.0, 0.0], [0.0, -0.1], [0.1, 0.0], [0.3, 0.3]])
    assert follower.decide(offered).index == 1  # tied with 2: the lowest index


def test_an_older_arm_that_arrives_late_does_not_lead():
    follower = cb.DistKernelUCB(kernel=cb.kernels.RBF()).agent(1, LED_BY_AGENT_0)
    for t, x in [(2, [1.0]), (1, [5.0])]:
        follower.receive(cb.Message(round=t, origin=0, context=x, reward=0.0, ttl=1))
    assert follower.decide([[5.0], [1.0]]).index == 1


def test_where_sets_change_following_to_the_same_arm_is_refused():
    problem = ragged(cb.Network.star(4))
    policy = cb.DistKernelUCB(kernel=cb.kernels.RBF(), follow="same")
    with pytest.raises(LocalProtocolError, match="follow='nearest'"):
        cb.play(problem, policy, rounds=5)


def test_where_no_distance_makes_sense_following_is_refused():
    # one-hot contexts: an arm that is not offered is equally far from all that are
    follower = cb.DistKernelUCB(kernel=cb.kernels.RBF()).agent(1, LED_BY_AGENT_0)
    eye = np.eye(4)
    follower.receive(cb.Message(round=1, origin=0, context=eye[3], reward=0.0, ttl=1))
    before = follower.to_bytes()
    with pytest.raises(LocalProtocolError, match="equally far"):
        follower.decide(eye[:3])
    assert follower.to_bytes() == before
    assert follower.decide(eye).index == 3
    assert follower.decide(eye[:1]).index == 0


def test_a_plain_tie_between_offered_actions_goes_to_the_lowest_index():
    follower = cb.DistKernelUCB(kernel=cb.kernels.RBF()).agent(1, LED_BY_AGENT_0)
    follower.receive(cb.Message(round=1, origin=0, context=[1.0], reward=0.0, ttl=1))
    assert follower.decide([[0.0], [2.0]]).index == 0


def test_following_knows_no_unit():
    offered = 1e-10 * np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    follower = cb.DistKernelUCB(kernel=cb.kernels.RBF()).agent(1, LED_BY_AGENT_0)
    follower.receive(cb.Message(round=1, origin=0, context=offered[2], reward=0.0, ttl=1))
    assert follower.decide(offered).index == 2


def test_an_unknown_rule_to_follow_is_refused():
    with pytest.raises(ParameterError, match="'nearest' or 'same'"):
        cb.DistKernelUCB(kernel=cb.kernels.RBF(), follow="blindly")


def test_many_followers_at_once_do_what_each_does_alone(rng):
    act = cb.act.FollowCentre()
    offered, arms = rng.integers(-2, 3, size=(60, 4, 2)).astype(float), rng.normal(size=(60, 2))
    arms[::3] = offered[::3, 2]  # some arms are offered again
    sizes = rng.integers(1, 5, size=60)
    sizes[::3] = 4
    real = np.arange(4) < sizes[:, None]
    expected = [act.follow(a, X[:n]) for a, X, n in zip(arms, offered, sizes, strict=True)]
    np.testing.assert_array_equal(act.follow_each(arms, offered, real), expected)
    with pytest.raises(LocalProtocolError, match="follow='same' needs one fixed decision set"):
        cb.act.FollowCentre("same").follow_each(arms, offered, real)
    same = cb.act.FollowCentre("same").follow_each(arms[::3], offered[::3], real[::3])
    np.testing.assert_array_equal(same, expected[::3])
    labels = np.eye(5)
    with pytest.raises(LocalProtocolError, match="equally far from each other"):
        act.follow_each(labels[:1], labels[None, 1:], real[:1])


@pytest.mark.parametrize("base", [cb.act.UpperBound, cb.act.FollowCentre])
def test_an_act_of_ones_own_may_have_followers(base):
    class Last(base):  # type: ignore[valid-type]
        """Everyone follows agent 0, to the last action that is offered."""

        def leaders(self, network, ttl):
            return np.where(np.arange(len(network)) == 0, -1, 0)

        def follow(self, arm, offered):
            return len(offered) - 1

    policy = replace(cb.NaiveCooperation(kernel=cb.kernels.Linear()), act=Last())
    problem = ragged(cb.Network.complete(4), 3)
    for engine in ("exact", "statistics", "messages"):
        run = cb.play(problem, policy, rounds=6, seed=1, engine=engine)
        last = [problem.round(t, 1).sizes[1:] - 1 for t in range(4, 7)]
        np.testing.assert_array_equal(run.actions[3:, 1:], last)
