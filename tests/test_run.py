from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from worlds import NETWORKS, ragged

POLICY = cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=cb.similarity.Same(), ttl=2)


def test_regret_is_against_the_best_offered_action():
    problem = ragged(NETWORKS["grid"], rounds=6)
    run = cb.play(problem, POLICY, rounds=6)
    for t in range(1, 7):
        offer = problem.round(t, 0)
        for v in range(9):
            mine = offer.expected[offer.agents == v]
            chosen = run.actions[t - 1, v]
            assert run.regret[t - 1, v] == mine.max() - mine[chosen]
            assert run.rewards[t - 1, v] == offer.rewards[offer.agents == v][chosen]
    np.testing.assert_allclose(run.regret_per_agent, np.cumsum(run.regret.mean(axis=1)))


def test_another_seed_is_another_run():
    problem = cb.problems.clustered_linear(NETWORKS["grid"], dim=3)
    one, two = (cb.play(problem, POLICY, rounds=10, seed=s) for s in (0, 1))
    assert (one.rewards != two.rewards).any()


def test_what_a_run_hands_out_is_read_only():
    run = cb.play(ragged(NETWORKS["grid"]), POLICY, rounds=3)
    for name in ("regret", "actions", "rewards", "messages", "bytes"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(run, name)[0] = 0


def test_agents_that_listen_to_nobody_send_nothing():
    problem = ragged(NETWORKS["grid"])
    for policy in (cb.LinUCB(), cb.KernelUCB(kernel=cb.kernels.RBF()), cb.Uniform()):
        run = cb.play(problem, policy, rounds=4)
        assert run.messages.tolist() == run.bytes.tolist() == [0, 0, 0, 0]


def test_messages_on_a_path_are_counted_by_hand():
    # 0 – 1 – 2, γ = 2: 4 transmissions of fresh news in each round; from round 2 on the news of
    # each agent is handed on by its neighbours: by 1 for 0 and for 2 (2 edges each), and by 0 and
    # 2 for 1 (1 edge each), 6 more
    run = cb.play(ragged(cb.Network.path(3), dim=3), POLICY, rounds=4)
    assert run.messages.tolist() == [4, 10, 10, 10]
    assert run.bytes.tolist() == [m * (24 + 8 * 4) for m in [4, 10, 10, 10]]


def test_a_run_says_what_it_is_in_one_line():
    run = cb.play(ragged(cb.Network.path(3), dim=3), POLICY, rounds=4)
    assert repr(run).startswith("Run(4 rounds of 3 agents, regret per agent ")
    assert repr(run).endswith(", 34 messages, engine exact)")


def test_progress_is_reported_after_every_round():
    seen = []
    cb.play(ragged(NETWORKS["grid"]), cb.LinUCB(), rounds=5, on_round=seen.append)
    assert seen == [1, 2, 3, 4, 5]


def test_learning_beats_chance_and_cooperation_beats_learning_alone():
    network = cb.Network.complete(12)
    problem = cb.problems.clustered_linear(
        network, dim=6, actions=8, noise=0.1, clusters=np.arange(12) % 2
    )
    eager = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=problem.similarity, eta=0.3)
    finals = {
        name: np.mean(
            [cb.play(problem, policy, rounds=40, seed=s).regret_per_agent[-1] for s in range(5)]
        )
        for name, policy in {
            "uniform": cb.Uniform(),
            "alone": cb.LinUCB(eta=0.3),
            "eager": eager,
        }.items()
    }
    assert finals["eager"] < 0.6 * finals["alone"] < 0.5 * finals["uniform"]


def test_a_run_that_does_not_fit_into_memory_is_refused_before_it_starts():
    network = cb.Network.complete(20)
    problem = cb.problems.clustered_linear(network, clusters=np.zeros(20, dtype=int))
    naive = cb.NaiveCooperation()
    # one group of 20 agents: 20·100 observations, half a matrix of 2,000² numbers, 16 MB and more
    with pytest.raises(ParameterError, match=r"100 rounds of Naive.*memory_limit=1.5e\+07"):
        cb.play(problem, naive, rounds=100, memory_limit=15e6, engine="exact")
    with pytest.raises(ParameterError, match="memory_limit must be above 0"):
        cb.play(problem, naive, rounds=100, memory_limit=0)
    with pytest.raises(ParameterError, match="memory_limit must be a number"):
        cb.play(problem, naive, rounds=100, memory_limit=np.array([1e9, np.inf]))
    assert cb.play(problem, naive, rounds=5, memory_limit=15e6, engine="exact").engine == "exact"
    # what is exact and fits comes first, what is sparse after it
    assert cb.play(problem, naive, rounds=100, memory_limit=15e6).engine == "statistics"
    naive = cb.NaiveCooperation(kernel=cb.kernels.RBF())
    assert cb.play(problem, naive, rounds=5, memory_limit=30e6).engine == "exact"
    assert cb.play(problem, naive, rounds=200, memory_limit=30e6).engine.startswith("sparse")
    with pytest.raises(ParameterError, match="for the sparse engine, above memory_limit=1e"):
        cb.play(problem, naive, rounds=200, memory_limit=1e6)
    # agents that follow need no posterior once they do
    star = cb.problems.fully_cooperative(cb.Network.star(50))
    dist = cb.DistKernelUCB(kernel=cb.kernels.RBF())
    limit = 1.01 * (4 * (50 * 20) ** 2 + 24 * (50 * 20) * 8)
    assert cb.play(star, dist, rounds=20, memory_limit=limit).regret.shape == (20, 50)


@dataclass(frozen=True)
class Given:
    """A problem of the rounds it is given."""

    network: cb.Network
    rounds: list

    horizon = None

    def round(self, t, seed):
        return cb.problems.Round(*self.rounds[t - 1])


