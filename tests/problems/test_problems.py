import pickle
from itertools import count

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import (
    InputError,
    NonFiniteError,
    ParameterError,
    ShapeError,
    SimilarityError,
)
from worlds import NETWORKS, ragged

NETWORK = NETWORKS["grid"]
BOX = cb.Box([0.0, 0.0], [1.0, 1.0])
SIMULATED = {
    "clustered_linear": lambda **k: cb.problems.clustered_linear(NETWORK, dim=4, actions=5, **k),
    "kernel": lambda **k: cb.problems.kernel(NETWORK, dim=4, actions=5, **k),
    "fully_cooperative": lambda **k: cb.problems.fully_cooperative(NETWORK, dim=4, actions=5, **k),
}


@pytest.mark.parametrize("name", SIMULATED)
class TestEverySimulatedProblem:
    def test_is_a_problem_whose_rounds_depend_on_the_seed_alone(self, name):
        problem = SIMULATED[name]()
        assert isinstance(problem, cb.problems.Problem)
        late, early = problem.round(7, 3), problem.round(2, 3)
        again = SIMULATED[name]().round(7, 3)
        np.testing.assert_array_equal(late.contexts, again.contexts)
        np.testing.assert_array_equal(late.rewards, again.rewards)
        assert (late.rewards != early.rewards).any()
        assert (late.rewards != problem.round(7, 4).rewards).any()

    def test_offers_every_agent_its_actions_within_the_unit_ball(self, name):
        offer = SIMULATED[name]().round(1, 0)
        assert offer.contexts.shape == (45, 4)
        np.testing.assert_array_equal(offer.agents, np.repeat(np.arange(9), 5))
        np.testing.assert_array_equal(offer.starts, np.arange(0, 45, 5))
        np.testing.assert_array_equal(offer.sizes, np.full(9, 5))
        np.testing.assert_allclose(np.linalg.norm(offer.contexts, axis=1), 1)

    def test_another_noise_leaves_contexts_and_expectations_alone(self, name):
        quiet, loud = SIMULATED[name](noise=0.0), SIMULATED[name](noise=cb.problems.Uniform(2.0))
        one, two = quiet.round(4, 1), loud.round(4, 1)
        np.testing.assert_array_equal(one.contexts, two.contexts)
        np.testing.assert_array_equal(one.expected, two.expected)
        np.testing.assert_array_equal(one.rewards, one.expected)
        assert (np.abs(two.rewards - two.expected) <= 2.0).all()

    def test_can_be_sent_to_another_process(self, name):
        problem = SIMULATED[name]()
        back = pickle.loads(pickle.dumps(problem))
        np.testing.assert_array_equal(back.round(3, 1).rewards, problem.round(3, 1).rewards)

    def test_another_problem_seed_is_another_function(self, name):
        one, two = (SIMULATED[name](seed=s, noise=0.0).round(1, 0) for s in (0, 1))
        assert (one.rewards != two.rewards).any()

    def test_its_norm_is_that_of_the_interpolant_through_many_points(self, name):
        # the minimum-norm interpolant of F at n points has norm √(fᵀK⁻¹f) ≤ ‖F‖, and comes near it
        problem = SIMULATED[name]()
        rng = np.random.default_rng(0)
        agents = np.repeat(np.arange(9), 40)
        X = rng.normal(size=(360, 4))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        K = problem.similarity.matrix(NETWORK)[np.ix_(agents, agents)] * problem.kernel(X, X)
        f = problem.expected(agents, X)
        eigenvalues, U = np.linalg.eigh(K)
        keep = eigenvalues > 1e-9 * eigenvalues[-1]
        norm = np.sqrt((((U[:, keep].T @ f) ** 2) / eigenvalues[keep]).sum())
        assert norm <= problem.norm * (1 + 1e-6)
        assert norm >= 0.9 * problem.norm


def test_the_kernel_problems_norm_is_the_one_that_was_asked_for():
    assert cb.problems.kernel(NETWORK, norm=2.5).norm == pytest.approx(2.5)
    assert cb.problems.fully_cooperative(NETWORK, norm=0.5).norm == pytest.approx(0.5)


def test_agents_of_one_cluster_share_a_task_and_others_do_not():
    problem = cb.problems.clustered_linear(NETWORK, ttl=2, dim=4)
    labels = NETWORK.centres(2).of
    X = np.random.default_rng(0).normal(size=(6, 4))
    f = np.array([problem.expected(np.full(6, v), X) for v in range(9)])
    for v in range(9):
        for w in range(9):
            assert np.array_equal(f[v], f[w]) == (labels[v] == labels[w])
    K_z = problem.similarity.matrix(NETWORK)
    np.testing.assert_array_equal(K_z, labels[:, None] == labels[None, :])


