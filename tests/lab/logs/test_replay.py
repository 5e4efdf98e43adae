import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, NetworkError, ParameterError
from coopbandits.lab import Log, Logged, logged, replay_policy
from worlds import eager

NETWORK = cb.Network.path(4)


def problem_of(agents=4, actions=3, **changes):
    network = NETWORK if agents == 4 else cb.Network.path(agents)
    return cb.problems.kernel(network, dim=2, actions=actions, norm=2.0, seed=1, **changes)


def log_of(run, problem, seed, rng):
    """What `run` did, as a log in which each decision stands behind up to two decoys.

    A decoy offers the same contexts and took another action, so that it must be discarded.
    """
    decisions = []
    for t in range(1, len(run.actions) + 1):
        offer = problem.round(t, seed)
        for v in range(len(problem.network)):
            mine = np.flatnonzero(offer.agents == v)
            X, taken = offer.contexts[mine], int(run.actions[t - 1, v])
            for decoy in range(int(rng.integers(3))):
                other = (taken + 1 + decoy) % len(X)
                decisions.append(Logged(10 * t + decoy, v, X, other, 1e6))
            reward = float(offer.rewards[mine[taken]])
            decisions.append(Logged(10 * t + 5, v, X, taken, reward))
    return Log.of(decisions)


POLICIES = {
    "eager": eager(),
    "evidence": eager(kernel=cb.kernels.Linear(), similarity=cb.similarity.Evidence()),
    "embeddings": eager(similarity=cb.similarity.MeanEmbedding(0.5, refresh="frozen")),
    "coop": cb.CoopKernelUCB(
        kernel=cb.kernels.RBF(), similarity=cb.similarity.Clusters([0, 0, 1, 1]), ttl=2
    ),
    "dist": cb.DistKernelUCB(kernel=cb.kernels.RBF(), ttl=1),
    "in turn": cb.Centralised(kernel=cb.kernels.RBF()),
    "sums": eager(kernel=cb.kernels.Linear(), features=cb.features.Exact()),
    "uniform": cb.Uniform(),
}


@pytest.mark.parametrize("name", POLICIES)
def test_replaying_what_a_policy_did_is_playing_it_whatever_is_discarded(rng, name):
    problem, policy = problem_of(), POLICIES[name]
    run = cb.play(problem, policy, rounds=8, seed=6, engine="messages")
    log = log_of(run, problem, 6, rng)
    replay = replay_policy(log, policy, network=NETWORK, uniform=True, seed=6)
    np.testing.assert_array_equal(replay.rewards, run.rewards)
    assert replay.used == len(log)
    assert replay.accepted == 32
    assert replay.mean == pytest.approx(run.rewards.mean())


def skewed(problem, rounds, seed):
    """A log that takes the first of three actions half of the time."""
    rng, p = np.random.default_rng([seed, 5]), np.array([0.5, 0.25, 0.25])
    decisions = []
    for t in range(1, rounds + 1):
        offer = problem.round(t, seed)
        for v in range(len(problem.network)):
            mine, action = np.flatnonzero(offer.agents == v), int(rng.choice(3, p=p))
            reward = float(offer.rewards[mine[action]])
            decisions.append(
                Logged(t, v, offer.contexts[mine], action, reward, propensity=float(p[action]))
            )
    return Log.of(decisions)


@pytest.mark.parametrize(
    ("log_of_seed", "floor"),
    [
        pytest.param(
            lambda problem, T, seed: logged(problem, T, seed=seed),
            1 / 3,
            marks=pytest.mark.slow,
            id="uniform",
        ),
        pytest.param(skewed, 0.25, id="propensities"),
    ],
)
def test_a_replay_earns_what_play_earns_on_average(log_of_seed, floor):
    problem, policy = problem_of(agents=2), eager(ridge=0.05, eta=0.2)
    replays, plays, logs = [], [], []
    for seed in range(10):
        log = log_of_seed(problem, 110, seed)
        found = replay_policy(log, policy, network=problem.network, rounds=15, seed=seed)
        assert found.floor == pytest.approx(floor)
        replays.append(found.mean)
        logs.append(found.logged)
        plays.append(cb.play(problem, policy, rounds=15, seed=seed + 10_000).rewards.mean())
    error = np.sqrt((np.var(replays, ddof=1) + np.var(plays, ddof=1)) / len(plays))
    assert abs(np.mean(replays) - np.mean(plays)) < 4 * error
    # the tolerance tells learning from logging
    assert np.mean(plays) - np.mean(logs) > 4 * error


def test_sets_of_unequal_size_are_accepted_alike(rng):
    # an action of a set of one brings 1, of a set of four 0; a match is four times as likely there
    decisions = []
    for t in range(1, 801):
        K = 1 if rng.random() < 0.5 else 4
        decisions.append(Logged(t, 0, rng.normal(size=(K, 2)), int(rng.integers(K)), float(K == 1)))
    log = Log.of(decisions)
    found = replay_policy(log, cb.Uniform(), uniform=True)
    share = log.rewards.mean()
    assert found.floor == 0.25
    assert abs(found.mean - share) < 4 * np.sqrt(share * (1 - share) / found.accepted)


