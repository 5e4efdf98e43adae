from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.features import Fourier, Nystrom
from coopbandits.kernels import RBF, Linear, Matern
from coopbandits.similarity import Evidence, Views
from coopbandits.similarity.similarity import estimated
from learnt_views import learner_of, linear_samples, tasks, view

OFF = ~np.eye(12, dtype=bool)


def settled(similarity, samples, *, me=0, kernel=None, offered=None, estimates=12):
    """Return what K_z is in one view after chains went on for some estimates, on average."""
    learner = learner_of(similarity, len(samples), *([] if kernel is None else [kernel]))
    views = view(learner, samples, me=me, offered=offered)
    rows = []
    for k in range(1, estimates + 1):
        loadings = estimated(learner, views)
        views = replace(views, known=views.known + 1, state=loadings.state)
        if k > estimates // 2:  # the first half is burn-in
            rows.append(loadings.expected[0])
    return np.mean(rows, axis=0)


def test_agents_of_one_task_are_found_and_others_are_strangers(rng):
    labels = np.arange(12) % 3
    samples = linear_samples(rng, tasks(rng, 3)[labels], n=40)
    K_z = np.array([settled(Evidence(), samples, me=me)[me] for me in range(12)])
    same = np.equal.outer(labels, labels)
    assert K_z[same & OFF].min() > 0.7
    assert K_z[~same].mean() < 0.25  # three tasks leave it open whether there is a population


def test_where_everyone_differs_others_count_for_little(rng):
    K_z = [settled(Evidence(), linear_samples(rng, tasks(rng, 12), n=40))[0, 1:] for _ in range(6)]
    assert np.mean(K_z) < 0.12


def test_where_all_are_the_same_all_are_believed(rng):
    samples = linear_samples(rng, tasks(rng, 1)[np.zeros(12, dtype=int)], n=10)
    assert settled(Evidence(), samples)[0, 1:].min() > 0.85


def test_few_data_say_little(rng):
    """One observation each cannot tell who is alike: nobody is believed in full."""
    samples = linear_samples(rng, tasks(rng, 3)[np.arange(12) % 3], n=1)
    assert settled(Evidence(), samples)[0, 1:].max() < 0.95


def test_a_population_with_differences_gets_correlations_between_0_and_1(rng):
    """One shared direction and an own part each: correlations of 0.6 between all."""
    shared, own = tasks(rng, 1), tasks(rng, 12)
    theta = np.sqrt(0.6) * shared + np.sqrt(0.4) * own
    samples = linear_samples(rng, theta, n=60, noise=0.1)
    rows = [np.delete(settled(Evidence(), samples, me=me)[me], me) for me in range(12)]
    assert 0.35 < np.mean(rows) < 0.85


def test_the_asking_agents_data_do_not_speak_for_themselves(rng):
    """Its place among the groups is weighed without its own data in them."""
    theta = tasks(rng, 12)
    theta[1:6] = theta[1]
    theta[6:] = theta[6]
    samples = linear_samples(rng, theta, n=40)  # agent 0 is like nobody
    assert settled(Evidence(), samples)[0, 1:].max() < 0.5
    assert settled(Evidence(), samples, me=1)[1, 2:6].min() > 0.8


def test_rewards_in_other_units_give_much_the_same_similarity(rng):
    """Noise levels lie on a grid of powers of √e: units that are such powers change nothing."""
    samples = linear_samples(rng, tasks(rng, 3)[np.arange(12) % 3], n=8)
    K_z = settled(Evidence(), samples)
    for power in (-20, 18):
        other = settled(Evidence(), [(X, np.exp(0.5 * power) * y) for X, y in samples])
        np.testing.assert_allclose(other, K_z, atol=1e-6)


