"""Problems that change: equal to the unchanging one before, different after, norms kept."""

import pickle

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import CoopBanditsError
from coopbandits.lab.experiments.experiment import experiment_of
from coopbandits.lab.experiments.kinds import Mistake, World, make_problem
from coopbandits.lab.experiments.runner import check
from coopbandits.problems.changing import KINDS
from lab_small import small
from worlds import NETWORKS

NETWORK = NETWORKS["grid"]
LABELS = [0, 0, 0, 1, 1, 1, 2, 2, 2]
AT = 6


def made(kind, **changes):
    settings = {"dim": 4, "actions": 5, "at": AT, "clusters": LABELS, "seed": 3, **changes}
    return cb.problems.changing(NETWORK, kind=kind, **settings)


def unchanging(**changes):
    settings = {"dim": 4, "actions": 5, "clusters": LABELS, "seed": 3, **changes}
    return cb.problems.clustered_linear(NETWORK, **settings)


def tasks_of(problem, t):
    """(V, d) θ of every agent in round t, read off what the axes bring."""
    axes = np.eye(4)
    expected = problem.at(t).expected
    return np.array([expected(np.full(4, v), axes) for v in range(len(NETWORK))])


def same_round(one, two):
    return all(
        np.array_equal(getattr(one, name), getattr(two, name))
        for name in ("agents", "contexts", "expected", "rewards")
    )


@pytest.mark.parametrize("kind", KINDS)
class TestEveryChange:
    def test_is_the_unchanging_problem_before_it_and_another_from_it_on(self, kind):
        changing, still = made(kind), unchanging()
        assert isinstance(changing, cb.problems.Problem)
        for t in (1, 3, AT - 1):
            assert same_round(changing.round(t, 7), still.round(t, 7))
        for t in (AT, AT + 1, 40):
            one, two = changing.round(t, 7), still.round(t, 7)
            np.testing.assert_array_equal(one.contexts, two.contexts)
            assert (one.expected != two.expected).any()

    def test_leaves_the_noise_as_it_was(self, kind):
        one, two = made(kind).round(AT + 2, 7), unchanging().round(AT + 2, 7)
        np.testing.assert_allclose(
            one.rewards - one.expected, two.rewards - two.expected, atol=1e-14
        )

    def test_is_the_same_for_the_same_seed_whatever_was_drawn_before(self, kind):
        changing = made(kind)
        late = changing.round(20, 2)
        changing.round(1, 2)
        for again in (changing, made(kind), pickle.loads(pickle.dumps(changing))):
            assert same_round(again.round(20, 2), late)
        assert not same_round(made(kind, seed=4).round(20, 2), late)
        assert not same_round(changing.round(20, 3), late)

    def test_keeps_the_norm_of_every_task(self, kind):
        for t in (1, AT, AT + 5, 300):
            norms = np.linalg.norm(tasks_of(made(kind), t), axis=1)
            np.testing.assert_allclose(norms, 1.0, rtol=1e-12)
        assert made(kind).norm == pytest.approx(np.sqrt(3))

    def test_regret_is_against_the_best_action_of_its_own_round(self, kind):
        changing = made(kind)
        run = cb.play(changing, cb.Uniform(), rounds=12, seed=1)
        for t in range(1, 13):
            offered = changing.round(t, 1)
            for v, action in enumerate(run.actions[t - 1]):
                own = offered.expected[offered.agents == v]
                assert run.regret[t - 1, v] == own.max() - own[action]

    def test_knows_its_truth(self, kind):
        changing = made(kind)
        assert changing.kernel == cb.kernels.Linear()
        assert changing.noise.scale == 0.1
        assert kind in repr(changing)
        theta = tasks_of(changing, 40)
        alike = (theta[:, None] == theta[None]).all(axis=2)
        K_z = changing.at(40).similarity.matrix(NETWORK)
        np.testing.assert_array_equal(K_z, alike)
        if kind == "regroup":
            assert changing.similarity is None
        else:
            np.testing.assert_array_equal(changing.similarity.matrix(NETWORK), K_z)

    def test_an_experiment_can_make_it(self, kind):
        table = {"kind": "changing", "change": kind, "at": AT, "clusters": LABELS}
        problem = make_problem(table, ("problems", "p"), World(network=NETWORK, seed=3))
        one = cb.problems.changing(NETWORK, kind=kind, at=AT, clusters=LABELS, seed=3)
        assert same_round(problem.round(9, 0), one.round(9, 0))
        tables = small(problems={"p": {"kind": "changing", "change": kind, "at": 2}})
        tables["networks"] = {"path": {"kind": "path", "agents": 4}}
        tables["policies"] = {"alone": {"kind": "LinUCB"}}
        check(experiment_of(tables))


def test_a_jump_draws_every_task_anew_and_a_second_one_again():
    changing = made("jump", at=[AT, 12])
    first, second, third = (tasks_of(changing, t) for t in (1, AT, 12))
    np.testing.assert_array_equal(tasks_of(changing, 11), second)
    np.testing.assert_array_equal(tasks_of(changing, 500), third)
    for one, two in ((first, second), (second, third), (first, third)):
        assert (one != two).any(axis=1).all()
    # a jump does not depend on what comes after it
    np.testing.assert_array_equal(tasks_of(made("jump"), AT), second)


