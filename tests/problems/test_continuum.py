import pickle
from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines import Algorithm
from coopbandits.errors import InputError, ParameterError, ShapeError
from coopbandits.lab import parallel_env
from coopbandits.lab.experiments.experiment import experiment_of
from coopbandits.lab.experiments.trial import run_task
from coopbandits.problems import Continuum
from coopbandits.run import POINT
from lab_small import small

NETWORK = cb.Network.path(3)
BOX = cb.Box([0.0, 0.0], [1.0, 1.0], effort=0.25)  # quick
RBF = cb.kernels.RBF(0.3)
V = len(NETWORK)


def problem_of(**changes):
    given = {"decision_set": BOX, "kernel": RBF, "support": 20, **changes}
    return cb.problems.continuum(NETWORK, **given)


PROBLEM = problem_of()
POLICIES = {
    "coop": cb.CoopKernelUCB(kernel=RBF, similarity=PROBLEM.similarity, ridge=0.1, eta=0.1),
    "eager": cb.EagerKernelUCB(kernel=RBF, similarity=PROBLEM.similarity, ridge=0.1, eta=0.1),
    "features": replace(
        cb.KernelUCB(kernel=RBF, ridge=0.1, eta=0.1), features=cb.features.Fourier(32)
    ),
    "dist": cb.DistKernelUCB(kernel=RBF, ridge=0.1, eta=0.1),
    "centralised": cb.Centralised(kernel=RBF, similarity=PROBLEM.similarity),
    "linear": cb.LinUCB(),
    "learnt": cb.EagerKernelUCB(kernel=cb.kernels.Linear()),
    "uniform": cb.Uniform(),
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_play_a_box_and_the_same_seed_gives_the_same_run(name):
    policy = POLICIES[name]
    one, two = (cb.play(PROBLEM, policy, rounds=4, seed=4) for _ in range(2))
    assert one.engine == "messages"
    assert one.contexts.shape == (4, V, 2)
    assert (one.actions == POINT).all()
    assert not one.away.any()
    assert one.contexts.tobytes() == two.contexts.tobytes()
    assert one.rewards.tobytes() == two.rewards.tobytes()
    assert BOX.contains(one.contexts.reshape(-1, 2)).all()
    assert (one.regret >= 0).all()
    # regret is against the best of each agent's own function
    for v in range(V):
        f = PROBLEM.expected(np.full(4, v), one.contexts[:, v])
        best = PROBLEM.optimum(v, BOX)
        np.testing.assert_allclose(one.regret[:, v], best.upper - f, atol=1e-12)
    assert (cb.play(PROBLEM, policy, rounds=1, seed=5).contexts != one.contexts[:1]).any()
    # what a user may not change
    assert not one.contexts.flags.writeable


def test_agents_learn_on_a_continuum():
    problem = problem_of(noise=0.05)
    learnt = cb.play(problem, POLICIES["eager"], rounds=12).regret
    chance = cb.play(problem, POLICIES["uniform"], rounds=12).regret
    assert learnt[6:].mean() < 0.3 * chance[6:].mean()


def test_followers_pull_what_their_centre_pulled_before():
    network = cb.Network.complete(3)
    problem = cb.problems.continuum(
        network, BOX, kernel=RBF, similarity=cb.similarity.Same(), noise=0.0
    )
    run = cb.play(problem, POLICIES["dist"], rounds=6)
    [centre] = network.centres(1).indices
    for v in set(range(3)) - {int(centre)}:
        np.testing.assert_array_equal(run.contexts[1:, v], run.contexts[:-1, centre])


def test_noise_is_shared_by_policies_whatever_they_pull():
    one, two = (cb.play(PROBLEM, POLICIES[name], rounds=4, seed=1) for name in ("eager", "uniform"))
    agents = np.tile(np.arange(V), 4)
    noise = [
        run.rewards.ravel() - PROBLEM.expected(agents, run.contexts.reshape(-1, 2))
        for run in (one, two)
    ]
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-12)
    assert np.std(noise[0]) > 0.02