def test_the_papers_clusters_taken_literally_are_independent_sets():
    problem = cb.problems.clustered_linear(NETWORK, ttl=2, clusters="independent sets")
    same = problem.similarity.matrix(NETWORK) == 1
    assert not (same & NETWORK.power(2).adjacency).any()


def test_clusters_can_be_given():
    problem = cb.problems.clustered_linear(NETWORK, clusters=[0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert problem.norm == pytest.approx(np.sqrt(3))


def test_the_fully_cooperative_problem_offers_one_fixed_set_to_all():
    problem = cb.problems.fully_cooperative(NETWORK, contexts=[[0.0, 1.0], [1.0, 0.0], [0.6, 0.8]])
    one, two = problem.round(1, 0), problem.round(9, 5)
    np.testing.assert_array_equal(one.contexts, two.contexts)
    np.testing.assert_array_equal(one.contexts.reshape(9, 3, 2)[4], [[0, 1], [1, 0], [0.6, 0.8]])
    assert (one.expected.reshape(9, 3) == one.expected[:3]).all()


def test_noise_at_an_action_does_not_depend_on_the_policy():
    problem = cb.problems.clustered_linear(NETWORK, dim=4)
    learnt = cb.play(problem, cb.LinUCB(), rounds=10, seed=2)
    chance = cb.play(problem, cb.Uniform(), rounds=10, seed=2)
    agree = learnt.actions == chance.actions
    assert agree.any()
    assert not agree.all()
    np.testing.assert_array_equal(learnt.rewards[agree], chance.rewards[agree])


@pytest.mark.parametrize(
    ("noise", "std"),
    [
        (cb.problems.Gaussian(0.5), 0.5),
        (cb.problems.Uniform(0.5), 0.5 / np.sqrt(3)),
        (cb.problems.Bernoulli(), np.sqrt(0.3 * 0.7)),
    ],
    ids=repr,
)
def test_every_noise_has_its_mean_and_spread_and_is_sub_gaussian(rng, noise, std):
    n = 40_000
    rewards = noise.rewards(np.full(n, 0.3), rng)
    assert abs(rewards.mean() - 0.3) < 5 * std / np.sqrt(n)
    assert rewards.std() == pytest.approx(std, rel=0.03)
    # E exp(sε) ≤ exp(s²R²/2), R the noise's scale
    for s in (-2.0, -0.5, 0.5, 2.0):
        assert np.exp(s * (rewards - 0.3)).mean() <= np.exp((s * noise.scale) ** 2 / 2) * 1.02


def test_bernoulli_needs_probabilities():
    problem = cb.problems.clustered_linear(NETWORK, noise=cb.problems.Bernoulli())
    with pytest.raises(ParameterError, match=r"within \[0, 1\]"):
        cb.play(problem, cb.LinUCB(), rounds=3)


def test_a_users_functions_and_ragged_sets_are_played():
    network = cb.Network.path(3)

    def decision_sets(t, v, rng):
        return rng.uniform(size=(1 + (t + v) % 4, 2))

    problem = cb.problems.functions(
        network,
        [lambda X, v=v: np.abs(X[:, v % 2]) for v in range(3)],
        decision_sets,
        noise=cb.problems.Bernoulli(),
    )
    run = cb.play(problem, cb.KernelUCB(kernel=cb.kernels.RBF()), rounds=9, seed=4)
    assert set(np.unique(run.rewards)) <= {0.0, 1.0}
    offer = problem.round(5, 4)
    assert offer.sizes.tolist() == [2, 3, 4]
    np.testing.assert_array_equal(
        offer.expected[offer.agents == 1], offer.contexts[offer.agents == 1, 1]
    )
    np.testing.assert_array_equal(problem.round(5, 4).contexts, offer.contexts)


@pytest.mark.parametrize(
    ("functions", "sets", "complaint"),
    [
        ([np.sum], lambda t, v, rng: np.ones((2, 2)), "one function for each of 3 agents"),
        ([1, 2, 3], lambda t, v, rng: np.ones((2, 2)), "one function for each of 3 agents"),
        ([len] * 3, np.ones((2, 2)), "decision_sets must be a function"),
        ([lambda X: X] * 3, lambda t, v, rng: np.ones((2, 2)), r"returned shape \(2, 2\)"),
        (
            [lambda X: X[:, 0] * np.nan] * 3,
            lambda t, v, rng: np.ones((2, 2)),
            "rewards of agent 0's function must be finite",
        ),
        (
            [lambda X: X[:, 0]] * 3,
            lambda t, v, rng: np.ones((2, 1 + v)),
            "agent 1 is offered contexts of 2 numbers in round 1",
        ),
        (
            [lambda X: X[:, 0]] * 3,
            lambda t, v, rng: np.ones((0, 2)),
            "decision set of agent 0 in round 1",
        ),
    ],
    ids=range(7),
)
def test_functions_that_make_no_problem_are_refused(functions, sets, complaint):
    with pytest.raises(InputError, match=complaint):
        cb.play(cb.problems.functions(cb.Network.path(3), functions, sets), cb.LinUCB(), rounds=1)


def test_a_table_is_played_as_it_was_recorded(rng):
    network = cb.Network.path(3)
    contexts, rewards = rng.normal(size=(5, 3, 4, 2)), rng.normal(size=(5, 3, 4))
    expected = rng.normal(size=(5, 3, 4))
    for policy in (cb.LinUCB(), cb.NaiveCooperation()):
        plain = cb.play(cb.problems.table(network, contexts, rewards), policy, rounds=5)
        known = cb.play(cb.problems.table(network, contexts, rewards, expected), policy, rounds=5)
        np.testing.assert_array_equal(plain.actions, known.actions)
        for run, against in [(plain, rewards), (known, expected)]:
            for t in range(5):
                for v in range(3):
                    a = run.actions[t, v]
                    assert run.rewards[t, v] == rewards[t, v, a]
                    assert run.regret[t, v] == against[t, v].max() - against[t, v, a]


def test_a_table_says_what_it_is_in_one_line():
    assert repr(ragged(NETWORK)) == "Recorded(9 agents, 12 rounds, 1 … 5 actions of 3 numbers)"
    assert len(repr(cb.problems.kernel(NETWORK))) < 120


def test_a_ragged_table_equals_a_full_one_where_sizes_agree(rng):
    network = cb.Network.path(3)
    contexts, rewards = rng.normal(size=(5, 3, 4, 2)), rng.normal(size=(5, 3, 4))
    nested = cb.problems.table(network, contexts.tolist(), rewards.tolist())
    full = cb.problems.table(network, contexts, rewards)
    np.testing.assert_array_equal(
        cb.play(nested, cb.LinUCB(), rounds=5).actions,
        cb.play(full, cb.LinUCB(), rounds=5).actions,
    )


@pytest.mark.parametrize(
    ("contexts", "rewards", "error", "complaint"),
    [
        (np.ones((0, 2, 3, 2)), np.ones((0, 2, 3)), ShapeError, "no round"),
        (np.ones((4, 3, 3, 2)), np.ones((4, 3, 3)), ShapeError, r"contexts\[0\] holds 3 agents"),
        (np.ones((4, 2, 3, 2)), np.ones((5, 2, 3)), ShapeError, "rewards hold 5 rounds"),
        (np.ones((4, 2, 3, 2)), np.ones((4, 2, 2)), ShapeError, r"expected \(3,\)"),
        (np.ones((4, 2, 3, 2)), np.ones((4, 3, 3)), ShapeError, r"rewards\[0\] holds 3 agents"),
        (np.ones((4, 2, 0, 2)), np.ones((4, 2, 0)), ShapeError, "at least one action"),
        (np.full((4, 2, 3, 2), np.nan), np.ones((4, 2, 3)), NonFiniteError, r"contexts\[0\]\[0\]"),
        (np.ones((4, 2, 3, 2)), np.full((4, 2, 3), np.inf), NonFiniteError, r"rewards\[0\]\[0\]"),
        (np.ones(4), np.ones((4, 2, 3)), ShapeError, "no agents"),
        (
            [[np.ones((2, 2)), np.ones((2, 3))]],
            [[np.ones(2), np.ones(2)]],
            ShapeError,
            r"contexts\[0\]\[1\] has contexts of 3 numbers",
        ),
        (
            [[np.ones((2, 2))] * 2, [np.ones((2, 3))] * 2],
            [[np.ones(2)] * 2] * 2,
            ShapeError,
            "one dimension for all",
        ),
        (np.array(3.0), [[np.ones(2)] * 2], ShapeError, "contexts must be an array or nested"),
        ([[np.ones((2, 2))] * 2], np.array(None), ShapeError, "rewards must be an array or nested"),
        ([np.array(3.0)], [[np.ones(2)] * 2], ShapeError, r"contexts\[0\] holds no agents"),
        ([[np.ones((2, 2))] * 2], [np.array(1.0)], ShapeError, r"rewards\[0\] holds no agents"),
        ({0: [np.ones((2, 2))] * 2}, [[np.ones(2)] * 2], ShapeError, "contexts must be an array"),
    ],
    ids=range(16),
)
def test_a_table_that_makes_no_problem_is_refused(contexts, rewards, error, complaint):
    with pytest.raises(error, match=complaint):
        cb.problems.table(cb.Network.path(2), contexts, rewards)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: cb.problems.clustered_linear(NETWORK, dim=0), "dim must be a whole number >= 1"),
        (lambda: cb.problems.clustered_linear(NETWORK, actions=0), "actions must be"),
        (lambda: cb.problems.clustered_linear(NETWORK, noise=-1.0), "noise must be >= 0"),
        (lambda: cb.problems.clustered_linear(NETWORK, ttl=0), "ttl must be"),
        (lambda: cb.problems.clustered_linear(NETWORK, seed=-1), "seed must be"),
        (lambda: cb.problems.clustered_linear(NETWORK, clusters="x"), "clusters='x' is not known"),
        (lambda: cb.problems.clustered_linear(NETWORK, clusters=[0]), r"expected \(9,\)"),
        (lambda: cb.problems.kernel(NETWORK, norm=-1.0), "norm must be >= 0"),
        (lambda: cb.problems.kernel(NETWORK, compose="xor"), "compose='xor'"),
        (lambda: cb.problems.fully_cooperative(NETWORK, contexts=[]), "fixed decision set"),
    ],
    ids=range(10),
)
def test_settings_that_make_no_problem_are_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