def test_a_constant_of_everyones_own_changes_nothing_where_there_is_an_intercept(rng):
    samples = linear_samples(rng, tasks(rng, 2)[np.arange(8) % 2], n=20)
    shifted = [(X, y + 3.0 * u) for u, (X, y) in enumerate(samples)]
    found = []
    for rewards in (samples, shifted):
        policy = cb.EagerKernelUCB(Linear(), similarity=Evidence(), intercept=500.0)
        agent = policy.agent(0, cb.Network.complete(8))
        for t in range(20):
            for u, (X, y) in enumerate(rewards):
                agent.observe(X[t], y[t], origin=u)
        agent.decide(np.eye(5))
        found.append(agent.worth)
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)


@pytest.mark.parametrize("unit", [20.0, 1e3])
def test_an_agent_in_other_units_hardly_changes_what_the_others_are_worth(rng, unit):
    labels = np.arange(12) % 2
    samples = linear_samples(rng, tasks(rng, 2)[labels], n=30)
    X, y = samples[11]
    K_z = settled(Evidence(), samples[:11])[0]
    odd = settled(Evidence(), [*samples[:11], (X, unit * y)])[0]
    np.testing.assert_allclose(odd[:11], K_z, atol=0.15)


def test_a_noisy_agents_rewards_count_less(rng):
    """Rewards count in the asking agent's noise units."""
    theta = tasks(rng, 1)[np.zeros(8, dtype=int)]
    quiet = linear_samples(rng, theta, n=40, noise=0.1)
    noisy = linear_samples(rng, theta, n=40, noise=3.0)
    learner = learner_of(Evidence(), 8)
    loadings = learner.estimate(view(learner, [*quiet[:4], *noisy[4:]], me=0))
    assert (loadings.scale[:, 0] == 1.0).all()
    assert (np.abs(np.log(loadings.scale[:, 1:4])) < 0.7).all()
    assert (loadings.scale[:, 4:] < 0.1).all()


def test_a_given_noise_level_is_used(rng):
    """The true one gives what the learnt one gives; told that all is noise, nobody differs."""
    samples = linear_samples(rng, tasks(rng, 3)[np.arange(12) % 3], n=20, noise=0.2)
    learnt, given, noisy = (
        settled(Evidence(noise=noise), samples, estimates=40) for noise in (None, 0.2, 50.0)
    )
    np.testing.assert_allclose(given[0], learnt[0], atol=0.25)
    assert np.ptp(learnt[0, 1:]) > 0.5
    assert np.ptp(noisy[0, 1:]) < 0.25


@pytest.mark.parametrize(
    ("kernel", "basis"),
    [(RBF(1.5), None), (Matern(nu=1.5), None), (RBF(), Fourier(32)), (RBF(), "reference")],
    ids=str,
)
def test_through_leading_features_it_works_for_other_kernels(rng, kernel, basis):
    """Two reward functions that no linear one can tell apart."""
    if basis == "reference":
        basis = Nystrom(rng.uniform(-1, 1, size=(30, 2)))
    labels = np.arange(8) % 2
    samples = []
    for label in labels:
        X = rng.uniform(-1, 1, size=(60, 2))
        y = (1 - 2 * label) * X[:, 0] * X[:, 1] * 2 + 0.1 * rng.normal(size=60)
        samples.append((X, y))
    K_z = settled(Evidence(features=basis), samples, kernel=kernel)
    assert K_z[0][2::2].min() > 0.5
    assert K_z[0][labels != 0].max() < 0.35


def test_offered_contexts_tell_groups_apart_before_rewards_do(rng):
    """Three groups with a law of contexts and a task each; three rounds."""
    labels = np.arange(12) % 3
    theta, centres = tasks(rng, 3, dim=10), tasks(rng, 3, dim=10)
    samples, offered = [], []
    for label in labels:
        sets = centres[label] + rng.normal(size=(3, 8, 10)) / np.sqrt(10)
        offered.append(sets)
        samples.append((sets[:, 0], sets[:, 0] @ theta[label] + 0.3 * rng.normal(size=3)))
    same = (labels == 0) & OFF[0]
    told = settled(Evidence(), samples, offered=offered)[0]
    untold = settled(Evidence(contexts=False), samples)[0]
    gain = told[same].mean() - told[labels != 0].mean()
    assert gain > 0.3
    assert gain > untold[same].mean() - untold[labels != 0].mean()