@pytest.mark.slow
def test_the_interval_covers_what_a_policy_earns_on_average():
    policy, problem = (
        cb.LinUCB(eta=0.3),
        cb.problems.clustered_linear(cb.Network.path(2), dim=2, actions=2, noise=0.3, seed=3),
    )
    truth = np.mean(
        [cb.play(problem, policy, rounds=20, seed=s).rewards.mean() for s in range(5000, 5800)]
    )
    hits = 0
    for seed in range(200):
        log = logged(problem, 70, seed=seed)
        low, high = replay_policy(log, policy, network=problem.network, rounds=20).interval
        hits += low <= truth <= high
    # of 200 at 95%, fewer than 178 have probability below 0.001
    assert hits >= 178


def test_rewards_less_a_centre_are_what_agents_learn():
    problem, policy = problem_of(agents=2), eager()
    log = logged(problem, 80, seed=4)
    lifted = Log.of(
        [
            Logged(d.round, d.agent, d.contexts, d.action, d.reward + 8, d.propensity)
            for d in log.decisions
        ]
    )
    plain = replay_policy(log, policy, network=problem.network)
    same = replay_policy(lifted, policy, network=problem.network, centre=8.0)
    np.testing.assert_allclose(same.rewards, plain.rewards + 8)
    assert same.mean == pytest.approx(plain.mean + 8)


def test_a_replay_is_the_same_for_the_same_seed_and_shows_itself():
    log = logged(problem_of(), 60, seed=1)
    one, two = (replay_policy(log, eager(), network=NETWORK, seed=3) for _ in range(2))
    assert one.rewards.tobytes() == two.rewards.tobytes()
    assert not one.rewards.flags.writeable
    assert "rounds of 4 agents" in repr(one)


def test_a_lower_floor_accepts_fewer_decisions():
    log = logged(problem_of(actions=2), 200, seed=1)
    whole = replay_policy(log, cb.Uniform())
    half = replay_policy(log, cb.Uniform(), floor=0.25)
    assert (whole.floor, half.floor) == (0.5, 0.25)
    assert abs(half.accepted / whole.accepted - 0.5) < 0.15


def test_what_a_log_cannot_support_is_refused():
    log = logged(problem_of(), 60, seed=1)
    bare = Log.of([Logged(d.round, d.agent, d.contexts, d.action, d.reward) for d in log.decisions])
    with pytest.raises(InputError, match=r"no line has 'propensity'.*uniform=True"):
        replay_policy(bare, cb.Uniform())
    with pytest.raises(InputError, match=r"only \d rounds of 4 agents"):
        replay_policy(log.before(16), eager(), network=NETWORK)
    with pytest.raises(InputError, match="rounds=50, but the log gives only"):
        replay_policy(log, cb.Uniform(), rounds=50)
    with pytest.raises(NetworkError, match="each of them needs decisions"):
        replay_policy(log, cb.Uniform(), network=cb.Network.path(5))
    with pytest.raises(NetworkError, match="each of them needs decisions"):
        replay_policy(log, cb.Uniform(), network=cb.Network.path(3))
    skewed = logged(problem_of(), 60, policy=cb.LinUCB(), explore=0.5)
    with pytest.raises(ParameterError, match="uniform=True, but the log has propensity"):
        replay_policy(skewed, cb.Uniform(), uniform=True)
    with pytest.raises(ParameterError, match="floor must be above 0 and at most the log's least"):
        replay_policy(log, cb.Uniform(), floor=0.5)
    never = Log.of([Logged(t, 0, np.eye(2), 0, 1.0, propensities=[1.0, 0.0]) for t in range(1, 99)])
    with pytest.raises(
        InputError, match="would take action 1 where the log gives it probability 0"
    ):
        replay_policy(never, cb.Uniform())
    with pytest.raises(ParameterError, match="is no policy"):
        replay_policy(log, cb.LinUCB)
    with pytest.raises(ParameterError, match="expected a log"):
        replay_policy([], cb.LinUCB())
    with pytest.raises(ParameterError, match="level must be"):
        replay_policy(log, cb.LinUCB(), level=95)


def test_a_network_of_other_names_than_the_logs_is_refused():
    named = cb.Network.from_edges([("a", "b")], names=["a", "b", "c"])
    problem = cb.problems.clustered_linear(named, dim=2, actions=2, clusters=[0, 0, 1])
    log = logged(problem, 40)
    for names in (["c", "b", "a"], ["x", "y", "z"]):
        other = cb.Network.from_edges([], names=names)
        with pytest.raises(NetworkError, match="expected the same names in the same order"):
            replay_policy(log, cb.LinUCB(), network=other)
