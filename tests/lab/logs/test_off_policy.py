from itertools import product

import numpy as np
import pytest
from scipy import stats

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab import (
    Log,
    Logged,
    evaluate_policy,
    fit_kernel,
    importance_weights,
    logged,
)

X = np.eye(3)
MEANS = np.array([0.2, 0.5, 0.9])
TARGET = np.array([0.1, 0.3, 0.6])
LOGGING = np.array([0.5, 0.3, 0.2])
TRUTH = float(TARGET @ MEANS)


def target(contexts, agent):
    return TARGET


def clicks(rng, rounds, agents=1, first=1, p=LOGGING):
    """A log of clicks on three fixed actions."""
    decisions = []
    for t in range(first, first + rounds):
        for v in range(agents):
            action = int(rng.choice(3, p=p))
            reward = float(rng.random() < MEANS[action])
            decisions.append(Logged(t, v, X, action, reward, propensities=p))
    return Log.of(decisions)


def test_the_estimates_are_their_formulas(rng):
    log = clicks(rng, 40, agents=2)
    w = np.array([TARGET[one.action] / LOGGING[one.action] for one in log.decisions])
    r = np.array([one.reward for one in log.decisions])
    np.testing.assert_allclose(importance_weights(log, target), w)
    ips = evaluate_policy(log, target, estimator="ips")
    snips = evaluate_policy(log, target, estimator="snips")
    assert ips.mean == pytest.approx((w * r).mean())
    assert snips.mean == pytest.approx((w * r).sum() / w.sum())
    assert snips.effective == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert (ips.decisions, ips.largest_weight) == (80, w.max())
    assert ips.logged == pytest.approx(r.mean())


def test_ips_over_all_logs_of_two_rounds_averages_to_the_value_exactly():
    # two actions, propensities in quarters: each sequence of actions stands as often as it is
    # likely, so the estimate on all of them together is the expectation over logs
    logging = {1: (1, 3), 2: (2, 2)}  # in quarters, by round
    rewards = {1: (0.3, -1.0), 2: (-2.0, 0.5)}
    chosen = {1: np.array([0.8, 0.2]), 2: np.array([0.0, 1.0])}
    decisions, t = [], 0
    for first, second in product((0, 1), (0, 1)):
        for _ in range(logging[1][first] * logging[2][second] * 4):
            for round_, action in [(1, first), (2, second)]:
                t += 1
                contexts = np.array([[round_, 0.0], [round_, 1.0]])
                p = np.array(logging[round_]) / 4
                decisions.append(
                    Logged(t, 0, contexts, action, rewards[round_][action], propensities=p)
                )
    log = Log.of(decisions)
    value = np.mean([chosen[i] @ rewards[i] for i in (1, 2)])
    found = evaluate_policy(log, lambda contexts, v: chosen[int(contexts[0, 0])], estimator="ips")
    assert found.mean == pytest.approx(value, abs=1e-12)
    assert found.logged != pytest.approx(value, abs=0.1)


def test_doubly_robust_is_exact_where_the_model_or_the_weights_are(rng):
    log = logged(cb.problems.kernel(cb.Network.path(2), dim=2, actions=3, seed=1), 60, seed=2)
    fit = fit_kernel(log)
    found = evaluate_policy(log, lambda c, v: np.eye(len(c))[0], estimator="dr", model=fit)
    ips = evaluate_policy(log, lambda c, v: np.eye(len(c))[0], estimator="ips")
    assert found.interval[1] - found.interval[0] < 0.7 * (ips.interval[1] - ips.interval[0])
    # a literal twin: q from the other half of the rounds, by the formula of the posterior mean
    gains = []
    for one in log.decisions:
        known = [d for d in log.decisions if d.agent == one.agent and d.round % 2 != one.round % 2]
        P = np.array([d.contexts[d.action] for d in known])
        y = np.array([d.reward for d in known]) - fit.centre
        K = fit.kernel(P, P) + fit.ridge * np.eye(len(y))
        q = fit.kernel(one.contexts, P) @ np.linalg.solve(K, y) + fit.centre
        weight = 3.0 * (one.action == 0)
        gains.append(q[0] + weight * (one.reward - q[one.action]))
    assert found.mean == pytest.approx(np.mean(gains), rel=1e-8)