GOOD = (np.array([0, 0, 1]), np.ones((3, 2)), np.ones(3), np.ones(3))


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ((np.array([0, 1]), np.ones((2, 3)), np.ones(2), np.ones(2)), "round 2 has contexts of 3"),
        ((np.array([0]), np.ones((1, 2)), np.ones(1), np.ones(1)), "2 numbers for 1 agents"),
        ((np.array([0, 2]), np.ones((2, 2)), np.ones(2), np.ones(2)), "every agent"),
        ((np.array([1, 0]), np.ones((2, 2)), np.ones(2), np.ones(2)), "every agent"),
        ((np.empty(0, int), np.ones((0, 2)), np.ones(0), np.ones(0)), "every agent"),
        ((*GOOD[:1], np.ones((2, 2)), *GOOD[2:]), r"contexts have shape \(2, 2\)"),
        ((*GOOD[:2], np.ones(2), GOOD[3]), r"expected have shape \(2,\)"),
        ((*GOOD[:3], np.full(3, np.nan)), "rewards must be finite"),
        ((*GOOD[:3], np.full(3, 1e200)), "rewards must lie within"),
        ((GOOD[0], np.full((3, 2), 1e200), *GOOD[2:]), "contexts must lie within"),
        ((GOOD[0], np.full((3, 2), 1e6), *GOOD[2:]), "kernel is too large"),
    ],
    ids=range(11),
)
def test_a_problem_that_offers_nonsense_is_refused(second, complaint):
    problem = Given(cb.Network.path(2), [GOOD, second])
    for engine in ("exact", "messages"):
        with pytest.raises(InputError, match=complaint):
            cb.play(problem, cb.LinUCB(), rounds=2, engine=engine)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"rounds": 0}, "rounds must be a whole number >= 1, got 0"),
        ({"rounds": 2.5}, "rounds must be a whole number"),
        ({"rounds": 13}, "rounds=13, but the problem has only 12"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"engine": "warp"}, "engine='warp' is not known; expected 'auto', 'exact', 'statistics'"),
        ({"policy": cb.LinUCB}, r"is no policy.*LinUCB\(\)"),
        ({"problem": 3}, "is no problem"),
    ],
    ids=range(7),
)
def test_settings_that_make_no_run_are_refused(arguments, complaint):
    facts = {"problem": ragged(NETWORKS["grid"]), "policy": cb.LinUCB(), "rounds": 5}
    with pytest.raises(ParameterError, match=complaint):
        cb.play(**{**facts, **arguments})


@dataclass(frozen=True)
class Always:
    """An algorithm that is no row: everyone takes its first action; written as a user would."""

    name: str = "always the first"

    def named(self, name):
        return replace(self, name=name)

    def player(self, simulation):
        return AlwaysPlayer(simulation.agents)


class AlwaysPlayer:
    name, refreshes = "first", 0

    def __init__(self, V):
        self.listens = np.eye(V, dtype=bool)

    def play(self, t, offer):
        return offer.starts

    def traffic(self, t):
        return 0, 0

    def similarity(self):
        return np.eye(len(self.listens))


def test_an_algorithm_that_is_no_row_of_answers_is_played_too():
    problem = cb.problems.clustered_linear(cb.Network.path(5))
    run = cb.play(problem, Always(), rounds=3, seed=4)
    assert run.engine == "first"
    assert (run.actions == 0).all()
    for t in range(1, 4):
        offer = problem.round(t, 4)
        np.testing.assert_array_equal(run.rewards[t - 1], offer.rewards[offer.starts])
    with pytest.raises(ParameterError, match="computes its decisions itself"):
        cb.play(problem, Always(), rounds=3, engine="exact")
    with pytest.raises(ParameterError, match="is no policy"):
        cb.play(problem, Always, rounds=3)


@pytest.mark.parametrize(
    "problem",
    [
        cb.problems.clustered_linear(NETWORKS["grid"], dim=3),
        cb.problems.continuum(NETWORKS["grid"], cb.Box([0.0], [1.0])),
    ],
    ids=["finite sets", "continuum"],
)
def test_a_record_that_does_not_fit_into_memory_is_refused_before_it_starts(problem):
    for policy in (cb.LinUCB(), cb.Uniform()):
        with pytest.raises(ParameterError, match=r"record of 1000000000 rounds of 9 agents needs "):
            cb.play(problem, policy, rounds=10**9)
    with pytest.raises(ParameterError, match=r"above memory_limit=1e\+03 bytes; raise the limit"):
        cb.play(problem, cb.LinUCB(), rounds=10, memory_limit=1e3)


@dataclass
class Own:
    """A user's own problem, of one round and one agent, as sound as its parts."""

    network: object = field(default_factory=lambda: cb.Network.path(1))
    horizon: object = None
    offered: object = None

    def round(self, t, seed):
        return self.offered


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"network": None}, r"expected a coopbandits\.Network, got None"),
        ({"network": "path"}, r"expected a coopbandits\.Network, got 'path'"),
        ({"horizon": "long"}, "the problem's horizon must be a whole number >= 1, got 'long'"),
        ({"horizon": np.ones(2)}, "the problem's horizon must be a whole number"),
        ({"offered": None}, r"round 1 of the problem is None; expected a coopbandits\.problems"),
        ({"offered": np.ones((2, 2))}, "round 1 of the problem is array"),
    ],
    ids=str,
)
def test_a_users_own_problem_is_checked_as_it_is_played(parts, said):
    with pytest.raises(ParameterError, match=said):
        cb.play(Own(**parts), cb.LinUCB(), rounds=1)
