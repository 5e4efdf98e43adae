"""SupKernelUCB: the literal algorithm's decisions, and the structure that its bounds rest on."""

import math

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines import Simulation
from coopbandits.errors import InputError
from lockstep_engines import KERNELS
from reference import formulas, levels
from worlds import NETWORKS, ragged, world_of

RBF = cb.kernels.RBF()


def repeating(network, seed=0, rounds=40, actions=5, rewards=None):
    """The same few actions in every round, so that an agent becomes sure of them."""
    rng = np.random.default_rng([seed, 8])
    V = len(network)
    contexts = np.repeat(rng.normal(size=(1, V, actions, 2)), rounds, axis=0)
    drawn = np.sin(contexts.sum(axis=3)) + 0.1 * rng.normal(size=(rounds, V, actions))
    return cb.problems.table(network, contexts, drawn if rewards is None else rewards)


def played(problem, algorithm, rounds, seed=0):
    """Return the actions (T, V) and the index sets."""
    contexts = problem.round(1, seed).contexts
    player = algorithm.player(
        Simulation(network=problem.network, contexts=contexts, rounds=rounds, seed=seed)
    )
    actions = []
    for t in range(1, rounds + 1):
        offer = problem.round(t, seed)
        actions.append(player.play(t, offer) - offer.starts)
    return np.array(actions), player.index_sets


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make", [ragged, repeating])
@pytest.mark.parametrize(
    ("name", "settings", "seed"),
    [("path", {}, 0), ("two parts", {"eta": 0.6}, 1), ("directed", {"eta": 0.25}, 0)],
)
def test_all_agents_take_the_literal_algorithms_decisions(name, make, kernel, settings, seed):
    network, (K_x, k_x), T = NETWORKS[name], KERNELS[kernel], 20
    algorithm = cb.SupKernelUCB(kernel=K_x, ridge=0.7, **settings)
    problem = make(network, seed, rounds=T)
    actions, index_sets = played(problem, algorithm, T, seed)
    for v in range(len(network)):
        expected, sets, _ = levels.sup_kernel_ucb(
            world_of(problem, seed),
            v,
            k_x,
            ridge=0.7,
            width=lambda K: algorithm.width(K, T),
            rounds=T,
            seed=seed,
        )
        np.testing.assert_array_equal(actions[:, v], expected)
        assert index_sets[v] == [sets[s] for s in range(1, len(index_sets[v]) + 1)]


def test_the_worlds_of_the_lockstep_reach_every_case():
    # two levels learn, actions are dropped on the way up, and in some rounds nobody learns
    problem, T = repeating(NETWORKS["directed"], rounds=20), 20
    learning, dropped, idle = set(), False, 0
    for eta in (0.6, 0.25):
        for v in range(6):
            _, sets, paths = levels.sup_kernel_ucb(
                world_of(problem, 0),
                v,
                formulas.rbf,
                ridge=0.7,
                width=lambda K, eta=eta: eta / math.sqrt(0.7),
                rounds=T,
                seed=0,
            )
            learning |= {s for s, rounds in sets.items() if rounds}
            dropped |= any(len(path[-1]) < len(path[0]) for path in paths)
            idle += T - sum(map(len, sets.values()))
    assert {1, 2} <= learning
    assert dropped
    assert idle > 0


def test_a_run_is_the_players_and_sends_nothing():
    problem = repeating(NETWORKS["grid"], rounds=20)
    algorithm = cb.SupKernelUCB(kernel=RBF, eta=0.5)
    run = cb.play(problem, algorithm, rounds=20, seed=3)
    np.testing.assert_array_equal(run.actions, played(problem, algorithm, 20, seed=3)[0])
    assert run.messages.sum() == run.bytes.sum() == 0
    np.testing.assert_array_equal(run.listens, np.eye(9, dtype=bool))
    np.testing.assert_array_equal(run.similarity(20), np.eye(9))


@pytest.mark.parametrize("level", [1, 2])
def test_what_a_level_learns_from_does_not_depend_on_its_own_rewards(level):
    network, T = NETWORKS["two parts"], 80
    algorithm = cb.SupKernelUCB(kernel=RBF, eta=0.6)
    rng = np.random.default_rng(5)
    problem = repeating(network, rounds=T)
    offers = [problem.round(t, 0) for t in range(1, T + 1)]
    actions, sets = played(problem, algorithm, T)
    lower = [{t for s in mine[: level - 1] for t in s} for mine in sets]
    contexts, rewards = [], []
    for t, offer in enumerate(offers, start=1):
        own = [np.flatnonzero(offer.agents == v) for v in range(len(network))]
        contexts.append([offer.contexts[rows] for rows in own])
        # all rewards that no lower level has learnt are others
        rewards.append(
            [
                offer.rewards[rows] if t in lower[v] else rng.normal(size=len(rows))
                for v, rows in enumerate(own)
            ]
        )
    others = cb.problems.table(network, contexts, rewards)
    changed, changed_sets = played(others, algorithm, T)
    assert any(mine[level - 1] for mine in sets)
    assert (changed != actions).any()  # rewards do count, elsewhere
    for v in range(len(network)):
        assert changed_sets[v][:level] == sets[v][:level]
        rounds = np.array([t for s in sets[v][:level] for t in s], dtype=int) - 1
        np.testing.assert_array_equal(changed[rounds, v], actions[rounds, v])


