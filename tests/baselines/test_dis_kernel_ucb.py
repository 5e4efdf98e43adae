"""DisKernelUCB: the literal algorithm's decisions and messages, and its two extremes."""

import math

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.baselines.dis_kernel_ucb import GivenPast
from coopbandits.engines import Simulation
from coopbandits.errors import InputError, ParameterError
from coopbandits.gp.posterior import Posterior
from coopbandits.protocol.messages import message_size
from lockstep_engines import KERNELS
from reference import formulas, servers
from reference.algorithms import fixed
from worlds import NETWORKS, WIDTHS, ragged, world_of

RBF = cb.kernels.RBF()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("name", "threshold", "seed"),
    [("path", 0.0, 0), ("path", 1.0, 1), ("two parts", 4.0, 0), ("directed", 4.0, 1),
     ("star", 12.0, 2)],
)  # fmt: skip
def test_all_agents_take_the_literal_algorithms_decisions(name, kernel, threshold, seed):
    network, (K_x, k_x) = NETWORKS[name], KERNELS[kernel]
    problem = ragged(network, seed)
    algorithm = cb.DisKernelUCB(kernel=K_x, ridge=0.7, eta=0.9, threshold=threshold)
    run = cb.play(problem, algorithm, rounds=12, seed=seed)
    expected, messages = servers.dis_kernel_ucb(
        world_of(problem, seed),
        len(network),
        k_x,
        ridge=0.7,
        width=lambda K, ridge: fixed(0.9)(K, ridge, 0),
        threshold=threshold,
        rounds=12,
        seed=seed,
    )
    np.testing.assert_array_equal(run.actions, expected)
    assert run.messages.tolist() == messages
    assert run.bytes.tolist() == [m * message_size(3) for m in messages]
    if threshold in (1.0, 4.0):
        assert 0 < np.count_nonzero(messages) < 12  # the trigger does decide


def test_the_self_normalised_width_is_for_all_agents_at_once():
    network, width = NETWORKS["path"], cb.width.SelfNormalised(norm=0.4, noise=0.3, delta=0.1)
    problem = ragged(network)
    run = cb.play(problem, cb.DisKernelUCB(kernel=RBF, width=width, threshold=2.0), rounds=12)
    expected, _ = servers.dis_kernel_ucb(
        world_of(problem, 0),
        7,
        formulas.rbf,
        ridge=1.0,
        width=lambda K, ridge: formulas.self_normalised(
            K, ridge, norm=0.4, noise=0.3, delta=0.1, agents=7
        ),
        threshold=2.0,
        rounds=12,
        seed=0,
    )
    np.testing.assert_array_equal(run.actions, expected)


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
def test_sharing_after_every_round_is_naive_cooperation_on_a_complete_graph(width):
    network = cb.Network.complete(6)
    problem = ragged(network)
    run = cb.play(problem, cb.DisKernelUCB(kernel=RBF, width=width, threshold=0.0), rounds=12)
    naive = cb.play(problem, cb.NaiveCooperation(kernel=RBF, width=width), rounds=12)
    np.testing.assert_array_equal(run.actions, naive.actions)
    if not isinstance(width, cb.width.SelfNormalised):  # there it holds for one agent that is all
        policy = cb.Centralised(kernel=RBF, width=width, lag=1)
        central = cb.play(problem, policy, rounds=12)
        np.testing.assert_array_equal(run.actions, central.actions)
    # up go 6, down 5 to each of 6
    assert run.messages.tolist() == [6 + 6 * 5] * 12
    assert run.listens.all()
    np.testing.assert_array_equal(run.similarity(12), np.ones((6, 6)))


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
def test_never_sharing_is_kernel_ucb_alone(width):
    problem = ragged(NETWORKS["grid"])
    policy = cb.DisKernelUCB(kernel=RBF, width=width, threshold=math.inf)
    run = cb.play(problem, policy, rounds=12)
    alone = cb.play(problem, cb.KernelUCB(kernel=RBF, width=width), rounds=12)
    np.testing.assert_array_equal(run.actions, alone.actions)
    assert run.messages.sum() == 0
    np.testing.assert_array_equal(run.listens, np.eye(9, dtype=bool))
    np.testing.assert_array_equal(run.similarity(12), np.eye(9))


