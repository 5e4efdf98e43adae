from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.features import Fourier, Nystrom
from coopbandits.kernels import RBF, Linear, Matern
from coopbandits.similarity import Evidence, Views
from coopbandits.similarity.found import each, packed
from coopbandits.similarity.similarity import estimated
from learnt_views import K_z_of, learner_of, linear_samples, tasks, view

OFF = ~np.eye(12, dtype=bool)
GROUPS = Evidence(partitions=0)
BOTH = pytest.mark.parametrize("similarity", [GROUPS, Evidence()], ids=["groups", "drawn"])


@BOTH
def test_agents_of_one_task_are_found_and_others_are_strangers(rng, similarity):
    labels = np.arange(12) % 3
    samples = linear_samples(rng, tasks(rng, 3)[labels], n=40)
    K_z = np.array([K_z_of(similarity, samples, me=me)[me] for me in range(12)])
    same = np.equal.outer(labels, labels)
    assert K_z[same & OFF].min() > 0.8
    assert K_z[~same].max() < 0.02


def test_where_everyone_differs_everyone_is_on_its_own(rng):
    K_z = K_z_of(GROUPS, linear_samples(rng, tasks(rng, 12), n=40))
    assert K_z[0, 1:].max() < 0.15  # two of twelve random tasks in five dimensions are not far
    assert K_z[OFF].mean() < 0.03


def test_where_all_are_the_same_all_are_believed(rng):
    samples = linear_samples(rng, tasks(rng, 1)[np.zeros(12, dtype=int)], n=10)
    assert K_z_of(GROUPS, samples)[OFF].min() > 0.9


@BOTH
def test_few_data_say_little(rng, similarity):
    """One observation each cannot tell who is alike: nobody is believed in full."""
    samples = linear_samples(rng, tasks(rng, 3)[np.arange(12) % 3], n=1)
    assert K_z_of(similarity, samples)[0, 1:].max() < 0.9


@BOTH
def test_tasks_that_vary_smoothly_get_correlations_between_0_and_1(rng, similarity):
    """One shared direction and an own part each: correlations of 0.6 between all."""
    shared, own = tasks(rng, 1), tasks(rng, 12)
    theta = np.sqrt(0.6) * shared + np.sqrt(0.4) * own
    samples = linear_samples(rng, theta, n=60, noise=0.1)
    rows = [np.delete(K_z_of(similarity, samples, me=me)[me], me) for me in range(12)]
    assert 0.25 < np.mean(rows) < 0.9  # a few draws each: one agent's may be far off


@BOTH
def test_the_asking_agents_data_do_not_speak_for_themselves(rng, similarity):
    """Its place among the groups is weighed without its own data in them."""
    theta = tasks(rng, 12)
    theta[1:6] = theta[1]
    theta[6:] = theta[6]
    samples = linear_samples(rng, theta, n=40)  # agent 0 is like nobody
    K_z = K_z_of(similarity, samples)
    assert K_z[0, 1:].max() < 0.05
    assert K_z_of(similarity, samples, me=1)[1, 2:6].min() > 0.8


@BOTH
def test_rewards_in_other_units_give_the_same_similarity(rng, similarity):
    samples = linear_samples(rng, tasks(rng, 3)[np.arange(12) % 3], n=8)
    K_z = K_z_of(similarity, samples)
    for unit in (1e-6, 1e5):
        other = K_z_of(similarity, [(X, unit * y) for X, y in samples])
        np.testing.assert_allclose(other, K_z, atol=1e-6)


@BOTH
@pytest.mark.parametrize("unit", [20.0, 1e3, 1e8])
def test_an_agent_in_other_units_is_set_aside_and_changes_nothing_else(rng, unit, similarity):
    labels = np.arange(12) % 2
    samples = linear_samples(rng, tasks(rng, 2)[labels], n=30)
    K_z = K_z_of(similarity, samples[:11])
    X, y = samples[11]
    odd = K_z_of(similarity, [*samples[:11], (X, unit * y)])
    # with one agent more other partitions are drawn, twelve of them
    np.testing.assert_allclose(odd[0, :11], K_z[0], atol=0.02 if similarity is GROUPS else 0.1)
    np.testing.assert_array_equal(odd[11], np.eye(12)[11])
    # and it knows that it is the odd one
    np.testing.assert_array_equal(
        K_z_of(similarity, [*samples[:11], (X, unit * y)], me=11)[11], np.eye(12)[11]
    )


@BOTH
def test_rare_rewards_make_nobody_outlandish(rng, similarity):
    """Clicks: most agents have seen none yet."""
    samples = [(rng.normal(size=(20, 3)), np.zeros(20)) for _ in range(12)]
    for u in (2, 5, 7):
        samples[u][1][3] = 1.0
    K_z = K_z_of(similarity, samples, me=2)
    assert K_z[2, 5] > 0