def test_the_tests_own_ragged_worlds_are_ragged():
    sizes = {size for offer in ragged(NETWORK).rounds for size in offer.sizes.tolist()}
    assert sizes == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: cb.problems.clustered_linear(NETWORK, actions=2**31), "a round of 9 agents with"),
        (lambda: cb.problems.clustered_linear(NETWORK, dim=2**31), "take fewer actions, a smaller"),
        (lambda: cb.problems.kernel(NETWORK, actions=10**9), "would take 720 GB for 9,000,000,000"),
        (lambda: cb.problems.kernel(NETWORK, support=10**6), "a function of support=1000000 on 72"),
        (lambda: cb.problems.fully_cooperative(NETWORK, actions=10**9), "a round of 9 agents"),
        (lambda: cb.problems.fully_cooperative(NETWORK, support=10**9), "take a smaller support"),
        (lambda: cb.problems.arms(NETWORK, arms=10**9), "a round of 9 agents with 1000000000"),
        (lambda: cb.problems.arms(NETWORK, support=10**9), "a function of support=1000000000"),
        (lambda: cb.problems.continuum(NETWORK, BOX, support=10**9), "take a smaller support"),
    ],
    ids=range(9),
)
def test_a_problem_that_does_not_fit_into_memory_is_refused_before_it_is_drawn(make, complaint):
    with pytest.raises(ParameterError, match=complaint):
        make()


