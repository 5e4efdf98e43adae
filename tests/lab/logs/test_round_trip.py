"""From one policy's decisions over a file to the value of another: what is said is so often right.

The world has four decision sets, drawn with the same probability in each round, so that the value
of a policy that learns no more is a mean of four numbers, exactly.
"""

import numpy as np
import pytest
from scipy import stats

import coopbandits as cb
from coopbandits.lab import Log, evaluate_policy, importance_weights, read_log, write_log

ROUNDS = 150
NETWORK = cb.Network.path(2)
SETS = np.random.default_rng(5).normal(size=(4, 3, 2))
WEIGHTS = np.array([[1.0, -0.5], [0.8, 0.6]])  # of each agent
EXPECTED = np.einsum("skd,vd->vsk", SETS, WEIGHTS)

LOGGING = {
    "upper bounds": cb.LinUCB().exploring(0.3),
    "drawn": cb.LinTS(samples=5).exploring(0.3),
    "followed": cb.DistKernelUCB(kernel=cb.kernels.Linear()).exploring(0.6),
    "at random": cb.Uniform(),
}


def world(seed):
    """A table of rounds, each agent offered one of the four sets."""
    rng = np.random.default_rng([seed, 1])
    which = rng.integers(4, size=(ROUNDS, 2))
    expected = EXPECTED[np.arange(2), which]
    rewards = expected + 0.3 * rng.normal(size=expected.shape)
    return cb.problems.table(NETWORK, SETS[which], rewards, expected=expected)


@pytest.fixture(scope="module")
def agents():
    """Agents of another policy that have learnt a little elsewhere, and now only act."""
    rng, policy = np.random.default_rng(2), cb.KernelUCB(kernel=cb.kernels.RBF(2.0), eta=0.1)
    trained = [policy.agent(v, NETWORK) for v in range(2)]
    for v, agent in enumerate(trained):
        for x in rng.normal(size=(4, 2)):
            agent.observe(x, float(WEIGHTS[v] @ x + 0.3 * rng.normal()))
    return trained


@pytest.fixture(scope="module")
def choices(agents):
    """What these agents choose from each set: (2, 4)."""
    return np.array([[agent.preview(offered) for offered in SETS] for agent in agents])


@pytest.fixture(scope="module")
def target(choices):
    """The same as a function, which is faster."""

    def answer(contexts, v):
        (s,) = np.flatnonzero((contexts == SETS).all(axis=(1, 2)))
        return np.eye(3)[choices[v, s]]

    return answer


@pytest.fixture(scope="module")
def truth(choices):
    """What they earn a decision."""
    return np.take_along_axis(EXPECTED, choices[..., None], axis=2).mean()


def log_of(policy, seed, folder):
    """What a policy's agents logged, after it went over a file."""
    problem = world(seed)
    run = cb.play(problem, policy, rounds=ROUNDS, seed=seed)
    write_log(Log.of_run(run, problem, policy=policy, seed=seed), folder / "log.jsonl")
    return read_log(folder / "log.jsonl", network=NETWORK)


@pytest.mark.parametrize(
    ("logging", "logs"),
    [
        ("at random", 30),
        ("upper bounds", 30),
        *(pytest.param(logging, 400, marks=pytest.mark.slow) for logging in LOGGING),
    ],
)
def test_intervals_cover_another_policys_value_as_often_as_they_say(
    target, truth, logging, logs, tmp_path
):
    hits = {"ips": 0, "snips": 0}
    for seed in range(logs):
        log = log_of(LOGGING[logging], seed, tmp_path)
        for estimator in hits:
            low, high = evaluate_policy(log, target, estimator=estimator, seed=seed).interval
            hits[estimator] += low <= truth <= high
    # as for logs of policies that do not learn: a bootstrap falls short by a percent or two
    fewest, most = stats.binom.ppf([0.001, 0.999], logs, [0.93, 0.97])
    for estimator, count in hits.items():
        assert fewest <= count <= most, estimator


@pytest.mark.slow
def test_estimates_average_to_the_value_and_the_logs_own_mean_does_not(target, truth, tmp_path):
    found, logged = [], []
    for seed in range(40):
        log = log_of(LOGGING["drawn"], 1000 + seed, tmp_path)
        found.append((importance_weights(log, target) * log.rewards).mean())
        logged.append(log.rewards.mean())
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - truth) < 4 * error
    assert abs(np.mean(logged) - truth) > 8 * error


def test_agents_are_worth_what_the_function_that_does_as_they_do_is(agents, target, tmp_path):
    log = log_of(LOGGING["drawn"], 1, tmp_path)
    assert evaluate_policy(log, agents) == evaluate_policy(log, target)