def test_a_polytope_for_each_agent():
    sets = [BOX, cb.Polytope([[1.0, 1.0]], [1.0], [0.0, 0.0]), cb.Box([0.5, 0.5], [0.6, 0.6])]
    problem = problem_of(decision_set=sets)
    run = cb.play(problem, POLICIES["eager"], rounds=4)
    for v, own in enumerate(sets):
        assert own.contains(run.contexts[:, v]).all()
        X = own.sample(np.random.default_rng(0), 3000)
        best = problem.optimum(v, own)
        assert problem.expected(np.full(len(X), v), X).max() <= best.upper
        assert best.gap <= 1e-6


def pinned(t, v, rng):
    context = rng.random()
    return cb.Box([context, 0.0], [context, 1.0])


def test_sets_that_are_drawn_anew_hold_the_context_of_a_round():
    problem = problem_of(decision_set=pinned)
    run = cb.play(problem, POLICIES["eager"], rounds=4, seed=2)
    assert (run.regret >= 0).all()
    for t in range(1, 5):
        offer = problem.offer(t, 2)
        np.testing.assert_array_equal(run.contexts[t - 1, :, 0], [own.low[0] for own in offer.sets])
        assert offer.sets == problem.offer(t, 2).sets
        assert offer.sets != problem.offer(t, 3).sets


def test_every_composition_and_a_zero_norm_have_a_certified_best():
    for compose in ("hadamard", "sum"):
        problem = problem_of(compose=compose)
        X = BOX.sample(np.random.default_rng(1), 4000)
        for v, best in enumerate(problem.offer(1, 0).best):
            highest = problem.expected(np.full(len(X), v), X).max()
            assert highest <= best
            assert best - highest < 1e-2
    assert (cb.play(problem_of(norm=0.0), POLICIES["uniform"], rounds=2).regret == 0).all()


def test_agents_of_one_cluster_share_one_certificate():
    problem = problem_of(
        kernel=cb.kernels.Linear(), similarity=cb.similarity.Clusters([0, 1, 0]), noise=0.0
    )
    assert problem.optimum(0, BOX) is problem.optimum(2, BOX)
    assert problem.optimum(0, BOX) is not problem.optimum(1, BOX)
    assert problem.norm == pytest.approx(1.0)


def test_a_problem_can_be_sent_to_another_process():
    back = pickle.loads(pickle.dumps(PROBLEM))
    one, two = (cb.play(p, POLICIES["eager"], rounds=3) for p in (PROBLEM, back))
    assert one.contexts.tobytes() == two.contexts.tobytes()
    assert repr(PROBLEM) == "Continuum(continuum, 3 agents, Gaussian(scale=0.1))"
    assert PROBLEM.horizon is None


def peak(X):
    return 1 - np.abs(X - 0.3).sum(axis=1)


def slope(X):
    return X[:, 0] - 0.5 * X[:, 1]


def saddle(X):
    return X[:, 0] * X[:, 1]


def test_functions_of_ones_own_are_certified_by_their_slope_or_told():
    own = [peak, slope, saddle]
    certified = cb.problems.continuum_functions(NETWORK, own, BOX, lipschitz=1.5, tolerance=4e-3)
    told = cb.problems.continuum_functions(NETWORK, own, BOX, best=[1.0] * 3, noise=0.0)
    best = certified.offer(1, 0).best
    assert (best >= 1.0).all()
    assert (best <= 1.0 + 1.5 * 4e-3).all()
    np.testing.assert_array_equal(told.offer(1, 0).best, [1.0] * 3)
    run = cb.play(told, cb.KernelUCB(kernel=RBF, ridge=0.1, eta=0.1), rounds=10)
    assert run.regret[-1].max() < 0.2
    on_edge = cb.Polytope([[1.0, 1.0]], [1.0], [0.0, 0.0], effort=0.25)
    problem = cb.problems.continuum_functions(NETWORK, own, on_edge, lipschitz=1.5, tolerance=4e-3)
    np.testing.assert_allclose(problem.offer(1, 0).best, [1.0, 1.0, 0.25], atol=7e-3)


class Naive:
    """An algorithm that is no row of four answers."""

    name = "naive"

    def named(self, name):
        return self

    def player(self, simulation):
        raise AssertionError