def test_functions_without_end_are_refused():
    for functions in (count(), range(10**12), (len for _ in count())):
        with pytest.raises(ParameterError, match="one function for each of 9 agents, got more"):
            cb.problems.functions(NETWORK, functions, lambda t, v, rng: np.ones((1, 1)))


@pytest.mark.parametrize("wrong", [None, 3, [1.0], np.array(["a"]), np.ma.ones(1), np.array(None)])
@pytest.mark.parametrize("name", ["agents", "contexts", "expected", "rewards"])
def test_a_round_is_made_of_arrays_of_numbers(name, wrong):
    sound = {
        "agents": np.zeros(1, dtype=np.int64),
        "contexts": np.ones((1, 2)),
        "expected": np.ones(1),
        "rewards": np.ones(1),
    }
    with pytest.raises(ShapeError, match=f"a round's {name} must be an array of .*numbers, got"):
        cb.problems.Round(**{**sound, name: wrong})
    with pytest.raises(ShapeError, match="a round's agents must go up from 0"):
        cb.problems.Round(**{**sound, "agents": np.array(0)})


@pytest.mark.parametrize("similarity", ["Same", cb.similarity.Same, 3, np.eye(9)], ids=repr)
def test_a_true_similarity_that_is_none_is_refused(similarity):
    network, functions = cb.Network.path(2), [lambda X: X[:, 0]] * 2
    made = {"similarity": similarity}
    for make in (
        lambda: cb.problems.table(network, np.ones((1, 2, 2, 2)), np.ones((1, 2, 2)), **made),
        lambda: cb.problems.functions(network, functions, lambda t, v, rng: np.eye(2), **made),
        lambda: cb.problems.continuum_functions(network, functions, BOX, best=[1, 1], **made),
    ):
        with pytest.raises(SimilarityError, match="is no K_z that is known; expected a value such"):
            make()