@pytest.mark.parametrize("T", [1, 2, 3, 7, 40, 100])
@pytest.mark.parametrize("eta", [0.01, 0.3, 3.0])
def test_index_sets_are_disjoint_and_no_agent_climbs_above_its_levels(T, eta):
    problem = repeating(cb.Network.path(3), rounds=T)
    _, sets = played(problem, cb.SupKernelUCB(kernel=RBF, eta=eta), T)
    for mine in sets:
        assert len(mine) <= max(1, math.ceil(math.log(T)))
        assert len(mine) <= max(1, math.ceil(math.log2(T) / 2))
        learnt = [t for rounds in mine for t in rounds]
        assert len(set(learnt)) == len(learnt)
        assert set(learnt) <= set(range(1, T + 1))


def test_an_agent_that_is_never_sure_takes_what_it_knows_least_of_as_kernel_ucb_without_rewards():
    network, T = NETWORKS["grid"], 12
    problem = ragged(network, rounds=T)
    actions, sets = played(problem, cb.SupKernelUCB(kernel=RBF, eta=1e6), T)
    offers = [problem.round(t, 0) for t in range(1, T + 1)]
    contexts = [[o.contexts[o.agents == v] for v in range(9)] for o in offers]
    nothing = [[np.zeros(len(X)) for X in row] for row in contexts]
    without = cb.problems.table(network, contexts, nothing)
    alone = cb.play(without, cb.KernelUCB(kernel=RBF, eta=1.0), rounds=T)
    np.testing.assert_array_equal(actions, alone.actions)
    assert all(mine == [list(range(1, T + 1))] for mine in sets)


def test_an_agent_that_is_always_sure_learns_nothing_and_chooses_at_random():
    problem = cb.problems.kernel(cb.Network.path(2), actions=3)
    actions, sets = played(problem, cb.SupKernelUCB(kernel=RBF, eta=0.0), 60)
    assert sets == [[[]], [[]]]
    assert set(actions[:, 0]) == {0, 1, 2}


def test_the_width_is_the_papers_and_holds_for_a_fixed_design():
    algorithm = cb.SupKernelUCB(kernel=RBF, ridge=0.3, norm=0.8, noise=0.5, delta=0.1)
    spread = math.sqrt(2 * math.log(2 * 500 * 8 / 0.1))
    assert algorithm.width(8, 500) == pytest.approx(0.8 + 0.5 / math.sqrt(0.3) * spread)
    assert cb.SupKernelUCB(kernel=RBF, ridge=4.0, eta=3.0).width(8, 500) == 1.5
    rng = np.random.default_rng(2)
    X, x = rng.normal(size=(12, 1)), np.array([[0.3]])
    # the function of norm B that is hardest at x: all of its mass is what the data leave open
    K, kappa = formulas.gram(formulas.rbf, X, X), formulas.gram(formulas.rbf, X, x)[:, 0]
    solved = np.linalg.solve(K + 0.3 * np.eye(12), kappa)
    points, coefficients = np.vstack([x, X]), np.concatenate([[1.0], -solved])
    G = formulas.gram(formulas.rbf, points, points)
    coefficients *= 0.8 / math.sqrt(coefficients @ G @ coefficients)
    f = G @ coefficients
    noise = 0.5 * rng.choice([-1.0, 1.0], size=(20_000, 12))
    mean, variance = formulas.posterior(K, kappa[:, None], 1.0, f[1:], 0.3)
    errors = np.abs(mean + noise @ solved - f[0])
    bound = algorithm.width(1, 1) * math.sqrt(variance[0])
    assert 0.1 * bound < errors.max()
    assert (errors > bound).mean() <= 0.1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"kernel": "RBF"}, "'RBF' is no kernel"),
        ({"ridge": 0}, "ridge must be above 0"),
        ({"delta": 1.0}, "delta must be a probability below 1, got 1.0"),
        ({"delta": 0}, "delta must be above 0"),
        ({"eta": -1}, "eta must be >= 0"),
        ({"norm": -1}, "norm must be >= 0"),
        ({"noise": "loud"}, "noise must be a number"),
        ({"name": 3}, "name must be a text"),
    ],
    ids=range(8),
)
def test_bad_settings_are_refused(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        cb.SupKernelUCB(**{"kernel": RBF, **arguments})


def test_a_run_that_does_not_fit_into_memory_is_refused_before_it_starts():
    problem = cb.problems.kernel(cb.Network.path(100))
    with pytest.raises(InputError, match=r"5000 rounds of SupKernelUCB with 100 agents.*10.0 GB"):
        cb.play(problem, cb.SupKernelUCB(kernel=RBF), rounds=5000)