def test_a_given_noise_level_is_used(rng):
    """The true one gives what the learnt one gives; told that all is noise, nobody differs."""
    samples = linear_samples(rng, tasks(rng, 3)[np.arange(12) % 3], n=20, noise=0.2)
    learnt, given, noisy = (
        K_z_of(replace(GROUPS, noise=noise), samples) for noise in (None, 0.2, 50.0)
    )
    np.testing.assert_allclose(given, learnt, atol=0.1)
    assert np.ptp(learnt[0, 1:]) > 0.8
    assert np.ptp(noisy[0, 1:]) < 0.05


@pytest.mark.parametrize(
    ("kernel", "basis"),
    [(RBF(1.5), None), (Matern(nu=1.5), None), (RBF(), Fourier(32)), (RBF(), "reference")],
    ids=str,
)
def test_through_features_it_works_for_other_kernels(rng, kernel, basis):
    """Two reward functions that no linear one can tell apart."""
    if basis == "reference":
        basis = Nystrom(rng.uniform(-1, 1, size=(30, 2)))
    labels = np.arange(8) % 2
    samples = []
    for label in labels:
        X = rng.uniform(-1, 1, size=(60, 2))
        y = (1 - 2 * label) * X[:, 0] * X[:, 1] * 2 + 0.1 * rng.normal(size=60)
        samples.append((X, y))
    K_z = K_z_of(Evidence(features=basis), samples, kernel=kernel)
    same = np.equal.outer(labels, labels) & ~np.eye(8, dtype=bool)
    assert K_z[0][same[0]].min() > 0.5
    assert K_z[0][labels != 0].max() < 0.05


@BOTH
def test_offered_contexts_tell_groups_apart_before_rewards_do(rng, similarity):
    """Three groups with a law of contexts and a task each; three rounds."""
    labels = np.arange(12) % 3
    theta, centres = tasks(rng, 3, dim=10), tasks(rng, 3, dim=10)
    samples, offered = [], []
    for label in labels:
        sets = centres[label] + rng.normal(size=(3, 8, 10)) / np.sqrt(10)
        offered.append(sets)
        samples.append((sets[:, 0], sets[:, 0] @ theta[label] + 0.3 * rng.normal(size=3)))
    same = np.equal.outer(labels, labels) & OFF
    told = K_z_of(similarity, samples, offered=offered)
    untold = K_z_of(replace(similarity, contexts=False), samples)
    assert told[~same & OFF].max() < 0.2
    assert told[0][same[0]].mean() - told[0][~same[0]][1:].mean() > 0.3
    assert told[0][same[0]].mean() - told[0][~same[0]][1:].mean() > (
        untold[0][same[0]].mean() - untold[0][~same[0]][1:].mean()
    )


@BOTH
def test_context_laws_that_say_nothing_about_tasks_do_not_split_a_task(rng, similarity):
    """One task for all, three laws of contexts: rewards decide."""
    labels = np.arange(12) % 3
    theta, centres = tasks(rng, 1, dim=6)[0], tasks(rng, 3, dim=6)
    samples, offered = [], []
    for label in labels:
        sets = centres[label] + rng.normal(size=(30, 4, 6)) / np.sqrt(6)
        offered.append(sets)
        samples.append((sets[:, 0], sets[:, 0] @ theta + 0.3 * rng.normal(size=30)))
    assert K_z_of(similarity, samples, offered=offered)[0, 1:].min() > 0.7


@BOTH
def test_an_agent_without_data_believes_as_far_as_most_are_alike(rng, similarity):
    alike = linear_samples(rng, tasks(rng, 1)[np.zeros(11, dtype=int)], n=30)
    apart = linear_samples(rng, tasks(rng, 11), n=30)
    trusting, wary = (
        K_z_of(similarity, [None, *samples])[0, 1:].mean() for samples in (alike, apart)
    )
    assert trusting > 0.8
    assert wary < 0.2


def test_who_has_not_been_heard_from_is_like_nobody(rng):
    samples = linear_samples(rng, tasks(rng, 1)[np.zeros(4, dtype=int)], n=30)
    K_z = K_z_of(Evidence(), [samples[0], None, *samples[2:]])
    np.testing.assert_allclose(K_z[1], [0.0, 1.0, 0.0, 0.0], rtol=0, atol=1e-15)  # odds add up to 1