def test_an_agents_news_beside_a_common_past_is_one_posterior_of_both(rng):
    X, y, asked = rng.normal(size=(20, 2)), rng.normal(size=20), rng.normal(size=(6, 2))
    zeros = np.zeros(20, dtype=np.int64)
    given = GivenPast(RBF, 2)
    whole, past, own = (Posterior(given, 0.3) for _ in range(3))
    whole.extend(zeros, X, y)
    past.extend(zeros[:14], X[:14], y[:14])
    news, queries = past.project(zeros[:6], X[14:]), past.project(zeros[:6], asked)
    residuals = y[14:] - past.believe(news).mean
    own.extend(zeros[:6], np.hstack([news.X, news.Z.T]), residuals)
    found = own.predict(zeros[:6], np.hstack([asked, queries.Z.T]))
    expected = whole.predict(zeros[:6], asked)
    np.testing.assert_allclose(past.believe(queries).mean + found.mean, expected.mean, atol=1e-12)
    np.testing.assert_allclose(found.std, expected.std, atol=1e-12)
    np.testing.assert_allclose(past.logdet + own.logdet, whole.logdet, atol=1e-12)


def test_the_threshold_is_the_papers_unless_given():
    sizes = {"agents": 20, "rounds": 100, "dim": 3}
    # log det(I + K/λ) of N contexts of norm 1 under the linear kernel is at most d·ln(1 + N/(dλ))
    linear = 0.5 * 3 * math.log(1 + 2000 / 3 / 0.5)
    algorithm = cb.DisKernelUCB(kernel=RBF, ridge=0.5)
    assert algorithm.trigger(**sizes) == pytest.approx(100 / (20 * linear))
    assert cb.DisKernelUCB(kernel=RBF, gain=25.0).trigger(**sizes) == 100 / (20 * 25)
    assert cb.DisKernelUCB(kernel=RBF, threshold=3).trigger(**sizes) == 3.0


def test_sharing_one_function_beats_learning_it_alone():
    problem = cb.problems.fully_cooperative(cb.Network.complete(8), kernel=RBF, noise=0.3)
    finals = []
    for threshold in (0.0, 3.0, math.inf):
        algorithm = cb.DisKernelUCB(kernel=RBF, eta=0.5, threshold=threshold)
        runs = [cb.play(problem, algorithm, rounds=20, seed=s) for s in range(2)]
        finals.append(np.mean([run.regret_per_agent[-1] for run in runs]))
    assert finals[0] < 0.8 * finals[2]
    assert finals[1] < 0.9 * finals[2]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"kernel": cb.kernels.RBF}, "is no kernel"),
        ({"threshold": -1}, "threshold must be >= 0, got -1"),
        ({"threshold": math.nan}, "threshold must be finite"),
        ({"threshold": np.array([1.0, math.inf])}, "threshold must be a number"),
        ({"threshold": "often"}, "threshold must be a number"),
        ({"gain": 0}, "gain must be above 0"),
        ({"gain": 2.0, "threshold": 1.0}, "threshold=1.0 and gain=2.0 are both given"),
        ({"eta": 1.0, "width": cb.width.Fixed(1.0)}, "give one of them"),
        ({"width": "wide"}, "width='wide' is no width"),
        ({"ridge": -1}, "ridge must be above 0"),
        ({"name": None}, "name must be a text"),
    ],
    ids=range(11),
)
def test_bad_settings_are_refused(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        cb.DisKernelUCB(**{"kernel": RBF, **arguments})


def test_a_run_that_does_not_fit_into_memory_is_refused_before_it_starts():
    problem = cb.problems.kernel(cb.Network.path(100))
    with pytest.raises(
        ParameterError, match=r"500 rounds of DisKernelUCB with 100 agents.*10.0 GB"
    ):
        cb.play(problem, cb.DisKernelUCB(kernel=RBF), rounds=500)
    with pytest.raises(ParameterError, match="above memory_limit=1e\\+03 bytes"):
        cb.play(problem, cb.DisKernelUCB(kernel=RBF), rounds=10, memory_limit=1000)
    alone = cb.DisKernelUCB(kernel=RBF, threshold=math.inf)  # no factor of all observations there
    contexts = problem.round(1, 0).contexts
    simulation = Simulation(network=problem.network, contexts=contexts, rounds=500, seed=0)
    assert alone.player(simulation).name == "server"