def test_jumps_of_many_tasks_are_uniform_on_the_sphere():
    network = cb.Network.from_edges([], agents=400)
    changing = cb.problems.changing(network, kind="jump", at=2, dim=4)
    before, after = changing.at(1).expected.theta, changing.at(2).expected.theta  # type: ignore[attr-defined]
    # ⟨θ, θ'⟩ of independent uniform directions has mean 0 and variance 1/d
    products = np.einsum("cd,cd->c", before, after)
    assert abs(products.mean()) < 4 / np.sqrt(4 * 400)
    assert products.var() == pytest.approx(1 / 4, abs=0.06)


def test_a_drift_turns_every_task_by_its_rate_along_a_great_circle():
    rate = 0.05
    changing = made("drift", rate=rate)
    start = tasks_of(changing, 1)
    for turns, t in enumerate((AT - 1, AT, AT + 1, AT + 2)):
        cosines = np.einsum("vd,vd->v", tasks_of(changing, t), start)
        np.testing.assert_allclose(cosines, np.cos(turns * rate), rtol=1e-12)
    # it stays within one plane: three rounds far apart have rank 2
    for v in range(9):
        points = np.array([tasks_of(changing, t)[v] for t in (1, 20, 40, 60)])
        assert np.linalg.matrix_rank(points, tol=1e-9) == 2


def test_a_drift_begins_in_the_second_round_unless_told():
    changing = made("drift", at=None)
    assert same_round(changing.round(1, 0), unchanging().round(1, 0))
    assert not same_round(changing.round(2, 0), unchanging().round(2, 0))
    cosines = np.einsum("vd,vd->v", tasks_of(changing, 2), tasks_of(changing, 1))
    np.testing.assert_allclose(cosines, np.cos(0.01), rtol=1e-12)


def test_groups_that_form_anew_keep_their_sizes_and_tasks():
    changing = made("regroup", at=list(range(2, 30)))
    for t in range(2, 30):
        before, after = (changing.at(s).similarity.labels for s in (t - 1, t))
        assert (before != after).any()
        np.testing.assert_array_equal(np.sort(before), np.sort(after))
        tasks = {tuple(row) for row in tasks_of(changing, t)}
        assert tasks == {tuple(row) for row in tasks_of(changing, 1)}


def test_two_agents_with_two_tasks_change_places():
    network = cb.Network.path(2)
    changing = cb.problems.changing(network, kind="regroup", at=[2, 3], clusters=[0, 1])
    labels = [changing.at(t).similarity.labels.tolist() for t in (1, 2, 3)]
    assert labels == [[0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "leap"}, r"kind='leap' is not known; expected 'jump', 'drift' or 'regroup'"),
        ({"kind": "jump", "at": None}, r"kind='jump' needs at=, the first round"),
        ({"kind": "regroup", "at": None}, r"kind='regroup' needs at="),
        ({"kind": "jump", "at": 1}, r"at must be a whole number >= 2, got 1"),
        ({"kind": "drift", "at": 1}, r"at must be a whole number >= 2, got 1"),
        ({"kind": "jump", "at": 2.5}, r"at must be a whole number >= 2, got 2.5"),
        ({"kind": "jump", "at": []}, r"at=\[\]; expected a round, or several"),
        ({"kind": "jump", "at": [5, 5]}, r"at=\[5, 5\]; expected a round, or several in incr"),
        ({"kind": "jump", "at": "half"}, r"at must be a whole number"),
        ({"kind": "drift", "at": [5, 9]}, r"expected one round, from which on tasks drift"),
        ({"kind": "drift", "rate": 0.0}, r"rate must be above 0"),
        ({"kind": "drift", "dim": 1}, r"dim=1 leaves a drift no direction"),
        ({"kind": "jump", "rate": 0.1}, r"rate=0.1 is of a drift; leave it out of a jump"),
        ({"kind": "regroup", "clusters": [0] * 9}, r"all 9 agents have one task"),
        ({"kind": "jump", "clusters": [0]}, r"expected \(9,\), one for each agent"),
        ({"kind": "jump", "seed": -1}, r"seed must be"),
        ({"kind": "jump", "noise": -1.0}, r"noise must be >= 0"),
    ],
)
def test_what_cannot_change_is_refused(change, message):
    with pytest.raises(CoopBanditsError, match=message):
        made(**change)


def test_a_round_is_a_whole_number_from_1_on():
    with pytest.raises(CoopBanditsError, match="t must be a whole number >= 1, got 0"):
        made("jump").at(0)


def test_an_experiment_says_change_for_the_kind_of_change():
    table = {"kind": "changing", "at": 5}
    with pytest.raises(Mistake, match="changing needs change = …"):
        make_problem(table, ("problems", "p"), World(network=NETWORK))