def test_estimates_over_many_small_logs_average_to_the_value(rng):
    means = []
    for _ in range(225):
        log = clicks(rng, 5)
        means.append((importance_weights(log, target) * log.rewards).mean())
    assert abs(np.mean(means) - TRUTH) < 4 * np.std(means) / 15
    assert abs(LOGGING @ MEANS - TRUTH) > 5 * np.std(means) / 15


@pytest.mark.parametrize("logs", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_intervals_cover_the_value_as_often_as_they_say(rng, logs):
    hits = {"ips": 0, "snips": 0, "bernstein": 0}
    for seed in range(logs):
        log = clicks(rng, 80)
        for name in ("ips", "snips"):
            low, high = evaluate_policy(log, target, estimator=name, seed=seed).interval
            hits[name] += low <= TRUTH <= high
        low, high = evaluate_policy(
            log, target, estimator="ips", method="bernstein", reward_range=(0, 1)
        ).interval
        hits["bernstein"] += low <= TRUTH <= high
    # a bootstrap of 80 rounds falls short of 95% by a percent or two; Bernstein never
    fewest, most = stats.binom.ppf([0.001, 0.999], logs, [0.93, 0.97])
    assert fewest <= hits["ips"] <= most
    assert fewest <= hits["snips"] <= most
    assert hits["bernstein"] >= stats.binom.ppf(0.001, logs, 0.95)


def test_rounds_that_share_their_luck_widen_the_interval_only_by_round(rng):
    decisions = []
    for t in range(1, 61):
        luck = rng.normal()
        for v in range(5):
            action = int(rng.integers(3))
            decisions.append(Logged(t, v, X, action, luck, 1 / 3))
    log = Log.of(decisions)
    by_round, by_decision = (
        evaluate_policy(log, target, cluster=cluster).interval for cluster in ("round", "decision")
    )
    assert by_round[1] - by_round[0] > 1.5 * (by_decision[1] - by_decision[0])


def test_the_logging_policys_own_value_is_the_logs_mean(rng):
    log = clicks(rng, 50)
    for estimator in ("ips", "snips"):
        found = evaluate_policy(log, lambda c, v: LOGGING, estimator=estimator)
        assert found.mean == pytest.approx(log.rewards.mean())
        assert found.effective == pytest.approx(50)


def test_bernstein_is_its_formula_and_sees_rewards_less_the_middle(rng):
    log = clicks(rng, 60)
    found = evaluate_policy(
        log, target, estimator="ips", method="bernstein", reward_range=(0, 1), level=0.9
    )
    w = importance_weights(log, target)
    z = w * (log.rewards - 0.5)
    assert found.mean == pytest.approx(z.mean() + 0.5)
    reach = np.sqrt(2 * z.var(ddof=1) * np.log(40) / 60) + 7 / 0.2 * np.log(40) / (3 * 59)
    assert found.interval == pytest.approx((found.mean - reach, found.mean + reach))


def test_trained_agents_are_judged_as_they_stand():
    problem = cb.problems.kernel(cb.Network.path(2), dim=2, actions=4, norm=2.0, seed=1)
    log = logged(problem, 150, seed=3)
    policy = cb.KernelUCB(kernel=cb.kernels.RBF(), eta=0.0, ridge=0.05)
    agents = [policy.agent(v, problem.network) for v in range(2)]
    for one in log.before(75).decisions:
        agents[one.agent].observe(one.contexts[one.action], one.reward)
    late = log.since(75)
    found = evaluate_policy(late, agents)
    before = [agent.to_bytes() for agent in agents]
    assert evaluate_policy(late, agents) == found
    assert [agent.to_bytes() for agent in agents] == before
    worth = []
    for one in late.decisions:
        offer = problem.round(one.round, 3)
        choice = agents[one.agent].preview(one.contexts)
        worth.append(offer.expected[offer.agents == one.agent][choice])
    assert found.interval[0] <= np.mean(worth) <= found.interval[1]
    assert found.interval[0] > found.logged


def test_what_a_log_cannot_support_is_refused(rng):
    log = clicks(rng, 60)
    bare = Log.of([Logged(d.round, 0, X, d.action, d.reward) for d in log.decisions])
    with pytest.raises(InputError, match="does not say with which probability"):
        evaluate_policy(bare, target)
    assert evaluate_policy(bare, target, uniform=True).mean != evaluate_policy(log, target).mean
    never = clicks(rng, 60, p=np.array([0.5, 0.5, 0.0]))
    with pytest.raises(
        InputError, match="would take action 2 where the log gives it probability 0"
    ):
        evaluate_policy(never, target)
    rare = clicks(rng, 200, p=np.array([0.02, 0.02, 0.96]))
    with pytest.raises(InputError, match=r"are worth .* at least 30 are needed"):
        evaluate_policy(rare, lambda c, v: np.array([0.5, 0.5, 0.0]))
    unseen = clicks(rng, 60, p=np.array([0.998, 0.001, 0.001]))
    with pytest.raises(InputError, match=r"mean 0.1.*too short to hold what the target does"):
        evaluate_policy(unseen, target)
    with pytest.raises(InputError, match=r"12 clusters by round; .* at least 20"):
        evaluate_policy(clicks(rng, 12, agents=5), target)
    wrong = Log.of([Logged(d.round, 0, X, d.action, d.reward, 0.9) for d in log.decisions])
    with pytest.raises(InputError, match=r"mean .* too far from 1"):
        evaluate_policy(wrong, target)


def test_a_target_that_is_none_is_refused(rng):
    log = clicks(rng, 60)
    for answer in ([0.5, 0.5], [0.5, 0.6, 0.5], [1.5, -0.5, 0.0]):
        with pytest.raises(ParameterError, match="must answer 3 probabilities that sum to 1"):
            evaluate_policy(log, lambda c, v, answer=answer: answer)
    with pytest.raises(ParameterError, match="must be a function"):
        evaluate_policy(log, "greedy")
    network = cb.Network.path(2)
    with pytest.raises(ParameterError, match="one trained agent for each of the log's 1"):
        evaluate_policy(log, [cb.LinUCB().agent(v, network) for v in range(2)])
    with pytest.raises(ParameterError, match="agent 0 has learnt nothing"):
        evaluate_policy(log, [cb.LinUCB().agent(0, network)])
    with pytest.raises(ParameterError, match=r"agent 0 explores, act=Explore.*left to chance"):
        evaluate_policy(log, [cb.LinUCB().exploring().agent(0, network)])
    with pytest.raises(ParameterError, match="in order 0 … 0, got agent 1 at 0"):
        evaluate_policy(log, [cb.LinUCB().agent(1, network)])


def test_settings_that_make_no_sense_are_refused(rng):
    log = clicks(rng, 60)
    for settings, says in [
        ({"estimator": "best"}, "estimator='best' is not known"),
        ({"method": "normal"}, "method='normal' is not known"),
        ({"cluster": "week"}, "cluster='week' is not known"),
        ({"estimator": np.array(["ips", "dr"])}, "estimator=array.* is not known"),
        ({"method": np.array(["bootstrap"] * 2)}, "method=array.* is not known"),
        ({"cluster": np.array(["round", "agent"])}, "cluster=array.* is not known"),
        ({"estimator": "dr"}, "needs model="),
        ({"method": "bernstein"}, "for estimator='ips' only"),
        ({"estimator": "ips", "method": "bernstein"}, r"needs reward_range=\(low, high\)"),
        (
            {"estimator": "ips", "method": "bernstein", "reward_range": (0, 0.5)},
            r"does not fit reward_range=\(0, 0.5\)",
        ),
        ({"level": 1.0}, "level must be"),
        ({"uniform": 1}, "uniform must be True or False"),
    ]:
        with pytest.raises(ParameterError, match=says):
            evaluate_policy(log, target, **settings)