@BOTH
def test_a_view_by_itself_and_among_others_is_the_same(rng, similarity):
    learner = learner_of(similarity, 12)
    samples = linear_samples(rng, tasks(rng, 3)[np.arange(12) % 3], n=6)
    alone = [view(learner, samples, me=me) for me in range(12)]
    agents, me, sums = (
        np.concatenate([getattr(v, name) for v in alone]) for name in ("agents", "me", "summaries")
    )
    together = Views.apart(agents, me, sums)
    matrices = learner.estimate(together).expected
    for me, one in enumerate(alone):
        np.testing.assert_allclose(learner.estimate(one).expected[0], matrices[me], atol=1e-10)


@pytest.mark.parametrize(
    ("similarity", "n", "known", "V"),
    [
        pytest.param(Evidence(partitions=64), 1, 25, 64, id="drawn"),
        pytest.param(Evidence(), 6, 25, 32, id="drawn at once"),
        pytest.param(Evidence(partitions=1, groups=1), 6, 4, 5, id="one group"),
    ],
)
def test_a_narrow_view_among_wide_ones_is_the_same(rng, similarity, n, known, V):
    """Padding and company must not decide anything."""
    learner = learner_of(similarity, V)
    for _ in range(8):
        wide = linear_samples(rng, tasks(rng, 6)[np.arange(V) % 6], n=n)
        wide = [(1.0 + 0.05 * X, y) for X, y in wide] if known == 4 else wide
        narrow = [*wide[:known], *[None] * (V - known)]
        alone = view(learner, narrow, me=0)
        sums = np.concatenate([view(learner, wide, me=1).summaries, alone.summaries])
        together = Views.apart(np.arange(V)[None].repeat(2, axis=0), np.array([1, 0]), sums)
        matrices = learner.estimate(together).expected
        np.testing.assert_allclose(estimated(learner, alone).expected[0], matrices[1], atol=1e-9)


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
        ({"groups": 0}, "groups"),
        ({"contexts": "yes"}, "True or False"),
        ({"refresh": "frozen"}, "expected 'every round' or 'growing'"),
        ({"growth": 0.9}, "growth must be above 1"),
        ({"partitions": -1}, "partitions must be a whole number >= 0"),
        ({"partitions": 2.5}, "partitions must be a whole number"),
    ],
    ids=str,
)
def test_bad_input_is_refused(wrong, match):
    with pytest.raises(ParameterError, match=match):
        Evidence(**wrong)


def test_only_groups_that_the_asking_agent_may_be_in_are_kept(rng):
    """Its own row of K_z is what it was; what others share elsewhere is each one's own."""
    places = rng.dirichlet(0.3 * np.ones(4), size=(2, 7))
    places[0, 2] = [0.7, 0.295, 0.005, 0.0]  # 0.005 is as good as nothing
    places[1, 5] = [0.0, 0.0, 1.0, 0.0]
    rho, me = np.array([1.0, 0.85]), np.array([2, 5])
    loadings = packed(places.copy(), rho, me)
    K_z = loadings.matrix
    np.testing.assert_allclose(np.diagonal(K_z, axis1=1, axis2=2), 1.0)
    for one, agent in enumerate(me):
        mine = places[one, agent] >= 0.02
        kept = np.where((places[one] >= 0.02) & mine, places[one], 0.0)
        kept = np.where(kept > 0.98, 1.0, kept)
        expected = rho[one] * kept @ kept.T
        off = ~np.eye(7, dtype=bool)
        np.testing.assert_allclose(K_z[one][off], expected[off], atol=1e-12)
        assert (loadings.U[one] != 0).any(axis=0).sum() <= mine.sum()


def test_each_group_with_company_is_a_hypothesis_and_being_alone_is_one():
    places = np.zeros((1, 5, 4))
    places[0, [1, 2], 0] = 1.0
    places[0, 3, 1] = 0.7
    places[0, 4, 2] = 0.4  # more likely on its own
    places[0, 0] = [0.5, 0.3, 0.1, 0.01]
    loadings = each(places, np.array([0.85]), np.array([0]))
    np.testing.assert_allclose(loadings.weight, [0.5, 0.3, 0.2])
    expected = [np.eye(5) for _ in range(3)]
    for K_z, company in zip(expected, ([0, 1, 2], [0, 3], [0]), strict=True):
        K_z[np.ix_(company, company)] = 0.85
        np.fill_diagonal(K_z, 1.0)
    np.testing.assert_allclose(loadings.matrix, expected)


def test_of_many_unlikely_groups_the_likeliest_stay():
    loadings = each(np.full((1, 3, 60), 1 / 61), np.ones(1), np.zeros(1, dtype=np.int64))
    assert loadings.weight.sum() == pytest.approx(1.0)


def test_more_groups_than_can_be_sought_are_refused():
    with pytest.raises(ParameterError, match="groups must be at most 1000, got 2147483647"):
        cb.similarity.Evidence(groups=2**31 - 1)