def test_an_agent_without_data_believes_as_far_as_most_are_alike(rng):
    alike = linear_samples(rng, tasks(rng, 1)[np.zeros(11, dtype=int)], n=30)
    apart = linear_samples(rng, tasks(rng, 11), n=30)
    trusting, wary = (
        settled(Evidence(), [None, *samples])[0, 1:].mean() for samples in (alike, apart)
    )
    assert trusting > 0.6
    assert wary < 0.3


def test_who_has_not_been_heard_from_is_like_nobody(rng):
    samples = linear_samples(rng, tasks(rng, 1)[np.zeros(4, dtype=int)], n=30)
    K_z = settled(Evidence(), [samples[0], None, *samples[2:]])
    np.testing.assert_allclose(K_z[1], [0.0, 1.0, 0.0, 0.0], rtol=0, atol=1e-15)


def test_a_view_by_itself_and_among_others_is_the_same(rng):
    learner = learner_of(Evidence(), 12)
    samples = linear_samples(rng, tasks(rng, 3)[np.arange(12) % 3], n=6)
    alone = [view(learner, samples, me=me) for me in range(12)]
    agents, me, sums = (
        np.concatenate([getattr(v, name) for v in alone]) for name in ("agents", "me", "summaries")
    )
    together = Views.apart(agents, me, sums)
    found = learner.estimate(together)
    for me, one in enumerate(alone):
        mine = learner.estimate(one)
        np.testing.assert_array_equal(mine.expected[0], found.expected[me])
        np.testing.assert_array_equal(mine.state[0], found.state[me])


def test_the_names_of_agents_change_what_is_drawn_and_not_what_is_believed(rng):
    """Over many estimates the order of agents says nothing."""
    samples = linear_samples(rng, tasks(rng, 2)[[0, 1, 0, 1, 0]], n=4)
    order = np.array([0, 3, 1, 4, 2])
    one = settled(Evidence(), samples, estimates=600)[0]
    two = settled(Evidence(), [samples[u] for u in order], estimates=600)[0]
    np.testing.assert_allclose(two, one[order], atol=0.06)