def test_other_engines_and_algorithms_refuse_a_continuum():
    for engine in ("exact", "statistics", "sparse"):
        with pytest.raises(ParameterError, match="plays finite decision sets only; take engine="):
            cb.play(PROBLEM, cb.LinUCB(), rounds=2, engine=engine)
    assert isinstance(Naive(), Algorithm)
    with pytest.raises(ParameterError, match="naive plays finite decision sets only"):
        cb.play(PROBLEM, Naive(), rounds=2)
    with pytest.raises(ParameterError, match="is no problem of finite decision sets"):
        parallel_env(PROBLEM, rounds=2)
    assert cb.play(PROBLEM, cb.LinUCB(), rounds=2, engine="messages").engine == "messages"


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: problem_of(decision_set=[[0, 1]]), ParameterError, "is no continuum"),
        (lambda: problem_of(decision_set=[BOX]), ShapeError, "got 1 decision sets; expected 3"),
        (
            lambda: problem_of(decision_set=[BOX, BOX, cb.Box([0], [1])]),
            ShapeError,
            "expected one dimension",
        ),
        (lambda: problem_of(tolerance=0), ParameterError, "tolerance must be above 0"),
        (lambda: problem_of(kernel="RBF"), ParameterError, "is no kernel"),
        (
            lambda: cb.problems.continuum_functions(NETWORK, [peak] * 3, BOX),
            ParameterError,
            "give either best=",
        ),
        (
            lambda: cb.problems.continuum_functions(NETWORK, [peak] * 3, BOX, best=[1.0]),
            ShapeError,
            r"best has shape \(1,\)",
        ),
        (
            lambda: cb.problems.continuum_functions(NETWORK, [peak], BOX, best=[1.0]),
            ParameterError,
            "one function for each",
        ),
        (
            lambda: cb.problems.continuum_functions(NETWORK, np.array(3.0), BOX, lipschitz=1.0),
            ParameterError,
            "one function for each",
        ),
        (lambda: problem_of(decision_set=cb.Box), ParameterError, "is no continuum"),
    ],
)
def test_bad_problems_are_refused(make, error, match):
    with pytest.raises(error, match=match) as caught:
        make()
    assert isinstance(caught.value, InputError)


def unit_box(dim):
    return cb.Box([0.0] * dim, [1.0] * dim, effort=0.1)


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda t, v, rng: unit_box(v + 1), "of agent 1 in round 1 has 2 numbers; expected 1"),
        (lambda t, v, rng: unit_box(t), "of agent 0 in round 2 has 2 numbers; expected 1"),
    ],
    ids=["agents", "rounds"],
)
def test_sets_that_are_drawn_have_one_dimension(draw, match):
    with pytest.raises(ShapeError, match=match):
        cb.play(problem_of(decision_set=draw, support=3), cb.Uniform(), rounds=2)


def test_functions_drawn_sets_of_two_dimensions_are_refused():
    problem = cb.problems.continuum_functions(
        NETWORK, [peak] * 3, lambda t, v, rng: unit_box(v + 1), best=[9.0] * 3
    )
    with pytest.raises(ShapeError, match="of agent 1 in round 1 has 2 numbers; expected 1"):
        cb.play(problem, cb.Uniform(), rounds=1)


def test_a_highest_value_that_is_none_is_told():
    low = cb.problems.continuum_functions(NETWORK, [peak] * 3, BOX, best=[9.0, -9.0, 9.0])
    with pytest.raises(ParameterError, match=r"agent 1's function is .* above its highest value"):
        cb.play(low, cb.Uniform(), rounds=1)
    # one that is rounded is taken as it is
    flat = [lambda X: np.full(len(X), 1 / 3)] * 3
    rounded = cb.problems.continuum_functions(NETWORK, flat, BOX, best=[0.3333333] * 3)
    assert np.abs(cb.play(rounded, cb.Uniform(), rounds=1).regret).max() < 1e-7


def test_an_experiment_can_name_a_continuum():
    box = {"kind": "Box", "low": [0.0, 0.0], "high": [1.0, 1.0]}
    problems = {"smooth": {"kind": "continuum", "decision_set": box, "kernel": "RBF"}}
    policies = {
        "eager": {"kind": "EagerKernelUCB", "kernel": "truth", "similarity": "truth"},
    }
    experiment = experiment_of(small(problems=problems, policies=policies, rounds=3))
    made = experiment.problem("smooth", cb.Network.path(4), 0)
    assert isinstance(made, Continuum)
    assert made.sets[0] == cb.Box([0.0, 0.0], [1.0, 1.0])
    record = run_task(experiment, experiment.tasks[0])
    assert record.engine == "messages"
    assert record.regret.shape == (3,)