def test_chains_go_on_from_their_labels(rng):
    """With nothing new few agents are visited: even labels that the data refute mostly stay."""
    learner = learner_of(Evidence(chains=15), 40)
    views = view(learner, linear_samples(rng, tasks(rng, 2)[np.arange(40) % 2], n=30), me=0)
    first = learner.estimate(views).state
    assert first.shape == (1, 40, 15)
    together = (first[0] == first[0, 0])[::2].mean(axis=0)
    assert np.median(together) > 0.9  # from nothing: one task, one group, in most chains
    apart = (first[0] == first[0, 0])[1::2].mean(axis=0)
    assert apart.max() < 0.1
    wrong = np.repeat((np.arange(40) // 20)[None, :, None], 15, axis=2)
    later = replace(views, known=views.known + 1, before=views.known + 1, state=wrong)
    after = learner.estimate(later).state[0]
    stayed = np.mean([[one[u] == np.bincount(one[:20]).argmax() for u in range(20)]
                      for one in after.T])  # fmt: skip
    assert stayed > 0.6


def test_each_estimate_of_each_agent_has_random_numbers_of_its_own(rng):
    learner = learner_of(Evidence(), 4)
    views = view(learner, linear_samples(rng, tasks(rng, 1)[[0] * 4], n=3), me=0)
    others = [
        (learner, views),
        (replace(learner, similarity=Evidence(seed=1)), views),
        (learner, replace(views, known=views.known + 1)),
        (learner, view(learner, linear_samples(rng, tasks(rng, 1)[[0] * 4], n=3), me=1)),
    ]
    assert len({one._rng(given).random() for one, given in others}) == 4
    assert learner._rng(views).random() == learner._rng(views).random()


def test_who_is_no_longer_heard_of_has_no_group(rng):
    learner = learner_of(Evidence(), 5)
    views = view(learner, linear_samples(rng, tasks(rng, 1)[[0] * 5], n=3), me=0)
    heard = views.heard.copy()
    heard[0, 4] = False
    gone = replace(views, heard=heard, state=np.zeros((1, 5, 4), dtype=np.int64))
    state = learner.estimate(gone).state[0]
    assert (state[4] == -1).all()
    assert (state[:4] >= 0).all()


@pytest.mark.parametrize("shift", [0.0, 1.0, 4.0])
def test_rewards_that_never_vary_do_not_say_that_there_is_no_noise(rng, shift):
    """Clicks that were all 0 and ratings that were all 4 are the same beside an own constant."""
    X, found = rng.normal(size=(6, 12, 3)), []
    y = X @ rng.normal(size=3) + 0.5 * rng.normal(size=(6, 12))
    y[4:] = 0.0
    policy = cb.EagerKernelUCB(Linear(), similarity=Evidence(), intercept=500.0)
    for me in (0, 5):
        agent = policy.agent(me, cb.Network.complete(6))
        for t in range(12):
            for u in range(6):
                agent.observe(X[u, t], y[u, t] + shift, origin=u)
        agent.decide(np.eye(3))
        found.append(agent.diagnostics(sweeps=4).noise)
    assert (np.array(found) > 0.2).all()
    assert (np.array(found) < 1.5).all()


@pytest.mark.parametrize("contexts", [True, False])
def test_one_peer_with_wide_contexts_does_not_mislead_the_others(contexts):
    """All differ, and contexts of one of twelve are a hundred times as wide."""
    V, T, K, d = 12, 60, 8, 6
    ours, alone = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=(V, d))
        theta /= np.linalg.norm(theta, axis=1, keepdims=True)
        X = 0.3 * rng.normal(size=(V, d))[None, :, None] + rng.normal(size=(T, V, K, d)) / d**0.5
        X[:, 11] *= 100.0
        expected = np.einsum("tvkd,vd->tvk", X, theta)
        expected[:, 11] /= 100.0
        rewards = expected + 0.3 * rng.normal(size=expected.shape)
        problem = cb.problems.table(cb.Network.complete(V), X, rewards, expected=expected)
        for similarity, found in (
            (Evidence(contexts=contexts), ours),
            (cb.similarity.Alone(), alone),
        ):
            policy = cb.EagerKernelUCB(Linear(), similarity=similarity, eta=0.3)
            run = cb.play(problem, policy, rounds=T, engine="statistics")
            found.append(run.regret[:, :11].sum(axis=0).mean())
    assert np.mean(ours) < 1.2 * np.mean(alone)


def test_a_message_carries_the_mean_of_what_was_offered(rng):
    for contexts, more in [(True, 3), (False, 0)]:
        policy = cb.EagerKernelUCB(kernel=Linear(), similarity=Evidence(contexts=contexts))
        agent = policy.agent(0, cb.Network.path(2))
        offered = rng.normal(size=(5, 3))
        decision = agent.decide(offered)
        (message,) = agent.reward(decision.id, 1.0)
        assert len(message.attached) == more
        np.testing.assert_array_equal(message.context, decision.context)
        if contexts:
            np.testing.assert_allclose(message.attached, offered.mean(axis=0))


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"noise": 0.0}, "noise must be"),
        ({"noise": 1e-170}, "noise must be at least"),
        ({"contexts": "yes"}, "True or False"),
        ({"refresh": "frozen"}, "expected 'every round' or 'growing'"),
        ({"growth": 0.9}, "growth must be above 1"),
        ({"chains": 0}, "chains must be"),
        ({"chains": 2.5}, "chains must be a whole number"),
        ({"chains": 2**31}, "chains must be at most 1000"),
        ({"seed": -1}, "seed must be"),
    ],
    ids=str,
)
def test_bad_input_is_refused(wrong, match):
    with pytest.raises(ParameterError, match=match):
        Evidence(**wrong)


def played(labels, seed, policy):
    problem = cb.problems.clustered_linear(
        cb.Network.erdos_renyi(14, 0.6, seed=seed), dim=8, noise=0.3, clusters=labels, seed=seed
    )
    return float(cb.play(problem, policy, rounds=100, seed=seed).regret_per_agent[-1])


@pytest.mark.slow
def test_where_all_differ_evidence_costs_little_beside_alone():
    """The promise of a safe default: the upper end of a paired 95% interval is below 1.15."""
    evidence = cb.EagerKernelUCB(Linear(), similarity=Evidence(), eta=0.3)
    pairs = [
        (played(np.arange(14), seed, evidence), played(np.arange(14), seed, cb.LinUCB(eta=0.3)))
        for seed in range(200, 224)
    ]
    ours, alone = np.array(pairs).T
    off = ours - 1.15 * alone
    assert off.mean() + 2 * off.std(ddof=1) / np.sqrt(len(off)) < 0
    clusters = np.array([(played(np.arange(14) % 3, s, evidence)) for s in range(200, 212)])
    assert clusters.mean() < 0.8 * alone.mean()


@pytest.mark.slow
def test_intervals_of_the_mixture_cover_the_truth(rng):
    """Worlds drawn from the model: 95% intervals of one's own function hold the truth as often."""
    inside = []
    for _ in range(150):
        labels = rng.integers(3, size=8)
        theta = rng.normal(size=(3, 4))[labels] * np.sqrt(0.25)
        policy = cb.EagerKernelUCB(Linear(), similarity=Evidence(), eta=1.0, ridge=0.36)
        agent = policy.agent(0, cb.Network.complete(8), seed=1)
        X = rng.normal(size=(8, 6, 4))
        y = np.einsum("und,ud->un", X, theta) + 0.3 * rng.normal(size=(8, 6))
        for t in range(6):
            for u in range(8):
                agent.observe(X[u, t], y[u, t], origin=u)
        asked = rng.normal(size=(20, 4))
        agent.decide(asked)
        belief = agent.predict(asked)
        # the policy's prior has variance 1 where the truth's is a quarter: σ is in those units
        off = np.abs(belief.mean - asked @ theta[0]) / (0.5 * belief.std)
        inside.append((off < 1.96).mean())
    assert np.mean(inside) == pytest.approx(0.95, abs=0.04)


@pytest.mark.parametrize(("count", "size"), [(1, 1e6), (3, 1e5), (20, 1e5), (20, 1e12)])
def test_one_peer_with_wild_rewards_does_not_set_what_the_others_believe(rng, count, size):
    agent = cb.EagerKernelUCB(Linear(), similarity=Evidence()).agent(0, cb.Network.complete(4))
    for _ in range(20):
        for u in range(3):
            x = rng.normal(size=2)
            agent.observe(x, float(x @ [1.0, -1.0] + 0.1 * rng.normal()), origin=u)
    for _ in range(count):
        agent.observe(rng.normal(size=2), float(size * rng.normal()), origin=3)
    agent.decide(np.eye(2))
    assert agent.predict([[0.5, -0.5]]).mean[0] == pytest.approx(1.0, abs=0.15)


def test_many_chains_leave_hypotheses_that_are_likely_when_put_together(rng):
    problem = cb.problems.clustered_linear(cb.Network.complete(4), clusters=[0, 0, 1, 1])
    policy = cb.EagerKernelUCB(Linear(), similarity=Evidence(chains=60), eta=0.3)
    worth = cb.play(problem, policy, rounds=8).similarity(8)
    assert ((worth >= 0) & (worth <= 1 + 1e-9)).all()
